"""The line of a verdict: its word, how it is known, and every condition under which it holds.

Whatever prints "proved" (terminal, pages, cards, checks of code, JUnit) makes its line here, so
that none of them can leave out a condition.  Plain data in, text out:

    verdict[, how], for RANGES, if HYPOTHESES, where READINGS

=========  ===================================================================================
kind       what it limits
=========  ===================================================================================
``for``    lengths: ``n ≥ 2``, ``n ≤ 8·H``, ``n mod 7 ≠ 0``, ``B = 3``
``if``     values: ``x ≠ 0``, ``scores stay above −10⁴``, ``every row of M keeps a key``
``where``  how code was read: ``the buffer flag is True, as it was found``
=========  ===================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["for", "if", "where"]
_BOUNDED = re.compile(r"(\w+′*(?:, \w+′*)*) ≥ (\d+)")  # lengths that share a lower bound


@dataclass(frozen=True)
class Condition:
    """One condition of a verdict: a phrase that follows "for", "if" or "where".

    ``of`` names the conclusion that it limits, if a statement has several; empty: all of them.
    Raises ``ValueError`` for an unknown kind or an empty phrase.
    """

    text: str
    kind: Kind = "if"
    of: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or not self.text.strip():
            kinds = ", ".join(get_args(Kind))
            raise ValueError(f"wanted a phrase and one of {kinds}; got {self.text!r}, {self.kind}")

    @property
    def phrase(self) -> str:
        """The condition, with the conclusion that it limits."""
        return f"{self.text} (for {self.of})" if self.of else self.text


def verdict_line(verdict: str, conditions: Iterable[Condition | str] = (), *, how: str = "") -> str:
    """Return the line of a verdict; a condition that is a plain string follows "if".

    Conditions keep their order within a kind, and each appears once.

    >>> verdict_line("proved", ["x ≠ 0", Condition("n ≥ m", "for")], how="12 kernel steps")
    'proved, 12 kernel steps, for n ≥ m, if x ≠ 0'
    """
    return ", ".join((verdict, *([how] if how else ()), *clauses(conditions)))


def clauses(conditions: Iterable[Condition | str]) -> list[str]:
    """Return one clause for each kind that occurs: "for ..", "if ..", "where ..".

    >>> clauses(["a ≠ 0", "b ≠ 0", Condition("the mask is causal", "where")])
    ['if a ≠ 0 and b ≠ 0', 'where the mask is causal']
    >>> clauses([Condition(told, "for") for told in ("B, n ≥ 2", "D = 8", "n ≥ 2")])
    ['for B, n ≥ 2; and D = 8']
    """
    told: dict[str, dict[str, None]] = {kind: {} for kind in get_args(Kind)}
    for one in conditions:
        condition = Condition(one) if isinstance(one, str) else one
        told[condition.kind].setdefault(condition.phrase)
    told["for"] = dict.fromkeys(_merged(told["for"]))
    return [f"{kind} {joined(tuple(phrases))}" for kind, phrases in told.items() if phrases]


def _merged(phrases: Iterable[str]) -> list[str]:
    """Return the ranges, merging those with the same lower bound, so that no length is repeated.

    >>> _merged(["B, n ≥ 2", "n, m ≥ 2", "n ≥ 3"])
    ['B, n, m ≥ 2', 'n ≥ 3']
    """
    found: dict[str, dict[str, None]] = {}
    for phrase in phrases:
        bounded = _BOUNDED.fullmatch(phrase)
        if bounded is None:
            found[phrase] = {}
        else:
            found.setdefault(bounded[2], {}).update(dict.fromkeys(bounded[1].split(", ")))
    return [f"{', '.join(names)} ≥ {key}" if names else key for key, names in found.items()]


def joined(phrases: Sequence[str]) -> str:
    """Join phrases as "a, b and c"; with semicolons if a phrase itself has a comma or "and".

    >>> joined(["a ≠ 0", "b ≠ 0", "n ≥ 2"])
    'a ≠ 0, b ≠ 0 and n ≥ 2'
    >>> joined(["for all x, y: x·y = 1", "n ≥ 2"])
    'for all x, y: x·y = 1; and n ≥ 2'
    """
    *first, last = phrases
    if not first:
        return last
    if any("," in phrase or " and " in phrase for phrase in phrases):
        return f"{'; '.join(first)}; and {last}"
    return f"{', '.join(first)} and {last}"
