"""Derivations for conclusions, one method for each relation, for the kernel to replay.

The advice of a claim's author (a chain, induction, squares, facts to use) is followed here but not
trusted.

If the author does not say at which values to use an assumed law, its sides are matched against the
terms of the claim.  This need not be trusted either, since the kernel checks each value.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from .array import Array
from .claim import NO_CONTRADICTION, Claim, Instance, Law
from .covers import Cover
from .decision import LinkProof
from .derivation import (
    Derivation,
    Differ,
    LeftInverse,
    Lemma,
    NaturalInduction,
    Reflexive,
    Sign,
    SignStep,
    SumOfSquares,
    Witness,
)
from .derive import (
    Equation,
    Meeting,
    NotProved,
    assumed,
    axis_cover,
    derive,
    instance,
    reversed_equation,
    split_options,
)
from .divisors import opened
from .kernel import Proof, Refused, places, replay, squares
from .normal_form.equations import chain, inside
from .normal_form.forms import over_tangents, with_magnitudes, with_squares
from .normal_form.normaliser import Normaliser
from .normal_form.polynomial import with_sign_facts
from .rules.base import Assumption
from .scalars import ONE, ZERO, add, entry, integer, mul, num, number_of
from .signs import find_nonzero, find_sign
from .steps import rule_counts
from .terms import Term, make, postorder, substitute


@dataclass(frozen=True)
class Premises:
    """What a conclusion may rest on: equations, facts about signs, and earlier conclusions.

    ``lemmas`` maps each earlier conclusion, as a law, to its derivation and variables.  ``refuted``
    searches for a witness against the conclusion, once a first way to show it has failed.
    """

    equations: tuple[Equation, ...] = ()
    facts: frozenset[Assumption] = frozenset()
    lemmas: Mapping[Term, tuple[Derivation, tuple[Term, ...]]] = field(default_factory=dict)
    refuted: Callable[[], bool] | None = None

    def with_lemmas(self, derivation: Derivation) -> Derivation:
        """Return the derivation with those of the earlier conclusions that it may use."""
        for lemma, variables in self.lemmas.values():
            derivation = Lemma(derivation, lemma, variables)
        return derivation


@dataclass(frozen=True)
class Attempt:
    """An attempt to show a conclusion: its links, and its proof or the reason for having none."""

    links: tuple[LinkProof, ...] = ()
    proof: Proof | None = None
    why: str = ""
    derivation: Derivation | None = None


def difference(claim: Claim) -> Term:
    """Return left − right of a claim about signs; left if the right side is missing or 0."""
    right = claim.right
    if right is None or number_of(right.args[0] if right.op == "broadcast" else right) == 0:
        return claim.left
    return (Array(claim.left) - Array(right)).term


def compared(claim: Claim) -> tuple[Term, Term]:
    """Return the sides of a claim as the kernel compares them; for an order, difference and 0."""
    if claim.compared in (">", ">="):
        return difference(claim), ZERO
    assert claim.right is not None
    return claim.left, claim.right


def show(claim: Claim, premises: Premises) -> Attempt:
    """Show one conclusion as its author advises."""
    with with_sign_facts(premises.facts):
        if claim.relation in (">", ">="):
            return _signed(claim, premises)
        if claim.relation == "exists":
            return _at_witness(claim, premises)
        if claim.relation == "!=":
            return _by_contradiction(claim, premises)
        return _METHODS[claim.by](claim, premises)


def _replayed(derivation: Derivation, links: tuple[LinkProof, ...], premises: Premises) -> Attempt:
    whole = premises.with_lemmas(derivation)
    try:
        return Attempt(links, replay(whole), "", whole)
    except Refused as refused:
        return Attempt(links, None, f"the kernel refused the derivation: {refused}")


def _direct(claim: Claim, premises: Premises) -> Attempt:
    steps = [(k.reason, k.term) for k in claim.links]
    refuted = premises.refuted if len(steps) == 1 else None  # one of several may still hold
    whole, links, why = _linked(claim.left, steps, premises.equations, refuted)
    return Attempt(links, None, why) if whole is None else _replayed(whole, links, premises)


def _linked(
    first: Term,
    steps: list[tuple[str, Term]],
    equations: tuple[Equation, ...],
    refuted: Callable[[], bool] | None = None,
) -> tuple[Derivation | None, tuple[LinkProof, ...], str]:
    links: list[LinkProof] = []
    parts: list[Derivation] = []
    why = ""
    left = first
    for reason, right in steps:
        link = _link(reason, left, right, equations, refuted)
        links.append(link)
        if link.derivation is None:
            why = why or (f"the step '{reason}': " if reason else "") + link.why_not
        else:
            parts.append(link.derivation)
        left = right
    if why:
        return None, tuple(links), why
    return chain(*parts) if parts else Reflexive(first), tuple(links), ""


def _link(
    reason: str,
    left: Term,
    right: Term,
    equations: tuple[Equation, ...],
    refuted: Callable[[], bool] | None = None,
) -> LinkProof:
    start = time.perf_counter()
    meeting: list[Meeting] = []
    try:
        part = derive(left, right, equations, meeting, refuted)
    except (NotProved, Refused) as failed:
        took = time.perf_counter() - start
        return LinkProof(reason, left, right, None, {}, took, str(failed))
    took = time.perf_counter() - start
    return LinkProof(reason, left, right, part, dict(rule_counts(part)), took, "", tuple(meeting))


def _by_induction(claim: Claim, premises: Premises) -> Attempt:
    m, right = claim.on, claim.right
    assert m is not None
    assert right is not None
    before = assumed(claim.left, right)
    name = str(m.data[0])
    parts: list[Derivation] = []
    told: list[LinkProof] = []
    for at, says, equations in (
        (ZERO, f"{name} = 0", premises.equations),
        (integer(add(m, ONE)), f"from {name} to {name} + 1", (before, *premises.equations)),
    ):
        steps = [(k.reason, substitute(k.term, m, at)) for k in claim.links]
        whole, links, why = _linked(substitute(claim.left, m, at), steps, equations)
        told += [
            replace(link, reason=": ".join(filter(None, (says, link.reason)))) for link in links
        ]
        if whole is None:
            return Attempt(tuple(told), None, f"{says}: {why}")
        parts.append(whole)
    induction = NaturalInduction(claim.left, right, m, parts[0], parts[1])
    return _replayed(induction, tuple(told), premises)


def _by_squares(claim: Claim, premises: Premises) -> Attempt:
    right = claim.right
    assert right is not None
    steps = [("the squares of all differences add up to 0", ZERO)]
    whole, links, why = _linked(squares(claim.left, right), steps, premises.equations)
    if whole is None:
        return Attempt(links, None, why)
    return _replayed(SumOfSquares(claim.left, right, whole), links, premises)


def _by_inverse(claim: Claim, premises: Premises) -> Attempt:
    left, right = claim.left, claim.right
    assert right is not None
    if left.op != "matmul":
        return Attempt((), None, "by_inverse wants a product of two matrices on the left")
    b, a = left.args
    turned = make("matmul", (a, b), shape=left.shape)
    reason = "a left inverse of a square matrix is its right inverse"
    whole, links, why = _linked(turned, [(reason, right)], premises.equations)
    if whole is None:
        return Attempt(links, None, why)
    return _replayed(LeftInverse(left, right, whole), links, premises)


def _at_witness(claim: Claim, premises: Premises) -> Attempt:
    """Show an existence by showing the claim about its witness like any other claim."""
    if claim.witness is None or claim.variable is None:
        return Attempt((), None, "no witness is named, and the prover does not search for one")
    plain, sides = claim.at_witness(), compared(claim)
    if claim.inner in (">", ">="):
        plain = replace(plain, left=substitute(sides[0], claim.variable, claim.witness), right=None)
    found = show(plain, premises)
    if found.derivation is None:
        return found
    witness = Witness(
        claim.variable, claim.witness, claim.free_of, sides, found.derivation, claim.inner
    )
    return _replayed(witness, found.links, Premises())


def _by_contradiction(claim: Claim, premises: Premises) -> Attempt:
    right, form = claim.right, claim.apart
    assert right is not None
    if form is None:
        return Attempt((), None, NO_CONTRADICTION)
    if_equal = assumed(claim.left, right)
    first, steps = claim.links[0].term, [(k.reason, k.term) for k in claim.links[1:]]
    whole, links, why = _linked(first, steps, (if_equal, *premises.equations))
    if whole is None:
        return Attempt(links, None, why)
    gap = add(first, mul(num(-1), claim.links[-1].term))
    link = _link("and their difference is not 0", gap, form, premises.equations)
    links = (*links, link)
    if link.derivation is None:
        return Attempt(links, None, link.why_not)
    keep = frozenset(array for _, array in premises.facts)
    form_opened = chain(link.derivation, opened(form, keep))
    signs = find_nonzero(form_opened.right, premises.facts)[1]
    shown = Differ(claim.left, right, whole, form_opened, signs)
    return _replayed(shown, links, premises)


def signed(
    array: Term,
    cover: Cover,
    parts: tuple[Derivation, ...],
    facts: frozenset[Assumption] = frozenset(),
) -> Sign:
    """Return the derivation that every entry is > 0 or >= 0, with steps to the parts' signs."""
    return Sign(array, cover, parts, tuple(find_sign(part.right, facts)[1] for part in parts))


SIGN_RULES = {
    "products": "the inequality of Cauchy and Schwarz",
    "tangent": "a function and its tangent",
    "roots": "squares compared",
    "logarithms": "exponentials compared",
    "among": "one term and the sum of all",
    "quotient": "over positive denominators",
    "rising": "a rising function",
    "cases": "case by case",
}
"""What the rules that show a sign use, in words; others are seen in the form."""


def _words_of(steps: Iterable[object]) -> Iterator[str]:
    """The means by which signs are shown, each once, with those inside of steps."""
    used = dict.fromkeys(_rules_of(steps))
    return (words for rule, words in SIGN_RULES.items() if rule in used)


def _rules_of(steps: Iterable[object]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, SignStep):
            yield step.rule
            yield from _rules_of(step.arguments)
        elif isinstance(step, tuple):
            yield from _rules_of(step)


def _signed(claim: Claim, premises: Premises) -> Attempt:
    start = time.perf_counter()
    whole_array = difference(claim)
    steps = [(k.reason, k.term) for k in claim.links]
    to_form, links, why = _linked(whole_array, steps, premises.equations)
    if to_form is None:
        return Attempt(links, None, why)
    form = claim.links[-1].term if claim.links else whole_array
    keep = frozenset(array for _, array in premises.facts)
    options = split_options(form)
    why = ""
    choices = any(t.op in ("maximum", "abs") for t in postorder(form))
    for splits in options:
        norm = Normaliser(splits, premises.equations, together=True)
        cover = tuple(axis_cover(n, splits) for n in form.shape)
        chosen = (norm.changed(choices=True),) if choices else ()
        at = places(cover, whole_array)
        ways: tuple[Callable[[Term], Derivation | None], ...] = (
            partial(opened, keep=keep),
            norm,
            partial(with_squares, norm),
            *chosen,
            partial(with_magnitudes, norm),
            partial(over_tangents, norm),
        )
        for way in ways:
            parts = []
            for place in at:
                t = entry(whole_array, *place)
                first = inside(t, [(0, to_form)]) if place else to_form
                then = way(first.right)
                if then is not None:
                    parts.append(premises.with_lemmas(chain(first, then)))
            if len(parts) < len(at):
                continue
            shown = signed(whole_array, cover, tuple(parts), premises.facts)
            try:
                proof = replay(shown)
            except Refused as refused:
                why = why or str(refused)
                continue
            if claim.relation == ">" and proof.relation != ">":
                why = why or "the entries are >= 0, and their form does not show that they are > 0"
                continue
            counts = sum((rule_counts(part) for part in parts), Counter[str]())
            took = time.perf_counter() - start
            told = ", ".join(("by the form of the entries", *_words_of(shown.signs)))
            last = LinkProof(told, form, ZERO, parts[0], dict(counts), took)
            return Attempt((*links, last), proof, "", shown)
    known = _by_known_sign(claim, to_form, premises)
    return Attempt(links, None, why) if known is None else replace(known, links=links)


def _by_known_sign(claim: Claim, to_form: Derivation, premises: Premises) -> Attempt | None:
    """Show a sign by equating the array with one whose sign is a fact, such as V − lo."""
    array, form = to_form.left, to_form.right
    kinds = ("positive",) if claim.relation == ">" else ("positive", "nonnegative")
    whole = tuple(("whole",) for _ in form.shape)
    for kind, known in sorted(premises.facts, key=lambda fact: (fact[0], fact[1].key)):
        if kind not in kinds or known.shape != form.shape:
            continue
        try:
            way = chain(to_form, derive(form, known, premises.equations))
            (place,) = places(whole, array)
            part = inside(entry(array, *place), [(0, way)]) if place else way
            shown = signed(array, whole, (premises.with_lemmas(part),), premises.facts)
            return Attempt((), replay(shown), "", shown)
        except (NotProved, Refused):
            continue
    return None


_METHODS = {
    "": _direct,
    "induction": _by_induction,
    "squares": _by_squares,
    "inverse": _by_inverse,
}


MATCHING_ROUNDS = 2  # the terms of instances found are matched once more
MAX_EQUATIONS = 24  # equations, each of which makes every normal form slower
Values = dict[Term, Term]


def equations_of(laws: Iterable[Law], claim: Claim) -> tuple[Equation, ...]:
    """Return the laws at values that occur in a claim, as equations to smallest equal terms.

    So rewriting cannot loop, as it would by the laws of a commutative operation.
    """
    told = [law for law in laws if law.claim.relation == "=" and law.claim.variables]
    terms = dict.fromkeys(t for side in claim.terms() for t in postorder(side))
    found: dict[tuple[Term, Term], Equation] = {}
    for _ in range(MATCHING_ROUNDS):
        for one in [one for law in told for one in _instances(law, terms)]:
            left, right = one.sides
            if left is not right and len(found) < MAX_EQUATIONS:
                found.setdefault((left, right), instance(one))
                terms |= dict.fromkeys(t for side in (left, right) for t in postorder(side))
    return tuple(_to_the_smallest(found.values()))


def _to_the_smallest(found: Iterable[Equation]) -> Iterator[Equation]:
    """Yield for each term its equation with the smallest term that it equals by these equations."""
    near: dict[Term, list[Equation]] = {}
    for one in found:
        for way in (one, reversed_equation(one)):
            near.setdefault(way.right, []).append(way)
    weight = {t: (sum(1 for _ in postorder(t)), t.key) for t in near}
    reached: set[Term] = set()
    for smallest in sorted(near, key=weight.__getitem__):
        if smallest in reached:
            continue
        reached.add(smallest)
        steps = [Equation(smallest, smallest, Reflexive(smallest))]
        for known in steps:  # which grow as they are walked
            for way in near[known.left]:
                if way.left not in reached:
                    reached.add(way.left)
                    steps.append(Equation(way.left, smallest, chain(way.whole, known.whole)))
        yield from steps[1:]


def _instances(law: Law, terms: Iterable[Term]) -> Iterator[Instance]:
    claim = law.claim
    own = [given.named(name).term for name, given in claim.variables]
    assert claim.right is not None
    for side in (claim.left, claim.right):
        if side in own:
            continue  # a variable matches anything
        for t in terms:
            values = _matched(side, t, frozenset(own), {})
            if values is not None and len(values) == len(own):
                yield Instance(law, tuple(values[v] for v in own))


def _matched(pattern: Term, t: Term, own: frozenset[Term], known: Values) -> Values | None:
    """Return the values of the variables at which a pattern is a term, or None."""
    if pattern in own:
        if t.loose or t.shape != pattern.shape or known.get(pattern, t) is not t:
            return None
        return {**known, pattern: t}
    if pattern is t:
        return known
    alike = (pattern.op, pattern.data, pattern.shape) == (t.op, t.data, t.shape)
    if not alike or len(pattern.args) != len(t.args) or not pattern.args:
        return None
    values: Values | None = known
    for inner, part in zip(pattern.args, t.args, strict=True):
        values = None if values is None else _matched(inner, part, own, values)
    return values
