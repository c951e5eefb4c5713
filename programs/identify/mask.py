"""What code that makes a mask makes: its rule, alignment, what True says, what it hides with."""

from __future__ import annotations

import torch
from torch import Tensor

from ..draw import Draw
from ..identity import Identity, Part
from ..subjects import Mask
from .plain_numbers import told
from .visible import ALIGNED, pattern, read_on

__all__ = ["identify_mask"]

LARGE = 160


def identify_mask(code: Mask, draw: Draw) -> Identity:
    """Look at the masks of squares and of 3 queries with 7 keys; ``draw`` is not needed."""
    del draw
    square, wide = (_plane(code.mask(T, S)) for T, S in ((LARGE, LARGE), (3, 7)))
    visible, says = _visible(code, square)
    wide_visible, _ = _visible(code, wide)
    rule, keys = read_on(
        pattern(visible, wide_visible), lambda n: _visible(code, _plane(code.mask(n, n)))[0], LARGE
    )
    few = ", ".join(map(str, rule.counts[:8]))
    value = {"rule": rule.name, "before": rule.before, "after": rule.after,
             "window": rule.window, "counts": list(rule.counts[:16]),
             "ahead": rule.ahead}  # fmt: skip
    parts = [Part("mask", value, rule.words,
                  f"{keys} queries and keys, the first of which see {few}",
                  certain=rule.name != "irregular")]  # fmt: skip
    if rule.alignment:
        parts.append(Part("alignment", rule.alignment, ALIGNED[rule.alignment],
                          "3 queries and 7 keys"))  # fmt: skip
    dtype = str(square.dtype).removeprefix("torch.")
    truth = square.dtype == torch.bool
    parts.append(Part("polarity", says, f"True means {says}" if truth else says,
                      "as its maker says" if truth else "the values of the mask"))  # fmt: skip
    parts.append(Part("dtype", dtype, dtype, "the tensor"))
    answers: tuple[str, ...] = ()
    if truth and rule.name in ("mirrored", "inverted"):
        other = "hidden" if says == "visible" else "visible"
        answers = (f"is the mask causal? no: {rule.words}; it would be if True meant {other}",)
    return Identity("mask", tuple(parts), answers)


def _plane(mask: Tensor) -> Tensor:
    """The last two axes."""
    if mask.dim() < 2:
        raise ValueError(f"a mask has axes of queries and keys; this one is {tuple(mask.shape)}")
    return mask.detach().cpu().reshape(-1, *mask.shape[-2:])[0]


def _visible(code: Mask, mask: Tensor) -> tuple[Tensor, str]:
    """What is visible, and the words for how that is said."""
    if mask.dtype == torch.bool:
        if code.true_means == "visible":
            return mask, "visible"
        return ~mask, "hidden"
    least = float(mask.min())
    added = mask.double()
    if not code.adds and least >= 0 and set(torch.unique(added).tolist()) <= {0.0, 1.0}:
        return added > 0, "1 for visible, 0 for hidden"
    if least >= 0:
        return torch.ones_like(added, dtype=torch.bool), "numbers added to scores"
    hidden = added <= min(-1e3, least / 2)
    how = "−inf" if least == -torch.inf else told(least)
    return ~hidden, f"{how} added to what is hidden"
