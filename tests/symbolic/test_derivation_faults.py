"""Without one of its conditions the kernel would prove something false, and the numbers tell."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from attnproof.symbolic import kernel
from attnproof.symbolic.kernel import Proof, replay
from attnproof.symbolic.rules import inequalities
from attnproof.symbolic.rules.base import Refused, need
from attnproof.symbolic.terms import Term
from tests.symbolic.derivation_faults import FAULTS, HARMLESS, Fault
from tests.symbolic.interpreter import Undefined, World, close_to

KINDS = ("assume", "law", "lemma", "natural induction", "sum of squares", "left inverse", "differ")


def a_world(seed: int, fault: Fault) -> World:
    world = World(seed, largest=3)
    sizes = {v.data[0]: x for v, x in fault.drawn.items() if v.op == "size"}
    arrays = {v: x for v, x in fault.drawn.items() if v.op == "var"}
    world.sizes |= sizes | {n.data[0]: 2 for v in arrays for n in v.shape}
    world.drawn |= arrays
    return world


def is_false(proof: Proof, fault: Fault) -> bool:
    """Whether what is proved fails in a world in which the assumptions hold."""
    for world in (a_world(seed, fault) for seed in range(20)):
        try:
            for _, told in proof.assumes:
                if fault.told and told.op == "assumed equal" and told.data is None:
                    assert close_to(world(told.args[0]), world(told.args[1]))
            if close_to(world(proof.left), world(proof.right)) != (proof.relation == "="):
                return True
        except Undefined:
            continue
    return False


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.says)
def test_a_condition_that_is_forgotten_is_noticed(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    derivation = fault.false()
    with pytest.raises(Refused, match=re.escape(fault.condition)):
        replay(derivation)

    forgotten = fault.condition.partition(": ")[2]

    def forgetful(condition: object, why: str, *terms: Term) -> None:
        if not why.startswith(forgotten):
            need(condition, why, *terms)

    for module in (kernel, inequalities):
        monkeypatch.setattr(module, "need", forgetful)
    proof = replay(derivation)
    assert is_false(proof, fault) or not fault.told


def conditions_in_the_kernel() -> set[str]:
    """``rule: why`` of every condition the kernel states, up to the first word it computes."""
    found = set()
    for rule in ast.parse(inspect.getsource(kernel)).body:
        for node in ast.walk(rule) if isinstance(rule, ast.FunctionDef) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                why = node.args[1]
                first = why.values[0] if isinstance(why, ast.JoinedStr) else why
                assert isinstance(rule, ast.FunctionDef)
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(f"{rule.name.strip('_').replace('_', ' ')}: {first.value}")
    return found


def test_every_condition_of_the_newer_derivations_has_a_fault() -> None:
    planted = [fault.condition for fault in FAULTS] + list(HARMLESS)
    ours = {c for c in conditions_in_the_kernel() if c.split(":")[0] in KINDS}
    assert len(ours) >= 25
    for condition in ours:
        assert any(condition.startswith(p) or p.startswith(condition) for p in planted), condition
    for condition in HARMLESS:
        assert any(condition.startswith(c) for c in ours), condition
