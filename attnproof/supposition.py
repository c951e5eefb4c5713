"""Marking a method of an encoding as a hypothesis on its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

from .symbolic.array import Array
from .symbolic.claim import Claim, Law
from .symbolic.concrete import ConcreteClaim, ConcreteLaw

__all__ = ["hypothesis"]

Method = TypeVar("Method", bound=Callable[..., Any])


def hypothesis(says: str) -> Callable[[Method], Method]:
    """Mark a method of an encoding as a hypothesis on its parameters, said in these words.

    The method returns a list of claims and pairs of equal arrays.  A law that fails without it is
    tried again with it; the card then tells both: proved under it, and a witness without it.

    A method that takes letters of the laws, such as the positions ``i`` and ``j`` that have to
    have different codes, speaks of them too: "the positions are below 2^d".  It is tried of the
    laws that have all of these letters.
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
    """What a hypothesis returns, as a list; a comparison of arrays is no claim."""
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
