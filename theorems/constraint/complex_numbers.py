"""The same equation over the complex numbers."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    angle,
    at_least,
    chain,
    equal,
    for_all,
    function,
    natural,
    nonnegative,
    orthogonal,
    over,
    positive,
    real,
    rows,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import no_hypotheses, offset_of_powers, power
from attnproof.theorems.definitions.rotary import (
    conjugate,
    modulus,
    polar,
    product,
    real_number,
    unit,
)

(B,) = sizes("B", "blocks")
n, d = sizes("n d", "features")


@theorem(
    "x·y = Re Σ_b z_b w̄_b for the pairs z_b = (x_{2b}, x_{2b+1}), w_b = (y_{2b}, y_{2b+1})",
    given={
        "x": real(2 * B),
        "y": real(2 * B),
        "p": real(n),
        "q": real(n),
        "r": nonnegative(),
        "s": nonnegative(),
        "a": angle(),
        "b": angle(),
    },
    sources=("document 004, the complex view of a token",),
    claims=("R14", "R15", "R24"),
)
def pairs_of_coordinates_are_complex_numbers(
    x: Array, y: Array, p: Array, q: Array, r: Array, s: Array, a: Array, b: Array
) -> dict[str, Claim]:
    """One factor is conjugated; for one pair the sum is |z||w| cos of the angle between them."""
    xp = array_namespace(x)
    z, w = xp.reshape(x, (B, 2)), xp.reshape(y, (B, 2))
    one, other = polar(r, a), polar(s, b)
    entries = p[:, None] * q[None, :]
    lagrange = xp.sum((entries - entries.mT) ** 2) / 2
    return {
        "real part of the Hermitian product": equal(
            x @ y, xp.sum(product(z, conjugate(w))[:, 0], axis=0)
        ),
        "lengths and the angle between": equal(one @ other, r * s * xp.cos(a - b)),
        "squared lengths": equal(one @ one, r**2),
        "at most the product of the lengths": at_least(
            (p @ p) * (q @ q), (p @ q) ** 2, ("Lagrange's identity", lagrange)
        ),
    }


@pairs_of_coordinates_are_complex_numbers.negative_control("no factor is conjugated")
def without_conjugate(x: Array, y: Array) -> Claim:
    xp = array_namespace(x)
    z, w = xp.reshape(x, (B, 2)), xp.reshape(y, (B, 2))
    return equal(x @ y, xp.sum(product(z, w)[:, 0], axis=0))


def two_phases_and_lengths(r: Array, u: Array, v: Array, Z: Array, L: Array) -> list[Any]:
    """r u = r v, and L holds the squared lengths of the pairs of Z, as squares."""
    xp = array_namespace(u)
    return [(r * u, r * v), (xp.sum(Z**2, axis=-1), L**2)]


@theorem(
    "r u = r v with r > 0 gives u = v; and z = |z| u with |u| = 1, pair by pair",
    given={"r": positive(), "u": real(2), "v": real(2), "Z": real(B, 2), "L": positive(B)},
    sources=("document 004, polar form of a token",),
    claims=("R17b", "R31"),
    assume=two_phases_and_lengths,
)
def a_nonzero_complex_number_has_one_phase(
    r: Array, u: Array, v: Array, Z: Array, L: Array
) -> dict[str, Claim]:
    """A phase is a point u of the unit circle, so it counts modulo 2π.

    Pair b of Z has the length L_b > 0 and its own phase Z_b / L_b.
    """
    xp = array_namespace(u)
    inverse = xp.stack((1 / r, xp.zeros(())))
    phases = Z / L[:, None]
    return {
        "one phase": chain(
            u,
            ("r is not 0", product(r * u, inverse)),
            ("both are the same number", product(r * v, inverse)),
            ("r is not 0", v),
        ),
        "every pair has a modulus and a phase": equal(L[:, None] * phases, Z),
        "the phase is on the circle": chain(
            xp.sum(phases**2, axis=-1),
            ("L is not 0", xp.sum(Z**2, axis=-1) / L**2),
            ("L² is the squared length", L**2 / L**2),
            ("L is not 0", xp.ones(B)),
        ),
    }


@a_nonzero_complex_number_has_one_phase.negative_control(
    "the number is 0", assume=lambda u, v: [(0 * u, 0 * v)]
)
def at_zero(u: Array, v: Array) -> Claim:
    return equal(u, v)


@theorem(
    "z w̄ = g gives |z||w| = |g|, and the phase of g is that of z less that of w",
    given={
        "z": real(2),
        "w": real(2),
        "g": real(2),
        "r": nonnegative(),
        "s": nonnegative(),
        "a": angle(),
        "b": angle(),
    },
    sources=("document 004, equating moduli and phases",),
    claims=("R16", "R17", "R22"),
    assume=lambda z, w, g: [(g, product(z, conjugate(w)))],
)
def hermitian_products_multiply_moduli_and_subtract_phases(
    z: Array, w: Array, g: Array, r: Array, s: Array, a: Array, b: Array
) -> dict[str, Claim]:
    """The sign of the phase follows the factor that is conjugated."""
    one, other = polar(r, a), polar(s, b)
    return {
        "moduli": equal((z @ z) * (w @ w), g @ g),
        "the modulus of a polar form": equal(modulus(one), r),
        "the key is conjugated": equal(product(one, conjugate(other)), polar(r * s, a - b)),
        "the query is conjugated": equal(product(conjugate(one), other), polar(r * s, b - a)),
    }


@hermitian_products_multiply_moduli_and_subtract_phases.negative_control(
    "only the real product is given", assume=lambda z, w, g: [(g[0], z @ w)]
)
def real_product(z: Array, w: Array, g: Array) -> Claim:
    return equal((z @ z) * (w @ w), g @ g)


TOKENS = {"x": real(2), "y": real(2)}


def constraint(f: Function, g: Function) -> Law:
    """f(x, m) conj f(y, n) = g(x, y, n − m)."""
    return for_all(
        {**TOKENS, "m": natural(), "n": natural()},
        lambda x, y, m, n: equal(product(f(x, m), conjugate(f(y, n))), g(x, y, n - m)),
    )


def start(f: Function) -> Law:
    """f(x, 0) = x."""
    return for_all({"x": real(2)}, lambda x: equal(f(x, 0), x))


def one(x: Array) -> Array:
    """The number 1 + 0i."""
    number: Array = real_number(array_namespace(x).ones(()))
    return number


def first_token(f: Function, u: Function) -> Law:
    """u_m = f(1, m); no hypothesis on f, only a name for that number."""
    return for_all({"m": natural()}, lambda m: equal(u(m), f(one(u(m)), m)))


@theorem(
    "f(x, m) conj f(y, n) = g(x, y, n − m) and f(x, 0) = x give f(x, m) = x e^{imθ}",
    given={
        "f": function(1, 0, out=(2,), says="any encoder of one complex number"),
        "g": function(1, 1, 0, out=(2,)),
        "u": function(0, out=(2,), says="u_m = f(1, m)"),
        "x": real(2),
        "m": natural(),
        "theta": angle(),
    },
    sources=("document 004, derivation of the rotary encoding",),
    claims=("R26", "R30"),
    assume=lambda f, g, u, theta: [
        constraint(f, g),
        start(f),
        first_token(f, u),
        (u(1), unit(theta)),
    ],
)
def the_hermitian_constraint_leaves_one_rotation(
    f: Function, g: Function, u: Function, x: Array, m: Array, theta: Array
) -> dict[str, Claim | Law]:
    """u_m = f(1, m) has modulus 1, and θ is the phase of u_1, which is unique modulo 2π.

    That a number of modulus 1 has a phase, unique modulo 2π, is quoted.
    """
    xp = array_namespace(x)
    relative, begins, named = constraint(f, g), start(f), first_token(f, u)
    unity, zero = one(x), xp.zeros(())
    shift = for_all(
        {**TOKENS, "m": natural(), "n": natural()},
        lambda x, y, m, n: chain(
            product(f(x, m), conjugate(f(y, m + n))),
            ("the constraint", g(x, y, (m + n) - m)),
            ("the same offset", g(x, y, n - zero)),
            ("the constraint", product(f(x, 0), conjugate(f(y, n)))),
            ("f(x, 0) = x", product(x, conjugate(f(y, n)))),
        ).with_facts(
            relative.at(x=x, y=y, m=m, n=m + n), relative.at(x=x, y=y, m=0, n=n), begins.at(x=x)
        ),
    )
    at_zero = for_all({}, lambda: equal(u(0), unity).with_facts(named.at(m=0), begins.at(x=unity)))
    against_one = for_all(
        {"x": real(2), "m": natural(), "n": natural()},
        lambda x, m, n: chain(
            product(f(x, m), conjugate(u(m + n))),
            ("u_m = f(1, m)", product(f(x, m), conjugate(f(unity, m + n)))),
            ("a common shift", product(x, conjugate(f(unity, n)))),
            ("u_m = f(1, m)", product(x, conjugate(u(n)))),
        ).with_facts(named.at(m=m + n), named.at(m=n), shift.at(x=x, y=unity, m=m, n=n)),
    )
    on_circle = for_all(
        {"m": natural()},
        lambda m: chain(
            product(u(m), conjugate(u(m))),
            ("u_m = f(1, m)", product(f(unity, m), conjugate(u(m + zero)))),
            ("a common shift", product(unity, conjugate(u(0)))),
            ("u_0 = 1", unity),
        ).with_facts(named.at(m=m), against_one.at(x=unity, m=m, n=0), at_zero.at()),
    )
    factor = for_all(
        {"x": real(2), "m": natural()},
        lambda x, m: chain(
            f(x, m),
            ("times 1", product(unity, f(x, m))),
            ("u has modulus 1", product(product(u(m), conjugate(u(m))), f(x, m))),
            ("in another order", product(product(f(x, m), conjugate(u(m + zero))), u(m))),
            ("a common shift", product(product(x, conjugate(u(0))), u(m))),
            ("u_0 = 1", product(x, u(m))),
        ).with_facts(on_circle.at(m=m), against_one.at(x=x, m=m, n=0), at_zero.at()),
    )
    step = for_all(
        {"m": natural()},
        lambda m: chain(
            u(m + 1),
            ("times 1", product(unity, u(m + 1))),
            ("u has modulus 1", product(product(u(m), conjugate(u(m))), u(m + 1))),
            ("in another order", product(u(m), conjugate(product(u(m), conjugate(u(m + 1)))))),
            ("u_m = f(1, m)", product(u(m), conjugate(product(f(unity, m), conjugate(u(m + 1)))))),
            ("a common shift", product(u(m), conjugate(product(unity, conjugate(u(1)))))),
            ("conj conj z = z", product(u(m), u(1))),
        ).with_facts(on_circle.at(m=m), named.at(m=m), against_one.at(x=unity, m=m, n=1)),
    )
    rotates = for_all(
        {"m": natural()},
        lambda m: (
            equal(u(m), unit(m * theta)).by_induction(m).with_facts(step.at(m=m), at_zero.at())
        ),
    )
    return {
        "a common shift changes nothing": shift,
        "u starts at 1": at_zero,
        "against the token 1": against_one,
        "u has modulus 1": on_circle,
        "f multiplies by u": factor,
        "u grows by one factor": step,
        "u is a power": rotates,
        "f(x, m) = x e^{imθ}": chain(
            f(x, m),
            ("f multiplies by u", product(x, u(m))),
            ("u is a power", product(x, unit(m * theta))),
        ).with_facts(factor.at(x=x, m=m), rotates.at(m=m)),
    }


@the_hermitian_constraint_leaves_one_rotation.negative_control(
    "nothing is assumed of f", assume=no_hypotheses
)
def any_encoder(f: Function, x: Array, m: Array, theta: Array) -> Claim:
    return equal(f(x, m), product(x, unit(m * theta)))


def imaginary_part(M: Array, J: Array) -> Law:
    """⟨M x, J M y⟩ = ⟨x, J y⟩."""
    return for_all(
        {"x": real(d), "y": real(d)}, lambda x, y: equal((M @ x) @ (J @ (M @ y)), x @ (J @ y))
    )


@theorem(
    "An orthogonal M keeps ⟨x, J y⟩ if and only if J M = M J",
    given={
        "M": orthogonal(d),
        "N": orthogonal(d),
        "J": real(d, d),
        "x": real(d),
        "y": real(d),
        "m": natural(),
        "k": natural(),
        "A": orthogonal(B),
        "Z": real(B, 2, says="one complex number for each pair"),
    },
    sources=("document 004, the complex view of a token",),
    claims=("R30",),
    assume=lambda M, N, J: [imaginary_part(M, J), (J @ N, N @ J)],
)
def a_hermitian_solution_in_many_pairs_is_unitary(
    M: Array, N: Array, J: Array, x: Array, y: Array, m: Array, k: Array, A: Array, Z: Array
) -> dict[str, Claim | Law]:
    """With J for i, ⟨x, J y⟩ is the imaginary part of the Hermitian product of complex vectors.

    So a solution M^m x of the real constraint solves the Hermitian one if and only if M commutes
    with i, that is, if M is unitary.  It need not rotate each pair by itself: a real orthogonal A
    may mix the pairs.
    """
    xp = array_namespace(x)
    i = xp.stack((xp.zeros(()), xp.ones(())))
    basis = xp.eye(x.shape[0])
    kept = imaginary_part(M, J)
    matrices = for_all(
        {},
        lambda: chain(
            M.mT @ (J @ M),
            (
                "entry by entry",
                rows(d, lambda i: rows(d, lambda j: (M @ basis[i]) @ (J @ (M @ basis[j])))),
            ),
            ("the law", rows(d, lambda i: rows(d, lambda j: basis[i] @ (J @ basis[j])))),
            ("entry by entry", J),
        ).with_facts(over(d, lambda i: over(d, lambda j: kept.at(x=basis[i], y=basis[j])))),
    )
    past = for_all(
        {"m": natural()}, lambda m: equal(J @ power(N, m), power(N, m) @ J).by_induction(m)
    )
    offset = offset_of_powers(N)
    return {
        "in matrices": matrices,
        "M commutes with J": chain(
            J @ M, ("M Mᵀ = 1", M @ (M.mT @ (J @ M))), ("in matrices", M @ J)
        ).with_facts(matrices.at()),
        "J passes every power": past,
        "(N^m)ᵀ N^{m+k} = N^k": offset,
        "conversely": chain(
            (power(N, m) @ x) @ (J @ (power(N, m + k) @ y)),
            (
                "the product of matrices is associative",
                x @ (power(N, m).mT @ (J @ power(N, m + k)) @ y),
            ),
            ("J passes every power", x @ (power(N, m).mT @ (power(N, m + k) @ J) @ y)),
            ("(N^m)ᵀ N^{m+k} = N^k", x @ ((power(N, k) @ J) @ y)),
        ).with_facts(past.at(m=m + k), offset.at(m=m, k=k)),
        "mixing the pairs commutes with i": equal(A @ product(Z, i), product(A @ Z, i)),
        "mixing keeps the length": equal(xp.sum((A @ Z) ** 2), xp.sum(Z**2)),
    }


@a_hermitian_solution_in_many_pairs_is_unitary.negative_control(
    "N need not commute with J", assume=no_hypotheses
)
def any_orthogonal(N: Array, J: Array, x: Array, y: Array) -> Claim:
    return equal((N @ x) @ (J @ (N @ y)), x @ (J @ y))
