"""Definitions unfolded at the root, and induction on the layers of two stacks."""

from __future__ import annotations

from collections.abc import Callable

from .derivation import Derivation, Induction, Reflexive
from .normal_form.equations import chain, inside, reverse, rewrite
from .scalars import index
from .strategies import NotProved
from .terms import Term, free, instantiate, make, postorder, substitute

__all__ = ["by_definition", "by_induction", "unfoldings"]

Prove = Callable[[Term, Term], Derivation]


def by_definition(left: Term, right: Term) -> Derivation | None:
    """left = right if one becomes the other when outer definitions are unfolded."""
    rights = {step.right: step for step in unfoldings(right)}
    for step in unfoldings(left):
        if step.right in rights:
            return chain(step, reverse(rights[step.right]))
    return None


def unfoldings(t: Term) -> list[Derivation]:
    """The term as it stands, and with one, two, .. definitions at its root unfolded."""
    steps: list[Derivation] = [Reflexive(t)]
    while steps[-1].right.op == "named":
        steps.append(chain(steps[-1], rewrite("definition", steps[-1].right)))
    return steps


def _opened_stack(t: Term) -> Derivation:
    """The definitions on the way to a stack of layers inside a term, unfolded."""
    step = unfoldings(t)[-1]
    u = step.right
    if u.op == "iterate":
        return step
    for place, arg in enumerate(u.args):
        if any(part.op == "iterate" for part in postorder(arg)):
            return chain(step, inside(u, [(place, _opened_stack(arg))]))
    raise NotProved(f"one side is a stack of layers and the other has none: {t!r}")


def by_induction(left: Term, right: Term, prove: Prove) -> Derivation:
    """iterate(L, A, F) = C[iterate(L, B, G)], by induction on the layers.

    Raises :class:`NotProved` where the two sides are no stacks of one depth.
    """
    opened, other = unfoldings(left)[-1], _opened_stack(right)
    stack = opened.right
    inner = next((p for p in postorder(other.right) if p.op == "iterate" and p.shape), None)
    if inner is None:
        raise NotProved(f"one side is a stack of layers and the other has none: {right!r}")
    if stack.args[0] is not inner.args[0]:
        raise NotProved(
            f"the stacks have different depths: {stack.args[0]!r} and {inner.args[0]!r}"
        )
    hole = make("var", (), ("the stack", "real"), inner.shape)
    context = substitute(other.right, inner, hole)
    taken = {str(v.data) for v in free(stack) | free(inner)}
    layer = index(next(n for n in ("t", "layer", "layer'") if n not in taken), inner.args[0])
    state = make("var", (), ("Y", "real"), inner.shape)
    base = prove(stack.args[1], substitute(context, hole, inner.args[1]))
    step = prove(
        instantiate(stack.args[2], layer, substitute(context, hole, state)),
        substitute(context, hole, instantiate(inner.args[2], layer, state)),
    )
    proof = Induction(stack, other.right, context, hole, layer, state, base, step)
    return chain(opened, proof, reverse(other))
