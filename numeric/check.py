"""Check a statement in numbers, from its own term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

import torch

from attnproof.symbolic.statement import Statement

from .designs import Design, designs_named
from .devices import chosen, devices, dtype_named, dtypes_on, matrix_units, tf32
from .implementations import Implementation, named
from .measurement import Measurement
from .measuring import Measuring
from .parts import definitions_of, parts_of
from .scale import scale_named

__all__ = ["ReadingError", "devices", "measure"]


class ReadingError(RuntimeError):
    """Reading a statement failed; ``measurements`` holds what was measured all the same."""

    def __init__(self, text: str, measurements: list[Measurement]) -> None:
        super().__init__(text)
        self.measurements = measurements


def measure(
    statement: Statement,
    *,
    scale: str = "default",
    device: str = "auto",
    dtypes: Sequence[str | torch.dtype] | None = None,
    seed: int = 0,
    implementations: Iterable[str | Implementation] | None = None,
    limit_seconds: float | None = None,
    expected: str = "proved",
    designs: str | Sequence[str | Design] = "auto",
) -> list[Measurement]:
    """Every conclusion of a statement, in every implementation and dtype.

    ``left = right`` holds if the computed sides differ by no more than the sum of their rounding
    bounds, and if each side is within its own bound of the exact value of its term.  ``>=``,
    ``>`` and ``!=`` are read as :mod:`~attnproof.numeric.order` says.  A claim of existence is
    read at its witness, or settled by least squares.  Where no values are known that satisfy the
    hypotheses, every conclusion is skipped with that reason.

    ``expected`` is what the statement is held to be.  Of one that is "refuted", an inequality
    that holds in one draw is drawn again, some times; that it holds says nothing.

    ``designs``: the normal input design is run at the scale, and with "auto" each other design
    that changes something at small sizes, in float32 and below.  A list of names runs
    just those, at the scale.  They make one measurement, which says which design spoke: the one
    that contradicts the claim most, else the normal one.

    On CUDA float32 is measured twice, with TF32 off and on, as the profile says.

    Raises ``ValueError`` (:class:`devices.DeviceAbsent` and its like) for a device, dtype, scale,
    design or implementation that is not there, :class:`~attnproof.symbolic.gate.Misread` for a
    statement whose code is not what its term says, and :class:`ReadingError` at the end if a
    reading failed.

    >>> from attnproof.symbolic.givens import permutation, real, sizes
    >>> from attnproof.symbolic.claim import equal
    >>> from attnproof.symbolic.statement import Statement
    >>> n, d = sizes("n", "tokens") + sizes("d", "features")
    >>> givens = {"X": real(n, d), "s": permutation(n)}
    >>> X, s = (given.named(name) for name, given in givens.items())
    >>> claim = equal(X[s].mT @ X[s], X.mT @ X)
    >>> found = measure(Statement(givens, {"": claim}), scale="small", dtypes=["float32"])
    >>> found[0].status
    'held'
    """
    where = chosen(device)
    size = scale_named(scale)
    wanted = [dtype_named(d) for d in dtypes] if dtypes is not None else list(dtypes_on(where))
    every = named(implementations, where)
    deadline = None if limit_seconds is None else perf_counter() + limit_seconds
    tried, everywhere = designs_named(designs), designs != "auto"
    results: list[Measurement] = []
    failed: list[tuple[str, Exception]] = []
    for units in matrix_units(where):
        kinds = [d for d in wanted if d == torch.float32] if units else wanted
        tasks = Measuring(size, where, seed, expected, deadline, tried, everywhere)
        with tf32(units):
            for says, claim, part in parts_of(statement) if kinds else ():
                served = definitions_of(claim.at_witness())
                able = [i for i in every if not i.replaced or i.serves(served)]
                try:
                    tasks.claim(part, says, able, kinds)
                except Exception as error:  # noqa: BLE001 (told below, with all it belongs to)
                    tasks.failed.append((says or "the claim", error))
        results += tasks.results
        failed += tasks.failed
    if failed:
        where_first, cause = failed[0]
        text = f"{len(failed)} reading(s) failed; the first: {where_first}: {cause!r}"
        raise ReadingError(text, results) from cause
    return results
