"""Importing a Python file that belongs to no package."""

from __future__ import annotations

import importlib.util
import sys
from hashlib import blake2b
from importlib.machinery import SOURCE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class _AsItIs(SourceFileLoader):
    """Compiles the file each time: what Python has stored of it may be of another text.

    A stored compilation is told from another by the second it was made in, and the length.
    """

    def get_code(self, fullname: str) -> CodeType:
        """The code of the text that stands in the file now."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def imported(path: Path, prefix: str) -> ModuleType:
    """The module of a file, under a name made from its path.

    Raises whatever the file raises, and ``ImportError`` for one that is not Python.
    """
    digest = blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()
    name = f"{prefix}{digest}_{path.stem}"
    loader = _AsItIs(name, str(path)) if path.suffix in SOURCE_SUFFIXES else None
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if loader is None or spec is None:
        raise ImportError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
