"""Expectations and variances of scores."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    probability_space,
    real,
    sizes,
    standard,
    theorem,
)

(ell,) = sizes("ell", "features")


space, other = probability_space("Ω"), probability_space("Ω'")


@theorem(
    "⟨q, k⟩ has mean ℓμ² and variance ℓ(σ⁴ + 2μ²σ²)",
    given={
        "z": standard(space, ell),
        "w": standard(other, ell),
        "mu": real(says="the mean of every entry"),
        "sigma": real(says="the standard deviation of every entry"),
    },
    sources=("Ganev, eq. 2.3 and footnote 1",),
    claims=("GS2.1.5", "GF1"),
)
def the_variance_of_a_score_grows_with_the_width(
    z: Array, w: Array, mu: Array, sigma: Array
) -> dict[str, Claim]:
    """q = μ + σz and k = μ + σw are drawn independently; the entries of each are uncorrelated."""
    xp = array_namespace(z)
    q, k = mu + sigma * z, mu + sigma * w
    products = mu**2 + sigma**2 * xp.eye(ell)
    return {
        "products of entries": equal(xp.sum(q[:, :, None] * q[:, None, :], axis=0), products),
        "mean": equal(expected(q @ k.mT), ell * mu**2),
        "variance": chain(
            variance(q @ k.mT),
            ("E q_i q_j = E k_i k_j, and q is independent of k", spread(products, mu)),
            ("ℓ entries have i = j", ell * (sigma**4 + 2 * mu**2 * sigma**2)),
        ),
        "mean of a standard score": equal(expected(z @ w.mT), 0),
        "variance of a standard score": equal(variance(z @ w.mT), ell),
        "mean after division by √ℓ": equal(expected(z @ w.mT / ell**0.5), 0),
        "variance after division by √ℓ": equal(variance(z @ w.mT / ell**0.5), 1),
    }


def spread(products: Array, mu: Array) -> Array:
    """Σ_ij (E q_i q_j)² − (Σ_i μ²)²."""
    total: Array = array_namespace(products).sum(products**2)
    return total - (ell * mu**2) ** 2


def expected(x: Array) -> Array:
    """The mean over both experiments."""
    xp = array_namespace(x)
    mean: Array = xp.sum(xp.sum(x, axis=1), axis=0)
    return mean


def variance(x: Array) -> Array:
    """E x² − (E x)²."""
    return expected(x**2) - expected(x) ** 2


@the_variance_of_a_score_grows_with_the_width.negative_control(
    "the variance is said to be ℓσ² + 2ℓμ²σ² + ℓμ⁴"
)
def as_printed(z: Array, w: Array, mu: Array, sigma: Array) -> Claim:
    return equal(
        variance((mu + sigma * z) @ (mu + sigma * w).mT),
        ell * sigma**2 + 2 * ell * mu**2 * sigma**2 + ell * mu**4,
    )
