"""Vectors that come back under a matrix: a subspace, and a proper one if its powers differ."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    chain,
    equal,
    for_all,
    index_below,
    natural,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.powers import geometric_sum, power

(d,) = sizes("d", "features")


@theorem(
    "M^{b+a+kp} − M^{b+a} = (1 + M^p + M^{2p} + .. + M^{(k−1)p}) M^b (M^{a+p} − M^a)",
    given={
        "M": real(d, d), "x": real(d), "y": real(d), "c": real(), "i": index_below(d),
        "a": natural(), "b": natural(), "p": natural(), "q": natural(),
    },
    sources=("Ganev, Definition 3.1: an evaluation point, if it exists",),
    claims=("G3.1b",),
)  # fmt: skip
def statement(
    M: Array, x: Array, y: Array, c: Array, i: Array, a: Array, b: Array, p: Array, q: Array
) -> dict[str, Claim | Law]:
    """So M^{a+p} x = M^a x implies M^{b+a+kp} x = M^{b+a} x for all b and k.

    Such x, with p >= 1, are those that are no evaluation point of M.  If x has the exponents a, p
    and y has b, q, then c x + y has a + b, pq: they form a subspace of ℝ^d.  If all unit vectors
    e_i are among them, with exponents a_i, p_i, then all have Σ a_i and Π p_i as well, so that
    two powers of M agree in every column.  If no two powers agree, then a unit vector is an
    evaluation point, and so is every vector outside a proper subspace.
    """
    xp = array_namespace(M)
    one = xp.eye(d)
    sums = for_all(
        {"j": natural(), "k": natural()},
        lambda j, k: equal(power(M, j + k), power(M, j) @ power(M, k)).by_induction(j),
    )
    series = for_all(
        {"k": natural(), "p": natural()},
        lambda k, p: (
            equal(power(M, k * p), one + geometric_sum(M, k, p) @ (power(M, p) - one))
            .by_induction(k)
            .with_facts(sums.at(j=k * p, k=p))
        ),
    )
    again = for_all({"j": natural(), "k": natural(), "p": natural()}, lambda j, k, p: chain(
        step(M, j, k * p),
        ("powers add up", (power(M, k * p) - one) @ power(M, j)),
        ("the geometric series", geometric_sum(M, k, p) @ ((power(M, p) - one) @ power(M, j))),
        ("powers add up", geometric_sum(M, k, p) @ step(M, j, p)),
    ).with_facts(sums.at(j=k * p, k=j), series.at(k=k, p=p), sums.at(j=p, k=j)))  # fmt: skip
    later = for_all(
        {"b": natural(), "a": natural(), "p": natural()},
        lambda b, a, p: equal(step(M, b + a, p), power(M, b) @ step(M, a, p)).with_facts(
            sums.at(j=b, k=a + p), sums.at(j=b, k=a)
        ),
    )

    def repeats(z: Array, b: Array, a: Array, k: Array, p: Array) -> Claim:
        return chain(
            step(M, b + a, k * p) @ z,
            ("k rounds of p steps", geometric_sum(M, k, p) @ (step(M, b + a, p) @ z)),
            ("b steps later", geometric_sum(M, k, p) @ (power(M, b) @ (step(M, a, p) @ z))),
        ).with_facts(again.at(j=b + a, k=k, p=p), later.at(b=b, a=a, p=p))

    numbers = {name: natural() for name in ("b", "a", "k", "p")}
    law = for_all({"z": real(d), **numbers}, repeats)
    return {
        "powers add up": sums,
        "the geometric series": series,
        "k rounds of p steps": again,
        "b steps later": later,
        "what repeats repeats for ever": law,
        "c x + y": equal(
            step(M, a + b, p * q) @ (c * x + y),
            c * (geometric_sum(M, q, p) @ (power(M, b) @ (step(M, a, p) @ x)))
            + geometric_sum(M, p, q) @ (power(M, a) @ (step(M, b, q) @ y)),
        ).with_facts(law.at(z=x, b=b, a=a, k=q, p=p), law.at(z=y, b=a, a=b, k=p, p=q)),
        "column i": chain(
            step(M, b + a, q * p)[:, i],
            ("its value at e_i", step(M, b + a, q * p) @ one[i]),
            (
                "q rounds, b steps later",
                geometric_sum(M, q, p) @ (power(M, b) @ (step(M, a, p) @ one[i])),
            ),
        ).with_facts(law.at(z=one[i], b=b, a=a, k=q, p=p)),
    }


def step(M: Array, a: Array, p: Array) -> Array:
    """M^{a+p} − M^a, which takes a vector to 0 if it repeats after a and a + p steps."""
    difference: Array = power(M, a + p) - power(M, a)
    return difference


@statement.twin_of("two rounds are counted as one")
def two_rounds(M: Array, a: Array, b: Array, p: Array) -> Claim:
    return equal(step(M, b + a, 2 * p), power(M, b) @ step(M, a, p))
