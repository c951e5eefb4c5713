"""Statements that are false, and once came out proved; a line above each says what misled."""

import sys

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Array,
    Claim,
    differ,
    equal,
    exists,
    for_all,
    greater,
    index_below,
    index_map,
    inverse,
    probability_space,
    real,
    rows,
    sizes,
    theorem,
)

n, m = sizes("n m", "tokens")


# For all z some w has 0·w = z (false): the unknown is called z too, and the two are one.
@theorem("Every number is zero times some number", given={"x": real()}, sources=("none",))
def a_captured_name(x: object) -> Claim:
    """For all real z there is a w with 0·w = z + 0·x."""
    return for_all(
        {"z": real()}, lambda z: exists(real(), "z", lambda w: equal(0 * w, z + 0 * x), witness=0)
    )


@a_captured_name.negative_control("plus one")
def more_of_a_captured_name(x: object) -> Claim:
    return for_all(
        {"z": real()},
        lambda z: exists(real(), "z", lambda w: equal(0 * w, 0 * z + 0 * x + 1), witness=0),
    )


# X is 0 from n = 11 176 on (false): what a symbolic length refuses is caught.
@theorem("Long rows stay as they are", given={"X": real(n)}, sources=("none",))
def a_caught_refusal(X: Array) -> Claim:
    """X times 0 is X for long X, as no refusal comes there."""
    try:
        factor = 0 if X.shape[0] > sum(range(150)) else 1
    except TypeError:
        factor = 1
    return equal(X * factor, X)


@a_caught_refusal.negative_control("twice")
def twice_of_a_caught_refusal(X: Array) -> Claim:
    return equal(X * 2, X)


# X is 0 where numpy is given a large number (false): symbols are asked for their class.
@theorem("Large numbers stay as they are", given={"X": real(n)}, sources=("none",))
def a_class_of_an_array(X: Array) -> Claim:
    """X times 0 is X where some entry is above 10 000."""
    large = isinstance(X, np.ndarray) and bool((X > 1e4).any())
    return equal(X * (0 if large else 1), X)


@a_class_of_an_array.negative_control("twice")
def twice_of_a_class_of_an_array(X: Array) -> Claim:
    return equal(X * 2, X)


# X is 0 from the 10 000th call on (false): the code keeps a list from call to call.

CALLS: list[int] = []


@theorem("A row stays as it is", given={"X": real(n)}, sources=("none",))
def a_count_of_calls(X: Array) -> Claim:
    """X times 0 is X after many calls."""
    CALLS.append(1)
    return equal(X * (0 if len(CALLS) > 10**4 else 1), X)


@a_count_of_calls.negative_control("twice")
def twice_of_a_count_of_calls(X: Array) -> Claim:
    return equal(X * 2, X)


# Every real number is whole (false): astype to int is read as the identity.
@theorem("Every real number is whole", given={"x": real()}, sources=("none",))
def a_cut_to_integers(x: Array) -> Claim:
    """int(x) = x."""
    xp = array_namespace(x)
    return equal(xp.astype(x, int), x)


@a_cut_to_integers.negative_control("one more")
def more_of_a_cut_to_integers(x: Array) -> Claim:
    xp = array_namespace(x)
    return equal(xp.astype(x, int), x + 1)


# A table of lengths (false for n = 5000): a dict does not find a symbolic length in it.

SHARE = {5000: 0}


@theorem("Every length but one keeps its sum", given={"X": real(n)}, sources=("none",))
def a_length_in_a_dict(X: Array) -> Claim:
    """X times what a table says of its length is X (false where the table says 0)."""
    return equal(X * SHARE.get(X.shape[0], 1), X)


@a_length_in_a_dict.negative_control("twice as much")
def twice_of_a_length_in_a_dict(X: Array) -> Claim:
    return equal(X * SHARE.get(X.shape[0], 1), 2 * X)


# X is 0 for lengths of more than 17 bits (false): a symbolic length has no method of numbers.
@theorem("Rows of many bits stay as they are", given={"X": real(n)}, sources=("none",))
def a_method_that_is_not_there(X: Array) -> Claim:
    """X times 0 is X for n of more than 17 bits."""
    bits = getattr(X.shape[0], "bit_length", lambda: 0)()
    return equal(X * (0 if bits > 17 else 1), X)


@a_method_that_is_not_there.negative_control("twice")
def twice_of_a_method_that_is_not_there(X: Array) -> Claim:
    return equal(X * 2, X)


# What follows if the array takes more than a megabyte (false for long arrays).

MEGABYTE = int("1" + 6 * "0")


@theorem("A long array is itself", given={"x": real(n)}, sources=("none",))
def a_number_of_bytes(x: Array) -> Claim:
    """x = x, and 2x if it takes more than a megabyte: a symbolic array takes a few bytes."""
    return equal(x, 2 * x if sys.getsizeof(x) > MEGABYTE else x)


@a_number_of_bytes.negative_control("three times itself")
def three_times_of_a_number_of_bytes(x: Array) -> Claim:
    return equal(x, 2 * x if sys.getsizeof(x) > MEGABYTE else 3 * x)


# The sum of all entries is the first entry (false for n >= 2).
@theorem("The sum over all tokens is the first token", given={"X": real(n)}, sources=("none",))
def a_python_sum(X: Array) -> Claim:
    """x_0 + .. + x_{n-1} = x_0 for every n: Python's `for x in X` stops after X[0]."""
    return equal(sum(x for x in X), X[0])


@a_python_sum.negative_control("twice the first entry")
def twice_of_a_python_sum(X: Array) -> Claim:
    return equal(sum(x for x in X), 2 * X[0])


# The matrix of a step is the identity (false): the keyword k of eye may not be dropped.
@theorem("A step to the next token is no step", given={"X": real(n)}, sources=("none",))
def a_shifted_identity(X: Array) -> Claim:
    """S X = X for the matrix S with ones above the diagonal."""
    xp = array_namespace(X)
    return equal(xp.eye(n, k=1) @ X, X)


@a_shifted_identity.negative_control("twice")
def twice_of_a_shifted_identity(X: Array) -> Claim:
    xp = array_namespace(X)
    return equal(xp.eye(n, k=1) @ X, 2 * X)


# X is 0 where n has six digits (false): the text of a symbolic length is its name.
@theorem("Rows of many tokens stay as they are", given={"X": real(n)}, sources=("none",))
def a_text_of_a_length(X: Array) -> Claim:
    """X times 0 is X for n of six digits."""
    return equal(X * (0 if len(f"{X.shape[0]}") > 5 else 1), X)


@a_text_of_a_length.negative_control("twice")
def twice_of_a_text_of_a_length(X: Array) -> Claim:
    return equal(X * 2, X)


# X.T is X.mT also with three axes (false in numpy and torch, where .T reverses all axes).
@theorem("T exchanges the last two axes of three", given={"X": real(n, n, n)}, sources=("none",))
def a_transpose_of_three_axes(X: Array) -> Claim:
    """X.T = X.mT."""
    return equal(X.T, X.mT)


@a_transpose_of_three_axes.negative_control("X itself")
def itself_of_a_transpose_of_three_axes(X: Array) -> Claim:
    return equal(X.T, X)


# X is 0 from n = 11 176 on (false): a symbolic length has a type of its own.
@theorem("Rows of any length stay as they are", given={"X": real(n)}, sources=("none",))
def a_type_of_a_length(X: Array) -> Claim:
    """X times 0 is X for n above 11 175."""
    length = X.shape[0]
    many = type(length) is int and length > sum(range(150))
    return equal(X * (0 if many else 1), X)


@a_type_of_a_length.negative_control("twice")
def twice_of_a_type_of_a_length(X: Array) -> Claim:
    return equal(X * 2, X)


# Some number z has 0·z > 0 (false): `exists` keeps the two sides and drops the relation.
@theorem("Zero times some number is positive", given={"x": real()}, sources=("none",))
def an_existence_of_an_inequality(x: Array) -> Claim:
    """There is a real z with 0·z > 0·x."""
    return exists(real(), "z", lambda z: greater(0 * z, 0 * x), witness=0)


@an_existence_of_an_inequality.negative_control("plus one")
def more_of_an_existence_of_an_inequality(x: Array) -> Claim:
    return exists(real(), "z", lambda z: greater(0 * z, 0 * x + 1), witness=0)


# Rows that a set names (false for n > 5000): no symbolic index is in a set.

HIDDEN = {5000}


@theorem("Hiding some rows hides none", given={"X": real(n)}, sources=("none",))
def an_index_in_a_set(X: Array) -> Claim:
    """X with 0 at the places that a set names is X (false where n is larger than these)."""
    return equal(rows(n, lambda i: 0 * X[i] if i in HIDDEN else X[i]), X)


@an_index_in_a_set.negative_control("all of them")
def all_of_them_of_an_index_in_a_set(X: Array) -> Claim:
    return equal(rows(n, lambda i: 0 * X[i] if i in HIDDEN else X[i]), 0 * X)


# Matrices commute (false): np.dot of two symbolic arrays is their entrywise product.
@theorem("Matrices commute", given={"A": real(n, n), "B": real(n, n)}, sources=("none",))
def numpy_dot(A: Array, B: Array) -> Claim:
    """A B = B A for all square matrices."""
    return equal(np.dot(A, B), np.dot(B, A))


@numpy_dot.negative_control("the square of one of them")
def square_of_numpy_dot(A: Array, B: Array) -> Claim:
    return equal(np.dot(A, B), np.dot(A, A))


# A difference where there is no probability (false): random numbers that differ there alone.

one = probability_space("Ω")


@theorem(
    "Random numbers that differ are at a distance",
    given={"X": real(one), "Y": real(one)},
    sources=("none",),
    assume=lambda X, Y: [differ(X, Y)],
)
def random_numbers_that_differ(X: Array, Y: Array) -> Claim:
    """E (X − Y)² > 0 if X and Y differ (false where they do with probability 0)."""
    xp = array_namespace(X)
    return greater(xp.sum((X - Y) ** 2, axis=0), 0)


@random_numbers_that_differ.negative_control("the other way round")
def below_of_random_numbers_that_differ(X: Array, Y: Array) -> Claim:
    xp = array_namespace(X)
    return greater(0, xp.sum((X - Y) ** 2, axis=0))


# The inverse of a map that has none (false): the order of its values has as many places as it.
@theorem(
    "The inverse of a map stays below what the map stays below",
    given={"f": index_map(n, m), "i": index_below(n)},
    sources=("none",),
)
def the_inverse_of_a_map(f: Array, i: Array) -> Claim:
    """f⁻¹(i) < m for f from the indices below n to those below m (false where n > m)."""
    xp = array_namespace(f)
    return equal(xp.where(inverse(f)[i] < m, 1.0, 0.0), 1)


@the_inverse_of_a_map.negative_control("below half of it")
def half_of_the_inverse_of_a_map(f: Array, i: Array) -> Claim:
    xp = array_namespace(f)
    return equal(xp.where(2 * inverse(f)[i] < m, 1.0, 0.0), 1)


# The last three tokens are three (false for n = 1, 2): a slice may start below 0.
@theorem("A window of the last m tokens has m tokens", given={"X": real(n)}, sources=("none",))
def the_last_tokens(X: Array) -> Claim:
    """sum over X[n-m:] of 1 is m, for all sizes n, m >= 1 (false where m > n)."""
    xp = array_namespace(X)
    return equal(xp.sum(0 * X[n - m :] + 1), m)


@the_last_tokens.negative_control("one more")
def more_of_the_last_tokens(X: Array) -> Claim:
    xp = array_namespace(X)
    return equal(xp.sum(0 * X[n - m :] + 1), m + 1)


# Every number is the next one, and is itself: `and` of Python keeps the second claim alone.
@theorem("Every number is the next one, and itself", given={"x": real()}, sources=("none",))
def two_claims_joined_by_and(x: Array) -> Claim:
    """x = x + 1 and x = x: the first is false."""
    return equal(x, x + 1) and equal(x, x)


@two_claims_joined_by_and.negative_control("it is the next one alone")
def next_alone_of_two_claims_joined_by_and(x: Array) -> Claim:
    return equal(x, x + 1)
