"""Derive one equation of arrays: by equations at hand, normal forms at every entry, or induction.

Nothing here is trusted: what comes out is a derivation for the kernel to replay.
"""

from __future__ import annotations

from itertools import product

from .derivation import Cases, Derivation, Reflexive
from .facts import Equation, replaced, turned
from .kernel import Cover, Refused, cover_patterns
from .normal_form.angles import apart
from .normal_form.equations import chain, reverse, rewrite
from .normal_form.nests import flat
from .normal_form.normaliser import Normaliser, Split
from .rules import nonzero
from .scalars import ZERO, add, entry, integer, mul, num, number_of, split_integer
from .stack_induction import by_definition, by_induction, unfoldings
from .strategies import NotProved, angle_units, normalisers, split_options
from .terms import Term, postorder
from .unrolling import longest_written_out

__all__ = ["Meeting", "NotProved", "axis_cover", "derive", "places", "split_options"]


Meeting = tuple[tuple[Term, ...], Term]


def derive(
    left: Term,
    right: Term,
    assume: tuple[Equation, ...] = (),
    meeting: list[Meeting] | None = None,
) -> Derivation:
    """A derivation of left = right, with some equations at hand.

    ``meeting`` collects the normal form that both sides have at each index pattern.

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
        for way in (equation, turned(equation)):
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
    for norm in normalisers(left, right, assume):
        try:
            return _by_normal_forms(left, right, norm, meeting)
        except NotProved as error:
            failed = error if norm.assume else failed or error
    assert failed is not None
    raise failed


def _by_normal_forms(
    left: Term, right: Term, norm: Normaliser, meeting: list[Meeting] | None
) -> Derivation:
    """Normal forms on both sides; again with angles taken apart further, or in common parts."""
    together = Normaliser(norm.splits, norm.assume, choices=norm.choices, together=True)
    try:
        return _entrywise(left, right, together, norm.splits, meeting)
    except RecursionError:
        raise NotProved("the equations at hand lead in a circle") from None
    except NotProved as error:
        units = angle_units(error.forms)
        if not units and apart(together.angles):
            raise
    if any(len(part) > 1 for part in together.angles):
        try:
            return _entrywise(left, right, norm, norm.splits, meeting)
        except NotProved as error:
            units = angle_units(error.forms)
            if not units:
                raise
    again = Normaliser(norm.splits, norm.assume, choices=norm.choices, units=units)
    return _entrywise(left, right, again, norm.splits, meeting)


def places(array: Term, cover: Cover) -> list[tuple[Term, ...]]:
    """The index patterns of every case of a cover, as the kernel lists them."""
    axes = [
        cover_patterns(length, c, f"i{k}")
        for k, (length, c) in enumerate(zip(array.shape, cover, strict=True))
    ]
    return list(product(*axes))


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
    for place in places(left, cover):
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
    """a = b after multiplication with divisors that are certainly not 0, or None."""
    divisors: dict[Term, None] = {}
    for t in (*postorder(a), *postorder(b)):
        if t.op == "power" and t.data < 0 and not t.loose and nonzero(t.args[0])[0]:
            divisors.setdefault(t.args[0])
            for factor in flat(t.args[0]):
                divisors.setdefault(factor.args[0] if factor.op == "power" else factor)
    usable = tuple(x for x in divisors if x.op not in ("mul", "power") and nonzero(x)[0])
    try:
        return rewrite("ring", a, b, *usable) if usable else None
    except Refused:
        return None


def axis_cover(length: Term, splits: dict[Term, Split]) -> tuple[object, ...]:
    """The index patterns for one axis: literal, split where the statement splits it, or whole."""
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
