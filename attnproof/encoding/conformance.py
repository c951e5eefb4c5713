"""Whether an encoding is valid: its code runs on numpy and on symbols, and both agree.

A law is proved of the terms that symbolic arrays make of an encoding's code.  So each of its
methods goes through the gate before any law is asked.  It must return arrays of the shape that its
place takes, and keep no state between calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np

from ..symbolic.array import Array, AxisMismatch, as_array, broadcast_shapes
from ..symbolic.bodies import Code
from ..symbolic.claim import Law, equal, fresh_numbering, name_of
from ..symbolic.gate import Misread
from ..symbolic.givens import real
from ..symbolic.namespace import arange
from ..symbolic.plain import plain
from ..symbolic.refusals import arrays_only
from ..symbolic.statement import Statement
from ..symbolic.terms import Term, free
from .base import FINAL, Encoding, in_numbers, remembered
from .names import c, e, letters, named, r

Shape = tuple[Term, ...]
Call = tuple[str, str, Callable[[], Any], Array, bool]


class NotAnEncoding(TypeError):
    """A class that declares an encoding and is not one; the text says what is missing."""


def require_shapes(kind: type[Encoding]) -> None:
    """Refuse a class with a method that returns an array of a wrong shape, or nothing."""
    wrong = misshapen(kind)
    if wrong:
        raise NotAnEncoding(wrong)


def misshapen(kind: type[Encoding]) -> str:
    """Return the first method that does not return what its place takes; empty if there is none.

    A method that raises is reported elsewhere, with its line.
    """
    for name, at, compute, like, exact in _calls(kind):
        try:
            found = compute()
        except (Exception, SystemExit):  # noqa: BLE001
            continue
        told = _told(found, like.axes, exact=exact)
        if told:
            return f"{kind.__name__}.{name} {told} for {at}"
    return _no_mask(kind) if kind.defines("sees") else ""


def _no_mask(kind: type[Encoding]) -> str:
    """Return that ``sees`` gives numbers, if it does so with the default numbers; else nothing."""
    place = np.zeros((1, 1) + (kind.axes,) * bool(kind.axes))
    try:
        found = np.asarray(in_numbers(kind, 8).sees(place, place))
    except (Exception, SystemExit):  # noqa: BLE001
        return ""
    if found.dtype == bool:
        return ""
    return f"{kind.__name__}.sees(m, n) returns numbers; a mask is True or False, say m >= n"


def _told(found: Any, wanted: Shape, *, exact: bool) -> str:
    if found is None:
        return "returns nothing: a return may be missing,"
    if isinstance(found, np.ndarray | bool):
        return ""
    try:
        shape = as_array(found).axes
    except TypeError:
        return f"returns {type(found).__name__}, wanted an array"
    if shape == wanted or (not exact and _fits(shape, wanted)):
        return ""
    return f"returns the shape {_words(shape)}, wanted {_words(wanted)},"


def _fits(shape: Shape, wanted: Shape) -> bool:
    try:
        return broadcast_shapes(shape, wanted) == wanted
    except AxisMismatch:
        return False


def _words(shape: Shape) -> str:
    inside = ", ".join(plain(length) for length in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def _calls(kind: type[Encoding]) -> Iterator[Call]:
    """Yield each method that it writes, at rows of positions and at one, with the shape wanted."""
    made, axes = kind(), (kind.axes,) * bool(kind.axes)
    Q, K, u, p = (named(name, made, {}, in_a_row=True)[1] for name in "QKup")
    V = real(c, e).named("V")
    q, one = Q[0], u[0]
    pair, m, n = real(r, c).named("S"), u[:, None], p[None]
    rows = f"positions of shape {_words(u.axes)}"
    single = "a single position" if not axes else f"a single position, {_words(one.axes)}"
    both = f"positions m of shape {_words(m.axes)} and n of shape {_words(n.axes)}"
    if kind.defines("add"):
        yield "add(p)", rows, lambda: made.add(u), Q, True
        yield "add(p)", single, lambda: made.add(one), q, True
    for name, written in (
        ("rotate(x, p)", kind.defines("rotate")),
        ("query(q, p)", kind.defines("query")),
        ("key(k, p)", kind.defines("key")),
    ):
        if written:
            act = getattr(made, name.partition("(")[0])
            yield name, f"{_words(Q.axes)} at {rows}", partial(act, Q, u), Q, True
            yield name, f"{_words(q.axes)} at {single}", partial(act, q, one), q, True
    if kind.defines("relate"):
        queries, keys = Q[:, None], K[None]
        sides = f"q of shape {_words(queries.axes)}, k of shape {_words(keys.axes)} and {both}"
        yield "relate(q, k, m, n)", sides, lambda: made.relate(queries, keys, m, n), pair, False
    if kind.defines("bias"):
        yield "bias(m, n)", both, lambda: made.bias(m, n), pair, False
    if kind.defines("sees"):
        yield "sees(m, n)", both, lambda: made.sees(m, n), pair, False
    if kind.defines("value"):
        read = real(r, c, e).named("R")
        told = f"v of shape {_words(V[None].axes)} and {both}"
        yield "value(v, m, n)", told, lambda: made.value(V[None], m, n), read, False
    if kind.defines("scores"):
        yield "scores(Q, K, m, n)", rows, lambda: made.scores(Q, K, u, p), pair, True


def require_no_state(encoding: Encoding) -> None:
    """Refuse code that keeps state; without parameters of its own, a class is examined once."""
    if encoding.parameters:
        _require(encoding)
    else:
        _of_kind(type(encoding))


@remembered
def _of_kind(kind: type[Encoding]) -> None:
    _require(kind())


def _require(encoding: Encoding) -> None:
    shadowed = sorted(FINAL & set(vars(encoding)))
    if shadowed:
        raise TypeError(
            f"{type(encoding).__name__}: an instance overrides {shadowed[0]}, which laws use"
        )
    first, second = _marked_letters(encoding, "′"), _marked_letters(encoding, "")
    _of_hooks(encoding, first)
    left = {v.term for v in first.values()}
    if any(left & free(result) for result in _of_hooks(encoding, second)):
        raise TypeError(
            f"{type(encoding).__name__} returns results of an earlier call: it keeps state "
            "between calls; compute everything in each call"
        )


def _marked_letters(encoding: Encoding, mark: str) -> dict[str, Any]:
    givens = (named(name, encoding, {}, in_a_row=True)[0] for name in "QKVup")
    return {name: own.named(name + mark) for given in givens for name, own in given.items()}


def _of_hooks(encoding: Encoding, values: Mapping[str, Any]) -> list[Term]:
    """Return what the encoding gives as a whole, and for one token and one pair."""
    Q, K, V, u, p = values.values()
    if encoding.whole:
        u, p = u + arange(r), p + arange(c)
    made = (
        encoding.attention(Q, K, V, u, p),
        encoding.encode(K, p),
        encoding.encode_query(Q, u),
        encoding.attention(Q[:1], K[:1], V[:1], u[:1], p[:1]),
        encoding.code(p[0]),
    )
    return [array.term for array in made]


_READ: WeakSet[type[Encoding]] = WeakSet()


def require_encoding(kind: Any) -> type[Encoding]:
    """Return the class, or the class of an instance; refuse anything else, with what to write."""
    found = type(kind) if isinstance(kind, Encoding) else kind
    if not (inspect.isclass(found) and issubclass(found, Encoding) and found is not Encoding):
        raise NotAnEncoding(
            f"wanted a subclass of attnproof.Encoding, got {kind!r}; `attnproof new NAME` writes "
            "one"
        )
    return found


def require_numbers(kind: type[Encoding]) -> None:
    """Refuse an encoding with a parameter that has no default number, and name it."""
    missing = [name for name in kind.given if name not in kind.defaults]
    if missing:
        raise NotAnEncoding(
            f"{kind.__name__} has no number for {', '.join(missing)}; name it in `defaults`, so "
            "that the encoding can be plotted and measured"
        )


def require_read(kind: type[Encoding]) -> None:
    """Refuse an encoding with a method that gives something else on numpy than on symbols.

    Every law is about the terms of these methods.  Raises :class:`Misread`, and ``NotRun`` if a
    method does not run on numpy at all; a class is examined once.

    >>> from attnproof.encodings.bias import Alibi
    >>> require_read(Alibi)
    """
    if kind in _READ:
        return
    found = hooks_of(kind).misreading
    if found is not None:
        side, text = "left side", found.text  # both sides are what the method gives
        told = text.removeprefix(side) if text.startswith(side) else f": {text}"
        raise Misread(f"{kind.__name__}.{found.says} is misread{told}", found)


def read_elsewhere(kind: type[Encoding]) -> None:
    """Note that another gate, as for traces, compares the terms of this encoding with its code."""
    _READ.add(kind)


@remembered
def hooks_of(kind: type[Encoding]) -> Statement:
    """Return what each method of an encoding gives, as a statement for the gate: value = value.

    The sizes are arbitrary, the parameters arbitrary of their kinds and not the defaults, the
    positions any real numbers, or any whole ones.
    """
    givens, symbolic = dict(kind.declared()), kind()
    hypotheses = {name: letters(symbolic, name) for name in kind.hypotheses()}
    wanted = dict.fromkeys(name for taken in hypotheses.values() for name in taken)
    for name in dict.fromkeys(("Q", "K", "V", "u", "p", *wanted)):
        givens.update(named(name, symbolic, {})[0])
    parameters, width = tuple(kind.declared()), kind.width

    def body(**values: Any) -> dict[str, Any]:
        made = kind(**{name: values[name] for name in parameters})
        made.width = width  # type: ignore[misc]  # a number in a run on numpy
        said: dict[str, Any] = {}
        for name, value in _results(made, *(values[name] for name in "QKVup")):
            said[name] = equal(value, value)
        for name, taken in hypotheses.items():
            for k, one in enumerate(getattr(made, name)(**{x: values[x] for x in taken})):
                said[f"{name}, hypothesis {k + 1}"] = equal(*one) if isinstance(one, tuple) else one
        return said

    symbols = {name: own.named(name) for name, own in givens.items()}
    with arrays_only(kind.__name__, kind):
        said = body(**symbols)
        _require_same_made(kind, symbols)
    code = Code(body, arguments=tuple(givens))
    claims = {name: one.claim if isinstance(one, Law) else one for name, one in said.items()}
    for name, claim in claims.items():
        own = {variable for variable, _ in claim.variables}
        variables = {t for term in claim.terms() for t in free(term) if t.op in ("var", "index")}
        spoken = {name_of(t) for t in variables}
        strange = sorted(spoken - own - set(givens))
        if strange:
            raise TypeError(
                f"{kind.__name__}.{name.partition(',')[0]} uses {strange[0]}; a hypothesis "
                "may only use the parameters and the names that it takes"
            )
    return Statement(givens, claims, code=code)


def _require_same_made(kind: type[Encoding], values: Mapping[str, Any]) -> None:
    """Refuse an encoding that is another one where it is made with values of its parameters.

    Laws are about one made without them; plots, measurements and users give them.
    """
    every, given = [], {name: values[name] for name in kind.declared() if name not in kind.fixed}
    for made in (kind(), kind(**given)):
        with fresh_numbering():
            every.append(dict(_results(made, *(values[name] for name in "QKVup"))))
    without, others = every
    for name, one in without.items():
        if as_array(one).term is not as_array(others[name]).term:
            raise TypeError(
                f"{kind.__name__}.{name} depends on how the encoding was made: without parameters "
                f"it is {as_array(one).term!r}, and with them {as_array(others[name]).term!r}; use "
                "the parameters themselves, as in self.slope"
            )


def _results(made: Encoding, Q: Any, K: Any, V: Any, u: Any, p: Any) -> Iterator[tuple[str, Any]]:
    """Yield what each method gives, and what follows from them, at rows and at single tokens."""
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
