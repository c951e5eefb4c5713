"""Read a bias as a function of the offset, key minus query, up to a constant for each query.

Softmax ignores a number added to a whole row, so under a causal mask a bias s·key is equivalent to
−s·(query − key).  Each row is therefore taken relative to its value at the query's own key.
Places of a window have an offset on each of its axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff

ENTRIES = 1 << 22  # processed together
HIDING = -1e4  # smaller values hide a key and do not depend on its offset


def heads_of(bias: Tensor, T: int, S: int) -> Tensor:
    """Return a bias (.., H, r, n), or one that broadcasts to it, as (H, r, n) in float64.

    Raises ``ValueError`` for another shape.
    """
    shape = tuple(bias.shape)
    if bias.dim() < 2 or shape[-2] not in (1, T) or shape[-1] not in (1, S):
        raise ValueError(f"the bias of {T} queries and {S} keys is (heads, {T}, {S}); got {shape}")
    flat = bias.detach().cpu().reshape(-1, *shape[-2:])
    return flat.double().expand(flat.shape[0], T, S)


@dataclass(frozen=True)
class ByOffset:
    """f of each head: ``values`` (H, 2n − 1) at offsets −(n − 1) .. n − 1, NaN where hidden.

    ``off``: the largest difference between entries of one offset, found between ``at`` (head,
    query, key) and ``like`` (query, key).  ``tol``: what rounding explains.  ``own``: whether the
    constant subtracted from each row differs between rows.
    """

    values: Tensor
    off: float
    at: tuple[int, int, int]
    like: tuple[int, int]
    tol: float
    own: bool

    @property
    def only(self) -> bool:
        """Whether the bias depends on the offset alone."""
        return self.off <= self.tol

    def past(self) -> Tensor:
        """f at distances 0, 1, .., n − 1 before the query: (H, n)."""
        n = (self.values.shape[1] + 1) // 2
        return self.values[:, :n].flip(-1)

    def future(self) -> Tensor:
        """f at distances 0, 1, .., n − 1 after the query: (H, n)."""
        n = (self.values.shape[1] + 1) // 2
        return self.values[:, n - 1 :]


def by_offset(bias: Tensor, dtype: torch.dtype, *, causal: bool = False) -> ByOffset:
    """Read a square bias (H, n, n) that was computed in a dtype.

    If ``causal``, keys after the query are left out.  Comparing two entries of one offset, each
    relative to the own-key entry of its row, involves four numbers rounded up to three times each:
    12 u of the largest.  Each may be a product of two vectors whose angles, position times
    frequency, up to n, are rounded twice: 16 n u of it, in float32 or finer.  Raises ``ValueError``
    if a query does not see its own key.
    """
    n = bias.shape[-1]
    t, s = torch.arange(n)[:, None], torch.arange(n)[None, :]
    seen = bias.isfinite() & (bias > HIDING)
    if causal:
        seen = seen & (s <= t)
    own = bias.diagonal(dim1=-2, dim2=-1)
    if not bool(own.isfinite().all()):
        raise ValueError("a query does not see its own key, from which offsets are counted")
    g = torch.where(seen, bias - own[:, :, None], math.nan)
    column = (s - t + n - 1).expand(1, n, n)
    parts, off, at, like = [], 0.0, (0, 0, 0), (0, 0)
    step = max(1, ENTRIES // (2 * n * n))
    for start in range(0, g.shape[0], step):
        some = g[start : start + step]
        skewed = torch.full((some.shape[0], n, 2 * n - 1), math.nan, dtype=torch.float64)
        skewed.scatter_(2, column.expand(some.shape[0], n, n), some)  # (H, query, offset)
        known = ~skewed.isnan()
        low = skewed.nan_to_num(nan=math.inf).min(1)
        high = skewed.nan_to_num(nan=-math.inf).max(1)
        met = known.any(1)
        parts.append(torch.where(met, (low.values + high.values) / 2, math.nan))
        apart = torch.where(met, high.values - low.values, 0.0)
        if float(apart.max()) > off:
            off = float(apart.max())
            h, o = divmod(int(apart.argmax()), 2 * n - 1)
            a, b = int(high.indices[h, o]), int(low.indices[h, o])
            at, like = (start + h, a, a + o - n + 1), (b, b + o - n + 1)
    values = torch.cat(parts)
    largest = float(torch.where(seen, bias.abs(), 0.0).max())
    fine = min(unit_roundoff(dtype), unit_roundoff(torch.float32))
    tol = (12 * unit_roundoff(dtype) + 16 * n * fine) * max(largest, float(own.abs().max()))
    return ByOffset(values, off, at, like, tol, float((own - own[:, :1]).abs().max()) > tol)


def slopes_of(found: ByOffset) -> tuple[Tensor, float] | None:
    """Return the slope m of each head, and its error bound.

    The bias falls by m per step into the past; None if the bias is not linear in the distance.
    """
    past = found.past()
    n = past.shape[1]
    if n < 3 or bool(past.isnan().any()):
        return None
    slope = -past[:, -1] / (n - 1)
    line = -slope[:, None] * torch.arange(n, dtype=torch.float64)
    if float((past - line).abs().max()) > 2 * found.tol:
        return None
    return slope, 2 * found.tol / (n - 1)


def coordinates(sizes: tuple[int, ...]) -> Tensor:
    """The coordinates of each place of a window, row-major: (R, axes)."""
    return torch.tensor(list(product(*(range(n) for n in sizes))), dtype=torch.int64)


def offsets_in(sizes: tuple[int, ...]) -> tuple[Tensor, int]:
    """Number the offset, key minus query, of each pair of places: (R, R) and the number of offsets.

    >>> offsets_in((3, 5))[1]
    45
    """
    place = coordinates(sizes)
    offset = place[None, :, :] - place[:, None, :]
    number = torch.zeros(offset.shape[:2], dtype=torch.int64)
    count = 1
    for axis, n in enumerate(sizes):
        number = number * (2 * n - 1) + offset[..., axis] + n - 1
        count *= 2 * n - 1
    return number, count


def shared_entries(
    index: Tensor, sizes: tuple[int, ...]
) -> tuple[int, tuple[int, int, int, int] | None]:
    """Count the table entries in use, and find two pairs of places that share one across offsets.

    Raises ``ValueError`` for a shape other than (R, R).
    """
    number, _ = offsets_in(sizes)
    if tuple(index.shape) != tuple(number.shape):
        raise ValueError(
            f"the index of a window {sizes} is {tuple(number.shape)}; got {tuple(index.shape)}"
        )
    flat, own = index.flatten().tolist(), number.flatten().tolist()
    R = index.shape[0]
    first: dict[int, int] = {}
    clash = None
    for i, (at, offset) in enumerate(zip(flat, own, strict=True)):
        j = first.setdefault(at, i)
        if clash is None and own[j] != offset:
            clash = (*divmod(j, R), *divmod(i, R))
    return len(first), clash
