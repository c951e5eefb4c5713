"""The powers of a matrix at a vector, added to the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, Law, differ, equal, for_all, hypothesis, natural, real, sizes
from attnproof.theorems.definitions.powers import each, power
from attnproof.theorems.definitions.rotary import block_rotation

(d,) = sizes("d", "features")


class MatrixPowers(Encoding):
    """M^j x is added at position j = 0, 1, 2, .., for any matrix M and any vector x, its start.

    The maps j ↦ M^j are all monoid homomorphisms from the natural numbers to the matrices.  A
    start that makes all M^j x different is an evaluation point; some M have none.
    """

    title = "powers of a matrix"
    source = ("Ganev, Definition 3.1 and Remark 3.2",)
    width = d
    whole = True
    given = {"M": real(d, d), "start": real(d)}
    defaults = {
        "M": block_rotation(-(10_000.0 ** (-np.arange(32) / 32))),
        "start": np.tile([0.0, 1.0], 32),
    }

    def add(self, p: Any) -> Any:
        return each(p, lambda j: power(self.M, j) @ self.start)

    def tell(self, here: Any, there: Any) -> Any:
        return array_namespace(here).sum((here - there) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        return self.tell(power(self.M, i) @ self.start, power(self.M, j) @ self.start)

    def shift(self, s: Any) -> Any:
        return power(self.M, s)

    def bound(self) -> Any:
        xp = array_namespace(self.start)
        return xp.sqrt(xp.sum(self.start**2))

    def facts(self) -> dict[str, Law]:
        a, s = {"a": natural("a position")}, {"s": natural("a shift")}
        return {
            "M^(a + s) = M^s M^a": for_all(
                a | s,
                lambda a, s: equal(
                    power(self.M, a + s), power(self.M, s) @ power(self.M, a)
                ).by_induction(s),
            ),
            "M^a is orthogonal": for_all(
                a,
                lambda a: equal(
                    power(self.M, a).mT @ power(self.M, a), power(self.M, 0)
                ).by_induction(a),
            ),
        }

    @hypothesis("the start is an evaluation point: no two M^j x are equal")
    def evaluation_point(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j), 0)]

    @hypothesis("M is orthogonal")
    def orthogonal(self) -> list[Any]:
        return [(self.M.mT @ self.M, power(self.M, 0))]
