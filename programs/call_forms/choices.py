"""The choices made in guessing a call, and the same code under another choice.

The user has not said which of two fitting lines is meant, how wide a layer is to be built, or which
number hides a key.  If a law is broken under one choice only, the code is not simply reported as
broken: if another line keeps the law, the verdict is undecided; if another value does, the verdict
names that condition.

All of this is decided here.  What is not a choice is settled where the call is guessed: whatever
the user states, a name implies, or the behaviour of the code shows, such as which of two axes is
the batch.  Two methods of a class are never alternative readings of one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..calls.attention import OnHeads
from ..calls.roles import unexplained
from ..calls.tokens import OnTokens
from ..finding import BROKEN_AS_GUESSED, Finding
from ..loading.constructors import set_words
from ..loading.names import role_of
from ..signatures.grammar import parse
from ..signatures.signature import Argument
from ..subjects import Additive, Attention, Subject

MAX_SETTINGS = 4  # guessed settings for which another value is tried
FINITE_MASK = -1e4  # also hides a key: its exp is 0 in every format
Find = Callable[[Subject], tuple[Finding, ...]]


@dataclass(frozen=True)
class Choice:
    """The same code under another choice.

    ``words``: under which choice the law is broken and under which it holds, in words.  ``line``:
    whether the choice is another call, or other input values, that the code does not rule out.
    """

    words: str
    make: Callable[[], Subject]
    line: bool = False


def choices(subject: Subject, called: Callable[[str], Subject] | None = None) -> Iterator[Choice]:
    """Yield other choices for what the user left open.  ``called``: calls the code by a line.

    >>> [*choices(Subject(name="f"))]
    []
    """
    if called is not None:
        for line in subject.others:
            told = (
                f"{BROKEN_AS_GUESSED}, --call '{subject.line}', and holds under --call '{line}': "
                "say which is meant"
            )
            yield Choice(told, partial(called, line), line=True)
        for flag in _flags(subject.line):
            other = str(not flag.value)
            told = f"broken with {flag}; it holds with {flag.name} = {other}"
            line = subject.line.replace(str(flag), f"{flag.name} = {other}", 1)
            yield Choice(told, partial(called, line))
        for one in unexplained(parse(subject.line)) if subject.line else ():
            if isinstance(one.value, tuple):
                continue  # sections of a vector have to fill it
            number = one.value if isinstance(one.value, int) else getattr(subject, "width", 4)
            other = f"{one.name} = {2 * number}"
            line = subject.line.replace(str(one), other, 1)
            told = f"{BROKEN_AS_GUESSED}, with {one}, and holds with {other}: say which is meant"
            yield Choice(told, partial(called, line), line=True)
    takes = isinstance(subject, Attention) and (subject.hide or subject.reading or subject.masks)
    if isinstance(subject, Attention) and takes:
        told = (
            "broken if keys are hidden by the lowest number of the dtype; it holds with "
            f"{FINITE_MASK:g}"
        )
        yield Choice(told, partial(_with_finite_mask, subject))
    if isinstance(subject, Additive) and subject.within is not None:
        told = (
            f"{BROKEN_AS_GUESSED}, with coordinates 0, 1, 2, .., and holds with coordinates in "
            "[0, 1)"
        )
        yield Choice(told, subject.within, line=True)
    if subject.sizes and subject.make is not None:
        yield _built(subject.make, subject.sizes)
    if subject.make is not None:
        open_ = [
            name
            for name, value in subject.guesses.items()
            if name.isidentifier() and name not in subject.sizes and _other_value(value) is not None
        ]
        for name in open_[:MAX_SETTINGS]:
            yield _built(subject.make, {name: subject.guesses[name]})


def _flags(line: str) -> Iterator[Argument]:
    """Yield the flags of a guessed line whose names do not say what they mean."""
    for one in parse(line).arguments if line else ():
        if isinstance(one.value, bool) and not role_of(one.name):
            yield one


def _other_value(value: Any) -> Any:
    """Return another value of a setting: the negated flag, or twice the number; else None."""
    if isinstance(value, bool):
        return not value
    return 2 * value if isinstance(value, int) and value else None


def _built(make: Callable[..., Any], settings: Mapping[str, Any]) -> Choice:
    """Return the choice of other values for some settings of the constructor."""
    other = {name: _other_value(value) for name, value in settings.items()}
    holds = set_words(other).partition(" ")[2]
    told = f"broken as built with {set_words(settings)}; it holds with {holds}"
    return Choice(told, partial(make, **other))


def _with_finite_mask(subject: Attention) -> Attention:
    """Return the same attention with keys hidden by -1e4 instead of the lowest number."""
    changed: dict[str, Any] = {"paths": {}, "hiding": {}}
    for name in ("layer", "hide", "attend", "counting", "reading"):
        call = getattr(subject, name)
        on = getattr(call, "__self__", call)
        if isinstance(on, OnTokens | OnHeads):
            other = replace(on, least=FINITE_MASK)
            changed[name] = other if on is call else getattr(other, call.__name__)
    return replace(subject, **changed)


def checked_under_choices(
    found: tuple[Finding, ...], find: Find, others: Iterator[Choice]
) -> tuple[Finding, ...]:
    """Return the findings on a law, checked again under other choices if it is broken.

    It stays broken without a condition only if no other choice keeps it; if another line keeps the
    law, it is undecided.
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
            replace(one, why=f"{choice.words}: {one.why}", **changed)
            if one.verdict == "broken"
            else one
            for one in found
        )
    return found
