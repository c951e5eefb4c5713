"""Attention as a linear model: orthonormal keys and least squares."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    at_least,
    chain,
    equal,
    for_all,
    orthogonal,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.powers import no_hypotheses

ell, d = sizes("ell d", "features")
(n,) = sizes("n", "tokens")


@theorem(
    "q = Σ_i ⟨q, k_i⟩ k_i for an orthonormal basis k_1, .., k_ℓ, in this way only",
    given={"K": orthogonal(ell), "q": real(ell), "c": real(ell)},
    sources=("Ganev, section 2.1, after eq. 2.1",),
    claims=("GS2.1.2",),
)
def an_orthonormal_basis_gives_the_coefficients(K: Array, q: Array, c: Array) -> dict[str, Claim]:
    """The rows of K are the keys; the dot products of Σ_i c_i k_i with them are the c_i."""
    return {
        "dot products are coefficients": equal(K.mT @ (K @ q), q),
        "no other coefficients": equal(K @ (K.mT @ c), c),
    }


@an_orthonormal_basis_gives_the_coefficients.negative_control(
    "the keys are any ℓ vectors", K=real(ell, ell)
)
def any_keys(K: Array, q: Array) -> Claim:
    return equal(K.mT @ (K @ q), q)


def hypotheses(K: Array, A: Array, U: Array) -> list[tuple[Array, Array]]:
    """A is the inverse of KᵀK; the columns of U are orthonormal."""
    one = array_namespace(K).eye(ell)
    return [(K.mT @ K @ A, one), (A @ (K.mT @ K), one), (U.mT @ U, one)]


@theorem(
    "B₀ = (KᵀK)⁻¹KᵀV has the least squared error ‖KB − V‖², and no other B has it",
    given={
        "K": real(n, ell),
        "V": real(n, d),
        "B": real(ell, d),
        "A": real(ell, ell, says="the inverse of KᵀK"),
        "U": real(n, ell, says="keys with orthonormal columns"),
    },
    assume=hypotheses,
    sources=("Ganev, Remark 2.2",),
    claims=("G2.2a", "G2.2b"),
)
def least_squares_maps_keys_to_values(
    K: Array, V: Array, B: Array, A: Array, U: Array
) -> dict[str, Claim | Law]:
    """A batch Q of queries gives QB₀; if the columns of K are orthonormal, this is QKᵀV."""
    xp = array_namespace(K)
    one = xp.eye(ell)
    best = A @ (K.mT @ V)
    change = B - best
    error = K.mT @ (K @ best - V)
    normal = for_all(
        {},
        lambda: chain(
            error,
            ("the product is associative", (K.mT @ K @ A) @ (K.mT @ V) - K.mT @ V),
            ("A is the inverse of KᵀK", one @ (K.mT @ V) - K.mT @ V),
            ("the same twice", xp.zeros((ell, d))),
        ),
    )
    least = squares(K @ best - V)
    larger = for_all(
        {},
        lambda: chain(
            squares(K @ B - V),
            ("the square of a sum", least + squares(K @ change) + 2 * xp.sum(change * error)),
            (
                "the error is orthogonal to the keys",
                least + squares(K @ change) + 2 * xp.sum(change * xp.zeros((ell, d))),
            ),
            ("0 adds nothing", least + squares(K @ change)),
        ).with_facts(normal),
    )
    return {
        "the error is orthogonal to the keys": normal,
        "the error of B is larger by ‖K(B − B₀)‖²": larger,
        "no error is smaller": at_least(
            squares(K @ B - V),
            squares(K @ best - V),
            ("the error of B is larger", squares(K @ change)),
        ).with_facts(larger),
        "and none is equal, as K(B − B₀) = 0 only if B = B₀": chain(
            A @ (K.mT @ (K @ change)),
            ("the product is associative", (A @ (K.mT @ K)) @ change),
            ("A is the inverse of KᵀK", one @ change),
            ("the identity", change),
        ),
        "with orthonormal columns B₀ is UᵀV": equal(
            squares(U @ B - V), squares(U @ (U.mT @ V) - V) + squares(B - U.mT @ V)
        ),
    }


def squares(x: Array) -> Array:
    """The sum of the squares of the entries."""
    total: Array = array_namespace(x).sum(x**2)
    return total


@least_squares_maps_keys_to_values.negative_control(
    "KᵀV is best for any keys", assume=no_hypotheses
)
def raw_form(K: Array, V: Array, B: Array) -> Claim:
    return at_least(squares(K @ B - V), squares(K @ (K.mT @ V) - V))
