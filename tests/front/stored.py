"""Runs of theorem files with a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attnproof.catalogue import load_catalogue
from attnproof.checking import Options
from attnproof.records import Results
from attnproof.runner import run
from attnproof.sweeping.kept import Kept, opened

WriteTheorem = Callable[..., Path]
WriteDemonstration = Callable[..., Path]
PLAIN = Options(numeric=False)


def kept_at(place: Path, *, fresh: bool = False) -> Kept:
    found, told = opened(place, fresh=fresh)
    assert found is not None
    assert not told
    return found


def ran(path: Path, place: Path, options: Options = PLAIN, *, fresh: bool = False) -> Results:
    catalogue = load_catalogue([path]).select(["mine"])
    return run(catalogue, options, kept=kept_at(place, fresh=fresh))
