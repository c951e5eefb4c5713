"""What documents 000 and 004 require of a position encoding, as laws that would grant it.

A requirement is a list of laws with the verdict that it wants for each.  Whether it is met follows
from a card and from nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "not met", "open"]
APPLYING = "proved, where it applies"
CONTRARY = {"proved": "refuted", "refuted": "proved", APPLYING: "refuted"}
KEEPS = {"proved": ("proved",), "refuted": ("refuted",), APPLYING: ("proved", "does not apply")}


@dataclass(frozen=True)
class Requirement:
    """Its document, what it says, the laws that grant it and the verdicts it wants.

    All of them are needed, or with ``one_is_enough`` any.  A law that is wanted "proved, where it
    applies" is also kept by an encoding that does nothing of the kind.
    """

    id: str
    document: str
    says: str
    laws: tuple[tuple[str, str], ...]
    one_is_enough: bool = False

    def __post_init__(self) -> None:
        strange = {wanted for _, wanted in self.laws} - set(CONTRARY)
        if strange or not self.laws:
            told = f"not {min(strange)}" if strange else "of one law at least"
            raise ValueError(f"a requirement wants {', '.join(CONTRARY)}, {told}: {self.id}")


@dataclass(frozen=True)
class Granted:
    """met, not met or open; ``because`` holds the laws that settle it, with their verdicts.

    If it is open, they are the laws that are not decided.
    """

    verdict: Verdict
    because: tuple[tuple[str, str], ...]


def granted(requirement: Requirement, cells: Mapping[str, str]) -> Granted:
    """Return whether an encoding with these verdicts, by law, meets the requirement.

    A law proved under hypotheses counts as proved.  A law that is undecided, measured, missing, or
    does not apply leaves the requirement open if it depends on that law; one that does not apply is
    enough if it is wanted only where it applies.

    >>> unique = Requirement("w", "004", "unique codes", (("unique", "proved"),))
    >>> granted(unique, {"unique": "refuted"})
    Granted(verdict='not met', because=(('unique', 'refuted'),))
    """
    known = [(law, cells.get(law, "not asked"), wanted) for law, wanted in requirement.laws]
    kept = tuple((law, found) for law, found, wanted in known if found in KEEPS[wanted])
    broken = tuple((law, found) for law, found, wanted in known if found == CONTRARY[wanted])
    between = tuple(
        (law, found)
        for law, found, wanted in known
        if found not in KEEPS[wanted] and found != CONTRARY[wanted]
    )
    if requirement.one_is_enough:
        if kept:
            return Granted("met", kept)
        return Granted("open", between) if between else Granted("not met", broken)
    if broken:
        return Granted("not met", broken)
    return Granted("open", between) if between else Granted("met", kept)


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        "order-matters",
        "000",
        "It breaks the permutation symmetry: the output of attention "
        "depends on the order of the tokens.",
        (("sees-order", "proved"),),
    ),
    Requirement(
        "unique-representation",
        "000",
        "Each position is assigned a unique representation.",
        (("unique", "proved"),),
    ),
    Requirement(
        "relative-position",
        "000",
        "It captures the relative position of two tokens: the scores depend on their offset.",
        (("relative", "proved"),),
    ),
    Requirement(
        "linear-shift",
        "000",
        "For any fixed offset, the code of the later position is a linear "
        "function of that of the earlier one.",
        (("linear-shift", "proved"),),
    ),
    Requirement(
        "unseen-lengths",
        "000",
        "It applies to sequences of lengths not seen in training: positions are "
        "unlimited, and its effect on a pair of tokens does not depend on the length.",
        (("defined-beyond", "proved"), ("independent-of-length", "proved")),
    ),
    Requirement(
        "order",
        "004",
        "Order: it determines which of two positions comes first.",
        (("tells-before-from-after", "proved"),),
    ),
    Requirement(
        "uniqueness",
        "004",
        "Uniqueness: each position has a representation of its own.",
        (("unique", "proved"),),
    ),
    Requirement(
        "relative-and-continuous",
        "004",
        "Relative and continuous: it depends on the offset of positions, and continuously.",
        (("relative", "proved"), ("continuous", "proved"), ("mask-continuous", APPLYING)),
    ),
    Requirement(
        "invariance",
        "004",
        "Invariance: it does not depend on the length of the sequence.",
        (("independent-of-length", "proved"),),
    ),
    Requirement(
        "purpose",
        "004",
        "Purpose: it affects the scores of attention, or the values, or both.",
        (("acts-on-scores", "proved"), ("leaves-values", "refuted")),
        one_is_enough=True,
    ),
    Requirement(
        "size",
        "004",
        "Its values do not outgrow the rest of the data as sequences get longer.",
        (("bounded", APPLYING),),
    ),
)
