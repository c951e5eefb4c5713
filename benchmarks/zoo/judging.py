"""Human judgements of violations: real, design, or false alarm, with reasons.

``judged.toml`` is a list: ``library``, ``law`` and ``classes`` are patterns with ``*``; the page
prints ``judgement`` and ``reason``; ``find`` is a page of docs/finds.  The first match counts.  A
violation without a match has not been examined, and the page says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).with_name("judged.toml")
JUDGEMENTS = {
    "real": "Real: the code does what nobody wants",
    "design": "By design: the law does not fit what this code is for",
    "false alarm": "False alarm: the check is wrong",
    "open": "Open: looked at, not settled",
}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A judgement and the violations that it concerns; ``says``: a part of their reason."""

    law: str
    judgement: str
    reason: str
    library: str = "*"
    classes: tuple[str, ...] = ("*",)
    says: str = ""
    find: str = ""

    def __post_init__(self) -> None:
        if self.judgement not in JUDGEMENTS and self.judgement != "":
            told = ", ".join(JUDGEMENTS)
            raise ValueError(f"a judgement is one of {told}; got {self.judgement!r}")

    def fits(self, library: str, name: str, law: str, why: str) -> bool:
        """Whether the judgement concerns this violation."""
        return (
            fnmatchcase(library, self.library)
            and fnmatchcase(law, self.law)
            and any(fnmatchcase(name, one) for one in self.classes)
            and self.says in why
        )


NOT_LOOKED_AT = Judged(law="*", judgement="", reason="Nobody has looked at this one yet.")


def judgements(path: Path = HERE) -> tuple[Judged, ...]:
    """Return the judgements of the file, in order.  Raises ``TypeError`` for an unknown key."""
    told = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return tuple(
        Judged(**{**one, "classes": tuple(one.get("classes", ("*",)))})
        for one in told.get("judged", [])
    )


def judgement_of(library: str, name: str, law: str, why: str, known: Sequence[Judged]) -> Judged:
    """Return the first judgement that matches."""
    return next((one for one in known if one.fits(library, name, law, why)), NOT_LOOKED_AT)
