"""Positions encoded by the powers of one matrix."""

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
    greater,
    index_below,
    iterate,
    natural,
    orthogonal,
    over,
    positive,
    real,
    rows,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import (
    embedding,
    geometric_sum,
    multiplicative,
    no_hypotheses,
    number_power,
    offset_of_powers,
    power,
)
from attnproof.theorems.definitions.rotary import block_rotation, product, rotation, square, unit

d, e = sizes("d e", "features")
(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")


def sums_to_products(phi: Function) -> Law:
    """φ(m + k) = φ(m) φ(k) for all natural m and k."""
    return for_all(
        {"m": natural(), "k": natural()}, lambda m, k: equal(phi(m + k), phi(m) @ phi(k))
    )


@theorem(
    "φ(j) = φ(1)^j for every monoid homomorphism φ, and j ↦ M^j is one for every M",
    given={
        "phi": function(0, out=(d, d), says="a map from natural numbers to matrices"),
        "M": real(d, d),
        "j": natural(),
        "k": natural(),
    },
    assume=lambda phi, M: [sums_to_products(phi), equal(phi(0), array_namespace(M).eye(d))],
    sources=("Ganev, Definition 3.1 and Remark 3.2",),
    claims=("G3.1a", "G3.2", "G3.5b"),
)
def a_homomorphism_is_the_powers_of_its_value_at_one(
    phi: Function, M: Array, j: Array, k: Array
) -> dict[str, Claim]:
    """That φ(0) = 1 is a separate condition.

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
        "E is not the identity": differ(E[1, 1], xp.eye(2)[1, 1], -1),
    }


@a_homomorphism_is_the_powers_of_its_value_at_one.negative_control(
    "powers turn sums into sums", assume=no_hypotheses
)
def sums(M: Array, j: Array, k: Array) -> Claim:
    return equal(power(M, j + k), power(M, j) + power(M, k))


@theorem(
    "P_{j+k} = P_j (M^k)ᵀ for the table P with rows P_j = M^j x, whatever M and x are",
    given={
        "M": real(d, d),
        "x": real(d),
        "k": natural(),
        "i": index_below(n),
        "phi": function(0, out=(d, d), says="a map from natural numbers to matrices"),
    },
    sources=(
        "Ganev, Definition 3.1 and Remark 3.3",
        "document 000, sinusoidal embedding, for the shift in one encoding",
    ),
    claims=("G3.1c", "G3.3", "X3"),
)
def a_shift_is_a_power_of_the_matrix(
    M: Array, x: Array, k: Array, i: Array, phi: Function
) -> dict[str, Claim | Law]:
    """Rows are counted from 0.  Moving all positions by k multiplies each row by one matrix.

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


@a_shift_is_a_power_of_the_matrix.negative_control("without the transpose")
def not_transposed(M: Array, x: Array, k: Array) -> Claim:
    return equal(rows(n, lambda j: power(M, j + k) @ x), embedding(M, x, n) @ power(M, k))


@theorem(
    "If row j of n has M^(j−1) x, the first is x; with M^j x the table is the other times Mᵀ",
    given={"M": real(d, d), "x": real(d)},
    sources=("Ganev, introduction, against Definition 3.1",),
    claims=("G0.4",),
)
def counting_from_one_multiplies_the_table_by_one_power(M: Array, x: Array) -> dict[str, Claim]:
    """Rows are counted from 1 in the source: its Definition 3.1 starts with M⁰x = x."""
    return {
        "the first row is x": equal(embedding(M, x, n)[0], x),
        "counted from 1": equal(from_one(M, x), embedding(M, x, n) @ M.mT),
    }


def from_one(M: Array, x: Array) -> Array:
    """The table with rows M¹x, M²x, .., Mⁿx."""
    table: Array = rows(n, lambda j: power(M, j + 1) @ x)
    return table


@counting_from_one_multiplies_the_table_by_one_power.negative_control(
    "both ways of counting give one table"
)
def one_table(M: Array, x: Array) -> Claim:
    return equal(from_one(M, x), embedding(M, x, n))


@theorem(
    "R(a)^j = R(j a), block by block, as exp(i a)^j = exp(i j a)",
    given={"a": angle(), "omega": frequencies(B), "j": natural()},
    sources=("Ganev, Examples 3.5 and 3.6, and footnote 3",),
    claims=("G3.5a", "G3.5b", "GF3", "G3.6a"),
)
def powers_of_a_rotation_turn_by_multiples(a: Array, omega: Array, j: Array) -> dict[str, Claim]:
    """With the angle −1, and with block angles −θ^k, these are the examples of document 003."""
    xp = array_namespace(a)
    one = xp.ones(())
    z = unit(-j)
    return {
        "one block": equal(power(rotation(a), j), rotation(j * a)).by_induction(j),
        "any number of blocks": equal(
            power(block_rotation(omega), j), block_rotation(j * omega)
        ).by_induction(j),
        "the rotation by −1": chain(
            rotation(-one),
            (
                "cos 1 for the last cos(−1)",
                square(xp.cos(-one), -xp.sin(-one), xp.sin(-one), xp.cos(one)),
            ),
            (
                "the cosine is even, the sine is odd",
                square(xp.cos(one), xp.sin(one), -xp.sin(one), xp.cos(one)),
            ),
        ),
        "the rotation by −j": equal(
            rotation(-j), square(xp.cos(j), xp.sin(j), -xp.sin(j), xp.cos(j))
        ),
        "complex powers": equal(
            iterate(j, unit(0 * one), lambda _, y: product(unit(-one), y)), z
        ).by_induction(j),
        "as a matrix": equal(square(z[0], -z[1], z[1], z[0]), rotation(-j)),
        "less the imaginary part, and the real part": equal(
            rotation(-j) @ xp.eye(2)[1], xp.stack((-z[1], z[0]))
        ),
    }


@powers_of_a_rotation_turn_by_multiples.negative_control("the angle is raised to the power")
def powers_of_the_angle(a: Array) -> Claim:
    return equal(power(rotation(a), 2), rotation(a * a))


@theorem(
    "θ = ω^{−2/d} gives θ^k = ω^{−2k/d}, θ^{d/2} = 1/ω, and θ^{d/2−1} > 1/ω for ω > 1",
    given={"log_omega": positive(), "k": natural()},
    sources=("Ganev, Example 3.6, with ω = 10000",),
    claims=("G3.6e",),
)
def the_frequencies_are_powers_of_one_number(log_omega: Array, k: Array) -> dict[str, Claim | Law]:
    """d = 2B, and ω^x is exp(x log ω), with log ω > 0.  The frequencies are θ^0, .., θ^{B−1}.

    They fall, so that the last is the smallest.
    """
    xp = array_namespace(log_omega)
    theta = xp.exp(-log_omega / B)
    base = xp.exp(log_omega)
    law = for_all(
        {"k": natural()},
        lambda k: equal(number_power(theta, k), xp.exp(-k * log_omega / B)).by_induction(k),
    )
    return {
        "powers": law,
        "each is smaller than the one before": greater(
            number_power(theta, k),
            number_power(theta, k + 1),
            ("θ^k = θ^{k+1}/θ", xp.exp(-(k + 1) * log_omega / B) * (xp.exp(log_omega / B) - 1)),
        ).with_facts(law.at(k=k), law.at(k=k + 1)),
        "the power d/2": equal(number_power(theta, B) * base, 1).with_facts(law.at(k=B)),
        "the last frequency": greater(
            number_power(theta, B - 1),
            1 / base,
            ("θ^{B−1} = 1/(ω θ)", (xp.exp(log_omega / B) - 1) / base),
        ).with_facts(law.at(k=B - 1)),
    }


@the_frequencies_are_powers_of_one_number.negative_control("the last frequency is 1/ω")
def last_is_smallest(log_omega: Array) -> Claim:
    xp = array_namespace(log_omega)
    return equal(number_power(xp.exp(-log_omega / 2), 1), xp.exp(-log_omega))


@theorem(
    "Data of width d, plus the first d of d + e columns of a table, have width d + e",
    given={"X": real(n, d), "P": real(n, d + e), "Y": real(n, d + e)},
    expected="ill-typed",
    sources=("Ganev, Definition 3.1 and Remark 3.4",),
    claims=("G3.1d", "G3.4"),
)
def an_additive_table_has_the_width_of_the_data(X: Array, P: Array, Y: Array) -> Claim:
    """Not a statement: X + P[:, :d] has d columns, and Y has d + e."""
    return equal(Y - (X + P[:, :d]), 0 * Y)


@an_additive_table_has_the_width_of_the_data.negative_control("the result has width d")
def width_of_the_data(X: Array, P: Array) -> Claim:
    """The same as adding all of P to X with e columns of zeros, and keeping d columns."""
    xp = array_namespace(X)
    wide = xp.concat((X, xp.zeros((n, e))), axis=1)
    return equal(X + P[:, :d], (wide + P)[:, :d])


@theorem(
    "M^{b+a+kp} − M^{b+a} = (1 + M^p + M^{2p} + .. + M^{(k−1)p}) M^b (M^{a+p} − M^a)",
    given={
        "M": real(d, d),
        "x": real(d),
        "y": real(d),
        "c": real(),
        "i": index_below(d),
        "a": natural(),
        "b": natural(),
        "p": natural(),
        "q": natural(),
    },
    sources=("Ganev, Definition 3.1: an evaluation point, if it exists",),
    claims=("G3.1b",),
)
def a_vector_that_repeats_under_a_matrix_repeats_for_ever(
    M: Array, x: Array, y: Array, c: Array, i: Array, a: Array, b: Array, p: Array, q: Array
) -> dict[str, Claim | Law]:
    """So M^{a+p} x = M^a x implies M^{b+a+kp} x = M^{b+a} x for all b and k.

    Such x, with p >= 1, are those that are not evaluation points of M.  If x has the exponents a,
    p and y has b, q, then c x + y has a + b, pq: they form a subspace of ℝ^d.  If all unit vectors
    e_i are among them, with exponents a_i, p_i, then all have Σ a_i and Π p_i as well, so that two
    powers of M agree in every column.  If no two powers agree, then a unit vector is an evaluation
    point, and so is every vector outside a proper subspace.
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
    again = for_all(
        {"j": natural(), "k": natural(), "p": natural()},
        lambda j, k, p: chain(
            step(M, j, k * p),
            ("powers add up", (power(M, k * p) - one) @ power(M, j)),
            ("the geometric series", geometric_sum(M, k, p) @ ((power(M, p) - one) @ power(M, j))),
            ("powers add up", geometric_sum(M, k, p) @ step(M, j, p)),
        ).with_facts(sums.at(j=k * p, k=j), series.at(k=k, p=p), sums.at(j=p, k=j)),
    )
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


@a_vector_that_repeats_under_a_matrix_repeats_for_ever.negative_control(
    "two rounds are counted as one"
)
def two_rounds(M: Array, a: Array, b: Array, p: Array) -> Claim:
    return equal(step(M, b + a, 2 * p), power(M, b) @ step(M, a, p))


@theorem(
    "(M^m)ᵀ A M^{m+k} = A M^k for M orthogonal and A M = M A",
    given={
        "M": orthogonal(d),
        "N": real(d, d),
        "A": real(d, d),
        "X": real(n, d),
        "Y": real(n, d),
        "c": real(),
        "x": real(d),
        "y": real(d),
        "m": natural(),
        "k": natural(),
    },
    assume=lambda M, A: [(A @ M, M @ A)],
    sources=("Ganev, Definition 3.7",),
    claims=("G3.7a", "G3.7b", "G3.7c"),
)
def multiplicative_encodings_are_relative_after_the_projections(
    M: Array,
    N: Array,
    A: Array,
    X: Array,
    Y: Array,
    c: Array,
    x: Array,
    y: Array,
    m: Array,
    k: Array,
) -> dict[str, Claim | Law]:
    """Scores of x at m and y at m + k are relative if the map acts on queries and keys (A = 1).

    So they are if it acts on the data, before S_Q and S_K, and A = S_Q S_Kᵀ commutes with M;
    otherwise they need not be.  A map that doubles all vectors gives scores that grow with m.  An
    exchange of two numbers does not commute with keeping the first one alone: the score of (1, 0)
    with itself is 1, then 0.
    """
    xp = array_namespace(X)
    keeps = for_all(
        {"m": natural()}, lambda m: equal(power(M, m).mT @ power(M, m), xp.eye(d)).by_induction(m)
    )
    offset = offset_of_powers(M)
    commute = for_all(
        {"m": natural()}, lambda m: equal(A @ power(M, m), power(M, m) @ A).by_induction(m)
    )
    rotated = multiplicative(M, X)
    first = xp.eye(2)[0]
    exchange, keep = 1 - xp.eye(2), first[:, None] * first[None, :]
    moved = exchange @ first
    return {
        "powers are orthogonal": keeps,
        "linear, for any matrix": equal(
            multiplicative(N, c * X + Y), c * multiplicative(N, X) + multiplicative(N, Y)
        ),
        "an isometry": equal(xp.sum(rotated**2, axis=1), xp.sum(X**2, axis=1)).with_facts(
            over(n, lambda j: keeps.at(m=j))
        ),
        "the first m factors cancel": offset,
        "on queries and keys": equal(
            (power(M, m) @ x) @ (power(M, m + k) @ y), x @ (power(M, k) @ y)
        ).with_facts(offset.at(m=m, k=k)),
        "the key before the query": equal(
            (power(M, m + k) @ x) @ (power(M, m) @ y), (power(M, k) @ x) @ y
        ).with_facts(offset.at(m=m, k=k)),
        "not for every matrix": differ((2 * first) @ (2 * first), first @ first, 3),
        "A commutes with all powers": commute,
        "before projections that commute": chain(
            power(M, m).mT @ (A @ power(M, m + k)),
            ("A commutes with M^(m+k)", power(M, m).mT @ (power(M, m + k) @ A)),
            ("the first m factors cancel", power(M, k) @ A),
            ("A commutes with M^k", A @ power(M, k)),
        ).with_facts(commute.at(m=m + k), offset.at(m=m, k=k), commute.at(m=k)),
        "not before others": differ(first @ (keep @ first), moved @ (keep @ moved), 1),
    }


@multiplicative_encodings_are_relative_after_the_projections.negative_control(
    "M is any matrix", M=real(d, d), assume=no_hypotheses
)
def relative_of_any_matrix(M: Array, x: Array, y: Array) -> Claim:
    return equal((power(M, 1) @ x) @ (power(M, 1) @ y), x @ y)


@theorem(
    "The matrix 1 has no evaluation point; [[1, 0], [1, 1]] has (1, 0), and not (0, 1)",
    given={"x": real(d), "M": real(2, 2), "j": natural(), "a": natural(), "b": natural()},
    assume=lambda a, b: [differ(a, b)],
    sources=("Ganev, Definition 3.1: an evaluation point, if it exists",),
    claims=("G3.1b", "G3.1e"),
)
def an_evaluation_point_need_not_exist(
    x: Array, j: Array, a: Array, b: Array
) -> dict[str, Claim | Law]:
    """x is an evaluation point of M if M^j x, j = 0, 1, .., are all different.

    Under the shear (1, 0) goes to (1, j).  These are different for j = a and j = b, and yet the
    table cut down to its first column is constant.
    """
    xp = array_namespace(x)
    one, zero = xp.ones(()), xp.zeros(())
    M, e, f = square(one, zero, one, one), xp.eye(2)[0], xp.eye(2)[1]
    moves = for_all({"j": natural()}, lambda j: equal(power(M, j) @ e, e + j * f).by_induction(j))
    ones = for_all(
        {"j": natural()}, lambda j: equal(power(xp.eye(d), j), xp.eye(d)).by_induction(j)
    )
    return {
        "powers of 1": ones,
        "1 moves nothing": equal(power(xp.eye(d), j) @ x, x).with_facts(ones.at(j=j)),
        "(0, 1) stays": equal(power(M, j) @ f, f).by_induction(j),
        "(1, 0) goes to (1, j)": moves,
        "(1, 0) tells positions apart": differ(
            power(M, a) @ e,
            power(M, b) @ e,
            (power(M, a) @ e)[1],
            ("if the vectors are equal", (power(M, b) @ e)[1]),
            a - b,
        ).with_facts(moves.at(j=a), moves.at(j=b)),
        "its first column does not": equal((power(M, a) @ e)[0], (power(M, b) @ e)[0]).with_facts(
            moves.at(j=a), moves.at(j=b)
        ),
    }


@an_evaluation_point_need_not_exist.negative_control(
    "any matrix takes (1, 0) to (1, j)", assume=no_hypotheses
)
def evaluated_at_any_matrix(M: Array, j: Array) -> Claim:
    xp = array_namespace(M)
    return equal(power(M, j) @ xp.eye(2)[0], xp.eye(2)[0] + j * xp.eye(2)[1])
