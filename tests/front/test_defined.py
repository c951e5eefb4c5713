"""The definitions that a record tells."""

from __future__ import annotations

import pytest

from attnproof.report.words import mathml
from attnproof.symbolic.claim import equal, for_all, iterate
from attnproof.symbolic.definition import DEFINITIONS
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.definitions_used import definitions
from attnproof.theorem_runs.records import DefinitionRecord
from attnproof.theorems.definitions.attention import attention, softmax

n, m = sizes("n m", "tokens")
l, d = sizes("l d", "features")


@pytest.fixture(scope="module")
def told() -> dict[str, DefinitionRecord]:
    found = definitions(s for entry in load_catalogue().entries for s in entry.statements)
    assert len({record.name for record in found}) == len(found)
    return {record.name: record for record in found}


def test_every_definition_of_the_catalogue_is_told(told: dict[str, DefinitionRecord]) -> None:
    assert {
        "softmax", "attention", "masked_attention", "biased_attention", "self_attention",
        "multi_head", "alibi", "rotation", "block_rotation", "rotate", "rotate_half",
        "to_half_split", "sinusoidal", "sine_only",
    } <= set(told)  # fmt: skip
    for name, record in told.items():
        mathml(record.formula.latex)
        assert record.formula.latex.startswith(DEFINITIONS[name].latex.partition("#")[0])
        assert record.words


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("attention", r"\frac{Q K^{\top}}{\sqrt{\ell}}"),
        ("biased_attention", r"\frac{Q K^{\top}}{\sqrt{\ell}} + B\right)\,V"),
        ("softmax", r"\frac{e^{S_{i j}}}{\sum_{k < n} e^{S_{i k}}}"),
        ("product", r" \cdot "),
        ("conjugate", r"Z^{*} = "),
        ("rotation", r"\cos a & -\sin a \\ \sin a & \cos a"),
        ("sinusoidal", r"\left[\sin(p_{i}\,\omega_{b})\right]_{i b}, \left[\cos(p_{i}"),
    ],
)
def test_what_must_be_read_off(told: dict[str, DefinitionRecord], name: str, wanted: str) -> None:
    assert wanted in told[name].formula.latex


def test_a_definition_stands_on_names_even_where_it_is_used_on_more() -> None:
    Q, K, V = real(m, l).named("Q"), real(n, l).named("K"), real(n, d).named("V")
    used = attention(Q + Q, K, V)
    found = definitions([Statement({}, {"": equal(used, used)})])
    assert [record.name for record in found] == ["softmax", "attention"]
    assert found[1].formula.latex.startswith(r"\operatorname{Att}(Q, K, V) = ")
    assert definitions([Statement({}, {"": equal(Q, Q)})]) == ()


def test_what_a_hypothesis_uses_is_told() -> None:
    X = real(n, n).named("X")
    law = for_all({"S": real(n, n)}, lambda S: equal(softmax(S), S))
    assert [d.name for d in definitions([Statement({}, {"": equal(X, X)}, (), (law,))])] == [
        "softmax"
    ]


def test_what_is_used_in_a_stack_alone_is_told() -> None:
    (L,) = sizes("L", "layers")
    X = real(n, n).named("X")
    stack = iterate(L, X, lambda _, Y: softmax(Y))
    (found,) = definitions([Statement({}, {"": equal(stack, stack)})])
    assert found.name == "softmax"
    assert found.formula.latex.startswith(r"\operatorname{softmax}(S) = ")
    mathml(found.formula.latex)
