"""What finite fields say of a subject, and the laws that right code obeys in them."""

from __future__ import annotations

from attnproof.programs.exact import exact
from attnproof.programs.finding import Finding
from attnproof.programs.subjects import Subject


def of(subject: Subject, *laws: str) -> dict[str, Finding]:
    return {f.law: f for f in exact(subject, laws)}


def verdict(subject: Subject, law: str) -> str:
    return of(subject, law)[law].verdict


def not_right(subject: Subject) -> dict[str, str]:
    """The laws that do not hold, of those that were asked."""
    return {k: f.verdict for k, f in of(subject).items() if f.verdict not in ("holds", "not asked")}


OF_ROTARY = (
    "relative",
    "norm",
    "composition",
    "linear",
    "identity-at-zero",
    "every-head-alike",
    "follows-its-ids",
    "rows-of-batch-apart",
)
ATTENTION = (
    "order-of-keys",
    "rows-sum-to-one",
    "shift-of-scores",
    "groups-of-heads",
    "heads-apart",
    "rows-of-batch-apart",
    "hidden-keys-do-nothing",
    "permutation",
)
