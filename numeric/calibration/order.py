"""Infer the order in which sums, products and attention kernels add, from their results.

Put M at place i, −M at place j and 1 everywhere else, with M so large that it absorbs every 1 added
to it before −M: the result is the number of terms outside the smallest subtree of the sum that
contains both i and j.  Over all j the subtrees are those on the path from leaf i to the root, so
their number is the number of roundings of term i.  (FPRev, arXiv 2411.00442.)

Results with few digits cannot count to n.  There the 1s are inserted one part at a time, and a
subtree is identified by all its counts together.

A softmax sums weights, which have no sign.  With weight 1 at place i and δ = u (1 + ε) at a random
half of the others, a part of the sum with m weights adds round(m/2 (1 + ε)) units: m/2 if m is
even, (m + 1)/2 if it is odd, which is the case half of the time.  So the excess over m/2, over many
random halves, is a quarter of the number of roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import log

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from ..devices import unit_roundoff, wide_dtype
from .functions import Kernel, summed_by
from .record import ATTENTION, FULL, PRODUCT, SUM, bits_of

# The order in which an operation sums

Summed = Callable[[Tensor], Tensor]
"""A sum over the last axis of an array (cases, n)."""
STORED_ENTRIES = 1 << 25
PROBED_IN_FULL = 20_000
HALVES = 96


def magnitude(dtype: torch.dtype) -> tuple[float, float]:
    """M and the number used for 1, both exact in the dtype and far enough apart."""
    return (2.0**15, 2.0**-24) if dtype == torch.float16 else (2.0**100, 1.0)


def chunks_of(n: int, dtype: torch.dtype) -> int:
    """The most 1s that a result of the dtype can count; in float16 they are subnormal."""
    if torch.finfo(dtype).bits > 16:
        return n
    return (1 << (bits_of(dtype) - (dtype == torch.float16))) - 1


def patterns(n: int, leaf: int, dtype: torch.dtype, device: torch.device) -> Iterator[Tensor]:
    """Yield the sums for one leaf, as many at once as fit: (places j, parts, n)."""
    large, one = magnitude(dtype)
    part = chunks_of(n, dtype)
    places = torch.tensor([j for j in range(n) if j != leaf])
    starts = range(0, n, part)
    for some in torch.split(places, max(1, STORED_ENTRIES // (n * len(starts)))):
        cases = torch.zeros((len(some), len(starts), n), dtype=dtype, device=device)
        for k, start in enumerate(starts):
            cases[:, k, start : start + part] = one
        cases[..., leaf] = large
        rows = torch.arange(len(some))
        cases[rows, :, some] = -large
        yield cases


def depth_of(summed: Summed, n: int, leaf: int, dtype: torch.dtype, device: torch.device) -> int:
    """The number of roundings of leaf ``leaf`` in a sum of n terms.

    Raises ``ValueError`` if no result shows all 1s absorbed: then it is not a sum, and nothing can
    be inferred.
    """
    seen: set[tuple[float, ...]] = set()
    for cases in patterns(n, leaf, dtype, device):
        found = summed(cases.reshape(-1, n)).reshape(cases.shape[:2])
        seen.update(map(tuple, found.to("cpu", torch.float64).tolist()))
    if not any(set(counts) == {0.0} for counts in seen):
        raise ValueError(
            f"leaf {leaf} of {n} terms in {dtype}: wanted a sum in which a large term swallows all "
            f"others, got {sorted(seen)[:2]}"
        )
    return len(seen)


def leaves_of(n: int) -> tuple[int, ...]:
    """The first term, which is deepest in sums from left to right, and others unless n is large."""
    return (0,) if n > PROBED_IN_FULL else (0, n // 2, n - 1)


def digits_kept(
    summed: Summed, n: int, dtype: torch.dtype, device: torch.device
) -> tuple[int, bool]:
    """The number of binary digits of partial sums, and whether they are rounded to nearest.

    2ᵗ + 1 − 2ᵗ is 1 as long as partial sums have more than t digits.  Each of some terms takes the
    place of 1, with 2ᵗ and −2ᵗ at both ends of the order.  If digits are truncated, 2ᵗ plus 3/4 of
    its last digit is 2ᵗ.
    """
    one = 2.0**-10 if dtype == torch.float16 else 1.0
    last = _opposite(summed, n, dtype, device)
    terms = [k for k in (*leaves_of(n), n - 2, n // 4) if k not in (0, last)]
    powers = [t for t in range(1, 66) if 2.0**t * one <= torch.finfo(dtype).max]
    cases = torch.zeros((len(terms), len(powers), n), dtype=dtype, device=device)
    for row, k in enumerate(terms):
        for column, t in enumerate(powers):
            cases[row, column, 0], cases[row, column, last] = 2.0**t * one, -(2.0**t) * one
            cases[row, column, k] = one
    kept = summed(cases.reshape(-1, n)).reshape(cases.shape[:2]).to("cpu", torch.float64) == one
    bits = 1 + min(int(row.to(torch.int8).cumprod(0).sum()) for row in kept)
    return bits, _to_nearest(summed, n, dtype, device, bits, one, terms, last)


def _to_nearest(
    summed: Summed,
    n: int,
    dtype: torch.dtype,
    device: torch.device,
    bits: int,
    one: float,
    terms: list[int],
    last: int,
) -> bool:
    """Whether 2ᵗ + 3/2, with a last digit of 2, becomes 2ᵗ + 2, so that subtracting 2ᵗ gives 2."""
    top = 2.0**bits * one
    if top > torch.finfo(dtype).max:
        return True
    cases = torch.zeros((len(terms), n), dtype=dtype, device=device)
    for row, k in enumerate(terms):
        cases[row, 0], cases[row, last], cases[row, k] = top, -top, 1.5 * one
    left = summed(cases).to("cpu", torch.float64) / one
    return bool(((left == 2) | (left == 1.5)).all())  # 1.5: it was added to neither of the two


def _opposite(summed: Summed, n: int, dtype: torch.dtype, device: torch.device) -> int:
    """The tried place whose smallest subtree with place 0 has the most terms."""
    large, one = (2.0**15, 2.0**-10) if dtype == torch.float16 else magnitude(dtype)
    places = sorted({n - 1, n - 2, n // 2, n // 2 + 1, n // 3, 1, 2} - {0})
    few = 1 << (bits_of(dtype) - 2) if torch.finfo(dtype).bits == 16 else n
    cases = torch.zeros((len(places), n), dtype=dtype, device=device)
    cases[:, torch.linspace(0, n - 1, min(n, few)).long()] = one
    for row, place in enumerate(places):
        cases[row, 0], cases[row, place] = large, -large
    left = summed(cases).to("cpu", torch.float64)
    return places[int(left.argmin())]


def softmax_depth(
    softmax: Summed, n: int, dtype: torch.dtype, device: torch.device, leaf: int = 0
) -> int:
    """Estimate the number of roundings of one weight in the sum of n weights.

    ``softmax`` maps scores (cases, n) to the weight of place ``leaf``, whose score is 0.  The
    result is a mean over random halves plus two standard errors, so that it tends to be too large.
    """
    u = unit_roundoff(wide_dtype(dtype))
    generator = torch.Generator().manual_seed(n)
    half = torch.randint(2, (HALVES, n), generator=generator, dtype=torch.bool)
    half[:, leaf] = False
    scores = torch.where(half, log(u * (1 + 2.0**-12)), -float("inf")).to(dtype)
    scores[:, leaf] = 0
    parts = torch.split(scores, STORED_ENTRIES // n)
    weight = torch.cat([softmax(part.to(device)).to("cpu", torch.float64) for part in parts])
    units = ((1 - weight) / weight / (2 * u)).round()
    odd = (2 * units - half.sum(1)).clamp(min=0)
    mean, spread = float(odd.mean()), float(odd.std()) / HALVES**0.5
    return min(n - 1, int(2 * (mean + 2 * spread)) + 1)


# The sums, products and attention kernels whose order is measured, as sums over a last axis

WIDTHS = (1, 8, 16, 33, 64)
QUERIES = ((1, 0), (33, 0), (33, 32))
"""Number of queries and the row that is examined; the last of 33 may be alone in its block."""
FULL_QUERIES = ((32, 0), (288, 287), (800, 799))
"""The same for multiples of 32, which cover every query block size that torch's kernels choose."""


def sums() -> Iterator[tuple[str, Summed]]:
    """Yield ``torch.sum`` over the last axis and over the first."""
    yield f"{SUM}, last axis", lambda x: x.sum(-1)
    yield f"{SUM}, first axis", lambda x: x.mT.contiguous().sum(0)


def products() -> Iterator[tuple[str, int, Summed]]:
    """Yield products with a matrix of ones, (rows, k) @ (k, columns), their narrower side, the sum.

    Small and large, with both storage orders, and batched.
    """
    for width in WIDTHS:
        for rows, columns in dict.fromkeys(((64, width), (width, 64))):
            how = partial(_product, rows, columns)
            yield f"{PRODUCT} {rows} × k × {columns}", width, how
    yield f"{PRODUCT} 64 × k × 64, operands transposed", 64, partial(_product, 64, 64, rotated=True)
    yield f"{PRODUCT} 64 × k × 64, batched", 64, partial(_product, 64, 64, batched=True)


def _product(
    rows: int, columns: int, cases: Tensor, *, rotated: bool = False, batched: bool = False
) -> Tensor:
    """Sum over the last axis of (cases, n) by products of ``rows`` rows each; the last column."""
    n = cases.shape[-1]
    ones = torch.ones((n, columns), dtype=cases.dtype, device=cases.device)
    if rotated:
        ones = torch.ones((columns, n), dtype=cases.dtype, device=cases.device).mT
    spare = -len(cases) % rows
    if spare:
        cases = torch.cat((cases, cases.new_zeros((spare, n))))
    groups = cases.reshape(-1, rows, n)
    if batched:
        found = groups @ ones.expand(len(groups), n, columns)
    else:
        found = torch.stack(
            [(group.mT.contiguous().mT if rotated else group) @ ones for group in groups]
        )
    flat = found[..., -1].reshape(-1)
    return flat[: len(flat) - spare]


def kernels_of(device: torch.device) -> Iterator[tuple[str, Kernel]]:
    """Yield every backend of ``scaled_dot_product_attention`` that accepts calls on the device."""
    from ..implementations.scaled_dot_product import backends, with_backend

    for name, backend in backends(device).items():
        yield name, partial(_kernel, with_backend, backend.kind)


def _kernel(
    call: Callable[..., Tensor], kind: SDPBackend, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    found: Tensor = call(kind, query, key, value)
    return found


def attention_sums(
    name: str, kernel: Kernel, dtype: torch.dtype, device: torch.device
) -> Iterator[tuple[str, int, Summed]]:
    """Yield the sum over keys for some query, in calls with several numbers of queries."""
    for rows, row in (*QUERIES, *FULL_QUERIES):
        full = f"{FULL}, " if (rows, row) in FULL_QUERIES else ""
        what = f"{ATTENTION} {name}, {full}query {row + 1} of {rows}"
        yield what, rows, summed_by(kernel, rows, row, dtype, device)
