"""The table of M^j x: its rows, as one tensor, and what a shift does to it."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    equal,
    for_all,
    function,
    index_below,
    natural,
    over,
    real,
    rows,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import embedding, power

(n,) = sizes("n", "tokens")
(d,) = sizes("d", "features")


@theorem(
    "P_{j+k} = P_j (M^k)ᵀ for the table P with rows P_j = M^j x, whatever M and x are",
    given={
        "M": real(d, d), "x": real(d), "k": natural(), "i": index_below(n),
        "phi": function(0, out=(d, d), says="a map from natural numbers to matrices"),
    },
    sources=(
        "Ganev, Definition 3.1 and Remark 3.3",
        "document 000, sinusoidal embedding, for the shift in one encoding",
    ),
    claims=("G3.1c", "G3.3", "X3"),
)  # fmt: skip
def statement(M: Array, x: Array, k: Array, i: Array, phi: Function) -> dict[str, Claim | Law]:
    """Rows count from 0.  Moving all positions by k multiplies each row by one matrix.

    The table is Σ_j e_j ⊗ φ(j) with x put in the last place, for φ(j) = M^j and any other φ.
    """
    xp = array_namespace(M)
    product = for_all(
        {"j": natural(), "k": natural()},
        lambda j, k: equal(power(M, j + k), power(M, k) @ power(M, j)).by_induction(k),
    )
    tensor = xp.sum(rows(n, lambda j: xp.eye(n)[j][:, None, None] * phi(j)), axis=0)
    return {
        "row i": equal(embedding(M, x, n)[i], power(M, i) @ x),
        "the first row": equal(embedding(M, x, n)[0], x),
        "as a tensor": equal(xp.sum(tensor * x, axis=-1), rows(n, lambda j: phi(j) @ x)),
        "M^(j+k) = M^k M^j": product,
        "shift": equal(
            rows(n, lambda j: power(M, j + k) @ x), embedding(M, x, n) @ power(M, k).mT
        ).with_facts(over(n, lambda j: product.at(j=j, k=k))),
    }


@statement.twin_of("without the transpose")
def not_transposed(M: Array, x: Array, k: Array) -> Claim:
    return equal(rows(n, lambda j: power(M, j + k) @ x), embedding(M, x, n) @ power(M, k))
