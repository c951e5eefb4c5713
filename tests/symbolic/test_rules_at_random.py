"""Rules applied to random terms with random arguments: whatever one accepts is equal in numbers."""

from __future__ import annotations

import inspect
import random
from collections import Counter
from collections.abc import Callable

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
from attnproof.symbolic.terms import Term, make, postorder
from attnproof.symbolic.well_formedness import formed
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.random_numbers import holds_in
from tests.symbolic.vocabulary import (
    HALF,
    PI,
    TWO,
    A,
    D,
    P,
    R,
    X,
    Z,
    a,
    b,
    chosen,
    e,
    elsewhere,
    f,
    g,
    granted_by_kind,
    holds,
    i,
    inverse,
    j,
    k,
    m,
    minus,
    n,
    outcome,
    q,
    s,
    stack,
    total,
    u,
    v,
    var,
    z,
)

Arguments = tuple[object, ...]
y, three, first = var("y"), index("z3", num(3)), index("t", i)
LEAVES = [
    a,
    b,
    q,
    u,
    v,
    n,
    i,
    j,
    first,
    PI,
    ZERO,
    ONE,
    TWO,
    HALF,
    num(-1),
    MINUS_INFINITY,
    entry(X, i),
    entry(P, j),
    entry(D, i),
    entry(R, outcome),
    entry(z, outcome, i),
    entry(Z, elsewhere, i),
    entry(g, i, j),
    entry(A, j, i),
    entry(s, i),
    entry(inverse, i),
    entry(e, k),
    entry(f, i),
]
RUGGED = {"floor_divide", "remainder"}
IRRATIONAL = {"exp", "log", "cos", "sin", "tanh", "sqrt", "pi", "power"}


class Draw:
    """Random terms, arguments and numbers, the same in every run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.one = self.random.choice

    def several(self, depth: int) -> list[Term]:
        return [self.number(depth) for _ in range(self.random.randint(2, 3))]

    def number(self, depth: int) -> Term:
        if depth <= 0:
            return self.one(LEAVES)
        build: Callable[[int], Term] = self.one(
            [
                lambda d: add(*self.several(d)),
                lambda d: mul(*self.several(d)),
                lambda d: power(self.number(d), self.one([-2, -1, 2, 3])),
                lambda d: unary(
                    self.one(["exp", "log", "cos", "sin", "sqrt", "abs"]), self.number(d)
                ),
                lambda d: mul(holds(self.condition(d)), holds(self.condition(d)), self.number(d)),
                lambda d: chosen(self.condition(d), self.number(d), self.number(d)),
                lambda d: make("maximum", (self.number(d), self.number(d))),
                lambda d: make(self.one(sorted(RUGGED)), (self.number(d), self.number(d))),
                lambda d: total(self.one([i, j, k, three, outcome]), self.number(d)),
                lambda d: total(self.one([i, j, outcome]), mul(*self.several(d - 1))),
                self.repeated,
            ]
        )
        return build(depth - 1)

    def repeated(self, depth: int) -> Term:
        layer = index("l", self.one([ZERO, ONE, u, add(u, ONE), i, n]))
        return stack(self.number(depth), layer, y, add(mul(y, layer), self.number(depth)))

    def condition(self, depth: int) -> Term:
        kind = self.one(["equal", "less", "less_equal", "less_equal", "is in", "not", "and"])
        if kind == "is in":
            return make("is in", (self.one([i, j, k]), e))
        if kind in ("not", "and"):
            return make(kind, tuple(self.condition(depth) for _ in range(1 + (kind == "and"))))
        return make(kind, (self.number(depth - 1), self.number(depth - 1)))

    def arguments(self, rule: str, t: Term) -> Arguments:
        """Arguments of the kind the rule takes, most of them parts of the term."""
        taken = inspect.signature(RULES[rule]).parameters.values()
        count = sum(one.kind is not one.KEYWORD_ONLY for one in taken) - 1
        parts = [part for part in postorder(t) if not part.loose and not part.shape]
        pool = [*parts, ZERO, ONE, TWO, a, q, n, m, HALF, add(a, b)]
        if rule in ("push", "factor"):
            places = [self.random.randrange(3) for _ in range(min(count, 2))]
            return (*places, self.one(pool))[:count]
        if rule in SHAPED and t.args and self.one([True, True, False]):
            return SHAPED[rule](t, self.one(pool))
        return tuple(self.one(pool) for _ in range(count))


def of_a_floor(t: Term, c: Term) -> Arguments:
    x, width = t.args
    if x.op == "floor_divide" and c.op == "num":
        return ZERO, make("floor_divide", (x.args[0], mul(x.args[1], width)))
    return c, add(x, minus(mul(c, width)))


def of_a_comparison(t: Term, c: Term) -> Arguments:
    sides = t.args[0].args if len(t.args[0].args) == 2 else (c, c)
    return add(sides[0], c), add(sides[1], c)


SHAPED: dict[str, Callable[[Term, Term], Arguments]] = {
    "ring": lambda t, c: (mul(t, c, power(c, -1)), c),
    "exp": lambda t, _: (mul(*(unary("exp", x) for x in t.args[0].args)),),
    "cut": lambda _, c: (c,),
    "floor": lambda t, c: of_a_floor(t, c) if len(t.args) == 2 else (c, c),
    "comparison": of_a_comparison,
    "angle addition": lambda t, c: (c, add(t.args[0], minus(c))),
}


def exact(t: Term) -> bool:
    """Whether rounding cannot move a floor to the next integer."""
    ops = {part.op for part in postorder(t)}
    return not (ops & RUGGED and ops & IRRATIONAL)


def granted(assumed: frozenset[Assumption], *terms: Term) -> bool:
    signs = ("positive", "nonnegative")
    return {told for told in assumed if told[0] not in signs} <= granted_by_kind(*terms)


def differs(before: Term, after: Term, assumed: frozenset[Assumption]) -> bool:
    for world in (World(seed) for seed in range(5)):
        try:
            sides = world(before), world(after)
            told = all(holds_in(world, fact) for fact in assumed)
        except Undefined:
            continue
        if told and max(map(abs, sides)) < 1e7 and not close_to(*sides):
            return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_what_a_rule_accepts_is_equal_in_numbers(seed: int) -> None:
    draw, taken = Draw(seed), Counter[str]()
    for _ in range(25):
        for t in postorder(draw.number(3)):
            for rule in RULES if t.args and not (t.loose or t.shape) else ():
                arguments = draw.arguments(rule, t)
                try:
                    after, assumed = RULES[rule](formed(t), *arguments)
                    formed(after)
                except (Refused, ValueError):
                    continue
                if after is t or not exact(add(t, after)) or not granted(assumed, t, after):
                    continue
                taken[rule] += 1
                assert not differs(t, after, assumed), f"{rule} {arguments}: {t!r} -> {after!r}"
    assert len(taken) >= 12
