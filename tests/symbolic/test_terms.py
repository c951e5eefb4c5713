"""Terms: one object for one term, no capture, and no meaning for what is put together wrongly."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic.scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    below,
    entry,
    index,
    integer,
    mul,
    num,
    power,
    size,
    split_integer,
)  # fmt: skip
from attnproof.symbolic.terms import Term, bind, free, instantiate, make, postorder, substitute
from tests.symbolic.interpreter import World
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    A,
    L,
    X,
    a,
    b,
    e,
    i,
    j,
    k,
    m,
    minus,
    n,
    total,
    var,
)  # fmt: skip


def test_a_term_is_one_object() -> None:
    assert add(a, b) is add(a, b)
    assert total(i, entry(X, i)) is total(j, entry(X, j))
    t = total(i, entry(X, i))
    assert copy.copy(t) is copy.deepcopy(t) is pickle.loads(pickle.dumps(t)) is t
    assert size("n", "tokens") is not size("n", "heads")
    assert var("X", n) is not var("X", m)


def test_a_term_is_not_changed() -> None:
    with pytest.raises(AttributeError, match="cannot be changed"):
        a.data = ("b", "real")


def test_no_index_is_captured() -> None:
    twice = total(i, total(j, entry(A, i, j)))
    assert instantiate(twice.args[1], j) is total(k_, entry(A, j, k_))
    assert bind(total(j, entry(A, i, j)), i) is twice.args[1]
    assert substitute(total(j, mul(entry(X, i), j)), i, j) is total(k_, mul(entry(X, j), k_))
    assert free(twice) == {A, n}
    for wrong in (twice.args[1], make("bound", data=0)):
        with pytest.raises(ValueError, match="closed"):
            substitute(a, a, wrong)
        with pytest.raises(ValueError, match="closed"):
            instantiate(twice.args[1], wrong)


k_ = index("k_", n)


@given(st.permutations([0, 1, 2]), st.integers(0, 50))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_opening_undoes_binding(order: list[int], seed: int) -> None:
    names = [index(name, n) for name in ("x", "y", "z")]
    t = mul(entry(A, names[0], names[1]), total(i, mul(entry(A, i, names[2]), entry(X, names[0]))))
    chosen = [names[k] for k in order]
    body = bind(t, *chosen)
    assert body.loose == 3
    assert instantiate(body, *chosen) is t
    world = World(seed)
    values = tuple(int(world(v)) for v in chosen)
    assert world(body, values) == world(t)
    assert all(part.loose <= 4 for part in postorder(body))


lengths = st.sampled_from([n, m, L, ONE, TWO, i, j, k])
sums = st.lists(st.tuples(st.integers(-3, 3), lengths, lengths), max_size=4).map(
    lambda parts: add(*(mul(num(z), x, y) for z, x, y in parts))
)


@given(sums, sums, st.integers(0, 500))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_what_is_always_less_is_less(x: Term, y: Term, seed: int) -> None:
    world = World(seed)
    if always_less(x, y):
        assert world(x) < world(y)
    if below(x, n):
        assert 0 <= world(x) < world(n)
    assert world(integer(x)) == world(x)
    for unit in (TWO, m, mul(TWO, m), minus(TWO)):
        quotient, rest = split_integer(x, unit)
        assert world(quotient) * world(unit) + world(rest) == world(x)


@pytest.mark.parametrize(
    ("low", "high"),
    [(ZERO, i), (ONE, n), (i, j), (i, add(n, minus(ONE))), (a, add(a, b)), (n, mul(n, n)),
     (ZERO, HALF), (ZERO, power(n, 2)), (entry(X, i), n), (mul(i, j), mul(n, i)),
     (entry(make("inverse", (e,), shape=(m,)), k), m)],
)  # fmt: skip
def test_what_may_fail_is_not_always_less(low: Term, high: Term) -> None:
    assert not always_less(low, high)
