"""Prove a law of a composition from the laws of its parts, each proved with the others folded.

A law relates the results of several calls of one function.  Suppose that the function is g after f,
and the results of f obey the law.  Then they again have the form of the inputs that the law passes
to its calls: for a causal f, the first rows agree, whatever comes after.  So the law of g, for all
inputs, implies the law of the composition.  Only equations of whole arrays are needed:

1. the result of each call of f equals the input that the law passes to g, at values read off the
   calls of f; by the law of f as a rewrite rule, and by an equation for arbitrary arrays in place
   of its calls;
2. equal inputs of g are replaced by each other;
3. the law of g holds at these values.

The law of a part is proved for all values of its weights as well, so that parts that differ only in
their weights are proved once.  The kernel replays the whole like any other proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from .array import Array
from .budget import Budget, OutOfTime, current_budget, within
from .claim import Claim, Link
from .decision import ClaimDecision, Decision, LinkProof
from .derivation import Assume, Derivation, Lemma, Reflexive
from .derive import Equation, NotProved, assumed, derive, reason, replaced, reversed_equation
from .givens import Given
from .kernel import ANY_REAL, Refused, law, replay
from .normal_form.equations import chain, reverse
from .prove import Effort, check_proof, decide
from .statement import Statement
from .steps import rule_counts
from .terms import Term, bind, free, instantiate, make, postorder, substitute
from .well_formedness import formed

Call = Callable[[Array], Array]
Pairs = Sequence[tuple[Term, Term]]


class NotComposed(Exception):
    """Raised if the law does not follow from laws of the parts in this way; it may still hold."""


@dataclass(frozen=True)
class Composition:
    """A law of a function that is split into consecutive parts.

    ``sides`` returns its equations for a function ``call`` and the ``given`` arrays by name; it
    makes its calls in the same order each time.  ``next_given`` returns the given arrays, by name,
    for the next part, made of the results of the calls of a part, in their order.  ``arguments``
    has the argument of each call, and ``parts`` for each part the result of each call: terms that
    contain the result of the previous part unchanged and depend on the given arrays only through
    it.  ``givens`` are those of the statement.
    """

    sides: Callable[[Call, Mapping[str, Array]], Pairs]
    next_given: Callable[[Sequence[Array]], Mapping[str, Array]]
    given: Mapping[str, Array]
    arguments: tuple[Term, ...]
    parts: tuple[tuple[Term, ...], ...]
    givens: Mapping[str, Given]

    def after(self, outputs: Sequence[Term]) -> dict[str, Array]:
        """Return the given arrays, by name, after a part with these results of its calls."""
        return dict(self.next_given([Array(t) for t in outputs]))

    def equations(self, outputs: Sequence[Term]) -> Pairs:
        """Return the sides of the law for calls with these results."""
        calls = iter(zip(self.arguments, outputs, strict=True))

        def call(x: Array) -> Array:
            argument, found = next(calls, (None, x.term))
            if x.term is not argument:
                raise NotComposed("the law makes other calls on its second evaluation")
            return Array(found)

        return self.sides(call, self.given)


def decide_composition(whole: Composition, effort: Effort) -> Decision:
    """Return the verdict on a law of a composition: proved by the laws of its parts, or undecided.

    The conditions of the parts (divisors not 0 and the like) are collected; those of a later part
    are about arbitrary arrays in place of its inputs.
    """
    start, budget = perf_counter(), Budget(effort.whole, current_budget())
    claims = [_claim(left, right) for left, right in whole.equations(whole.parts[-1])]
    found = [ClaimDecision("", claim, "undecided") for claim in claims]
    try:
        with within(budget):
            found = list(_Composing(whole, effort, budget).decided())
    except (NotComposed, NotProved, Refused, OutOfTime, RecursionError) as error:
        found = [replace(one, why=reason(error)) for one in found]
    seconds = perf_counter() - start
    return Decision(
        tuple(replace(one, says=str(k or ""), seconds=seconds) for k, one in enumerate(found))
    )


def _claim(left: Term, right: Term, variables: tuple[Term, ...] = ()) -> Claim:
    named = tuple((str(v.data[0]), Given(v.data[1], v.shape)) for v in variables)
    return Claim("=", left, right, (Link("", right),), variables=named)


@dataclass(frozen=True)
class _Law:
    """A law for all values of some variables, with its derivation and the verdict on it."""

    law: Term
    derivation: Derivation
    variables: tuple[Term, ...]
    found: ClaimDecision | None = None

    def at(self, *values: Term) -> Derivation:
        """Return the law at these values, as an assumption."""
        left, right = (instantiate(side, *values) for side in self.law.args)
        return Reflexive(left) if left is right else Assume(left, right, self.law, values)


@dataclass
class _Composing:
    """One proof of a composition; each law of a part or of arbitrary arrays is proved once."""

    whole: Composition
    effort: Effort
    budget: Budget
    laws: dict[Term, _Law] = field(default_factory=dict)

    def decided(self) -> Iterator[ClaimDecision]:
        """Yield the proved decision on each equation of the law of the composition."""
        each: list[list[Equation]] = []
        for k in range(len(self.whole.parts)):
            each.append(self._equations_up_to(k, each[-1] if each else []))
        found = [one.found for one in self.laws.values() if one.found is not None]
        readings = tuple(dict.fromkeys(reading for one in found for reading in one.readings))
        links = tuple(link for one in found for link in one.links)
        for equation in each[-1]:
            derivation = equation.whole
            for before in (one for part in reversed(each[:-1]) for one in part):
                derivation = Lemma(derivation, before.whole)
            counts = rule_counts(derivation)
            for lemma in self.laws.values():
                derivation = Lemma(derivation, lemma.derivation, lemma.variables)
            left, right = equation.left, equation.right
            claim = _claim(left, right)
            used, _ = check_proof(claim, Statement(self.whole.givens, {}), replay(derivation), ())
            told = "by the laws of its parts"
            own = LinkProof(told, left, right, derivation, dict(counts), 0.0)
            yield ClaimDecision(
                "", claim, "proved", (*links, own), used, readings, derivation=derivation
            )
            links = ()

    def _equations_up_to(self, k: int, before: list[Equation]) -> list[Equation]:
        """Return the equations of the law up to part k, from those up to the previous part."""
        whole, outputs = self.whole, self.whole.parts[k]
        for term in outputs:  # part by part, as the terms are deep
            formed(term)
        same = self._output_equations(whole.parts[k - 1], before) if k else []
        found = []
        for (left, right), used in zip(
            whole.equations(outputs), self._part_equations(k), strict=True
        ):
            first, last = replaced(left, *same), replaced(right, *same)
            if first.right is not used.left or last.right is not used.right:
                raise NotComposed("the law proved of a part does not fit its results in the whole")
            found.append(Equation(left, right, chain(first, used, reverse(last))))
        return found

    def _part_equations(self, k: int) -> Iterator[Derivation]:
        """Yield the equations of the law of one part, at its inputs in the composition.

        They are proved for arbitrary arrays in place of these inputs, and arbitrary weights.
        Raises :class:`NotComposed` if they are not proved.
        """
        whole, outputs = self.whole, self.whole.parts[k]
        arguments = whole.parts[k - 1] if k else whole.arguments
        values = whole.after(arguments) if k else {}
        if k:
            own = {name: Given("real", x.axes).named(name) for name, x in values.items()}
        else:
            own = {name: whole.given[name] for name in whole.after(outputs)}
            values = own
        calls = iter(zip(outputs, arguments, strict=True))

        def call(x: Array) -> Array:
            found, before = next(calls)
            if not k:
                return Array(found)
            if x.axes != before.shape or not before.finite:
                raise NotComposed(
                    "the results of a part differ in shape from the next inputs, or may be infinite"
                )
            return Array(substitute(found, before, x.term))

        if k:
            self._require_cut(outputs, arguments)
        tokens = [x.term for x in own.values()]
        for left, right in whole.sides(call, {**whole.given, **own}):
            weights = dict.fromkeys(
                v for side in (left, right) for v in postorder(side) if _is_arbitrary(v)
            )
            rest = [v for v in weights if v not in tokens]
            proved = self._law(left, right, (*tokens, *rest))
            yield proved.at(*(values[name].term for name in own), *rest)

    def _require_cut(self, outputs: Sequence[Term], arguments: Sequence[Term]) -> None:
        """Refuse a part that reads a given array other than through the previous part."""
        given = {x.term for x in self.whole.given.values()}
        for found, before in zip(outputs, arguments, strict=True):
            hole = make("var", (), ("what the part before gives", "real"), before.shape)
            if free(substitute(found, before, hole)) & given:
                raise NotComposed("a part reads a given array other than through the previous part")

    def _law(self, left: Term, right: Term, variables: tuple[Term, ...]) -> _Law:
        """Return the law of a part by itself, proved once for all values of its variables."""
        term = law(left, right, variables)
        if term not in self.laws:
            statement = Statement(self.whole.givens, {"": _claim(left, right, variables)})
            effort = replace(self.effort, whole=self.budget.left)
            (found,) = decide(statement, effort=effort).claims
            if found.derivation is None:
                raise NotComposed(f"the law of a part on its own: {found.why}")
            self.laws[term] = _Law(term, found.derivation, variables, found)
        return self.laws[term]

    def _output_equations(
        self, outputs: tuple[Term, ...], before: list[Equation]
    ) -> list[Equation]:
        """Return equations of the results of a part with the inputs that the law gives the next.

        They are equations of arbitrary arrays, with right sides of the law replaced by left ones;
        at the actual results, the equations in ``before`` replace these back.
        """
        whole = self.whole
        holes = tuple(
            make("var", (), (f"output {k}", "real"), t.shape) for k, t in enumerate(outputs)
        )
        arguments: list[Term] = []

        def call(x: Array) -> Array:
            arguments.append(x.term)
            return Array(holes[len(arguments) - 1])

        whole.sides(call, {**whole.given, **whole.after(holes)})
        rules = [assumed(left, right) for left, right in whole.equations(holes)]
        known = [assumed(e.left, e.right) for e in before]
        found = []
        for output, hole, argument in zip(outputs, holes, arguments, strict=True):
            aim = instantiate(bind(argument, *holes), *outputs)
            ways = (
                chain(one, replaced(one.right, *on))
                for back, on in (((), ()), (map(reversed_equation, rules), known))
                if (
                    one := self._general_equation(
                        hole, replaced(argument, *back).right, holes, outputs
                    )
                )
            )
            way = next((way for way in ways if way.right is aim), None)
            if way is None:
                raise NotComposed(
                    "the results of a part are not shown equal to the next inputs of the law"
                )
            if aim is not output:
                found.append(Equation(output, aim, way))
        return found

    def _general_equation(
        self, left: Term, right: Term, variables: tuple[Term, ...], values: tuple[Term, ...]
    ) -> Derivation | None:
        """Return an equation of arbitrary arrays at some values, or None if it is not derived."""
        term = law(left, right, variables)
        if term not in self.laws:
            try:
                self.laws[term] = _Law(term, derive(left, right), variables)
            except (NotProved, Refused):
                return None
        return self.laws[term].at(*values)


def _is_arbitrary(v: Term) -> bool:
    """Whether a variable is an array of arbitrary real numbers."""
    return v.op == "var" and not v.args and v.data[1] in ANY_REAL
