"""False statements about signs, written against the rules that compare sums: none is proved.

Each false one stands beside a true one that the same rule proves, so that a rule which proves
nothing does not pass.  The second half draws terms and facts at random and asks the interpreter.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import (
    Array,
    Claim,
    Statement,
    at_least,
    boolean,
    differ,
    greater,
    index_below,
    iterate,
    natural,
    probability_space,
    real,
    rows,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Law
from attnproof.symbolic.continuity import whole_valued
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.prove import decide
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.scalars import (
    ONE,
    ZERO,
    add,
    entry,
    index,
    is_truth,
    mul,
    num,
    power,
    unary,
)
from attnproof.symbolic.signs import sign
from attnproof.symbolic.terms import Term, make, postorder, substitute
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic import vocabulary as words
from tests.symbolic.interpreter import Undefined, World

n, d = sizes("n d")
SPACE = probability_space("Ω")
GIVEN: dict[str, Given] = {
    **{name: real() for name in "xyzw"},
    "k": natural(),
    "l": natural(),
    "m": boolean(),
    "R": real(SPACE),
    "t": index_below(n),
    "V": real(n),
}
x, y, z, w, k, l, m, R, t, V = (given.named(name) for name, given in GIVEN.items())
MASKED = xp.where(m, x, -xp.inf)


def one(condition: Array) -> Array:
    """1 where it holds, else 0."""
    return xp.astype(condition, float)


def proved(claim: Claim, *told: Claim) -> bool:
    """Whether the kernel proves the claim under hypotheses on signs."""
    asked = Statement(GIVEN, {"": claim}, (), tuple(map(Law, told)))
    return decide(asked, refuting=False).verdict == "proved"


def all_below(length: Any, body: Callable[[Any], Any]) -> Array:
    """Σ_i body(i) over the indices below a length."""
    return xp.sum(rows(length, body), axis=0)


POSITIVE, ORDERED = greater(x, 0), at_least(y, x)
Claims = tuple[Claim, ...]
# name: (true, with its hypotheses), (false, with its hypotheses)
PAIRS: dict[str, tuple[Claims, Claims]] = {
    "conditions that have nothing to do with one another": (
        (at_least(one(x <= y), one(x < y)),),
        (at_least(one(z <= w), one(x < y)),),
    ),
    "a weaker condition than the one that is told": (
        (at_least(one(x <= y), one(x + 1 <= y)),),
        (at_least(one(x + 1 <= y), one(x < y)),),
    ),
    "a strict condition from one that is not": (
        (at_least(one(x < y + 1), one(x <= y)),),
        (at_least(one(x < y), one(x <= y)),),
    ),
    "1/x falls, but not across 0": (
        (at_least(1 / x, 1 / (x + 1)), POSITIVE),
        (at_least(1 / x, 1 / (x + 1)),),
    ),
    "1/x falls, but 1/0 is 0": (
        (at_least(1 / x, 1 / y), POSITIVE, ORDERED),
        (at_least(1 / x, 1 / y), at_least(x, 0), ORDERED),
    ),
    "1/x is at most 1 for x >= 1 alone": (
        (at_least(1, 1 / x), at_least(x, 1)),
        (at_least(1, 1 / x), POSITIVE),
    ),
    "x/x is at most 1, and 0 at 0": (
        (at_least(x * x * (1 / x) ** 2 + 1, 0),),
        (at_least(x / x, 1),),
    ),
    "x²/x² is not positive": ((at_least(x**2 / x**2, 0),), (greater(x**2 / x**2, 0),)),
    "log x rises where x is positive": (
        (at_least(xp.log(y), xp.log(x)), POSITIVE, ORDERED),
        (at_least(xp.log(y), xp.log(x)), ORDERED),
    ),
    "log x is at least 0 from 1 on": (
        (at_least(xp.log(1 + x), 0), POSITIVE),
        (at_least(xp.log(x), 0), POSITIVE),
    ),
    "√x rises from 0 on": (
        (at_least(xp.sqrt(y), xp.sqrt(x)), at_least(x, 0), ORDERED),
        (at_least(xp.sqrt(y), xp.sqrt(x)), ORDERED),
    ),
    "a fact times a factor of any sign": (
        (at_least(z**2 * x, 0), POSITIVE),
        (at_least(z * x, 0), POSITIVE),
    ),
    "what is smaller times what may be negative": (
        (at_least(xp.exp(z) * y, xp.exp(z) * x), ORDERED),
        (at_least(xp.tanh(z) * y, xp.tanh(z) * x), ORDERED),
    ),
    "a product of numbers that are at most 1": (
        (at_least(1, xp.exp(-(x**2)) * xp.exp(-(y**2))),),
        (at_least(1, x * y), at_least(1, x), at_least(1, y)),
    ),
    "products, one factor each smaller": (
        (at_least(xp.exp(y) * xp.exp(y), xp.exp(x) * xp.exp(x)), ORDERED),
        (at_least(y * y, x * x), ORDERED),
    ),
    "a strict fact times what may be 0": (
        (greater(xp.exp(z) * x, 0), POSITIVE),
        (greater(z**2 * x, 0), POSITIVE),
    ),
    "a condition between whole numbers leaves a gap of 1": (
        (at_least(one(k < l) * (l - k), one(k < l)),),
        (at_least(one(x < y) * (y - x), one(x < y)),),
    ),
    "a floor that is compared with what is not a whole number": (
        (at_least(one(k < l) * (l - k - 1), 0),),
        (at_least(one(x // 1 < y) * (y - x // 1 - 1), 0),),
    ),
    "a case tells nothing of the other case": (
        (at_least(one(x > 0) * x, 0),),
        (at_least(one(x > 0) * x + (1 - one(x > 0)) * x, 0),),
    ),
    "a case that is impossible under one hypothesis": (
        (at_least(x * one(x > 0) - one(x <= 0), 0), POSITIVE),
        (at_least(x * one(x > 0) - one(x <= 0), 0), at_least(x, 0)),
    ),
    "equal in one case": (
        (at_least(one(xp.astype(m, float) == 1) * x, 0), POSITIVE),
        (at_least((1 - one(x == y)) * (y - x), one(x == y)), ORDERED),
    ),
    "a sum over an axis that may be empty": (
        (greater(all_below(n, lambda _: xp.exp(x)), 0),),
        (greater(all_below(n - 1, lambda _: xp.exp(x)), 0),),
    ),
    "an entry of a sum of numbers of any sign": (
        (at_least(all_below(n, lambda i: V[i] ** 2), 0),),
        (at_least(all_below(n, lambda i: V[i]), V[t]),),
    ),
    "a fact at one index is none at another": (
        (at_least(all_below(n, lambda i: V[i]), 0), at_least(V, 0)),
        (at_least(all_below(n, lambda i: V[i]), 0), at_least(V[t], 0)),
    ),
    "an outcome may have no weight": (
        (at_least(xp.sum(one(x < R), axis=0), 0),),
        (greater(xp.sum(one(x < R) + one(x > R), axis=0), 0),),
    ),
    "exp of minus infinity": (
        (at_least(xp.exp(MASKED) + 1, 1),),
        (greater(xp.exp(MASKED) + 1, 1),),
    ),
    "a maximum with minus infinity": (
        (greater(xp.maximum(xp.exp(x), MASKED), 0),),
        (greater(xp.maximum(x, MASKED), x),),
    ),
    "a maximum of smaller numbers": (
        (at_least(xp.maximum(y, z), xp.maximum(x, z)), ORDERED),
        (at_least(xp.maximum(y, z), xp.maximum(x, w)), ORDERED),
    ),
    "a stack whose layers take away": (
        (greater(iterate(k, 1, lambda _, s: s * xp.exp(x)), 0),),
        (greater(iterate(k, 1, lambda _, s: s - xp.exp(-s)), 0),),
    ),
    "a stack that is known only where it starts": (
        (greater(iterate(k, 1, lambda _, s: s + one(s > x)), 0),),
        (greater(iterate(k, 1, lambda _, s: s * one(s > x)), 0),),
    ),
    "not 0 in one case": (
        (differ(xp.exp(x) - 1, 0), POSITIVE),
        (differ(x * one(x > 0), 0, x * one(x > 0)), differ(x, 0)),
    ),
}


@each(PAIRS)
def test_the_false_one_of_two_statements_is_not_proved(name: str) -> None:
    _, (false, *told) = PAIRS[name]
    assert not proved(false, *told)


@each(PAIRS)
def test_the_true_one_is(name: str) -> None:
    (true, *told), _ = PAIRS[name]
    assert proved(true, *told)


def test_the_mean_of_whole_numbers_is_none() -> None:
    """The share of outcomes below x lies between 0 and 1."""
    share = xp.sum(one(x > R), axis=0)
    assert whole_valued(one(x > y).term)
    assert not whole_valued(share.term)
    assert not whole_valued((one(x > R) @ (0 * R + 1)).term)


def test_a_sum_of_floors_has_an_end() -> None:
    """An axis of n indices is n digits of width 1, and each is an axis of n again."""
    assert not proved(at_least(xp.sum(V // 1), 0))


# terms and facts at random


LOW = index("j0", words.n)
LEAVES = [
    words.a,
    words.b,
    words.a,
    words.q,
    words.u,
    words.v,
    words.n,
    words.i,
    ZERO,
    ONE,
    words.HALF,
    num(-1),
    entry(words.X, words.i),
    entry(words.P, words.j),
    entry(words.D, LOW),
    entry(words.s, words.i),
    words.var("y0", kind="positive"),
]
RISING = ["exp", "tanh", "log", "sqrt", "abs", "cos"]
HOLDS: dict[str, Callable[[Any], Any]] = {
    "positive": lambda value: value > 0,
    "nonnegative": lambda value: value >= 0,
    "nonzero": lambda value: value != 0,
}


class Draw:
    """Random sums whose parts resemble one another, and facts on their parts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.one = self.random.choice

    def number(self, depth: int) -> Term:
        if depth <= 0 or self.random.random() < 0.15:
            return self.one(LEAVES)
        depth -= 1
        build: Callable[[], Term] = self.one(
            [
                lambda: add(self.number(depth), self.number(depth)),
                lambda: mul(self.number(depth), self.number(depth)),
                lambda: power(self.number(depth), self.one([-2, -1, -1, 2, 3])),
                lambda: unary(self.one(RISING), self.number(depth)),
                lambda: self.gate(depth),
                lambda: make("maximum", (self.number(depth), self.number(depth))),
                lambda: words.chosen(
                    self.gate(depth).args[0], self.number(depth), self.number(depth)
                ),
                lambda: words.total(self.one([LOW, words.i, words.k]), self.number(depth)),
            ]
        )
        return build()

    def gate(self, depth: int) -> Term:
        op = self.one(["less", "less", "less_equal", "less_equal", "equal"])
        return words.holds(make(op, (self.number(depth - 1), self.number(depth - 1))))

    def changed(self, t: Term) -> Term:
        """The term with one of its parts a little larger, smaller, or different."""
        part = self.one(parts(t) or [t])
        sides = part.args[0].args if part.op == "indicator" else ()
        if len(sides) == 2:
            moved = (self.one([side, add(side, ONE), self.number(1)]) for side in sides)
            new = words.holds(make(self.one(["less", "less_equal", "equal"]), tuple(moved)))
        else:
            new = self.one(
                [
                    add(part, self.number(1)),
                    mul(part, self.gate(1)),
                    mul(part, self.number(1)),
                    add(part, self.one([ONE, words.HALF, words.u, words.q])),
                    self.number(1),
                ]
            )
        return substitute(t, part, new)

    def claim(self) -> Term:
        t = self.number(2)
        less = words.minus(self.changed(t))
        factor, other = self.number(1), self.gate(1)
        return self.one(
            [
                add(t, less),
                add(mul(factor, t), mul(factor, less)),
                add(t, factor, less),
                add(mul(other, t), less),
                add(mul(self.gate(1), t), self.number(1), mul(other, less)),
            ]
        )

    def facts(self, t: Term) -> frozenset[Assumption]:
        found = set()
        for _ in range(self.one([0, 1, 1, 2, 3]) if parts(t) else 0):
            x, y = self.one(parts(t)), self.one(parts(t))
            told = self.one([x, x, words.minus(x), add(x, words.minus(y)), add(x, num(-1))])
            found.add((self.one(["positive", "nonnegative", "nonnegative", "nonzero"]), told))
        return frozenset(found)


def parts(t: Term) -> list[Term]:
    return [
        part
        for part in postorder(t)
        if not (part.loose or part.shape or part.op == "num" or is_truth(part))
    ]


def wrong_in(world: World, t: Term, certain: int, assumed: frozenset[Assumption]) -> bool:
    """Whether the assumptions hold there and the sign does not."""
    try:
        told = all(np.all(HOLDS[kind](np.asarray(world(x)))) for kind, x in assumed)
        value, terms = float(world(t)), [abs(float(world(arg))) for arg in t.args]
    except (Undefined, OverflowError):
        return False
    rounded = any(part.op in ("power", *RISING) for part in postorder(t))
    small = 1e-9 * max([1.0, *terms])
    return told and (value < -small or (certain == 2 and not rounded and value <= 0))


@pytest.mark.parametrize("seed", range(2))
def test_a_sign_that_is_certain_is_right_in_every_world(seed: int) -> None:
    draw, found = Draw(seed), Counter[int]()
    for _ in range(600):
        t = draw.claim()
        try:
            formed(t)
        except Refused:
            continue
        facts = draw.facts(t)
        certain, assumed = sign(t, facts)
        found[certain] += 1
        kinds = {(kind, x) for kind, x in assumed if x.op == "var" and x.data[1] == kind}
        assert assumed <= facts | kinds, f"{assumed - facts - kinds} was never told: {t!r}"
        for world in map(World, range(20 if certain else 0)):
            assert not wrong_in(world, t, certain, assumed), f"{t!r} under {set(assumed)}"
    assert found[1] + found[2] > 60
