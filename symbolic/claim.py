"""Claims: what a statement says about its givens, and how its author would show it.

``relation`` is one of

===========  ======================================================================
``=``        equal, entry by entry
``>``        every entry of left − right is greater than 0
``>=``       every entry of left − right is at least 0
``!=``       the arrays differ in at least one entry
``exists``   for some array ``variable``, not depending on ``free_of``, left and right stand
             in the relation ``inner``, one of those above
===========  ======================================================================

A binder (``for_all``, ``exists``) binds a fresh variable that differs from everything outside of
its body, whatever its name.  It gets the author's name after the body has run, with a prime if
something else in the body has that name.  So it cannot be confused with a given, nor kept and used
elsewhere.

Everything else in a claim is advice to the prover, which the kernel does not trust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from .array import Array, AxisMismatch, as_array, broadcast_shapes, broadcast_to
from .concrete import by_reading
from .givens import Given
from .refusals import demand, refuse_truth_of_a_claim
from .scalars import integer, is_truth, number_of
from .terms import Opened, Term, bind, free, instantiate, make, opened, postorder, substitute

_MADE: ContextVar[list[Claim] | None] = ContextVar("the claims made so far", default=None)


@dataclass(frozen=True)
class Link:
    """One step of a textbook chain: the next term and the reason for it."""

    reason: str
    term: Term


@dataclass(frozen=True)
class Claim:
    """One conclusion or hypothesis; see the table of relations above.

    ``links`` is the author's chain: from left to right for "=", from left − right to a form with
    a visible sign for ">" and ">=".  For "!=" it has numbers that would all be equal if left were
    right; the first minus the last is ``apart``, visibly not 0.  ``variables`` are quantified
    over besides the givens.  ``by`` is the method: "" (normal forms), "induction" on ``on``,
    "squares" (a sum of squares is 0) or "inverse" (a left inverse is a right inverse).
    """

    relation: str
    left: Term
    right: Term | None = None
    links: tuple[Link, ...] = ()
    variable: Term | None = None
    witness: Term | None = None
    free_of: tuple[Term, ...] = ()
    says: str = ""
    variables: tuple[tuple[str, Given], ...] = ()
    apart: Term | None = None
    by: str = ""
    on: Term | None = None
    using: tuple[Instance, ...] = ()
    inner: str = "="

    __bool__ = refuse_truth_of_a_claim

    def __post_init__(self) -> None:
        """Note that it was made, if its maker is watched (``claims_made``)."""
        made = _MADE.get()
        if made is not None:
            made.append(self)

    @property
    def compared(self) -> str:
        """The relation of left and right; for an existence, the inner one."""
        return self.inner if self.relation == "exists" else self.relation

    @property
    def sides(self) -> tuple[Term, ...]:
        """Left and right, or left alone if there is no right side."""
        return (self.left,) if self.right is None else (self.left, self.right)

    def at_witness(self) -> Claim:
        """Return what an existence claims of its witness; any other claim unchanged."""
        if self.relation != "exists" or self.variable is None or self.witness is None:
            return self
        x, value = self.variable, self.witness
        plain = replace(
            self, relation=self.inner, inner="=", variable=None, witness=None, free_of=()
        )
        return plain.moved(lambda t: substitute(t, x, value))

    def terms(self) -> tuple[Term, ...]:
        """Return all terms of the claim and of its author's steps, but not those of facts."""
        found = (
            self.left,
            self.right,
            *(k.term for k in self.links),
            self.variable,
            self.witness,
            *self.free_of,
            self.apart,
            self.on,
        )
        return tuple(t for t in found if t is not None)

    def moved(self, move: Callable[[Term], Term]) -> Claim:
        """Return the claim with ``move`` applied to every term, those of its facts included."""

        def maybe(term: Term | None) -> Term | None:
            return None if term is None else move(term)

        return replace(
            self,
            left=move(self.left),
            right=maybe(self.right),
            links=tuple(Link(k.reason, move(k.term)) for k in self.links),
            variable=maybe(self.variable),
            witness=maybe(self.witness),
            free_of=tuple(map(move, self.free_of)),
            apart=maybe(self.apart),
            on=maybe(self.on),
            variables=tuple((name, given.moved(move)) for name, given in self.variables),
            using=tuple(fact.moved(move) for fact in self.using),
        )

    def with_facts(self, *facts: Instance | Law) -> Claim:
        """Return the claim, to be shown with the help of hypotheses or earlier conclusions."""
        for fact in facts:
            demand(fact, (Instance, Law), "with_facts takes laws (for_all), or laws at values")
        return replace(self, using=tuple(f if isinstance(f, Instance) else f.at() for f in facts))

    def by_induction(self, on: Array) -> Claim:
        """Return the claim, to be shown by induction on a given natural number."""
        demand(on, Array, "induction is on a given natural number, such as m")
        if on.term.op != "var" or on.term.data[1] != "natural":
            raise TypeError(f"induction is on a given natural number, such as m; it is on {on!r}")
        return replace(self, by="induction", on=on.term)

    def by_squares(self) -> Claim:
        """Return the equation, to be shown by Σ (left − right)² = 0."""
        return replace(self, by="squares")

    def by_inverse(self) -> Claim:
        """Return the equation B A = 1 for square A and B, to be shown by A B = 1."""
        return replace(self, by="inverse")


@by_reading
def equal(left: Any, right: Any) -> Claim:
    """Claim left = right, entry by entry."""
    return chain(left, ("", right))


@by_reading
def chain(first: Any, *steps: tuple[str, Any]) -> Claim:
    """Claim first = ... = last, each step given as (reason, next)."""
    if not steps:
        raise TypeError("a chain has steps: chain(first, (reason, next), .., (reason, last))")
    a = as_array(first)
    links = _links(a, steps)
    return Claim("=", a.term, links[-1].term, links)


def _links(first: Array, steps: tuple[tuple[str, Any], ...]) -> tuple[Link, ...]:
    links: list[Link] = []
    for step in steps:
        demand(step, _is_step, "a step of a chain is a pair (reason, next), the reason in words")
        reason, value = step
        b = as_array(value)
        if b.axes != first.axes:
            raise AxisMismatch(
                f"wanted two sides of one shape, got {first.shape} and {b.shape}"
                + (f" (at '{reason}')" if reason else "")
            )
        links.append(Link(reason, b.term))
    return tuple(links)


def _is_step(step: Any) -> bool:
    return isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)


@by_reading
def all_positive(array: Any) -> Claim:
    """Claim that every entry is greater than 0."""
    return Claim(">", as_array(array).term)


@by_reading
def greater(left: Any, right: Any, *steps: tuple[str, Any]) -> Claim:
    """Claim left > right, entry by entry; steps lead from left − right to a form that shows it."""
    return _ordered(">", left, right, steps)


@by_reading
def at_least(left: Any, right: Any, *steps: tuple[str, Any]) -> Claim:
    """Claim left >= right, entry by entry; steps lead from left − right to a form that shows it."""
    return _ordered(">=", left, right, steps)


def _ordered(relation: str, left: Any, right: Any, steps: tuple[tuple[str, Any], ...]) -> Claim:
    a, b = as_array(left), as_array(right)
    shape = broadcast_shapes(a.axes, b.axes)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    return Claim(relation, a.term, b.term, _links(a - b, steps))


@by_reading
def differ(left: Any, right: Any, first: Any = None, *steps: Any) -> Claim:
    """Claim that left and right differ in at least one entry.

    For two numbers, their difference must be visibly not 0, or ``first`` is the difference in a
    form in which it is.  Arrays need a contradiction: numbers ``first`` = ... = last, each step
    (reason, number), which follow from left = right; the final step is a number alone,
    first − last in a form that is visibly not 0.  A hypothesis needs none of this.

    >>> from attnproof.symbolic.givens import real
    >>> x = real().named("x")
    >>> differ(x * x + 1, 0, x * x + 1).relation
    '!='
    """
    a, b = as_array(left), as_array(right)
    shape = broadcast_shapes(a.axes, b.axes)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    if steps:
        start, apart = as_array(first), as_array(steps[-1])
        links = (Link("", start.term), *_links(start, steps[:-1]))
        return Claim("!=", a.term, b.term, links, apart=apart.term)
    if shape:
        if first is not None:
            raise TypeError(f"{NO_CONTRADICTION}; there is no step after {first!r}")
        return Claim("!=", a.term, b.term)
    gap = a if number_of(b.term) == 0 else a - b
    form = gap if first is None else as_array(first)
    return Claim("!=", a.term, b.term, (Link("", a.term), Link("", b.term)), apart=form.term)


NO_CONTRADICTION = (
    "differ is proved by contradiction: write differ(left, right, first, (reason, next), .., form) "
    "with numbers that would be equal if left = right, and a form of first − last that shows that "
    "it is not 0"
)
_INNER = ("=", "!=", ">", ">=")


@by_reading
def exists(
    variable: Given,
    name: str,
    body: Callable[[Array], Claim],
    *,
    witness: Any = None,
    free_of: tuple[Array, ...] = (),
) -> Claim:
    """Claim that some array of that kind, not depending on ``free_of``, satisfies ``body``.

    The body claims an equation, an inequality or a difference, which is shown for the witness like
    any other claim, with its author's steps and facts.  Raises ``TypeError`` for other claims.

    >>> from attnproof.symbolic.givens import real
    >>> x = real().named("x")
    >>> exists(real(), "z", lambda z: greater(z, x), witness=x + 1)
    ... # doctest: +ELLIPSIS
    Claim(relation='exists', left=z, right=x, ...)
    """
    demand(variable, Given, "exists wants a kind of array, such as real(n), and its name")
    demand(name, str, "exists wants the name of what exists, such as 'z', behind its kind")
    demand(body, callable, "exists wants a function of what exists, such as lambda z: equal(z, x)")
    if variable.kind == "function":
        raise TypeError(f"exists is about an array; {name} is a function")
    unknown: Array = variable.named(Opened((name, object())))
    claim = _conclusion("exists", body(unknown))
    if claim.relation not in _INNER or claim.variables:
        said = "for_all" if claim.variables else claim.relation
        raise TypeError(
            f"exists wants an equation, an inequality or a difference of {name}; its body returned "
            f"{said}(..): put for_all outside, and write two arrays as parts of one"
        )
    value = None if witness is None else as_array(witness)
    if value is not None and value.axes != unknown.axes:
        raise AxisMismatch(f"{name} has shape {unknown.shape}, and its witness {value.shape}")
    whole = replace(
        claim,
        relation="exists",
        inner=claim.relation,
        variable=unknown.term,
        witness=None if value is None else value.term,
        free_of=tuple(a.term for a in free_of),
    )
    return _named(whole, {name: (variable, unknown.term)})[0]


def _conclusion(binder: str, found: Any) -> Claim:
    """Return the claim of a binder's body; raise ``TypeError`` for anything but one claim."""
    if isinstance(found, Law):
        return found.claim
    if not isinstance(found, Claim):
        raise TypeError(
            f"the body of {binder} returns one conclusion, such as equal(..), at_least(..) or "
            f"differ(..); this one returned {type(found).__name__}"
        )
    return found


def _named(
    claim: Claim, bound: Mapping[str, tuple[Given, Term]]
) -> tuple[Claim, tuple[tuple[str, Given], ...]]:
    """Return the claim and its bound variables under the author's names, primed if taken."""
    own = {term for _, term in bound.values()}
    taken = {name for name, _ in claim.variables}
    for term in claim.terms():
        taken |= {name_of(v) for v in free(term) - own}
        taken |= {str(t.data[0]) for t in postorder(term) if t.op == "call"}
    named: list[tuple[str, Given]] = []
    for name, (given, term) in bound.items():
        primed = next(p for k in range(99) if (p := name + "′" * k) not in taken)
        taken.add(primed)
        becomes: Term = given.named(primed).term
        claim = claim.moved(lambda t, old=term, new=becomes: substitute(t, old, new))  # type: ignore[misc]
        named.append((primed, given))
    return claim, tuple(named)


@contextmanager
def claims_made() -> Iterator[list[Claim]]:
    """Return a list to which every claim made inside the block is added."""
    made: list[Claim] = []
    token = _MADE.set(made)
    try:
        yield made
    finally:
        _MADE.reset(token)


def name_of(v: Term) -> str:
    """Return the name of a variable, an index or a size."""
    return str(v.data if v.op == "index" else v.data[0])


@dataclass(frozen=True)
class Law:
    """A claim for all values of some variables: a hypothesis, or a conclusion to use later."""

    claim: Claim

    __bool__ = refuse_truth_of_a_claim

    def at(self, /, **values: Any) -> Instance:
        """Return the law at these values of its variables; a variable not named stands for itself.

        A variable that was given a prime may be named without it.
        """
        names = [name for name, _ in self.claim.variables]
        bare = [name.rstrip("′") for name in names]
        for name, short in zip(names, bare, strict=True):
            if short in values and short not in names and bare.count(short) == 1:
                values[name] = values.pop(short)
        unknown = sorted(set(values) - set(names))
        if unknown:
            listed = ", ".join(names) or "none"
            raise TypeError(f"the law has no variable {unknown[0]}; its variables: {listed}")
        chosen: list[Term] = []
        for name, given in self.claim.variables:
            own = given.named(name)
            value = as_array(values.get(name, own))
            if value.axes != own.axes:
                raise TypeError(f"{name} has shape {own.shape} and was given {value.shape}")
            chosen.append(value.term)
        return Instance(self, tuple(chosen))


@dataclass(frozen=True)
class Instance:
    """A law at given values; with ``indices``, at a family of values, one per index."""

    law: Law
    values: tuple[Term, ...]
    indices: tuple[Term, ...] = ()

    def moved(self, move: Callable[[Term], Term]) -> Instance:
        """Return the instance with ``move`` applied to its values and its law."""
        law = Law(self.law.claim.moved(move))
        return Instance(law, tuple(map(move, self.values)), self.indices)

    @property
    def sides(self) -> tuple[Term, Term]:
        """Left and right at the values, tabulated over the indices."""
        claim = self.law.claim
        own = tuple(given.named(name).term for name, given in claim.variables)
        sides = [claim.left, claim.left if claim.right is None else claim.right]
        instantiated = [instantiate(bind(side, *own), *self.values) for side in sides]
        for at in reversed(self.indices):
            instantiated = [
                make("tabulate", (at.args[0], bind(t, at)), shape=(at.args[0], *t.shape))
                for t in instantiated
            ]
        return instantiated[0], instantiated[1]


@by_reading
def for_all(variables: Mapping[str, Given], body: Callable[..., Claim | Law]) -> Law:
    """Return the claim for all values of further variables, named as the parameters of ``body``.

    >>> from attnproof.symbolic.givens import natural, function
    >>> f = function(0).named("f")
    >>> law = for_all({"m": natural(), "k": natural()}, lambda m, k: equal(f(m + k), f(m) * f(k)))
    >>> law.at(k=1).sides[0]
    f(m + 1)
    """
    demand(variables, Mapping, "for_all wants its variables by name, such as {'m': natural()}")
    demand(body, callable, "for_all wants a function of its variables, such as lambda m: equal(..)")
    for name, given in variables.items():
        demand(given, Given, f"for_all wants what {name} may be, such as real() or natural()")
        if given.kind == "function":
            raise TypeError(
                f"for_all is about numbers and arrays; {name} is a function: make it a given"
            )
    own = {name: given.named(Opened((name, object()))) for name, given in variables.items()}
    claim = _conclusion("for_all", body(**own))
    bound = {name: (variables[name], value.term) for name, value in own.items()}
    claim, named = _named(claim, bound)
    return Law(replace(claim, variables=(*named, *claim.variables)))


_FRESH = count()
_BUILDING: ContextVar[Iterator[int] | None] = ContextVar("numbers of the build", default=None)


def _fresh() -> str:
    """Return a suffix that no other open name ends with."""
    building = _BUILDING.get()
    return f"#{next(_FRESH)}" if building is None else f"#{next(building)}'"


@contextmanager
def fresh_numbering() -> Iterator[None]:
    """Number fresh names anew inside the block, so that code run again makes the same terms."""
    token = _BUILDING.set(_BUILDING.get() or count())
    try:
        yield
    finally:
        _BUILDING.reset(token)


@by_reading
def over(length: Any, family: Callable[[Array], Instance]) -> Instance:
    """Return a family of instances, one for each index below the length."""
    at = opened(integer(as_array(length).term), f"at{_fresh()}")
    instance = family(Array(at))
    return replace(instance, indices=(at, *instance.indices))


@by_reading
def rows(length: Any, row: Callable[[Any], Any]) -> Any:
    """Return the array whose slice i is ``row(i)``, for i = 0, 1, ..., length − 1.

    >>> from attnproof.symbolic.givens import sizes
    >>> (n,) = sizes("n")
    >>> rows(n, lambda i: i * i).shape
    (n,)
    """
    demand(row, callable, "rows wants a function of one index, such as lambda i: X[i]")
    at = opened(integer(as_array(length).term), f"row{_fresh()}")
    body = as_array(row(Array(at))).term
    return Array(make("tabulate", (at.args[0], bind(body, at)), shape=(at.args[0], *body.shape)))


@by_reading
def iterate(depth: Any, start: Any, layer: Callable[[Any, Any], Any]) -> Any:
    """Apply ``layer(t, state)`` to ``start`` for t = 0, 1, ..., depth - 1.

    A symbolic depth (a size, an index, a natural number) gives a single term, about which the
    kernel reasons by induction.
    """
    demand(layer, callable, "iterate wants a function of t and the state: iterate(depth, start, f)")
    if not isinstance(depth, Array):
        demand(depth, int, "iterate wants a whole number of layers: iterate(depth, start, f)")
        for t in range(depth):
            start = layer(t, start)
        return start
    a = as_array(start)
    number = _fresh()  # used nowhere else, and gone once it is bound
    at = opened(depth.term, f"layer{number}")
    state = make("var", (), (Opened((f"state{number}",)), "real"), a.axes)
    body = as_array(layer(Array(at), Array(state))).term
    if is_truth(a.term) or is_truth(body):
        raise TypeError("a stack of layers holds numbers; write xp.astype(.., ..) for truth values")
    if body.shape != a.axes:
        raise TypeError(f"a layer takes shape {a.axes} to {body.shape}; it must keep the shape")
    return Array(make("iterate", (depth.term, a.term, bind(body, at, state)), shape=a.axes))
