"""A fault planted in each rule: the sound kernel refuses what it lets through, and numbers tell.

Each line of the table breaks one rule and names a step that only the broken rule
takes.  The kernel as it is must refuse the step, the broken one must take it (so the fault is
real), and the two sides of the step must differ in numbers, by which the suite would notice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic.derivation import Rewrite
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.rules import RULES, base
from attnproof.symbolic.rules.base import Result
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
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.vocabulary import (
    HALF,
    PI,
    TWO,
    A,
    X,
    Y,
    Z,
    a,
    b,
    chosen,
    elsewhere,
    f,
    g,
    granted_by_kind,
    holds,
    i,
    inverse,
    j,
    k,
    less_one,
    minus,
    n,
    outcome,
    q,
    s,
    same,
    space,
    stack,
    table,
    total,
    u,
    under_,
    up_to,
    var,
    z,
)

Rule = Callable[..., Result]
Fault = Callable[[Rule], Rule]
SURE = frozenset[tuple[str, Term]]()


def blind(rule: Rule) -> Rule:
    """The rule without its side conditions."""

    def faulty(*arguments: object, **signs: Any) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            for module in (sys.modules[rule.__module__], base):
                patch.setattr(module, "need", lambda *_: None)
            return rule(*arguments, **signs)

    return faulty


def trusting(rule: Rule) -> Rule:
    """The rule without the assumptions it uses."""
    return lambda *arguments, **signs: (rule(*arguments, **signs)[0], SURE)


def then(change: Callable[[Term], Term]) -> Fault:
    """The rule with its result changed."""

    def fault(rule: Rule) -> Rule:
        def faulty(*arguments: object, **signs: Any) -> Result:
            after, assumed = rule(*arguments, **signs)
            return change(after), assumed

        return faulty

    return fault


def gives(after: Term) -> Fault:
    """A rule that gives this whatever it is asked."""
    return lambda _: lambda *__, **___: (after, SURE)


def without_last(t: Term) -> Term:
    return make(t.op, t.args[:-1]) if len(t.args) > 2 else t.args[0]


def turned(t: Term) -> Term:
    """The table of the transpose."""
    body = entry(A, j, i)
    return table(i, table(j, body)) if t.shape == (n, n) else t


def unshifted(t: Term) -> Term:
    """Both parts of a cut sum begin at the first index."""
    z = index("z", less_one(n))
    return add(t.args[0], total(z, entry(X, z)))


C = make("less_equal", (j, i))
CAUSE = holds(C)
AFTER = holds(make("less", (i, k)))
EXP_A, EXP_B = unary("exp", a), unary("exp", b)
COS_A, COS_B, SIN_A, SIN_B = (unary(op, x) for op in ("cos", "sin") for x in (a, b))
GAP = unary("abs", add(i, minus(j)))
ROOT = unary("sqrt", q)
LOG_Q, y, after_u = unary("log", q), var("y"), add(u, ONE)
mirrored = entry(X, add(n, num(-1), minus(j)))
z2, last = index("z", mul(TWO, n)), index("last", less_one(n))
three = index("z", num(3))
flipped = make("permute", (A,), (1, 0), (n, n))
F = ("F", 0, ("equivariant",))
moved, still = table(j, entry(X, entry(s, j))), table(j, entry(X, j))
f_moved, f_still = (make("call", (t,), F, (n,)) for t in (moved, still))

FAULTS: list[tuple[str, str, Fault, Term, tuple[object, ...]]] = [
    (
        "definition",
        "an argument in place of the body",
        then(lambda _: X),
        make("named", (make("add", (X, Y), shape=(n,)), X), ("sum",), (n,)),
        (),
    ),
    ("entry", "a transpose is dropped", gives(entry(A, i, j)), entry(flipped, i, j), ()),
    ("tabulate", "the table of the transpose", then(turned), A, ()),
    ("ring", "1/x·x = 1 also where x may be 0", blind, mul(CAUSE, power(CAUSE, -1)), (ONE, CAUSE)),
    (
        "exp",
        "exp(a + b) is a sum",
        gives(add(EXP_A, EXP_B)),
        unary("exp", add(a, b)),
        (mul(EXP_A, EXP_B),),
    ),
    (
        "angle addition",
        "the sign is forgotten",
        gives(add(mul(COS_A, COS_B), mul(SIN_A, SIN_B))),
        unary("cos", add(a, b)),
        (a, b),
    ),
    (
        "angle addition",
        "cos for sin",
        gives(add(mul(COS_A, COS_B), mul(COS_A, SIN_B))),
        unary("sin", add(a, b)),
        (a, b),
    ),
    ("known angle", "cos 0 = 0", gives(ZERO), unary("cos", ZERO), ()),
    ("sin² + cos² = 1", "sin² = cos²", gives(power(COS_A, 2)), power(SIN_A, 2), ()),
    ("root", "(√x)² = √x", gives(ROOT), power(ROOT, 2), ()),
    (
        "absolute value as a choice",
        "the sign is forgotten",
        gives(chosen(make("less_equal", (ZERO, a)), a, a)),
        unary("abs", a),
        (),
    ),
    ("absolute value as a choice", "any function of a number", blind, unary("exp", a), ()),
    ("maximum", "one number is left out", blind, make("maximum", (a, b)), (a,)),
    (
        "where",
        "the branches change places",
        gives(add(mul(CAUSE, b), a, mul(CAUSE, minus(a)))),
        chosen(C, a, b),
        (),
    ),
    ("push", "a place counted from the end", blind, add(a, chosen(C, b, ONE)), (-1,)),
    ("infinity", "−∞ times a number is 0", gives(ZERO), mul(q, MINUS_INFINITY), ()),
    ("indicator", "[c or d] = [c] + [d]", then(without_last), holds(make("or", (C, C))), ()),
    ("indicator", "[not c] = [c]", gives(CAUSE), holds(make("not", (C,))), ()),
    (
        "indicator",
        "[c = d] = [c][d]",
        gives(mul(CAUSE, AFTER)),
        holds(make("equal", (C, AFTER.args[0]))),
        (),
    ),
    (
        "indicator",
        "the branches of a choice change places",
        gives(chosen(C, AFTER, CAUSE)),
        holds(chosen(C, C, AFTER.args[0])),
        (),
    ),
    ("where", "truth values are added", gives(add(CAUSE, ONE)), chosen(C, C, AFTER.args[0]), ()),
    ("either", "one case alone", gives(mul(CAUSE, add(a, ONE))), add(a, CAUSE), (CAUSE,)),
    ("either", "any number is 0 or 1", blind, power(a, 2), (a,)),
    ("whole comparison", "numbers of any kind", blind, under_(a, b), (add(a, ONE), b)),
    ("whole comparison", "< for <=", blind, under_(i, j), (i, j)),
    ("comparison", "the sides change places", blind, up_to(i, j), (j, i)),
    ("decide", "what the ranges do not settle is false", blind, same(i, j), ()),
    ("decide", "any condition is a comparison", blind, holds(make("and", (C, C))), ()),
    (
        "equals for equals",
        "the equation is not kept",
        then(lambda t: mul(*t.args[1:])),
        mul(same(i, j), entry(X, i)),
        (i, j),
    ),
    (
        "distribute",
        "an addend is dropped",
        then(without_last),
        total(j, add(entry(X, j), entry(Y, j), ONE)),
        (),
    ),
    (
        "factor",
        "a factor that depends on the index",
        gives(mul(ZERO, total(j, entry(X, j)))),
        total(j, mul(j, entry(X, j))),
        (1,),
    ),
    ("constant", "Σ 1 = 1", gives(ONE), total(j, ONE), ()),
    ("constant", "any body is 0", blind, total(j, TWO), ()),
    (
        "exchange",
        "the indices change places, the body does not",
        gives(total(i, total(j, mul(i, entry(A, j, i))))),
        total(i, total(j, mul(i, entry(A, i, j)))),
        (),
    ),
    ("delta", "an index outside of the sum", blind, total(j, mul(same(j, n), n)), ()),
    ("cut", "the second part is not shifted", then(unshifted), total(j, entry(X, j)), (ONE,)),
    ("unroll", "the last term is dropped", then(without_last), total(three, add(a, three)), ()),
    (
        "orthogonal",
        "a sum over some of the rows",
        blind,
        total(last, mul(entry(g, last, i), entry(g, last, j))),
        (),
    ),
    (
        "orthogonal",
        "any square matrix",
        trusting,
        total(k_ := index("k", n), mul(entry(A, k_, i), entry(A, k_, j))),
        (),
    ),
    ("permutation", "σ(σ(i)) = i", blind, entry(s, entry(s, i)), ()),
    ("injective", "a map with repetitions", trusting, same(entry(f, i), entry(f, j)), ()),
    ("image", "a map with repetitions", trusting, holds(make("is in", (i, f))), ()),
    (
        "digits",
        "a digit that may be too large",
        blind,
        same(add(mul(TWO, i), k), mul(TWO, j)),
        (TWO,),
    ),
    (
        "divide",
        "a rest that may be too large",
        blind,
        make("remainder", (add(mul(TWO, i), k), TWO)),
        (),
    ),
    (
        "equivariance",
        "σ⁻¹ for σ",
        gives(entry(f_still, entry(inverse, i))),
        entry(f_moved, i),
        (s, still),
    ),
    (
        "equivariance",
        "any function is equivariant",
        trusting,
        entry(make("call", (moved,), ("F", 0, ()), (n,)), i),
        (s, still),
    ),
    (
        "invariance",
        "any function is invariant",
        trusting,
        make("call", (moved,), ("G", 0, ())),
        (s, still),
    ),
    ("turned", "both sides may be reached", gives(add(ONE, minus(up_to(j, i)))), up_to(i, j), ()),
    ("turned", "one of both fails", gives(add(up_to(i, j), up_to(j, i))), same(i, j), ()),
    ("log", "the exponential stays", gives(EXP_A), unary("log", EXP_A), ()),
    ("exp of log", "the factor is forgotten", gives(q), unary("exp", mul(TWO, LOG_Q)), ()),
    (
        "known angle",
        "a quarter turn is a half turn",
        gives(num(-1)),
        unary("cos", mul(HALF, PI)),
        (),
    ),
    ("known angle", "any angle is π", gives(ZERO), unary("sin", a), ()),
    (
        "tanh",
        "the exponential is not of twice the number",
        gives(add(ONE, mul(num(-2), power(add(EXP_A, ONE), -1)))),
        unary("tanh", a),
        (),
    ),
    ("root of a square", "√(x²) = x", gives(a), unary("sqrt", power(a, 2)), (unary("abs", a),)),
    ("root of a square", "any number is a square", blind, unary("sqrt", q), (unary("abs", q),)),
    (
        "maximum as a choice",
        "the smaller one is chosen",
        gives(chosen(make("less_equal", (a, b)), a, b)),
        make("maximum", (a, b)),
        (),
    ),
    (
        "delta",
        "an outcome has the weight of a whole sum",
        blind,
        total(outcome, mul(same(outcome, ZERO), TWO)),
        (),
    ),
    (
        "standard",
        "any random numbers",
        lambda rule: trusting(blind(rule)),
        total(outcome, entry(var("y", space, n), outcome, i)),
        (),
    ),
    (
        "standard",
        "every product of two has mean 1",
        gives(ONE),
        total(outcome, mul(entry(z, outcome, i), entry(z, outcome, j))),
        (),
    ),
    (
        "standard",
        "numbers of two experiments go together",
        blind,
        total(outcome, mul(entry(z, outcome, i), entry(Z, elsewhere, i))),
        (),
    ),
    ("count", "a limit that may leave the axis", blind, total(j, up_to(j, n)), ()),
    ("count", "the last one is not counted", gives(i), total(j, up_to(j, i)), ()),
    ("count", "outcomes are counted", blind, total(outcome, under_(outcome, num(3))), ()),
    (
        "floor",
        "a part that is no integer",
        blind,
        make("floor_divide", (a, ONE)),
        (HALF, add(a, minus(HALF))),
    ),
    (
        "floor",
        "a divisor that is no integer",
        blind,
        make("floor_divide", (make("floor_divide", (a, ONE)), q)),
        (ZERO, make("floor_divide", (a, q))),
    ),
    (
        "remainder",
        "the sign is forgotten",
        gives(add(a, mul(q, make("floor_divide", (a, q))))),
        make("remainder", (a, q)),
        (),
    ),
    (
        "layer",
        "a stack that may have no last layer",
        blind,
        stack(a, index("t", u), y, add(y, ONE)),
        (),
    ),
    (
        "layer",
        "the last layer has the number of the next",
        gives(add(stack(a, index("t", u), y, add(y, index("t", u))), u, ONE)),
        stack(a, index("t", after_u), y, add(y, index("t", after_u))),
        (),
    ),
    ("layer", "the empty stack is 0", gives(ZERO), stack(a, index("t", ZERO), y, add(y, ONE)), ()),
]


GRANTED = frozenset({("equivariant", make("function", data=F))})


def accepts(rule: str, t: Term, arguments: tuple[object, ...], after: Term) -> bool:
    """Whether the kernel, with what the kinds of the variables grant, shows t = after."""
    try:
        proof = replay(Rewrite(rule, t, arguments, after))
        close(proof, granted_by_kind(t, after) | GRANTED, ("=", t, after))
    except Refused:
        return False
    return True


def numbers_differ(t: Term, after: Term) -> bool:
    """Whether the two sides have different values in some world."""
    for seed in range(60):
        world = World(seed, largest=4)
        try:
            if not close_to(world(t), world(after)):
                return True
        except Undefined:
            continue
    return False


def test_every_rule_has_a_fault() -> None:
    assert {rule for rule, *_ in FAULTS} == set(RULES)


@pytest.mark.parametrize(
    ("rule", "fault", "t", "arguments"),
    [pytest.param(rule, *rest, id=f"{rule}: {says}") for rule, says, *rest in FAULTS],
)
def test_a_planted_fault_is_refused_and_noticed(
    rule: str, fault: Fault, t: Term, arguments: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = fault(RULES[rule])
    after, _ = faulty(t, *arguments)
    assert not accepts(rule, t, arguments, after)
    assert numbers_differ(t, after)
    monkeypatch.setitem(RULES, rule, faulty)
    assert accepts(rule, t, arguments, after)
