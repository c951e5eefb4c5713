"""Distinguishing positions, and the simplest ways to encode them."""

from __future__ import annotations

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
    for_all,
    frequencies,
    function,
    greater,
    index_below,
    inverse,
    iterate,
    natural,
    over,
    permutation,
    positions,
    positive,
    real,
    rows,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import attention, softmax
from attnproof.theorems.definitions.positions import binary_digit, binary_digits, sinusoidal
from attnproof.theorems.definitions.powers import no_hypotheses, number_power

n, r, N, k = sizes("n r N k", "tokens")
p, ell, d, C, b = sizes("p ell d C b", "features")
(B,) = sizes("B", "blocks")


@theorem(
    "With positions added, an equivariant map commutes with moving tokens and positions together",
    given={
        "f": function(2, out=None, traits=("equivariant",), says="any equivariant map"),
        "X": real(n, p),
        "P": real(n, p),
        "sigma": permutation(n),
    },
    sources=("cf. document 001, on sets and positional encodings",),
    claims=("T26",),
)
def positions_must_move_with_their_tokens(
    f: Function, X: Array, P: Array, sigma: Array
) -> dict[str, Claim]:
    """Permuting the tokens alone permutes the positions inversely: X[σ] + P = (X + P[σ⁻¹])[σ]."""
    return {
        "tokens and positions": equal(f(X[sigma] + P[sigma]), f(X + P)[sigma]),
        "tokens alone": equal(X[sigma] + P, (X + P[inverse(sigma)])[sigma]),
    }


@positions_must_move_with_their_tokens.negative_control("the positions stay where they are")
def positions_stay(f: Function, X: Array, P: Array, sigma: Array) -> Claim:
    return equal(f(X[sigma] + P), f(X + P)[sigma])


@theorem(
    "A table of equal rows leaves attention invariant; one with two different rows need not",
    given={
        "Q": real(r, ell),
        "X": real(n, p),
        "P": real(n, p),
        "t": real(p),
        "W_K": real(p, ell),
        "W_V": real(p, d),
        "sigma": permutation(n),
        "c": positive(),
    },
    sources=("document 000, how to model order",),
    claims=("B7", "T26", "G0.5"),
)
def position_vectors_show_the_order_if_they_are_not_all_equal(
    Q: Array, X: Array, P: Array, t: Array, W_K: Array, W_V: Array, sigma: Array, c: Array
) -> dict[str, Claim]:
    """The smallest case: tokens 0, c at positions 0, c give more than tokens c, 0 there.

    There is one query, 1, and two keys that are also the values.
    """
    xp = array_namespace(X)

    def answer(tokens: Array) -> Any:
        return attention(Q, tokens @ W_K, tokens @ W_V)

    def smallest(first: Array, second: Array) -> Any:
        tokens = xp.stack((first, second))
        return xp.sum(softmax(tokens) * tokens, axis=0)

    zero, more = xp.zeros(()), xp.exp(2 * c)
    return {
        "attention still ignores the order of the sums": equal(
            answer((X + P)[sigma]), answer(X + P)
        ),
        "all vectors equal": equal(answer(X[sigma] + t), answer(X + t)),
        "vectors 0 and c": greater(
            smallest(zero + zero, c + c),
            smallest(c + zero, zero + c),
            ("", c * (more - 1) / (more + 1)),
        ),
    }


@position_vectors_show_the_order_if_they_are_not_all_equal.negative_control(
    "any table leaves attention invariant"
)
def any_table(Q: Array, X: Array, P: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    moved, still = X[sigma] + P, X + P
    return equal(attention(Q, moved @ W_K, moved @ W_V), attention(Q, still @ W_K, still @ W_V))


@theorem(
    "(x + u) − (x + v) = u − v: equal tokens differ by their positions, and different ones collide",
    given={"x": real(p), "y": real(p), "u": real(p), "v": real(p), "W": real(p, d)},
    sources=("document 001, the basic idea of positional encodings",),
    claims=("T24a", "T24b"),
)
def equal_tokens_are_as_far_apart_as_their_positions(
    x: Array, u: Array, v: Array, W: Array
) -> dict[str, Claim]:
    """For every token at u there is one that gives the same vector at v: x + (u − v).

    A projection that sends u − v to 0 makes equal tokens at u and v equal again.
    """
    return {
        "equal tokens": equal((x + u) - (x + v), u - v),
        "a collision": equal((x + (u - v)) + v, x + u),
        "the tokens that collide": equal((x + (u - v)) - x, u - v),
        "projected": equal((x + u) @ W - (x + v) @ W, (u - v) @ W),
    }


@equal_tokens_are_as_far_apart_as_their_positions.negative_control(
    "the sum determines the token at that position", assume=lambda x, y, u, v: [(x, y + v - u)]
)
def identifies(x: Array, y: Array) -> Claim:
    return equal(x, y)


def equal_tokens(T: Array, R: Array, a: Array, b: Array, c: Array) -> list[Any]:
    """Tokens a and b of T are equal; their position vectors differ in channel c."""
    return [(T[a], T[b]), differ(R[a, c], R[b, c])]


@theorem(
    "X ↦ X + P is a bijection, and equal tokens with different position vectors become different",
    given={
        "X": real(n, p),
        "Y": real(n, p),
        "P": real(n, p),
        "T": real(n, p),
        "R": real(n, p),
        "a": index_below(n),
        "b": index_below(n),
        "c": index_below(p),
    },
    assume=equal_tokens,
    sources=("document 000, position embedding",),
    claims=("B8", "B9", "T24b"),
)
def an_added_table_can_be_subtracted(
    X: Array, Y: Array, P: Array, T: Array, R: Array, a: Array, b: Array, c: Array
) -> dict[str, Claim]:
    """The table has the shape of the input; one with pairwise different rows is an embedding."""
    return {
        "X + P gives X back": equal((X + P) - P, X),
        "every Y is some X + P": equal((Y - P) + P, Y),
        "equal tokens at two positions": differ(
            (T + R)[a],
            (T + R)[b],
            (T + R)[a, c],
            ("if the two rows were equal", (T + R)[b, c]),
            R[a, c] - R[b, c],
        ),
    }


def equal_vectors(X: Array, P: Array, a: Array, b: Array) -> list[Any]:
    """The tokens at two places are equal, and so are their position vectors."""
    return [differ(a, b), (X[a], X[b]), (P[a], P[b])]


@an_added_table_can_be_subtracted.negative_control(
    "the position vectors are equal", assume=equal_vectors
)
def same_vectors(X: Array, P: Array, a: Array, b: Array, c: Array) -> Claim:
    return differ(
        (X + P)[a],
        (X + P)[b],
        (X + P)[a, c],
        ("if the two rows were equal", (X + P)[b, c]),
        P[a, c] - P[b, c],
    )


def two_places(P: Array, R: Array, a: Array, b: Array) -> list[Any]:
    """Places a and b differ; P and R have equal rows there."""
    return [differ(a, b), (P[a], P[b]), (R[a], R[b])]


@theorem(
    "The tables whose rows a and b are equal form a proper subspace",
    given={
        "P": real(n, p),
        "R": real(n, p),
        "s": real(),
        "t": real(),
        "a": index_below(n),
        "b": index_below(n),
    },
    assume=two_places,
    sources=("document 000, learnable absolute positional embedding",),
    claims=("B10",),
)
def tables_with_two_equal_rows_are_a_proper_subspace(
    P: Array, R: Array, s: Array, t: Array, a: Array, b: Array
) -> dict[str, Claim]:
    """A proper subspace has measure 0, and so have finitely many, one for each pair of places."""
    xp = array_namespace(P)
    counting = xp.arange(n)[:, None] + xp.zeros((n, p))
    return {
        "a subspace": equal((s * P + t * R)[a], (s * P + t * R)[b]),
        "not all: the rows 0, 1, 2, ..": differ(
            counting[a],
            counting[b],
            1 * a,
            ("the first entry of row a", counting[a, 0]),
            ("if the rows were equal", counting[b, 0]),
            ("the first entry of row b", 1 * b),
            a - b,
        ),
    }


@tables_with_two_equal_rows_are_a_proper_subspace.negative_control(
    "every table has different rows, even one whose rows all equal t",
    assume=lambda a, b: [differ(a, b)],
    t=real(p),
)
def every_table(t: Array, a: Array, b: Array) -> Claim:
    xp = array_namespace(t)
    constant = xp.zeros((n, p)) + t
    return differ(
        constant[a],
        constant[b],
        constant[a, 0],
        ("", constant[b, 0]),
        constant[a, 0] - constant[b, 0],
    )


@theorem(
    "A table of N rows can be added to any n tokens",
    given={"X": real(n, p), "P": real(N, p)},
    expected="ill-typed",
    sources=("document 000, learnable absolute positional embedding",),
    claims=("B10",),
)
def a_table_ends_with_its_last_row(X: Array, P: Array) -> Claim:
    """Not a statement: row N of the table does not exist."""
    return equal((X + P) - P, X)


@a_table_ends_with_its_last_row.negative_control("there are as many tokens as rows", X=real(N, p))
def as_many(X: Array, P: Array) -> Claim:
    return equal((X + P) - P, X)


@theorem(
    "i/(N−1) differs for different lengths N, from position 1 on; and i outgrows every scale",
    given={"i": natural(), "c": positive(), "bound": real()},
    sources=("document 004, min-max normalisation",),
    claims=("R1", "R2"),
    assume=lambda i, c, bound: [at_least(i, bound * c)],
)
def a_normalised_index_depends_on_the_length(i: Array, c: Array, bound: Array) -> dict[str, Claim]:
    """For lengths n + 1 and n + k + 1, and for a scale c: from c·bound on, i/c is above bound."""
    return {
        "two lengths": differ((i + 1) / n, (i + 1) / (n + k), k * (i + 1) / (n * (n + k))),
        "position 0": equal(0 / n, 0 / (n + k)),
        "no scale is large enough": at_least(i / c, bound, ("", (i - bound * c) / c)),
    }


@a_normalised_index_depends_on_the_length.negative_control(
    "the position is 0", assume=no_hypotheses
)
def first_position() -> Claim:
    return differ(0 / n, 0 / (n + k))


@theorem(
    "Pairs of a sine and a cosine fill any number of channels",
    given={"p": positions(n), "omega": frequencies(B), "Y": real(n, C)},
    expected="ill-typed",
    sources=("document 000, sinusoidal embedding",),
    claims=("B12",),
)
def pairs_fill_an_even_number_of_channels(p: Array, omega: Array, Y: Array) -> Claim:
    """Not a statement: B pairs are 2B channels, and C may be odd."""
    xp = array_namespace(p)
    angles = p[:, None] * omega
    pairs = xp.stack((xp.sin(angles), xp.cos(angles)), axis=-1)
    return equal(xp.reshape(pairs, Y.shape), sinusoidal(p, omega))


@pairs_fill_an_even_number_of_channels.negative_control(
    "C = 2B: channels are counted from 0, and i from 0 to B − 1", Y=real(n, 2 * B)
)
def even(p: Array, omega: Array, Y: Array) -> dict[str, Claim]:
    xp = array_namespace(p)
    angles = p[:, None] * omega
    pairs = xp.stack((Y[:, 0::2], Y[:, 1::2]), axis=-1)
    return {
        "channel 2i": equal(sinusoidal(p, omega)[:, 0::2], xp.sin(angles)),
        "channel 2i + 1": equal(sinusoidal(p, omega)[:, 1::2], xp.cos(angles)),
        "these are all channels, once each": equal(xp.reshape(pairs, Y.shape), Y),
    }


def coded(digits: Any, count: Any) -> Any:
    """Σ_t 2^t · digit_t over the first ``count`` places."""
    return iterate(count, 0, lambda t, total: total + number_power(2, t) * digits(t))


@theorem(
    "b binary digits distinguish the positions below 2^b; digit t has period 2^{t+1}",
    given={"i": natural(), "j": natural(), "k": natural(), "a": natural(), "t": natural()},
    sources=("document 004, binary numerals",),
    claims=("R3", "R4"),
    assume=lambda i, j, k, a, t: [
        (i // number_power(2, b), 0),
        (j // number_power(2, b), 0),
        differ(i, j),
        (k // number_power(2, t), 2 * a),
    ],
)
def binary_digits_tell_positions_apart(
    i: Array, j: Array, k: Array, a: Array, t: Array
) -> dict[str, Claim | Law]:
    """Below 2^b means ⌊i / 2^b⌋ = 0.

    Digit t is 0 where ⌊k / 2^t⌋ is even, as at k = 0, and 1 at k + 2^t, so 2^t is no period.
    The least period divides 2^{t+1} and does not divide 2^t: it is 2^{t+1}.
    """
    telescoped = for_all(
        {"i": natural(), "m": natural()},
        lambda i, m: equal(
            coded(lambda t: binary_digit(i, t), m) + number_power(2, m) * (i // number_power(2, m)),
            i,
        ).by_induction(m),
    )
    period = for_all(
        {"i": natural(), "t": natural()},
        lambda i, t: equal(binary_digit(i + number_power(2, t + 1), t), binary_digit(i, t)),
    )
    own, others = binary_digits(i, b), binary_digits(j, b)
    unit, step = number_power(2, b), number_power(2, t)
    return {
        "the period": period,
        "in an even block": chain(
            binary_digit(k, t), ("⌊k / 2^t⌋ = 2a", 2 * a % 2), ("2a is even", 0)
        ),
        "half a period later": chain(
            binary_digit(k + step, t),
            ("2^t adds 1 to the quotient", (k // step + 1) % 2),
            ("⌊k / 2^t⌋ = 2a", (2 * a + 1) % 2),
            ("2a + 1 is odd", 1),
        ),
        "the digits give the position": telescoped,
        "below 2^b": differ(
            own,
            others,
            i,
            ("its digits", coded(lambda t: binary_digit(i, t), b) + unit * (i // unit)),
            ("i is below 2^b", coded(lambda t: binary_digit(i, t), b) + unit * 0),
            ("and nothing else", coded(lambda t: binary_digit(i, t), b)),
            ("as a list of digits", coded(lambda t: own[t], b)),
            ("if the lists were equal", coded(lambda t: others[t], b)),
            ("as a list of digits", coded(lambda t: binary_digit(j, t), b)),
            ("j is below 2^b", coded(lambda t: binary_digit(j, t), b) + unit * 0),
            ("and nothing else", coded(lambda t: binary_digit(j, t), b) + unit * (j // unit)),
            ("the digits of j", j),
            i - j,
        ).with_facts(telescoped.at(i=i, m=b), telescoped.at(i=j, m=b)),
    }


@binary_digits_tell_positions_apart.negative_control(
    "the positions are i and i + 2^b", assume=no_hypotheses
)
def beyond(i: Array) -> Claim:
    later = i + number_power(2, b)
    return differ(binary_digits(i, b), binary_digits(later, b), i, ("", later), i - later)


@theorem(
    "Neighbouring positions differ in equally many binary digits",
    given={"i": natural(), "j": natural()},
    expected="refuted",
    sources=("document 004, binary numerals",),
    claims=("R4",),
)
def neighbouring_positions_differ_in_unequally_many_digits(i: Array) -> Claim:
    """False: from an even position to the next, one digit changes; from an odd one, more do.

    The number that the digits code always steps by 1.
    """
    return equal(changed(2 * i), changed(2 * i + 1))


def changed(i: Array) -> Array:
    """How many of b + 1 digits change from i to i + 1."""
    step = binary_digits(i + 1, b + 1) - binary_digits(i, b + 1)
    xp = array_namespace(step)
    number: Array = xp.sum(step**2, axis=0)
    return number


@neighbouring_positions_differ_in_unequally_many_digits.negative_control("the number that is coded")
def the_number(i: Array, j: Array) -> Claim:
    return equal((i + 1) - i, (j + 1) - j)


def zeros_and_ones(f: Function) -> Law:
    """f_t(x)² = f_t(x): digit t is 0 or 1 everywhere."""
    return for_all({"t": natural(), "x": real()}, lambda t, x: equal(f(t, x) ** 2, f(t, x)))


def halfway(f: Function, c: Function) -> Law:
    """Digit t is the mean of its values at x and at y somewhere: at c_t(x, y)."""
    return for_all(
        {"t": natural(), "x": real(), "y": real()},
        lambda t, x, y: equal(f(t, c(t, x, y)), (f(t, x) + f(t, y)) / 2),
    )


@theorem(
    "A code with values in {0, 1}^b is constant if its digits have intermediate values",
    given={
        "f": function(0, 0, says="digit t of the code of a real position"),
        "c": function(0, 0, 0, says="a place where digit t is the mean of its values at x and y"),
        "x": real(),
        "y": real(),
    },
    sources=("document 004, binary numerals",),
    claims=("R4b",),
    assume=lambda f, c: [zeros_and_ones(f), halfway(f, c)],
)
def a_continuous_code_of_zeros_and_ones_is_constant(
    f: Function, c: Function, x: Array, y: Array
) -> dict[str, Claim | Law]:
    """Continuity enters through the intermediate value theorem, which is quoted, not proved.

    Let u and v be a digit at x and at y, and w = (u + v)/2 the same digit somewhere between.
    """
    digits, means = zeros_and_ones(f), halfway(f, c)

    def differences(t: Array, x: Array, y: Array) -> Claim:
        u, v, w = f(t, x), f(t, y), f(t, c(t, x, y))
        return chain(
            (u - v) ** 2,
            ("u² = u and v² = v", 2 * (u + v) - (u + v) ** 2),
            ("u + v = 2w", 4 * w - 4 * w**2),
            ("w² = w", 0),
        ).with_facts(
            digits.at(t=t, x=x),
            digits.at(t=t, x=y),
            means.at(t=t, x=x, y=y),
            digits.at(t=t, x=c(t, x, y)),
        )

    square = for_all({"t": natural(), "x": real(), "y": real()}, differences)

    def code(x: Array) -> Array:
        digits: Array = rows(b, lambda t: f(t, x))
        return digits

    return {
        "(u − v)² = 0": square,
        "the code": equal(code(x), code(y))
        .by_squares()
        .with_facts(over(b, lambda t: square.at(t=t, x=x, y=y))),
    }


@a_continuous_code_of_zeros_and_ones_is_constant.negative_control(
    "the digit may jump", assume=no_hypotheses
)
def jumping(x: Array, y: Array) -> Claim:
    def digit(place: Array) -> Array:
        xp = array_namespace(place)
        value: Array = xp.where(place > 0, 1, 0)
        return value

    return equal(digit(x), digit(y))
