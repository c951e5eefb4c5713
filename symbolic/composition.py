"""Laws of a composition, from the laws of its parts: each part stays folded while others are shown.

A law speaks of what some calls of one function give.  Where the function is g after f, and what
calls of f give obeys the law, it is again of the form of what the law gives to a call: of causal f
the first rows are the same, whatever comes after.  So the law of g, for all values of what it is
given, shows the law of the whole.  Equations of whole arrays are all that this takes:

1. what a call of f gave is what the law would give to g, at values read off the calls of f; by the
   law of f as a rule that rewrites, and by an equation for any arrays in the place of its calls;
2. what is equal stands in g for what is equal;
3. the law of g, at these values.

A part is shown for all values of the numbers in it as well, so that parts that are alike but for
their weights are shown once.  The kernel replays the whole as it would any other proof of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from .array import Array
from .budget import Budget, OutOfTime, now, within
from .claim import Claim, Link
from .decision import ClaimDecision, Decision, LinkProof
from .derivation import Assume, Derivation, Lemma, Reflexive
from .derive import Equation, NotProved, assumed, derive, replaced, turned
from .formed import formed
from .givens import Given
from .kernel import ANY_REAL, Refused, law, replay
from .normal_form.equations import chain, reverse
from .prove import Effort, decide, settled
from .statement import Statement
from .steps import rule_counts
from .terms import Term, bind, free, instantiate, make, postorder, substitute

Call = Callable[[Array], Array]
Pairs = Sequence[tuple[Term, Term]]


class NotComposed(Exception):
    """The law of the whole does not follow from laws of its parts in this way; the text says why.

    It may hold all the same.
    """


@dataclass(frozen=True)
class Composition:
    """A law of a function that is cut into parts, one after the other.

    ``sides`` are its equations, of a call and of what is ``given`` by name; the call is made in the
    same order each time.  ``again`` has by name what the law is given after a part, made of what
    the calls of that part gave, in their order.  ``taken`` is what each call takes, and ``parts``
    has for each part what each call gives there: terms in which what the part before gave stands
    as it is, and is all that they have of what is given.  ``givens`` are those of the statement.
    """

    sides: Callable[[Call, Mapping[str, Array]], Pairs]
    again: Callable[[Sequence[Array]], Mapping[str, Array]]
    given: Mapping[str, Array]
    taken: tuple[Term, ...]
    parts: tuple[tuple[Term, ...], ...]
    givens: Mapping[str, Given]

    def after(self, outputs: Sequence[Term]) -> dict[str, Array]:
        """What the law is given by name after a part whose calls gave this."""
        return dict(self.again([Array(t) for t in outputs]))

    def of(self, outputs: Sequence[Term]) -> Pairs:
        """The sides of the law, of calls that give this."""
        calls = iter(zip(self.taken, outputs, strict=True))

        def call(x: Array) -> Array:
            taken, found = next(calls, (None, x.term))
            if x.term is not taken:
                raise NotComposed("the law makes other calls when it is asked again")
            return Array(found)

        return self.sides(call, self.given)


def decide_composition(whole: Composition, effort: Effort) -> Decision:
    """The verdict on a law of a composition: proved, by laws of its parts, or undecided.

    The conditions under which the parts mean what they say are joined; those of a later part speak
    of any array in the place of what it is given.
    """
    start, budget = perf_counter(), Budget(effort.whole, now())
    claims = [_claim(left, right) for left, right in whole.of(whole.parts[-1])]
    found = [ClaimDecision("", claim, "undecided") for claim in claims]
    try:
        with within(budget):
            found = list(_Composing(whole, effort, budget).decided())
    except (NotComposed, NotProved, Refused, OutOfTime, RecursionError) as error:
        found = [replace(one, why=str(error)) for one in found]
    seconds = perf_counter() - start
    return Decision(
        tuple(replace(one, says=str(k or ""), seconds=seconds) for k, one in enumerate(found))
    )


def _claim(left: Term, right: Term, variables: tuple[Term, ...] = ()) -> Claim:
    named = tuple((str(v.data[0]), Given(v.data[1], v.shape)) for v in variables)
    return Claim("=", left, right, (Link("", right),), variables=named)


@dataclass(frozen=True)
class _Law:
    """A law for all values of some variables, with its derivation and what was found of it."""

    law: Term
    derivation: Derivation
    variables: tuple[Term, ...]
    found: ClaimDecision | None = None

    def at(self, *values: Term) -> Derivation:
        """The law at these values, which rests on the law."""
        left, right = (instantiate(side, *values) for side in self.law.args)
        return Reflexive(left) if left is right else Assume(left, right, self.law, values)


@dataclass
class _Composing:
    """The laws that were shown on the way, each once: of parts, and of any arrays."""

    whole: Composition
    effort: Effort
    budget: Budget
    laws: dict[Term, _Law] = field(default_factory=dict)

    def decided(self) -> Iterator[ClaimDecision]:
        """Each equation of the law of the whole, proved."""
        each: list[list[Equation]] = []
        for k in range(len(self.whole.parts)):
            each.append(self._up_to(k, each[-1] if each else []))
        found = [one.found for one in self.laws.values() if one.found is not None]
        readings = tuple(dict.fromkeys(told for one in found for told in one.readings))
        links = tuple(link for one in found for link in one.links)
        for equation in each[-1]:
            derivation = equation.whole
            for before in (one for part in reversed(each[:-1]) for one in part):
                derivation = Lemma(derivation, before.whole)
            counts = rule_counts(derivation)
            for told in self.laws.values():
                derivation = Lemma(derivation, told.derivation, told.variables)
            left, right = equation.left, equation.right
            claim = _claim(left, right)
            used, _ = settled(claim, Statement(self.whole.givens, {}), replay(derivation), ())
            own = LinkProof(
                "by the laws of its parts",
                left,
                right,
                derivation,
                sum(counts.values()),
                dict(counts),
                0.0,
                True,
            )
            yield ClaimDecision(
                "", claim, "proved", (*links, own), used, readings, derivation=derivation
            )
            links = ()

    def _up_to(self, k: int, before: list[Equation]) -> list[Equation]:
        """The equations of the law after this part, from those after the part before."""
        whole, outputs = self.whole, self.whole.parts[k]
        for term in outputs:  # from the inside on: they are deep
            formed(term)
        same = self._returned(whole.parts[k - 1], before) if k else []
        found = []
        for (left, right), used in zip(whole.of(outputs), self._of_part(k), strict=True):
            first, last = replaced(left, *same), replaced(right, *same)
            if first.right is not used.left or last.right is not used.right:
                raise NotComposed("the law of a part is not that of what it gives in the whole")
            found.append(Equation(left, right, chain(first, used, reverse(last))))
        return found

    def _of_part(self, k: int) -> Iterator[Derivation]:
        """The equations of the law of one part, at what it is given in the whole.

        They are shown for any arrays in the place of that, and any weights.  Raises
        :class:`NotComposed` where they are not shown.
        """
        whole, outputs = self.whole, self.whole.parts[k]
        taken = whole.parts[k - 1] if k else whole.taken
        values = whole.after(taken) if k else {}
        if k:
            own = {name: Given("real", x.axes).named(name) for name, x in values.items()}
        else:
            own = {name: whole.given[name] for name in whole.after(outputs)}
            values = own
        calls = iter(zip(outputs, taken, strict=True))

        def call(x: Array) -> Array:
            found, before = next(calls)
            if not k:
                return Array(found)
            if x.axes != before.shape or not before.finite:
                raise NotComposed("what a part gives is not of the form of what the next one takes")
            return Array(substitute(found, before, x.term))

        if k:
            self._require_cut(outputs, taken)
        tokens = [x.term for x in own.values()]
        for left, right in whole.sides(call, {**whole.given, **own}):
            weights = dict.fromkeys(
                v for side in (left, right) for v in postorder(side) if _is_any(v)
            )
            rest = [v for v in weights if v not in tokens]
            told = self._law(left, right, (*tokens, *rest))
            yield told.at(*(values[name].term for name in own), *rest)

    def _require_cut(self, outputs: Sequence[Term], taken: Sequence[Term]) -> None:
        """Refuse a part that reads what is given past the part before it."""
        given = {x.term for x in self.whole.given.values()}
        for found, before in zip(outputs, taken, strict=True):
            hole = make("var", (), ("what the part before gives", "real"), before.shape)
            if free(substitute(found, before, hole)) & given:
                raise NotComposed("a part reads what is given past the part before it")

    def _law(self, left: Term, right: Term, variables: tuple[Term, ...]) -> _Law:
        """The law of a part by itself, shown for all values of its variables; once."""
        told = law(left, right, variables)
        if told not in self.laws:
            statement = Statement(self.whole.givens, {"": _claim(left, right, variables)})
            effort = replace(self.effort, whole=self.budget.left)
            (found,) = decide(statement, effort=effort).claims
            if found.derivation is None:
                raise NotComposed(f"of a part by itself: {found.why}")
            self.laws[told] = _Law(told, found.derivation, variables, found)
        return self.laws[told]

    def _returned(self, outputs: tuple[Term, ...], before: list[Equation]) -> list[Equation]:
        """What each call of a part gave, as what the law gives to the next part.

        It is an equation of any arrays, in which left sides of the law stand for right ones.
        """
        whole = self.whole
        holes = tuple(
            make("var", (), (f"output {k}", "real"), t.shape) for k, t in enumerate(outputs)
        )
        taken: list[Term] = []

        def call(x: Array) -> Array:
            taken.append(x.term)
            return Array(holes[len(taken) - 1])

        whole.sides(call, {**whole.given, **whole.after(holes)})
        rules = [assumed(left, right) for left, right in whole.of(holes)]
        known = [assumed(e.left, e.right) for e in before]
        found = []
        for output, hole, told in zip(outputs, holes, taken, strict=True):
            aim = instantiate(bind(told, *holes), *outputs)
            ways = (
                chain(one, replaced(one.right, *on))
                for back, on in (((), ()), (map(turned, rules), known))
                if (one := self._any(hole, replaced(told, *back).right, holes, outputs))
            )
            way = next((way for way in ways if way.right is aim), None)
            if way is None:
                raise NotComposed("what a part gives is not of the form of what the law takes")
            if aim is not output:
                found.append(Equation(output, aim, way))
        return found

    def _any(
        self, left: Term, right: Term, variables: tuple[Term, ...], values: tuple[Term, ...]
    ) -> Derivation | None:
        """An equation of any arrays at some values, if it is shown."""
        told = law(left, right, variables)
        if told not in self.laws:
            try:
                self.laws[told] = _Law(told, derive(left, right), variables)
            except (NotProved, Refused):
                return None
        return self.laws[told].at(*values)


def _is_any(v: Term) -> bool:
    """Whether a variable is an array of any numbers."""
    return v.op == "var" and not v.args and v.data[1] in ANY_REAL
