"""Sinusoidal encodings under a shift of the position."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    at_least,
    chain,
    differ,
    equal,
    exists,
    for_all,
    frequencies,
    function,
    natural,
    over,
    positions,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function, Given
from attnproof.theorems.definitions.positions import sine_only, sinusoidal
from attnproof.theorems.definitions.powers import (
    embedding,
    last_of_each_pair,
    no_hypotheses,
    number_power,
    powers,
    powers_of_blocks,
)
from attnproof.theorems.definitions.rotary import block_rotation

n, more, r = sizes("n more r", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "Row t begins sin t, cos t, sin tθ, cos tθ², −sin tθ³",
    given={"t": positions(n), "theta": real()},
    expected="refuted",
    sources=("Ganev, Example 3.6, the displayed table",),
    claims=("G3.6d",),
)
def the_displayed_table_mixes_frequencies(t: Array, theta: Array) -> Claim:
    """False from the fourth column on: sine and cosine of one pair have one frequency."""
    return equal(first_columns(t, theta), columns(t, theta, theta**2, -(theta**3)))


def first_columns(t: Array, theta: Array) -> Array:
    """The first five columns of the table with three pairs or more."""
    table: Array = sinusoidal(t, powers(theta, B + 2))[:, :5]
    return table


def columns(t: Array, third: Array, fourth: Array, fifth: Array) -> Array:
    """sin t, cos t, sin, cos and sin of t times these three frequencies."""
    xp = array_namespace(t)
    table: Array = xp.stack(
        (xp.sin(t), xp.cos(t), xp.sin(t * third), xp.cos(t * fourth), xp.sin(t * fifth)), axis=-1
    )
    return table


@the_displayed_table_mixes_frequencies.negative_control(
    "sin tθ, cos tθ, sin tθ² in the columns 3 to 5"
)
def one_frequency_a_pair(t: Array, theta: Array) -> Claim:
    return equal(first_columns(t, theta), columns(t, theta, theta, theta**2))


@theorem(
    "The first n rows of a longer sinusoidal table are the table of length n",
    given={"p": positions(), "omega": frequencies(B)},
    sources=("document 004, invariance to the sequence length",),
    claims=("R0", "R5"),
)
def the_encoding_does_not_depend_on_the_length(p: Array, omega: Array) -> dict[str, Claim]:
    """Positions 0, .., n − 1, alone or followed by more; every entry is at most 1 in size."""
    xp = array_namespace(p)
    short, long = xp.arange(n), xp.arange(n + more)
    entry = p * omega
    return {
        "sines": equal(sine_only(long, omega)[:n], sine_only(short, omega)),
        "sines and cosines": equal(sinusoidal(long, omega)[:n], sinusoidal(short, omega)),
        "a sine is at most 1 in size": at_least(1, xp.sin(entry) ** 2, ("", xp.cos(entry) ** 2)),
        "a cosine is at most 1 in size": at_least(1, xp.cos(entry) ** 2, ("", xp.sin(entry) ** 2)),
    }


@the_encoding_does_not_depend_on_the_length.negative_control("positions are divided by the length")
def normalised(omega: Array) -> Claim:
    xp = array_namespace(omega)
    short, long = xp.arange(n) / n, xp.arange(n + more) / (n + more)
    return equal(sinusoidal(long, omega)[:n], sinusoidal(short, omega))


@theorem(
    "PE(p)·PE(q) depends on p − q only",
    given={"p": positions(r), "q": positions(n), "s": positions(), "omega": frequencies(B)},
    sources=("cf. document 000, sinusoidal embedding",),
    claims=("B16", "R32"),
)
def the_dot_product_depends_on_the_offset_only(
    p: Array, q: Array, s: Array, omega: Array
) -> dict[str, Claim]:
    """PE(p)·PE(q) = Σ_b cos((p − q) ω_b), and ‖PE(p)‖² = B; a common shift s changes nothing."""
    xp = array_namespace(p)
    gram = sinusoidal(p, omega) @ sinusoidal(q, omega).mT
    offsets = p[:, None] - q[None, :]
    return {
        "as a function of the offset": equal(
            gram, xp.sum(xp.cos(offsets[:, :, None] * omega), axis=-1)
        ),
        "under a common shift": equal(sinusoidal(p + s, omega) @ sinusoidal(q + s, omega).mT, gram),
        "the squared norm": equal(xp.sum(sinusoidal(p, omega) ** 2, axis=-1), B * xp.ones(r)),
    }


@the_dot_product_depends_on_the_offset_only.negative_control("the encoding has the sines only")
def products_of_sines(p: Array, q: Array, s: Array, omega: Array) -> Claim:
    return equal(
        sine_only(p + s, omega) @ sine_only(q + s, omega).mT,
        sine_only(p, omega) @ sine_only(q, omega).mT,
    )


@theorem(
    "‖PE(p) − PE(q)‖² = Σ_b (2 − 2 cos((p − q) ω_b))",
    given={"p": positions(n), "q": positions(n), "s": positions(), "omega": frequencies(B)},
    sources=("document 004, relative positions",),
    claims=("R0", "R8"),
)
def distances_depend_on_the_offset_only(
    p: Array, q: Array, s: Array, omega: Array
) -> dict[str, Claim]:
    """Row i compares positions p_i and q_i; a common shift s changes nothing."""
    xp = array_namespace(p)
    gap = xp.sum((sinusoidal(p, omega) - sinusoidal(q, omega)) ** 2, axis=-1)
    moved = xp.sum((sinusoidal(p + s, omega) - sinusoidal(q + s, omega)) ** 2, axis=-1)
    return {
        "as a function of the offset": equal(
            gap, xp.sum(2 - 2 * xp.cos((p - q)[:, None] * omega), axis=-1)
        ),
        "under a common shift": equal(moved, gap),
    }


@distances_depend_on_the_offset_only.negative_control("the encoding has the sines only")
def distances_of_sines(p: Array, q: Array, s: Array, omega: Array) -> Claim:
    xp = array_namespace(p)
    gap = xp.sum((sine_only(p, omega) - sine_only(q, omega)) ** 2, axis=-1)
    moved = xp.sum((sine_only(p + s, omega) - sine_only(q + s, omega)) ** 2, axis=-1)
    return equal(moved, gap)


def side_by_side(row: Array, column: Array, omega: Array) -> Array:
    """The sinusoidal vectors of the row and of the column, one after the other."""
    xp = array_namespace(row)
    both: Array = xp.concat((sinusoidal(row, omega), sinusoidal(column, omega)), axis=1)
    return both


@theorem(
    "Dot products of grid positions depend on the offsets in rows and in columns only",
    given={
        "row": positions(n),
        "column": positions(n),
        "s": positions(),
        "t": positions(),
        "omega": frequencies(B),
    },
    sources=("cf. document 001, its pattern for images",),
)
def grid_positions_see_the_offset_in_both_directions(
    row: Array, column: Array, s: Array, t: Array, omega: Array
) -> dict[str, Claim]:
    """Σ_b cos((r − r′) ω_b) + Σ_b cos((c − c′) ω_b): shifting the image changes nothing."""
    xp = array_namespace(row)
    still = side_by_side(row, column, omega)
    moved = side_by_side(row + s, column + t, omega)
    rows, columns = (p[:, None] - p[None, :] for p in (row, column))
    return {
        "as a function of both offsets": equal(
            still @ still.mT,
            xp.sum(xp.cos(rows[:, :, None] * omega) + xp.cos(columns[:, :, None] * omega), axis=-1),
        ),
        "when the picture moves": equal(moved @ moved.mT, still @ still.mT),
    }


@grid_positions_see_the_offset_in_both_directions.negative_control("the two vectors are added up")
def added(row: Array, column: Array, s: Array, t: Array, omega: Array) -> Claim:
    still = sinusoidal(row, omega) + sinusoidal(column, omega)
    moved = sinusoidal(row + s, omega) + sinusoidal(column + t, omega)
    return equal(moved @ moved.mT, still @ still.mT)


@theorem(
    "PE(p + k) = M_k PE(p), with M_k independent of p",
    given={"p": positions(n), "k": positions(), "omega": frequencies(B)},
    sources=("Vaswani et al. 2017, section 3.5", "document 000, sinusoidal embedding"),
    claims=("B14", "R12"),
)
def a_shift_is_a_linear_map_of_the_encoding(p: Array, k: Array, omega: Array) -> Claim:
    """The matrix for an offset k is the same at every position: it rotates block b by −k ω_b."""
    return exists(
        real(2 * B, 2 * B),
        "M",
        lambda M: equal(sinusoidal(p + k, omega), sinusoidal(p, omega) @ M.mT),
        witness=block_rotation(-k * omega),
        free_of=(p,),
    )


@a_shift_is_a_linear_map_of_the_encoding.negative_control("the encoding has the sines only")
def shifts_of_sines(p: Array, k: Array, omega: Array) -> Claim:
    return exists(
        real(B, B),
        "M",
        lambda M: equal(sine_only(p + k, omega), sine_only(p, omega) @ M.mT),
        free_of=(p,),
    )


@theorem(
    "Row j of the sinusoidal table is M^j x, x = (0, 1, .., 0, 1), with blocks of angle −ω_b",
    given={"omega": frequencies(B), "log_base": positive(), "j": natural()},
    sources=(
        "Ganev, Examples 3.5 and 3.6",
        "document 000, sinusoidal embedding; document 004, the paired form",
    ),
    claims=("G3.5d", "G3.6b", "X1"),
)
def the_table_holds_powers_of_one_matrix(
    omega: Array, log_base: Array, j: Array
) -> dict[str, Claim | Law]:
    """With ω_b = θ^b, θ = 10000^{−2/d} and d = 2B this is the table of 000 and 004.

    Row j has sin(j / 10000^{2b/d}) and cos(j / 10000^{2b/d}) in columns 2b and 2b + 1.  Here
    10000^x is exp(x log 10000); any base above 1 will do.
    """
    xp = array_namespace(omega)
    M, x = block_rotation(-omega), last_of_each_pair(omega)
    rotates = powers_of_blocks(-omega)
    theta = xp.exp(-log_base / B)
    exponents = for_all(
        {"b": natural()},
        lambda b: equal(number_power(theta, b), xp.exp(-b * log_base / B)).by_induction(b),
    )
    place = xp.arange(n)
    angles = place[:, None] / xp.exp(2 * xp.arange(B) / (2 * B) * log_base)
    pairs = xp.stack((xp.sin(angles), xp.cos(angles)), axis=-1)
    return {
        "powers of M": rotates,
        "row j": equal(
            block_rotation(-(j * omega)) @ x,
            xp.reshape(xp.stack((xp.sin(j * omega), xp.cos(j * omega)), axis=-1), (2 * B,)),
        ),
        "the table": equal(embedding(M, x, n), sinusoidal(place, omega)).with_facts(
            over(n, lambda j: rotates.at(j=j))
        ),
        "powers of θ": exponents,
        "one table in three documents": equal(
            sinusoidal(place, powers(theta, B)), xp.reshape(pairs, (n, 2 * B))
        ).with_facts(over(B, lambda b: exponents.at(b=b))),
    }


@the_table_holds_powers_of_one_matrix.negative_control("the blocks rotate by +ω_b")
def forwards(omega: Array) -> Claim:
    xp = array_namespace(omega)
    x = last_of_each_pair(omega)
    return equal(block_rotation(omega) @ x, sinusoidal(xp.ones(1), omega)[0])


@theorem(
    "The sine-only encoding has a linear shift map",
    given={"p": positions(n), "k": positions(), "omega": frequencies(B)},
    expected="refuted",
    sources=("document 004, the sine-only form",),
    claims=("B14",),
)
def sines_alone_have_no_linear_shift(p: Array, k: Array, omega: Array) -> Claim:
    """False: position 0 is encoded as 0, which every linear map keeps, and sin(kω) is not 0."""
    return exists(
        real(B, B),
        "M",
        lambda M: equal(sine_only(p + k, omega), sine_only(p, omega) @ M.mT),
        free_of=(p,),
    )


sines_alone_have_no_linear_shift.negative_control("the encoding has sines and cosines")(
    a_shift_is_a_linear_map_of_the_encoding.body
)


def a_shift(a: Array, b: Array, omega: Array) -> list[Any]:
    """The shift a − b is not 0, and the first frequency is 1."""
    return [differ(a, b), (omega[0], 1)]


@theorem(
    "PE(p + s) = T PE(p) for p = 0, 1, .. holds for no matrix T and no integer s ≠ 0",
    given={"T": real(B, B), "a": natural(), "b": natural(), "omega": frequencies(B)},
    assume=a_shift,
    sources=("document 004, the question before its compound angles",),
    claims=("R10",),
)
def no_matrix_shifts_the_sines(T: Array, a: Array, b: Array, omega: Array) -> Claim:
    """s = a − b.  Position 0 has the code 0, which T keeps, and sin s is not 0."""
    xp = array_namespace(omega)
    places = xp.arange(n)
    moved, mapped = sine_only(places + (a - b), omega), sine_only(places, omega) @ T.mT
    return differ(
        moved,
        mapped,
        xp.sin(a - b),
        ("position 0, shifted, at frequency 1", moved[0, 0]),
        ("if T shifted the table", mapped[0, 0]),
        ("sin 0 = 0", 0),
        xp.sin(a - b),
    )


@no_matrix_shifts_the_sines.negative_control(
    "the shift is 0 and T the identity", assume=no_hypotheses
)
def no_shift(omega: Array) -> Claim:
    xp = array_namespace(omega)
    table = sine_only(xp.arange(n), omega)
    return differ(table, table @ xp.eye(B), table[0, 0], ("", (table @ xp.eye(B))[0, 0]), 1)


def shifted(F: Function, s: Array, positions: Given) -> Law:
    """F(sin t) = sin(t + s) for every t of that kind."""
    xp = array_namespace(s)
    return for_all({"t": positions}, lambda t: equal(F(xp.sin(t)), xp.sin(t + s)))


def both(F: Function, G: Function, s: Array, r: Array) -> list[Any]:
    """F shifts the sines of all real numbers by s, G those of the natural numbers by r."""
    return [shifted(F, s, real()), shifted(G, r, natural())]


@theorem(
    "F(sin t) = sin(t + s) for all real t gives sin s = 0; for natural t, F(−sin δ) = −sin(s + δ)",
    given={
        "F": function(0, says="any function of a number"),
        "s": real(),
        "G": function(0, says="any function of a number"),
        "r": real(),
        "p": natural(),
        "q": natural(),
    },
    assume=both,
    sources=("document 004, the question before its compound angles",),
    claims=("R11",),
)
def no_function_shifts_the_sine_of_real_numbers(
    F: Function, G: Function, s: Array, r: Array, p: Array, q: Array
) -> dict[str, Claim | Law]:
    """For an integer s ≠ 0 there is no such F, since sin s ≠ 0.

    Where p is near (2q + 1)π, δ = p − (2q + 1)π is near 0, and G(0) − G(−sin δ) near 2 sin r.
    """
    xp = array_namespace(s)
    law, whole, zero = shifted(F, s, real()), shifted(G, r, natural()), xp.zeros(())

    def rotates(q: Array) -> Array:
        angle: Array = (2 * q + 1) * xp.pi
        return angle

    sine = for_all(
        {"t": real(), "q": natural()},
        lambda t, q: equal(xp.sin(t - rotates(q)), -xp.sin(t)).by_induction(q),
    )
    return {
        "on the real numbers": chain(
            xp.sin(s),
            ("half a turn changes the sign", (xp.sin(zero + s) - xp.sin(xp.pi + s)) / 2),
            ("F at sin 0", (F(xp.sin(zero)) - xp.sin(xp.pi + s)) / 2),
            ("F at sin π", (F(xp.sin(zero)) - F(xp.sin(xp.pi))) / 2),
            ("sin 0 = sin π", 0),
        ).with_facts(law.at(t=zero), law.at(t=xp.pi)),
        "odd multiples of π change the sign": sine,
        "at 0": equal(G(zero), xp.sin(r)).with_facts(whole.at(t=zero)),
        "and near 0": chain(
            G(-xp.sin(p - rotates(q))),
            ("odd multiples of π change the sign", G(xp.sin(p))),
            ("G at sin p", xp.sin(p + r)),
            ("odd multiples of π change the sign", -xp.sin((p + r) - rotates(q))),
        ).with_facts(whole.at(t=p), sine.at(t=p, q=q), sine.at(t=p + r, q=q)),
    }


@no_function_shifts_the_sine_of_real_numbers.negative_control(
    "nothing is assumed of F", assume=no_hypotheses
)
def any_shift(s: Array) -> Claim:
    xp = array_namespace(s)
    return equal(xp.sin(s), xp.zeros(()))
