"""Terms: the expressions that statements are made of and that all other modules read.

A term is an array expression with symbolic axis lengths.  Its ``shape`` is a tuple of
integer terms, ``()`` for a number.  Terms are interned: two terms are equal exactly when
they are the same object.  Bound indices have no names (de Bruijn indices, counted from the
inside), so terms that differ only in the name of a bound index are the same term.

Operations that bind an index, each in its last argument:

===========  =======================  =========================================
``sum``      ``(length, body)``       the finite sum of body over 0..length-1
``tabulate`` ``(length, body)``       the array whose i-th slice is body
``iterate``  ``(depth, start, body)`` start, then body depth times (layer, state)
===========  =======================  =========================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

BINDERS = {"sum": 1, "tabulate": 1, "iterate": 2}


class Term:
    """An immutable, interned node: operation, arguments, plain data, shape.

    ``key`` orders terms, in the same way in every run; ``loose`` is the number of enclosing
    binders that the term still needs; ``finite`` is False if a value may be minus infinity.
    """

    __slots__ = ("__weakref__", "args", "data", "finite", "key", "loose", "op", "shape")
    op: str
    args: tuple[Term, ...]
    data: Any
    shape: tuple[Term, ...]
    key: bytes
    loose: int
    finite: bool

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a term cannot be changed (tried to set {name!r} of {self.op!r})")

    def __repr__(self) -> str:
        from .plain import plain

        return plain(self)

    def __reduce__(self) -> tuple[Callable[..., Term], tuple[Any, ...]]:
        return make, (self.op, self.args, self.data, self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


@dataclass(frozen=True, slots=True, repr=False)
class Opened:
    """The name of a bound variable whose binder is open; not a string, so no given can have it.

    It holds the terms ``of`` which it was opened.  Terms are immutable and contain only terms made
    before them, so a variable opened of a term cannot occur in that term.

    >>> make("var", data=(Opened(("x",)), "real")) is make("var", data=("x", "real"))
    False
    """

    of: tuple[Hashable, ...]

    def __str__(self) -> str:
        """Return the strings it was opened of, or j with a count; for display only."""
        around = {v for t in self.of if isinstance(t, Term) for v in free(t) if is_opened(v)}
        return "".join(x for x in self.of if isinstance(x, str)) or f"j{len(around)}"

    def __repr__(self) -> str:
        return repr(str(self))


_interned: dict[tuple[Any, ...], Term] = {}


def make(
    op: str, args: tuple[Term, ...] = (), data: Hashable = None, shape: tuple[Term, ...] = ()
) -> Term:
    """Return the term with this operation, arguments, data and shape, always the same object.

    >>> make("index", data="i") is make("index", data="i")
    True
    """
    identity = (op, args, data, shape)
    known = _interned.get(identity)
    if known is not None:
        return known
    term = object.__new__(Term)
    for name, value in (
        ("op", op),
        ("args", args),
        ("data", data),
        ("shape", shape),
        ("key", _key(op, args, data, shape)),
        ("loose", _loose(op, args, data, shape)),
        ("finite", _finite(op, args)),
    ):
        object.__setattr__(term, name, value)
    return _interned.setdefault(identity, term)


def _key(op: str, args: tuple[Term, ...], data: Hashable, shape: tuple[Term, ...]) -> bytes:
    """Return a digest and a last byte that is 1 if an open variable occurs.

    The digest cannot tell an open variable from a given of the name it is displayed under.
    """
    digest, parts = blake2b(f"{op}|{data!r}|{len(args)}".encode(), digest_size=12), (*args, *shape)
    for part in parts:
        digest.update(part.key[:-1])
    names = data if isinstance(data, tuple) else (data,)
    opened = any(isinstance(name, Opened) for name in names) or any(p.key[-1] for p in parts)
    return digest.digest() + bytes([opened])


def is_interned(term: Term) -> bool:
    """Whether the term was made by :func:`make` and has not been altered since."""
    return _interned.get((term.op, term.args, term.data, term.shape)) is term


def _loose(op: str, args: tuple[Term, ...], data: Hashable, shape: tuple[Term, ...]) -> int:
    if op == "bound":
        assert isinstance(data, int)
        return data + 1
    depths = [part.loose for part in (*args, *shape)]
    if op in BINDERS:
        depths[len(args) - 1] = max(0, args[-1].loose - BINDERS[op])
    return max(depths, default=0)


def _finite(op: str, args: tuple[Term, ...]) -> bool:
    if op == "minus infinity":
        return False
    if op in ("exp", "call"):
        return True
    if op == "maximum":
        return any(arg.finite for arg in args)
    if op == "named":
        return args[0].finite
    return all(arg.finite for arg in args)


def _rebuild(
    term: Term, depth: int, leaf: Callable[[Term, int], Term | None], known: dict[Any, Term]
) -> Term:
    replaced = leaf(term, depth)
    if replaced is not None:
        return replaced
    if not term.args and not term.shape:
        return term
    place = (term, depth)
    if place not in known:
        inner = depth + BINDERS.get(term.op, 0)
        args = tuple([_rebuild(arg, depth, leaf, known) for arg in term.args[:-1]])
        if term.args:
            args = (*args, _rebuild(term.args[-1], inner, leaf, known))
        shape = tuple([_rebuild(length, depth, leaf, known) for length in term.shape])
        unchanged = args == term.args and shape == term.shape
        known[place] = term if unchanged else make(term.op, args, term.data, shape)
    return known[place]


@lru_cache(maxsize=1 << 17)
def instantiate(body: Term, *values: Term) -> Term:
    """Return a binder's body with its bound indices, outermost first, replaced by closed values."""

    def leaf(term: Term, depth: int) -> Term | None:
        if term.loose <= depth:
            return term
        if term.op == "bound":
            assert isinstance(term.data, int)
            distance = term.data - depth
            if distance < len(values):
                return values[len(values) - 1 - distance]
            return make("bound", (), term.data - len(values), term.shape)
        return None

    if any(value.loose for value in values):
        raise ValueError("only a closed term can replace a bound index")
    return _rebuild(body, 0, leaf, {})


@lru_cache(maxsize=1 << 17)
def bind(body: Term, *variables: Term) -> Term:
    """Turn variables into bound indices, outermost first: the inverse of :func:`instantiate`."""

    def leaf(term: Term, depth: int) -> Term | None:
        if term in variables:
            nearest = len(variables) - 1 - variables.index(term)
            return make("bound", (), depth + nearest, term.shape)
        if term.op == "bound" and term.loose > depth:
            assert isinstance(term.data, int)
            return make("bound", (), term.data + len(variables), term.shape)
        return term if term.loose <= depth and bound.isdisjoint(free(term)) else None

    bound = frozenset(variables)

    return _rebuild(body, 0, leaf, {})


def substitute(term: Term, old: Term, new: Term) -> Term:
    """Return ``term`` with every occurrence of the closed term ``old`` replaced by ``new``.

    No capture is possible: bound indices have no names and ``new`` must be closed.
    """
    if old.loose or new.loose:
        raise ValueError("substitution needs closed terms on both sides")
    named = old.op in ("var", "index", "size")

    def leaf(t: Term, _: int) -> Term | None:
        if t is old:
            return new
        return t if named and old not in free(t) else None

    return _rebuild(term, 0, leaf, {})


@cache
def free(term: Term) -> frozenset[Term]:
    """The named variables, indices and sizes that occur in a term."""
    if term.op in ("var", "index", "size"):
        return frozenset((term,)).union(*(free(part) for part in (*term.args, *term.shape)))
    return frozenset().union(*(free(part) for part in (*term.args, *term.shape)))


def names(*terms: Term) -> frozenset[Term]:
    """The variables, indices and sizes that are free in at least one of the terms."""
    return frozenset[Term]().union(*map(free, terms))


def opened(length: Term, *of: Hashable) -> Term:
    """Return an index of an axis that occurs in none of the terms it is opened of."""
    return make("index", (length,), Opened(of))


def is_opened(variable: Term) -> bool:
    """Whether a variable is an opened bound variable, which no statement can mention."""
    return type(variable.data[0] if variable.op == "var" else variable.data) is Opened


def postorder(term: Term) -> Iterator[Term]:
    """Yield every distinct subterm once, arguments before the terms that use them."""
    seen: set[Term] = set()
    stack: list[tuple[Term, bool]] = [(term, False)]
    while stack:
        current, done = stack.pop()
        if done:
            yield current
        elif current not in seen:
            seen.add(current)
            stack.append((current, True))
            stack.extend((arg, False) for arg in reversed(current.args))
