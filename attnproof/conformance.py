"""Whether an encoding is one: its code runs on numpy and on symbols, and both say the same.

A law is proved of the terms that symbolic arrays make of an encoding's code.  So each of its
methods goes through the gate before any law is asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from weakref import WeakSet

from .encoding import Encoding
from .law_names import named
from .shapes import NotAnEncoding
from .symbolic.asked import arrays_only
from .symbolic.bodies import Code
from .symbolic.claim import Law, equal
from .symbolic.gate import Misread
from .symbolic.statement import Statement
from .symbolic.terms import free

__all__ = [
    "Misread",
    "NotAnEncoding",
    "hooks_of",
    "read_elsewhere",
    "require_encoding",
    "require_numbers",
    "require_read",
]  # fmt: skip

_READ: WeakSet[type[Encoding]] = WeakSet()


def require_encoding(kind: Any) -> type[Encoding]:
    """The class, or the class of an instance; anything else is refused with what to write."""
    found = type(kind) if isinstance(kind, Encoding) else kind
    if not (inspect.isclass(found) and issubclass(found, Encoding) and found is not Encoding):
        raise NotAnEncoding(
            f"wanted a subclass of attnproof.Encoding, got {kind!r}; `attnproof new NAME` writes "
            "one"
        )
    return found


def require_numbers(kind: type[Encoding]) -> None:
    """Refuse an encoding with a parameter that has no number, and say which."""
    missing = [name for name in kind.given if name not in kind.defaults]
    if missing:
        raise NotAnEncoding(
            f"{kind.__name__} has no number for {', '.join(missing)}; name it in `defaults`, so "
            "that the encoding can be drawn and measured"
        )


def require_read(kind: type[Encoding]) -> None:
    """Refuse an encoding of which some method gives something else on numpy than on symbols.

    Every law speaks of the terms of these methods.  Raises :class:`Misread`, and ``NotRun`` where
    a method does not run on numpy at all; a class is looked at once.

    >>> from attnproof.encodings.alibi import Alibi
    >>> require_read(Alibi)
    """
    if kind in _READ:
        return
    found = hooks_of(kind).misreading  # type: ignore[arg-type]  # classes hash by identity
    if found is not None:
        side, text = "left side", found.text  # of a method both sides are what it gives
        told = text.removeprefix(side) if text.startswith(side) else f": {text}"
        raise Misread(f"{kind.__name__}.{found.says} is misread{told}", found)


def read_elsewhere(kind: type[Encoding]) -> None:
    """Note that another gate compares the terms of this encoding with its code, as of traces."""
    _READ.add(kind)


@lru_cache(maxsize=1024)
def hooks_of(kind: type[Encoding]) -> Statement:
    """What each method of an encoding gives, as a statement to be read: value = value.

    The sizes are any, the parameters of their kinds and not the defaults, the positions any real
    numbers, or any whole ones.
    """
    hypotheses = {name: _letters(kind, name) for name in kind.hypotheses()}
    wanted = dict.fromkeys(name for letters in hypotheses.values() for name in letters)
    givens, symbolic = dict(kind.declared()), kind()
    for name in dict.fromkeys(("Q", "K", "V", "u", "p", *wanted)):
        givens.update(named(name, symbolic, {})[0])
    parameters, width = tuple(kind.declared()), kind.width

    def body(**values: Any) -> dict[str, Any]:
        made = kind(**{name: values[name] for name in parameters})
        made.width = width  # type: ignore[misc]  # a number in a run on numpy
        said: dict[str, Any] = {}
        for name, value in _results(made, *(values[name] for name in "QKVup")):
            said[name] = equal(value, value)
        for name, letters in hypotheses.items():
            for k, one in enumerate(getattr(made, name)(**{x: values[x] for x in letters})):
                said[f"{name}, hypothesis {k + 1}"] = equal(*one) if isinstance(one, tuple) else one
        return said

    with arrays_only(kind.__name__, kind):
        said = body(**{name: own.named(name) for name, own in givens.items()})
    code = Code(body, arguments=tuple(givens))
    claims = {name: one.claim if isinstance(one, Law) else one for name, one in said.items()}
    for name, claim in claims.items():
        own = {variable for variable, _ in claim.variables}
        letters = {t for term in claim.terms() for t in free(term) if t.op in ("var", "index")}
        spoken = {str(t.data if t.op == "index" else t.data[0]) for t in letters}
        strange = sorted(spoken - own - set(givens))
        if strange:
            raise TypeError(
                f"{kind.__name__}.{name.partition(',')[0]} speaks of {strange[0]}; a hypothesis "
                "speaks of the parameters and of the names it takes"
            )
    return Statement(givens, claims, code=code)


def _letters(kind: type[Encoding], hypothesis: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(kind, hypothesis)).parameters)[1:]


def _results(made: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any) -> Iterator[tuple[str, Any]]:
    """What each of its methods gives, and what follows from them, at rows and at single tokens."""
    q, k, m, n = Q[:, None], K[None], u[:, None], p[None]
    if made.defines("add"):
        yield "add(p)", made.add(u)
        yield "add(p) of one position", made.add(u[0])
    yield "query(q, p)", made.query(Q, u)
    yield "query(q, p) of one token", made.query(Q[0], u[0])
    yield "key(k, p)", made.key(K, p)
    yield "key(k, p) of one token", made.key(K[0], p[0])
    if made.defines("relate"):
        yield "relate(q, k, m, n)", made.relate(q, k, m, n)
    if made.defines("bias"):
        yield "bias(m, n)", made.bias(m, n)
    if made.defines("sees"):
        yield "sees(m, n)", made.sees(m, n)
    if made.defines("value"):
        yield "value(v, m, n)", made.value(V[None], m, n)
    yield "scores(Q, K, m, n)", made.scores(Q, K, u, p)
    yield "attention", made.attention(Q, K, V, u, p)
    yield "envelope(q, k, m, n)", made.envelope(Q[0], K[0], u[0], p[0])
