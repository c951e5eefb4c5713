"""Many programs, in classes of equal ones: each is compared with the first of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..code import DoesNotFit
from ..signature import SignatureError
from .deciding import SECONDS, Verdict, compare
from .sides import Told

SAME = ("proved", "exact", "measured")


@dataclass
class Class:
    """Programs that are one function: the first, and the others with how each is known to be it."""

    first: Told
    others: list[tuple[Told, Verdict]] = field(default_factory=list)

    @property
    def members(self) -> list[Told]:
        """All of them."""
        return [self.first, *(one for one, _ in self.others)]


@dataclass
class Classes:
    """The classes, the largest first, and why two firsts are not one function.

    ``apart``: two programs, and the verdict; or why they cannot be called on the same arrays.
    """

    found: list[Class]
    apart: list[tuple[Told, Told, Verdict | str]]


def classes(
    programs: Sequence[Told],
    *,
    weights: str = "",
    where: str = "",
    seed: int = 0,
    seconds: float = SECONDS,
    begin: Callable[[str], None] = lambda _: None,
) -> Classes:
    """Programs in classes of equal ones.

    What is undecided, or cannot be called on the same arrays, is in another class.

    >>> line = "x: B n E -> B n E"
    >>> three = [Told(lambda x: 2 * x, "a", line), Told(lambda x: x + x, "b", line),
    ...          Told(lambda x: x * x, "c", line)]
    >>> [[one.name for one in each.members] for each in classes(three).found]
    [['a', 'b'], ['c']]
    """
    found: list[Class] = []
    apart: list[tuple[Told, Told, Verdict | str]] = []
    for program in programs:
        begin(program.name)
        for each in found:
            try:
                verdict = compare(
                    each.first, program, weights=weights, where=where, seed=seed, seconds=seconds
                )
            except (SignatureError, DoesNotFit) as error:
                apart.append((each.first, program, str(error)))
                continue
            if verdict.verdict in SAME:
                each.others.append((program, verdict))
                break
            apart.append((each.first, program, verdict))
        else:
            found.append(Class(program))
    found.sort(key=lambda each: -len(each.members))
    return Classes(found, apart)
