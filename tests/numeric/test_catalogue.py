"""Every theorem of the catalogue in numbers at small sizes, its twin with the opposite verdict."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import pytest

from attnproof import theorems
from attnproof.numeric.check import measure
from attnproof.numeric.measurement import Measurement
from attnproof.symbolic.givens import positive, real, sizes
from attnproof.symbolic.statement import Statement, Theorem, equal
from attnproof.theorems.definitions.attention import attention


def catalogue() -> list[Theorem]:
    found = []
    for module in walk_packages(theorems.__path__, "attnproof.theorems."):
        if not module.ispkg and ".definitions." not in module.name:
            values = vars(import_module(module.name)).values()
            found += [value for value in values if isinstance(value, Theorem)]
    return found


def verdict(statement: Statement) -> str:
    """refuted if some claim is violated in every dtype with enough digits, proved if all hold."""
    found = measure(statement, scale="small", device="cpu")
    fine = [m for m in found if m.dtype != "bfloat16"]
    assert fine
    assert not [m for m in found if m.status == "non-finite"]
    assert not [m for m in fine if m.status == "skipped" and "do not fit" not in m.reason]
    told = [m for m in fine if m.status != "skipped"]
    if all(m.status == "held" for m in told):
        assert all(m.status in ("held", "skipped") for m in found)
        return "proved"
    assert all(margin(m) > 4 for m in told if m.status == "violated")
    said = {m.says for m in told if m.status == "violated"}
    assert all(m.status == "violated" for m in told if m.says in said)
    return "refuted"


def margin(measurement: Measurement) -> float:
    """How many times its tolerance an error is."""
    return measurement.ratio


@pytest.mark.parametrize("theorem", catalogue(), ids=lambda theorem: theorem.id)
def test_numbers_agree_and_refuse_the_twin(theorem: Theorem) -> None:
    opposite = {"proved": "refuted", "refuted": "proved"}[theorem.expected]
    assert verdict(theorem.statement) == theorem.expected
    assert verdict(theorem.twin) == opposite


def test_what_is_computed_before_attention_is_in_the_bound() -> None:
    """The sums K + b and Q / t are rounded too before any kernel sees them."""
    r, n = sizes("r n", "tokens")
    ell, d = sizes("ell d", "features")
    given = {
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "b": real(ell), "t": positive(),
    }  # fmt: skip
    Q, K, V, b, t = (g.named(name) for name, g in given.items())
    claims = {
        "a key bias cancels": equal(attention(Q, K + b[None, :], V), attention(Q, K, V)),
        "temperature": equal(attention(Q / t, K, V), attention(Q, K / t, V)),
    }
    for seed in range(5):
        found = measure(Statement(given, claims), scale="small", device="cpu", seed=seed)
        assert {m.status for m in found} <= {"held", "skipped"}
        assert {m.dtype for m in found if m.status == "held"} >= {"float64", "float32"}
