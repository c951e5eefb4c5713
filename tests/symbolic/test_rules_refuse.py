"""What every rule must refuse: each line would be false, or would rest on nothing."""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import Rewrite
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.rule_refusals import NUMBERS
from tests.symbolic.rule_refusals_of_sums import NOT_GRANTED, SUMS, F
from tests.symbolic.vocabulary import granted_by_kind

REFUSED = NUMBERS + SUMS


def test_every_rule_is_seen_to_refuse() -> None:
    always = {"image", "equivariance", "exchange"}
    assert {rule for rule, _, _ in REFUSED} | always == set(RULES)


@each(REFUSED)
def test_a_rule_refuses(rule: str, t: Term, arguments: tuple[object, ...]) -> None:
    with pytest.raises(Refused):
        RULES[rule](t, *arguments)


@pytest.mark.parametrize(("rule", "t", "arguments"), NOT_GRANTED)
def test_an_assumption_of_nobody_closes_nothing(
    rule: str, t: Term, arguments: tuple[object, ...]
) -> None:
    after, _ = RULES[rule](t, *arguments)
    proof = replay(Rewrite(rule, t, arguments, after))
    granted = granted_by_kind(t, after) | {("equivariant", make("function", data=F))}
    with pytest.raises(Refused, match="not granted"):
        close(proof, granted, ("=", t, after))
