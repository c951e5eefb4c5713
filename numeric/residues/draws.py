"""Draw random values for a statement in a tower of fields.

Numbers are drawn independently at every level: by the Chinese remainder theorem they are the
residues of one integer.  Integers, index maps and masks are the same at all levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import torch

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.givens import Given

from ..row_selection import TooLarge
from .residue import Degree, FieldArithmetic, NoResidue, Residue, common
from .towers import Points, random_points

if TYPE_CHECKING:
    from .hypotheses import Hypotheses

NUMBERS = ("real", "positive", "nonnegative", "angle", "frequency")
LARGEST_NATURAL = 12  # also a number of layers
POWER = 65_537
REFLECTIONS = 64
LARGEST_MATRIX = 1 << 22  # entries, for an unknown function
TRIES = 400  # draws of integers in hypotheses


class Draws:
    """The values of the givens: integers drawn once, numbers drawn for each field when needed."""

    def __init__(
        self,
        givens: Mapping[str, Given],
        sizes: Mapping[str, int],
        seed: int,
        *,
        above: int = 0,
        place: int = 0,
        hypotheses: Hypotheses | None = None,
    ) -> None:
        self.givens, self.sizes, self.seed, self.above = givens, dict(sizes), seed, above
        self.place, self.hypotheses = place, hypotheses
        self.whole = self._all_whole()
        self._angles: dict[tuple[int, str], Points] = {}
        self.few_reflections: set[str] = set()
        self.determinants: dict[str, int] = {}
        self._frames: dict[str, int] = {}

    def again(self) -> Draws:
        """The same values, with separate records of later draws."""
        other, known = copy(self), self.hypotheses
        own = {name: copy(x) for name, x in vars(self).items() if isinstance(x, dict | set)}
        vars(other).update(own)
        other.hypotheses = None if known is None else replace(known, unmet=dict(known.unmet))
        return other

    def _all_whole(self) -> dict[str, Any]:
        """Draw all integer values, repeatedly for those in hypotheses until they obey them."""
        found: dict[str, Any] = {}
        broken: dict[str, str] = {}
        spoken = None if self.hypotheses is None else self.hypotheses.integer_names
        for k in range(TRIES):
            for name, given in self.givens.items():
                if not k or (spoken and name in spoken):
                    value = self._whole(name, given, k)
                    found |= {} if value is None else {name: value}
            if not spoken or self.hypotheses is None:
                return found
            broken = self.hypotheses.broken_integer_hypotheses(found, self.sizes)
            if not broken or self.hypotheses.too_large:
                break
        if self.hypotheses is not None:
            self.hypotheses.unmet.update(broken)
        return found

    def values(self, arithmetic: FieldArithmetic) -> dict[str, Any]:
        """The values of all givens in one field."""
        found = dict(self.whole)
        for name, given in self.givens.items():
            shape, _ = given.shape_and_range(self.sizes)
            if given.kind in NUMBERS:
                found[name] = self._numbers(arithmetic, name, shape)
            elif given.kind == "orthogonal":
                found[name] = self.frame(arithmetic, name, shape[0], shape[0])
            elif given.kind == "standard":
                raise NoResidue("an expectation")
        return found

    def angle(self, arithmetic: FieldArithmetic, name: str, shape: Sequence[int]) -> Points:
        """Random angles under a name, none of small order."""
        key = (arithmetic.prime, name)
        if key not in self._angles:
            self._angles[key] = random_points(
                arithmetic, shape, self._random(f"{name} angle {arithmetic.prime}"), self.above
            )
        return self._angles[key]

    @property
    def rotates(self) -> bool:
        """Whether an angle was drawn."""
        return bool(self._angles)

    def function(
        self, arithmetic: FieldArithmetic, name: str, args: Sequence[Residue], batch: int
    ) -> Residue:
        """c + Σ a x + (e + Σ b x)^k of all its inputs, with random a, b, c, e for each entry.

        The power k is so high that the function satisfies no identity of low degree by itself.
        """
        given = self.givens[name]
        if given.traits:
            return self._alike(arithmetic, name, args, batch)
        read = [arithmetic.reshape(x, (*x.shape[:batch], -1)) for x in args]
        lead = common(*(x.shape[:batch] for x in read))
        whole = arithmetic.concat(
            [arithmetic.broadcast_to(x, (*lead, x.shape[-1])) for x in read], axis=-1
        )
        out = (
            args[0].shape[batch:]
            if given.out is None
            else tuple(length_value(n, self.sizes) for n in given.out)
        )
        count, length = prod(out), whole.shape[-1]
        shapes = {"a": (length, count), "b": (length, count), "c": (count,), "e": (count,)}
        if length * count > LARGEST_MATRIX:
            raise TooLarge(f"a function of {length} numbers is drawn at small sizes")
        a, b, c, e = (
            self._numbers(arithmetic, f"{name} {part} {length} {count}", shape)
            for part, shape in shapes.items()
        )
        flat = whole.moved(lambda v: v.reshape(-1, length))
        total = flat @ a + (flat @ b + e) ** POWER + c
        found: Residue = arithmetic.reshape(total, (*lead, *out))
        return found

    def _alike(
        self, arithmetic: FieldArithmetic, name: str, args: Sequence[Residue], batch: int
    ) -> Residue:
        """x_i A + (x_i B + c)^k for every row x_i, where c = Σ_j (x_j D + e)³ + Σ y E.

        All rows of the first argument are treated the same; y are the other arguments.  The value
        of an invariant function is c.
        """
        given, x = self.givens[name], args[0]
        invariant = given.traits == ("invariant",) and given.out is not None
        equivariant = given.traits == ("equivariant",) and given.out is None
        if not (invariant or equivariant) or x.ndim < batch + 2 - invariant:
            raise NoResidue(f"a function that is {', '.join(given.traits)}")
        width = x.shape[-1] if given.core[0] > 1 else 1
        out = tuple(length_value(n, self.sizes) for n in given.out or ())
        pools = prod(out) if invariant else width

        def drawn(part: str, *shape: int) -> Residue:
            return self._numbers(arithmetic, f"{name} {part} {shape}", shape)

        rows = arithmetic.reshape(x, (*x.shape[:batch], -1, width))
        pooled = ((rows @ drawn("D", width, pools) + drawn("e", pools)) ** 3).sum(-2)
        for k, y in enumerate(args[1:]):
            flat = arithmetic.reshape(y, (*y.shape[:batch], -1))
            pooled = pooled + (flat @ drawn(f"E {k}", flat.shape[-1], pools))
        if invariant:
            whole: Residue = arithmetic.reshape(pooled, (*x.shape[:batch], *out))
            return whole
        moved = rows @ drawn("B", width, width) + arithmetic.expand_dims(pooled, -2)
        found: Residue = arithmetic.reshape(rows @ drawn("A", width, width) + moved**POWER, x.shape)
        return found

    def _random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    def _numbers(self, arithmetic: FieldArithmetic, name: str, shape: Sequence[int]) -> Residue:
        def drawn() -> torch.Tensor:
            generator = torch.Generator().manual_seed(
                self._random(f"{name} {arithmetic.prime}").getrandbits(62)
            )
            found = torch.randint(
                arithmetic.prime, tuple(shape), generator=generator, dtype=torch.float64
            )
            return arithmetic.reduced(found.to(arithmetic.device))

        return Residue(arithmetic, None, degree=Degree(1, 0), drawn=drawn, shape=tuple(shape))

    def numbers(
        self,
        arithmetic: FieldArithmetic,
        name: str,
        given: Given | None,
        shape: Sequence[int] | None = None,
    ) -> Residue:
        """Random numbers under a name, of the shape of a given or another shape."""
        if shape is None:
            assert given is not None
            shape, _ = given.shape_and_range(self.sizes)
        return self._numbers(arithmetic, name, shape)

    def frame(self, arithmetic: FieldArithmetic, name: str, n: int, columns: int) -> Residue:
        """Orthonormal columns (n, k): those of a product of random reflections 1 − 2 v vᵀ / (v·v).

        Every orthogonal matrix is such a product.  One tower uses n of them and the next n − 1, so
        that one of the two has determinant −1.  The second of two matrices starts with n − 1, so
        that their determinants are not tied to each other.  Some k + 1 reflections take the first k
        columns of the identity to any others; wide square matrices use fewer than n, as n of them
        would take n³ steps, and then no bound is claimed.
        """
        found = arithmetic.of(torch.eye(n, columns, dtype=torch.int64))
        most = n if columns == n else min(n, columns + 1)
        rotate = self._frames.setdefault(name, len(self._frames))
        count = min(most, REFLECTIONS) - (self.place + rotate) % 2
        for k in range(count):
            v = self._numbers(arithmetic, f"{name} reflection {k}", (n,))
            length = (v * v).sum(0)
            if bool(length.value == 0):
                continue
            scaled = v * length.inverse() * -2
            rotated = v @ found
            found = found + scaled.moved(lambda x: x[:, None]) * rotated.moved(lambda x: x[None, :])
        if count < most - 1:
            self.few_reflections.add(name)
        if columns == n:
            self.determinants[name] = (-1) ** count
        found.degree = Degree(2 * count, 2 * count)  # the product of all v·v is one denominator
        return found

    def _whole(self, name: str, given: Given, k: int = 0) -> Any:
        """The k-th try; every second one uses small numbers, and possibly the identity."""
        random = self._random(f"{name} {k}" if k else name)
        shape, below = given.shape_and_range(self.sizes)
        simple = k % 2 == 1
        generator = torch.Generator().manual_seed(random.getrandbits(62))
        if given.kind == "natural":
            return random.randrange(5) if simple else random.randrange(1, LARGEST_NATURAL)
        if given.kind == "index":
            return random.randrange(below)
        if given.kind == "position":
            return torch.randint(0, max(2, self.above // 4), shape, generator=generator)
        if given.kind in ("permutation", "injection"):
            if simple and random.random() < 0.5:
                return torch.arange(shape[0])
            return torch.randperm(below, generator=generator)[: shape[0]]
        if given.kind == "index map":
            return torch.randint(below, shape, generator=generator)
        if given.kind == "boolean":
            mask = torch.rand(shape, generator=generator) < 0.5
            if not shape:
                return mask
            seen = torch.randint(shape[-1], (*shape[:-1], 1), generator=generator)
            return mask | (torch.arange(shape[-1]) == seen)  # every row sees something
        return None
