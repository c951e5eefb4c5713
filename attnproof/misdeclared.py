"""What is wrong with the way in which a class declares an encoding.

Each of these would leave an encoding that runs and is not the one its author means: a method that
no law looks at, a parameter that hides a method, two lengths of one name.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from .symbolic.array import as_array
from .symbolic.givens import Given
from .symbolic.terms import free

__all__ = ["misdeclared"]

READ = frozenset(["width", "axes", "whole", "together"])  # attributes that are read of an instance
PER_COORDINATE = frozenset(["apart", "tell"])  # they may be given the number of a coordinate too
NEAR = 0.8  # biass and relates are near, rotate and angles are not


def misdeclared(cls: type, base: type, hooks: Collection[str]) -> str:
    """The first mistake in a subclass of ``base``, with what to write; empty if there is none."""
    if "usual" in vars(cls):
        return f"{cls.__name__}.usual is called defaults now; rename it"
    return next(_mistakes(cls, base, hooks), "")


def _mistakes(cls: Any, base: type, hooks: Collection[str]) -> Iterator[str]:
    for name, value in vars(cls).items():
        own = inspect.isfunction(value) and not name.startswith("_") and not hasattr(base, name)
        if own and not hasattr(value, "says"):
            for meant in _near(name, hooks):
                yield (
                    f"{cls.__name__}.{name} is a method that no law looks at; call it {meant} if "
                    f"that is meant, or _{name} if it helps another"
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
                f"{cls.__name__} has a parameter {name!r}, which means something else in every "
                "encoding; call it by another name"
            )
    strange = sorted(set(cls.defaults) - set(cls.given))
    if strange:
        yield (
            f"{cls.__name__}.defaults has {strange[0]!r}, which is no parameter; "
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
    """The parameters with which laws call a method; empty if none calls it."""
    declared = getattr(base, name, None)
    known = inspect.isfunction(declared) and not name.startswith("_")
    return tuple(inspect.signature(declared).parameters) if known else ()  # type: ignore[arg-type]


def _takes(method: Any, wanted: tuple[str, ...]) -> bool:
    """Whether a method can be called so."""
    counts = {len(wanted), len(wanted) + (method.__name__ in PER_COORDINATE)}
    for count in counts:
        try:
            inspect.signature(method).bind(*range(count))
        except TypeError:
            continue
        return True
    return False


def _near(name: str, hooks: Collection[str]) -> list[str]:
    """The method that may be meant: letters too many or too few, or in another order."""
    swapped = [hook for hook in hooks if sorted(hook) == sorted(name)]
    return swapped or get_close_matches(name, hooks, 1, NEAR)


def _is_finite(numbers: Any) -> bool:
    try:
        return bool(np.isfinite(np.asarray(numbers, dtype=float)).all())
    except (TypeError, ValueError):
        return False


def _lengths(cls: Any) -> Iterator[str]:
    """Two lengths that are printed alike and are not the same."""
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
