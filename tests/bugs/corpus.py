"""Public bugs, each re-created as small code of our own, and public claims that were no bugs.

A bug is a mutant (code with the cause that its thread describes), the same code without it, and
the law by which the mutant must be caught.  A control is correct code that somebody took for
wrong: no law may call it broken.  They are collected from the files ``*_bugs.py`` and
``*_controls.py`` of this folder, so that a new one is a function in a file and no list is edited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from attnproof.programs.subjects import Subject
from attnproof.theorems.laws import LAWS as CODE_LAWS

Make = Callable[[], Subject]
S = TypeVar("S", bound=Subject)

# The numbers of the list of bugs, and of the list of claims that were none.
PUBLIC = tuple(f"P{n:02d}" for n in range(1, 62)) + tuple(f"N{n:02d}" for n in range(1, 8))


@dataclass(frozen=True)
class Bug:
    """A public bug.  ``id``: P01..P61, with a letter where one entry has variants: P04a, P04b.

    ``threads``: owner/name#number, the one that is followed first.  ``title``: the fault in a few
    words of ours.  ``symptom``: what its users saw.  ``law``: by which ``mutant`` is caught, and
    which ``correct`` obeys.  ``obeys``: laws that the mutant obeys all the same, so that the
    thread's "no test saw it" can be seen.
    """

    id: str
    threads: tuple[str, ...]
    title: str
    symptom: str
    law: str
    mutant: Make
    correct: Make
    obeys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Control:
    """A public claim that some code was wrong, and was not.  ``id``: N01..N07, with letters.

    ``claim`` in a few words of ours; ``verdict``: what is to be said of ``subject`` instead.
    """

    id: str
    threads: tuple[str, ...]
    claim: str
    verdict: str
    subject: Make


_BUGS: dict[str, Bug] = {}
_CONTROLS: dict[str, Control] = {}


def bug(
    number: str,
    *threads: str,
    title: str,
    symptom: str,
    law: str,
    correct: Make,
    obeys: tuple[str, ...] = (),
) -> Callable[[Callable[[], S]], Callable[[], S]]:
    """Collect the decorated function, which builds the mutant.

    Raises ``ValueError`` for a law that is not there, or of other code, and for an id used twice.
    """
    unknown = {law, *obeys} - {known.id for known in CODE_LAWS}
    if unknown:
        raise ValueError(f"{number}: no such law: {', '.join(sorted(unknown))}")

    def wrap(mutant: Callable[[], S]) -> Callable[[], S]:
        _new(number, _BUGS)
        _BUGS[number] = Bug(number, threads, title, symptom, law, mutant, correct, obeys)
        return mutant

    return wrap


def control(
    number: str, *threads: str, claim: str, verdict: str
) -> Callable[[Callable[[], S]], Callable[[], S]]:
    """Collect the decorated function, which builds code that is right."""

    def wrap(subject: Callable[[], S]) -> Callable[[], S]:
        _new(number, _CONTROLS)
        _CONTROLS[number] = Control(number, threads, claim, verdict, subject)
        return subject

    return wrap


def _new(number: str, known: dict[str, Bug] | dict[str, Control]) -> None:
    if number in known:
        raise ValueError(f"{number} is there already; a variant has a letter: {number}a")


def _import_all() -> None:
    here = Path(__file__).parent
    for pattern in ("*_bugs.py", "*_controls.py"):
        for file in sorted(here.glob(pattern)):
            import_module(f"tests.bugs.{file.stem}")


def all_bugs() -> tuple[Bug, ...]:
    """Every bug, by id."""
    _import_all()
    return tuple(_BUGS[number] for number in sorted(_BUGS))


def all_controls() -> tuple[Control, ...]:
    """Every control, by id."""
    _import_all()
    return tuple(_CONTROLS[number] for number in sorted(_CONTROLS))
