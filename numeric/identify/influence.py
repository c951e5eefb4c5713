"""What a layer that takes tokens looks at: which tokens, whether their places, and chance."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..probes.base import Draw
from ..profile import unit_roundoff
from ..programs.identity import Part
from ..programs.subjects import Attention
from .visible import pattern

__all__ = ["layer_parts"]

TOKENS = 12


def layer_parts(code: Attention, draw: Draw, *, short: bool = False) -> Iterator[Part]:
    """Mask, positions and chance of a layer; ``short``: where its inner call was read already."""
    assert code.layer is not None  # who calls has seen it
    x = draw.normal(1, TOKENS, code.embed, salt=31)
    here = code.layer(x).double()
    again = code.layer(x).double()
    tol = 256 * unit_roundoff(draw.dtype) * code.embed * max(1.0, float(here.abs().max()))
    if float((here - again).abs().max()) > 0:
        yield Part("dropout in evaluation", True, "random in evaluation (dropout stays on)",
                   "two calls of the layer differ")  # fmt: skip
        return
    seen = _influence(code, x, draw)
    rule = pattern(seen)
    told = f"a change of one token, for each of {TOKENS} tokens"
    if not short:
        yield Part("scale", None, "scale not known", "only the layer as a whole can be called",
                   certain=False)  # fmt: skip
        value = {"rule": rule.name, "before": rule.before, "after": rule.after}
        yield Part("mask", value, rule.words, told, certain=rule.name != "irregular")
    last = torch.tensor([TOKENS - 1], device=x.device)
    order = torch.cat((draw.permutation(TOKENS - 1, salt=33), last))
    permuted = code.layer(x[:, order]).double()
    off = float((permuted[:, -1] - here[:, -1]).abs().max())
    looks = off > tol
    words = "looks at positions" if looks else "" if short else "without positions"
    yield Part("positions of tokens", looks, words,
               f"with the other tokens permuted the last output changes by {off:.1g}")  # fmt: skip


def _influence(code: Attention, x: Tensor, draw: Draw) -> Tensor:
    """Which outputs change with which token: (T, T), token s in column s."""
    assert code.layer is not None  # who calls has seen it
    changed = []
    for s in range(TOKENS):
        other = x.clone()
        other[:, s] += draw.normal(code.embed, salt=32) * 4
        changed.append((code.layer(other) - code.layer(x))[0].abs().amax(-1) > 0)
    return torch.stack(changed, dim=-1).cpu()
