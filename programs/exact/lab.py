"""What the laws draw, and the two sides they compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...numeric.residues.residue import Degree
from .guards import POSITION, as_numbers, whole
from .payload import Field
from .session import Session
from .tensor import Duck, apart

__all__ = ["Lab", "Sides"]


@dataclass(frozen=True)
class Sides:
    """Two results that should agree, each with what it is in words, and what went in."""

    here: tuple[str, Tensor]
    there: tuple[str, Tensor]
    inputs: Mapping[str, Any]
    where: Tensor | None = None
    """The entries that are compared, where not all are."""
    given: bool = True
    """Whether the code is given what is drawn; else the sides are what it makes of sizes."""


class Lab:
    """Random values of one session, in a dtype; ``given`` is the code as it came."""

    def __init__(
        self, session: Session, dtype: torch.dtype, *, wanted: bool = False, given: Any = None
    ) -> None:
        self.session, self.dtype, self.wanted, self.given = session, dtype, wanted, given
        self._drawn = 0
        self.whys: dict[int, str] = {}
        self.shapes: list[tuple[int, ...]] = []
        self.places: tuple[int, int] | None = None
        session.most = getattr(given, "most", session.most)

    def again(self, start: int = 0) -> None:
        """What is drawn from here on is what was drawn from the start, or from elsewhere."""
        self._drawn = start

    @apart
    def numbers(self, *shape: int) -> Duck:
        """Independent random numbers."""
        self._drawn += 1
        if shape not in self.shapes and len(shape) > 1:
            self.shapes.append(shape)
        generator = torch.Generator().manual_seed(self.session.seed * 1009 + self._drawn)
        numbers = torch.randn(shape, generator=generator, dtype=torch.float64).to(self.dtype)
        levels = tuple(self.session.drawn(k, shape, self._drawn)
                       for k in range(len(self.session.fields)))  # fmt: skip
        return Duck(numbers, Field(levels, Degree(1, 0)), self.session)

    @apart
    def positions(self, x: Tensor) -> Duck:
        """Whole numbers that are followed."""
        if x.numel():
            low, high = self.places or (int(x.min()), int(x.max()))
            self.places = min(low, int(x.min())), max(high, int(x.max()))
        return Duck(x, whole(x), self.session, POSITION)

    @apart
    def followed(self, x: Tensor) -> Duck:
        """Positions; or numbers that are what they are in the field as well: 0, 1, and the like."""
        if not x.is_floating_point():
            return self.positions(x)
        numbers = x.to(self.dtype)
        return Duck(numbers, as_numbers(numbers), self.session)

    @apart
    def whole_numbers(self, most: int, *shape: int, first: int = 0) -> Tensor:
        """Plain random whole numbers from ``first`` to ``most``."""
        self._drawn += 1
        generator = torch.Generator().manual_seed(self.session.seed * 1009 + self._drawn)
        return torch.randint(first, most + 1, shape, generator=generator)

    @apart
    def order(self, n: int) -> Tensor:
        """A permutation of n > 1 that moves every entry."""
        self._drawn += 1
        generator = torch.Generator().manual_seed(self.session.seed * 1009 + self._drawn)
        found = torch.arange(n)
        while bool((found == torch.arange(n)).any()):
            found = torch.randperm(n, generator=generator)
        return found
