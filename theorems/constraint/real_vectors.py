"""Scores that depend on the offset: the functional equation over the reals, and its solutions."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    angle,
    chain,
    differ,
    equal,
    for_all,
    frequencies,
    function,
    natural,
    orthogonal,
    over,
    real,
    rows,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import no_hypotheses, offset_of_powers, power
from attnproof.theorems.definitions.rotary import determinant, rotate, rotation, square

(d,) = sizes("d", "features")
(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


POSITIONS = {"m": natural(), "n": natural()}


def by_offset(S: Function, g: Function) -> Law:
    """S(m, n) = g(n − m)."""
    return for_all(POSITIONS, lambda m, n: equal(S(m, n), g(n - m)))


def unmoved(T: Function) -> Law:
    """T(m + s, n + s) = T(m, n)."""
    return for_all({**POSITIONS, "s": natural()}, lambda m, n, s: equal(T(m + s, n + s), T(m, n)))


@theorem(
    "S(m, n) depends on n − m only if and only if S(m + s, n + s) = S(m, n)",
    given={
        "S": function(0, 0, says="a score that is a function of the offset"),
        "g": function(0),
        "T": function(0, 0, says="a score that no common shift changes"),
        "m": natural(),
        "n": natural(),
        "s": natural(),
        "k": natural(),
    },
    sources=("document 004, the constraint",),
    claims=("R19",),
    assume=lambda S, g, T: [by_offset(S, g), unmoved(T)],
)
def a_function_of_the_offset_is_unchanged_by_shifts(
    S: Function, g: Function, T: Function, m: Array, n: Array, s: Array, k: Array
) -> dict[str, Claim]:
    """A shift-invariant T at offset k is T(0, k), at offset −k it is T(k, 0), wherever it is."""
    law, shift = by_offset(S, g), unmoved(T)
    return {
        "a function of the offset is unchanged by a shift": equal(
            S(m + s, n + s), S(m, n)
        ).with_facts(law.at(m=m + s, n=n + s), law.at(m=m, n=n)),
        "what is unchanged by shifts is its value at offset k": equal(
            T(m, m + k), T(0, k)
        ).with_facts(shift.at(m=0, n=k, s=m)),
        "and at offset −k": equal(T(m + k, m), T(k, 0)).with_facts(shift.at(m=k, n=0, s=m)),
    }


@a_function_of_the_offset_is_unchanged_by_shifts.negative_control(
    "the score depends on the sum of the positions", assume=no_hypotheses
)
def by_the_sum(g: Function, m: Array, n: Array, s: Array) -> Claim:
    return equal(g((m + s) + (n + s)), g(m + n))


@theorem(
    "⟨M^m h(x), M^{m+k} h(y)⟩ = ⟨h(x), M^k h(y)⟩ for every orthogonal M and every h",
    given={
        "M": orthogonal(d),
        "h": function(1, out=(d,), says="any map of a token"),
        "x": real(d),
        "y": real(d),
        "m": natural(),
        "k": natural(),
        "theta": angle(),
    },
    sources=("document 004, what its derivation leaves out",),
    claims=("R26", "R27", "R29"),
)
def every_orthogonal_matrix_solves_the_constraint(
    M: Array, h: Function, x: Array, y: Array, m: Array, k: Array, theta: Array
) -> dict[str, Claim | Law]:
    """With h(x) = x also f(x, 0) = x.  A negative offset is the same with x and y exchanged.

    The mirror diag(1, −1) is such an M and is not a rotation.
    """
    xp = array_namespace(x)
    one, zero = xp.ones(()), xp.zeros(())
    mirror, by_theta = square(one, zero, zero, -one), rotation(theta)
    offset = offset_of_powers(M)
    return {
        "(M^m)ᵀ M^{m+k} = M^k": offset,
        "relative scores": equal(
            (power(M, m) @ h(x)) @ (power(M, m + k) @ h(y)), h(x) @ (power(M, k) @ h(y))
        ).with_facts(offset.at(m=m, k=k)),
        "at position 0 nothing happens": equal(power(M, 0) @ x, x),
        "the mirror is orthogonal": equal(mirror.mT @ mirror, xp.eye(2)),
        "the mirror is not a rotation": differ(
            mirror,
            by_theta,
            determinant(mirror),
            ("its determinant", determinant(by_theta)),
            ("cos² θ + sin² θ", 1),
            -2,
        ),
    }


@every_orthogonal_matrix_solves_the_constraint.negative_control("M is any matrix", M=real(d, d))
def any_matrix(M: Array, x: Array, y: Array) -> Claim:
    return equal((M @ x) @ (M @ (M @ y)), x @ (M @ y))


TOKENS = {"x": real(d), "y": real(d)}


def constraint(f: Function, g: Function) -> Law:
    """⟨f(x, m), f(y, n)⟩ = g(x, y, n − m)."""
    return for_all(
        {**TOKENS, "m": natural(), "n": natural()},
        lambda x, y, m, n: equal(f(x, m) @ f(y, n), g(x, y, n - m)),
    )


def start(f: Function) -> Law:
    """f(x, 0) = x."""
    return for_all({"x": real(d)}, lambda x: equal(f(x, 0), x))


def columns(f: Function, A: Function) -> Law:
    """Column j of A_m is f(e_j, m); no hypothesis on f, only a name for that matrix."""
    xp = array_namespace(A(0))
    basis = xp.eye(d)
    return for_all({"m": natural()}, lambda m: equal(A(m), rows(d, lambda j: f(basis[j], m)).mT))


@theorem(
    "⟨f(x, m), f(y, n)⟩ = g(x, y, n − m) and f(x, 0) = x give f(x, m) = M^m x, M orthogonal",
    given={
        "f": function(1, 0, out=(d,), says="any encoder of a token and a position"),
        "g": function(1, 1, 0),
        "A": function(0, out=(d, d), says="A_m has the columns f(e_j, m)"),
        "x": real(d),
        "y": real(d),
        "m": natural(),
    },
    sources=("document 004, what its derivation leaves out",),
    claims=("R29",),
    assume=lambda f, g, A: [constraint(f, g), start(f), columns(f, A)],
)
def relative_scores_force_powers_of_one_orthogonal_matrix(
    f: Function, g: Function, A: Function, x: Array, m: Array
) -> dict[str, Claim | Law]:
    """M = A_1 has the encoded basis vectors f(e_j, 1) as its columns.

    That f is linear is shown, not assumed; that it is continuous is not needed.
    """
    xp = array_namespace(x)
    relative, begins, named = constraint(f, g), start(f), columns(f, A)
    basis, M = xp.eye(d), A(1)
    shift = for_all(
        {**TOKENS, "m": natural(), "n": natural()},
        lambda x, y, m, n: equal(f(x, m) @ f(y, m + n), f(x, 0) @ f(y, n)).with_facts(
            relative.at(x=x, y=y, m=m, n=m + n), relative.at(x=x, y=y, m=0, n=n)
        ),
    )
    keeps = for_all(
        {**TOKENS, "m": natural()},
        lambda x, y, m: chain(
            f(x, m) @ f(y, m), ("a common shift", f(x, 0) @ f(y, 0)), ("f(x, 0) = x", x @ y)
        ).with_facts(shift.at(x=x, y=y, m=m, n=0), begins.at(x=x), begins.at(x=y)),
    )
    linear = for_all(
        {"x": real(d), "m": natural()},
        lambda x, m: (
            equal(f(x, m), A(m) @ x)
            .by_squares()
            .with_facts(
                named.at(m=m),
                keeps.at(x=x, y=x, m=m),
                over(d, lambda j: keeps.at(x=x, y=basis[j], m=m)),
                over(d, lambda i: over(d, lambda j: keeps.at(x=basis[i], y=basis[j], m=m))),
            )
        ),
    )
    orthonormal = for_all(
        {},
        lambda: equal(M.mT @ M, basis).with_facts(
            named.at(m=1),
            over(d, lambda i: over(d, lambda j: keeps.at(x=basis[i], y=basis[j], m=1))),
        ),
    )
    both_sides = for_all(
        {}, lambda: equal(M @ M.mT, basis).by_inverse().with_facts(orthonormal.at())
    )
    offset = for_all(
        {"m": natural()},
        lambda m: equal(M.mT @ A(m + 1), A(m)).with_facts(
            named.at(m=1),
            named.at(m=m),
            named.at(m=m + 1),
            over(d, lambda i: over(d, lambda j: shift.at(x=basis[i], y=basis[j], m=1, n=m))),
            over(d, lambda i: begins.at(x=basis[i])),
        ),
    )
    one_more = for_all(
        {"m": natural()},
        lambda m: chain(
            A(m + 1),
            ("times 1", basis @ A(m + 1)),
            ("M Mᵀ = 1", (M @ M.mT) @ A(m + 1)),
            ("the product of matrices is associative", M @ (M.mT @ A(m + 1))),
            ("Mᵀ A_{m+1} = A_m", M @ A(m)),
        ).with_facts(both_sides.at(), offset.at(m=m)),
    )
    first = for_all(
        {},
        lambda: equal(A(0), basis).with_facts(
            named.at(m=0), over(d, lambda j: begins.at(x=basis[j]))
        ),
    )
    all_powers = for_all(
        {"m": natural()},
        lambda m: equal(A(m), power(M, m)).by_induction(m).with_facts(one_more.at(m=m), first.at()),
    )
    return {
        "a common shift changes nothing": shift,
        "dot products at one position": keeps,
        "f is linear": linear,
        "the columns are orthonormal": orthonormal,
        "and so are the rows": both_sides,
        "an offset removes a factor M": offset,
        "one more position is one more factor M": one_more,
        "at position 0": first,
        "the matrices are powers": all_powers,
        "f(x, m) = M^m x": chain(
            f(x, m), ("f is linear", A(m) @ x), ("the matrices are powers", power(M, m) @ x)
        ).with_facts(linear.at(x=x, m=m), all_powers.at(m=m)),
    }


@relative_scores_force_powers_of_one_orthogonal_matrix.negative_control(
    "nothing is assumed of f", assume=no_hypotheses
)
def without_constraint(f: Function, x: Array, y: Array) -> Claim:
    return equal(f(x + y, 1), f(x, 1) + f(y, 1))


@theorem(
    "⟨e^{λu} R_u q, e^{−λv} R_v k⟩ = e^{−λ(v−u)} ⟨q, R_{v−u} k⟩",
    given={
        "Q": real(n, 2 * B),
        "K": real(n, 2 * B),
        "u": real(n),
        "v": real(n),
        "omega": frequencies(B),
        "rate": real(),
    },
    sources=("document 004, one encoder for queries and keys",),
    claims=("R28",),
)
def two_encoders_may_also_scale(
    Q: Array, K: Array, u: Array, v: Array, omega: Array, rate: Array
) -> dict[str, Claim]:
    """Row i holds one query at u_i and one key at v_i; their lengths are not those of q and k."""
    xp = array_namespace(Q)
    query = grown(rotate(Q, u, omega), rate * u)
    key = grown(rotate(K, v, omega), -rate * v)
    rotated = rotate(K, v - u, omega)
    return {
        "the score depends on the offset": equal(
            xp.sum(query * key, axis=-1), xp.exp(-rate * (v - u)) * xp.sum(Q * rotated, axis=-1)
        ),
        "the length of the query is not preserved": equal(
            xp.sum(query**2, axis=-1), xp.exp(2 * rate * u) * xp.sum(Q**2, axis=-1)
        ),
    }


def grown(x: Array, logarithm: Array) -> Array:
    """Row i of x times the exponential of the logarithm's entry i."""
    xp = array_namespace(x)
    result: Array = xp.exp(logarithm)[:, None] * x
    return result


@two_encoders_may_also_scale.negative_control("both encoders grow")
def both_grow(Q: Array, K: Array, u: Array, v: Array, omega: Array, rate: Array) -> Claim:
    xp = array_namespace(Q)
    query, key = grown(rotate(Q, u, omega), rate * u), grown(rotate(K, v, omega), rate * v)
    rotated = rotate(K, v - u, omega)
    return equal(
        xp.sum(query * key, axis=-1), xp.exp(-rate * (v - u)) * xp.sum(Q * rotated, axis=-1)
    )
