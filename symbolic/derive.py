"""Derive one equation of arrays: normal forms of both sides at every entry, or induction.

Nothing here is trusted: what comes out is a derivation for the kernel to replay.
"""

from __future__ import annotations

from itertools import product

from .derivation import Cases, Derivation, Induction, Reflexive
from .kernel import Cover, cover_patterns
from .normal_form.equations import chain, inside, reverse, rewrite
from .normal_form.normaliser import Normaliser, Split
from .scalars import ZERO, add, entry, index, integer, mul, num, number_of, split_integer
from .terms import Term, free, instantiate, make, postorder, substitute

__all__ = ["Meeting", "NotProved", "axis_cover", "derive", "places", "split_options"]


Meeting = tuple[tuple[Term, ...], Term]


class NotProved(Exception):
    """The two sides have different normal forms; the text shows them."""


def derive(
    left: Term,
    right: Term,
    assume: tuple[tuple[Term, Term], ...] = (),
    meeting: list[Meeting] | None = None,
) -> Derivation:
    """A derivation of left = right.

    ``meeting`` collects the normal form that both sides have at each index pattern.

    Raises :class:`NotProved` with the two normal forms of the first entry where they differ.
    """
    if left is right:
        return Reflexive(left)
    if left.shape != right.shape:
        raise NotProved(f"the shapes differ: {left.shape} and {right.shape}")
    unfolding = _by_definition(left, right)
    if unfolding is not None:
        return unfolding
    for side, other, turned in ((left, right, False), (right, left, True)):
        if _unfoldings(side)[-1].right.op == "iterate":
            found = _by_induction(side, other, assume)
            return reverse(found) if turned else found
    failed: NotProved | None = None
    for splits in split_options(left, right):
        try:
            return _entrywise(left, right, Normaliser(splits, assume), splits, meeting)
        except NotProved as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _by_definition(left: Term, right: Term) -> Derivation | None:
    """left = right if one becomes the other when outer definitions are unfolded."""
    rights = {step.right: step for step in _unfoldings(right)}
    for step in _unfoldings(left):
        if step.right in rights:
            return chain(step, reverse(rights[step.right]))
    return None


def _unfoldings(t: Term) -> list[Derivation]:
    """The term as it stands, and with one, two, .. definitions at its root unfolded."""
    steps: list[Derivation] = [Reflexive(t)]
    while steps[-1].right.op == "named":
        steps.append(chain(steps[-1], rewrite("definition", steps[-1].right)))
    return steps


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
        if a.right is not b.right:
            at = ", ".join(repr(i) for i in place)
            raise NotProved(
                f"the normal forms differ at entry ({at}):\n  left:  {a.right!r}\n"
                f"  right: {b.right!r}"
            )
        parts.append(chain(a, reverse(b)) if a.right is not a.left else reverse(b))
        met.append((place, a.right))
    if meeting is not None:
        meeting.extend(met)
    return Cases(left, right, cover, tuple(parts))


def axis_cover(length: Term, splits: dict[Term, Split]) -> tuple[object, ...]:
    """The index patterns for one axis: literal, split where the statement splits it, or whole."""
    count = number_of(length)
    if count is not None and count <= 8:
        return ("each",)
    kind, size = splits.get(length, ("", ZERO))
    if kind == "digits":
        blocks = split_integer(length, size)[0]
        return ("digits", blocks, size, axis_cover(blocks, splits), axis_cover(size, splits))
    if kind == "cut":
        second = integer(add(length, mul(num(-1), size)))
        return ("cut", size, axis_cover(size, splits), axis_cover(second, splits))
    return ("whole",)


def split_options(*terms: Term) -> list[dict[Term, Split]]:
    """Ways to take composite axes apart that the terms themselves use, at most six."""
    found: dict[Term, dict[Split, None]] = {}

    def note(length: Term, kind: str, size: Term) -> None:
        if number_of(length) is None and size is not length:
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
            length = part.shape[part.data]
            note(length, "cut", part.args[0].shape[part.data])
    choices = [[(length, split) for split in splits] for length, splits in found.items()]
    return [dict(choice) for choice in list(product(*choices))[:6]]


def _opened_stack(t: Term) -> Derivation:
    """The definitions on the way to a stack of layers inside a term, unfolded."""
    step = _unfoldings(t)[-1]
    u = step.right
    if u.op == "iterate":
        return step
    for place, arg in enumerate(u.args):
        if any(part.op == "iterate" for part in postorder(arg)):
            return chain(step, inside(u, [(place, _opened_stack(arg))]))
    raise NotProved(f"one side is a stack of layers and the other has none: {t!r}")


def _by_induction(left: Term, right: Term, assume: tuple[tuple[Term, Term], ...]) -> Derivation:
    opened, other = _unfoldings(left)[-1], _opened_stack(right)
    stack = opened.right
    inner = next(p for p in postorder(other.right) if p.op == "iterate")
    if stack.args[0] is not inner.args[0]:
        raise NotProved(
            f"the stacks have different depths: {stack.args[0]!r} and {inner.args[0]!r}"
        )
    hole = make("var", (), ("the stack", "real"), inner.shape)
    context = substitute(other.right, inner, hole)
    taken = {str(v.data) for v in free(stack) | free(inner)}
    layer = index(next(n for n in ("t", "layer", "layer'") if n not in taken), inner.args[0])
    state = make("var", (), ("Y", "real"), inner.shape)
    base = derive(stack.args[1], substitute(context, hole, inner.args[1]), assume)
    step = derive(
        instantiate(stack.args[2], layer, substitute(context, hole, state)),
        substitute(context, hole, instantiate(inner.args[2], layer, state)),
        assume,
    )
    proof = Induction(stack, other.right, context, hole, layer, state, base, step)
    return chain(opened, proof, reverse(other))
