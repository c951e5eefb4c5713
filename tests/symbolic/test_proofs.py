"""Only the kernel makes a proof, and it closes only on what it shows."""

from __future__ import annotations

import copy
import pickle

import pytest

from attnproof.symbolic.derivation import Reflexive
from attnproof.symbolic.kernel import Assumption, Proof, Refused, close, replay
from attnproof.symbolic.normal_form.equations import chain, reverse, rewrite
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, mul, power
from tests.symbolic.vocabulary import a, b, i, inverse, m, s, var

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
