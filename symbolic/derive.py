"""Derive one equation of arrays: by known equations, normal forms of all entries, or induction.

Nothing here is trusted: the result is a derivation for the kernel to replay.  A known equation (a
hypothesis, or a law at given values) carries its derivation, and the assumption it rests on is
recorded in the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import lcm

from .claim import Instance, Law
from .derivation import Assume, Cases, Derivation, Induction, Reflexive
from .kernel import Refused, law, places
from .normal_form.equations import chain, flat, inside, reverse, rewrite, under
from .normal_form.functions import disjoint
from .normal_form.normaliser import Normaliser, Split
from .normal_form.polynomial import Monomial, expand, known_nonzero
from .normal_form.sums import DEFAULT_LONGEST, longest_written_out
from .scalars import ONE, ZERO, add, entry, integer, mul, num, number_of, split_integer
from .terms import BINDERS, Opened, Term, instantiate, make, opened, postorder, substitute

# Known equations in a derivation: hypotheses, and laws at given values


@dataclass(frozen=True)
class Contraction:
    """``first @ second = 1`` of two given matrices, or of one and its transpose.

    ``kind`` is "inverse", "columns" (Kᵀ K = 1) or "rows" (K Kᵀ = 1; K is then both).
    """

    kind: str
    first: Term
    second: Term


def contraction(left: Term, right: Term) -> Contraction | None:
    """Return the contraction that an equation states, or None if it is not of the form A B = 1.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.namespace import eye
    >>> n, d = sizes("n d")
    >>> K = real(n, d).named("K")
    >>> contraction((K.mT @ K).term, eye(d).term).kind
    'columns'
    >>> contraction((K @ K.mT).term, eye(d).term)
    """
    for pair, one in ((left, right), (right, left)):
        if pair.op != "matmul" or one.op != "eye" or pair.shape != one.shape:
            continue
        a, b = pair.args
        if _transposed(a) is b and b.op == "var":
            return Contraction("columns", b, b)
        if _transposed(b) is a and a.op == "var":
            return Contraction("rows", a, a)
        if a.op == b.op == "var" and a is not b:
            return Contraction("inverse", a, b)
    return None


def _transposed(t: Term) -> Term | None:
    return t.args[0] if t.op == "permute" and t.data == (1, 0) else None


@dataclass(frozen=True)
class Equation:
    """left = right, with its derivation."""

    left: Term
    right: Term
    whole: Derivation

    def at(self, *places: Term) -> Derivation:
        """Return the derivation of the equation of the entries at these indices."""
        t = entry(self.left, *places)
        return inside(t, [(0, self.whole)]) if places else self.whole


def assumed(left: Term, right: Term) -> Equation:
    """Return left = right as an assumed equation."""
    return Equation(left, right, Assume(left, right, law(left, right)))


def equations(pairs: Iterable[tuple[Term, Term]]) -> tuple[Equation, ...]:
    """Return the equations that a statement assumes."""
    return tuple(assumed(left, right) for left, right in pairs)


def law_of(hypothesis: Law) -> Term:
    """Return a law of a statement as an assumption of the kernel."""
    claim = hypothesis.claim
    assert claim.right is not None
    return law(claim.left, claim.right, tuple(g.named(name).term for name, g in claim.variables))


def instance(fact: Instance) -> Equation:
    """Return a law at given values as an equation; with indices, as an equation of tables."""
    left, right = fact.sides
    opened = [left, right]
    for at in fact.indices:
        opened = [instantiate(t.args[1], at) for t in opened]
    whole: Derivation = Assume(opened[0], opened[1], law_of(fact.law), fact.values)
    for at, table in reversed(list(zip(fact.indices, _tables(left, fact.indices), strict=True))):
        whole = under(table, (at,), whole)
    return Equation(left, right, whole)


def _tables(t: Term, indices: tuple[Term, ...]) -> list[Term]:
    found = []
    for at in indices:
        found.append(t)
        t = instantiate(t.args[1], at)
    return found


def replaced(t: Term, *ways: Equation) -> Derivation:
    """Return the derivation that replaces left sides of equations by right sides throughout t.

    A part that occurs in several places is rewritten once.
    """
    known: dict[Term, Derivation] = {}
    for way in ways:
        known.setdefault(way.left, way.whole)
    if not known:
        return Reflexive(t)
    for part in postorder(t):
        if part in known:
            continue
        inner = [(k, known[arg]) for k, arg in enumerate(part.args) if arg in known]
        if not inner:
            continue
        if part.op not in BINDERS or part.loose:  # an open binder is derived where it is opened
            known[part] = inside(part, inner)
            continue
        last = len(part.args) - 1
        first = inside(part, [(k, one) for k, one in inner if k < last])
        u = first.right
        at = [opened(u.args[0], u, *(way.left for way in ways))]
        if u.op == "iterate":
            at.append(make("var", (), (Opened((u, "y")), "real"), u.shape))
        body = replaced(instantiate(u.args[-1], *at), *ways)
        known[part] = chain(first, under(u, tuple(at), body))
    return known.get(t, Reflexive(t))


def reversed_equation(equation: Equation) -> Equation:
    """Return the equation read from right to left."""
    return Equation(equation.right, equation.left, reverse(equation.whole))


# Ways to a normal form: how axes are split, and which equations are used


class NotProved(Exception):
    """Raised if no derivation was found; the message shows why, mostly two normal forms."""

    def __init__(self, text: str, forms: tuple[Term, ...] = ()) -> None:
        super().__init__(text)
        self.forms = forms


TOO_DEEP = "the search for a proof met its own limit: expressions nest too deeply"


def reason(error: Exception) -> str:
    """Return why a search ended without a derivation; a stack overflow is a limit of the search."""
    return TOO_DEEP if isinstance(error, RecursionError) else str(error)


FEW_OPERATIONS = 64
"""Absolute values of larger terms are not opened, nor maxima while conditions are negated."""


def normalisers(left: Term, right: Term, assume: tuple[Equation, ...]) -> Iterator[Normaliser]:
    """Yield ways to compute a normal form, in the order in which they are tried.

    Axes are split in different ways, and maxima opened or not; first without equations, then with
    one equation in either direction, then with all.  Later ways negate conditions on integers, so
    that [i < j] is 1 − [j <= i] and [j <= i] may be 1 + [i = j] − [i <= j], read minima as maxima
    and remainders of indices as differences, and express tanh by exponentials, which comes first
    if only one side has tanh.
    """
    options = split_options(left, right)
    each = [{p.op for p in postorder(side)} for side in (left, right)]
    ops = each[0] | each[1]
    small = sum(1 for side in (left, right) for _ in postorder(side)) <= FEW_OPERATIONS
    opened = "maximum" in ops or ("abs" in ops and small)
    by_exponentials = [Normaliser(splits, exponentials=True) for splits in options]
    if "tanh" in each[0] ^ each[1]:
        yield from by_exponentials
    single = [(way,) for e in assume for way in (e, reversed_equation(e)) if way.left.op != "eye"]
    at_hand = [(), *single, *([assume] if len(assume) > 1 else [])]
    for choices in (False, True) if opened else (False,):
        for facts in at_hand:
            for splits in options:
                yield Normaliser(splits, facts, choices=choices)
    compared = bool(ops & {"less", "less_equal"})
    for choices in ([False] if compared else []) + ([True] if opened and small else []):
        for equals in (False, True):
            for splits in options:
                yield Normaliser(splits, turned=True, equals=equals, choices=choices)
    yield from (
        Normaliser(splits, mirrored=op == "maximum", rests=op == "remainder")
        for op in ("maximum", "remainder")
        if op in ops
        for splits in options
    )
    if "tanh" in each[0] & each[1]:
        yield from by_exponentials


def angle_units(forms: tuple[Term, ...]) -> dict[Monomial, int]:
    """Return into how many parts each angle must be divided for the forms to be comparable."""
    parts: dict[Monomial, int] = {}
    for t in (p for form in forms for p in postorder(form)):
        if t.op in ("cos", "sin") and not t.loose:
            for monomial, c in expand(t.args[0]).items():
                parts[monomial] = lcm(parts.get(monomial, 1), c.denominator)
    return {monomial: count for monomial, count in parts.items() if count > 1}


def split_options(*terms: Term) -> list[dict[Term, Split]]:
    """Return at most six ways to split composite axes, taken from the terms themselves."""
    found: dict[Term, dict[Split, None]] = {}

    def note(length: Term, kind: str, size: Term) -> None:
        # Digits of 1 leave the whole length, to be split again; others may leave a rest.
        digits = size is not ONE and number_of(split_integer(length, size)[1]) == 0
        fits = kind == "cut" or digits
        if fits and _stays_whole(length) and size is not length:
            found.setdefault(length, {}).setdefault((kind, size))

    for part in {p: None for t in terms for p in postorder(t)}:
        if part.op == "reshape":
            for before, after in part.data:
                for axes, shape in ((before, part.args[0].shape), (after, part.shape)):
                    lengths = [shape[axis] for axis in axes]
                    while len(lengths) > 1:
                        note(integer(mul(*lengths)), "digits", lengths.pop())
        elif part.op == "slice":
            axis, step = part.data
            length = part.args[0].shape[axis]
            start = part.args[1]
            if step > 1:
                note(length, "digits", num(step))
            else:
                note(length, "cut", part.shape[axis] if number_of(start) == 0 else start)
        elif part.op == "concat":
            rest = part.shape[part.data]
            for arg in part.args[:-1]:
                first = arg.shape[part.data]
                note(rest, "cut", first)
                rest = integer(add(rest, mul(num(-1), first)))
    choices = [[(length, split) for split in splits] for length, splits in found.items()]
    return [dict(choice) for choice in list(product(*choices))[:6]]


def _stays_whole(length: Term) -> bool:
    """Whether an axis is not literal or, in a program, too long to be written out."""
    count, most = number_of(length), longest_written_out()
    return count is None or (most < DEFAULT_LONGEST and count > most)


# Definitions unfolded at the root, and induction on the layers of two stacks

Prove = Callable[[Term, Term], Derivation]


def by_definition(left: Term, right: Term) -> Derivation | None:
    """Derive left = right by unfolding definitions at the roots, or return None."""
    rights = {step.right: step for step in unfoldings(right)}
    for step in unfoldings(left):
        if step.right in rights:
            return chain(step, reverse(rights[step.right]))
    return None


def unfoldings(t: Term) -> list[Derivation]:
    """Return derivations to the term itself and with 1, 2, .. definitions at its root unfolded."""
    steps: list[Derivation] = [Reflexive(t)]
    while steps[-1].right.op == "named":
        steps.append(chain(steps[-1], rewrite("definition", steps[-1].right)))
    return steps


def _opened_stack(t: Term) -> Derivation:
    """Unfold the definitions above a stack of layers inside a term."""
    step = unfoldings(t)[-1]
    u = step.right
    if u.op == "iterate":
        return step
    for place, arg in enumerate(u.args):
        if any(part.op == "iterate" for part in postorder(arg)):
            return chain(step, inside(u, [(place, _opened_stack(arg))]))
    raise NotProved(f"one side is a stack of layers and the other has none: {t!r}")


def by_induction(left: Term, right: Term, prove: Prove) -> Derivation:
    """Derive iterate(L, A, F) = C[iterate(L, B, G)] by induction on the layers.

    Raises :class:`NotProved` if the two sides are not stacks of the same depth.
    """
    unfolded, other = unfoldings(left)[-1], _opened_stack(right)
    stack = unfolded.right
    inner = next((p for p in postorder(other.right) if p.op == "iterate" and p.shape), None)
    if inner is None:
        raise NotProved(f"one side is a stack of layers and the other has none: {right!r}")
    if stack.args[0] is not inner.args[0]:
        raise NotProved(
            f"the stacks have different depths: {stack.args[0]!r} and {inner.args[0]!r}"
        )
    hole = make("var", (), (Opened(("the stack",)), "real"), inner.shape)
    context = substitute(other.right, inner, hole)
    layer = opened(inner.args[0], stack, inner, "t")
    state = make("var", (), (Opened((stack, inner, "Y")), "real"), inner.shape)
    base = prove(stack.args[1], substitute(context, hole, inner.args[1]))
    step = prove(
        instantiate(stack.args[2], layer, substitute(context, hole, state)),
        substitute(context, hole, instantiate(inner.args[2], layer, state)),
    )
    proof = Induction(stack, inner, context, hole, layer, state, base, step)
    return chain(unfolded, proof, reverse(other))


# The derivation of one equation of arrays

Meeting = tuple[tuple[Term, ...], Term]


def derive(
    left: Term,
    right: Term,
    assume: tuple[Equation, ...] = (),
    meeting: list[Meeting] | None = None,
    refuted: Callable[[], bool] | None = None,
) -> Derivation:
    """Return a derivation of left = right that may use the equations in ``assume``.

    ``meeting`` collects the common normal form of both sides at each index pattern.  If the first
    way to a normal form fails and there are no equations, the search stops if ``refuted`` returns
    True.

    Raises :class:`NotProved` with the two normal forms of the first entry where they differ.
    """
    if left is right:
        return Reflexive(left)
    if left.shape != right.shape:
        raise NotProved(f"the shapes differ: {left.shape} and {right.shape}")
    unfolding = by_definition(left, right)
    if unfolding is not None:
        return unfolding
    for equation in assume:
        for way in (equation, reversed_equation(equation)):
            found = replaced(left, way)
            if found.right is right:
                return found
    failed: NotProved | None = None
    for side, other, back in ((left, right, False), (right, left, True)):
        if unfoldings(side)[-1].right.op == "iterate":
            try:
                found = by_induction(side, other, lambda a, b: derive(a, b, assume))
            except (NotProved, Refused) as error:
                failed = failed or NotProved(str(error))
                continue
            return reverse(found) if back else found
    return _by_some_normal_form(left, right, assume, meeting, failed, refuted)


def _by_some_normal_form(
    left: Term,
    right: Term,
    assume: tuple[Equation, ...],
    meeting: list[Meeting] | None,
    failed: NotProved | None,
    refuted: Callable[[], bool] | None,
) -> Derivation:
    ways = normalisers(left, right, assume)
    try:
        return _by_normal_forms(left, right, next(ways), meeting)
    except NotProved as error:
        failed = failed or error
    if not assume and refuted is not None and refuted():
        raise failed
    for norm in ways:
        try:
            return _by_normal_forms(left, right, norm, meeting)
        except NotProved as error:
            failed = error if norm.assume else failed
    raise failed


def _by_normal_forms(
    left: Term, right: Term, norm: Normaliser, meeting: list[Meeting] | None
) -> Derivation:
    """Compare normal forms; if they differ, again with angles split further or in common units."""
    together = norm.changed(together=True)
    try:
        return _entrywise(left, right, together, norm.splits, meeting)
    except RecursionError:
        circle = "the assumed equations rewrite in a circle"
        raise NotProved(circle if norm.assume else TOO_DEEP) from None
    except NotProved as error:
        units = angle_units(error.forms)
        if not units and disjoint(together.angles):
            raise
    if any(len(part) > 1 for part in together.angles):
        try:
            return _entrywise(left, right, norm, norm.splits, meeting)
        except NotProved as error:
            units = angle_units(error.forms)
            if not units:
                raise
    again = norm.changed(units=units)
    return _entrywise(left, right, again, norm.splits, meeting)


def _entrywise(
    left: Term,
    right: Term,
    norm: Normaliser,
    splits: dict[Term, Split],
    meeting: list[Meeting] | None,
) -> Derivation:
    cover = tuple(axis_cover(length, splits) for length in left.shape)
    parts: list[Derivation] = []
    met: list[Meeting] = []
    for place in places(cover, left, right):
        a, b = norm(entry(left, *place)), norm(entry(right, *place))
        rational = _rational(a.right, b.right) if a.right is not b.right else None
        if rational is not None:
            parts.append(chain(a, rational, reverse(b)))
            met.append((place, b.right))
            continue
        if a.right is not b.right:
            at = ", ".join(repr(i) for i in place)
            raise NotProved(
                f"the normal forms differ at entry ({at}):\n  left:  {a.right!r}\n"
                f"  right: {b.right!r}",
                (a.right, b.right),
            )
        parts.append(chain(a, reverse(b)) if a.right is not a.left else reverse(b))
        met.append((place, a.right))
    if meeting is not None:
        meeting.extend(met)
    return Cases(left, right, cover, tuple(parts))


def _rational(a: Term, b: Term) -> Derivation | None:
    """Derive a = b by the ring rule with divisors that are certainly not 0, or return None."""
    divisors: dict[Term, None] = {}
    for t in (*postorder(a), *postorder(b)):
        if t.op == "power" and t.data < 0 and not t.loose and known_nonzero(t.args[0]):
            divisors.setdefault(t.args[0])
            for factor in flat(t.args[0]):
                divisors.setdefault(factor.args[0] if factor.op == "power" else factor)
    usable = tuple(x for x in divisors if x.op not in ("mul", "power") and known_nonzero(x))
    try:
        return rewrite("ring", a, b, *usable) if usable else None
    except Refused:
        return None


def axis_cover(length: Term, splits: dict[Term, Split]) -> tuple[object, ...]:
    """Return the cover of one axis: each literal index, split as the statement does, or whole."""
    count = number_of(length)
    if count is not None and count <= longest_written_out():
        return ("each",)
    kind, size = splits.get(length, ("", ZERO))
    if kind == "digits":
        blocks = split_integer(length, size)[0]
        return ("digits", blocks, size, axis_cover(blocks, splits), axis_cover(size, splits))
    if kind == "cut":
        second = integer(add(length, mul(num(-1), size)))
        return ("cut", size, axis_cover(size, splits), axis_cover(second, splits))
    return ("whole",)
