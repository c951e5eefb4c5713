"""Code that leaves torch, and code whose base is not known: no alarm, and its faults are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Attention, Rotary


def in_numpy(over: int = -1) -> Attention:
    """Attention that torch does not see: its numbers go through NumPy."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: None = None) -> Tensor:
        assert mask is None
        a, b, c = (x.double().numpy() for x in (q, k, v))
        scores = a @ b.swapaxes(-1, -2) / a.shape[-1] ** 0.5
        weights = np.exp(scores - scores.max(over, keepdims=True))
        weights = weights / weights.sum(over, keepdims=True)
        return torch.from_numpy(weights @ c).to(q.dtype)

    return Attention(name="in NumPy", attend=attend, heads=2, groups=2, width=8)


def verdicts(code: Any, *laws: str) -> dict[str, str]:
    return {one.law: one.verdict for one in examine(code, (Draw(),), laws)}


def test_what_numpy_rounds_is_allowed() -> None:
    found = verdicts(in_numpy(), "rows-sum-to-one", "shift-of-scores", "rows-of-batch-apart")
    assert set(found.values()) == {"holds"}, found


def test_a_fault_in_numpy_is_seen() -> None:
    assert verdicts(in_numpy(over=-2), "rows-sum-to-one") == {"rows-sum-to-one": "broken"}


def rotating(base: float = 10000.0, *, heard: bool = True) -> Rotary:
    """Rotary code of which no base is declared; unless ``heard``, it takes one and drops it."""
    used = base if heard else 10000.0

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        pairs = torch.arange(4, dtype=torch.float32) / 4
        angle = positions[:, None, :, None] * used**-pairs
        a, b = x.float()[..., 0::2], x.float()[..., 1::2]
        out = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())
        return torch.stack(out, -1).flatten(-2).to(x.dtype)

    return Rotary(
        name="rotating",
        rotate=rotate,
        width=8,
        make=lambda base=base: rotating(base, heard=heard),
        declared=DeclaredRotary(layout="interleaved"),
    )


def test_the_usual_base_is_no_news_where_none_is_declared() -> None:
    law = "follows-its-arguments"
    assert verdicts(rotating(), law) == {law: "holds"}
    assert verdicts(rotating(heard=False), law) == {law: "broken"}
