"""Check a statement in numbers, from its own term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

import torch

from attnproof.symbolic.statement import Claim, Statement
from attnproof.symbolic.terms import Term, postorder, substitute

from .devices import chosen, devices, dtype_named, dtypes_on
from .existence import search
from .implementations import DoesNotFit, Implementation, named
from .measurement import Measurement
from .run import Task, run
from .scale import Scale, scale_named, sizes_of
from .torch_reading import TorchReading
from .walk import TooLarge

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
) -> list[Measurement]:
    """Every conclusion of a statement, in every implementation and dtype.

    ``left = right`` holds if the computed sides differ by no more than the sum of their rounding
    bounds, and if each side is within its own bound of the exact value of its term.
    A claim of existence is read at its witness, or settled by least squares.

    Raises ``ValueError`` (:class:`devices.DeviceAbsent` and its like) for a device, dtype, scale
    or implementation that is not there, and :class:`ReadingError` at the end if a reading failed.

    >>> from attnproof.symbolic.givens import permutation, real, sizes
    >>> from attnproof.symbolic.statement import Statement, equal
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
    able = [
        implementation
        for implementation in named(implementations, where)
        if not implementation.replaced or implementation.serves(_definitions(statement))
    ]
    sizes = sizes_of(statement, size, lambda sizes: _walks_too_much(statement, sizes, size))
    task = Task(statement, size, sizes, where, seed)
    results: list[Measurement] = []
    failed: list[str] = []
    started = perf_counter()
    for says, claim in statement.claims.items():
        if claim.relation == "exists" and claim.witness is None:
            results.append(_search(statement, says, claim, seed))
            continue
        read = _at_witness(claim)
        for implementation in able:
            if implementation.replaced and not implementation.serves(_definitions_of(read)):
                continue
            for dtype in wanted:
                late = limit_seconds is not None and perf_counter() - started > limit_seconds
                try:
                    if late:
                        raise DoesNotFit(f"not begun: the limit of {limit_seconds} s had passed")
                    results.append(run(task, says, read, implementation, dtype))
                except (DoesNotFit, TooLarge) as reason:
                    results.append(task.skipped(says, implementation, dtype, str(reason)))
                except Exception as error:  # noqa: BLE001 (told below, with all it belongs to)
                    failed.append(
                        f"{says or 'the claim'}, {implementation.name}, {dtype}: {error!r}"
                    )
                    cause = error
    if failed:
        text = f"{len(failed)} reading(s) failed; the first: {failed[0]}"
        raise ReadingError(text, results) from cause
    return results


def _walks_too_much(statement: Statement, sizes: dict[str, int], scale: Scale) -> bool:
    """Whether some claim needs every entry of a large intermediate, none of it being sampled."""
    reading = TorchReading(sizes, {}, torch.float64, torch.device("cpu"))
    return any(
        max(reading.lengths(claim.left), default=1) <= scale.rows
        and max(reading.peak(side) for side in _sides(claim)) > scale.passes
        for claim in map(_at_witness, statement.claims.values())
    )


def _at_witness(claim: Claim) -> Claim:
    """An equation: that of the claim, with the witness in the place of the unknown."""
    if claim.relation != "exists" or claim.witness is None:
        return claim
    assert claim.variable is not None
    assert claim.right is not None
    left, right = (
        substitute(side, claim.variable, claim.witness) for side in (claim.left, claim.right)
    )
    return Claim("=", left, right)


def _sides(claim: Claim) -> tuple[Term, ...]:
    return (claim.left,) if claim.right is None else (claim.left, claim.right)


def _definitions_of(claim: Claim) -> set[str]:
    return {
        part.data[0]
        for side in _sides(claim)
        for term in postorder(side)
        for part in ((term, *postorder(term.args[-1])) if term.op == "iterate" else (term,))
        if part.op == "named"
    }


def _definitions(statement: Statement) -> set[str]:
    return set().union(*(_definitions_of(claim) for claim in statement.claims.values()))


def _search(statement: Statement, says: str, claim: Claim, seed: int) -> Measurement:
    """A claim of existence without a witness, at small sizes: its unknown is a whole matrix."""
    small = scale_named("small")
    sizes = sizes_of(statement, small)
    started = perf_counter()
    result = search(statement, claim, sizes, small, seed)
    found = result.found
    return Measurement(
        says, "least squares", "cpu", "float64", sizes, seed,
        f"{result.draws} draws of what the unknown must not depend on, small sizes",
        found.error, found.tolerance, found.place, perf_counter() - started, found.status,
        f"the best matrix leaves a relative residual of {result.residual:.2g}",
        "float64: each operation rounded, and the solver's own error",
    )  # fmt: skip
