"""What was chosen here of a call, and the same code with another choice.

Nobody says which of two lines that fit is meant, how wide a layer is to be built, or what number
hides a key.  A law that is broken at one choice alone is not told as the code's: of another line it
is undecided, and of another value its line names the condition.

This is the one place where that is decided, and what is no choice is decided where a call is
guessed: what is told, what a name says, and what is seen in what the code does, as which of two
axes are rows.  Of two methods of a class neither is another reading of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .attention import OnHeads
from .constructors import set_words
from .finding import GUESSED, Finding
from .grammar import parse
from .names import role_of
from .roles import unexplained
from .signature import Argument
from .subjects import Additive, Attention, Subject
from .tokens import OnTokens

MOST = 4  # guesses of which another value is tried
SOFTER = -1e4  # hides a key as well: exp of it is 0 in every format
Find = Callable[[Subject], tuple[Finding, ...]]


@dataclass(frozen=True)
class Choice:
    """The same code with another choice.

    ``told``: where the law is broken, and where it holds then, in words.  ``line``: that it is
    called in another way, or with numbers of another size, which the code does not rule out.
    """

    told: str
    make: Callable[[], Subject]
    line: bool = False


def choices(subject: Subject, called: Callable[[str], Subject] | None = None) -> Iterator[Choice]:
    """Other choices of what nobody told.  ``called``: the code, called by a line.

    >>> [*choices(Subject(name="f"))]
    []
    """
    if called is not None:
        for line in subject.others:
            told = (
                f"{GUESSED}, --call '{subject.line}', and holds as --call '{line}': say which it is"
            )
            yield Choice(told, partial(called, line), line=True)
        for flag in _flags(subject.line):
            other = str(not flag.value)
            told = f"broken with {flag}; it holds with {flag.name} = {other}"
            line = subject.line.replace(str(flag), f"{flag.name} = {other}", 1)
            yield Choice(told, partial(called, line))
        for one in unexplained(parse(subject.line)) if subject.line else ():
            number = one.value if isinstance(one.value, int) else getattr(subject, "width", 4)
            other = f"{one.name} = {2 * number}"
            line = subject.line.replace(str(one), other, 1)
            told = f"{GUESSED}, with {one}, and holds with {other}: say what it is"
            yield Choice(told, partial(called, line), line=True)
    takes = isinstance(subject, Attention) and (subject.hide or subject.reading or subject.masks)
    if isinstance(subject, Attention) and takes:
        told = f"broken where hidden keys get the lowest number there is; it holds with {SOFTER:g}"
        yield Choice(told, partial(_softer, subject))
    if isinstance(subject, Additive) and subject.within is not None:
        told = f"{GUESSED}, with coordinates 0, 1, 2, .., and holds with coordinates in [0, 1)"
        yield Choice(told, subject.within, line=True)
    if subject.sizes and subject.make is not None:
        yield _built(subject.make, subject.sizes)
    if subject.make is not None:
        open_ = [
            name
            for name, value in subject.guesses.items()
            if name.isidentifier() and name not in subject.sizes and _another(value) is not None
        ]
        for name in open_[:MOST]:
            yield _built(subject.make, {name: subject.guesses[name]})


def _flags(line: str) -> Iterator[Argument]:
    """The flags of a line that was guessed, of which no name says what they are."""
    for one in parse(line).arguments if line else ():
        if isinstance(one.value, bool) and not role_of(one.name):
            yield one


def _another(value: Any) -> Any:
    """Another value of a setting: the other truth value, or twice the number; else None."""
    if isinstance(value, bool):
        return not value
    return 2 * value if isinstance(value, int) and value else None


def _built(make: Callable[..., Any], settings: Mapping[str, Any]) -> Choice:
    """The same code, built with other values of some settings."""
    other = {name: _another(value) for name, value in settings.items()}
    holds = set_words(other).partition(" ")[2]
    told = f"broken as built with {set_words(settings)}; it holds with {holds}"
    return Choice(told, partial(make, **other))


def _softer(subject: Attention) -> Attention:
    """The same, in which a key is hidden by a smaller number."""
    changed: dict[str, Any] = {"paths": {}, "hiding": {}}
    for name in ("layer", "hide", "attend", "counting", "reading"):
        call = getattr(subject, name)
        on = getattr(call, "__self__", call)
        if isinstance(on, OnTokens | OnHeads):
            other = replace(on, least=SOFTER)
            changed[name] = other if on is call else getattr(other, call.__name__)
    return replace(subject, **changed)


def weighed(
    found: tuple[Finding, ...], find: Find, others: Iterator[Choice]
) -> tuple[Finding, ...]:
    """What is found of a law, asked again with other choices where it is broken.

    Broken alone is what is broken at each of them; undecided where another line keeps the law.
    """
    if not any(one.verdict == "broken" for one in found):
        return found
    for choice in others:
        try:
            again = {one.verdict for one in find(choice.make())}
        except Exception:  # noqa: BLE001 (with another choice the code may raise anything)
            continue
        if "holds" not in again or "broken" in again:
            continue
        changed: dict[str, Any] = {"verdict": "undecided", "witness": None} if choice.line else {}
        return tuple(
            replace(one, why=f"{choice.told}: {one.why}", **changed)
            if one.verdict == "broken"
            else one
            for one in found
        )
    return found
