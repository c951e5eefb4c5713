"""Newton's method for hypotheses: the nearest values for which some equations hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

__all__ = ["TooManyUnknowns", "solved"]

CELLS = 1 << 22
"""The largest matrix of derivatives, in entries."""
STEPS, HALVINGS = 25, 8


class TooManyUnknowns(ValueError):
    """The equations are too many for their unknowns to be solved for at once."""


def solved(
    gaps: Callable[[dict[str, Tensor]], Tensor], start: Mapping[str, Tensor], equations: int
) -> tuple[dict[str, Tensor], float] | None:
    """Values near ``start`` with ``gaps`` = 0 in float64, and how far they may be from exact.

    Each step is the shortest that solves the equations linearised, halved while that leads
    away.  None if they are not solved to the last digits after some steps.
    """
    shapes = {name: value.shape for name, value in start.items()}
    flat = torch.cat([value.reshape(-1) for value in start.values()])
    if flat.numel() * equations > CELLS:
        raise TooManyUnknowns(f"{equations} equations for {flat.numel()} numbers")

    def named(x: Tensor) -> dict[str, Tensor]:
        parts = torch.split(x, [shape.numel() for shape in shapes.values()])
        return {name: p.reshape(s) for (name, s), p in zip(shapes.items(), parts, strict=True)}

    def gap(x: Tensor) -> Tensor:
        return gaps(named(x))

    for _ in range(STEPS):
        now = gap(flat)
        slope: Tensor = torch.func.jacrev(gap)(flat)
        if not bool(now.isfinite().all() and slope.isfinite().all()):
            return None
        step = torch.linalg.lstsq(slope, -now[:, None], driver="gelsd").solution[:, 0]
        for _ in range(HALVINGS):
            if float(gap(flat + step).norm()) <= float(now.norm()):
                break
            step = step / 2
        flat = flat + step
        last = 2.0**-48 * float(1 + flat.abs().max())
        if float(step.abs().max()) <= last:
            met = float(gap(flat).abs().max()) <= 2.0**-40 * float(1 + now.abs().max())
            return (named(flat), 4 * last) if met else None
    return None
