"""How a class declares an encoding: its hypotheses, methods it leaves unwritten, and mistakes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..symbolic.array import Array, as_array
from ..symbolic.claim import Claim, Law
from ..symbolic.concrete import ConcreteClaim, ConcreteLaw
from ..symbolic.givens import Given
from ..symbolic.terms import free

Method = TypeVar("Method", bound=Callable[..., Any])


def hypothesis(says: str) -> Callable[[Method], Method]:
    """Mark a method of an encoding as a hypothesis on its parameters, stated in these words.

    The method returns a list of claims and of pairs of equal arrays.  A law that fails without the
    hypothesis is tried again with it; the card then shows both the proof under it and a witness
    without it.

    A method that takes letters of the laws, such as the positions ``i`` and ``j`` that must have
    different codes, is about them too: "the positions are below 2^d".  It is tried for the laws
    that have all of these letters.
    """
    if not isinstance(says, str):
        raise TypeError('say what is assumed: @hypothesis("the slope is at least 0")')

    def wrap(method: Method) -> Method:
        @wraps(method)
        def told(*args: Any, **named: Any) -> list[Any]:
            return _list_of_claims(method.__name__, method(*args, **named))

        told.__dict__["says"] = says
        return cast("Method", told)

    return wrap


def _list_of_claims(name: str, said: Any) -> list[Any]:
    """Return what a hypothesis returns, as a list; a comparison of arrays is not a claim."""
    kinds = Claim | Law | ConcreteClaim | ConcreteLaw  # the latter in a run on numpy
    one = isinstance(said, kinds)
    many = isinstance(said, Iterable) and not isinstance(said, Array)
    parts = [said] if one else list(said) if many else [None]
    for part in parts:
        if not (isinstance(part, kinds) or (isinstance(part, tuple) and len(part) == 2)):
            raise TypeError(
                f"the hypothesis {name} returns a list of claims such as at_least(self.slope, 0), "
                f"or of pairs (left, right) that are equal; got {said!r}"
            )
    return parts


# A file that shows each method; `attnproof new` explains those that act on scores as well.
EXAMPLES = {
    "add": "attnproof/encodings/additive.py",
    "relate": "attnproof/encodings/relative.py",
    "bias": "attnproof/encodings/bias.py",
    "sees": "attnproof/encodings/masks.py",
    "shift": "attnproof/encodings/additive.py",
    "bound": "attnproof/encodings/powers.py",
    "beyond": "tests/encodings/test_laws_of_positions.py",
    "apart": "attnproof/encodings/rope.py",
    "fall": "attnproof/encodings/bias.py",
    "margin": "attnproof/encodings/bias.py",
}


def unwritten(encoding: Any, base: type, method: str) -> str:
    """Return the message for a call of ``method`` of this encoding, which only ``base`` has.

    It names the class and the method, says what the method should return, in the words and shapes
    of the base class, and where to find an example.

    >>> from attnproof import Encoding
    >>> class Mine(Encoding): pass
    >>> print(unwritten(Mine(), Encoding, "add"))
    Mine does not write add(p), which was called: it is to give what is added to the token at p:
    positions (..) -> (.., d). Write it in class Mine, as attnproof/encodings/additive.py does,
    or call it only where Mine.defines('add')
    """
    cls = type(encoding)
    hook = getattr(base, method)
    names = [name for name in inspect.signature(hook).parameters if name != "self"]
    call = f"{method}({', '.join(names)})"
    words = (inspect.getdoc(hook) or "").partition("\n")[0]  # empty under python -OO
    gives = f": it is to give {words[:1].lower()}{words[1:]}" if words else "."
    if cls.defines(method):
        return (
            f"{cls.__name__}.{call} calls that of {base.__name__}, which is not written{gives} "
            f"Drop the call of super().{method}; {EXAMPLES[method]} shows one that is whole"
        )
    return (
        f"{cls.__name__} does not write {call}, which was called{gives} Write it in class "
        f"{cls.__name__}, as {EXAMPLES[method]} does, or call it only where "
        f"{cls.__name__}.defines({method!r})"
    )


READ = frozenset(["width", "axes", "whole", "together"])  # attributes read from an instance
PER_COORDINATE = frozenset(["apart", "tell"])  # may also take the number of a coordinate
NEAR = 0.8  # biass and relates are near, rotate and angles are not


def misdeclared(cls: type, base: type, hooks: Collection[str]) -> str:
    """Return the first mistake in a subclass of ``base``, with what to write; empty if none."""
    if "usual" in vars(cls):
        return f"{cls.__name__}.usual is called defaults now; rename it"
    return next(_mistakes(cls, base, hooks), "")


def _mistakes(cls: Any, base: type, hooks: Collection[str]) -> Iterator[str]:
    for name, value in vars(cls).items():
        own = inspect.isfunction(value) and not name.startswith("_") and not hasattr(base, name)
        if own and not hasattr(value, "says"):
            for meant in _near(name, hooks):
                yield (
                    f"{cls.__name__}.{name} is a method that no law uses; call it {meant} if "
                    f"that is meant, or _{name} if it is a helper"
                )
        wanted = _called_with(base, name)
        if inspect.isfunction(value) and wanted and not _takes(value, wanted):
            yield (
                f"{cls.__name__}.{name} takes {inspect.signature(value)}, and is called as "
                f"{name}({', '.join(wanted[1:])}); give it these parameters"
            )
    if not isinstance(cls.given, Mapping) or not isinstance(cls.defaults, Mapping):
        yield f"{cls.__name__}: given and defaults are dictionaries, by the names of the parameters"
    for name, given in cls.given.items():
        if not isinstance(given, Given):
            yield (
                f"{cls.__name__}.given[{name!r}] is {given!r}; write what it may be, such as "
                f"real() or positive(), and its number in defaults"
            )
        if callable(getattr(base, name, None)) or name in READ:
            yield (
                f"{cls.__name__} has a parameter {name!r}, which has another meaning in every "
                "encoding; rename it"
            )
    strange = sorted(set(cls.defaults) - set(cls.given))
    if strange:
        yield (
            f"{cls.__name__}.defaults has {strange[0]!r}, which is not a parameter; "
            + (f"given declares {', '.join(cls.given)}" if cls.given else "declare it in given")
        )
    for name in sorted(set(cls.defaults) & set(cls.given)):
        if cls.given[name].kind != "function" and not _is_finite(cls.defaults[name]):
            yield (
                f"{cls.__name__}.defaults[{name!r}] is {cls.defaults[name]!r}; write a number, or "
                "a list of numbers, none of them NaN or infinite"
            )
    yield from _lengths(cls)


def _called_with(base: type, name: str) -> tuple[str, ...]:
    """Return the parameters with which laws call a method; empty if they do not."""
    declared = getattr(base, name, None)
    known = inspect.isfunction(declared) and not name.startswith("_")
    return tuple(inspect.signature(declared).parameters) if known else ()  # type: ignore[arg-type]


def _takes(method: Any, wanted: tuple[str, ...]) -> bool:
    """Whether a method can be called with these parameters."""
    counts = {len(wanted), len(wanted) + (method.__name__ in PER_COORDINATE)}
    for count in counts:
        try:
            inspect.signature(method).bind(*range(count))
        except TypeError:
            continue
        return True
    return False


def _near(name: str, hooks: Collection[str]) -> list[str]:
    """Return the method that may be meant: spelt nearly the same, or with letters swapped."""
    swapped = [hook for hook in hooks if sorted(hook) == sorted(name)]
    return swapped or get_close_matches(name, hooks, 1, NEAR)


def _is_finite(numbers: Any) -> bool:
    try:
        return bool(np.isfinite(np.asarray(numbers, dtype=float)).all())
    except (TypeError, ValueError):
        return False


def _lengths(cls: Any) -> Iterator[str]:
    """Yield a mistake if two lengths are printed alike and are not the same."""
    lengths = [n for given in cls.given.values() for n in given.lengths]
    seen: dict[str, str] = {}
    for length in (as_array(cls.width).term, *lengths):
        for name, role in sorted(t.data for t in free(length) if t.op == "size"):
            if seen.setdefault(name, role) != role:
                yield (
                    f"{cls.__name__} has two lengths {name}, of the roles {seen[name]!r} and "
                    f"{role!r}; write ({name},) = sizes({name!r}, {seen[name]!r}), and width = .. "
                    "where a query does not have d features"
                )
