"""Checks that are not done again: what was found of code is kept until something of it changes.

The key of a record is what was asked, the folder and processor it was asked on, ``PYTHONPATH``, the
sources of attnproof, Python and the name and version of every installed distribution.  With the
record stands the digest of the target's file, and of every source file that the code had loaded
and that no distribution owns; it is used only while all of these are as they were.  What code
reads otherwise (data files, environment variables, the clock, the network) is not covered.

Nothing here loads torch.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from hashlib import sha256
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..records import processor
from .records import CodeRecord

if TYPE_CHECKING:
    from ..sweeping.store import Key, Store
    from .request import Asked

PACKAGE = Path(__file__).resolve().parent.parent


def sources_loaded(target: str = "") -> dict[str, str]:
    """The digest of every file that this process has imported, but those of distributions.

    The path of each, and the digest of what stands in it now.  ``target`` is the file of the code
    itself, which counts wherever it is.
    """
    owned = [*_owned(), str(PACKAGE), *(str(p.resolve()) for p in PACKAGE.iterdir() if p.is_dir())]
    found = {target: _digest(target)} if Path(target).is_file() else {}
    for module in list(sys.modules.values()):
        file = getattr_static(module, "__file__", None)  # a lazy module loads itself at a getattr
        if not isinstance(file, str) or any(file.startswith(f"{one}{os.sep}") for one in owned):
            continue
        if not (Path(file).is_absolute() or Path(file).exists()):
            continue  # modules that are made, such as torch.ops, name files that are none
        path = os.path.realpath(file)
        if not any(path.startswith(f"{one}{os.sep}") for one in owned):
            found[path] = _digest(path)
    return found


def key_of(asked: Asked) -> Key:
    """What a check depends on, besides the files that it loads."""
    from ..sweeping.store import Key

    told = {
        "asked": asked.text(),
        "folder": str(Path.cwd()),
        "path": os.environ.get("PYTHONPATH", ""),
        "attnproof": _own(),
        "python": sys.version,
        "prefix": sys.prefix,
        "installed": _installed(),
        "processor": f"{platform.machine()} {processor()}",
    }
    return Key("code", asked.target, json.dumps(told, sort_keys=True))


def recalled(store: Store, key: Key) -> CodeRecord | None:
    """What was found of this code, if none of its files has changed since."""
    from ..sweeping.store import StoreError

    try:
        stored = store.get(key)
        if stored is None:
            return None
        told = json.loads(stored.record)
        files = told["files"]
        if not files or any(_digest(path) != digest for path, digest in files.items()):
            return None
        record = CodeRecord.model_validate_json(told["record"])
    except (StoreError, ValidationError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return record.model_copy(update={"stored": stored.made})


def keep(
    store: Store, key: Key, record: CodeRecord, files: Mapping[str, str], began: float
) -> bool:
    """Leave a record; whether it was left.

    ``began``: when the process began, in seconds since the epoch.  A file that was written later
    may not be the one that was loaded, and then nothing is left.
    """
    from ..sweeping.store import StoreError

    if not files or any(_written(path) >= began for path in files):
        return False
    told = {"record": record.model_dump_json(), "files": dict(files)}
    try:
        return store.put(key, json.dumps(told), replace=True)
    except StoreError:
        return False


def _digest(path: str) -> str:
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _written(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return float("inf")


def _owned() -> list[str]:
    """Folders whose files change with a version: of Python, and of what is installed."""
    named = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {sysconfig.get_paths()[name] for name in named}
    return sorted(found | {os.path.realpath(one) for one in found})


def _own() -> str:
    """The digest of the sources of attnproof."""
    digest = sha256()
    for path in sorted(_python_files(PACKAGE)):
        digest.update(f"{path}\0".encode() + Path(path).read_bytes())
    return digest.hexdigest()


def _python_files(folder: Path) -> Iterable[str]:
    for place, _, names in os.walk(folder, followlinks=True):
        yield from (f"{place}{os.sep}{name}" for name in names if name.endswith(".py"))


def _installed() -> list[str]:
    """Names and versions of distributions, and when each was installed."""
    found: set[str] = set()
    for folder in _owned():
        if not Path(folder).is_dir():
            continue
        with os.scandir(folder) as entries:
            for one in entries:
                if one.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")):
                    found.add(f"{one.name} {one.stat().st_mtime_ns}")
    return sorted(found)
