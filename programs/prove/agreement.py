"""Whether the term of a program gives the numbers of the program: the reading itself, tried.

A table of operations can be wrong in a line.  Before anything is shown of a term it is evaluated
at random inputs, with the program's own parameters, and compared with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import length_value

from ...numeric.torch_reading import TorchReading
from .operations import Notes
from .operations.reading import NARROW

__all__ = ["FUNCTIONS", "disagreement"]

WHOLE = (*NARROW, torch.int32, torch.uint32, torch.uint64)
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "erf": torch.erf, "trunc": torch.trunc, "floor": torch.floor, "ceil": torch.ceil,
    "round": torch.round, "softplus": torch.nn.functional.softplus,
    "mish": torch.nn.functional.mish,
    "elu": torch.nn.functional.elu, "leaky_relu": torch.nn.functional.leaky_relu,
    "hardswish": torch.nn.functional.hardswish,
    **{f"trunc_{str(d).removeprefix('torch.')}": partial(Tensor.to, dtype=d) for d in WHOLE},
}  # fmt: skip
# Code computes in float32 inside, tables among it; the term is evaluated in float64.  A reading
# that is wrong in an operation is off by the size of the numbers.
COARSE = 2.0**-23
FEW = 16  # operations that are counted beside those of the graph: short code has angles as well


def disagreement(
    code: Callable[..., Tensor], term: Array, names: Sequence[str], inputs: Sequence[Tensor],
    tables: Mapping[str, Tensor], operations: int, sizes: Mapping[str, int],
    notes: Notes,
) -> str:  # fmt: skip
    """What is wrong with the reading, or "" if it gives what the code gives.

    Angles of the code may be off by a rounding of their own size, which the allowance counts.
    """
    values: dict[str, object] = {
        name: x.double() if x.is_floating_point() else x
        for name, x in zip(names, inputs, strict=True)
    }
    values |= {name: tensor if tensor.dtype == torch.bool else tensor.double()
               for name, tensor in tables.items()}  # fmt: skip
    values |= FUNCTIONS
    values |= notes.constants
    values |= {name: _rows(table, axis) for name, (table, axis) in notes.rows.items()}
    reading = TorchReading(sizes, values, torch.float64, torch.device("cpu"))
    for name, (row, axis) in notes.largest.items():
        reading.values[name] = torch.as_tensor(reading(row.term)).amax(axis)
    want = code(*inputs).detach().double()
    got = reading(term.term)
    shape = tuple(length_value(n, dict(sizes)) for n in term.axes)
    if shape != tuple(want.shape):
        return f"the term has shape {shape} and the code gives {tuple(want.shape)}"
    got = torch.as_tensor(got, dtype=torch.float64).expand(shape)
    both = got.isfinite() & want.isfinite()
    notes.undefined.append(bool((got.isnan() & want.isfinite()).any()))
    if want.numel() and not bool((both | want.isneginf()).any()):
        return "the code gives no number at random inputs"
    gap = (got - want).abs()
    # What a mask is filled with may be far larger, and is the same on both sides.
    differ = both & (gap > COARSE * want.abs())
    largest = float(want[differ].abs().max()) if bool(differ.any()) else 0.0
    allowed = COARSE * (FEW + operations) * 64 * max(1.0, largest)
    gap = gap[differ]
    worst = float(gap.max()) if gap.numel() else 0.0
    # A term that is none divides by 0 there, which the line of every verdict leaves out.
    if bool((got.isfinite() & ~want.isfinite()).any()):
        return "the term and the code are not finite at different entries"
    if worst > allowed:
        return (f"the term and the code differ by {worst:.2g} at random inputs, where rounding "
                f"explains {allowed:.2g}")  # fmt: skip
    return ""


def _rows(table: Tensor, axes: int | tuple[int, ...]) -> Callable[..., Tensor]:
    """The rows of a table along an axis, or along several, as a function of their places."""
    along = (axes,) if isinstance(axes, int) else axes
    rows = table.detach().double().movedim(along, tuple(range(len(along))))
    return lambda *places: rows[tuple(torch.as_tensor(place).long() for place in places)]
