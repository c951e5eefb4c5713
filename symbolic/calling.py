"""How the public functions are called: what does not fit is refused in words, for its author.

An error that Python raises inside of attnproof, of a number where a function is wanted or of one
argument too many, would read as a fault of attnproof (``faults``).  So arguments are looked at
where they arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, ParamSpec, TypeVar

__all__ = ["called", "demand"]

P = ParamSpec("P")
R = TypeVar("R")


def called(
    public: Callable[..., Any], build: Callable[P, R], *args: P.args, **named: P.kwargs
) -> R:
    """``build`` with these arguments, which are those of ``public``.

    Raises ``TypeError``, with the parameters of ``public``, for arguments that it does not take.

    >>> called(divmod, divmod, 7, 2)
    (3, 1)
    """
    try:
        return build(*args, **named)
    except TypeError as error:
        refused = _refused(public, args, named)
        if refused:
            raise TypeError(refused) from error.__cause__
        raise


def _refused(public: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> str:
    taken = signature(public)
    try:
        taken.bind(*args, **named)
    except TypeError as error:
        told = ", ".join(taken.parameters)
        return f"{getattr(public, '__name__', public)}({told}): {error}"
    return ""


def demand(found: Any, kind: type | tuple[type, ...] | Callable[..., bool], where: str) -> None:
    """Raise ``TypeError`` for an argument that is not of this type, or that this is False of.

    ``where`` says what is wanted and what for.

    >>> demand(3, callable, "rows wants a function of one index, such as lambda i: X[i]")
    Traceback (most recent call last):
    TypeError: rows wants a function of one index, such as lambda i: X[i]; got int: 3
    """
    fits = isinstance(found, kind) if isinstance(kind, type | tuple) else kind(found)
    if not fits:
        raise TypeError(f"{where}; got {type(found).__name__}: {found!r}")
