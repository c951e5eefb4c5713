"""Import Python files that belong to no package, and read the ids that a file declares."""

from __future__ import annotations

import importlib.util
import re
import sys
from hashlib import blake2b
from importlib.machinery import SOURCE_SUFFIXES, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class _AsItIs(SourceFileLoader):
    """Compile the file each time, since a cached compilation may be of another text.

    Python validates its cache only by the modification time, in seconds, and the length of the
    source.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the current text of the file."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def imported(path: Path, prefix: str) -> ModuleType:
    """Import a file as a module whose name is derived from its path.

    Propagates whatever the file raises, and raises ``ImportError`` if it is not Python.
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
    """Return the ids of the functions under a decorator in a file, found in its text.

    They are the names with hyphens.  The file is not run.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    names = re.findall(rf"^@{decorator}\(.*?^def (\w+)", text, re.MULTILINE | re.DOTALL)
    return [name.replace("_", "-") for name in names]


def demonstrations_in(path: Path) -> list[str]:
    """Return the ids of the demonstrations of a file; a single one has the name of the file."""
    names = ids_in(path, "demonstration")
    return names if len(names) > 1 else [path.stem.replace("_", "-")]
