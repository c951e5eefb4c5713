"""Which hypotheses of an encoding can be tried: those that some numbers obey.

Under a hypothesis that nothing obeys, everything is true.  So one that is tried has a certified
instance: small exact parameters for which it holds.  Where it speaks of positions, as in
"positions below 2^d", there are positions that obey it together with what the law itself supposes
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, wraps
from inspect import signature
from itertools import combinations
from typing import Any

from .encoding import Encoding
from .encoding_law import Answer, EncodingLaw, letters, stated
from .symbolic.budget import spend
from .symbolic.claim import Claim, equal
from .symbolic.prove import decide
from .symbolic.refute import obeying
from .symbolic.statement import Statement

LIMIT = 1.0  # seconds to find an instance


def ways(encoding: Encoding, law: EncodingLaw | None = None) -> Iterator[tuple[str, ...]]:
    """The hypotheses that can hold: each alone, in the order of the class, then two, then more.

    Those that speak of positions are among them if the law speaks of the same ones.
    """
    spoken = set() if law is None else set(list(signature(law.body).parameters)[1:])
    names = tuple(n for n in encoding.hypotheses() if set(letters(encoding, n)) <= spoken)
    for count in range(1, len(names) + 1):
        for under in combinations(names, count):
            spend()
            if obeyed(encoding, under, law):
                yield under


def most_of(tried: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Those that are part of no other: the most hypotheses that can hold together.

    >>> most_of([("a",), ("b",), ("a", "b"), ("c",)])
    [('a', 'b'), ('c',)]
    """
    return [one for one in tried if not any(set(one) < set(other) for other in tried)]


def obeys(made: Encoding, under: Sequence[str]) -> bool:
    """Whether the values of an encoding are proved to obey these hypotheses on its parameters.

    One that speaks of positions is not obeyed by values alone.
    """
    if any(letters(made, name) for name in under):
        return False

    def said(encoding: Encoding) -> dict[str, Any]:
        every = [one for name in under for one in getattr(encoding, name)()]
        return {
            str(k): equal(*one) if isinstance(one, tuple) else one for k, one in enumerate(every)
        } or {"": equal(0, 0)}

    asked = stated(said, made, {})
    return not isinstance(asked, Answer) and decide(asked, refuting=False).verdict == "proved"


def obeyed(encoding: Encoding, under: tuple[str, ...], law: EncodingLaw | None = None) -> bool:
    """Whether parameters are known that obey these hypotheses, certified as a witness is."""
    if law is not None and any(letters(encoding, name) for name in under):
        return _has_instance(stated(_nothing_of(law), encoding, law.given, under))
    if encoding.parameters:
        return _obeyed(encoding, under)
    return _of_kind(type(encoding), under)  # type: ignore[arg-type]  # classes hash by identity


@lru_cache(maxsize=1024)
def _of_kind(kind: type[Encoding], under: tuple[str, ...]) -> bool:
    return _obeyed(kind(), under)


def _obeyed(encoding: Encoding, under: tuple[str, ...]) -> bool:
    return _has_instance(stated(_false, encoding, {}, under))


def _has_instance(asked: Statement | Answer) -> bool:
    """Whether values are found, certified, that obey what is assumed."""
    if isinstance(asked, Answer):
        return False
    return obeying(asked.givens, asked.assume, asked.laws, LIMIT) is not None


def _false(encoding: Encoding) -> Claim:
    """0 = 1."""
    del encoding
    return equal(0, 1)


def _nothing_of(law: EncodingLaw) -> Any:
    """The law's function with 0 = 1 for what it claims: what it supposes is left."""

    @wraps(law.body)
    def body(encoding: Encoding, **values: Any) -> Any:
        said = law.body(encoding, **values)
        if isinstance(said, Answer):
            return said
        supposed = said.get("assume", ()) if isinstance(said, dict) else ()
        return {"assume": supposed, "": _false(encoding)}

    return body
