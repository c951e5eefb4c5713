"""Many programs, in classes of equal ones: each is compared with the first of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..code import DoesNotFit
from ..signature import SignatureError
from .deciding import SECONDS, Verdict, compare
from .sides import Told
from .specification import WrongSpecification, read

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
    seed: int = 0,
    seconds: float = SECONDS,
    begin: Callable[[str], None] = lambda _: None,
) -> Classes:
    """Programs in classes of equal ones.

    What is undecided, or cannot be called on the same arrays, is in another class.  Specifications
    come first, and are not compared with one another.

    Raises :class:`WrongSpecification` for what is not a specification.

    >>> line = "x: B n E -> B n E"
    >>> three = [Told(lambda x: 2 * x, "a", line), Told(lambda x: x + x, "b", line),
    ...          Told(lambda x: x * x, "c", line)]
    >>> [[one.name for one in each.members] for each in classes(three).found]
    [['a', 'b'], ['c']]
    """
    found: list[Class] = []
    apart: list[tuple[Told, Told, Verdict | str]] = []
    # A specification is called as the other program is, so that it can only be the second.
    specified = [one for one in programs if isinstance(one.thing, str)]
    for one in specified:
        read(one.thing)
    for program in (*specified, *(one for one in programs if one not in specified)):
        begin(program.name)
        for each in () if program in specified else found:
            pair = (program, each.first) if each.first in specified else (each.first, program)
            try:
                verdict = compare(*pair, seed=seed, seconds=seconds)
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                apart.append((each.first, program, said_of(error)))
                continue
            if verdict.verdict in SAME:
                each.others.append((program, verdict))
                break
            apart.append((each.first, program, verdict))
        else:
            found.append(Class(program))
    found.sort(key=lambda each: -len(each.members))
    return Classes(found, apart)


def said_of(error: Exception) -> str:
    """Why two programs could not be compared: what the code raised has its type before it.

    >>> said_of(SignatureError("k is missing")), said_of(KeyError("heads"))
    ('k is missing', "KeyError: 'heads'")
    """
    if isinstance(error, SignatureError | DoesNotFit | WrongSpecification):
        return str(error)
    return f"{type(error).__name__}: {error}"
