"""What is near a step that a rule may take: refused by the rule, or true as well.

The steps are those of ``rule_cases.py``.  In each, one operation, one part or one argument stands
in the place of another.  What a rule then still accepts must be true in numbers, under what it
assumes; and a rule that is stated for some operations takes no other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    mul,
    num,
    power,
    unary,
)
from attnproof.symbolic.terms import Term, make
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.random_numbers import holds_in
from tests.symbolic.rule_cases import HOLDS
from tests.symbolic.stating import taken
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    A,
    D,
    X,
    a,
    e,
    f,
    g,
    granted_by_kind,
    holds,
    i,
    inverse,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    outcome,
    q,
    s,
    same,
    space,
    table,
    total,
    u,
    up_to,
    var,
    z,
)

ANGLES, ORDERS = ("cos", "sin"), ("less", "less_equal")
DIVISIONS = ("floor_divide", "remainder")
TAKES: dict[str, tuple[str, ...]] = {
    "definition": ("named",),
    "exp": ("exp",),
    "angle addition": ANGLES,
    "log": ("log",),
    "exp of log": ("exp",),
    "known angle": ANGLES,
    "tanh": ("tanh",),
    "sin² + cos² = 1": ("power",),
    "root": ("power",),
    "root of a square": ("sqrt",),
    "absolute value as a choice": ("abs",),
    "maximum": ("maximum",),
    "maximum as a choice": ("maximum",),
    "where": ("where",),
    "push": ("add", "mul", "exp", "maximum", "power"),
    "infinity": ("add", "mul"),
    "indicator": ("indicator",),
    "comparison": ("indicator",),
    "decide": ("indicator",),
    "turned": ("indicator",),
    "whole comparison": ("indicator",),
    "equals for equals": ("mul",),
    "distribute": ("sum",),
    "factor": ("sum",),
    "constant": ("sum",),
    "exchange": ("sum",),
    "delta": ("sum",),
    "cut": ("sum",),
    "unroll": ("sum",),
    "orthogonal": ("sum",),
    "standard": ("sum",),
    "count": ("sum",),
    "permutation": ("entry",),
    "injective": ("indicator",),
    "image": ("indicator",),
    "digits": ("indicator",),
    "divide": DIVISIONS,
    "floor": ("floor_divide",),
    "remainder": ("remainder",),
    "layer": ("iterate",),
    "equivariance": ("entry",),
    "invariance": ("call",),
}
OPERATIONS = (
    "add",
    "mul",
    "power",
    "exp",
    "log",
    "cos",
    "sin",
    "tanh",
    "sqrt",
    "abs",
    "maximum",
    "where",
    "indicator",
    "equal",
    "less_equal",
    "less",
    "and",
    "or",
    "not",
    *DIVISIONS,
    "sum",
    "tabulate",
    "iterate",
    "entry",
    "named",
    "inverse",
    "is in",
    "isin",
    "call",
    "pick",
    "matmul",
    "reduce",
    "gather",
    "eye",
    "arange",
    "space",
    "size",
    "index",
    "broadcast",
    "minus infinity",
)
DATA = {
    "power": 2,
    "named": ("a name",),
    "call": ("H", 0, ()),
    "pick": 0,
    "reduce": 0,
    "gather": 0,
    "space": ("Ω", "space"),
    "size": ("n", "size"),
    "index": "w",
}
INSTEAD: dict[tuple[Term, ...], list[Term]] = {
    (): [
        a,
        q,
        u,
        i,
        j,
        k,
        add(i, ONE),
        minus(i),
        n,
        less_one(n),
        mul(TWO, n),
        m,
        ZERO,
        TWO,
        HALF,
        num(-1),
        MINUS_INFINITY,
        space,
        entry(s, i),
        entry(f, i),
        entry(inverse, i),
    ],
    (n,): [X, D, s, f, inverse],
    (n, n): [A, g, make("permute", (A,), (1, 0), (n, n))],
}
r, d, k_ = var("r", kind="positive"), var("d", kind="nonnegative"), index("k", n)
POSITIVE: Assumption = ("positive", q)
F = ("F", 0, ("equivariant",))
EQUIVARIANT = {("equivariant", make("function", data=F))}
G = ("G", 0, ("invariant",))
INVARIANT = {("invariant", make("function", data=G))}
moved, still = table(j, entry(X, entry(s, j))), table(j, entry(X, j))


def call(*args: Term) -> Term:
    return make("call", args, F, (n,))


Arguments = tuple[object, ...]
Step = tuple[Term, Arguments]
Path = tuple[int, ...]


def parts(t: Term, depth: int) -> Iterator[tuple[Path, Term]]:
    yield (), t
    for place, part in enumerate(t.args if depth else ()):
        yield from (((place, *path), found) for path, found in parts(part, depth - 1))


def put(t: Term, path: Path, part: Term) -> Term:
    """The term with another part at a place."""
    if not path:
        return part
    args = list(t.args)
    args[path[0]] = put(args[path[0]], path[1:], part)
    return make(t.op, tuple(args), t.data, t.shape)


def other_operation(part: Term) -> Iterator[Term]:
    for op in OPERATIONS:
        if op != part.op and (part.args or op not in ("sum", "tabulate", "iterate", "named")):
            yield make(op, part.args, DATA.get(op), part.shape)


def with_meaning(t: Term) -> bool:
    try:
        formed(t)
    except (Refused, IndexError):
        return False
    return True


def near(t: Term, arguments: Arguments) -> Iterator[Step]:
    """The step with one operation, one part or one argument in the place of another."""
    for path, part in parts(t, 3):
        for other in (*other_operation(part), *INSTEAD.get(part.shape, ())):
            changed = put(t, path, other)
            if changed is not t and not changed.loose and with_meaning(changed):
                yield changed, arguments
    for place, argument in enumerate(arguments):
        others: list[object] = [-1, 0, 1, 2, 3, True, None, *INSTEAD[()]]
        if isinstance(argument, Term):
            others = [add(argument, ONE), minus(argument), mul(argument, TWO)]
            others += INSTEAD.get(argument.shape, [])
            others += [made for made in other_operation(argument) if with_meaning(made)]
        for other in others:
            if type(other) is type(argument) and other is not argument:
                yield t, (*arguments[:place], other, *arguments[place + 1 :])
    if len(arguments) > 1:
        yield t, arguments[::-1]


def granted(assumed: frozenset[Assumption], *terms: Term) -> bool:
    """Whether the kinds of the variables grant what is assumed, or a world can tell."""
    told = {x for x in assumed if x[0] not in ("positive", "nonnegative", "equivariant")}
    return told <= granted_by_kind(*terms)


def is_false(before: Term, after: Term, assumed: frozenset[Assumption]) -> bool:
    for world in (World(seed, largest=3) for seed in range(4)):
        try:
            sides = world(before), world(after)
            told = all(holds_in(world, fact) for fact in assumed)
        except (Undefined, OverflowError):  # an index that is infinite
            continue
        if told and not close_to(*sides):
            return True
    return False


CASES = [pytest.param(*case, id=f"{k} {case[0]}") for k, case in enumerate(HOLDS)]


ASSUMED: list[tuple[str, Term, Arguments, set[Assumption]]] = [
    ("comparison", up_to(mul(q, a), mul(q, ZERO)), (a, ZERO, q), {("positive", q)}),
    ("ring", mul(q, r, a, power(mul(q, r), -1)), (a, q, r), {POSITIVE, ("positive", r)}),
    ("root", power(unary("sqrt", d), 2), (), {("nonnegative", d)}),
    ("infinity", mul(q, MINUS_INFINITY, r), (), {POSITIVE, ("positive", r)}),
    ("infinity", add(q, MINUS_INFINITY, r), (), set()),
    ("decide", up_to(ZERO, mul(q, d)), (), {POSITIVE, ("nonnegative", d)}),
    ("decide", up_to(mul(q, r), ZERO), (), {POSITIVE, ("positive", r)}),
    ("decide", up_to(ZERO, i), (), set()),
    ("log", unary("log", unary("exp", q)), (), set()),
    ("exp of log", unary("exp", unary("log", mul(q, r))), (), {POSITIVE, ("positive", r)}),
    ("permutation", entry(s, entry(inverse, i)), (), {("permutation", s)}),
    ("permutation", entry(inverse, entry(s, i)), (), {("permutation", s)}),
    ("injective", same(entry(s, i), entry(s, j)), (), {("injective", s)}),
    ("injective", same(entry(f, i), entry(f, j)), (), {("injective", f)}),
    ("image", holds(make("is in", (i, e))), (), {("injective", e)}),
    ("image", holds(make("is in", (i, f))), (), {("injective", f)}),
    ("divide", make("floor_divide", (ZERO, q)), (), {POSITIVE}),
    ("divide", make("remainder", (mul(u, q), q)), (), {POSITIVE}),
    ("remainder", make("remainder", (a, q)), (), {POSITIVE}),
    ("floor", make("floor_divide", (add(a, q), q)), (ONE, a), {POSITIVE}),
    (
        "floor",
        make("floor_divide", (make("floor_divide", (a, q)), n)),
        (ZERO, make("floor_divide", (a, mul(q, n)))),
        {POSITIVE},
    ),
    ("orthogonal", total(j, mul(entry(g, j, i), entry(g, j, k_))), (), {("orthogonal", g)}),
    ("orthogonal", total(j, mul(entry(A, i, j), entry(A, k_, j))), (), {("orthogonal", A)}),
    ("standard", total(outcome, entry(z, outcome, i)), (), {("standard", z)}),
    (
        "standard",
        total(outcome, mul(entry(z, outcome, i), entry(z, outcome, j))),
        (),
        {("standard", z)},
    ),
    ("equivariance", entry(call(moved), i), (s, still), EQUIVARIANT | {("permutation", s)}),
    (
        "equivariance",
        entry(call(table(j, entry(X, entry(f, j)))), i),
        (f, still),
        EQUIVARIANT | {("permutation", f)},
    ),
    (
        "equivariance",
        entry(call(table(j, entry(X, entry(inverse, j)))), i),
        (inverse, still),
        EQUIVARIANT | {("permutation", s)},
    ),
    ("invariance", make("call", (moved,), G), (s, still), INVARIANT | {("permutation", s)}),
    (
        "invariance",
        make("call", (table(j, entry(X, entry(inverse, j))),), G),
        (inverse, still),
        INVARIANT | {("permutation", s)},
    ),
]


@each(ASSUMED)
def test_a_rule_returns_all_that_it_assumes(
    rule: str, t: Term, arguments: Arguments, expected: set[Assumption]
) -> None:
    _, assumed = taken(rule, formed(t), arguments)
    assert assumed == expected


def test_other_rules_assume_nothing() -> None:
    told = {rule for rule, _, _, expected in ASSUMED if expected}
    for rule, t, arguments in HOLDS:
        _, assumed = RULES[rule](t, *arguments)
        assert not assumed or rule in told


def test_every_rule_that_is_stated_for_some_operations_says_which() -> None:
    assert set(RULES) - TAKES.keys() == {"either", "entry", "tabulate", "ring"}
    assert TAKES.keys() < set(RULES)


@pytest.mark.parametrize(("rule", "t", "arguments"), CASES)
def test_what_is_near_a_step_is_refused_or_true(rule: str, t: Term, arguments: Arguments) -> None:
    for before, told in near(t, arguments):
        try:
            after, assumed = RULES[rule](before, *told)
        except Refused:
            continue
        assert before.op in TAKES.get(rule, (before.op,)), f"{before!r} {told}"
        if not granted(assumed, before, after) or not with_meaning(after):
            continue
        if before.shape != after.shape:
            continue  # no equation, which the kernel refuses
        assert not is_false(before, after, assumed), f"{before!r} {told} -> {after!r}"
