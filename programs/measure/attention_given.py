"""Laws of masks that are given: numbers are added to scores, and True means visible."""

from __future__ import annotations

import math

import torch

from ..identify.softmax import OWN, weights_are
from ..identify.weights import read_weights
from ..influence import told_matrix
from .attention_hidden import random_mask
from .base import Outcome, not_asked, probe
from .influence import attend_sizes, inputs, layer_sizes, named
from .scene import Scene, in_formats

__all__: list[str] = []


@probe("mask-adds", "attention")
@in_formats
def mask_adds(scene: Scene) -> Outcome:
    """p'_ij = p_ij exp(m_ij) / Σ_k p_ik exp(m_ik) for finite m, and for a mask of 0 and −inf."""
    one = scene.subject
    if one.attend is None or "float" not in one.masks:
        return not_asked("the code takes no mask of numbers")
    why = weights_are(one, scene.draw)
    if why == OWN:
        return not_asked("the weights are no softmax: what a mask adds is not seen in their ratios")
    for sizes in attend_sizes(one, scene.declared)[:4]:
        b, t, s, *_ = sizes
        q, k, _ = inputs(scene, sizes)
        zero = torch.zeros(b, 1, t, s, dtype=q.dtype, device=q.device)
        numbers = scene.draw.normal(b, 1, t, s, salt=94)
        numbers = numbers[:, :, :1].expand_as(numbers) if one.by_key else numbers
        infinite = zero.masked_fill(~random_mask(scene, sizes), -math.inf)
        plain = scene.allow(lambda q, k, m=zero: read_weights(one.attend, q, k, m), q, k)
        for mask, name in ((numbers, "random numbers"), (infinite, "0 and -inf")):
            after = scene.allow(lambda q, k, m=mask: read_weights(one.attend, q, k, m), q, k)
            raised = plain.output.double() * mask.double().exp()
            # what is missing from one without a mask is the share of a sink, which no mask changes
            sink = (1 - plain.output.double().sum(-1, keepdim=True)).clamp(min=0) if why else 0.0
            expected = raised / (raised.sum(-1, keepdim=True) + sink)
            # weights are multiplied by exp(m) and by one over their sum: at most exp(max m − min m)
            most = math.exp(float(numbers.max() - numbers.min())) if mask is numbers else 0.0
            least = float(raised.sum(-1).min())
            seen = scene.differs(
                "a mask of numbers added exactly these to the scores",
                (f"the weights under a mask of {name}", after.output),
                ("the weights without it, times exp(mask) and normalised", expected),
                after() + plain(max(most, 2 / least if least > 0 else 0.0)), **named(sizes),
                mask=mask[0, 0],
            )  # fmt: skip
            if seen.witness is not None:
                return seen
    return seen


@probe("true-means-visible", "attention")
@in_formats
def true_means_visible(scene: Scene) -> Outcome:
    """Weights are 0 where a mask of truth values is False; one that is all True changes nothing."""
    one = scene.subject
    if one.true_hides:
        return not_asked("True says in its masks that a key is hidden; they are turned round here")
    if one.attend is None or "bool" not in one.masks:
        return _true_means_counts(scene)
    for sizes in attend_sizes(one, scene.declared)[:4]:
        b, t, s, *_ = sizes
        q, k, v = inputs(scene, sizes)
        every = torch.ones(b, 1, t, s, dtype=torch.bool, device=q.device)
        plain = scene.allow(lambda q, k, v: one.attend(q, k, v, None), q, k, v)
        seen = scene.differs(
            "a mask that is all True changed nothing",
            ("the output under a mask that is all True", one.attend(q, k, v, every)),
            ("the output without a mask", plain.output), plain(), **named(sizes),
        )  # fmt: skip
        if seen.witness is not None:
            return seen
        mask = random_mask(scene, sizes)
        nothing = torch.zeros_like(q)
        without = read_weights(one.attend, nothing, k) != 0
        found = read_weights(one.attend, nothing, k, mask) != 0
        seen = scene.differs(
            "a mask of truth values hid what is False in it, and that alone",
            ("whether a weight is not 0", found.double()),
            ("whether the mask is True there", (mask & without).double()), 0.0,
            "a key has weight where the mask is False, or none where it is True", **named(sizes),
            mask=told_matrix(mask[0, 0]),
        )  # fmt: skip
        if seen.witness is not None:
            return seen
    return seen


def _true_means_counts(scene: Scene) -> Outcome:
    one = scene.subject
    if one.hide is None or one.layer is None:
        return not_asked("the code takes no mask of truth values")
    for b, t in layer_sizes(one.heads):
        x = scene.draw.normal(b, t, one.embed, salt=t)
        every = torch.ones(b, t, dtype=torch.bool, device=x.device)
        plain = scene.allow(one.layer, x)
        seen = scene.differs(
            "tokens that all count gave what the layer gives without a mask",
            ("the output under truth values that are all True", one.hide(x, every)),
            ("the output without them", plain.output), plain(), B=b, T=t, E=one.embed,
        )  # fmt: skip
        if seen.witness is not None:
            return seen
    return seen
