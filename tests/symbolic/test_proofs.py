"""Only the kernel makes a proof, and it closes only on what it shows."""

from __future__ import annotations

import copy
import pickle

import pytest

from attnproof.symbolic.derivation import Inside, Reflexive, Reverse, Rewrite
from attnproof.symbolic.kernel import Assumption, Proof, Refused, close, law, replay
from attnproof.symbolic.normal_form.equations import chain, reverse, rewrite
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, mul, power
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
from tests.symbolic.vocabulary import P, X, a, b, c, e, i, inverse, less_one, m, n, q, s, u, var

TRUE = ("=", a, a)


def test_what_is_true_is_proved() -> None:
    t, expanded = mul(a, add(a, b)), add(mul(b, a), power(a, 2))
    proof = replay(rewrite("ring", t, expanded))
    assert (proof.relation, proof.assumes) == ("=", frozenset())
    assert close(proof, frozenset(), ("=", t, expanded)) is proof


def test_a_proof_is_not_made_by_hand() -> None:
    with pytest.raises(Refused, match="not by hand"):
        Proof(object(), "=", ZERO, ONE)
    with pytest.raises(Refused, match="cannot be subclassed"):
        type("Easier", (Proof,), {"__init__": object.__init__})


@pytest.mark.parametrize("field", ["relation", "left", "right", "assumes", "witness"])
def test_a_proof_is_not_changed(field: str) -> None:
    proof = replay(Reflexive(a))
    with pytest.raises(Refused, match="cannot be changed"):
        setattr(proof, field, ONE)
    object.__setattr__(proof, field, ONE)
    with pytest.raises(Refused, match="not made by replay"):
        close(proof, frozenset(), TRUE)


def test_an_empty_proof_filled_by_force_is_refused() -> None:
    proof = object.__new__(Proof)
    for field in ("relation", "left", "right", "assumes", "witness"):
        object.__setattr__(proof, field, getattr(replay(Reflexive(a)), field))
    with pytest.raises(Refused, match="not made by replay"):
        close(proof, frozenset(), TRUE)


def test_a_proof_is_not_copied_or_pickled() -> None:
    proof = replay(Reflexive(a))
    with pytest.raises((Refused, TypeError)):
        copy.copy(proof)
    with pytest.raises((Refused, TypeError)):
        copy.deepcopy(proof)
    with pytest.raises((Refused, TypeError)):
        pickle.loads(pickle.dumps(proof))


def test_a_proof_of_something_else_is_not_what_is_claimed() -> None:
    proof = replay(Reflexive(a))
    for claimed in (("=", a, b), (">", a, a), (">=", a, a), ("exists", a, a, b, ()), ("=", a)):
        with pytest.raises(Refused, match="something else"):
            close(proof, frozenset(), claimed)


def test_assumptions_spread_and_must_be_granted() -> None:
    t = entry(s, entry(inverse, i))
    moved = rewrite("permutation", t)
    used: frozenset[Assumption] = frozenset({("permutation", s)})
    proof = replay(chain(moved, reverse(moved), moved))
    assert proof.assumes == used
    claimed = ("=", t, moved.right)
    assert close(proof, used | {("injective", s)}, claimed) is proof
    other = var("s", m, kind="permutation", below=m)
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset({("permutation", other), ("injective", s)}), claimed)


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
