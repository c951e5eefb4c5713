"""What the kernel shows by each rule, and what that rests on.

The parts of a derivation are given as what they show, so that a part may show anything; what is
sound says exactly what is shown and assumed.  What breaks a condition is in
``test_kernel_refusals``.
"""

from __future__ import annotations

from typing import Any

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
    Sign,
    SumOfSquares,
    Under,
    Witness,
)
from attnproof.symbolic.kernel import Assumption, Proof, law, squares
from attnproof.symbolic.rules.base import Refusing
from attnproof.symbolic.scalars import MINUS_INFINITY, ONE, ZERO, add, entry, index, integer, mul
from attnproof.symbolic.terms import Term, bind, make, substitute
from tests.cases import each
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
    i,
    j,
    less_one,
    minus,
    n,
    outcome,
    q,
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
    rule = kernel._REPLAY[type(d)]
    with Refusing(rule.__name__[1:].replace("_", " ")):
        proof: Proof = rule(d, lambda part: part)
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
        "inner": second,
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


@each(SOUND)
def test_what_is_shown_and_what_it_rests_on(
    d: Any, relation: str, left: Term, right: Term, assumes: set[Assumption]
) -> None:
    proof = followed(d)
    assert (proof.relation, proof.left, proof.right) == (relation, left, right)
    assert proof.assumes == assumes
    assert proof.witness is (d if relation == "exists" else None)
