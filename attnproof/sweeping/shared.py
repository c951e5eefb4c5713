"""Measuring cells one by one, with draws and exact values in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..numeric.check import Measuring
    from ..numeric.measurement import Measurement
    from ..numeric.scale import Scale
    from ..symbolic.claim import Claim
    from ..symbolic.statement import Statement
    from .cells import Cell

__all__ = ["Shared", "scaled"]

FEWER = (1.0, 5 / 8, 5 / 16, 3 / 16)
"""What further axes of tokens have of the tokens asked for, about as in the scales."""


@dataclass
class Shared:
    """Measures the cells of one group, each as ``measure`` would by itself.

    Parts and tasks are kept: inputs are drawn once, and the exact value of a side is computed
    once for each dtype, whatever implementation is compared with it.
    """

    kept: tuple[list[tuple[str, Claim, Statement]], Measuring] | None = None

    def __call__(self, statement: Statement, cell: Cell) -> Sequence[Measurement]:
        """One cell.  Raises ``ReadingError`` if a reading failed."""
        from ..numeric.check import ReadingError
        from ..numeric.devices import dtype_named
        from ..numeric.implementations import named
        from ..numeric.task import definitions_of, parts_of

        if self.kept is None:
            self.kept = list(parts_of(statement)), _measuring(cell)
        parts, measuring = self.kept
        measuring.results, measuring.failed = [], []
        (one,) = named([cell.implementation], measuring.device)
        for says, claim, part in parts:
            if not one.replaced or one.serves(definitions_of(claim.at_witness())):
                measuring.claim(part, says, [one], [dtype_named(cell.dtype)])
        if measuring.failed:
            says, cause = measuring.failed[0]
            told = f"{says or 'the claim'}: {cause!r}"
            raise ReadingError(told, measuring.results) from cause
        return measuring.results


def _measuring(cell: Cell) -> Measuring:
    from ..numeric.check import Measuring
    from ..numeric.designs import designs_named
    from ..numeric.devices import chosen

    scale, where = scaled(cell.scale, cell.tokens), chosen(cell.device)
    designs = designs_named([cell.design])
    return Measuring(scale, where, cell.seed, cell.claimed.expected, None, designs, True)


def scaled(name: str, tokens: int | None) -> Scale:
    """A scale, with so many tokens where they are asked for."""
    from ..numeric.scale import scale_named

    scale = scale_named(name)
    if tokens is None:
        return scale
    lengths = tuple(max(2, int(tokens * part)) for part in FEWER)
    return replace(scale, lengths=scale.lengths | {"tokens": lengths})
