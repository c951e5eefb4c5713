"""What is near a derivation that is followed: refused by the kernel, or a proof of what is true.

In a sound derivation one term, one part or one number stands in the place of another.  What the
kernel then still shows, whatever the derivation says that it shows, must hold in numbers
wherever its assumptions do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import kernel
from attnproof.symbolic.derivation import (
    Assume,
    Cases,
    Chain,
    Derivation,
    Differ,
    Induction,
    Inside,
    LeftInverse,
    Lemma,
    NaturalInduction,
    Reflexive,
    Reverse,
    Rewrite,
    Sign,
    SignStep,
    SumOfSquares,
    Under,
    Witness,
)
from attnproof.symbolic.kernel import Assumption, Proof, Refused, law, replay, squares
from attnproof.symbolic.normal_form.equations import inside, rewrite
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    integer,
    mul,
    power,
)
from attnproof.symbolic.terms import Term, make, substitute
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.false_proofs import assumed, eye, gap, product
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.random_numbers import holds_in
from tests.symbolic.vocabulary import (
    TWO,
    A,
    L,
    P,
    X,
    Y,
    a,
    b,
    bound,
    case,
    i,
    less_one,
    m,
    minus,
    n,
    q,
    stack,
    table,
    total,
    u,
    var,
)

B, x0 = var("B", n, n), var("x0")
j, y, layer = bound(index("j", n)), bound(var("y")), bound(index("t", L))
Z = var("Z", mul(TWO, n))
both, turned = make("add", (X, Y), shape=(n,)), make("add", (Y, X), shape=(n,))
squared = make("mul", (X, X), shape=(n,))
i0, at_p, at_square = case(both, turned), case(P), case(squared)
late = case(both, turned, "b", less_one(n))
ring = rewrite("ring", add(a, b), add(b, a))
again = rewrite("ring", add(b, a), add(a, b, ZERO))
at_j = rewrite("ring", add(entry(X, j), a), add(a, entry(X, j)))


def entries(left: Term, right: Term, at: Term) -> Derivation:
    """Two sums of arrays are equal at an index."""
    ends = [rewrite("entry", entry(t, at)) for t in (left, right)]
    return Chain((ends[0], rewrite("ring", ends[0].right, ends[1].right), Reverse(ends[1])))


SPLIT = ("cut", ONE, ("each",), ("whole",))
told = law(mul(x0, ONE), x0, (x0,))
ADD = layer
steps = (add(y, mul(TWO, entry(Z_ := var("W", L), ADD))), add(y, entry(Z_, ADD)))
outer, within = stack(mul(TWO, a), ADD, y, steps[0]), stack(a, ADD, y, steps[1])
SOUND: list[Derivation] = [
    Reflexive(add(a, b)),
    ring,
    Reverse(ring),
    Chain((ring, again)),
    Inside(mul(add(a, b), q), ((0, ring),), mul(add(b, a), q)),
    Inside(
        make("maximum", (add(a, b), q)),
        ((0, ring), (1, Reflexive(q))),
        make("maximum", (add(b, a), q)),
    ),
    Under(total(j, at_j.left), (j,), at_j, total(j, at_j.right)),
    Under(table(j, at_j.left), (j,), at_j, table(j, at_j.right)),
    Under(
        stack(a, layer, y, add(y, b)),
        (layer, y),
        rewrite("ring", add(y, b), add(b, y)),
        stack(a, layer, y, add(b, y)),
    ),
    Cases(both, turned, (("whole",),), (entries(both, turned, i0),)),
    Cases(
        both,
        turned,
        (SPLIT,),
        (entries(both, turned, ZERO), entries(both, turned, integer(add(late, ONE)))),
    ),
    Induction(
        outer,
        within,
        mul(TWO, x0),
        x0,
        ADD,
        y,
        Reflexive(mul(TWO, a)),
        rewrite("ring", substitute(steps[0], y, mul(TWO, y)), mul(TWO, steps[1])),
    ),
    Witness(x0, gap(b, a), (q,), (add(x0, a), b), rewrite("ring", make("add", (gap(b, a), a)), b)),
    Assume(mul(b, ONE), b, told, (b,)),
    Lemma(Assume(mul(b, ONE), b, told, (b,)), rewrite("ring", mul(x0, ONE), x0), (x0,)),
    NaturalInduction(
        add(u, ZERO),
        u,
        u,
        rewrite("ring", add(ZERO, ZERO), ZERO),
        rewrite("ring", substitute(add(u, ZERO), u, integer(add(ONE, u))), integer(add(ONE, u))),
    ),
    SumOfSquares(X, Y, assumed(squares(X, Y), ZERO)),
    LeftInverse(product(B, A), eye(n), assumed(product(A, B), eye(n))),
    Differ(
        a,
        b,
        assumed(a, b),
        rewrite("ring", gap(a, b), gap(a, b)),
        (SignStep("nonzero", gap(a, b)),),
    ),
    Sign(P, (("whole",),), (Reflexive(entry(P, at_p)),)),
    Sign(
        squared,
        (("whole",),),
        (
            Chain(
                (
                    rewrite("entry", entry(squared, at_square)),
                    rewrite(
                        "ring",
                        mul(entry(X, at_square), entry(X, at_square)),
                        power(entry(X, at_square), 2),
                    ),
                )
            ),
        ),
    ),
]


REST: dict[int, set[Assumption]] = {
    13: {("equal", told)},
    16: {("equal", law(squares(X, Y), ZERO))},
    17: {("equal", law(product(A, B), eye(n)))},
    18: {("nonzero", gap(a, b))},
    19: {("positive", P)},
}


def test_what_is_sound_is_followed_and_assumes_what_it_must() -> None:
    assert {type(d) for d in SOUND} == set(kernel._REPLAY)
    for k, d in enumerate(SOUND):
        assert replay(d).assumes == REST.get(k, set()), d


def at_entry(left: Term, right: Term, i: Term) -> Derivation:
    """An entry of equal arrays, by a hypothesis."""
    return inside(entry(left, i), [(0, assumed(left, right))])


def from_(left: Term, right: Term) -> Derivation:
    """left = right at an entry, by a hypothesis."""
    return at_entry(left, right, i)


H = ("equal", law(X, Y))
x_y = from_(X, Y)
x_and_p = make("add", (X, P), shape=(n,))
at_sum = case(x_and_p)
RESTING: list[Derivation] = [
    x_y,
    Reverse(x_y),
    Chain((x_y, Reflexive(entry(Y, i)))),
    Chain((Reflexive(entry(X, i)), x_y)),
    Inside(add(entry(X, i), a), ((0, x_y),), add(entry(Y, i), a)),
    Inside(add(a, b, entry(X, i)), ((0, Reflexive(a)), (2, x_y)), add(a, b, entry(Y, i))),
    Under(
        total(j, mul(j, entry(X, i))),
        (j,),
        Inside(mul(j, entry(X, i)), ((1, x_y),), mul(j, entry(Y, i))),
        total(j, mul(j, entry(Y, i))),
    ),
    Cases(X, Y, (("whole",),), (at_entry(X, Y, case(X, Y)),)),
    Induction(
        stack(entry(X, i), ADD, y, y),
        stack(entry(Y, i), ADD, y, y),
        x0,
        x0,
        ADD,
        y,
        x_y,
        Reflexive(y),
    ),
    Induction(
        stack(a, ADD, y, add(y, entry(X, i))),
        stack(a, ADD, y, add(y, entry(Y, i))),
        x0,
        x0,
        ADD,
        y,
        Reflexive(a),
        Inside(add(y, entry(X, i)), ((1, x_y),), add(y, entry(Y, i))),
    ),
    Witness(
        x0,
        entry(Y, i),
        (),
        (add(x0, ZERO), add(entry(X, i), ZERO)),
        Reverse(Inside(add(entry(X, i), ZERO), ((0, x_y),), make("add", (entry(Y, i), ZERO)))),
    ),
    Lemma(Assume(entry(X, i), entry(Y, i), law(entry(X, i), entry(Y, i))), x_y),
    Lemma(x_y, Reflexive(a)),
    NaturalInduction(entry(X, i), entry(Y, i), u, x_y, x_y),
    Sign(
        x_and_p,
        (("whole",),),
        (
            Chain(
                (
                    rewrite("entry", entry(x_and_p, at_sum)),
                    Inside(
                        add(entry(X, at_sum), entry(P, at_sum)),
                        ((0, at_entry(X, Y, at_sum)),),
                        add(entry(Y, at_sum), entry(P, at_sum)),
                    ),
                )
            ),
        ),
        ((SignStep("positive", Y),),),
    ),
]


@each(RESTING)
def test_what_a_part_assumes_is_passed_on(d: Derivation) -> None:
    assert H in replay(d).assumes


def test_signs_of_all_parts_are_assumed() -> None:
    assert replay(RESTING[-1]).assumes == {H, ("positive", Y), ("positive", P)}
    assert replay(RESTING[-1]).relation == ">"


NUMBERS = [a, b, q, u, i, j, n, m, ZERO, ONE, TWO, MINUS_INFINITY, x0, y, add(a, b), minus(a)]
ARRAYS = [X, Y, A, B, P, both, turned, table(j, j), make("eye", (n,), shape=(n, n)), var("Z", m)]
WHOLES = [-1, 0, 1, 2, True, None]
COVERS: list[Any] = [
    ("whole",),
    ("each",),
    SPLIT,
    ("cut", ZERO, ("each",), ("whole",)),
    ("cut", n, ("whole",), ("each",)),
    ("cut", TWO, ("whole",), ("whole",)),
    ("digits", n, ONE, ("whole",), ("whole",)),
    ("digits", n, m, ("whole",), ("whole",)),
    ("all",),
]


def parts_of(value: Any) -> Iterator[Any]:
    """All terms and derivations that stand in a derivation."""
    if isinstance(value, tuple):
        for part in value:
            yield from parts_of(part)
    elif isinstance(value, Term):
        yield value
        yield from (part for part in value.args if not part.loose)
    elif type(value) in kernel._REPLAY:
        yield value
        for field in fields(value):
            yield from parts_of(getattr(value, field.name))


def instead(value: Any, inside: list[Any]) -> Iterator[Any]:
    """What may stand in the place of a part of a derivation."""
    if isinstance(value, Term):
        yield from (part for part in (*NUMBERS, *ARRAYS, *inside) if isinstance(part, Term))
    elif isinstance(value, frozenset):
        yield from (frozenset(), frozenset({("positive", a)}), frozenset({("nonzero", b)}))
    elif type(value) is int:
        yield from WHOLES
    elif type(value) is str:
        yield from ("=", "!=", ">", ">=", "<", "ring", "whole", "digits")
    elif isinstance(value, tuple):
        if value and type(value[0]) is str:
            yield from COVERS
        yield from (value[:-1], value[1:], value[::-1], (*value, *value))
        for k, part in enumerate(value):
            for other in instead(part, inside):
                yield (*value[:k], other, *value[k + 1 :])
    else:
        yield from (part for part in inside if not isinstance(part, Term))


def near(d: Any) -> Iterator[Any]:
    inside = list(dict.fromkeys(parts_of(d)))
    inside += [Reverse(p) for p in inside if not isinstance(p, Term)] + [ring, at_j, SOUND[20]]
    for field in fields(d):
        for other in instead(getattr(d, field.name), inside):
            if type(d) is not Rewrite or field.name != "left":
                yield replace(d, **{field.name: other})


def is_false(proof: Proof) -> bool:
    """Whether what is proved fails in some world in which its assumptions hold."""
    if any(name == "equal" and t.data is not None for name, t in proof.assumes):
        return False
    for world in (World(seed, largest=3) for seed in range(6)):
        try:
            for name, t in proof.assumes:
                if name == "equal" and t.args[0].op == "var":
                    world.drawn[t.args[0]] = world(t.args[1])
            if not all(holds(world, told) for told in proof.assumes):
                continue
            left, right = np.asarray(world(proof.left)), np.asarray(world(proof.right))
        except (Undefined, OverflowError):
            continue
        if not RELATIONS[proof.relation](left, right):
            return True
    return False


def holds(world: World, told: Assumption) -> bool:
    name, t = told
    if name != "equal":
        return holds_in(world, told)
    return close_to(world(t.args[0]), world(t.args[1]))


RELATIONS: dict[str, Any] = {
    "=": close_to,
    "!=": lambda x, y: not close_to(x, y),
    ">": lambda x, y: bool((x > y).all()),
    ">=": lambda x, y: bool((x >= y).all()),
    "exists": close_to,
}


@pytest.mark.parametrize("d", SOUND, ids=lambda d: type(d).__name__)
def test_what_is_near_is_refused_or_true(d: Derivation) -> None:
    for other in near(d):
        try:
            proof = kernel._REPLAY[type(other)](other, replay)
            for side in (proof.left, proof.right):
                formed(side)
        except (Refused, AttributeError, IndexError, TypeError, ValueError):
            continue
        if proof.left.loose or proof.right.loose:
            continue
        assert not is_false(proof), f"{other} {proof!r} {proof.assumes}"
