"""Measure errors of elementary functions and of attention kernels against float64.

With v the exact value, u the roundoff inside the function and U that of the dtype, the constant c
is the least with |computed − v| ≤ c u |v| + (U − u) |v| + least on the sample.  In bfloat16 and
float16 every number is tried, so there is no sampling; float32 samples exponents and mantissas
uniformly; float64 is compared with balls of python-flint.

An attention kernel is called unchanged, on queries and keys whose scores are exact: with width 16
the scale is 1/4, queries are (4 a, 0, …) and keys (b, 0, …) with few digits, so that the score a b
is not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..devices import name_of, unit_roundoff, wide_dtype
from .record import FunctionRecord, KernelRecord, least_of, normal_of

# Errors of elementary functions in a dtype, against float64

MARGIN = 1.25
"""Factor on the largest error of a sample; 1 if every number of the dtype was tried."""
DRAWS, BALLS, ROWS, PRECISION = 1 << 18, 3_000, 1 << 12, 120
Softmax = Callable[[Tensor, int], Tensor]
USELESS = 2.0**60
"""Recorded instead of an infinite error, which JSON cannot represent."""


@dataclass(frozen=True)
class Function:
    """A function with its sampled range, and the same function on balls.

    ``absolute``: the error is absolute, as for sines, which keep the error of an angle.
    """

    name: str
    compute: Callable[[Tensor], Tensor]
    low: float
    high: float
    ball: Callable[[Any], Any]
    absolute: bool = False


def _power(k: int) -> Function:
    return Function(f"power {k}", lambda x: x**k, -64.0, 64.0, lambda b: b**k)


FUNCTIONS = (
    Function("exp", torch.exp, -750.0, 709.0, lambda b: b.exp()),
    Function("log", torch.log, 0.0, math.inf, lambda b: b.log()),
    Function("tanh", torch.tanh, -math.inf, math.inf, lambda b: b.tanh()),
    Function("sqrt", torch.sqrt, 0.0, math.inf, lambda b: b.sqrt()),
    Function("reciprocal", lambda x: 1 / x, -math.inf, math.inf, lambda b: 1 / b),
    Function("cos", torch.cos, -(2.0**40), 2.0**40, lambda b: b.cos(), absolute=True),
    Function("sin", torch.sin, -(2.0**40), 2.0**40, lambda b: b.sin(), absolute=True),
    *map(_power, (2, 3, 4, 5, 7)),
)


def _every(dtype: torch.dtype) -> Tensor:
    """Every finite number of a 16-bit dtype."""
    numbers = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    return numbers[numbers.isfinite()]


def _drawn(function: Function, dtype: torch.dtype, count: int) -> Tensor:
    """Draw half with uniform exponents, and half uniformly from a range without overflow."""
    generator = torch.Generator().manual_seed(len(function.name))
    info = torch.finfo(dtype)
    mantissa = 1 + torch.rand(count // 2, generator=generator, dtype=torch.float64)
    low, high = math.log2(info.smallest_normal) - 2, math.log2(info.max)
    exponent = low + (high - low) * torch.rand(count // 2, generator=generator, dtype=torch.float64)
    spread = torch.ldexp(mantissa, exponent.floor())
    if function.low < 0:
        spread = spread * (1 - 2 * torch.randint(2, (count // 2,), generator=generator))
    low, high = max(function.low, -64.0), min(function.high, 64.0)
    if function.name == "exp":  # down to subnormal results
        low, high = math.log(info.smallest_normal) - 20, min(function.high, math.log(info.max))
    even = low + (high - low) * torch.rand(count - count // 2, generator=generator).double()
    return torch.cat((spread, even)).to(dtype)


def measured_error(
    function: Function, dtype: torch.dtype, device: torch.device, count: int = DRAWS
) -> FunctionRecord:
    """The record of one function on one device."""
    low_dtype = torch.finfo(dtype).bits == 16
    exact64 = dtype == torch.float64
    numbers = _every(dtype) if low_dtype else _drawn(function, dtype, BALLS if exact64 else count)
    wide = numbers.double()
    numbers = numbers[(wide >= function.low) & (wide <= function.high)]
    computed = function.compute(numbers.to(device)).to("cpu", torch.float64)
    if exact64:
        exact, error = _against_balls(function, numbers, computed)
    else:
        exact = function.compute(numbers.double())
        error = (computed - exact).abs()
    usable = exact.isfinite() & (exact.abs() <= torch.finfo(dtype).max / 2)
    u, least = unit_roundoff(wide_dtype(dtype)), least_of(dtype)
    error, exact = error[usable].nan_to_num(nan=math.inf), exact[usable]
    size = torch.ones_like(exact) if function.absolute else exact.abs()
    normal = size >= normal_of(dtype)
    over = (error - least - (unit_roundoff(dtype) - u) * size).clamp(min=0) / (u * size)
    worst = min(float(over[normal].max()), USELESS)
    lost = float(error[~normal].clamp(max=USELESS).max()) if bool((~normal).any()) else 0.0
    told = "every number of the dtype" if low_dtype else f"{len(error):,} numbers drawn"
    told += ", against balls" if exact64 else ", against float64"
    return _record(function.name, dtype, worst, lost, told, every=low_dtype)


def _record(
    name: str, dtype: torch.dtype, error: float, lost: float, told: str, *, every: bool = False
) -> FunctionRecord:
    return FunctionRecord(
        function=name,
        dtype=name_of(dtype),
        error=error,
        lost=lost,
        sampled=told,
        used=error * (1 if every else MARGIN),
    )


def softmax_error(
    dtype: torch.dtype, device: torch.device, rows: int = ROWS, how: Softmax = torch.softmax
) -> FunctionRecord:
    """The record of a softmax over 64 scores: 0 and others down to where weights vanish."""
    generator = torch.Generator().manual_seed(3)
    info, exact64 = torch.finfo(dtype), dtype == torch.float64
    rows = rows // 16 if exact64 else rows
    deepest = -math.log(info.smallest_normal) * torch.rand(rows, 1, generator=generator).double()
    scores = -deepest * torch.rand(rows, 64, generator=generator, dtype=torch.float64)
    scores[torch.arange(rows), torch.randint(64, (rows,), generator=generator)] = 0
    scores = scores.to(dtype)
    weights = how(scores.to(device), -1).to("cpu", torch.float64)
    exact, error = ratios(scores.double(), weights, balls=exact64)
    over, gone = beyond_storing(error, exact, weights, scores.double(), dtype)
    told = f"{scores.numel():,} weights of 64 scores, against {'balls' if exact64 else 'float64'}"
    return _record("softmax", dtype, over, gone, told)


def beyond_storing(
    error: Tensor, exact: Tensor, weights: Tensor, scores: Tensor, dtype: torch.dtype
) -> tuple[float, float]:
    """The error of ratios of weights that storing both does not explain, in units inside.

    Also the largest error of a weight below the normal numbers.
    """
    u, low = unit_roundoff(wide_dtype(dtype)), unit_roundoff(dtype)
    stored = (4.04 * low if low > u else 0.0) * exact
    whole = torch.softmax(scores, -1)
    normal = whole > normal_of(dtype) * 2
    over = (error - stored - least_of(dtype)).clamp(min=0) / (u * exact)
    gone = (weights - whole).abs()[~normal].nan_to_num(nan=USELESS).clamp(max=USELESS)
    worst = float(over[normal].nan_to_num(nan=USELESS).max())
    return min(worst, USELESS), float(gone.max()) if len(gone) else 0.0


def ratios(scores: Tensor, weights: Tensor, *, balls: bool) -> tuple[Tensor, Tensor]:
    """exp(s_j), and a bound on the error of the weights divided by the largest one.

    The largest score is 0.  The sum of the weights cancels; it has its own bound.
    """
    ratio = weights / weights.amax(-1, keepdim=True)
    exact = scores.exp()
    if not balls:
        return exact, (ratio - exact).abs()
    exponential = Function("exp", torch.exp, 0.0, 0.0, lambda b: b.exp())
    _, error = _against_balls(exponential, scores.reshape(-1), ratio.reshape(-1))
    return exact, error.reshape(scores.shape)


def _against_balls(function: Function, numbers: Tensor, computed: Tensor) -> tuple[Tensor, Tensor]:
    """The exact values in float64, and bounds on the errors of the computed ones."""
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, PRECISION
    try:
        balls = [function.ball(arb(x)) for x in numbers.tolist()]
        exact = [float(b) if b.is_finite() else math.nan for b in balls]
        pairs = zip(balls, computed.tolist(), strict=True)
        error = [float(abs(arb(c) - b).upper()) if math.isfinite(c) else math.inf for b, c in pairs]
    finally:
        ctx.prec = before
    return torch.tensor(exact).double(), torch.tensor(error).double()


def function_errors(
    dtypes: tuple[torch.dtype, ...], device: torch.device
) -> Iterator[FunctionRecord]:
    """Yield a record for each function and dtype, as it is measured."""
    for dtype in dtypes:
        for function in FUNCTIONS:
            yield measured_error(function, dtype, device)
        yield softmax_error(dtype, device)


# Attention kernels, end to end: the error of a weight, the order of the sum, what is stored

Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Maps (1, heads, r, ℓ), (1, heads, n, ℓ), (1, heads, n, d) to (1, heads, r, d)."""
WIDTH, COLUMNS, KEYS = 16, 64, 64
FAR = 0.25  # of a roundoff: storing a number causes a much larger difference


def first_only(numbers: Tensor) -> Tensor:
    """Vectors of the width, zero except for their first entry."""
    vectors = torch.zeros((*numbers.shape, WIDTH), dtype=numbers.dtype, device=numbers.device)
    vectors[..., 0] = numbers
    return vectors


def weights_error(
    kernel: Kernel, dtype: torch.dtype, device: torch.device, heads: int = 64
) -> tuple[float, float, int]:
    """The largest error of the weight of one of 64 keys, that of tiny weights, and their number.

    The largest score is 0 and values are the unit vectors, so that the outputs are the weights.  In
    units of the accumulation, minus the error of storing weights and outputs in the dtype.
    """
    generator = torch.Generator().manual_seed(7)
    digits = 2 ** min(11, round(-math.log2(unit_roundoff(dtype))) - 1)
    deepest = -math.log(least_of(wide_dtype(dtype))) + 2
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
    """Whether scores are rounded to the dtype: then 64 and 64 plus a little have the same weight.

    False only if the weights are those of the exact scores.
    """
    little = 64 * unit_roundoff(dtype) * torch.tensor([0.2, 0.4, 0.7])
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
    """Whether weights are rounded to the dtype before they are multiplied with the values.

    With values −w and 1, w the weight of the second key relative to the first one rounded to the
    dtype, the output is the rounding error, and 0 if the kernel rounded the weight itself.  False
    only if the outputs are those of exact weights.
    """
    x = torch.linspace(0.25, 4, 61, dtype=torch.float64).to(dtype)
    weight = torch.exp(-x.double())
    rounded = weight.to(dtype)
    key = first_only(torch.stack((torch.zeros_like(x), -x), -1))
    value = first_only(torch.stack((-rounded, torch.ones_like(x)), -1))
    query = first_only(torch.full((len(x), 1), 4.0).to(dtype))
    found = kernel(*(v[None].to(device) for v in (query, key, value)))[0, :, 0, 0]
    exact = (weight - rounded.double()) / (1 + weight)
    far = (found.cpu().double() - exact).abs() > FAR * unit_roundoff(dtype) * weight / (1 + weight)
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
    """The kernel as a softmax: for scores (cases, n), the weight of one key."""

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
    """Measure one kernel in one dtype."""
    heads = 8 if dtype == torch.float64 else 64
    error, lost, count = weights_error(kernel, dtype, device, heads)
    low = torch.finfo(dtype).bits == 16
    return KernelRecord(
        kernel=name,
        dtype=name_of(dtype),
        error=error,
        used=error * MARGIN,
        lost=lost,
        scores_stored=low and scores_stored(kernel, dtype, device),
        weights_stored=low and weights_stored(kernel, dtype, device),
        sampled=f"{count:,} weights of 64 keys, against float64",
    )
