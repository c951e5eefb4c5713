"""Laws of what attention computes: order means nothing, weights add up to one, places are relative.

Code on queries, keys and values is compared with itself on changed inputs; values that are 1 at
one key read its weights.  A layer is compared with itself on changed tokens.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from ..identify.softmax import no_softmax, weights_are
from ..identify.weights import read_weights
from ..response import gap
from ..subjects import Attention
from .attention_lines import on_a_line
from .base import Outcome, not_asked, probe, undecided
from .influence import attend_sizes, influences, inputs, layer_sizes, named, told_matrix
from .scene import Scene, in_formats

__all__: list[str] = []

DECLARE = "declare attention:causal=false,positions=none to have it asked"


@probe("permutation", "layer")
@probe("permutation", "attention")
@in_formats
def permutation(scene: Scene) -> Outcome:
    """f(x P) = f(x) P for tokens x and every permutation P, where nothing tells tokens apart."""
    call = scene.tokens
    if call is None:
        return not_asked("there is no layer of tokens; order-of-keys is asked instead")
    one = scene.subject
    heads = one.heads if isinstance(one, Attention) else 3
    for b, t in layer_sizes(heads):
        x = scene.draw.normal(b, t, one.embed, salt=t)
        order = scene.draw.permutation(t)
        plain = scene.allow(call, x)
        seen = scene.differs(
            "tokens permuted gave the outputs permuted",
            ("the output of permuted tokens", call(x[:, order])),
            ("the permuted output", plain.output[:, order]), plain(), B=b, T=t, E=one.embed,
            tokens=x, order=order,
        )  # fmt: skip
        if seen.witness is None:
            continue
        return _judged(scene, call, seen)
    return seen


def _judged(scene: Scene, call: object, seen: Outcome) -> Outcome:
    """A layer that is not equivariant: at fault only where its declaration leaves no other reason.

    Positions that are relative leave equal tokens equal outputs; a mask hides some tokens.
    """
    embed, declared = scene.subject.embed, scene.declared
    x = scene.draw.normal(2, 8, embed, salt=81)
    reached = influences(call, x, scene) > 0  # type: ignore[arg-type]
    if declared.positions == "none" and declared.causal is False:
        return seen
    if not bool(reached.all()):
        if declared.causal is False:
            return seen
        return undecided(
            "permuted tokens gave other outputs, and some tokens do not reach others "
            f"({' '.join(told_matrix(reached))}): a mask that is not declared, or tokens that are "
            f"mixed with heads; {DECLARE}"
        )
    equal = scene.allow(call, x[:, :1].expand_as(x).contiguous())  # type: ignore[arg-type]
    alike = gap(equal.output, equal.output[:, :1].expand_as(equal.output)) <= equal()
    if declared.causal is False and not alike:
        return seen
    words = "relative" if alike else "absolute"
    return undecided(
        f"permuted tokens gave other outputs: the code looks at positions ({words}) that are not "
        f"declared, or is at fault; {DECLARE}"
    )


@probe("order-of-keys", "attention")
@in_formats
def order_of_keys(scene: Scene) -> Outcome:
    """a(q, k P, v P) = a(q, k, v) for every permutation P of the keys."""
    one = scene.subject
    for sizes in attend_sizes(one, scene.declared):
        q, k, v = inputs(scene, sizes)
        order = scene.draw.permutation(sizes[2])
        plain = scene.allow(lambda q, k, v: one.attend(q, k, v, None), q, k, v)
        seen = scene.differs(
            "keys and values permuted together gave the same output",
            ("the output for keys and values permuted",
             one.attend(q, k[:, :, order], v[:, :, order], None)),
            ("the output as they were", plain.output), plain(), **named(sizes), order=order,
        )  # fmt: skip
        if seen.witness is None:
            continue
        if scene.declared.causal is False:
            return seen
        shown = read_weights(one.attend, torch.zeros_like(q), k)[0, 0] > 0
        return undecided(
            "keys permuted gave another output: the code hides keys or looks at positions that are "
            f"not declared (keys seen: {' '.join(told_matrix(shown))}), or is at fault; {DECLARE}"
        )
    return seen


@probe("rows-sum-to-one", "attention")
@in_formats
def rows_sum_to_one(scene: Scene) -> Outcome:
    """Σ_j p_ij = 1: equal values come out as they are."""
    one = scene.subject
    if one.attend is None:
        return on_a_line(scene)
    for sizes in attend_sizes(one, scene.declared):
        q, k, _ = inputs(scene, sizes)
        b, t, _, h, g, d = sizes
        value = scene.draw.normal(b, g, 1, d, salt=4).expand_as(k).contiguous()
        plain = scene.allow(lambda q, k, v: one.attend(q, k, v, None), q, k, value)
        expected = value[:, :, :1].repeat_interleave(h // g, 1).expand(b, h, t, d)
        seen = scene.differs(
            "equal values came out as they went in",
            ("the output for equal values", plain.output), ("the value that went in", expected),
            plain(), **named(sizes),
        )  # fmt: skip
        if seen.witness is not None:
            # which head reads which group is another law: that one alone is not broken here
            ones = torch.ones_like(value)
            plain = scene.allow(lambda q, k, v: one.attend(q, k, v, None), q, k, ones)
            seen = scene.differs(
                "values of one came out as one",
                ("the sum of the weights of a query", plain.output),
                ("one", torch.ones_like(plain.output)), plain(), **named(sizes),
            )  # fmt: skip
        if seen.witness is not None:
            why = no_softmax(one, scene.draw)
            if why:
                return undecided(f"{seen.why}: {why}")
            told = weights_are(one, scene.draw)
            return replace(seen, why=f"{seen.why}: {told}") if told else seen
    return seen
