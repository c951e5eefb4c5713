"""A calibration for people: its constants, and what was sampled for them."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import TYPE_CHECKING

from .terminal_text import headed

if TYPE_CHECKING:
    from rich.table import Table

    from .numeric.calibration.record import Calibration, Depth

__all__ = ["tables"]

ORDERS = "roundings of one term: at most inner + n/outer + 1 of n terms; n: in any order"


def tables(found: Calibration) -> Iterator[Table | str]:
    """The constants, then errors of functions, orders of sums and kernels as measured."""
    backend = found.backend
    yield (
        f"{backend.device}: {backend.name}, {backend.capability}, torch {backend.torch}, "
        f"{found.threads} threads, measured {found.created:%Y-%m-%d} in {found.seconds:.0f} s"
    )
    yield _constants(found)
    yield _kernels(found)
    yield _functions(found)
    yield _orders(found)


def _depth(depth: Depth) -> str:
    return "n" if depth.outer == 1 else f"{depth.inner} + n/{depth.outer}"


def _table(title: str, *columns: str) -> Table:
    return headed(*columns, title=title, title_style="bold")


def _constants(found: Calibration) -> Table:
    table = _table(
        f"Constants ({ORDERS})", "dtype", "function", "power", "digits", "product's",
        "sums", "softmax", "products", "if wider",
    )  # fmt: skip
    for c in found.constants:
        table.add_row(
            c.dtype, f"{c.function_error:.2f}", f"{c.power_error:.2f}",
            f"{-log2(c.accumulate):.0f}", f"{-log2(c.product):.0f}", _depth(c.sums),
            _depth(c.softmax), _depth(c.products), "never" if c.narrow is None else str(c.narrow),
        )  # fmt: skip
    return table


def _kernels(found: Calibration) -> Table:
    table = _table(
        f"Attention kernels ({found.kernels[0].sampled} each)" if found.kernels else "No kernels",
        "dtype", "kernel", "exp, u", "seen", "any queries", "full blocks", "stores",
    )  # fmt: skip
    seen = {(r.kernel, r.dtype): r for r in found.kernels}
    for c in found.constants:
        for k in c.kernels:
            record = seen[k.kernel, c.dtype]
            stores = [w for w in ("scores", "weights") if getattr(k, f"{w}_stored")]
            table.add_row(
                c.dtype, k.kernel, f"{k.exponential_error:.2f}", f"{record.error:.2f}",
                _depth(k.any_queries), _depth(k.full_blocks), " and ".join(stores) or "nothing",
            )  # fmt: skip
    return table


def _functions(found: Calibration) -> Table:
    table = _table("Functions", "function", "dtype", "error, u", "with margin", "sampled")
    for r in found.functions:
        table.add_row(r.function, r.dtype, f"{r.error:.2f}", f"{r.used:.2f}", r.sampled)
    return table


def _orders(found: Calibration) -> Table:
    table = _table(
        "Orders of sums", "operation", "dtype", "roundings at n terms", "digits", "model"
    )
    for r in found.orders:
        pairs = ", ".join(f"{d} at {n:,}" for n, d in zip(r.lengths, r.depths, strict=True))
        digits = f"{r.bits}" if r.nearest else f"{r.bits}, cut off"
        table.add_row(r.operation, r.dtype, pairs, digits, _depth(r.model))
    return table
