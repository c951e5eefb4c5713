"""The parts of a statement that are measured by themselves: claims, with sizes and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import torch

from attnproof.symbolic.claim import Claim
from attnproof.symbolic.gate import require_read
from attnproof.symbolic.laws import opened
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, postorder

from .hypotheses_hold import Unsatisfiable
from .residues.work import work
from .scale import Scale, depths, scale_named, sizes_of
from .task import Task
from .torch_reading import TorchReading

__all__ = ["again", "definitions_of", "drawn", "parts_of"]

WORK = 1 << 27
"""The entries computed for some rows of one side, 256 multiplications counted as one."""
PRODUCTS = 1 << 31
"""The multiplications in one product of matrices where every entry of it is needed."""
FEW_STEPS = 4  # where an equation speaks of stacks: deeper, it is hardly ever solved


def parts_of(statement: Statement) -> Iterator[tuple[str, Claim, Statement]]:
    """Each claim with a statement that holds it; its further variables are givens there.

    Everything that is measured of a statement starts here, so here one that is misread is refused
    (:class:`~attnproof.symbolic.gate.Misread`); what comes out is made of terms alone.
    """
    require_read(statement)
    statement = replace(statement, code=None)
    plain = {says: c for says, c in statement.claims.items() if not c.variables}
    shared = replace(statement, claims=plain)
    told = (*(t for pair in statement.assume for t in pair), *(
        t for law in statement.laws for t in (law.claim.left, law.claim.right) if t is not None
    ))  # fmt: skip
    for says, claim in statement.claims.items():
        if not claim.variables:
            yield says, claim, shared
        else:
            alone, givens = opened(claim, statement.givens, told)
            yield says, alone, replace(statement, givens=givens, claims={says: alone})


def drawn(statement: Statement, scale: Scale, device: torch.device, seed: int) -> Task:
    """The statement at a scale with values.

    Where none satisfy the hypotheses, small sizes are tried.  Stacks have few layers if a
    hypothesis speaks of stacks.
    """
    if depths(replace(statement, claims={})):
        scale = replace(scale, steps=min(scale.steps, FEW_STEPS))
    sizes = sizes_of(statement, scale, lambda sizes: _walks_too_much(statement, sizes, scale))
    task = Task(statement, scale, sizes, device, seed)
    try:
        task.sample(0)
    except Unsatisfiable as error:
        if not error.too_large or scale.name == "small":
            raise
        return drawn(statement, scale_named("small"), device, seed)
    return task


def again(task: Task) -> Task:
    """The task once more, at the scale it now has."""
    return drawn(task.statement, task.scale, task.device, task.seed)


def _walks_too_much(statement: Statement, sizes: dict[str, int], scale: Scale) -> bool:
    """Whether some claim needs too much of a large intermediate, sampled or not."""
    reading = TorchReading(sizes, {}, torch.float64, torch.device("cpu"))
    for claim in map(Claim.at_witness, statement.claims.values()):
        lengths = reading.lengths(claim.left)
        first = next((k for k, n in enumerate(lengths) if n > scale.rows), None)
        wanted = tuple(scale.rows if k == first else None for k in range(len(lengths)))
        for side in _sides(claim):
            if side.ndim == len(wanted) and work(side, sizes, wanted) > WORK:
                return True
    whole = [
        side for claim in map(Claim.at_witness, statement.claims.values())
        if max(reading.lengths(claim.left), default=1) <= scale.rows for side in _sides(claim)
    ]  # fmt: skip
    return any(
        reading.peak(side) > scale.passes or _products(reading, side) > PRODUCTS for side in whole
    )


def _products(reading: TorchReading, side: Term) -> int:
    """The multiplications in the largest product of matrices of a side."""
    return max(
        (
            prod(reading.lengths(t)) * reading.length(t.args[0].shape[-1])
            for t in postorder(side) if t.op == "matmul" and not t.loose
        ),
        default=0,
    )  # fmt: skip


def _sides(claim: Claim) -> tuple[Term, ...]:
    return (claim.left,) if claim.right is None else (claim.left, claim.right)


def definitions_of(claim: Claim) -> set[str]:
    """The named definitions in a claim."""
    return {part.data[0] for t in _sides(claim) for part in postorder(t) if part.op == "named"}
