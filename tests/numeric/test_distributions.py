"""Each input distribution has the property it is named for, whatever the statement."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attnproof.numeric.check import UNCHANGED, measure
from attnproof.numeric.distribution_changes import read_as
from attnproof.numeric.distributions import DISTRIBUTIONS, UnknownDistribution, distributions_named
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import real
from attnproof.theorems.definitions.attention import attention, column_self_attention
from tests.numeric.distributed_statements import (
    ALL,
    CAUSAL,
    MASKED,
    NO_TOKENS,
    SCORES,
    SELF,
    SUMS,
    drawn_in,
)
from tests.numeric.statements import ATTENTION, PAIRS, d, ell, n, stated


def scores(values: Any) -> Any:
    return values["Q"] @ values["K"].mT / math.sqrt(values["Q"].shape[-1])


def top(values: Any) -> Any:
    """The largest weight of each row."""
    return torch.softmax(scores(values), -1).amax(-1)


def few(values: Any) -> Any:
    """The three largest weights of each row together."""
    return torch.softmax(scores(values), -1).topk(3).values.sum(-1)


def distinct(rows: Any) -> int:
    return len(rows.unique(dim=0))


@pytest.mark.parametrize("scale", ["small", "default"])
def test_each_distribution_has_the_property_it_is_named_for(scale: str) -> None:
    found = drawn_in(PAIRS, scale)
    assert tuple(found) == ALL
    normal = found["normal"]
    q, k, v = (normal[name] for name in "QKV")
    shifted = found["shifted"]["V"]
    assert shifted.mean(0).abs().mean() > 10 * shifted.std(0).mean()
    assert torch.allclose((shifted - v).std(0), torch.zeros(v.shape[1]).double(), atol=1e-9)
    assert scores(found["peaked"]).std() > 2 * scores(normal).std()
    assert float((few(found["peaked"]) > 0.9).double().mean()) > 0.5
    assert float((top(found["needle"]) > 0.9).double().mean()) > 0.9
    assert len(scores(found["needle"]).argmax(-1).unique()) == 1
    assert distinct(found["needle"]["K"]) == len(k)
    assert scores(found["large"]).std() >= 50
    assert 2 <= distinct(found["clustered"]["K"]) < len(k) / 2
    assert distinct(found["clustered"]["V"]) == len(v)
    assert [distinct(found["constant"][name]) for name in "QKV"] == [1, 1, 1]
    structured = found["structured"]
    assert distinct(structured["K"]) == 2
    assert structured["V"].unique().tolist() == [-1, 1]
    assert distinct(torch.cat((structured["K"], structured["V"]), 1)) == 2
    assert torch.equal(structured["Q"], q)


def test_tokens_that_are_queries_keys_and_values_at_once() -> None:
    found = drawn_in(SELF)
    assert tuple(found) == ALL
    x = {name: values["X"] for name, values in found.items()}
    assert torch.allclose(x["large"], 10 * x["normal"])
    assert distinct(x["structured"]) == 2
    assert torch.equal(x["structured"].unique(dim=0).sum(0), torch.zeros(x["normal"].shape[1]))
    assert distinct(x["clustered"]) == 3
    assert distinct(x["constant"]) == 1
    assert all(torch.equal(values["W"], found["normal"]["W"]) for values in found.values())


def test_what_attention_reads_is_found_in_any_term() -> None:
    def roles(statement: Any) -> Any:
        return {
            k: (v.axis, "".join(sorted(x[0] for x in v.roles)))
            for k, v in read_as(statement).items()
        }

    plain = {"Q": (0, "q"), "K": (0, "k"), "V": (0, "v")}
    assert roles(PAIRS) == roles(MASKED) == plain
    assert roles(SELF) == roles(CAUSAL) == {"X": (0, "kqv")}
    assert roles(SCORES) == {"S": (1, "s")}
    assert roles(SUMS) == {"X": (0, "")}
    assert roles(NO_TOKENS) == {}
    columns = stated(
        {"X": real(d, n), "A": real(ell, d)},
        lambda X, A: equal(column_self_attention(X, A, A, A), column_self_attention(X, A, A, A)),
    )
    assert roles(columns) == {"X": (1, "kqv")}

    def by_hand(Q: Any, K: Any, V: Any) -> Any:
        weights = xp.exp(Q @ K.mT)
        return weights @ V / xp.sum(weights, axis=-1, keepdims=True)

    three = {k: ATTENTION[k] for k in "QKV"}
    written = stated(three, lambda Q, K, V: equal(by_hand(Q, K, V), attention(Q, K, V)))
    assert roles(written) == plain


def test_a_distribution_that_changes_nothing_is_not_tried() -> None:
    assert tuple(drawn_in(SCORES)) == tuple(name for name in ALL if name != "shifted")
    assert "peaked" not in drawn_in(SUMS)
    assert tuple(drawn_in(NO_TOKENS)) == ("normal",)
    (m,) = measure(NO_TOKENS, scale="small", dtypes=["float32"])
    assert m.distributions == ("normal",)
    (m,) = measure(NO_TOKENS, scale="small", dtypes=["float32"], distributions=["needle"])
    assert (m.status, m.reason) == ("skipped", UNCHANGED)


def test_probabilities_are_not_for_equal_entries() -> None:
    values = drawn_in(PAIRS)
    for name, distribution in DISTRIBUTIONS.items():
        repeated = any(distinct(values[name][x]) < len(values[name][x]) for x in "QK")
        assert distribution.continuous == (not repeated and name != "needle"), name


def test_unknown_distributions_are_refused_by_name() -> None:
    told = (
        r"wanted an input distribution \(normal, shifted, .*structured\), got 'needel'; or 'auto'"
    )
    with pytest.raises(UnknownDistribution, match=told):
        measure(PAIRS, scale="small", distributions=["normal", "needel"])
    with pytest.raises(
        ValueError, match=r"wanted an input distribution \(normal, .*\) or 'auto', got none"
    ):
        distributions_named([])


def test_distributions_may_still_be_given_as_designs_and_it_is_said() -> None:
    with pytest.warns(DeprecationWarning, match="designs= is now called distributions=") as told:
        found = measure(PAIRS, scale="small", dtypes=["float32"], designs=["shifted"])
    assert {m.distributions for m in found} == {("shifted",)}
    assert [warning.filename for warning in told] == [__file__]


def test_an_explicit_list_is_run_at_the_scale() -> None:
    (m,) = measure(
        PAIRS, dtypes=["float32"], implementations=["eager"], distributions=["clustered", "shifted"]
    )
    assert set(m.distributions) == {"clustered", "shifted"}
    assert max(m.sizes.values()) == 4_096
