"""Find values in a field that obey the hypotheses of a statement.

Hypotheses are handled in this order.  A given number alone on one side of an equation is replaced
by the other side, in the claim and in every other hypothesis.  Integers and index maps in
hypotheses are redrawn, every second time as small ones.  Then, in every field: a product of two
givens that is the identity (orthonormal columns as a product of reflections, or an inverse); a row
of a given alone on one side; equations that are linear in one given, by elimination; quadratic
equations in one entry of every row.

Finally every hypothesis is checked, entry by entry.  One that is not obeyed, or has no meaning in a
field (an order), invalidates no value: a claim that holds without it holds with it.  But a
counterexample is then not trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attnproof.symbolic.derive import Contraction, contraction
from attnproof.symbolic.givens import NUMBERS, SIGNED, Given
from attnproof.symbolic.statement import Statement

from ..hypotheses import Unsatisfiable, given_and_place, index_values, written
from ..row_selection import TooLarge
from .angles import depth_of
from .hypothesis import NO_ORDER, Hypothesis
from .residue import Degree, NoResidue, Residue
from .roots import inverse, linear, real_roots, square_roots

if TYPE_CHECKING:
    from .reading import ResidueReading


# Numbers of one field that obey equations

REAL_KINDS = ("real", *SIGNED)
UNKNOWNS = 256  # at most, in a system of linear equations
SOLVED_POINTS = 12  # at which a law about all real numbers is solved
CHECKED_POINTS = 4  # at which it is then checked
TRIES = 40  # redraws of rows for which a quadratic equation has no root


class LevelValues:
    """Values at one level of a tower.

    ``solved``: some are solutions of equations; ``too_large``: smaller systems of equations would
    have been solved.  ``unsure`` lists properties of real numbers that these values may lack: the
    sign of a changed value, and a real root.
    """

    def __init__(self, read: ResidueReading, givens: Mapping[str, Given]) -> None:
        self.read, self.givens = read, givens
        self.solved = self.too_large = False
        self.unsure: dict[str, str] = {}

    def why_broken(self, h: Hypothesis, values: Mapping[str, Any]) -> str:
        """Return why a hypothesis is not obeyed by these values, or ""."""
        try:
            for at in self.variable_values(h):
                left, right = self.sides(h, {**values, **at})
                marks = [side.undefined for side in (left, right)]
                if any(mark is not None and bool(mark.any()) for mark in marks):
                    return "a denominator is 0"
                if left.hidden is not None or right.hidden is not None:
                    return "−inf has no meaning in a field"
                same = bool((left.value == right.value).all())
                if same is not (h.claim.relation == "="):
                    return "no values were found that obey it"
        except (NoResidue, TypeError, Unsatisfiable, TooLarge) as error:
            return str(error)
        return ""

    def variable_values(self, h: Hypothesis, *, solving: bool = False) -> Iterator[dict[str, Any]]:
        """The values of the variables of a law: random for real ones, all for indices."""
        variables = h.claim.variables
        if variables and any(depth_of(side) for side in h.claim.sides):
            raise NoResidue("a law about exponentials is not supported")
        if all(given.kind == "index" for _, given in variables):
            return iter(index_values(h.claim, self.read.sizes))
        strange = [name for name, given in variables if given.kind not in REAL_KINDS]
        if strange:
            raise NoResidue(f"it quantifies over all {strange[0]}")
        drawn = self.read.draws.numbers
        return (
            {
                name: drawn(self.read.arithmetic, f"{name} of a law {k} {solving}", given)
                for name, given in variables
            }
            for k in range(SOLVED_POINTS if solving else CHECKED_POINTS)
        )

    def sides(self, h: Hypothesis, values: Mapping[str, Any]) -> tuple[Residue, Residue]:
        at = self.read.at(values)
        left = at.arithmetic.of(_number(at(h.claim.left)))
        if h.claim.right is None:
            return left, at.arithmetic.of(0)
        return left, at.arithmetic.of(_number(at(h.claim.right)))

    def satisfy(self, h: Hypothesis, values: dict[str, Any]) -> None:
        """Satisfy one equation that states a product or a row."""
        if h.claim.variables:
            return
        left, right = h.claim.sides
        form = contraction(left, right)
        if form is not None and form.first.data[1] in REAL_KINDS:
            self._product(form, values)
            return
        for target, source in ((left, right), (right, left)):
            name, spot = given_and_place(target)
            if not spot or not isinstance(values.get(name), Residue):
                continue
            if self.givens[name].kind == "orthogonal":  # it would no longer be orthogonal
                continue
            try:
                read, old = self.read.at(values), values[name]
                value = read.arithmetic.of(_number(read(source)))
                new = written(old.value, value.value, target, read)
                if value.undefined is not None and bool(value.undefined.any()):
                    raise NoResidue("a denominator is 0")
                values[name] = Residue(old.arithmetic, new, degree=old.degree.either(value.degree))
            except (NoResidue, TypeError):
                continue
            self._changed(name)
            return

    def _changed(self, name: str) -> None:
        """Record that a given has a new value, whose sign is unknown."""
        kind = self.givens[name].kind
        if kind in SIGNED:
            self.unsure[f"{name} is {kind}"] = NO_ORDER

    def _product(self, form: Contraction, values: dict[str, Any]) -> None:
        """Satisfy an equation for orthonormal columns or rows, or for an inverse."""
        name = str(form.first.data[0])
        rows, columns = values[name].shape
        arithmetic = self.read.arithmetic
        if form.kind == "inverse":
            found = inverse(arithmetic, values[name].value) if rows == columns else None
            if found is not None:
                degree = Degree(rows - 1, rows)  # minors over the determinant
                other = str(form.second.data[0])
                values[other] = Residue(arithmetic, found, degree=degree)
                self._changed(other)
            return
        long, few = (rows, columns) if form.kind == "columns" else (columns, rows)
        if long < few:
            return
        frame = self.read.draws.frame(arithmetic, name, long, few)
        values[name] = frame if form.kind == "columns" else frame.moved(lambda x: x.mT.contiguous())
        self._changed(name)

    # equations in which nothing stands alone

    def solve(
        self,
        broken: list[Hypothesis],
        equations: list[Hypothesis],
        values: dict[str, Any],
    ) -> None:
        """Change one given, if that suffices, until all equations that contain it hold."""
        spoken = sorted(frozenset[str]().union(*(h.names for h in broken)))
        spoken = [k for k in spoken if self.givens[k].kind in REAL_KINDS]
        for way in (self._linear, self._quadratic):
            for name in sorted(spoken, key=lambda k: (-len(values[k].shape), k)):
                system = [h for h in equations if name in h.names]
                try:
                    changed = way(name, system, values)
                except TooLarge:
                    self.too_large = True
                    continue
                except (NoResidue, TypeError):
                    continue
                if changed is None:
                    continue
                tried = {**values, name: changed}
                if not any(self.why_broken(h, tried) for h in system):
                    values[name], self.solved = changed, True
                    self._changed(name)
                    if way == self._quadratic and not self._real(name, system[0], equations):
                        self.unsure[str(system[0])] = "its roots in a field need not be real"
                    if not any(self.why_broken(h, values) for h in broken):
                        return

    def _real(self, name: str, h: Hypothesis, equations: list[Hypothesis]) -> bool:
        """Whether a quadratic equation is known to have real roots whenever all others hold."""
        if any(h.names & other.names for other in equations if other is not h):
            return False
        return real_roots(h, name, self.givens, self.read.sizes, self.read.draws.whole)

    def _gaps(self, system: list[Hypothesis], values: Mapping[str, Any]) -> Tensor:
        gaps = []
        for h in system:
            for at in self.variable_values(h, solving=True):
                left, right = self.sides(h, {**values, **at})
                gap = left + right * -1
                if gap.undefined is not None and bool(gap.undefined.any()):
                    raise NoResidue("a denominator is 0")
                gaps.append(gap.value.reshape(-1))
        return torch.cat(gaps)

    def _linear(
        self, name: str, system: list[Hypothesis], values: Mapping[str, Any]
    ) -> Residue | None:
        """A random solution of equations that are linear in one given."""
        arithmetic, shape = self.read.arithmetic, values[name].shape
        width = max(1, values[name].value.numel())
        if width > UNKNOWNS:
            raise TooLarge(
                f"{width} numbers that obey equations are searched for at small sizes only"
            )

        def gaps(x: Tensor) -> Tensor:
            one = Residue(arithmetic, x.reshape(shape))
            return self._gaps(system, {**values, name: one})

        probe = values[name].value.reshape(-1)
        units = torch.eye(width, dtype=probe.dtype, device=probe.device)
        constant = gaps(torch.zeros_like(probe))
        matrix = torch.stack([arithmetic.reduced(gaps(unit) - constant) for unit in units], 1)
        predicted, bound = arithmetic.product(matrix, probe)
        told = arithmetic.reduced(arithmetic.reduced(predicted, bound) + constant)
        if not bool((told == gaps(probe)).all()):
            return None
        found = linear(arithmetic, matrix, arithmetic.reduced(-constant))
        if found is None or (not found.kernel.shape[1] and not bool(found.one.any())):
            return None
        free = found.kernel.shape[1:]
        weights = self.read.draws.numbers(arithmetic, f"{name} solved", None, free)
        more, bound = arithmetic.product(found.kernel, weights.value)
        solution = arithmetic.reduced(found.one + arithmetic.reduced(more, bound))
        return Residue(arithmetic, solution.reshape(shape))

    def _quadratic(
        self, name: str, system: list[Hypothesis], values: Mapping[str, Any]
    ) -> Residue | None:
        """Solve one quadratic equation per row for the first number of the row."""
        if len(system) != 1 or system[0].claim.variables:
            return None
        arithmetic, old = self.read.arithmetic, values[name]
        left, _ = self.sides(system[0], values)
        rows = tuple(n for n in left.shape if n > 1)
        if old.shape[: len(rows)] != rows:
            return None
        place = (..., *(0,) * (old.ndim - len(rows)))

        def gaps(x: Tensor) -> Tensor:
            one = Residue(arithmetic, x)
            return self._gaps(system, {**values, name: one}).reshape(rows)

        def at(x: Tensor, first: Any) -> Tensor:
            new = x.clone()
            new[place] = first
            return new

        value, half = old.value.clone(), pow(2, -1, arithmetic.prime)
        for k in range(TRIES):
            zero, one, two = (gaps(at(value, float(t))) for t in range(3))
            square = arithmetic.reduced(arithmetic.reduced(two - 2 * one + zero) * half)
            slope = arithmetic.reduced(one - zero - square)
            if not bool(
                (arithmetic.reduced(9 * square + 3 * slope + zero) == gaps(at(value, 3.0))).all()
            ):
                return None
            told = arithmetic.reduced(slope * slope) - arithmetic.reduced(4 * square * zero)
            root, there = square_roots(arithmetic, arithmetic.reduced(told))
            there &= square != 0
            twice = arithmetic.reduced(2 * torch.where(there, square, 1.0))
            first = arithmetic.reduced((root - slope) * arithmetic.inverted(twice))
            if bool(there.all()):
                return Residue(arithmetic, at(value, first))
            other = self.read.draws.numbers(arithmetic, f"{name} again {k}", None, old.shape).value
            wide = there.reshape(rows + (1,) * (old.ndim - len(rows)))
            value = torch.where(wide, value, other)
        return None


def _number(value: Any) -> Any:
    return (
        value.to(torch.int64)
        if isinstance(value, Tensor) and value.dtype == torch.bool
        else (value)
    )


# All hypotheses of a statement


@dataclass
class Hypotheses:
    """The hypotheses of a statement, and their status in the fields of one tower.

    ``unmet`` maps each hypothesis that is not known to be obeyed to the reason; ``solved``: some
    values are solutions of equations, and so not uniform; ``partly``: some hypotheses may be obeyed
    in only some of the fields; ``too_large``: smaller sizes might succeed.
    """

    statement: Statement
    angles: frozenset[str] = frozenset()
    unmet: dict[str, str] = field(default_factory=dict)
    solved: bool = False
    partly: bool = False
    too_large: bool = False

    @property
    def all(self) -> list[Hypothesis]:
        """All hypotheses, equations first."""
        return [Hypothesis(claim) for claim in self.statement.hypotheses]

    @property
    def names(self) -> frozenset[str]:
        """The givens in the hypotheses."""
        return frozenset[str]().union(*(h.names for h in self.all))

    def unmet_words(self) -> str:
        """Say what is not known to be obeyed, and why."""
        whys = dict.fromkeys(self.unmet.values())
        groups = {why: [k for k, v in self.unmet.items() if v == why] for why in whys}
        return "; ".join(f"{', '.join(what)} ({why})" for why, what in groups.items())

    def without_words(self) -> str:
        """Say that the claim held without some of them."""
        return f"; it holds without the hypothesis {' and '.join(self.unmet)}" if self.unmet else ""

    def obeying_values(self, read: ResidueReading) -> dict[str, Any]:
        """Return values of one level that obey the hypotheses, and record those they do not obey.

        Hypotheses that fail in the end do not influence the values.
        """
        able = [h for h in self.all if not h.whole and not self._is_unsupported(h)]
        while True:
            obeying = LevelValues(read, self.statement.givens)
            values = self._changed(able, obeying)
            whys = {str(h): why for h in able if (why := obeying.why_broken(h, values))}
            self.solved |= obeying.solved
            self.too_large |= obeying.too_large
            if not whys:
                self.unmet.update(obeying.unsure)
                return values
            self.unmet.update(whys)
            self.partly = True
            able = [h for h in able if str(h) not in whys]

    def _changed(self, able: list[Hypothesis], obeying: LevelValues) -> dict[str, Any]:
        """The drawn values, changed so that these equations hold if possible."""
        values = dict(obeying.read.values)
        equations = [h for h in able if h.claim.relation == "="]
        for h in equations:
            obeying.satisfy(h, values)
        broken = [h for h in equations if obeying.why_broken(h, values)]
        if broken:
            obeying.solve(broken, equations, values)
        return values

    def broken_integer_hypotheses(
        self, values: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> dict[str, str]:
        """The hypotheses about integers that these values do not obey, and why."""
        found = {}
        for h in (h for h in self.all if h.whole):
            try:
                every = index_values(h.claim, sizes)
                broken = any(not h.holds({**values, **at}, sizes) for at in every)
                why = "no whole numbers were found that obey it" if broken else ""
            except (NoResidue, TypeError, Unsatisfiable, TooLarge) as error:
                why = str(error)
                self.too_large |= isinstance(error, TooLarge) or getattr(error, "too_large", False)
            if why:
                found[str(h)] = why
        return found

    @property
    def integer_names(self) -> frozenset[str]:
        """The givens in hypotheses about integers."""
        return frozenset[str]().union(*(h.names for h in self.all if h.whole))

    def _is_unsupported(self, h: Hypothesis) -> bool:
        """Whether a hypothesis cannot be handled here."""
        kinds = {name: self.statement.givens[name].kind for name in h.names}
        why = ""
        if h.claim.relation in (">", ">="):
            why = NO_ORDER
        elif any(kind == "function" for kind in kinds.values()):
            why = "functions that obey a law are not drawn"
        elif rotated := sorted(self.angles & {k for k, kind in kinds.items() if kind in NUMBERS}):
            why = f"{rotated[0]} is an angle, and angles are drawn independently"
        elif h.claim.relation == "exists":
            why = "no witness is searched for in a field"
        if why:
            self.unmet[str(h)] = why
        return bool(why)
