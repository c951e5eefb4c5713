"""Evaluate a term at given sizes and values, over any array module.

The same traversal serves NumPy, torch, exact numbers and balls: a subclass of ``Evaluator`` chooses
the array module and may override how operations are computed.

For a table or a stack of layers, results that depend on the bound variable are discarded before it
takes its next value, and no others.  The states of a stack are kept, so that a table of its first n
states costs n layers and not n².
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from math import prod
from typing import Any

from .budget import check_time
from .concrete import length_value
from .meaning import ELEMENTWISE, NoMeaning, entry_of
from .scalars import ONE
from .terms import Term, free, instantiate, make, postorder

# Bound variables that take one value after another: tables and stacks of layers

MAX_STATE_ENTRIES = 1 << 24
"""The most entries of the states of one stack that are stored at the same time."""


class States:
    """The states of one stack, from state number ``first`` on."""

    __slots__ = ("first", "values")

    def __init__(self, start: Any) -> None:
        self.first, self.values = 0, [start]

    @property
    def last(self) -> int:
        """The number of the last state."""
        return self.first + len(self.values) - 1

    def drop(self) -> None:
        """Discard all states but the last."""
        self.first, self.values = self.last, self.values[-1:]


class Recurrences(ABC):
    """A cache of values by term that records which of them depend on a bound variable."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        self.known: dict[Term, Any] = {}
        self.states: dict[tuple[Term, Term], States] = {}
        self._moving: dict[Term, list[tuple[dict[Any, Any], Any]]] = {}

    @abstractmethod
    def __call__(self, term: Term) -> Any:
        """The value of a term."""

    @abstractmethod
    def lengths(self, term: Term) -> tuple[int, ...]:
        """The shape of a term."""

    def keep(self, table: dict[Any, Any], key: Any, value: Any, *terms: Term) -> Any:
        """Store a value computed from these terms in a table, and return it."""
        table[key] = value
        for variable, found in self._moving.items():
            if any(variable in free(term) for term in terms):
                found.append((table, key))
        return value

    def move(self, variable: Term, value: Any) -> None:
        """Give a bound variable its next value; discard the values that depend on the old one."""
        for table, key in self._moving.get(variable, ()):
            table.pop(key, None)
        self._moving[variable] = []
        self.values[str(variable.data if variable.op == "index" else variable.data[0])] = value

    def slices(
        self, table: Term, places: Iterable[int], read: Callable[[Term], Any] | None = None
    ) -> list[Any]:
        """Return the slices of a table at some indices of its first axis, in the order given."""
        read, body = read or self, table.args[1]
        at = make("index", (ONE,), f"place in {body.key.hex()}")
        row = instantiate(body, at)
        found = []
        for i in places:
            self.move(at, int(i))
            found.append(read(row))
        return found

    def state(self, stack: Term, depth: int) -> Any:
        """Return the state after ``depth`` layers; the start if ``depth`` is at most 0."""
        _, start, body = stack.args
        states = self.states.get((start, body))
        if states is None or states.first > max(depth, 0):
            states = States(self(start))
            self.keep(self.states, (start, body), states, start, body)
        at = make("index", (ONE,), f"layer of {body.key.hex()}")
        held = make("var", (), (f"state of {body.key.hex()}", "real"), stack.shape)
        layer = instantiate(body, at, held)
        room = max(1, MAX_STATE_ENTRIES // max(1, prod(self.lengths(stack))))
        while states.last < depth:
            self.move(at, states.last)
            self.move(held, states.values[-1])
            states.values.append(self(layer))
            if len(states.values) > room:
                states.drop()
        return states.values[max(depth, 0) - states.first]


# Evaluation of terms

FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
}
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "less": operator.lt,
    "less_equal": operator.le,
}


class Evaluator(Recurrences):
    """Values of terms over the array module ``xp`` (numpy or torch through array_api_compat).

    ``sizes`` gives each size its value, ``values`` each named array (functions as callables).
    A probability space is evaluated as finitely many equally likely outcomes, their number given by
    ``sizes``: a sum over its axis is the mean.
    """

    def __init__(self, xp: Any, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.xp = xp
        self.sizes = dict(sizes)
        self._lengths: dict[Term, int] = {}

    def __call__(self, term: Term) -> Any:
        """The value of a term."""
        if term not in self.known:
            check_time()
            self.keep(self.known, term, self.compute(term), term)
        return self.known[term]

    def compute(self, term: Term) -> Any:
        """The value of a term that is not known yet."""
        method = getattr(self, "op_" + term.op.replace(" ", "_"), None)
        if method is not None:
            return method(term)
        if term.op in ELEMENTWISE:
            return self.elementwise(term.op, term.data, *map(self, term.args))
        if term.op in STRUCTURAL:
            return STRUCTURAL[term.op](self, term, self.lengths(term), *map(self, term.args))
        raise TypeError(f"the operation {term.op!r} of {term!r} cannot be evaluated")

    def length(self, n: Term) -> int:
        """The value of an axis length."""
        if n not in self._lengths:
            self._lengths[n] = length_value(n, self.sizes)
        return self._lengths[n]

    def lengths(self, term: Term) -> tuple[int, ...]:
        """The shape of a term."""
        return tuple(self.length(n) for n in term.shape)

    def integer(self, term: Term) -> int:
        """Return the exact value of an integer: a depth, or an index into an axis.

        Raises ``TypeError`` for a number that is not an integer.
        """
        value = self(term)
        if int(value) != value:
            raise TypeError(f"wanted an integer depth or index; got {term!r} = {value}")
        return int(value)

    # leaves

    def constant(self, value: Any) -> Any:
        """Return a literal as a number of this evaluator."""
        return self.xp.asarray(float(value))

    def op_num(self, t: Term) -> Any:
        return self.constant(t.data)

    def op_size(self, t: Term) -> Any:
        return self.constant(self.length(t))

    def op_space(self, _: Term) -> Any:
        """Return 1, the total probability of a space."""
        return self.constant(1)

    def op_pi(self, _: Term) -> Any:
        return self.constant(self.xp.pi)

    def op_minus_infinity(self, _: Term) -> Any:
        return self.constant(float("-inf"))

    def op_var(self, t: Term) -> Any:
        return self.values[t.data[0]]

    def op_index(self, t: Term) -> Any:
        return self.values[str(t.data)]

    def op_arange(self, t: Term) -> Any:
        return self.constant_range(self.length(t.args[0]))

    def constant_range(self, n: int) -> Any:
        """0, 1, ..., n - 1."""
        return self.xp.arange(n)

    def op_eye(self, t: Term) -> Any:
        return self.xp.eye(self.length(t.args[0]))

    def op_inverse(self, t: Term) -> Any:
        return self.xp.argsort(self(t.args[0]))

    # elementwise and structural operations: one row of a table each

    def elementwise(self, op: str, data: Any, *args: Any) -> Any:
        """Apply an elementwise operation to values, by an operator or the array module."""
        if op in FOLDED:
            return reduce(FOLDED[op], args)
        if op in COMPARED:
            return COMPARED[op](*args)
        if op == "not":
            return ~args[0]
        if op == "indicator":
            return self.elementwise("where", None, *args, self.constant(1), self.constant(0))
        if op == "power":
            base = args[0]
            return base**data if data >= 0 else 1 / (base if data == -1 else base**-data)
        return getattr(self.xp, op)(*args)

    def repeated(self, value: Any, shape: Sequence[int]) -> Any:
        """Return a value broadcast to a shape."""
        return self.xp.broadcast_to(value, tuple(shape))

    def product(self, left: Any, right: Any) -> Any:
        """Return the product of two matrices."""
        return left @ right

    def averaged(self, total: Any, axis: Term) -> Any:
        """Return a sum over an axis, turned into the mean if the axis is a probability space."""
        if axis.op != "space":
            return total
        return total * self.constant(Fraction(1, self.length(axis)))

    def inside(self, t: Term, axis: int, places: Any) -> None:
        """Hook, called before a term reads indices of an axis of its first argument."""

    def op_isin(self, t: Term) -> Any:
        x, values = (self(arg) for arg in t.args)
        return (x[..., None] == values).any(-1)

    # shape

    def op_named(self, t: Term) -> Any:
        return self(t.args[0])

    def op_pick(self, t: Term) -> Any:
        axis: Any = t.data
        at = self.integer(t.args[1])
        self.inside(t, axis, at)
        return self(t.args[0])[(slice(None),) * axis + (at,)]

    def op_slice(self, t: Term) -> Any:
        axis, step = t.data
        start, count = self.length(t.args[1]), self.length(t.shape[axis])
        self.inside(t, axis, [start, start + step * (count - 1)] if count else [])
        return self(t.args[0])[(slice(None),) * axis + (slice(start, start + step * count, step),)]

    def op_entry(self, t: Term) -> Any:
        at = tuple(map(self.integer, t.args[1:]))
        for axis, place in enumerate(at):
            self.inside(t, axis, place)
        return self(t.args[0])[at]

    def op_gather(self, t: Term) -> Any:
        axis: Any = t.data
        places = self(t.args[1])
        self.inside(t, axis, places)
        return self(t.args[0])[(slice(None),) * axis + (places,)]

    # functions and stacks

    def op_call(self, t: Term) -> Any:
        name, *_ = t.data
        call: Callable[..., Any] = self.values[name]
        return call(*(self(arg) for arg in t.args))

    def op_iterate(self, t: Term) -> Any:
        return self.state(t, self.integer(t.args[0]))

    def op_tabulate(self, t: Term) -> Any:
        rows = self.slices(t, range(self.length(t.args[0])))
        return self.xp.stack([self.xp.asarray(row) for row in rows], axis=0)


STRUCTURAL: dict[str, Callable[..., Any]] = {
    "broadcast": lambda read, _, shape, x: read.repeated(x, shape),
    "permute": lambda read, t, _, x: read.xp.permute_dims(x, t.data),
    "new axis": lambda read, t, _, x: read.xp.expand_dims(x, axis=t.data),
    "reshape": lambda read, _, shape, x: read.xp.reshape(x, shape),
    "concat": lambda read, t, _, *parts: read.xp.concat(list(parts), axis=t.data),
    "stack": lambda read, t, _, *parts: read.xp.stack(list(parts), axis=t.data),
    "reduce": lambda read, t, _, x: read.averaged(x.sum(t.data), t.args[0].shape[t.data]),
    "matmul": lambda read, t, _, x, y: read.averaged(read.product(x, y), t.args[0].shape[-1]),
}
"""Operations on whole arrays, by (evaluator, term, shape of the result, values of arguments)."""

Source = int | tuple[int] | str | None
"""Where an axis of an argument is read: at the index of an axis of the result (its number), at an
index computed from that one (``(number,)``), at a single index ("one"), or anywhere (None)."""


@lru_cache(maxsize=4096)
def sources(t: Term) -> tuple[tuple[Source, ...] | None, ...]:
    """Return what an entry of t reads of each axis of each argument; None for an unread argument.

    It follows from the meaning of an entry of the term alone.  If there is no entry rule, every
    argument is taken to be read anywhere.

    >>> from .givens import real, sizes
    >>> n, d = sizes("n d")
    >>> X, W = real(n, d).named("X"), real(d, d).named("W")
    >>> sources((X @ W).term), sources(X[1:].term)[0], sources(X[0].term)[0]
    (((0, None), (None, 1)), ((0,), 1), ('one', 0))
    """
    at = [make("index", (n,), f"at {k}") for k, n in enumerate(t.shape)]
    args = [make("var", (), (f"argument {k}", "real"), a.shape) for k, a in enumerate(t.args)]
    axis: Any = t.data
    if t.op == "concat":  # which part an entry belongs to depends on the index
        return tuple(tuple(k if k != axis else None for k in range(t.ndim)) for _ in args)
    whole = [(None,) * a.ndim for a in args]
    try:
        meaning = entry_of(make(t.op, tuple(args), t.data, t.shape), at)
    except NoMeaning:
        return tuple(whole)
    found: list[tuple[Source, ...] | None] = [None] * len(args)
    for part in postorder(meaning):
        for k, arg in enumerate(args):
            if part is arg:
                found[k] = found[k] or whole[k]
            elif part.op in ("entry", "row") and part.args[0] is arg:
                own = tuple(_source(place, at) for place in part.args[1:])
                found[k] = (*own, *whole[k][len(own) :])
    return tuple(found)


def _source(place: Term, at: Sequence[Term]) -> Source:
    met = [k for k, i in enumerate(at) if i in free(place)]
    if place.loose or len(met) > 1:
        return None
    if not met:
        return "one"
    return met[0] if place is at[met[0]] else (met[0],)
