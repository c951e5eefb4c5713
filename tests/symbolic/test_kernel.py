"""The kernel refuses what is false: each test is a derivation of something that does not hold."""

from __future__ import annotations

import pytest

from attnproof.symbolic.covers import cover_patterns
from attnproof.symbolic.derivation import (
    Cases,
    Chain,
    Derivation,
    Induction,
    Inside,
    Reflexive,
    Reverse,
    Rewrite,
    Under,
)
from attnproof.symbolic.derive import assumed
from attnproof.symbolic.kernel import Refused, replay
from attnproof.symbolic.normal_form.derived import absolute_value, ordered_absolute
from attnproof.symbolic.normal_form.equations import chain, inside, reverse, rewrite, under
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, mul, num, unary
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.vocabulary import (
    TWO,
    L,
    X,
    Y,
    a,
    b,
    bound,
    case,
    i,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    same,
    spread,
    stack,
    total,
    up_to,
    var,
)


def nowhere(place: Term) -> Derivation:
    """1 = 0, by way of an index that an empty range is said to hold: Σ_{z<1} [z = place]."""
    z = index("z", ONE)
    t = total(z, same(z, place))
    zero = chain(rewrite("unroll", t), rewrite("decide", same(ZERO, place)))
    return chain(reverse(rewrite("delta", t)), zero)


# a derivation is not believed

FALSE: list[Derivation] = [
    Rewrite("ring", a, (b,), b),
    Rewrite("ring", a, (a,), b),
    Rewrite("magic", a, (), b),
    Rewrite("factor", total(j, TWO), (None,), mul(TWO, total(j, TWO))),
    Chain((Reflexive(a), Reflexive(b))),
    Chain(()),
    Inside(add(a, b), ((0, Reflexive(b)),), add(b, b)),
    Inside(add(a, b), ((2, Reflexive(b)),), add(a, b, b)),
    Inside(add(a, b), ((-1, Reflexive(b)),), add(a, b)),
    Inside(add(a, b), (), add(b, a)),
    Reverse(Rewrite("ring", b, (a,), a)),
    Under(a, (i,), Reflexive(a), a),
    Cases(X, Y, (("whole",),), ()),
    Cases(X, Y, (("whole",),), (Reflexive(entry(X, case(X, Y))),)),
    Cases(X, Y, (), ()),
    Cases(X, var("Z", m), (("whole",),), (Reflexive(a),)),
]


@each(FALSE)
def test_a_false_step_is_refused(false: Derivation) -> None:
    with pytest.raises(Refused):
        replay(false)


@pytest.mark.parametrize("t", [i, var("c", m, kind="index map", below=n)])
def test_a_variable_is_not_rewritten_inside(t: Term) -> None:
    """An index below n and an index below n + 0 are two indices, though n = n + 0."""
    longer = rewrite("ring", n, add(n, ZERO))
    other = make(t.op, (longer.right,), t.data, t.shape)
    with pytest.raises(Refused, match="inside"):
        replay(Inside(t, ((0, longer),), other))


def test_a_body_is_opened_before_it_is_rewritten() -> None:
    t = total(j, entry(X, j))
    for place in (1, -1):
        step = rewrite("ring", t.args[1], add(t.args[1], ZERO))
        with pytest.raises(Refused, match="bound outside"):
            replay(Inside(t, ((place, step),), make("sum", (n, step.right))))
        with pytest.raises(Refused, match="inside"):
            replay(Inside(t, ((place, Reflexive(a)),), make("sum", (n, a))))


# arbitrary means arbitrary


def test_under_needs_an_index_of_its_own() -> None:
    """Σ_j X_i is not Σ_j X_j, and X_i = X_i proves nothing of X_j."""
    t = total(j, entry(X, i))
    for variable in (i, k, bound(k), index("i", m), a):
        with pytest.raises(Refused, match="under"):
            replay(Under(t, (variable,), Reflexive(entry(X, i)), total(j, entry(X, j))))
    at = bound(i)
    open_ = total(j, entry(X, at))
    with pytest.raises(Refused, match="not arbitrary"):
        replay(Under(open_, (at,), Reflexive(entry(X, at)), total(j, entry(X, j))))
    with pytest.raises(Refused, match="wrong number"):
        replay(Under(t, (j, i), Reflexive(entry(X, i)), t))


def test_under_needs_an_index_that_no_assumption_mentions() -> None:
    """From R_ik = S_ik at one i it does not follow that Σ_i R_ik = Σ_i S_ik."""
    for at, words in ((i, "not arbitrary"), (bound(i), "open index")):
        left, right = (make("pick", (var(x, n, n), at), 0, (n,)) for x in "RS")
        one = assumed(left, right).at(j)
        with pytest.raises(Refused, match=words):
            replay(under(total(at, one.left), (at,), one))


def test_cases_need_an_index_that_no_assumption_mentions() -> None:
    """From R_ik = S_ik at one i it does not follow that column k of R is column k of S."""
    R, S = (var(x, n, n) for x in "RS")
    columns = [make("pick", (x, j), 1, (n,)) for x in (R, S)]
    here = case(columns[0], columns[1])
    rows = [make("pick", (x, here), 0, (n,)) for x in (R, S)]
    ends = [
        chain(rewrite("entry", entry(column, here)), reverse(rewrite("entry", entry(row, j))))
        for row, column in zip(rows, columns, strict=True)
    ]
    middle = assumed(*rows).at(j)
    one = chain(ends[0], middle, reverse(ends[1]))
    with pytest.raises(Refused, match="open index"):
        replay(one)
    with pytest.raises(Refused, match="open index"):
        replay(Cases(columns[0], columns[1], (("whole",),), (one,)))


def test_a_state_of_a_stack_is_any_array() -> None:
    """With a state whose entries are said to stay below 1, y = 0 and any stack ends in zeros."""
    y, t, z = var("y", n, kind="index map", below=ONE), bound(index("t", L)), index("z", ONE)
    zeros = spread(ZERO, n)
    at = case(y, zeros)
    value = entry(y, at)
    below_one = total(z, mul(same(z, value), z))
    gone = rewrite("ring", mul(same(ZERO, value), ZERO), ZERO)
    first = chain(reverse(rewrite("delta", below_one)), rewrite("unroll", below_one), gone)
    last = reverse(rewrite("entry", entry(zeros, at)))
    vanish = Cases(y, zeros, (("whole",),), (chain(first, last),))
    assert replay(vanish).assumes == frozenset()
    left, right, hole = stack(X, t, y, y), stack(X, t, y, zeros), var("h", n)
    with pytest.raises(Refused, match="under"):
        replay(Under(left, (t, y), vanish, right))
    with pytest.raises(Refused, match="induction"):
        replay(Induction(left, right, hole, hole, t, y, Reflexive(X), vanish))


def test_induction_needs_an_arbitrary_layer_and_state() -> None:
    y, t, hole = bound(var("y", n)), bound(index("t", L)), var("h", n)
    body = make("mul", (y, spread(t, n)), shape=(n,))
    whole = stack(X, t, y, body)
    replay(Induction(whole, whole, hole, hole, t, y, Reflexive(X), Reflexive(body)))
    wrong = [(index("t", L), y), (t, var("y", n)), (bound(index("t", n)), y), (t, X), (t, t)]
    for layer, state in (*wrong, (t, bound(var("y", m))), (y, y)):
        false = Induction(whole, whole, hole, hole, layer, state, Reflexive(X), Reflexive(body))
        with pytest.raises(Refused, match="induction"):
            replay(false)
    for base, step in ((Y, body), (X, X)):
        with pytest.raises(Refused, match="not the"):
            replay(Induction(whole, whole, hole, hole, t, y, Reflexive(base), Reflexive(step)))
    deeper = stack(X, index("t", add(L, ONE)), y, body)
    with pytest.raises(Refused, match="one depth"):
        replay(Induction(whole, deeper, hole, hole, t, y, Reflexive(X), Reflexive(body)))


def test_the_inner_stack_of_an_induction_is_a_stack_even_if_its_context_ignores_it() -> None:
    y, t, hole = bound(var("y", n)), bound(index("t", L)), var("h", n)
    left = stack(X, t, y, y)
    constant = Induction(left, left, X, hole, t, y, Reflexive(X), Reflexive(X))
    assert (constant.right, replay(constant).right) == (X, X)
    for inner in (make("iterate", (L, X, X, X), shape=(n,)), make("iterate", left.args, shape=())):
        with pytest.raises(Refused, match="term: 'iterate' does not fit"):
            replay(Induction(left, inner, X, hole, t, y, Reflexive(X), Reflexive(X)))


@pytest.mark.parametrize("hole", [n, num(3), i, var("h"), var("h", m), spread(ZERO, n)])
def test_the_hole_of_an_induction_has_the_shape_of_the_stack(hole: Term) -> None:
    y, t = bound(var("y", n)), bound(index("t", L))
    whole = stack(X, t, y, y)
    with pytest.raises(Refused, match="induction"):
        replay(Induction(whole, whole, hole, hole, t, y, Reflexive(X), Reflexive(y)))


# cases that reach every entry, and ranges that hold nothing


@each(
    [
        (n, ("each",)),
        (num(3), ("some",)),
        (mul(TWO, n), ("digits", n, num(3), ("whole",), ("each",))),
        (mul(TWO, n), ("digits", n, n, ("whole",), ("whole",))),
        (n, ("digits", less_one(n), ONE, ("whole",), ("each",))),
        (TWO, ("digits", num(-1), num(-2), ("whole",), ("whole",))),
        (n, ("cut", m, ("whole",), ("whole",))),
        (n, ("cut", add(n, ONE), ("whole",), ("whole",))),
        (n, ("cut", i, ("whole",), ("whole",))),
        (add(n, n), ("cut", var("u", kind="natural"), ("whole",), ("whole",))),
        (mul(n, m), ("digits", i, m, ("whole",), ("whole",))),
        (n, ("cut", num(-1), ("whole",), ("whole",))),
        (n, ("cut", add(n, num(-2)), ("whole",), ("each",))),
    ]
)
def test_a_cover_that_misses_entries_is_refused(length: Term, cover: tuple[object, ...]) -> None:
    with pytest.raises(Refused, match="cover"):
        cover_patterns(length, cover, "i0")


def test_cases_need_an_index_of_their_own() -> None:
    """That the i0-th entry of a unit vector e_i0 is 1 does not make it all ones."""
    eye, ones = make("eye", (n,), shape=(n, n)), spread(ONE, n)
    first = index("i0", n)
    for at in (first, case(make("pick", (eye, first), 0, (n,)), ones)):
        unit = make("pick", (eye, at), 0, (n,))
        one, other = rewrite("entry", entry(unit, at)), reverse(rewrite("entry", entry(ones, at)))
        here = chain(one, rewrite("entry", one.right))
        here = chain(here, rewrite("decide", here.right), other)
        assert (replay(here).left, replay(here).right) == (entry(unit, at), entry(ones, at))
        with pytest.raises(Refused, match="not the entries of that case"):
            replay(Cases(unit, ones, (("whole",),), (here,)))


@pytest.mark.parametrize(
    "place",
    [index("e", ZERO), index("e", num(-1)), entry(var("c", n, kind="index map", below=ZERO), i)],
)
def test_an_index_of_nothing_proves_nothing(place: Term) -> None:
    with pytest.raises(Refused, match="may have no value"):
        replay(nowhere(place))


def test_an_index_below_n_minus_1_does_not_show_that_n_is_2() -> None:
    """|n − 2| = n − 2 is false at n = 1, where no index lies below n − 1."""
    z, less = index("z", less_one(n)), add(n, num(-2))
    rest = add(less, minus(z))
    gap, gate = unary("abs", rest), up_to(z, less)
    sure = rewrite("decide", gate)
    gated = chain(
        rewrite("ring", gap, mul(ONE, gap)),
        inside(mul(ONE, gap), [(0, reverse(sure))]),
        ordered_absolute(mul(gate, gap), 0, gap),
    )
    last = inside(gated.right, [(0, sure)])
    plain = chain(gated, last, rewrite("ring", last.right, rest))
    assert replay(plain).right is rest
    whole = inside(add(gap, z), [(0, plain)])
    split = reverse(chain(whole, rewrite("ring", whole.right, less)))
    opened = inside(unary("abs", less), [(0, split)])
    positive = absolute_value(opened.right)
    with pytest.raises(Refused, match="may have no value"):
        replay(chain(opened, positive, reverse(split)))
