"""Importing a Python file that belongs to no package, and the ids of what a file declares."""

from __future__ import annotations

import importlib.util
import re
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


def ids_in(path: Path, decorator: str) -> list[str]:
    """The ids of the functions under a decorator in a file, as far as its text shows them.

    They are their names with hyphens.  The file is not run.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    names = re.findall(rf"^@{decorator}\(.*?^def (\w+)", text, re.MULTILINE | re.DOTALL)
    return [name.replace("_", "-") for name in names]


def demonstrations_in(path: Path) -> list[str]:
    """The ids of the demonstrations of a file; one that stands there alone has the file's name."""
    names = ids_in(path, "demonstration")
    return names if len(names) > 1 else [path.stem.replace("_", "-")]
