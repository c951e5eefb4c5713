"""What a proof may claim in the end: nothing open, outside an axis, or not granted."""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import Inside, Reflexive, Reverse, Rewrite
from attnproof.symbolic.kernel import Proof, Refused, close, law, replay
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, mul
from attnproof.symbolic.terms import bind, free, make
from tests.symbolic.test_kernel_conditions import (
    NEG,
    H,
    ab,
    at,
    at_p,
    at_x,
    followed,
    i0,
    shown,
    sign_of,
    t,
    witness,
    x0,
    x1,
    y,
)
from tests.symbolic.vocabulary import P, X, a, b, c, e, i, less_one, n, q, u, var


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
