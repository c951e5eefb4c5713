"""Row j of the queries and keys is multiplied by M^j."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Encoding,
    block_rotation,
    equal,
    for_all,
    hypothesis,
    natural,
    real,
    rows,
    sizes,
)
from attnproof.theorems.definitions.powers import each, power

(d,) = sizes("d", "features")
r, c = sizes("n_q n_k", "tokens")


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

    # The last is of whole positions in a row, u_0 + i and p_0 + j.
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
