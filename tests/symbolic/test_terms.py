"""Terms: one object for one term, no capture, and no meaning for what is put together wrongly."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
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
)
from attnproof.symbolic.terms import (
    Opened,
    Term,
    bind,
    free,
    instantiate,
    is_interned,
    is_opened,
    make,
    opened,
    postorder,
    substitute,
)
from tests.cases import each
from tests.symbolic.interpreter import World
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    A,
    L,
    X,
    Y,
    a,
    b,
    e,
    i,
    j,
    k,
    m,
    minus,
    n,
    stack,
    table,
    total,
    var,
)


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
    [
        (ZERO, i),
        (ONE, n),
        (i, j),
        (i, add(n, minus(ONE))),
        (a, add(a, b)),
        (n, mul(n, n)),
        (ZERO, HALF),
        (ZERO, power(n, 2)),
        (entry(X, i), n),
        (mul(i, j), mul(n, i)),
        (entry(make("inverse", (e,), shape=(m,)), k), m),
    ],
)
def test_what_may_fail_is_not_always_less(low: Term, high: Term) -> None:
    assert not always_less(low, high)


# terms read naively: no cache, no short cut

BINDERS = {"sum": 1, "tabulate": 1, "iterate": 2}


def naively_free(t: Term) -> set[Term]:
    own = {t} if t.op in ("var", "index", "size") else set()
    return own.union(*(naively_free(part) for part in (*t.args, *t.shape)))


def naively_loose(t: Term, depth: int = 0) -> int:
    """One more than the farthest binder that the term needs and does not have."""
    if t.op == "bound":
        return max(0, int(t.data) + 1 - depth)
    inner = [naively_loose(part, depth) for part in t.shape]
    for place, part in enumerate(t.args):
        body = t.op in BINDERS and place == len(t.args) - 1
        inner.append(naively_loose(part, depth + BINDERS[t.op] if body else depth))
    return max(inner, default=0)


Leaf = Callable[[Term, int], Term | None]


def rebuilt(t: Term, leaf: Leaf, depth: int = 0) -> Term:
    found = leaf(t, depth)
    if found is not None:
        return found
    args = [
        rebuilt(part, leaf, depth + BINDERS.get(t.op, 0) if place == len(t.args) - 1 else depth)
        for place, part in enumerate(t.args)
    ]
    return make(t.op, tuple(args), t.data, tuple(rebuilt(part, leaf, depth) for part in t.shape))


def naively_bound(body: Term, *variables: Term) -> Term:
    def leaf(t: Term, depth: int) -> Term | None:
        if t in variables:
            away = len(variables) - 1 - variables.index(t)
            return make("bound", (), depth + away, t.shape)
        if t.op == "bound" and t.data >= depth:
            return make("bound", (), t.data + len(variables), t.shape)
        return None

    return rebuilt(body, leaf)


def naively_instantiated(body: Term, *values: Term) -> Term:
    def leaf(t: Term, depth: int) -> Term | None:
        if t.op != "bound" or t.data < depth:
            return None
        if t.data < depth + len(values):
            value: Term = values[depth + len(values) - 1 - t.data]
            return value
        return make("bound", (), t.data - len(values), t.shape)

    return rebuilt(body, leaf)


def naively_substituted(t: Term, old: Term, new: Term) -> Term:
    return rebuilt(t, lambda part, _: new if part is old else None)


y, layer = var("y", n), index("t", L)
long = var("long", add(n, i))
steps = stack(X, layer, y, make("add", (y, make("mul", (y, X), shape=(n,))), shape=(n,)))
CLOSED = [
    mul(add(a, b), entry(A, i, j)),
    a,
    i,
    n,
    X,
    add(a, b),
    entry(A, i, j),
    total(i, entry(X, i)),
    total(j, entry(A, i, j)),
    table(i, mul(i, entry(X, j))),
    table(i, total(j, entry(A, i, j))),
    steps,
    long,
    table(index("w", i), a),
    total(index("w", i), mul(i, index("w", i))),
    entry(long, j),
    make("iterate", (i, a, bind(add(index("w", i), a, j), index("w", i), a))),
    make("sum", (n, make("sum", (n, make("mul", (make("bound", data=0), make("bound", data=1))))))),
]
OPEN = [bind(t, *by) for t in CLOSED for by in ((i,), (j,), (i, j), (j, i), (X,), (a,), (i, a))]


def test_terms_are_read_as_one_would_read_them_naively() -> None:
    for t in (*CLOSED, *OPEN, *(bind(t, j) for t in OPEN)):
        assert free(t) == naively_free(t), t
        assert t.loose == naively_loose(t), t
        parts = list(postorder(t))
        assert len(set(parts)) == len(parts)
        assert parts[-1] is t
        for place, part in enumerate(parts):
            assert set(part.args) <= set(parts[:place])
    for t in (*CLOSED, *OPEN):
        for by in ((i,), (j,), (i, j), (j, i, a), (X,), (X, y)):
            body = bind(t, *by)
            assert body is naively_bound(t, *by), t
            for values in ((a,), (b, i), (X, n, i)):
                inside = naively_instantiated(body, *values)
                assert instantiate(body, *values) is inside, body
        for old, new in ((i, j), (a, i), (add(a, b), a), (X, y), (n, m), (entry(A, i, j), b)):
            assert substitute(t, old, new) is naively_substituted(t, old, new)


def test_bound_arrays_have_the_shape_of_what_was_bound() -> None:
    assert bind(X, X) is make("bound", (), 0, (n,))
    assert bind(make("add", (X, y), shape=(n,)), X, y).args[0] is make("bound", (), 1, (n,))
    assert instantiate(make("bound", (), 2, (n,)), a) is make("bound", (), 1, (n,))
    assert bind(make("bound", (), 1, (n,)), a, b) is make("bound", (), 3, (n,))


new = count()
"""Numbers for names: a term that was made before is not made again."""

LOW = MINUS_INFINITY
FINITE: list[tuple[str, tuple[Term, ...], bool]] = [
    ("var", (), True),
    ("minus infinity", (), False),
    ("add", (a, LOW), False),
    ("exp", (LOW,), True),
    ("call", (LOW,), True),
    ("maximum", (a, LOW), True),
    ("maximum", (LOW, a), True),
    ("maximum", (LOW, LOW), False),
    ("where", (a, a, LOW), False),
    ("named", (a, LOW), True),
    ("named", (LOW, a), False),
    ("log", (LOW,), False),
    ("mul", (a, b), True),
    ("equal", (a, LOW), False),
    ("tabulate", (n, LOW), False),
]


@each(FINITE)
def test_what_may_be_minus_infinity(op: str, args: tuple[Term, ...], finite: bool) -> None:
    assert make(op, args, f"{op} {next(new)}").finite is finite


def test_how_many_binders_a_new_term_needs() -> None:
    inner, outer = make("bound", data=0), make("bound", data=3)
    for op, args, shape, loose in (
        ("var", (), (), 0),
        ("var", (), (inner,), 1),
        ("add", (inner, outer), (), 4),
        ("sum", (n, inner), (), 0),
        ("sum", (inner, n), (), 1),
        ("sum", (n, outer), (), 3),
        ("tabulate", (n, outer), (n,), 3),
        ("iterate", (n, a, outer), (), 2),
        ("iterate", (n, outer, inner), (), 4),
        ("iterate", (n, inner, a), (), 1),
        ("add", (n, outer), (), 4),
        ("tabulate", (n, inner), (outer,), 4),
    ):
        assert make(op, args, f"{op} {next(new)}", shape).loose == loose
    assert make("bound", (), 10**6 + next(new)).loose > 10**6


def test_what_a_term_is_made_of_tells_it_apart() -> None:
    name = f"f{next(new)}"
    base: dict[str, Any] = {"op": name, "args": (a, b), "data": 1, "shape": (n,)}
    others: list[dict[str, Any]] = [
        {"op": f"{name}'"},
        {"args": (b, a)},
        {"args": (a,)},
        {"data": 2},
        {"args": (a, b, n), "shape": ()},
        {"shape": (m,)},
        {"shape": ()},
    ]
    terms = [make(**base), *(make(**(base | other)) for other in others)]
    assert len({t.key for t in terms}) == len(set(terms)) == len(terms)
    assert (terms[0].op, terms[0].args, terms[0].data) == (name, (a, b), 1)
    assert terms[0].shape == (n,)
    assert (X.ndim, A.ndim, a.ndim) == (1, 2, 0)
    assert all(map(is_interned, terms))
    assert make(name, (a, b), 1, (n,)) is terms[0]


def test_a_copied_term_was_not_made() -> None:
    forged = object.__new__(Term)
    for name in Term.__slots__[1:]:
        object.__setattr__(forged, name, getattr(a, name))
    assert is_interned(a)
    assert not is_interned(forged)
    object.__setattr__(forged, "data", ("never seen", "real"))
    assert not is_interned(forged)


def test_a_name_of_a_binder_is_equal_to_no_other() -> None:
    one, two, text, pair = Opened(("x",)), Opened(("x", a)), "x", ("x",)
    others: list[object] = [two, text, pair]
    assert one == Opened(("x",))
    assert one not in others
    assert make("var", data=(one, "real")) is not make("var", data=(two, "real"))
    assert make("var", data=(one, "real")) is make("var", data=(Opened(("x",)), "real"))
    assert opened(n, "i") is not make("index", (n,), "i")
    assert [is_opened(v) for v in (opened(n, "i"), i, a, n)] == [True, False, False, False]
    assert is_opened(make("var", data=(one, "real")))


def test_what_is_opened_of_a_term_occurs_in_no_part_of_it() -> None:
    t = total(j, mul(entry(X, j), total(i, entry(Y, i))))
    outer = opened(n, t)
    body = instantiate(t.args[1], outer)
    inner = opened(n, body)
    assert outer is opened(n, t)
    assert inner is not outer
    assert outer not in free(t)
    assert inner not in free(body)
    assert [repr(v) for v in (outer, inner, opened(n, t, "a"))] == ["j0", "j1", "a"]
    assert bind(body, outer) is t.args[1]


@pytest.mark.parametrize("wrong", [bind(i, i), bind(add(X, X), X)])
def test_only_closed_terms_are_put_in(wrong: Term) -> None:
    for old, new in ((wrong, a), (a, wrong)):
        with pytest.raises(ValueError, match="closed"):
            substitute(a, old, new)
    with pytest.raises(ValueError, match="closed"):
        instantiate(bind(i, i, j), a, wrong)
    with pytest.raises(ValueError, match="closed"):
        instantiate(a, wrong)
