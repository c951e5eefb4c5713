"""Each condition of the kernel by its words.

Every line breaks one condition and no other.  The parts of a derivation are given as what they
show, so that a part may show anything; what is sound says exactly what is shown and assumed.
"""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import kernel
from attnproof.symbolic.derivation import (
    Assume,
    Cases,
    Chain,
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
from attnproof.symbolic.kernel import Assumption, Proof, Refused, close, law, replay, squares
from attnproof.symbolic.rules.base import Refusing
from attnproof.symbolic.scalars import MINUS_INFINITY, ONE, ZERO, add, entry, index, integer, mul
from attnproof.symbolic.terms import Term, bind, free, make, substitute
from tests.symbolic.vocabulary import (
    A,
    L,
    P,
    X,
    Y,
    a,
    b,
    bound,
    c,
    case,
    chosen,
    e,
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
    spread,
    stack,
    total,
    u,
    v,
    var,
)

Assumed = frozenset[Assumption]
B, x0, x1 = var("B", n, n), var("x0"), var("x1")
y, layer, t, at = bound(var("y")), bound(index("t", L)), bound(index("t", L)), bound(j)
i0, at_p, at_x = case(X, Y), case(P), case(X)
nowhere = index("nowhere", less_one(n))
"""An index that may have no value: n - 1 may be 0."""
H: Assumption = ("equal", law(a, b))
OF_J: Assumption = ("equal", law(j, a))
NEG: Assumption = ("nonzero", a)
BELOW = chosen(make("less", (a, b)), a, MINUS_INFINITY)
AB, BA = (make("matmul", (x, z), shape=(n, n)) for x, z in ((A, B), (B, A)))
EYE = make("eye", (n,), shape=(n, n))


def shown(left: Term, right: Term, *assumes: Assumption, relation: str = "=") -> Any:
    """A part that shows this."""
    return Proof(kernel._KEY, relation, left, right, frozenset(assumes))


def followed(d: Any) -> Proof:
    with Refusing(kernel._words(type(d).__name__)):
        proof: Proof = kernel._REPLAY[type(d)](d, lambda part: part)
    return proof


ab, bc = shown(a, b), shown(b, c)
of_i, of_j = total(i, entry(X, i)), total(i, entry(Y, i))
under_part = shown(entry(X, at), entry(Y, at), H)
first, second = stack(a, t, y, mul(y, b)), stack(a, t, y, mul(b, y))
base, step = shown(a, a), shown(mul(y, b), mul(b, y), H)
next_u = integer(add(u, ONE))
AT_U = ("equal", law(mul(u, ONE), u))
told = law(mul(x0, ONE), x0, (x0,))
of_u = law(mul(u, ONE), u, (u,))
x_law = law(var("V", n), X, (var("V", n),))
SPLIT = ("cut", ONE, ("each",), ("whole",))
natural_base = shown(substitute(mul(u, ONE), u, ZERO), ZERO)
natural_step = shown(mul(next_u, ONE), next_u, AT_U)


def induction(**other: Any) -> Induction:
    fields = {
        "left": first,
        "right": second,
        "context": x0,
        "hole": x0,
        "layer": t,
        "state": y,
        "base": base,
        "step": step,
    }
    return Induction(**(fields | other))


def witness(**other: Any) -> Witness:
    fields: dict[str, Any] = {
        "variable": x0,
        "value": a,
        "free_of": (q,),
        "claim": (add(x0, b), add(a, b)),
        "part": shown(add(a, b), add(a, b), H),
        "relation": "=",
    }
    return Witness(**(fields | other))


def natural(**other: Any) -> NaturalInduction:
    fields: dict[str, Any] = {
        "left": mul(u, ONE),
        "right": u,
        "variable": u,
        "base": natural_base,
        "step": natural_step,
        "variables": (),
    }
    return NaturalInduction(**(fields | other))


def sign_of(array: Term, *parts: Any, cover: Any = (("whole",),)) -> Sign:
    return Sign(array, cover, parts)


def apart(left: Term = a, right: Term = b, **other: Any) -> Differ:
    fields: dict[str, Any] = {
        "part": shown(a, b, ("equal", law(left, right)), OF_J),
        "apart": shown(add(a, minus(b)), q, ("nonnegative", b)),
        "signs": (),
    }
    return Differ(left, right, **(fields | other))


def over(z: Term) -> Any:
    """a = a by way of an index."""
    return Chain((shown(a, mul(z, ZERO)), shown(mul(z, ZERO), a)))


short = less_one(n)
x_short, y_short, none = var("x", short), var("y", short), var("none", ZERO)
a_short, b_short = var("a", short, short), var("b", short, short)
by_short, of_short = (
    make("matmul", (x, z), shape=(short, short))
    for x, z in ((a_short, b_short), (b_short, a_short))
)
eye_short = make("eye", (short,), shape=(short, short))
deep = add(a, mul(x0, b))
tiny = less_one(short)
by_tiny = make("matmul", (var("a", tiny, tiny), var("b", tiny, tiny)), shape=(tiny, tiny))
zero_of_u = make("assumed equal", (bind(mul(u, ONE), u), bind(u, u)), (("natural", ()),))
SOUND: list[tuple[Any, str, Term, Term, set[Assumption]]] = [
    (
        Assume(mul(ZERO, ONE), ZERO, zero_of_u, (ZERO,)),
        "=",
        mul(ZERO, ONE),
        ZERO,
        {("equal", zero_of_u)},
    ),
    (
        Chain((shown(a, nowhere), shown(nowhere, mul(nowhere, ONE)))),
        "=",
        a,
        mul(nowhere, ONE),
        set(),
    ),
    (
        induction(
            right=add(a, mul(second, b)),
            context=deep,
            base=shown(a, substitute(deep, x0, a)),
            step=shown(mul(substitute(deep, x0, y), b), substitute(deep, x0, mul(b, y))),
        ),
        "=",
        first,
        substitute(deep, x0, second),
        set(),
    ),
    (
        SumOfSquares(x_short, y_short, shown(squares(x_short, y_short), ZERO)),
        "=",
        x_short,
        y_short,
        set(),
    ),
    (LeftInverse(of_short, eye_short, shown(by_short, eye_short)), "=", of_short, eye_short, set()),
    (sign_of(none, cover=(("each",),)), ">", none, ZERO, set()),
    (Reflexive(a), "=", a, a, set()),
    (Reverse(shown(a, b, H)), "=", b, a, {H}),
    (Chain((shown(a, b, H), shown(b, c, NEG))), "=", a, c, {H, NEG}),
    (over(i), "=", a, a, set()),
    (over(outcome), "=", a, a, set()),
    (over(u), "=", a, a, set()),
    (Chain((shown(nowhere, a), shown(a, b))), "=", nowhere, b, set()),
    (Chain((shown(a, b), shown(b, nowhere))), "=", a, nowhere, set()),
    (Inside(mul(a, b), ((0, ab), (1, bc)), mul(b, c)), "=", mul(a, b), mul(b, c), set()),
    (Inside(of_i, ((0, shown(n, n)),), of_i), "=", of_i, of_i, set()),
    (
        Inside(first, ((1, shown(a, c)),), c),
        "=",
        first,
        make("iterate", (L, c, first.args[2])),
        set(),
    ),
    (Under(of_i, (at,), under_part, of_j), "=", of_i, of_j, {H}),
    (
        Under(
            total(i, chosen(make("less", (a, b)), i, MINUS_INFINITY)),
            (at,),
            shown(chosen(make("less", (a, b)), at, MINUS_INFINITY), at),
            a,
        ),
        "=",
        total(i, chosen(make("less", (a, b)), i, MINUS_INFINITY)),
        total(j, j),
        set(),
    ),
    (Under(first, (t, y), step, second), "=", first, second, {H}),
    (Cases(X, Y, (("whole",),), (shown(entry(X, i0), entry(Y, i0), H),)), "=", X, Y, {H}),
    (induction(), "=", first, second, {H}),
    (induction(base=shown(a, a, NEG), step=step), "=", first, second, {H, NEG}),
    (witness(), "exists", add(a, b), add(a, b), {H}),
    (
        witness(value=nowhere, claim=(mul(x0, nowhere), b), part=shown(mul(nowhere, nowhere), b)),
        "exists",
        mul(nowhere, nowhere),
        b,
        set(),
    ),
    (
        witness(value=nowhere, claim=(x0, nowhere), part=shown(nowhere, nowhere)),
        "exists",
        nowhere,
        nowhere,
        set(),
    ),
    (
        witness(part=shown(add(a, b), add(a, b), relation=">"), relation=">="),
        "exists",
        add(a, b),
        add(a, b),
        set(),
    ),
    *(
        (
            witness(part=shown(add(a, b), add(a, b), relation=r), relation=r),
            "exists",
            add(a, b),
            add(a, b),
            set[Assumption](),
        )
        for r in ("!=", ">", ">=")
    ),
    (Assume(mul(b, ONE), b, told, (b,)), "=", mul(b, ONE), b, {("equal", told)}),
    (
        Assume(mul(next_u, ONE), next_u, of_u, (next_u,)),
        "=",
        mul(next_u, ONE),
        next_u,
        {("equal", of_u)},
    ),
    (Assume(a, b, law(a, b)), "=", a, b, {H}),
    (
        Lemma(shown(c, q, ("equal", told), NEG), shown(mul(x0, ONE), x0, H), (x0,)),
        "=",
        c,
        q,
        {H, NEG},
    ),
    (Lemma(shown(c, q, H, relation="!="), ab), "!=", c, q, set()),
    (
        Lemma(shown(nowhere, q, ("equal", law(a, nowhere))), shown(a, nowhere)),
        "=",
        nowhere,
        q,
        set(),
    ),
    (
        Lemma(shown(q, nowhere, ("equal", law(a, nowhere))), shown(a, nowhere)),
        "=",
        q,
        nowhere,
        set(),
    ),
    (natural(), "=", mul(u, ONE), u, set()),
    (
        natural(
            base=shown(mul(ZERO, ONE), ZERO, H), step=shown(mul(next_u, ONE), next_u, AT_U, NEG)
        ),
        "=",
        mul(u, ONE),
        u,
        {H, NEG},
    ),
    (
        natural(
            left=add(u, v),
            right=add(v, u),
            variables=(v,),
            base=shown(add(ZERO, v), add(v, ZERO)),
            step=shown(
                substitute(add(u, v), u, next_u),
                substitute(add(v, u), u, next_u),
                ("equal", law(add(u, v), add(v, u), (v,))),
            ),
        ),
        "=",
        add(u, v),
        add(v, u),
        set(),
    ),
    (SumOfSquares(X, Y, shown(squares(X, Y), ZERO, H)), "=", X, Y, {H}),
    (LeftInverse(BA, EYE, shown(AB, EYE, H)), "=", BA, EYE, {H}),
    (apart(), "!=", a, b, {OF_J, ("nonnegative", b), ("positive", q)}),
    (
        apart(nowhere, b, part=shown(nowhere, b), apart=shown(add(nowhere, minus(b)), q)),
        "!=",
        nowhere,
        b,
        {("positive", q)},
    ),
    (
        apart(a, nowhere, part=shown(a, nowhere), apart=shown(add(a, minus(nowhere)), q)),
        "!=",
        a,
        nowhere,
        {("positive", q)},
    ),
    (sign_of(P, shown(entry(P, at_p), q, H)), ">", P, ZERO, {H, ("positive", q)}),
    (
        sign_of(X, shown(entry(X, at_x), var("d", kind="nonnegative"))),
        ">=",
        X,
        ZERO,
        {("nonnegative", var("d", kind="nonnegative"))},
    ),
    (
        sign_of(
            X,
            shown(entry(X, ZERO), q, H),
            shown(
                entry(X, integer(add(case(X, ZERO, "b", less_one(n)), ONE))),
                var("d", kind="nonnegative"),
                NEG,
            ),
            cover=(SPLIT,),
        ),
        ">=",
        X,
        ZERO,
        {H, NEG, ("positive", q), ("nonnegative", var("d", kind="nonnegative"))},
    ),
    (
        sign_of(entry(X, nowhere), shown(entry(X, nowhere), mul(q, add(ONE, nowhere))), cover=()),
        ">",
        entry(X, nowhere),
        ZERO,
        {("positive", q)},
    ),
]


@pytest.mark.parametrize(("d", "relation", "left", "right", "assumes"), SOUND)
def test_what_is_shown_and_what_it_rests_on(
    d: Any, relation: str, left: Term, right: Term, assumes: set[Assumption]
) -> None:
    proof = followed(d)
    assert (proof.relation, proof.left, proof.right) == (relation, left, right)
    assert proof.assumes == assumes
    assert proof.witness is (d if relation == "exists" else None)


differing = shown(a, b, relation="!=")
matrix_of_x = make("matmul", (X, X))
TALL, WIDE = var("S", n, m), var("W", m, n)
lost = make("matmul", (TALL, WIDE), shape=(n, n))
inf_m = make("add", (A, spread(MINUS_INFINITY, n, n)), shape=(n, n))
y2 = var("y", n)
REFUSED: list[tuple[Any, str]] = [
    (Rewrite("magic", a, (), a), "no such rule"),
    (Reverse(differing), "a part is not an equation"),
    (Chain((ab, shown(b, c, relation=">"))), "a part is not an equation"),
    (Chain(()), "it is empty"),
    (Chain((ab, shown(a, b))), "a link does not start where the last one ended"),
    (Chain((ab, shown(b, X))), "the shapes differ"),
    (over(nowhere), "it may have no value"),
    (over(index("z", ZERO)), "it may have no value"),
    (Chain((shown(a, b), shown(b, nowhere), shown(nowhere, c))), "it may have no value"),
    (Inside(a, (), a), "a variable has no arguments"),
    (Inside(i, ((0, shown(n, n)),), i), "a variable has no arguments"),
    (Inside(mul(a, b), ((2, ab),), a), "no such argument"),
    (Inside(mul(a, b), ((-2, ab),), a), "no such argument"),
    (Inside(of_i, ((1, shown(of_i.args[1], a)),), a), "a binder's body"),
    (Inside(first, ((2, shown(first.args[2], a)),), a), "a binder's body"),
    (Inside(mul(a, b), ((1, ab),), a), "not that argument"),
    (Inside(mul(a, b), ((0, differing),), a), "a part is not an equation"),
    (Under(mul(a, b), (), ab, a), "wrong number of bound indices"),
    (Under(of_i, (at, y), under_part, of_j), "wrong number of bound indices"),
    (Under(first, (t,), step, second), "wrong number of bound indices"),
    (Under(of_i, (var("j", below=n),), under_part, of_j), "'var' does not fit"),
    (Under(of_i, (k,), shown(entry(X, k), b), of_j), "does not range over the axis"),
    (Under(of_i, (u,), shown(entry(X, u), b), of_j), "does not range over the axis"),
    (Under(first, (t, y2), step, second), "not any array of the state's shape"),
    (Under(first, (t, q), step, second), "not any array of the state's shape"),
    (Under(first, (t, i), step, second), "not any array of the state's shape"),
    (Under(stack(BELOW, t, y, y), (t, y), shown(y, y), a), "a state may be infinite"),
    (Under(of_i, (j,), shown(entry(X, j), b), of_j), "the index is not arbitrary"),
    (Under(first, (index("t", L), y), step, second), "the index is not arbitrary"),
    (Under(first, (t, x1), shown(mul(x1, b), b), second), "the index is not arbitrary"),
    (Under(total(i, mul(i, at)), (at,), shown(mul(at, at), b), of_j), "the index is not arbitrary"),
    (Under(of_i, (at,), shown(entry(Y, at), b), of_j), "not its body"),
    (Under(of_i, (at,), shown(entry(X, at), b, relation="!="), of_j), "a part is not an equation"),
    (Cases(X, a, (("whole",),), (shown(entry(X, i0), a),)), "cases: the shapes differ"),
    (Cases(X, Y, (), (shown(entry(X, i0), a),)), "not a cover for every axis"),
    (Cases(X, Y, (("whole",), ("whole",)), (shown(entry(X, i0), a),)), "not a cover for every"),
    (Cases(X, Y, (("whole",),), ()), "not one equation for each case"),
    (Cases(X, Y, (("whole",),), (under_part, under_part)), "not one equation for each case"),
    (Cases(X, Y, (("whole",),), (shown(entry(X, at_x), entry(Y, at_x)),)), "not the entries"),
    (Cases(X, Y, (("whole",),), (shown(entry(X, i), entry(Y, i)),)), "not the entries"),
    (Cases(X, Y, (("whole",),), (shown(entry(Y, i0), entry(Y, i0)),)), "not the entries"),
    (Cases(X, Y, (("whole",),), (shown(entry(X, i0), entry(X, i0)),)), "not the entries"),
    (
        Cases(X, Y, (("whole",),), (shown(entry(X, i0), entry(Y, i0), relation="!="),)),
        "a part is not an equation",
    ),
    (induction(left=a), "not two stacks of one depth"),
    (induction(right=a), "not two stacks of one depth"),
    (induction(left=of_i, right=of_i), "not two stacks of one depth"),
    (induction(right=stack(a, index("t", n), y, mul(b, y))), "not two stacks of one depth"),
    (induction(context=q, hole=q), "not a variable of the stack"),
    (induction(context=X, hole=X), "not a variable of the stack"),
    (induction(left=stack(BELOW, t, y, mul(y, b))), "a state may be infinite"),
    (induction(right=stack(BELOW, t, y, mul(b, y))), "a state may be infinite"),
    (induction(layer=index("t", n)), "layer and state are not arbitrary"),
    (induction(layer=var("t", kind="natural")), "layer and state are not arbitrary"),
    (induction(layer=var("t", n, kind="permutation", below=L)), "are not arbitrary"),
    (induction(state=q), "not a variable of the stack"),
    (induction(state=y2), "not a variable of the stack"),
    (induction(layer=index("t", L)), "layer and state are not arbitrary"),
    (induction(state=var("y")), "layer and state are not arbitrary"),
    (induction(left=stack(y, t, x1, mul(x1, b)), base=shown(y, a)), "are not arbitrary"),
    (
        induction(left=stack(a, t, x1, add(y, x1)), step=shown(add(y, y), mul(b, y))),
        "are not arbitrary",
    ),
    (induction(right=stack(y, t, x1, mul(b, x1)), base=shown(a, y)), "are not arbitrary"),
    (
        induction(
            right=add(y, second),
            context=add(y, x0),
            base=shown(a, add(y, a)),
            step=shown(mul(add(y, y), b), add(y, mul(b, y))),
        ),
        "are not arbitrary",
    ),
    (induction(right=add(t, second), context=add(t, x0)), "are not arbitrary"),
    (induction(base=shown(b, a)), "not the base case"),
    (induction(base=shown(a, b)), "not the base case"),
    (induction(base=shown(a, a, relation=">=")), "a part is not an equation"),
    (induction(step=shown(mul(y, c), mul(b, y))), "not the step"),
    (induction(step=shown(mul(y, b), mul(c, y))), "not the step"),
    (induction(right=second, context=add(x0, a)), "does not have the form of the context"),
    (induction(right=add(second, a, b), context=add(x0, a)), "not have the form of the context"),
    (induction(right=mul(second, a), context=add(x0, a)), "not have the form of the context"),
    (induction(right=add(a, b), context=add(a, b)), "the context has no hole"),
    (witness(relation="exists", part=shown(a, b, relation="exists")), "not a relation"),
    (witness(relation="<", part=shown(add(a, b), add(a, b), relation="<")), "not a relation"),
    (witness(relation="!="), "it shows ="),
    (witness(relation=">", part=shown(add(a, b), add(a, b), relation=">=")), "it shows >="),
    (witness(relation=">="), "it shows ="),
    (witness(free_of=(add(a, b),)), "not variables"),
    (witness(free_of=(q, space)), "not variables"),
    (witness(free_of=(q, a)), "it depends on a variable that it must not contain"),
    (witness(variable=q), "only an array of any real numbers"),
    (witness(variable=i), "only an array of any real numbers"),
    (witness(variable=var("x0", kind="natural")), "only an array of any real numbers"),
    (witness(value=BELOW), "only an array of any real numbers"),
    (witness(value=mul(x0, b)), "it depends on itself"),
    (witness(value=X), "not the required shape"),
    (
        witness(
            value=mul(nowhere, ZERO), claim=(mul(x0, b), b), part=shown(mul(nowhere, ZERO, b), b)
        ),
        "it may have no value",
    ),
    (witness(claim=(add(x0, c), add(a, b))), "not the claim"),
    (witness(claim=(add(x0, b), add(a, c))), "not the claim"),
    (Assume(a, b, make("equal", (a, b))), "not a law"),
    (Assume(b, b, told, ()), "not one value for each variable"),
    (Assume(b, b, told, (b, b)), "not one value for each variable"),
    (Assume(a, b, law(a, b), (c,)), "not one value for each variable"),
    (Assume(mul(X, ONE), X, told, (X,)), "not a real value of the shape"),
    (Assume(mul(BELOW, ONE), BELOW, told, (BELOW,)), "not a real value of the shape"),
    (Assume(a, X, x_law, (a,)), "not a real value of the shape"),
    (Assume(mul(a, ONE), a, of_u, (a,)), "not a natural value of the shape"),
    (
        Assume(mul(less_one(u), ONE), less_one(u), of_u, (less_one(u),)),
        "not a natural value of the shape",
    ),
    (Assume(a, b, told, (make("bound", data=0),)), "not a real value of the shape"),
    (Assume(c, b, law(a, b)), "not the law"),
    (Assume(a, c, law(a, b)), "not the law"),
    (Assume(mul(b, ONE), c, told, (b,)), "not the law"),
    (Lemma(shown(c, q, H), shown(a, b, relation=">=")), "it is not an equation"),
    (Lemma(shown(c, q), shown(mul(x0, ONE), x0, ("equal", law(x0, a))), (x0,)), "not arbitrary"),
    (Lemma(shown(c, q, H, relation=">"), ab), "only equations rest on it"),
    (Lemma(shown(c, q), shown(a, nowhere)), "it may have no value"),
    (Lemma(shown(c, q), shown(nowhere, a)), "it may have no value"),
    (natural(variable=var("r", kind="real")), "not a natural number"),
    (natural(variable=n), "not a natural number"),
    (natural(variable=index("natural", n)), "not a natural number"),
    (natural(variable=make("size", data=("u", "natural"))), "not a natural number"),
    (natural(right=X), "natural induction: the shapes differ"),
    (natural(variables=(u,)), "the number may not be a further variable"),
    (natural(left=mul(index("low", u), u)), "ranges below the number"),
    (natural(right=mul(index("low", u), u)), "ranges below the number"),
    (natural(base=shown(ZERO, ZERO, relation="!=")), "a part is not an equation"),
    (natural(step=shown(ZERO, ZERO, relation="!=")), "a part is not an equation"),
    (
        natural(base=shown(ZERO, ZERO, relation="!="), step=shown(ZERO, ZERO, relation="!=")),
        "a part is not an equation",
    ),
    (natural(base=shown(ONE, ZERO)), "not the base case"),
    (natural(base=shown(mul(ZERO, ONE), ONE)), "not the base case"),
    (natural(step=shown(u, next_u)), "not the step"),
    (natural(step=shown(mul(next_u, ONE), u)), "not the step"),
    (natural(base=shown(mul(ZERO, ONE), ZERO, ("nonzero", u))), "it is not arbitrary"),
    (natural(step=shown(mul(next_u, ONE), next_u, ("nonzero", u))), "it is not arbitrary"),
    (
        natural(
            variables=(v,),
            base=shown(mul(ZERO, ONE), ZERO, ("nonzero", v)),
            step=shown(mul(next_u, ONE), next_u, ("equal", law(mul(u, ONE), u, (v,)))),
        ),
        "it is not arbitrary",
    ),
    (SumOfSquares(X, A, shown(a, ZERO)), "not two finite arrays"),
    (SumOfSquares(X, spread(MINUS_INFINITY, n), shown(a, ZERO)), "not two finite arrays"),
    (SumOfSquares(spread(MINUS_INFINITY, n), X, shown(a, ZERO)), "not two finite arrays"),
    (SumOfSquares(X, Y, shown(squares(X, P), ZERO)), "not Σ"),
    (SumOfSquares(X, Y, shown(squares(X, Y), a)), "not Σ"),
    (SumOfSquares(X, Y, shown(squares(X, Y), ZERO, relation=">=")), "a part is not an equation"),
    (
        SumOfSquares(
            var("x", less_one(less_one(n))), var("z", less_one(less_one(n))), shown(a, ZERO)
        ),
        "the number of entries may be negative",
    ),
    (
        SumOfSquares(var("x", n, num_ := less_one(less_one(n))), var("z", n, num_), shown(a, ZERO)),
        "the number of entries may be negative",
    ),
    (LeftInverse(EYE, EYE, shown(EYE, EYE)), "not B A = 1"),
    (LeftInverse(a, EYE, shown(a, EYE)), "not A B = 1"),
    (LeftInverse(BA, EYE, shown(AB, A)), "not A B = 1"),
    (LeftInverse(lost, EYE, shown(lost, EYE)), "not A B = 1"),
    (LeftInverse(a, EYE, shown(matrix_of_x, EYE)), "not A B = 1"),
    (LeftInverse(BA, EYE, shown(make("matmul", (inf_m, B), shape=(n, n)), EYE)), "not A B = 1"),
    (LeftInverse(BA, EYE, shown(make("matmul", (A, inf_m), shape=(n, n)), EYE)), "not A B = 1"),
    (LeftInverse(AB, EYE, shown(AB, EYE)), "not B A = 1"),
    (
        LeftInverse(by_tiny, by_tiny, shown(by_tiny, make("eye", (tiny,), shape=(tiny, tiny)))),
        "the number of rows may be negative",
    ),
    (LeftInverse(BA, A, shown(AB, EYE)), "not B A = 1"),
    (LeftInverse(BA, EYE, shown(AB, EYE, relation=">=")), "a part is not an equation"),
    (apart(part=shown(a, b, relation=">=")), "a part is not an equation"),
    (apart(apart=shown(add(a, minus(b)), q, relation=">=")), "a part is not an equation"),
    (
        apart(part=shown(a, b, relation=">="), apart=shown(add(a, minus(b)), q, relation=">=")),
        "a part is not an equation",
    ),
    (apart(a, X), "differ: the shapes differ"),
    (apart(part=shown(X, Y)), "not two finite numbers"),
    (apart(part=shown(BELOW, b)), "not two finite numbers"),
    (apart(part=shown(a, BELOW)), "not two finite numbers"),
    (apart(apart=shown(add(b, minus(a)), q)), "not the difference"),
    (apart(apart=shown(add(a, minus(b)), c)), "its form does not show"),
    (apart(part=shown(nowhere, b), apart=shown(add(nowhere, minus(b)), q)), "no value"),
    (apart(part=shown(a, nowhere), apart=shown(add(a, minus(nowhere)), q)), "no value"),
    (apart(apart=shown(add(a, minus(b)), mul(q, add(nowhere, ONE)))), "no value"),
    (sign_of(P), "not one equation for each case"),
    (
        sign_of(P, shown(entry(P, at_p), q), shown(entry(P, at_p), q)),
        "not one equation for each case",
    ),
    (sign_of(P, shown(entry(P, at_p), q, relation=">")), "a part is not an equation"),
    (sign_of(P, shown(entry(X, at_p), q)), "not the entry of that case"),
    (sign_of(P, shown(entry(P, at_p), mul(q, add(ONE, nowhere)))), "it may have no value"),
    (sign_of(P, shown(entry(P, i0), q)), "not the entry of that case"),
    (sign_of(P, shown(entry(P, at_p), a)), "does not show its sign"),
    (
        Sign(
            P,
            (("whole",),),
            (shown(entry(P, at_p), entry(Y, at_p)),),
            ((SignStep("positive", entry(Y, at_p)),),),
        ),
        "it mentions an open index",
    ),
]


@pytest.mark.parametrize(("d", "words"), REFUSED)
def test_a_condition_that_is_broken_is_named(d: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        followed(d)


def test_nothing_is_assumed_of_what_is_open() -> None:
    for opened in (i0, t, y):
        for assumed in (("equal", law(opened, a)), ("nonzero", add(opened, ONE)), ("positive", b)):
            for relation in ("=", ">"):
                if opened in free(assumed[1]):
                    with pytest.raises(Refused, match="it mentions an open index"):
                        shown(a, b, assumed, H, relation=relation)
                else:
                    assert shown(a, b, assumed, H, relation=relation).assumes == {assumed, H}


def test_no_statement_speaks_of_what_is_open() -> None:
    for opened in (at, y):
        side = add(opened, ONE)
        proof = followed(Reflexive(side))
        with pytest.raises(Refused, match="it mentions an open index"):
            close(proof, frozenset(), ("=", side, side))
    some = followed(witness(variable=y, claim=(add(y, b), add(a, b))))
    with pytest.raises(Refused, match="it mentions an open index"):
        close(some, frozenset({H}), ("exists", add(y, b), add(a, b), y, (q,), "="))


def test_what_a_derivation_says_is_compared_with_what_is_shown() -> None:
    moved = Rewrite("ring", add(a, b), (add(b, a),), add(b, a))
    assert replay(moved).right is add(b, a)
    with pytest.raises(Refused, match="shows something else"):
        replay(Rewrite("ring", add(a, b), (add(b, a),), add(a, b)))
    with pytest.raises(Refused, match="shows something else"):
        replay(Inside(add(a, b), ((0, Reflexive(a)),), add(b, a)))
    with pytest.raises(Refused, match="not a derivation: Proof"):
        replay(ab)
    with pytest.raises(Refused, match="bound outside"):
        replay(Reflexive(make("bound", data=0)))


def test_laws_are_of_variables_that_may_have_any_value() -> None:
    assert law(a, b, (a,)) is make("assumed equal", (bind(a, a), bind(b, a)), (("real", ()),))
    assert law(u, X, (u, X)).data == (("natural", ()), ("real", (n,)))
    for wrong in (
        (a, a),
        (q,),
        (a, q),
        (i,),
        (e,),
        (n,),
        (var("d", kind="nonnegative"), a),
        (make("size", data=("x", "real")),),
    ):
        with pytest.raises(Refused, match="variables that may have any value"):
            law(a, b, wrong)
    with pytest.raises(Refused, match="variables that may have any value"):
        law(a, b, (var("x", kind="real", below=n),))


claim_w = (add(x0, b), add(a, b))
exists = ("exists", *claim_w, x0, (q,), "=")


def test_what_is_closed_is_what_was_claimed_and_granted() -> None:
    equal, some = followed(Reverse(shown(b, a, H))), followed(witness())
    more = followed(sign_of(P, shown(entry(P, at_p), q)))
    granted = more.assumes
    assert close(equal, frozenset({H}), ("=", a, b)) is equal
    assert close(some, frozenset({H}), exists) is some
    assert close(more, granted, (">", P, ZERO)) is more
    assert close(more, granted, (">=", P, ZERO)) is more
    for proof, claimed in (
        (equal, ("=", b, a)),
        (equal, ("!=", a, b)),
        (equal, (">=", a, b)),
        (more, ("=", P, ZERO)),
        (some, ("=", add(a, b), add(a, b))),
        (some, (*exists[:-1], "!=")),
        (some, (*exists[:4], (), "=")),
        (some, ("exists", *claim_w, x1, (q,), "=")),
        (followed(sign_of(X, shown(entry(X, at_x), var("d", kind="nonnegative")))), (">", X, ZERO)),
    ):
        with pytest.raises(Refused, match="shows something else"):
            close(proof, frozenset({H}) | granted, claimed)
    for proof, claimed in ((equal, ("=", a, b)), (more, (">", P, ZERO)), (some, exists)):
        with pytest.raises(Refused, match="not granted"):
            close(proof, frozenset({NEG}), claimed)
    object.__setattr__(equal, "right", c)
    with pytest.raises(Refused, match="not made by replay"):
        close(equal, frozenset({H}), ("=", a, c))
    forged = object.__new__(Proof)
    for name in ("relation", "left", "right", "assumes", "witness"):
        object.__setattr__(forged, name, getattr(some, name))
    with pytest.raises(Refused, match="not made by replay"):
        close(forged, frozenset({H}), exists)


OUT = entry(X, less_one(less_one(n)))
"""An entry before the first one, where n is 1."""


@pytest.mark.parametrize(
    ("proof", "claimed"),
    [
        (shown(OUT, a), ("=", OUT, a)),
        (shown(a, OUT), ("=", a, OUT)),
        (shown(a, b, ("equal", law(OUT, c))), ("=", a, b)),
        (shown(a, b, ("equal", law(c, OUT))), ("=", a, b)),
        (shown(a, b, ("equal", law(mul(x0, OUT), c, (x0,)))), ("=", a, b)),
        (shown(a, b, ("nonzero", OUT)), ("=", a, b)),
        (
            followed(witness(value=OUT, claim=(mul(x0, ZERO), a), part=shown(mul(OUT, ZERO), a))),
            ("exists", mul(x0, ZERO), a, x0, (q,), "="),
        ),
        (
            followed(witness(claim=(mul(x0, OUT), a), part=shown(mul(a, OUT), a))),
            ("exists", mul(x0, OUT), a, x0, (q,), "="),
        ),
    ],
)
def test_every_place_that_a_proof_speaks_of_is_inside(
    proof: Proof, claimed: tuple[object, ...]
) -> None:
    with pytest.raises(Refused, match="outside of its axis"):
        close(proof, proof.assumes, claimed)


def test_a_proof_is_made_by_the_kernel_alone() -> None:
    with pytest.raises(Refused, match="not by hand"):
        Proof(object(), "=", a, b)
    with pytest.raises(Refused, match="cannot be subclassed"):
        type("Mine", (Proof,), {})
    with pytest.raises(Refused, match="cannot be changed"):
        ab.right = c
