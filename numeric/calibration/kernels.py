"""Attention kernels, end to end: the error of a weight, the order of the sum, what is stored.

The kernel is called as it is, on queries and keys whose scores are exact: with width 16 the scale
is 1/4, queries are (4 a, 0, …), keys (b, 0, …) with few digits, so that score a b is not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .functions import MARGIN, beyond_storing, ratios
from .record import KernelRecord
from .units import least_of, name_of, unit_of, wide_of

__all__ = ["Kernel", "kernel_record", "summed_by", "weight_of"]

Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(1, heads, r, ℓ), (1, heads, n, ℓ), (1, heads, n, d) to (1, heads, r, d)."""
WIDTH, COLUMNS, KEYS = 16, 64, 64
FAR = 0.25  # of a roundoff: whether a number was stored is told by much more


def first_only(numbers: Tensor) -> Tensor:
    """Vectors of the width, zero but for their first entry."""
    vectors = torch.zeros((*numbers.shape, WIDTH), dtype=numbers.dtype, device=numbers.device)
    vectors[..., 0] = numbers
    return vectors


def weights_error(
    kernel: Kernel, dtype: torch.dtype, device: torch.device, heads: int = 64
) -> tuple[float, float, int]:
    """The largest error of the weight of one of 64 keys, that of tiny ones, and how many.

    The largest score is 0, values are the unit vectors, so that the outputs are the weights.  In
    units of the accumulation, without what storing weights and outputs in the dtype may do.
    """
    generator = torch.Generator().manual_seed(7)
    digits = 2 ** min(11, round(-math.log2(unit_of(dtype))) - 1)
    deepest = -math.log(least_of(wide_of(dtype))) + 2
    a = 1 + torch.randint(digits, (32,), generator=generator).double() / digits
    b = torch.rand(heads, KEYS, generator=generator).double() * deepest / 2
    parts = torch.frexp(b * torch.rand(heads, 1, generator=generator).double())
    b = torch.ldexp((parts.mantissa * digits).floor() / digits, parts.exponent)
    b[torch.arange(heads), torch.randint(KEYS, (heads,), generator=generator)] = 0
    query = first_only(4 * a.to(dtype)).expand(heads, 32, WIDTH)
    value = torch.eye(KEYS, dtype=dtype).expand(heads, KEYS, KEYS)
    found = kernel(*(x[None].to(device) for x in (query, first_only(-b.to(dtype)), value)))
    weights = found[0].to("cpu", torch.float64)
    scores = -a[None, :, None] * b[:, None, :]
    exact, error = ratios(scores, weights, balls=dtype == torch.float64)
    worst, lost = beyond_storing(error, exact, weights, scores, dtype)
    return worst, lost, error.numel()


def scores_stored(kernel: Kernel, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether scores are rounded to the dtype: 64 and a little more have one weight then.

    "No" is said only if the weights are those of the exact scores.
    """
    little = 64 * unit_of(dtype) * torch.tensor([0.2, 0.4, 0.7])
    query = torch.zeros((3, 1, WIDTH), dtype=dtype)
    query[..., :2] = 4
    key = torch.zeros((3, 2, WIDTH), dtype=dtype)
    key[:, :, 0], key[:, 1, 1] = 64, little.to(dtype)
    value = torch.eye(2, WIDTH, dtype=dtype).expand(3, 2, WIDTH)
    found = kernel(*(x[None].to(device) for x in (query, key, value)))[0, :, 0, :2]
    exact = torch.softmax(key[..., :2].double().sum(-1), -1)
    even = (exact[:, 1] - 0.5).abs()
    return bool(((found.cpu().double() - exact).abs().amax(-1) > FAR * even).any())


def weights_stored(kernel: Kernel, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether weights are rounded to the dtype before they meet the values.

    With values −w and 1, w the weight of the second key relative to the first one rounded to the
    dtype, the output is what the rounding took from it, and 0 if the kernel rounded it itself.
    "No" is said only if the outputs are those of exact weights.
    """
    x = torch.linspace(0.25, 4, 61, dtype=torch.float64).to(dtype)
    weight = torch.exp(-x.double())
    rounded = weight.to(dtype)
    key = first_only(torch.stack((torch.zeros_like(x), -x), -1))
    value = first_only(torch.stack((-rounded, torch.ones_like(x)), -1))
    query = first_only(torch.full((len(x), 1), 4.0).to(dtype))
    found = kernel(*(v[None].to(device) for v in (query, key, value)))[0, :, 0, 0]
    exact = (weight - rounded.double()) / (1 + weight)
    far = (found.cpu().double() - exact).abs() > FAR * unit_of(dtype) * weight / (1 + weight)
    return bool(far.any())


def summed_by(
    kernel: Kernel, rows: int, row: int, dtype: torch.dtype, device: torch.device
) -> Callable[[Tensor], Tensor]:
    """The kernel as a sum of values over keys of equal scores, times n, in one row of several."""

    def summed(cases: Tensor) -> Tensor:
        n = cases.shape[-1]
        heads = -(-len(cases) // COLUMNS)
        value = torch.zeros((heads * COLUMNS, n), dtype=dtype, device=device)
        value[: len(cases)] = cases
        value = value.reshape(heads, COLUMNS, n).mT.contiguous()
        key = torch.zeros((1, heads, n, WIDTH), dtype=dtype, device=device)
        query = first_only(torch.full((1,), 4.0, dtype=dtype, device=device))
        found = kernel(query.expand(1, heads, rows, WIDTH), key, value[None])
        flat: Tensor = found[0, :, row].reshape(-1)[: len(cases)]
        return flat * n

    return summed


def weight_of(
    kernel: Kernel, rows: int, leaf: int, device: torch.device
) -> Callable[[Tensor], Tensor]:
    """The kernel as a softmax: for scores (cases, n) the weight of one key."""

    def weight(scores: Tensor) -> Tensor:
        query = first_only(torch.full((1,), 4.0, dtype=scores.dtype, device=device))
        key = first_only(scores)[None]
        value = torch.zeros((scores.shape[-1], WIDTH), dtype=scores.dtype, device=device)
        value[leaf, 0] = 1
        heads = len(scores)
        found = kernel(
            query.expand(1, heads, rows, WIDTH), key, value.expand(1, heads, *value.shape)
        )
        return found[0, :, rows // 2, 0]

    return weight


def kernel_record(
    name: str, kernel: Kernel, dtype: torch.dtype, device: torch.device
) -> KernelRecord:
    """What one kernel does in one dtype."""
    heads = 8 if dtype == torch.float64 else 64
    error, lost, count = weights_error(kernel, dtype, device, heads)
    low = torch.finfo(dtype).bits == 16
    return KernelRecord(
        kernel=name, dtype=name_of(dtype), error=error, used=error * MARGIN, lost=lost,
        scores_stored=low and scores_stored(kernel, dtype, device),
        weights_stored=low and weights_stored(kernel, dtype, device),
        sampled=f"{count:,} weights of 64 keys, against float64",
    )  # fmt: skip
