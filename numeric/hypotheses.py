"""Find values that satisfy the hypotheses of a statement, and check whether given values do.

Hypotheses are handled in this order.  A product of two givens that is the identity: orthonormal
columns, or an inverse.  An equation with a given, or a row of one, alone on one side: it is
recomputed from the rounded values of each dtype.  Any other equations: Newton's method, at small
sizes.  An inequality with a given alone on one side, or in a sum: the given is moved.  Everything
else must hold by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.claim import Claim
from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.derive import Contraction, contraction
from attnproof.symbolic.givens import NUMBERS, SIGNED
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, free, postorder

from .reading import RowReading
from .torch_reading import TorchReading

# Whether the hypotheses of a statement hold for given values, in float64

CPU, FLOAT64 = torch.device("cpu"), torch.float64
SLACK = 2.0**-40  # relative to 1 plus the size of both sides: float64 rounding of a hypothesis
INDEX_VALUES = 5_000  # most index values tried for a hypothesis about all indices


class Unsatisfiable(ValueError):
    """No values are known that satisfy a hypothesis.

    ``too_large``: not at these sizes; ``hopeless``: no other draw will do better; ``discrete``: it
    concerns only integers and index maps, of which many small ones can be tried.
    """

    def __init__(
        self,
        text: str,
        *,
        too_large: bool = False,
        hopeless: bool = False,
        discrete: bool = False,
    ) -> None:
        super().__init__(text)
        self.too_large, self.hopeless = too_large, hopeless or too_large
        self.discrete = discrete


def broken(statement: Statement, sizes: dict[str, int], values: Mapping[str, Any]) -> str | None:
    """Return the first hypothesis that fails for these values in float64, in words."""
    for claim in statement.hypotheses:
        every = index_values(claim, sizes)
        if any(not holds(claim, sizes, {**values, **at}) for at in every):
            return in_words(claim)
    return None


def in_words(claim: Claim) -> str:
    """A hypothesis in words, with 0 as the right side of a bare sign."""
    return f"{claim.left!r} {claim.relation} {claim.right or 0!r}"


def index_values(claim: Claim, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Return all values of the indices over which a hypothesis is quantified.

    Raises :class:`Unsatisfiable` if it is quantified over anything else, or over too many indices.
    """
    variables = claim.variables
    if any(given.kind != "index" for _, given in variables):
        functions = any(part.op == "call" for side in claim.sides for part in postorder(side))
        what = "a function" if functions else "values"
        names = ", ".join(name for name, _ in variables)
        text = f"{what} with {in_words(claim)} for all {names} cannot be drawn"
        raise Unsatisfiable(text, hopeless=True)
    every = product(*(range(given.shape_and_range(sizes)[1]) for _, given in variables))
    chosen = list(islice(every, INDEX_VALUES + 1))
    if len(chosen) > INDEX_VALUES:
        text = f"{in_words(claim)} is checked for every index at small sizes only"
        raise Unsatisfiable(text, too_large=True)
    return ({name: i for (name, _), i in zip(variables, at, strict=True)} for at in chosen)


def sides(claim: Claim, sizes: dict[str, int], values: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Both sides of a claim in float64; a missing right side is 0."""
    reading = TorchReading(sizes, dict(values), FLOAT64, CPU)
    left = number_array(reading(claim.left)).double()
    if claim.right is None:
        return left, torch.zeros_like(left)
    return left, number_array(reading(claim.right)).double()


def holds(claim: Claim, sizes: dict[str, int], values: Mapping[str, Any]) -> bool:
    """Whether a claim holds, up to float64 rounding for equations and ">="."""
    left, right = sides(claim, sizes, values)
    same = torch.where(left == right, 0.0, left - right)  # 0 also if both are minus infinity
    slack = SLACK * (1 + left.abs().max() + right.abs().max()).nan_to_num(posinf=1.0)
    if claim.relation == "!=":
        return bool((left != right).any())
    if claim.relation == "=":
        return bool((same.abs() <= slack).all())
    least = -slack if claim.relation == ">=" else torch.zeros(())
    return bool((same >= least).all()) and (claim.relation == ">=" or bool((left > right).all()))


def number_array(value: Any) -> Tensor:
    """A tensor unchanged, a plain number as an array in float64."""
    return value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=FLOAT64)


# Changing values so that they satisfy the hypotheses

CELLS = 1 << 22
"""The largest Jacobian, in entries."""
STEPS, HALVINGS = 25, 8


class TooManyUnknowns(ValueError):
    """There are too many equations and unknowns to solve them at once."""


def solved(
    gaps: Callable[[dict[str, Tensor]], Tensor], start: Mapping[str, Tensor], equations: int
) -> tuple[dict[str, Tensor], float] | None:
    """Find values near ``start`` with ``gaps`` = 0 in float64, and a bound on their error.

    Each step is the shortest that solves the linearized equations, halved while it increases the
    gap.  None if they are not solved to the last digits after some steps.
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


ROOM = 1 / 8


@dataclass(frozen=True)
class Formed:
    """``target`` (a given or a row of one) is the value of ``source``, or its inverse."""

    target: Term
    source: Term
    inverse: bool = False


@dataclass(frozen=True)
class SatisfyingValues:
    """Values that satisfy the hypotheses.

    ``formed`` values are computed from the others after rounding.  ``unrounded`` ones are not
    rounded, like orthogonal matrices; the number bounds their distance from an exact solution.
    """

    values: dict[str, Any]
    formed: tuple[Formed, ...] = ()
    unrounded: Mapping[str, float] = field(default_factory=dict)


def satisfy_hypotheses(
    statement: Statement, sizes: dict[str, int], drawn: dict[str, Any]
) -> SatisfyingValues:
    """Change the drawn values so that every hypothesis holds.

    Raises :class:`Unsatisfiable` with a hypothesis that fails.
    """
    for law in statement.laws:
        # Refuse, before any work, what could not be checked in the end.
        index_values(law.claim, sizes)
    told = frozenset(k for k, g in statement.givens.items() if g.kind in NUMBERS)
    formed: list[Formed] = []
    unrounded: dict[str, float] = {}
    values = dict(drawn)
    for left, right in statement.assume:
        form = contraction(left, right)
        if form is not None and form.first.data[0] in told:
            _product(form, values, formed, unrounded)
            continue
        target = next((t for t in (left, right) if _is_part_of_given(t, values)), None)
        if target is not None:
            formed.append(Formed(target, right if target is left else left))
    found = SatisfyingValues(values, tuple(formed), unrounded)
    equations = Statement(statement.givens, {}, statement.assume)
    if broken(equations, sizes, _complete(sizes, found.values, found.formed)) is not None:
        found = _by_newton(statement, sizes, drawn)
    for room in (ROOM, ROOM, 0.0, 0.0):
        found = SatisfyingValues(
            _in_order(statement, sizes, found, room), found.formed, found.unrounded
        )
    why = broken(statement, sizes, _complete(sizes, found.values, found.formed))
    if why is not None:
        raise Unsatisfiable(f"no values were found with {why}")
    return found


def _is_part_of_given(t: Term, values: Mapping[str, Any]) -> bool:
    name, _ = given_and_place(t)
    return isinstance(values.get(name), Tensor)


def given_and_place(t: Term) -> tuple[str, list[tuple[int, Term]]]:
    """The given that a term is, or is a row of: its name, and the axes and places picked."""
    spot: list[tuple[int, Term]] = []
    while t.op == "pick":
        axis: Any = t.data
        spot.insert(0, (axis, t.args[1]))
        t = t.args[0]
    return (str(t.data[0]) if t.op == "var" else ""), spot


def _product(
    form: Contraction, values: dict[str, Any], formed: list[Formed], unrounded: dict[str, float]
) -> None:
    """Satisfy orthonormality by QR, and an inverse by a well-conditioned matrix."""
    name = str(form.first.data[0])
    matrix: Tensor = values[name]
    if form.kind == "inverse":
        if matrix.shape[0] != matrix.shape[1]:
            return
        values[name] = torch.linalg.qr(matrix).Q * torch.linspace(0.75, 1.5, len(matrix)).double()
        formed.append(Formed(form.second, form.first, inverse=True))
        return
    columns = matrix if form.kind == "columns" else matrix.mT
    if columns.shape[0] < columns.shape[1]:
        return
    q = torch.linalg.qr(columns).Q
    values[name] = q if form.kind == "columns" else q.mT.contiguous()
    defect = torch.linalg.matrix_norm(q.mT @ q - torch.eye(q.shape[1], dtype=q.dtype))
    unrounded[name] = float(defect) + len(q) * 2.0**-53


def _by_newton(
    statement: Statement, sizes: dict[str, int], drawn: dict[str, Any]
) -> SatisfyingValues:
    """Solve all equations at once for the real givens in them, which are then not rounded."""
    told = " and ".join(f"{a!r} = {b!r}" for a, b in statement.assume)
    within = frozenset[Term]().union(*(free(t) for pair in statement.assume for t in pair))
    names = sorted(str(v.data[0]) for v in within if v.op == "var" and v.data[1] in NUMBERS)
    names = [name for name in names if name in drawn]
    if not names:
        raise Unsatisfiable(f"no values were found with {told}", discrete=True)

    def gaps(chosen: dict[str, Tensor]) -> Tensor:
        reading = TorchReading(sizes, {**drawn, **chosen}, FLOAT64, CPU)
        sides = [[number_array(reading(t)) for t in pair] for pair in statement.assume]
        return torch.cat([(a - b).reshape(-1) for a, b in sides])

    equations = sum(
        prod(length_value(n, sizes) for n in left.shape) for left, _ in statement.assume
    )
    try:
        found = solved(gaps, {name: drawn[name] for name in names}, equations)
    except TooManyUnknowns as error:
        raise Unsatisfiable(
            f"values with {told} are searched for at small sizes only", too_large=True
        ) from error
    if found is None:
        raise Unsatisfiable(f"cannot draw values with {told}", hopeless=True)
    values, distance = found
    for name in names:
        kind = statement.givens[name].kind
        if kind in SIGNED and bool((values[name] <= 0).any()):
            raise Unsatisfiable(f"cannot draw values with {told} where {name} is {kind}")
    return SatisfyingValues({**drawn, **values}, (), dict.fromkeys(names, distance))


def _complete(
    sizes: dict[str, int], values: Mapping[str, Any], formed: tuple[Formed, ...]
) -> dict[str, Any]:
    """The values in float64, including those formed from others."""
    found = dict(values)
    for form in formed:
        name, _ = given_and_place(form.target)
        found[name] = filled(form, found[name], TorchReading(sizes, found, FLOAT64, CPU))
    return found


def filled(form: Formed, into: Tensor, reading: TorchReading) -> Tensor:
    """The given of the target, filled in from the values of a reading."""
    source = number_array(reading(form.source))
    value = torch.linalg.inv(source) if form.inverse else source
    return written(into, value, form.target, reading)


def written(into: Tensor, value: Tensor, target: Term, reading: RowReading) -> Tensor:
    """Copy a given, and write a value to the row of it that the target denotes."""
    new = into.clone()
    view = new
    for axis, at in reversed(given_and_place(target)[1]):
        view = view.select(axis, reading.integer(at))
    view.copy_(value)
    return new


def _in_order(
    statement: Statement, sizes: dict[str, int], found: SatisfyingValues, room: float
) -> dict[str, Any]:
    """Move the given alone on one side of a failing inequality beyond the other side.

    A gap between the two survives rounding; if one is the maximum of the other, no gap is possible.
    """
    values = dict(found.values)
    free_to_move = set(values) - {given_and_place(form.target)[0] for form in found.formed}
    for law in statement.laws:
        claim = law.claim
        if claim.variables or claim.relation not in (">", ">=") or claim.right is None:
            continue
        every = _complete(sizes, values, found.formed)
        if holds(claim, sizes, every):
            continue
        left, right = sides(claim, sizes, every)
        for side, other, sign in ((claim.left, right, 1), (claim.right, left, -1)):
            given = side.args[0] if side.op == "broadcast" else side
            if given.op == "var" and given.data[1] in NUMBERS and given.data[0] in free_to_move:
                name = str(given.data[0])
                values[name] = _beyond(values[name], other, sign, room)
                break
        else:
            short = (right - left).clamp(min=0) + (left.abs() + right.abs()) * room
            for given, factor in (*_parts(claim.left, 1), *_parts(claim.right, -1)):
                name = str(given.data[0])
                if given.data[1] in NUMBERS and name in free_to_move:
                    values[name] = values[name] + _narrowed(short, values[name]) / factor
                    break
    return values


def _parts(t: Term, factor: Fraction | int) -> Iterator[tuple[Term, float]]:
    """Yield the givens of which a side is a sum, each with its numeric factor."""
    if t.op == "var":
        yield t, float(factor)
    elif t.op in ("broadcast", "new axis"):
        yield from _parts(t.args[0], factor)
    elif t.op == "add":
        for part in t.args:
            yield from _parts(part, factor)
    elif t.op == "mul" and len(t.args) == 2:
        for number, other in (t.args, t.args[::-1]):
            literal = number_of(number.args[0] if number.op == "broadcast" else number)
            if literal:
                yield from _parts(other, factor * literal)


def _narrowed(far: Tensor, value: Tensor) -> Tensor:
    """Reduce an array to the shape of a value, by the maximum over its broadcast axes."""
    while far.ndim > value.ndim:
        far = far.amax(0)
    for axis, n in enumerate(value.shape):
        if n == 1 and far.shape[axis] > 1:
            far = far.amax(axis, keepdim=True)
    return far


def _beyond(value: Tensor, other: Tensor, sign: int, room: float) -> Tensor:
    """Move the value up (down) as far as needed, plus a share of the size of both."""
    extreme = _narrowed(other * sign, value)
    more = (value.abs() + extreme.abs()) * room
    return torch.maximum(value * sign, extreme + more) * sign
