"""A fault planted in each rule: the sound kernel refuses what it lets through, and numbers tell.

Each line of the table (``faults.py``) breaks one rule and names a step that only the broken rule
takes.  The kernel as it is must refuse the step, the broken one must take it (so the fault is
real), and the two sides of the step must differ in numbers, by which the suite would notice.
"""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import Rewrite
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.terms import Term, make
from tests.symbolic.faults import FAULTS, F, Fault
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.vocabulary import granted_by_kind

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
