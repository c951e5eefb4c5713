"""One-dimensional convolution, with zeros beyond both ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition

__all__ = ["convolution", "windowed"]


def windowed(sequence: Callable[[Any], Any], kernel: Any, place: Any) -> Any:
    r"""Σ_k w_k x(t + k), k = −K, .., K, for a kernel: (2K+1,) and a sequence x on all numbers t.

    The machine-learning convention, which does not turn the kernel around.
    """
    xp = array_namespace(kernel)
    width = kernel.shape[0]
    offsets = xp.arange(width, device=kernel.device) - (width - 1) / 2
    return xp.sum(sequence(place[..., None] + offsets) * kernel, axis=-1)


@definition(r"\operatorname{conv}")
def convolution(tokens: Any, kernel: Any) -> Any:
    r"""y_t = Σ_k w_k x_{t+k}, where x is 0 beyond its ends: (n,), (2K+1,) -> (n,).

    Without padding, x_{t+k} is read as Σ_s [s = t + k] x_s.  LeCun et al. 1998, section II.
    """
    xp = array_namespace(tokens, kernel)
    places = xp.arange(tokens.shape[0], device=tokens.device)

    def padded(place: Any) -> Any:
        return xp.sum(xp.astype(place[..., None] == places, tokens.dtype) * tokens, axis=-1)

    return windowed(padded, kernel, places)
