"""The kernel: the only maker of a ``Proof``.

Interface
    ``replay(derivation)``   follows a derivation rule by rule and returns the ``Proof``
    ``law(left, right, variables)``  the assumption that left = right for all values of variables
    ``squares(left, right)``  the sum of squared differences, which is 0 iff two arrays are equal
    ``close(proof, granted, claimed, signs)``  refuses a proof that does not show the claim, uses
    an assumption that was not granted, or reads outside of an axis

A derivation is plain data that anyone may write, and none of it is trusted.  Every rule is
applied again here, and its result must be the one that the derivation states.  Numbers are real,
1/0 is 0, sizes are at least 1, and minus infinity occurs only in terms that are not ``finite``,
which the arithmetic rules refuse.  Ill-formed terms are refused wherever they occur
(``well_formedness.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any
from weakref import WeakKeyDictionary

from .covers import Cover, cover_patterns
from .derivation import (
    Assume,
    Cases,
    Chain,
    Derivation,
    Differ,
    Induction,
    Inside,
    LeftInverse,
    Lemma,
    NaturalInduction,
    Reflexive,
    Reverse,
    Rewrite,
    Sign,
    SignStep,
    SumOfSquares,
    Under,
    Witness,
)
from .ranges import sides_of, unshown_ranges
from .rules import ON_SIGNS, RULES, applied
from .rules.base import Assumption, Facts, Refused, Refusing, need
from .rules.inequalities import inhabited, known_after
from .rules.signs import BY_FORM, Signs
from .scalars import ONE, ZERO, add, always_less, entry, integer, num, power, subtract
from .terms import (
    BINDERS,
    Term,
    bind,
    free,
    instantiate,
    is_opened,
    make,
    names,
    opened,
    substitute,
)
from .well_formedness import formed

__all__ = ["Assumption", "Proof", "Refused", "close", "law", "replay", "squares"]

_KEY = object()
_WEAKER = {">": (">=",)}
ANY_REAL = ("real", "angle", "position", "frequency")
Follow = Callable[[Derivation], "Proof"]


def _refuse_open(*terms: Term) -> None:
    """Refuse terms that no statement can contain: those that mention an open bound variable."""
    for v in names(*terms):
        need(not is_opened(v), "it mentions an open index", v)


class Proof:
    """``left relation right``, for all values of what is free in it, under ``assumes``.

    ``relation`` is "=", "!=" (in some entry), ">", ">=", or "exists" (for some array, ``witness``,
    left and right stand in the relation that it names).
    Only this module can construct one.
    """

    __slots__ = ("relation", "left", "right", "assumes", "witness", "__weakref__")  # noqa: RUF023
    relation: str
    left: Term
    right: Term
    assumes: frozenset[Assumption]
    witness: Witness | None

    def __init__(
        self,
        key: object,
        relation: str,
        left: Term,
        right: Term,
        assumes: frozenset[Assumption] = frozenset(),
        witness: Witness | None = None,
    ) -> None:
        if key is not _KEY:
            raise Refused("a Proof is made by the kernel's replay, not by hand")
        _refuse_open(*(term for _, term in assumes))
        _ISSUED[self] = (relation, left, right, assumes, witness)
        for name, value in zip(self.__slots__, _ISSUED[self], strict=False):
            object.__setattr__(self, name, value)

    def __init_subclass__(cls) -> None:
        raise Refused("a Proof cannot be subclassed")

    def __setattr__(self, name: str, value: object) -> None:
        raise Refused(f"a Proof cannot be changed (tried to set {name!r})")

    def __repr__(self) -> str:
        return f"Proof({self.left!r} {self.relation} {self.right!r})"


_ISSUED: WeakKeyDictionary[Proof, tuple[object, ...]] = WeakKeyDictionary()


def replay(d: Derivation) -> Proof:
    """Return the proof that a derivation describes; raise :class:`Refused` at a false step."""
    known: dict[int, Proof] = {}

    def follow(part: Derivation) -> Proof:
        proof = known.get(id(part))
        if proof is None:
            with Refusing("replay"):
                need(type(part) in _REPLAY, f"not a derivation: {type(part).__name__}")
            rule = _REPLAY[type(part)]
            with Refusing(rule.__name__[1:].replace("_", " ")):
                proof = known[id(part)] = rule(part, follow)
                for side in (formed(proof.left), formed(proof.right)):
                    need(not side.loose, "an index is bound outside the term", side)
                same = proof.left is part.left and proof.right is part.right
                need(same, "it shows something else", proof.left, proof.right, part.right)
        return proof

    return follow(d)


def _equal(
    left: Term, right: Term, *parts: Proof, more: frozenset[Assumption] = frozenset()
) -> Proof:
    need(all(p.relation == "=" for p in parts), "a part is not an equation")
    need(left.shape == right.shape, "the shapes differ", left, right)
    return Proof(_KEY, "=", left, right, more.union(*(p.assumes for p in parts)))


def _reflexive(d: Reflexive, _: Follow) -> Proof:
    return _equal(d.left, d.left)


def _rewrite(d: Rewrite, _: Follow) -> Proof:
    need(d.rule in RULES, f"there is no such rule: {d.rule!r}")
    need(not d.signs or d.rule in ON_SIGNS, "this rule uses no signs")
    for part in (d.left, *d.arguments):
        if type(part) is not int:
            formed(part)
    after, assumed = applied(d.rule, d.left, d.arguments, _signs(d.signs, d.left))
    inhabited(names(*(x for x in d.arguments if isinstance(x, Term))) - names(d.left, after))
    return _equal(d.left, after, more=assumed)


def _check_formed(part: object) -> None:
    """Refuse ill-formed terms in the steps to a sign."""
    if type(part) is SignStep:
        _check_formed((part.number, part.arguments))
    elif type(part) is tuple:
        for one in part:
            _check_formed(one)
    elif type(part) not in (int, str):
        formed(part)


def _signs(steps: tuple[SignStep, ...], *of: Term) -> Signs:
    """Return the signs known after the steps; the variables of these terms have values."""
    if not steps:
        return BY_FORM
    _check_formed(steps)
    return known_after(steps, over=names(*of))


def _reverse(d: Reverse, follow: Follow) -> Proof:
    part = follow(d.part)
    return _equal(part.right, part.left, part)


def _chain(d: Chain, follow: Follow) -> Proof:
    parts = [follow(part) for part in d.parts]
    need(parts, "it is empty")
    for a, b in pairwise(parts):
        need(a.right is b.left, "a link does not start where the last one ended")
    left, right = parts[0].left, parts[-1].right
    inhabited(names(*(part.left for part in parts)) - names(left, right))
    return _equal(left, right, *parts)


def _inside(d: Inside, follow: Follow) -> Proof:
    args = list(d.left.args)
    parts = [follow(part) for _, part in d.parts]
    need(d.left.op not in ("var", "index"), "a variable has no arguments", d.left)
    for (place, _), part in zip(d.parts, parts, strict=True):
        need(0 <= place < len(args), "no such argument", d.left)
        need(d.left.op not in BINDERS or place < len(args) - 1, "a binder's body", d.left)
        need(args[place] is part.left, "not that argument", args[place], part.left)
        args[place] = part.right
    return _equal(d.left, make(d.left.op, tuple(args), d.left.data, d.left.shape), *parts)


def _under(d: Under, follow: Follow) -> Proof:
    part, t = follow(d.part), formed(d.left)
    need(BINDERS.get(t.op) == len(d.variables), "wrong number of bound indices", t)
    j, *states = map(formed, d.variables)
    need(_ranges_over(j, t), "the index does not range over the axis", t, j)
    good = all(_is_any_real(v) and v.shape == t.shape for v in states)
    need(good, "not any array of the state's shape", *states)
    need(t.finite or t.op != "iterate", "a state may be infinite", t)
    need(_are_arbitrary(d.variables, t), "the index is not arbitrary", *d.variables)
    need(part.left is instantiate(t.args[-1], *d.variables), "not its body", part.left)
    body = bind(part.right, *d.variables)
    return _equal(t, make(t.op, (*t.args[:-1], body), t.data, t.shape), part)


def _ranges_over(j: Term, t: Term) -> bool:
    """Whether an index ranges over the axis that a binder binds."""
    return j.op == "index" and j.args == (t.args[0],)


def _is_any_real(v: Term) -> bool:
    """Whether a variable stands for an arbitrary real array of its shape."""
    return v.op == "var" and v.data[1] in ANY_REAL


def _are_arbitrary(variables: tuple[Term, ...], *of: Term) -> bool:
    """Whether all variables are opened bound variables that occur in none of the terms."""
    return all(is_opened(v) for v in variables) and names(*of).isdisjoint(variables)


def places(cover: Cover, left: Term, right: Term = ZERO) -> list[tuple[Term, ...]]:
    """Return the index patterns of all cases of a cover; their indices occur in neither array."""
    need(len(cover) == left.ndim, "not a cover for every axis", left)
    axes = [
        cover_patterns(length, c, f"i{k}", left, right)
        for k, (length, c) in enumerate(zip(left.shape, cover, strict=True))
    ]
    return list(product(*axes))


def _cases(d: Cases, follow: Follow) -> Proof:
    need(d.left.shape == d.right.shape, "the shapes differ", d.left, d.right)
    at = places(d.cover, d.left, d.right)
    need(len(at) == len(d.parts), "not one equation for each case")
    parts = [follow(part) for part in d.parts]
    for place, part in zip(at, parts, strict=True):
        fits = part.left is entry(d.left, *place) and part.right is entry(d.right, *place)
        need(fits, "not the entries of that case", part.left, part.right)
    return _equal(d.left, d.right, *parts)


def _induction(d: Induction, follow: Follow) -> Proof:
    """A = C[B] and F(t, C[y]) = C[G(t, y)] for all t, y give iterate(A, F) = C[iterate(B, G)]."""
    left, inner = d.left, formed(d.inner)
    stacks = left.op == inner.op == "iterate" and left.args[0] is inner.args[0]
    need(stacks, "not two stacks of one depth", left, inner)
    base, step = follow(d.base), follow(d.step)
    t, y, hole = map(formed, (d.layer, d.state, d.hole))
    for v in (hole, y):
        need(_is_any_real(v) and v.shape == inner.shape, "not a variable of the stack's shape", v)
    need(left.finite and inner.finite, "a state may be infinite", left, inner)
    arbitrary = _ranges_over(t, left) and _are_arbitrary((t, y), left, inner, d.context)
    need(arbitrary, "layer and state are not arbitrary", t, y)

    def context(x: Term) -> Term:
        return substitute(d.context, d.hole, x)

    (_, start, body), (_, inner_start, inner_body) = left.args, inner.args
    first = base.left is start and base.right is context(inner_start)
    need(first, "not the base case", base.left, base.right)
    then = step.right is context(instantiate(inner_body, t, y))
    then = then and step.left is instantiate(body, t, context(y))
    need(then, "not the step", step.left, step.right)
    return _equal(left, context(inner), base, step)


def _witness(d: Witness, follow: Follow) -> Proof:
    """Conclude that an array exists from ``claim`` with the variable replaced by the value."""
    part, x = follow(d.part), formed(d.variable)
    left, right = map(formed, d.claim)
    need(d.relation in ("=", "!=", ">", ">="), f"not a relation: {d.relation!r}")
    shows = d.relation in (part.relation, *_WEAKER.get(part.relation, ()))
    need(shows, f"it shows {part.relation} and not {d.relation}", part.left)
    need(all(v.op in ("var", "index", "size") for v in d.free_of), "not variables")
    need(
        not free(d.value) & set(d.free_of),
        "it depends on a variable that it must not contain",
        d.value,
    )
    real = _is_any_real(x) and d.value.finite
    need(real, "only an array of any real numbers is shown to exist", x, d.value)
    need(x not in free(d.value), "it depends on itself", d.value)
    need(d.value.shape == x.shape, "not the required shape", d.value)
    inhabited(free(d.value) - names(left, right))
    for side, shown in ((left, part.left), (right, part.right)):
        need(substitute(side, d.variable, d.value) is shown, "not the claim", shown)
    return Proof(_KEY, "exists", part.left, part.right, part.assumes, d)


@Refusing("law")
def law(left: Term, right: Term, variables: tuple[Term, ...] = ()) -> Term:
    """Return the assumption that left = right for all values of the variables.

    A variable is a real number, an array of real numbers, or a natural number.
    """
    if not variables:
        return make("assumed equal", (left, right))
    good = len(set(variables)) == len(variables) and all(
        v.op == "var" and not v.args and v.data[1] in (*ANY_REAL, "natural") for v in variables
    )
    need(good, "not variables that may have any value", *variables)
    kinds = tuple((v.data[1], v.shape) for v in variables)
    return make("assumed equal", (bind(left, *variables), bind(right, *variables)), kinds)


def _assume(d: Assume, _: Follow) -> Proof:
    need(d.law.op == "assumed equal", "not a law", d.left)
    kinds: Any = d.law.data or ()
    need(len(kinds) == len(d.values), "not one value for each variable", d.left)
    for (kind, shape), value in zip(kinds, map(formed, d.values), strict=True):
        fits = value.shape == shape and value.finite and not value.loose
        fits = fits and (kind != "natural" or always_less(num(-1), value))
        need(fits, f"not a {kind} value of the shape in the law", value)
    sides = [instantiate(side, *d.values) for side in d.law.args]
    need(d.left is sides[0] and d.right is sides[1], "not the law", d.left, d.right)
    return _equal(d.left, d.right, more=frozenset({("equal", d.law)}))


def _lemma(d: Lemma, follow: Follow) -> Proof:
    part, lemma = follow(d.part), follow(d.lemma)
    need(lemma.relation == "=", "it is not an equation", lemma.left)
    used = names(*(a for _, a in lemma.assumes))
    need(used.isdisjoint(d.variables), "a variable is not arbitrary", *d.variables)
    shown = law(lemma.left, lemma.right, d.variables)
    inhabited(free(shown) - names(part.left, part.right))
    assumes = (part.assumes - {("equal", shown)}) | lemma.assumes
    need(part.relation in ("=", "!="), "only equations rest on it", part.left)
    return Proof(_KEY, part.relation, part.left, part.right, assumes)


def _natural_induction(d: NaturalInduction, follow: Follow) -> Proof:
    m, left, right = formed(d.variable), formed(d.left), formed(d.right)
    need(m.op == "var" and m.data[1] == "natural", "not a natural number", m)
    need(left.shape == right.shape, "the shapes differ", left, right)
    need(m not in d.variables, "the number may not be a further variable", m)
    apart = all(v is m or m not in free(v) for v in names(left, right))
    need(apart, "a variable ranges below the number", left, right)
    base, step = follow(d.base), follow(d.step)
    need(base.relation == step.relation == "=", "a part is not an equation")
    after = integer(add(m, ONE))
    for proof, at, says in ((base, ZERO, "the base case"), (step, after, "the step")):
        sides = (substitute(left, m, at), substitute(right, m, at))
        need((proof.left, proof.right) == sides, f"not {says}", proof.left)
    before = ("equal", law(left, right, d.variables))
    rest = base.assumes | (step.assumes - {before})
    need(names(*(a for _, a in rest)).isdisjoint((m, *d.variables)), "it is not arbitrary", m)
    return _equal(left, right, more=rest)


def squares(left: Term, right: Term) -> Term:
    """Return Σ (left − right)² over all entries of two arrays of equal shape."""
    at = [opened(n, left, right, f"k{k}") for k, n in enumerate(left.shape)]
    total = power(subtract(entry(left, *at), entry(right, *at)), 2)
    for i in reversed(at):
        total = make("sum", (i.args[0], bind(total, i)))
    return total


def _sum_of_squares(d: SumOfSquares, follow: Follow) -> Proof:
    part, left, right = follow(d.part), formed(d.left), formed(d.right)
    alike = left.shape == right.shape and left.finite and right.finite
    need(alike, "not two finite arrays of one shape", left, right)
    for n in left.shape:
        need(always_less(num(-1), n), "the number of entries may be negative", n)
    total = squares(left, right)
    need(part.left is total and part.right is ZERO, "not Σ (a − b)² = 0", total)
    return _equal(left, right, part)


def _left_inverse(d: LeftInverse, follow: Follow) -> Proof:
    part = follow(d.part)
    a, b = part.left.args if part.left.op == "matmul" else (part.left, part.left)
    square = a.ndim == 2 and a.shape == b.shape  # if no product, left is itself 1
    good = square and part.right.op == "eye" and a.finite and b.finite
    need(good, "not A B = 1 for square matrices", part.left, part.right)
    need(always_less(num(-1), a.shape[0]), "the number of rows may be negative", a.shape[0])
    turned = d.left is make("matmul", (b, a), shape=a.shape) and d.right is part.right
    need(turned, "not B A = 1", d.left, d.right)
    return _equal(d.left, d.right, part)


def _differ(d: Differ, follow: Follow) -> Proof:
    part, apart = follow(d.part), follow(d.apart)
    left, right = formed(d.left), formed(d.right)
    need(part.relation == apart.relation == "=", "a part is not an equation")
    need(left.shape == right.shape, "the shapes differ", left, right)
    numbers = not part.left.shape and part.left.finite and part.right.finite
    need(numbers, "not two finite numbers", part.left)
    gap = subtract(part.left, part.right)
    need(apart.left is gap, "not the difference of the two", apart.left, gap)
    certain, used = _signs(d.signs, left, right).nonzero(apart.right)
    need(certain, "its form does not show that it is not 0", apart.right)
    inhabited(names(part.left, part.right, apart.right) - names(left, right))
    assumes = (part.assumes - {("equal", law(left, right))}) | apart.assumes | used
    return Proof(_KEY, "!=", left, right, assumes)


def _sign(d: Sign, follow: Follow) -> Proof:
    array = formed(d.left)
    at = places(d.cover, array)
    signs = d.signs or ((),) * len(d.parts)
    good = len(at) == len(d.parts) == len(signs)
    need(good, "not one equation for each case")
    least, assumed = 2, frozenset[Assumption]()
    for place, part, steps in zip(at, map(follow, d.parts), signs, strict=True):
        need(part.relation == "=", "a part is not an equation", part.left)
        need(part.left is entry(array, *place), "not the entry of that case", part.left)
        inhabited(free(part.right) - free(part.left))
        certain, used = _signs(steps, part.left).sign(part.right)
        need(certain, "the form of the entry does not show its sign", part.right)
        least, assumed = min(least, certain), assumed | used | part.assumes
    return Proof(_KEY, ">" if least == 2 else ">=", array, ZERO, assumed)


@Refusing("close")
def close(
    proof: Proof, granted: Facts, claimed: tuple[object, ...], signs: tuple[SignStep, ...] = ()
) -> Proof:
    """Return the proof if it shows the claim and uses only granted assumptions.

    Every slice and entry in it must stay inside its axis, as shown by ``signs`` that rest on
    ``granted``; a fact used for this may not itself read where only a fact shows it to be inside.
    ``claimed`` is ("=" or "!=", left, right), (">" or ">=", array, 0), or ("exists", left, right,
    variable, free_of, relation of the two).  Raises :class:`Refused` with what the proof shows
    instead, or the assumptions that were not granted.
    """
    w = proof.witness
    made = (proof.relation, proof.left, proof.right, proof.assumes, w)
    need(_ISSUED.get(proof) == made, "this proof was not made by replay")
    shown: tuple[object, ...]
    if w is None:
        weaker = claimed[0] in _WEAKER.get(proof.relation, ())
        shown = (claimed[0] if weaker else proof.relation, proof.left, proof.right)
    else:
        shown = ("exists", *w.claim, w.variable, w.free_of, w.relation)
    need(shown == claimed, "it shows something else", proof.left, proof.right)
    terms = [t for t in (proof.left, proof.right, *shown) if isinstance(t, Term)]
    known = _signs(signs)
    _refuse_open(*terms)
    open_, used = unshown_ranges([*terms, *(t for a in proof.assumes for t in sides_of(a))], known)
    unshown, more = unshown_ranges([term for _, term in used], known)
    _refuse_open(*(term for _, term in used))
    extra = sorted(f"{name} {term!r}" for name, term in (proof.assumes | used) - granted)
    need(not extra, "assumptions that were not granted: " + "; ".join(extra))
    for one in (*open_, *unshown):
        raise Refused("it may read outside of its axis", one.reader, one.number)
    need(not more, "what shows a range reads outside of an axis", *(t for _, t in more))
    return proof


_REPLAY: dict[type, Any] = {
    Reflexive: _reflexive,
    Rewrite: _rewrite,
    Reverse: _reverse,
    Chain: _chain,
    Inside: _inside,
    Under: _under,
    Cases: _cases,
    Induction: _induction,
    Witness: _witness,
    Assume: _assume,
    Lemma: _lemma,
    NaturalInduction: _natural_induction,
    SumOfSquares: _sum_of_squares,
    LeftInverse: _left_inverse,
    Differ: _differ,
    Sign: _sign,
}
