"""Usage errors, each told in one line: what was wanted, what came, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

__all__ = ["UsageError", "require_file", "require_folder", "require_known", "require_writable"]


class UsageError(Exception):
    """What was wanted, what came, and what to do, in one line; the exit code is 2."""


def require_known(names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a name that is neither an id nor a subject, with the nearest ones."""
    for name in names:
        if name in known:
            continue
        near = get_close_matches(name, known, n=3, cutoff=0.4)
        near = near or [other for other in known if name in other][:3]
        told = f"nearest: {', '.join(near)}" if near else "see `attnproof list`"
        raise UsageError(f"wanted the id or subject of a theorem, got {name!r}; {told}")


def require_file(path: Path) -> None:
    """Refuse to start on results that cannot be written to this file."""
    if path.is_dir():
        raise UsageError(f"wanted a file to write to, got the folder {path}; name a file in it")
    require_writable(path.parent)


def require_folder(path: Path) -> None:
    """Refuse a place for theorem files that is not there."""
    if not path.exists():
        raise UsageError(
            f"wanted a folder or file of theorems, got {path}, which is not there; check the path"
        )


def require_writable(folder: Path) -> None:
    """Refuse to start on results that could not be kept: make the folder and try it."""
    probe = folder / ".attnproof-can-write"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"wanted a folder that can be written to, got {folder} ({error.strerror or error}); "
            "choose another"
        ) from None
