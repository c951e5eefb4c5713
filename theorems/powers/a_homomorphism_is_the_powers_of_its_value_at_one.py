"""A map φ from the natural numbers to matrices that turns sums into products is a power map."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    differ,
    equal,
    for_all,
    function,
    natural,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.hypotheses import nothing
from attnproof.theorems.definitions.powers import power

(d,) = sizes("d", "features")


def sums_to_products(phi: Function) -> Law:
    """φ(m + k) = φ(m) φ(k) for all natural m and k."""
    return for_all(
        {"m": natural(), "k": natural()}, lambda m, k: equal(phi(m + k), phi(m) @ phi(k))
    )


@theorem(
    "φ(j) = φ(1)^j for every monoid homomorphism φ, and j ↦ M^j is one for every M",
    given={
        "phi": function(0, out=(d, d), says="a map from natural numbers to matrices"),
        "M": real(d, d), "j": natural(), "k": natural(),
    },
    assume=lambda phi, M: [sums_to_products(phi), equal(phi(0), array_namespace(M).eye(d))],
    sources=("Ganev, Definition 3.1 and Remark 3.2",),
    claims=("G3.1a", "G3.2", "G3.5b"),
)  # fmt: skip
def statement(phi: Function, M: Array, j: Array, k: Array) -> dict[str, Claim]:
    """That φ(0) = 1 is a condition of its own.

    With E = diag(1, 0) the map that is E everywhere turns sums into products, and E is not 1.
    """
    xp = array_namespace(M)
    E = xp.eye(2)[0][:, None] * xp.eye(2)[0][None, :]
    law = sums_to_products(phi)
    return {
        "φ is determined by φ(1)": equal(phi(j), power(phi(1), j))
        .by_induction(j)
        .with_facts(law.at(m=1, k=j)),
        "powers turn sums into products": equal(
            power(M, j + k), power(M, j) @ power(M, k)
        ).by_induction(j),
        "the power 0 is 1": equal(power(M, xp.zeros(())), xp.eye(d)),
        "E E = E": equal(E @ E, E),
        "E is not 1": differ(E[1, 1], xp.eye(2)[1, 1], -1),
    }


@statement.twin_of("powers turn sums into sums", assume=nothing)
def sums(M: Array, j: Array, k: Array) -> Claim:
    return equal(power(M, j + k), power(M, j) + power(M, k))
