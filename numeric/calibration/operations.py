"""The sums, products and attention kernels whose order is measured, as sums over a last axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from .constants import ATTENTION, FULL, PRODUCT, SUM
from .kernels import Kernel, summed_by
from .order import Summed

__all__ = ["attention_sums", "kernels_of", "products", "sums"]

WIDTHS = (1, 8, 16, 33, 64)
QUERIES = ((1, 0), (33, 0), (33, 32))
"""Numbers of queries, and the one that is looked at; the last of 33 may be alone in its block."""
FULL_QUERIES = ((32, 0), (288, 287), (800, 799))
"""Multiples of 32, with every size of block of queries that the kernels of torch choose by them."""


def sums() -> Iterator[tuple[str, Summed]]:
    """``torch.sum`` over the last axis and over the first."""
    yield f"{SUM}, last axis", lambda x: x.sum(-1)
    yield f"{SUM}, first axis", lambda x: x.mT.contiguous().sum(0)


def products() -> Iterator[tuple[str, int, Summed]]:
    """Products with a matrix of ones: (rows, k) @ (k, columns), its narrower side, the sum.

    Small and large, both stored either way, and in a batch.
    """
    for width in WIDTHS:
        for rows, columns in dict.fromkeys(((64, width), (width, 64))):
            how = partial(_product, rows, columns)
            yield f"{PRODUCT} {rows} × k × {columns}", width, how
    yield f"{PRODUCT} 64 × k × 64, operands transposed", 64, partial(_product, 64, 64, turned=True)
    yield f"{PRODUCT} 64 × k × 64, batched", 64, partial(_product, 64, 64, batched=True)


def _product(
    rows: int, columns: int, cases: Tensor, *, turned: bool = False, batched: bool = False
) -> Tensor:
    """Sums over the last axis of (cases, n), so many rows of a product at once; the last column."""
    n = cases.shape[-1]
    ones = torch.ones((n, columns), dtype=cases.dtype, device=cases.device)
    if turned:
        ones = torch.ones((columns, n), dtype=cases.dtype, device=cases.device).mT
    spare = -len(cases) % rows
    if spare:
        cases = torch.cat((cases, cases.new_zeros((spare, n))))
    groups = cases.reshape(-1, rows, n)
    if batched:
        found = groups @ ones.expand(len(groups), n, columns)
    else:
        found = torch.stack([
            (group.mT.contiguous().mT if turned else group) @ ones for group in groups
        ])  # fmt: skip
    flat = found[..., -1].reshape(-1)
    return flat[: len(flat) - spare]


def kernels_of(device: torch.device) -> Iterator[tuple[str, Kernel]]:
    """Every backend of ``scaled_dot_product_attention`` that accepts calls on the device."""
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
    """The sum over keys in some query of calls with some queries."""
    for rows, row in (*QUERIES, *FULL_QUERIES):
        full = f"{FULL}, " if (rows, row) in FULL_QUERIES else ""
        what = f"{ATTENTION} {name}, {full}query {row + 1} of {rows}"
        yield what, rows, summed_by(kernel, rows, row, dtype, device)
