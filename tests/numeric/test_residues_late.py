"""Reductions, products and powers that are put off, against Python's integers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

from attnproof.numeric.residues import towers as powers_of
from attnproof.numeric.residues.exact import exact
from attnproof.numeric.residues.lengths import BUDGET, work
from attnproof.numeric.residues.residue import EXACT, REDUCED_LIMIT, FieldArithmetic, Residue
from attnproof.numeric.residues.roots import inverse, linear, square_roots
from attnproof.numeric.residues.towers import power, powers, tower
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import orthogonal, permutation, real, sizes
from attnproof.symbolic.namespace import exp
from attnproof.theorems.definitions.attention import attention, softmax
from tests.numeric.statements import PAIRS, stated

r, n = sizes("r n", "tokens")
d, e = sizes("d e", "features")
LARGE = 4_194_287


def drawn(field: FieldArithmetic, *shape: int, seed: int = 0) -> Residue:
    generator = torch.Generator().manual_seed(seed)
    return field.of(torch.randint(field.prime, shape, generator=generator))


def numbers(x: Residue) -> list[int]:
    return [int(v) % x.arithmetic.prime for v in x.value.reshape(-1)]


@pytest.mark.parametrize("prime", [7, 1_019, 2_097_143, LARGE])
@pytest.mark.parametrize("bound", [REDUCED_LIMIT, EXACT - 1])
def test_every_number_is_reduced_to_the_least_in_size(prime: int, bound: int) -> None:
    """Also those nearest to the half between two multiples."""
    half, random = prime // 2, Random(0)
    least = [random.randrange(bound // prime) * prime for _ in range(2_000)]
    found = [k + by for k in least for by in (-half, half, half + 1, -1, 0, 1)] + [bound]
    found = [x for x in found if abs(x) <= bound] + [-x for x in found if abs(x) <= bound]
    reduced = FieldArithmetic(prime).reduced(torch.tensor(found).double(), bound)
    wanted = [(x + half) % prime - half for x in found]
    assert reduced.tolist() == wanted


def test_one_reduction_is_not_enough_near_the_largest_number() -> None:
    """What the second one is for."""
    prime = 1_000_003
    half, last = prime // 2, EXACT // prime
    near = torch.arange(last - 200, last).double() * prime + half
    field = FieldArithmetic(prime)
    assert bool((field.reduced(near, REDUCED_LIMIT).abs() > half).any())
    assert bool((field.reduced(near, EXACT) == half).all())


@pytest.mark.parametrize("count", [1, 64, 65, 127, 1_000])
def test_many_numbers_are_inverted_together(count: int) -> None:
    field = FieldArithmetic(1_019)
    x = field.of(torch.arange(count) % 1_018 + 1)
    assert all(a * b % 1_019 == 1 for a, b in zip(numbers(x), numbers(x.inverse()), strict=True))


def test_a_softmax_is_what_integers_make_of_it() -> None:
    """A scale, denominators and a product, all put off, entry by entry."""
    field = FieldArithmetic(LARGE)
    x, y, v = drawn(field, 5, 3), drawn(field, 3, 4, seed=1), drawn(field, 4, 2, seed=2)
    scores = (x @ y) * field.of(77)
    denominators = scores.sum(1)[:, None].inverse()
    weights = scores * field.broadcast_to(denominators, (5, 4))
    p, (a, b, c) = LARGE, (numbers(part) for part in (x, y, v))
    told = [
        [77 * sum(a[3 * i + k] * b[4 * k + j] for k in range(3)) % p for j in range(4)]
        for i in range(5)
    ]
    over = [pow(sum(row), -1, p) for row in told]
    mixed = [
        over[i] * sum(told[i][j] * c[2 * j + k] for j in range(4)) % p
        for i in range(5)
        for k in range(2)
    ]
    assert numbers(weights @ v) == mixed
    assert numbers(weights.sum(1)) == [1] * 5
    assert numbers(weights) == [over[i] * told[i][j] % p for i in range(5) for j in range(4)]
    assert numbers(weights @ v[:, 0]) == mixed[::2]
    assert numbers(weights + weights) == [2 * w % p for w in numbers(weights)]


def test_a_denominator_of_zero_spoils_its_row_alone() -> None:
    field = FieldArithmetic(23)
    weights = field.of(torch.tensor([[1, 22], [1, 1]]))
    over = field.broadcast_to(weights.sum(1)[:, None].inverse(), (2, 2))
    found = (weights * over) @ drawn(field, 2, 3)
    assert found.undefined is not None
    assert found.undefined.tolist() == [[True] * 3, [False] * 3]
    assert (weights * over).undefined.tolist() == [[True] * 2, [False] * 2]


@pytest.mark.parametrize("bound", [1 << 20, REDUCED_LIMIT])
def test_powers_of_numbers_that_are_not_reduced(bound: int) -> None:
    levels = tower(1)
    (order, prime), (base,) = levels.primes, levels.bases
    random = Random(0)
    x = [random.randrange(-bound, bound) for _ in range(300)]
    x += [k * order + by for k in (0, 1, -1, bound // order - 1) for by in (-1, 0, 1)]
    field = FieldArithmetic(order)
    found = power(Residue(field, torch.tensor(x).double(), bound=bound), base, prime)
    assert [int(v) % prime for v in found] == [pow(base, k % order, prime) for k in x]


# faults

SUMS: Any = stated({"x": real(n), "y": real(n)}, lambda x, y: equal(exp(x + y), exp(x) * exp(y)))


def test_a_table_off_by_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {check.status for check in exact(SUMS, scale="small")} == {"held"}
    monkeypatch.setattr(powers_of, "powers", lambda *args: powers(*args).roll(1))
    assert {check.status for check in exact(SUMS, scale="small")} == {"violated"}


def test_a_wrong_reduction_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FieldArithmetic.reduced
    monkeypatch.setattr(
        FieldArithmetic,
        "reduced",
        lambda self, x, bound=REDUCED_LIMIT: right(self, x, bound) + (x > 1e12),
    )
    assert {check.status for check in exact(SUMS, scale="small")} == {"violated"}


def test_a_denominator_that_goes_past_the_wrong_axis_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = Residue._deferred_product

    def wrong(self: Residue, b: Residue, degree: Any) -> Residue | None:
        found = late(self, b, degree)
        if found is not None and found._rows is not None and found.shape[0] > 1:
            found._rows = found._rows.moved(lambda x: x.roll(1, 0))
        return found

    monkeypatch.setattr(Residue, "_deferred_product", wrong)
    merged = stated(
        {"S": real(r, n), "V": real(n, d)},
        lambda S, V: equal(softmax(S) @ V, (exp(S) @ V) / (exp(S) @ (1 + 0 * V))),
    )
    assert {check.status for check in exact(merged, scale="small")} == {"violated"}


# linear algebra


def test_linear_equations_have_the_solutions_they_have() -> None:
    field = FieldArithmetic(1_019)
    matrix = drawn(field, 3, 6)
    x = drawn(field, 6, seed=1)
    right = (matrix @ x).value
    found = linear(field, matrix.value, right)
    assert found is not None
    assert found.kernel.shape == (6, 3)
    assert field.reduced(matrix.value @ found.one).tolist() == right.tolist()
    assert not bool(field.reduced(matrix.value @ found.kernel).any())
    twice = torch.cat((matrix.value, matrix.value[:1]))
    assert linear(field, twice, torch.cat((right, right[:1] + 1))) is None


def test_a_matrix_is_inverted_unless_it_is_singular() -> None:
    field = FieldArithmetic(LARGE)
    matrix = drawn(field, 9, 9).value
    found = inverse(field, matrix)
    assert found is not None
    assert (Residue(field, matrix) @ Residue(field, found)).value.tolist() == torch.eye(9).tolist()
    matrix[0] = matrix[1]
    assert inverse(field, matrix) is None


def test_square_roots_are_found_where_there_are_some() -> None:
    field = FieldArithmetic(1_019)
    x = field.of(torch.arange(1_019))
    found, there = square_roots(field, x.value)
    assert int(there.sum()) == 510
    squares = field.reduced(found * found)
    assert bool((squares == x.value)[there].all())


# work


def test_the_work_of_a_few_rows_grows_with_the_tokens_and_that_of_a_square_faster() -> None:
    given = {"Q": real(n, d), "M": real(n, n), "s": permutation(n)}
    Q, M, s = (given[name].named(name) for name in given)
    few, whole = attention(Q, Q[s], Q).term, (M @ M[s]).term

    def of(term: Any, tokens: int, *wanted: Any) -> int:
        return work(term, {"n": tokens, "d": 64}, wanted)

    assert of(few, 4_096, 64, None) < 3 * of(few, 2_048, 64, None)
    assert of(few, 4_096, 64, None) < BUDGET
    assert of(few, 4_096, None, None) > 30 * of(few, 4_096, 64, None)
    assert of(whole, 4_096, None, None) > 6 * of(whole, 2_048, None, None)


def test_what_is_too_much_work_is_done_with_fewer_tokens() -> None:
    given = {"M": real(n, n), "h": orthogonal(n)}
    product = stated(given, lambda M, h: equal((h.mT @ M @ h @ h.mT), h.mT @ M))
    for statement, least, most in ((product, 16, 1_024), (PAIRS, 4_096, 4_096)):
        for check in exact(statement):
            assert check.status == "held"
            assert least <= check.sizes["n"] <= most


def test_values_that_the_scores_read_are_not_independent_of_them() -> None:
    own = stated(
        {"X": real(n, d), "s": permutation(n)},
        lambda X, s: equal(attention(X[s], X[s], X[s]), attention(X, X, X)[s]),
    )
    for check in exact(own, scale="small"):
        assert (check.status, check.error) == ("held", "")
