"""Claims about concrete arrays: what the constructors of ``claim`` return while a body is run.

The body of a statement is ordinary array code that ends with a claim.  While a :class:`Reading` is
active, ``equal``, ``for_all``, ``rows`` and the like compute with concrete arrays (NumPy's, or
arrays of SymPy expressions) and return the classes below instead of terms.  ``bodies`` activates a
reading and passes in the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from .refusals import checked_call
from .scalars import number_of
from .terms import Term

if TYPE_CHECKING:
    from .givens import Given

P = ParamSpec("P")
R = TypeVar("R")

_READING: ContextVar[Reading | None] = ContextVar("the active reading", default=None)


@dataclass(frozen=True)
class Variable:
    """A variable that ``for_all`` or ``exists`` binds, with its value in this run."""

    name: str
    given: Given
    value: Any


@dataclass(frozen=True)
class ConcreteClaim:
    """One conclusion or hypothesis over concrete arrays; the fields correspond to ``Claim``.

    ``relation`` is "=", ">", ">=", "!=" or "exists"; ``right`` is None for ``all_positive``.
    ``links`` are the steps of the author's chain, each (reason, value), and ``apart`` the last
    number of ``differ``.  ``variables`` are those of ``for_all``, the outermost first.  For
    "exists", ``unknown`` is the array claimed to exist and ``inner`` the claim about it, at the
    value in ``unknown`` and not at the witness; ``left`` and ``right`` are those of ``inner``.
    """

    relation: str
    left: Any
    right: Any = None
    links: tuple[tuple[str, Any], ...] = ()
    apart: Any = None
    variables: tuple[Variable, ...] = ()
    unknown: Variable | None = None
    inner: ConcreteClaim | None = None
    witness: Any = None
    free_of: tuple[Any, ...] = ()
    by: str = ""
    using: tuple[ConcreteInstance, ...] = field(default=(), compare=False, repr=False)
    at_values: Callable[..., ConcreteClaim] | None = field(default=None, compare=False, repr=False)

    def with_facts(self, *facts: Any) -> ConcreteClaim:
        """Return the claim with the instances that its author cites, each evaluated on demand."""
        instances: list[ConcreteInstance] = []
        for fact in facts:
            one = fact.at() if isinstance(fact, ConcreteLaw) else fact
            instances += one if isinstance(one, list) else [one]
        return replace(self, using=tuple(instances))

    def by_induction(self, _: Any) -> ConcreteClaim:
        """Return the claim, to be shown by induction."""
        return replace(self, by="induction")

    def by_squares(self) -> ConcreteClaim:
        """Return the claim, to be shown by a sum of squares that is 0."""
        return replace(self, by="squares")

    def by_inverse(self) -> ConcreteClaim:
        """Return the claim, to be shown by the product in the other order."""
        return replace(self, by="inverse")


@dataclass(frozen=True)
class ConcreteLaw:
    """A claim for all values of some variables, evaluated at one value of each."""

    claim: ConcreteClaim

    def at(self, /, **values: Any) -> ConcreteInstance:
        """Return the law at these values of its variables; one not named keeps its value."""
        return ConcreteInstance(self, values)


@dataclass(frozen=True)
class ConcreteInstance:
    """A law at some values, evaluated on demand."""

    law: ConcreteLaw
    values: Mapping[str, Any]

    @property
    def claim(self) -> ConcreteClaim:
        """The claim of the law at these values."""
        at_values = self.law.claim.at_values
        return self.law.claim if at_values is None else at_values(**self.values)


Draw = Callable[[str, "Given"], Any]


@dataclass(frozen=True)
class Reading:
    """The constructors of claims over concrete arrays, used while the reading is active.

    ``xp`` is the array namespace of the values; ``draw(name, given)`` returns values of the
    variables of ``for_all`` and ``exists``, for givens whose axes are literal numbers.
    """

    xp: Any
    draw: Draw

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the constructors compute with arrays of ``xp`` inside the block."""
        token = _READING.set(self)
        try:
            yield
        finally:
            _READING.reset(token)

    def equal(self, left: Any, right: Any) -> ConcreteClaim:
        return self.chain(left, ("", right))

    def chain(self, first: Any, *steps: tuple[str, Any]) -> ConcreteClaim:
        return ConcreteClaim("=", first, steps[-1][1], steps)

    def all_positive(self, array: Any) -> ConcreteClaim:
        return ConcreteClaim(">", array)

    def greater(self, left: Any, right: Any, *steps: tuple[str, Any]) -> ConcreteClaim:
        return ConcreteClaim(">", left, right, steps)

    def at_least(self, left: Any, right: Any, *steps: tuple[str, Any]) -> ConcreteClaim:
        return ConcreteClaim(">=", left, right, steps)

    def differ(self, left: Any, right: Any, first: Any = None, *steps: Any) -> ConcreteClaim:
        if steps:
            return ConcreteClaim("!=", left, right, (("", first), *steps[:-1]), steps[-1])
        apart = left - right if first is None else first
        if getattr(apart, "ndim", 0):  # of arrays: a hypothesis, which needs no more
            return ConcreteClaim("!=", left, right)
        return ConcreteClaim("!=", left, right, (("", left), ("", right)), apart)

    def exists(
        self,
        variable: Given,
        name: str,
        body: Callable[[Any], Any],
        *,
        witness: Any = None,
        free_of: tuple[Any, ...] = (),
    ) -> ConcreteClaim:
        unknown = Variable(name, variable, self.draw(name, variable))
        inner = concrete_claim(body(unknown.value))
        return ConcreteClaim(
            "exists",
            inner.left,
            inner.right,
            inner.links,
            inner.apart,
            (),
            unknown,
            inner,
            witness,
            free_of,
        )

    def for_all(self, variables: Mapping[str, Given], body: Callable[..., Any]) -> ConcreteLaw:
        bound = [Variable(name, given, self.draw(name, given)) for name, given in variables.items()]
        claim = concrete_claim(body(**{one.name: one.value for one in bound}))

        def at_values(**values: Any) -> ConcreteClaim:
            own = {one.name: one.value for one in bound}
            with self.active():
                return concrete_claim(body(**{**own, **values}))

        return ConcreteLaw(
            replace(claim, variables=(*bound, *claim.variables), at_values=at_values)
        )

    def over(self, length: Any, family: Callable[[Any], Any]) -> list[ConcreteInstance]:
        instances: list[ConcreteInstance] = []
        for i in range(_whole_number(length)):
            one = family(i)
            instances += one if isinstance(one, list) else [one]
        return instances

    def rows(self, length: Any, row: Callable[[Any], Any]) -> Any:
        return self.xp.stack([self.xp.asarray(row(i)) for i in range(_whole_number(length))])

    def iterate(self, depth: Any, start: Any, layer: Callable[[Any, Any], Any]) -> Any:
        for t in range(_whole_number(depth)):
            start = layer(t, start)
        return start

    def inverse(self, sigma: Any) -> Any:
        return self.xp.argsort(sigma)


def _whole_number(number: Any) -> int:
    """Return a number of layers or rows, possibly computed in floating point, as an int."""
    if number != int(number):
        raise ValueError(f"wanted a whole number of layers or rows, got {number}")
    return int(number)


def by_reading(build: Callable[P, R]) -> Callable[P, R]:
    """Make a constructor call that of the same name of the active reading, if there is one."""

    @wraps(build)
    def built(*args: P.args, **named: P.kwargs) -> R:
        reading = _READING.get()
        if reading is None:
            return checked_call(build, build, *args, **named)
        return cast("R", checked_call(build, getattr(reading, build.__name__), *args, **named))

    return built


def concrete_claim(said: Any) -> ConcreteClaim:
    """Return the result of a body as a claim; a pair of arrays claims that they are equal.

    Raises ``TypeError`` for anything else.
    """
    if isinstance(said, ConcreteLaw):
        return said.claim
    if isinstance(said, tuple) and len(said) == 2:
        left, right = said
        return ConcreteClaim("=", left, right, (("", right),))
    if not isinstance(said, ConcreteClaim):
        raise TypeError(f"wanted a claim, such as equal(left, right); got {type(said).__name__}")
    return said


def lengths(given: Given, spaces: Mapping[str, int] | None = None) -> tuple[int, ...]:
    """Return the shape of a given whose axes are literals or, with lengths in ``spaces``, spaces.

    Raises ``TypeError`` for any other axis.
    """
    found: list[int] = []
    for axis in given.shape:
        value = number_of(axis)
        if axis.op == "space" and spaces is not None:
            found.append(spaces[axis.data[0]])
        elif value is None:
            raise TypeError(f"the axis {axis!r} has no number in this run")
        else:
            found.append(int(value))
    return tuple(found)


def length_value(length: Term, sizes: Mapping[str, int]) -> int:
    """Return the value of an axis length at given sizes.

    Raises ``KeyError`` with the name of the first size that has no value.
    """
    if length.op in ("add", "mul"):
        values = (length_value(part, sizes) for part in length.args)
        return sum(values) if length.op == "add" else prod(values)
    value = number_of(length)
    if value is not None:
        return int(value)
    return int(sizes[length.data if length.op == "index" else length.data[0]])
