"""Errors of elementary functions: computed in a dtype, against the same numbers in float64.

With v the exact value, u the roundoff inside the function and U that of the dtype, the constant c
is the least with |computed − v| ≤ c u |v| + (U − u) |v| + least on what was sampled.  In bfloat16
and float16 every number was tried, which is no sample; float32 has its exponents and mantissas
drawn uniformly, float64 is held against balls of python-flint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .record import FunctionRecord
from .units import least_of, name_of, normal_of, unit_of, wide_of

__all__ = [
    "FUNCTIONS", "MARGIN", "Function", "beyond_storing", "function_errors", "measured_error",
    "ratios", "softmax_error",
]  # fmt: skip

MARGIN = 1.25
"""Over the largest error of a sample; where every number was tried it is 1."""
DRAWS, BALLS, ROWS, PRECISION = 1 << 18, 3_000, 1 << 12, 120
Softmax = Callable[[Tensor, int], Tensor]
USELESS = 2.0**60
"""In the place of an infinite error, which a record cannot hold."""


@dataclass(frozen=True)
class Function:
    """A function with the range that is sampled, and the same function of balls.

    ``absolute`` errors are those of sines: an angle's error carries over whole.
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
)  # fmt: skip


def _every(dtype: torch.dtype) -> Tensor:
    """Every finite number of a dtype of 16 bits."""
    numbers = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    return numbers[numbers.isfinite()]


def _drawn(function: Function, dtype: torch.dtype, count: int) -> Tensor:
    """Half with exponents drawn uniformly, half drawn uniformly from what does not overflow."""
    generator = torch.Generator().manual_seed(len(function.name))
    info = torch.finfo(dtype)
    mantissa = 1 + torch.rand(count // 2, generator=generator, dtype=torch.float64)
    low, high = math.log2(info.smallest_normal) - 2, math.log2(info.max)
    exponent = low + (high - low) * torch.rand(count // 2, generator=generator, dtype=torch.float64)
    spread = torch.ldexp(mantissa, exponent.floor())
    if function.low < 0:
        spread = spread * (1 - 2 * torch.randint(2, (count // 2,), generator=generator))
    low, high = max(function.low, -64.0), min(function.high, 64.0)
    if function.name == "exp":  # to where the results are below normal numbers
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
    u, least = unit_of(wide_of(dtype)), least_of(dtype)
    error, exact = error[usable].nan_to_num(nan=math.inf), exact[usable]
    size = torch.ones_like(exact) if function.absolute else exact.abs()
    normal = size >= normal_of(dtype)
    over = (error - least - (unit_of(dtype) - u) * size).clamp(min=0) / (u * size)
    worst = min(float(over[normal].max()), USELESS)
    lost = float(error[~normal].clamp(max=USELESS).max()) if bool((~normal).any()) else 0.0
    told = "every number of the dtype" if low_dtype else f"{len(error):,} numbers drawn"
    told += ", against balls" if exact64 else ", against float64"
    return _record(function.name, dtype, worst, lost, told, every=low_dtype)


def _record(
    name: str, dtype: torch.dtype, error: float, lost: float, told: str, *, every: bool = False
) -> FunctionRecord:
    return FunctionRecord(
        function=name, dtype=name_of(dtype), error=error, lost=lost, sampled=told,
        used=error * (1 if every else MARGIN),
    )  # fmt: skip


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

    And the largest error of a weight that is below normal numbers.
    """
    u, low = unit_of(wide_of(dtype)), unit_of(dtype)
    stored = (4.04 * low if low > u else 0.0) * exact
    whole = torch.softmax(scores, -1)
    normal = whole > normal_of(dtype) * 2
    over = (error - stored - least_of(dtype)).clamp(min=0) / (u * exact)
    gone = (weights - whole).abs()[~normal].nan_to_num(nan=USELESS).clamp(max=USELESS)
    worst = float(over[normal].nan_to_num(nan=USELESS).max())
    return min(worst, USELESS), float(gone.max()) if len(gone) else 0.0


def ratios(scores: Tensor, weights: Tensor, *, balls: bool) -> tuple[Tensor, Tensor]:
    """exp(s_j), the weights over the largest one, and how far one is from the other at most.

    The largest score is 0.  The sum of the weights cancels, which has a bound of its own.
    """
    ratio = weights / weights.amax(-1, keepdim=True)
    exact = scores.exp()
    if not balls:
        return exact, (ratio - exact).abs()
    exponential = Function("exp", torch.exp, 0.0, 0.0, lambda b: b.exp())
    _, error = _against_balls(exponential, scores.reshape(-1), ratio.reshape(-1))
    return exact, error.reshape(scores.shape)


def _against_balls(
    function: Function, numbers: Tensor, computed: Tensor
) -> tuple[Tensor, Tensor]:
    """The exact values in float64, and how far the computed ones are from them at most."""
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
    """One record for each function and dtype, as they come."""
    for dtype in dtypes:
        for function in FUNCTIONS:
            yield measured_error(function, dtype, device)
        yield softmax_error(dtype, device)
