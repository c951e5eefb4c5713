"""The definition itself, operation by operation, with softmax by ``torch.softmax``.

The softmax of the sources, exp(s_j) / Σ exp(s_k), overflows in float32 beyond s = 88; every program
first subtracts the row maximum, which changes nothing in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..attention_bound import softmax_bound
from ..row_selection import Replacement, never
from . import Implementation


def _softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1)


SOFTMAX = {"softmax": Replacement(_softmax, (-2,), never)}
SOFTMAX_BOUND = {"softmax": Replacement(softmax_bound, (-2,), never)}


def implementations(_device: torch.device) -> Sequence[Implementation]:
    """Return one implementation, on every device."""
    return [Implementation("eager")]
