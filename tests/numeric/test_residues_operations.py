"""Residues, points and roots against Python's integers."""

from __future__ import annotations

from random import Random

import pytest
import torch

from attnproof.numeric.residues.residue import Degree, FieldArithmetic, NoResidue, Residue
from attnproof.numeric.residues.roots import root, roots
from attnproof.numeric.residues.towers import (
    NoTower,
    choices,
    is_prime,
    order_of,
    powers,
    random_points,
    tower,
)

PRIMES = (7, 23, 1_019, 4_194_287)


def drawn(field: FieldArithmetic, *shape: int, seed: int = 0) -> Residue:
    generator = torch.Generator().manual_seed(seed)
    return field.of(torch.randint(field.prime, shape, generator=generator))


def numbers(x: Residue) -> list[int]:
    return [int(v) % x.arithmetic.prime for v in x.value.reshape(-1)]


@pytest.mark.parametrize("prime", PRIMES)
def test_entries_are_added_multiplied_and_inverted(prime: int) -> None:
    field = FieldArithmetic(prime)
    x, y = drawn(field, 50), drawn(field, 50, seed=1)
    a, b = numbers(x), numbers(y)
    assert numbers(x + y) == [(i + j) % prime for i, j in zip(a, b, strict=True)]
    assert numbers(x * y) == [i * j % prime for i, j in zip(a, b, strict=True)]
    assert numbers(x**5) == [pow(i, 5, prime) for i in a]
    inverse = x.inverse()
    lost = [False] * 50 if inverse.undefined is None else inverse.undefined.tolist()
    assert lost == [i == 0 for i in a]
    assert all(i * j % prime == 1 for i, j in zip(a, numbers(inverse), strict=True) if i)
    for found in (x + y, x * y, inverse):
        assert float(found.value.abs().max()) <= (prime - 1) / 2


@pytest.mark.parametrize("prime", PRIMES)
def test_products_of_matrices_and_sums_are_exact(prime: int) -> None:
    field = FieldArithmetic(prime)
    x, y = drawn(field, 2, 5_000), drawn(field, 5_000, 2, seed=1)
    a, b = numbers(x), numbers(y)
    wanted = [
        sum(a[5_000 * i + k] * b[2 * k + j] for k in range(5_000)) % prime
        for i in range(2)
        for j in range(2)
    ]
    assert numbers(x @ y) == wanted
    assert numbers(x.sum(1)) == [sum(a[:5_000]) % prime, sum(a[5_000:]) % prime]


def test_the_largest_product_of_matrices_is_exact() -> None:
    """All entries (p − 1)/2: sums reach 2^53 in every block."""
    field = FieldArithmetic(4_194_287)
    half = (field.prime - 1) // 2
    x = field.of(torch.full((1, 8_191), half, dtype=torch.int64))
    assert numbers(x @ field.permute_dims(x, (1, 0))) == [8_191 * half * half % field.prime]


def test_a_spoiled_entry_spoils_what_reads_it_and_nothing_else() -> None:
    field = FieldArithmetic(23)
    x = field.of(torch.tensor([[0, 1], [2, 3]])).inverse()
    one = field.of(torch.tensor([[1, 0], [0, 1]]))
    assert (x @ one).undefined.tolist() == [[True, True], [False, False]]  # type: ignore[union-attr]
    assert (one @ x).undefined.tolist() == [[True, False], [True, False]]  # type: ignore[union-attr]
    assert x.sum(1).undefined.tolist() == [True, False]  # type: ignore[union-attr]
    kept = field.where(torch.tensor([[False, True], [True, True]]), x, field.of(5))
    assert not bool(kept.undefined.any())  # type: ignore[union-attr]


def test_minus_infinity_is_refused_where_it_has_no_meaning() -> None:
    field = FieldArithmetic(23)
    hidden = field.where(torch.tensor([True, False]), field.minus_infinity(), field.of(1))
    with pytest.raises(NoResidue, match="−inf"):
        hidden * 2
    with pytest.raises(NoResidue, match="−inf"):
        hidden.sum(0)
    with pytest.raises(NoResidue, match="−inf"):
        hidden @ hidden


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_exponential_takes_sums_to_products(depth: int) -> None:
    levels = tower(depth)
    for level in range(depth):
        order, prime, base = levels.primes[level], levels.primes[level + 1], levels.bases[level]
        assert is_prime(order)
        assert is_prime(prime)
        assert order % 4 == prime % 4 == 3
        table = powers(base, order, prime)
        random = Random(0)
        for x in (0, 1, order - 1, *(random.randrange(order) for _ in range(50))):
            assert int(table[x]) % prime == pow(base, x, prime)
        assert len(set(table.tolist())) == order


def test_no_tower_is_endless() -> None:
    with pytest.raises(NoTower, match="9 nested exponentials"):
        tower(9)


@pytest.mark.parametrize("prime", [23, 1_019])
def test_angles_are_added_like_powers_of_a_complex_number(prime: int) -> None:
    field = FieldArithmetic(prime)
    points = random_points(field, (6,), Random(0), 5)
    for k, (c, s) in enumerate(zip(numbers(points.cos), numbers(points.sin), strict=True)):
        assert (c * c + s * s) % prime == 1
        assert order_of((c, s), prime) > 5
        a, b = 1, 0
        for count in range(40):
            found = points.times(torch.tensor(count))
            back = points.times(torch.tensor(-count))
            assert (numbers(found.cos)[k], numbers(found.sin)[k]) == (a, b)
            assert (numbers(back.cos)[k], numbers(back.sin)[k]) == (a, -b % prime)
            a, b = (a * c - b * s) % prime, (a * s + b * c) % prime


def test_the_choices_of_an_angle_are_counted() -> None:
    prime = 23
    points = [(c, s) for c in range(prime) for s in range(prime) if (c * c + s * s) % prime == 1]
    assert len(points) == prime + 1
    for above in (2, 5, 11):
        assert choices(prime, above) == sum(order_of(p, prime) > above for p in points)


def test_angles_that_would_all_come_back_are_refused() -> None:
    with pytest.raises(NoResidue, match="come back"):
        random_points(FieldArithmetic(23), (1,), Random(0), 24)


@pytest.mark.parametrize("prime", [23, 2_096_063, 4_194_287])
def test_roots_multiply_as_those_of_real_numbers(prime: int) -> None:
    assert [root(k * k, prime) for k in range(1, 20)] == [k % prime for k in range(1, 20)]
    found = {m: x for m in range(1, 60) if (x := root(m, prime)) is not None}
    assert all(x * x % prime == m % prime for m, x in found.items())
    for a, x in found.items():
        for b, y in found.items():
            assert x * y % prime == root(a * b, prime)
    with pytest.raises(NoResidue, match="root"):
        root(-1, prime)


def test_a_number_without_a_root_is_named() -> None:
    assert roots(torch.tensor([[4, 18], [9, 0]]), 23).tolist() == [[2, root(18, 23)], [3, 0]]
    with pytest.raises(NoResidue, match="√5 modulo 23"):
        roots(torch.tensor([4, 5]), 23)


def test_degrees() -> None:
    linear = Degree(1, 0)
    assert linear.times(linear).summed(9) == (2, 0)
    assert linear.inverse() == (0, 1)
    assert linear.inverse().plus(linear.inverse()) == (1, 2)
    assert linear.inverse().summed(3) == (2, 3)
    assert linear.either(Degree(0, 4)) == (1, 4)
