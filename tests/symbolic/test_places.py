"""Where a term reads its arrays: every range by a table, and held to small sizes."""

from __future__ import annotations

from attnproof.symbolic.kernel import law
from attnproof.symbolic.ranges import NEVER, Range, parts, ranges, sides_of
from attnproof.symbolic.ranges import unshown_ranges as asked
from attnproof.symbolic.reading import never_negative, open_ranges, range_message
from attnproof.symbolic.reading import show_ranges as looked_at
from attnproof.symbolic.rules.base import Assumption, Facts
from attnproof.symbolic.rules.inequalities import known_after
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, integer, mul, num
from attnproof.symbolic.terms import Opened, Term, bind, free, instantiate, make, opened
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World
from tests.symbolic.vocabulary import (
    TWO,
    A,
    L,
    X,
    a,
    b,
    e,
    f,
    i,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    outcome,
    q,
    space,
    stack,
    table,
    total,
    u,
    var,
)

C, V = var("C", n, m), var("V", mul(TWO, n))
SHORT = less_one(less_one(n))
LAST, NEXT = less_one(n), add(i, ONE)
R = var("R", space)
ARANGE = make("arange", (n,), shape=(n,))
ARANGE_J = entry(ARANGE, opened(n, ARANGE))


def sliced(x: Term, start: Term, axis: int, step: int, count: Term) -> Term:
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return make("slice", (x, start), (axis, step), shape)


def room(*parts: Term) -> Term:
    return integer(add(*parts))


PLACES: list[tuple[Term, list[Term]]] = [
    (X, []),
    (sliced(X, ZERO, 0, 1, n), []),
    (sliced(V, n, 0, 1, n), []),
    (sliced(V, ONE, 0, 2, n), []),
    (sliced(V, ZERO, 0, 2, n), []),
    (sliced(X, ONE, 0, 1, less_one(n)), []),
    (sliced(X, ONE, 0, 1, n), [num(-1)]),
    (sliced(V, TWO, 0, 2, n), [num(-1)]),
    (sliced(X, ZERO, 0, 1, m), [room(n, minus(m))]),
    (sliced(C, ZERO, 1, 1, n), [room(m, minus(n))]),
    (sliced(C, SHORT, 0, 1, ONE), [SHORT]),
    (sliced(X, ZERO, 0, 2, m), [room(n, ONE, mul(num(-2), m))]),
    (sliced(X, ZERO, 0, 1, SHORT), [SHORT, SHORT]),
    (sliced(V, room(n, minus(m)), 0, 1, n), [room(n, minus(m))]),
    (make("pick", (X, i), 0), []),
    (make("pick", (C, k), 1, (n,)), []),
    (make("pick", (C, k), 0, (m,)), [room(n, num(-1), minus(k))]),
    (make("pick", (C, i), 1, (n,)), [room(m, num(-1), minus(i))]),
    (make("pick", (X, a), 0), [NEVER]),
    (make("pick", (X, add(i, minus(ONE))), 0), [room(i, num(-1))]),
    (entry(X, i), []),
    (entry(A, i, j), []),
    (entry(X, NEXT), [room(n, num(-2), minus(i))]),
    (entry(A, NEXT, i), [room(n, num(-2), minus(i))]),
    (entry(A, i, NEXT), [room(n, num(-2), minus(i))]),
    (entry(X, ONE), [SHORT]),
    (entry(X, SHORT), [SHORT]),
    (entry(X, u), [room(n, num(-1), minus(u))]),
    (entry(X, entry(e, k)), []),
    (entry(X, entry(e, i)), [NEVER]),
    (
        entry(X, make("floor_divide", (a, b))),
        [make("floor_divide", (a, b)), room(n, num(-1), minus(make("floor_divide", (a, b))))],
    ),
    (entry(R, outcome), []),
    (entry(R, ZERO), [NEVER]),
    (entry(X, outcome), [NEVER]),
    (make("row", (C, i), shape=(m,)), []),
    (make("row", (C, k), shape=(m,)), [room(n, num(-1), minus(k))]),
    (make("row", (C, i, i)), [room(m, num(-1), minus(i))]),
    (make("gather", (X, e), 0, (m,)), []),
    (make("gather", (X, ARANGE), 0, (n,)), [ARANGE_J, room(n, num(-1), minus(ARANGE_J))]),
    (make("gather", (C, f), 1, (n, n)), [room(m, num(-1), minus(entry(f, opened(n, f))))]),
    (make("gather", (X, X), 0, (n,)), [NEVER]),
    (total(i, X_i := entry(X, i)), []),
    (total(index("z", SHORT), ONE), [SHORT]),
    (total(outcome, ONE), []),
    (var("short", SHORT), [SHORT]),
    (var("wide", n, SHORT), [SHORT]),
    (var("random", space, n), []),
    (make("broadcast", (a,), shape=(SHORT, minus(n))), [SHORT, minus(n)]),
]


def open_operation_ranges(t: Term) -> list[Range]:
    """The ranges of one operation that its form does not show."""
    return [one for one in ranges(t) if not never_negative(one.number)[0]]


@each(PLACES)
def test_the_ranges_that_an_operation_leaves_open(t: Term, numbers: list[Term]) -> None:
    found = list(open_operation_ranges(t))
    assert [integer(one.number) for one in found] == numbers
    assert all(one.reader is t and range_message(one) for one in found)


@each(PLACES)
def test_what_is_read_is_there_just_where_the_ranges_are_kept(t: Term, numbers: list[Term]) -> None:
    formed(t)
    for world in (World(seed, largest=4) for seed in range(12)):
        try:
            inside = all(world(x) >= 0 for x in numbers)
            kept = world(t) is not None
        except Undefined as error:
            if not str(error).startswith(("out of range", "an axis of length")):
                continue
            kept = False
        if NEVER not in numbers and t.op != "gather":
            assert inside == kept, t


def seen_in(t: Term) -> list[Term]:
    return list(parts(t))


body = entry(X, add(j, ONE))
y = var("y")


def test_every_part_is_seen_once_with_binders_opened() -> None:
    t = add(total(j, body), mul(total(j, body), a))
    seen = seen_in(t)
    assert len(seen) == len(set(seen))
    assert seen[0] is t
    assert {X, n, a, ONE, total(j, body)} <= set(seen)
    assert not any(part.loose for part in seen)
    assert any(part.op == "entry" for part in seen)
    inner = next(part for part in seen if part.op == "index")
    assert instantiate(total(j, body).args[1], inner) in seen
    grown = stack(var("state"), index("t", L), y, add(y, entry(X, index("t", L)), var("any0")))
    state = make("var", (), (Opened((grown, "state")), "real"))
    assert {part for part in seen_in(grown) if part.op == "var"} == {
        var("state"),
        var("any0"),
        state,
        X,
    }
    table_of = table(j, entry(A, j, i))
    assert [part for part in seen_in(table_of) if part.op == "index" and part is not i] != []
    vector = stack(X, index("t", L), var("s", n), var("s", n))
    assert make("var", (), (Opened((vector, "state")), "real"), (n,)) in seen_in(vector)


def test_an_opened_index_is_none_that_stands_there() -> None:
    taken = opened(n, total(j, entry(A, j, i)))
    t = total(j, entry(A, j, taken))
    assert len({part for part in seen_in(t) if part.op == "index"}) == 2
    nested = total(i, total(j, entry(A, i, j)))
    assert len({part for part in seen_in(nested) if part.op == "index"}) == 2
    places = make("add", (ARANGE, make("broadcast", (taken,), shape=(n,))), shape=(n,))
    first, _ = open_operation_ranges(make("gather", (X, places), 0, (n,)))
    assert len({v for v in free(first.number) if v.op == "index"}) == 2


def test_open_ranges_are_those_of_all_parts() -> None:
    assert open_ranges(add(a, total(j, entry(X, j)))) == ()
    (one,) = open_ranges(mul(a, total(j, body)))
    at = next(iter(x for x in seen_in(total(j, body)) if x.op == "index"))
    assert one.number is room(n, num(-2), minus(at))
    two = add(entry(X, u), mul(a, entry(X, entry(var("W", m, kind="index map", below=m), u))))
    assert len(open_ranges(two)) == 3
    assert len(open_ranges(add(entry(X, u), mul(a, entry(X, u)), entry(var("Y", n), u)))) == 1
    outer = entry(X, entry(e, u))
    inner = [one.reader for one in open_ranges(outer)]
    assert inner[0] is outer.args[1]
    assert inner[-1] is outer


def outside(terms: list[Term], granted: Facts = frozenset()) -> tuple[tuple[Range, ...], Facts]:
    """What is open and what the rest rests on, as the kernel finds it by the steps."""
    unshown, used, steps = looked_at(terms, granted)
    left, by = asked(terms, known_after(steps))
    assert {one.number for one in left} == {one.number for one in unshown}
    assert by == used
    return unshown, used


def granted(*facts: Assumption) -> frozenset[Assumption]:
    return frozenset(facts)


def test_a_hypothesis_shows_a_range() -> None:
    t, number = entry(X, ONE), SHORT
    assert [one.number for one in outside([t])[0]] == [number]
    for sign in ("nonnegative", "positive"):
        fact = (sign, number)
        assert outside([t], granted(fact)) == ((), granted(fact))
        assert outside([t, a], granted(fact, ("positive", q))) == ((), granted(fact))
    assert [one.number for one in outside([t], granted(("nonzero", number)))[0]] == [number]
    assert [one.number for one in outside([t], granted(("equal", law(a, b))))[0]] == [number]
    both = [t, entry(X, u)]
    left, used = outside(both, granted(("nonnegative", number)))
    assert [one.number for one in left] == [room(n, num(-1), minus(u))]
    assert used == granted(("nonnegative", number))
    facts = granted(("nonnegative", number), ("nonnegative", left[0].number))
    assert outside(both, facts) == ((), facts)
    assert len(outside([t, mul(t, a)])[0]) == 1
    assert outside([]) == ((), frozenset())


def test_a_hypothesis_that_reads_outside_is_no_help() -> None:
    at = make("floor_divide", (entry(X, ONE), ONE))
    t = entry(var("Y", n), at)
    facts = granted(("nonnegative", at), ("nonnegative", room(n, num(-1), minus(at))))
    numbers = {one.number for one in outside([t], facts)[0]}
    assert numbers == {SHORT, at, room(n, num(-1), minus(at))}
    inside = make("floor_divide", (entry(X, ZERO), ONE))
    facts = granted(("nonnegative", inside), ("nonnegative", room(n, num(-1), minus(inside))))
    assert outside([entry(var("Y", n), inside)], facts) == ((), facts)


def test_what_an_assumption_speaks_of() -> None:
    assert sides_of(("positive", X)) == (X,)
    assert sides_of(("equal", law(a, b))) == (a, b)
    x = var("x", n)
    whole = law(make("reduce", (x,), 0), mul(u, entry(x, u)), (x, u))
    any0 = make("var", (), (Opened((whole, "any0")), "real"), (n,))
    any1 = make("var", (), (Opened((whole, "any1")), "natural"))
    left, right = sides_of(("equal", whole))
    assert left is make("reduce", (any0,), 0)
    assert right is mul(any1, entry(any0, any1))
    assert (repr(any0), repr(any1)) == ("any0", "any1")
    of_y = law(y, mul(y, var("any0")), (y,))
    (one,) = {s for s in sides_of(("equal", of_y)) if s.op == "var"}
    assert one is make("var", (), (Opened((of_y, "any0")), "real"))
    assert not any(s.loose for s in (left, right, one))
    assert bind(a, y) is a


def test_a_clipped_offset_stays_inside_of_its_table() -> None:
    offset = add(i, mul(num(-1), j))
    upper = make("maximum", (mul(num(-1), make("maximum", (offset, num(-3)))), num(-4)))
    clipped = mul(num(-1), upper)
    for inside in (add(clipped, num(3)), add(num(4), mul(num(-1), clipped))):
        certain, steps = never_negative(inside)
        assert certain
        assert known_after(steps).sign(inside) == (1, frozenset())
    assert not never_negative(add(clipped, num(2)))[0]
    assert not never_negative(add(num(3), mul(num(-1), clipped)))[0]
    assert not never_negative(add(make("maximum", (offset, num(-3))), num(2)))[0]
