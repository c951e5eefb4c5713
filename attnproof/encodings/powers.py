"""Powers of one matrix: added to the tokens, or multiplied with queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Encoding,
    Law,
    block_rotation,
    differ,
    equal,
    for_all,
    hypothesis,
    natural,
    real,
    rows,
    sizes,
)
from attnproof.theorems.definitions.powers import each, number_power, power
from attnproof.theorems.definitions.rotary import rotation

(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")
r, c = sizes("n_q n_k", "tokens")


class PlaneRotation(Encoding):
    """M^j x = (sin j, cos j) is added at position j, for x = (0, 1) and M = R(−1).

    M^j is R(−j), so its last column is M^j x.
    """

    title = "powers of a rotation"
    source = ("Ganev, Example 3.5",)
    width = 2
    whole = True

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        return xp.stack((xp.sin(p), xp.cos(p)), axis=-1)

    def shift(self, s: Any) -> Any:
        return rotation(-s)

    def tell(self, here: Any, there: Any) -> Any:
        return here[0] * there[1] - here[1] * there[0]


class BlockPowers(Encoding):
    """M^j x is added at position j, for x = (0, 1, .., 0, 1) and M with blocks R(−θ^b), b < d/2.

    That is sin(j θ^b) and cos(j θ^b) in the channels 2b and 2b + 1; usually θ = 10000^{−2/d}.
    """

    title = "powers of a rotation in blocks"
    source = ("Ganev, Example 3.6",)
    width = 2 * B
    whole = True
    given = {"theta": real()}
    defaults = {"theta": 10_000.0 ** (-1 / 32)}

    def angles(self, p: Any) -> Any:
        """Return j θ^b for block b; M^j rotates it by the opposite angle."""
        xp = array_namespace(p)
        blocks = xp.arange(xp.arange(self.width)[::2].shape[0])
        return p[..., None] * each(blocks, lambda b: number_power(self.theta, b))

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        pairs = xp.stack((xp.sin(self.angles(p)), xp.cos(self.angles(p))), axis=-1)
        return xp.reshape(pairs, (*p.shape, self.width))

    def shift(self, s: Any) -> Any:
        return block_rotation(-self.angles(s))

    def tell(self, here: Any, there: Any) -> Any:
        return here[0] * there[1] - here[1] * there[0]


class MatrixPowers(Encoding):
    """M^j x is added at position j = 0, 1, 2, .., for any matrix M and any vector x, its start.

    The maps j ↦ M^j are exactly the monoid homomorphisms from the natural numbers to the matrices.
    A start that makes all M^j x different is an evaluation point; some M have none.
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


class Multiplicative(Encoding):
    """A query or key x at position j = 0, 1, 2, .. becomes M^j x, for any square matrix M.

    RoPE at whole positions is M = Rot(ω).
    """

    title = "multiplicative"
    source = ("Ganev, Definition 3.7 (there it acts on the data, before W_Q and W_K)",)
    width = d
    whole = True
    given = {"M": real(d, d)}
    defaults = {"M": block_rotation(10_000.0 ** (-np.arange(32) / 32))}

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        powers = each(p, lambda j: power(self.M, j))
        return xp.sum(powers * x[..., None, :], axis=-1)

    # The last one is for consecutive whole positions, u_0 + i and p_0 + j.
    def facts(self) -> dict[str, Any]:
        M, a, s = self.M, {"a": natural()}, {"s": natural()}
        u, p = (natural().named(name) for name in ("u_0", "p_0"))

        def products(s: Any) -> Any:
            return rows(
                r, lambda i: rows(c, lambda j: power(M, u + i + s).mT @ power(M, p + j + s))
            )

        return {
            "M^(a + s) = M^s M^a": for_all(
                a | s,
                lambda a, s: equal(power(M, a + s), power(M, s) @ power(M, a)).by_induction(s),
            ),
            "M^(a + b) = M^b M^a": for_all(
                a | {"b": natural()},
                lambda a, b: equal(power(M, a + b), power(M, b) @ power(M, a)).by_induction(b),
            ),
            "M^a is orthogonal": for_all(
                a, lambda a: equal(power(M, a).mT @ power(M, a), power(M, 0)).by_induction(a)
            ),
            "s more factors cancel between a and b": for_all(
                s | a | {"b": natural()},
                lambda s, a, b: equal(
                    power(M, a + s).mT @ power(M, b + s), power(M, a).mT @ power(M, b)
                ).by_induction(s),
            ),
            "s more factors on both sides cancel": for_all(
                s | {"u": natural(), "p": natural()},
                lambda s, **_: equal(products(s), products(0)).by_induction(s),
            ),
        }

    @hypothesis("M is orthogonal")
    def orthogonal(self) -> list[Any]:
        return [(self.M.mT @ self.M, power(self.M, 0))]
