"""Whether the hypotheses of a statement hold for given values, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.claim import Claim, Law
from attnproof.symbolic.givens import Given
from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import postorder

from .torch_reading import TorchReading

__all__ = ["Unsatisfiable", "broken", "holds", "index_values", "number_array", "sides"]

CPU, FLOAT64 = torch.device("cpu"), torch.float64
SLACK = 2.0**-40  # of 1 and the size of both sides: what float64 may lose in a hypothesis
INDEX_VALUES = 5_000  # of a law about all indices, all tried


class Unsatisfiable(ValueError):
    """No values are known that satisfy a hypothesis.

    ``too_large``: none of these sizes; ``hopeless``: no other draw will do better; ``discrete``:
    it speaks of whole numbers and maps alone, of which many small ones can be tried.
    """

    def __init__(
        self, text: str, *, too_large: bool = False, hopeless: bool = False,
        discrete: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(text)
        self.too_large, self.hopeless = too_large, hopeless or too_large
        self.discrete = discrete


def broken(statement: Statement, sizes: dict[str, int], values: Mapping[str, Any]) -> str | None:
    """The first hypothesis that does not hold for these values in float64, in words."""
    for left, right in statement.assume:
        if not holds(Claim("=", left, right), sizes, values):
            return f"{left!r} = {right!r}"
    for law in statement.laws:
        every = index_values(law, sizes)
        if any(not holds(law.claim, sizes, {**values, **at}) for at in every):
            return _told(law)
    return None


def _told(law: Law) -> str:
    return f"{law.claim.left!r} {law.claim.relation} {law.claim.right or 0!r}"


def index_values(law: Law, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """All values of the indices that a law speaks of; of nothing else are all values tried.

    Raises :class:`Unsatisfiable` for a law of anything else, and for too many indices.
    """
    variables, told = law.claim.variables, _told(law)
    if any(given.kind != "index" for _, given in variables):
        parts = (law.claim.left, law.claim.right or law.claim.left)
        functions = any(part.op == "call" for side in parts for part in postorder(side))
        what = "a function" if functions else "values"
        names = ", ".join(name for name, _ in variables)
        raise Unsatisfiable(f"{what} with {told} for all {names} cannot be drawn", hopeless=True)
    every = product(*(range(_below(given, sizes)) for _, given in variables))
    chosen = list(islice(every, INDEX_VALUES + 1))
    if len(chosen) > INDEX_VALUES:
        raise Unsatisfiable(f"{told} is tried for every index at small sizes", too_large=True)
    return ({name: i for (name, _), i in zip(variables, at, strict=True)} for at in chosen)


def _below(given: Given, sizes: dict[str, int]) -> int:
    assert given.below is not None
    return length_value(given.below, sizes)


def sides(claim: Claim, sizes: dict[str, int], values: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Both sides of a claim in float64; the right one is 0 where there is none."""
    reading = TorchReading(sizes, dict(values), FLOAT64, CPU)
    left = number_array(reading(claim.left)).double()
    if claim.right is None:
        return left, torch.zeros_like(left)
    return left, number_array(reading(claim.right)).double()


def holds(claim: Claim, sizes: dict[str, int], values: Mapping[str, Any]) -> bool:
    """Whether a claim holds, up to what float64 may lose of equations and of ">="."""
    left, right = sides(claim, sizes, values)
    same = torch.where(left == right, 0.0, left - right)  # also where both are minus infinity
    slack = SLACK * (1 + left.abs().max() + right.abs().max()).nan_to_num(posinf=1.0)
    if claim.relation == "!=":
        return bool((left != right).any())
    if claim.relation == "=":
        return bool((same.abs() <= slack).all())
    least = -slack if claim.relation == ">=" else torch.zeros(())
    return bool((same >= least).all()) and (claim.relation == ">=" or bool((left > right).all()))


def number_array(value: Any) -> Tensor:
    """A value in float64, as an array where it is a plain number."""
    return value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=FLOAT64)
