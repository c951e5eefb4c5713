"""The table of meanings against numpy: every operation, entry by entry, at random small sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic import Array, function, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import broadcast_to, matmul
from attnproof.symbolic.evaluate import Evaluator, sources
from attnproof.symbolic.meaning import _RULES, ELEMENTWISE, NoMeaning, entry_of
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, mul, num
from attnproof.symbolic.terms import Term, bind, free, instantiate, make
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.interpreter import World, close_to
from tests.symbolic.vocabulary import e, less_one, s, table, var

n, m, p, q = sizes("n m p q")
x, y, z = (real(n, m).named(name) for name in "xyz")
u, w, c = real(n).named("u"), real(m, p).named("w"), real().named("c")
cube = real(n, m, p).named("cube")
flat = real(p * m * n).named("flat")
half = real(n, 2 * m).named("half")
perm = Array(s)
inverse = Array(make("inverse", (s,), shape=s.shape))
some = Array(e)
i = index("i", n.term)
f, g = function(1, 1).named("F"), function(1, out=(p,)).named("G")
square = real(n, n).named("square")
heads, more = real(q, n, m).named("heads"), real(q, m, p).named("more")
Numbers = Callable[..., Any]


def inv(base: Any, k: int) -> Any:
    """base^k, with 1/0 = 0."""
    return np.where(base == 0, 0.0, 1 / np.where(base == 0, 1, base) ** -k)


CASES: dict[str, tuple[Any, Numbers]] = {
    "add": (x + y, lambda x, y: x + y),
    "mul": (x * y * x, lambda x, y: x * y * x),
    "power": (x**3, lambda x: x**3),
    "power of −2": (x**-2, lambda x: inv(x, -2)),
    "exp": (xp.exp(x), np.exp),
    "log": (xp.log(x * x + 1), lambda x: np.log(x * x + 1)),
    "cos": (xp.cos(x), np.cos),
    "sin": (xp.sin(x), np.sin),
    "tanh": (xp.tanh(x), np.tanh),
    "sqrt": (xp.sqrt(x * x), lambda x: np.sqrt(x * x)),
    "abs": (xp.abs(x), np.abs),
    "maximum": (xp.maximum(x, y), np.maximum),
    "where": (xp.where(x <= y, x, y * 2), lambda x, y: np.where(x <= y, x, y * 2)),
    "indicator": (xp.astype(x == y, float), lambda x, y: (x == y) * 1),
    "equal": (xp.astype(~(x == y), float), lambda x, y: (x != y) * 1),
    "less": (xp.astype((x < y) & (y < x * 2), float), lambda x, y: ((x < y) & (y < x * 2)) * 1),
    "or": (xp.astype((x > y) | (x >= 1), float), lambda x, y: ((x > y) | (x >= 1)) * 1),
    "broadcast": (
        broadcast_to(u[:, None], (n.term, m.term)),
        lambda u, m: np.broadcast_to(u[:, None], (len(u), m)),
    ),
    "broadcast in front": (
        broadcast_to(x, (p.term, n.term, m.term)),
        lambda x, p: np.broadcast_to(x, (p, *x.shape)),
    ),
    "permute": (xp.permute_dims(cube, (2, 0, 1)), lambda cube: np.transpose(cube, (2, 0, 1))),
    "transpose": (cube.mT, lambda cube: np.swapaxes(cube, -1, -2)),
    "moveaxis": (xp.moveaxis(cube, 0, -1), lambda cube: np.moveaxis(cube, 0, -1)),
    "new axis": (x[:, None, :], lambda x: x[:, None, :]),
    "pick": (cube[:, Array(num(0)), :], lambda cube: cube[:, 0, :]),
    "pick at an index": (x[Array(i)], lambda x, i: x[i]),
    "slice": (half[:, m:], lambda half, m: half[:, m:]),
    "slice with a step": (half[..., 1::2], lambda half: half[..., 1::2]),
    "slice of the front": (half[:, :m], lambda half, m: half[:, :m]),
    "slice but the first": (x[1:], lambda x: x[1:]),
    "gather": (x[perm], lambda x, s: x[s]),
    "gather by the inverse": (x[inverse], lambda x, s: x[np.argsort(s)]),
    "gather columns": (square[:, some], lambda square, e: square[:, e]),
    "stack": (xp.stack((x, y, x), axis=1), lambda x, y: np.stack((x, y, x), axis=1)),
    "stack last": (xp.stack((x, y), axis=-1), lambda x, y: np.stack((x, y), axis=-1)),
    "reduce": (xp.sum(cube, axis=1), lambda cube: cube.sum(1)),
    "reduce all": (xp.sum(x), lambda x: x.sum()),
    "mean": (xp.mean(x, axis=0), lambda x: x.mean(0)),
    "matmul": (x @ w, lambda x, w: x @ w),
    "matmul with a vector": (x.mT @ u, lambda x, u: x.T @ u),
    "vector with matmul": (u @ x, lambda x, u: u @ x),
    "dot": (u @ u, lambda u: u @ u),
    "matmul in heads": (heads @ more, lambda heads, more: heads @ more),
    "matmul broadcast": (matmul(x, more), lambda x, more: x @ more),
    "eye": (xp.eye(n), np.eye),
    "arange": (xp.arange(n), np.arange),
    "isin": (
        xp.astype(xp.isin(xp.arange(n), some), float),
        lambda n, e: np.isin(np.arange(n), e) * 1,
    ),
    "named": (Array(make("named", (u.term, u.term), ("u",), u.axes)), lambda u: u),
    "tabulate": (Array(table(i, (u[Array(i)] * u).term)), lambda u: u[:, None] * u),
    "split the last axis": (
        xp.reshape(half, (n, m, 2)),
        lambda half, m: half.reshape(len(half), m, 2),
    ),
    "merge two axes": (xp.reshape(x, (n * m,)), lambda x: x.reshape(-1)),
    "merge three axes": (xp.reshape(cube, (m * p * n,)), lambda cube: cube.reshape(-1)),
    "split into three": (xp.reshape(flat, (n, m, p)), lambda flat, n, m, p: flat.reshape(n, m, p)),
    "regroup": (xp.reshape(cube, (m, n, p)), lambda cube, m, n, p: cube.reshape(m, n, p)),
    "two groups": (
        xp.reshape(real(n, 2 * m, p, q).named("four"), (n, m, 2, p * q)),
        lambda four, n, m: four.reshape(n, m, 2, -1),
    ),
    "with ones": (xp.reshape(x, (n, 1, m, 1)), lambda x: x[:, None, :, None]),
    "without ones": (xp.reshape(x[:, None], (n * m, 1)), lambda x: x.reshape(-1, 1)),
    "rest of a reshape": (xp.reshape(half, (-1, m)), lambda half, m: half.reshape(-1, m)),
}


def entries(t: Term) -> Any:
    """The array of entries at index variables, taken through the table of meanings alone."""
    places = [index(f"at{k}", length) for k, length in enumerate(t.shape)]
    return places, opened(entry(t, *places))


def opened(t: Term) -> Term:
    """A number with every entry of a computed array replaced by its meaning."""
    if t.op == "entry" and t.args[0].op not in ("var", "inverse", "call"):
        return opened(entry_of(t.args[0], t.args[1:]))
    if t.op in ("matmul", "reduce", "broadcast", "pick", "named"):
        return opened(entry_of(t, ()))
    if t.op == "sum":
        k = index("opened", t.args[0])
        return make("sum", (t.args[0], bind(opened(instantiate(t.args[1], k)), k)))
    return make(t.op, tuple(map(opened, t.args)), t.data) if t.args and not t.shape else t


def numbers_for(world: World, names: Any, t: Term) -> list[Any]:
    """Values of variables and sizes by name."""
    named = {str(v.data[0] if v.op != "index" else v.data): v for v in free(t)}
    return [world(named[name]) if name in named else world.sizes[name] for name in names]


def check(t: Term, numbers: Numbers, seed: int) -> None:
    world = World(seed)
    whole = formed(t)
    expected = np.asarray(numbers(*numbers_for(world, _names(numbers), whole)), dtype=float)
    assert expected.shape == world.shape(whole)
    places, value = entries(whole)
    for at in product(*map(range, expected.shape)):
        here = World(seed)
        here.sizes, here.drawn = world.sizes, {**world.drawn, **dict(zip(places, at, strict=True))}
        assert close_to(here(value), expected[at])


def _names(numbers: Numbers) -> list[str]:
    if isinstance(numbers, np.ufunc):
        return ["x", "y"][: numbers.nin]
    if numbers in (np.eye, np.arange):
        return ["n"]
    code = numbers.__code__
    return list(code.co_varnames[: code.co_argcount])


@each(CASES)
def test_an_entry_is_what_numpy_gives(name: str) -> None:
    array, numbers = CASES[name]
    for seed in range(6):
        check(array.term, numbers, seed)


def test_every_operation_is_held_against_numpy() -> None:
    used: set[str] = set()
    for array, _ in CASES.values():
        stack = [array.term]
        while stack:
            t = stack.pop()
            used.add(t.op)
            stack.extend(t.args)
    elsewhere = {"concat", "call", "row", "floor_divide", "remainder"}
    assert set(_RULES) | ELEMENTWISE <= used | elsewhere


def test_concat_is_read_on_either_side_of_the_seam() -> None:
    t = xp.concat((x, y, x), axis=0).term
    world = World(3)
    whole = np.concatenate([world(v.term) for v in (x, y, x)])
    for block in range(3):
        place = add(*[n.term] * block, i)
        value = opened(entry_of(t, (place, ZERO)))
        assert close_to(world(value), whole[block * world(n.term) + world(i), 0])
    crossing = index("crossing", t.shape[0])
    for place in (crossing, add(i, ONE), add(i, less_one(n.term))):
        with pytest.raises(NoMeaning, match="either part"):
            entry_of(t, (place, ZERO))


def test_a_function_of_rows_is_taken_row_by_row() -> None:
    scores = f(x[:, None, :], y[None, :, :]).term
    mapped = g(heads).term
    for t in (scores, mapped):
        for seed in range(4):
            world = World(seed)
            expected = world(t)
            places = [index(f"at{k}", length) for k, length in enumerate(t.shape)]
            value = entry_of(t, places)
            for at in product(*map(range, expected.shape)):
                here = World(seed)
                here.sizes = world.sizes
                here.drawn = {**world.drawn, **dict(zip(places, at, strict=True))}
                assert close_to(here(value), expected[at])
    with pytest.raises(NoMeaning):
        entry_of(f(u, u).term, ())


@pytest.mark.parametrize("t", [x.term, var("S", n.term), inverse.term, c.term])
def test_what_is_not_computed_has_no_entry_rule(t: Term) -> None:
    with pytest.raises(NoMeaning):
        entry_of(t, [index(f"at{k}", length) for k, length in enumerate(t.shape)])


lengths = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@given(lengths, st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_any_reshape_of_literal_lengths_is_row_major(before: list[int], random: Any) -> None:
    after = list(before)
    for _ in range(2):
        random.shuffle(after)
        k = random.randrange(len(after))
        if len(after) > 1 and random.random() < 0.5:
            after[k - 1] *= after.pop(k)
        elif after[k] % 2 == 0:
            after[k : k + 1] = [2, after[k] // 2]
    t = xp.reshape(real(*before).named("x"), tuple(after)).term
    check(t, lambda x: x.reshape(after), seed=1)


N, M = n.term, m.term
U, W1, X2, O = (
    var(name, *shape) for name, shape in (("U", (N,)), ("W", (N,)), ("X", (N, M)), ("O", (ONE,)))
)
C3, S3 = var("C", N, M, N), var("S", N, N)
at0, at1, at2 = index("at0", N), index("at1", M), index("at2", N)
two = num(2)


def same(x: Term, y: Term) -> Term:
    return make("equal", (x, y))


def summed(length: Term, k: Term, value: Term) -> Term:
    return make("sum", (length, bind(value, k)))


k0 = index("any", M)
EXACT: list[tuple[Term, tuple[Term, ...], Term]] = [
    *(
        (make(op, (U, W1), shape=(N,)), (at0,), make(op, (entry(U, at0), entry(W1, at0))))
        for op in ("floor_divide", "remainder", "add", "less", "maximum")
    ),
    (make("power", (U,), -2, (N,)), (at0,), make("power", (entry(U, at0),), -2)),
    (make("named", (U, W1), ("x",), (N,)), (at0,), entry(U, at0)),
    (make("broadcast", (O,), shape=(N,)), (at0,), entry(O, ZERO)),
    (make("broadcast", (O,), shape=(M, N)), (at1, at0), entry(O, ZERO)),
    (make("broadcast", (U,), shape=(M, N)), (at1, at0), entry(U, at0)),
    (make("permute", (C3,), (1, 2, 0), (M, N, N)), (at1, at2, at0), entry(C3, at0, at1, at2)),
    (make("concat", (C3, C3), 1, (N, mul(two, M), N)), (at0, at1, at2), entry(C3, at0, at1, at2)),
    (make("concat", (C3, C3), 0, (mul(two, N), M, N)), (at0, at1, at2), entry(C3, at0, at1, at2)),
    (make("concat", (C3, C3), 2, (N, M, mul(two, N))), (at0, at1, at2), entry(C3, at0, at1, at2)),
    (
        make("stack", (U, W1), 0, (two, N)),
        (at1, at0),
        make("where", (same(at1, ZERO), entry(U, at0), entry(W1, at0))),
    ),
    (
        make("stack", (U, W1, U), 1, (N, num(3))),
        (at0, at1),
        make(
            "where",
            (
                same(at1, ZERO),
                entry(U, at0),
                make("where", (same(at1, ONE), entry(W1, at0), entry(U, at0))),
            ),
        ),
    ),
    (make("stack", (U,), 0, (ONE, N)), (ZERO, at0), entry(U, at0)),
    (make("reduce", (X2,), 1, (N,)), (at0,), summed(M, k0, entry(X2, at0, k0))),
    (make("eye", (N,), shape=(N, N)), (at0, at2), make("indicator", (same(at0, at2),))),
    (make("arange", (N,), shape=(N,)), (at0,), at0),
    (make("isin", (U, W1), shape=(N,)), (at0,), make("is in", (entry(U, at0), W1))),
    (
        make("call", (C3, X2), ("F", 1, ("t",)), (N, M)),
        (at0, at1),
        entry(
            make(
                "call",
                (make("row", (C3, at0), shape=(M, N)), make("row", (X2, at0), shape=(M,))),
                ("F", 0, ("t",)),
                (M,),
            ),
            at1,
        ),
    ),
    (
        make("call", (C3, C3), ("F", 2, ()), (N, M)),
        (at0, at1),
        make("call", (make("row", (C3, at0, at1), shape=(N,)),) * 2, ("F", 0, ())),
    ),
    (make("row", (C3, at0), shape=(M, N)), (at1, at2), entry(C3, at0, at1, at2)),
    (make("row", (C3, at0, at1), shape=(N,)), (at2,), entry(C3, at0, at1, at2)),
    (make("row", (C3,), shape=C3.shape), (at0, at1, at2), entry(C3, at0, at1, at2)),
]


@each(EXACT)
def test_an_entry_is_written_as_the_table_says(
    array: Term, at: tuple[Term, ...], value: Term
) -> None:
    assert formed(array) is array
    assert entry_of(array, at) is value


def test_the_summed_index_is_none_of_those_that_stand_there() -> None:
    row, column = index("k0", N), index("k1", N)
    for array in (make("reduce", (C3,), 1, (N, N)), make("matmul", (S3, S3), shape=(N, N))):
        t = entry_of(array, (row, column))
        assert free(t) >= {row, column}
    inside = table(column, entry(S3, row, column))
    assert row in free(entry_of(make("reduce", (inside,), 0), ()))
    assert row in free(entry_of(make("matmul", (inside, U)), ()))
    assert row in free(entry_of(make("matmul", (U, inside)), ()))


READ: dict[str, Callable[..., Any]] = {
    "permute": lambda X, _: X.mT,
    "new axis": lambda X, _: X[:, None],
    "broadcast": lambda X, _: xp.broadcast_to(X, (2, *X.shape)),
    "matmul": lambda X, W: X @ W,
    "reduce": lambda X, _: xp.sum(X, axis=1),
    "concat": lambda X, W: xp.concat([X, W], axis=0),
    "stack": lambda X, _: xp.stack([X, X * 2], axis=1),
    "slice": lambda X, _: X[1:],
    "pick": lambda X, _: X[:, 0],
    "reshape": lambda X, _: X.reshape(1, X.shape[0], X.shape[1]),
}


@pytest.mark.parametrize("name", READ)
def test_what_a_term_reads_follows_from_its_meaning(name: str) -> None:
    """What is said to stand at one place of an axis changes nothing anywhere else."""
    n, d = sizes("n d")
    term = READ[name](real(n, d).named("X"), real(d, d).named("W")).term
    lengths, values = {"n": 4, "d": 3}, {"X": np.zeros((4, 3)), "W": np.ones((3, 3))}
    before = Evaluator(np, lengths, values)(term)
    (k, found), *_ = (
        (k, places)
        for k, places in enumerate(sources(term))
        if places is not None and any(v.data[0] == "X" for v in free(term.args[k]) if v.op == "var")
    )
    assert term.args[k].shape == (n.term, d.term)
    whole = [(axis, source) for axis, source in enumerate(found) if isinstance(source, int)]
    for axis, source in whole:
        for place in range((4, 3)[axis]):
            moved = np.zeros((4, 3))
            np.moveaxis(moved, axis, 0)[place] = 1.0
            after = Evaluator(np, lengths, {**values, "X": moved})(term)
            changed = np.argwhere(after != before)[:, source]
            assert set(changed) == {place}
