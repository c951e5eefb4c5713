"""Each input distribution has the property it is named for, whatever the statement."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnproof.numeric.check import (
    OVERFLOWED,
    UNCHANGED,
    UNDERFLOWED,
    measure,
    merged,
    ratio_of,
    tasks_of,
)
from attnproof.numeric.distribution_changes import attention_inputs
from attnproof.numeric.distributions import DISTRIBUTIONS, UnknownDistribution, distributions_named
from attnproof.numeric.results import MeasuredEvidence, PolicyRecord
from attnproof.numeric.scale import SCALES, scale_named
from attnproof.numeric.task import drawn
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import all_positive, at_least, equal
from attnproof.symbolic.givens import boolean, permutation, positive, real
from attnproof.theorems.definitions.attention import (
    attention,
    biased_attention,
    causal_self_attention,
    column_self_attention,
    masked_attention,
    multi_head,
    self_attention,
    softmax,
)
from tests.numeric.statements import (
    ATTENTION,
    CPU,
    PAIRS,
    ROTARY,
    attend,
    d,
    ell,
    n,
    planted,
    r,
    stated,
)


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
            for k, v in attention_inputs(statement).items()
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


def test_an_explicit_list_is_run_at_the_scale() -> None:
    (m,) = measure(
        PAIRS, dtypes=["float32"], implementations=["eager"], distributions=["clustered", "shifted"]
    )
    assert set(m.distributions) == {"clustered", "shifted"}
    assert max(m.sizes.values()) == 4_096


# Statements that input distributions act on, and their values in each distribution.


ALL = tuple(DISTRIBUTIONS)
LOW = ["float32", "bfloat16", "float16"]
EVERY = ["float64", *LOW]
TOKENS = {"X": real(n, ell), "W": real(ell, ell), "U": real(ell, ell), "s": permutation(n)}
SELF = stated(
    TOKENS, lambda X, W, U, s: equal(self_attention(X[s], W, U, W), self_attention(X, W, U, W)[s])
)
CAUSAL = stated(
    {k: TOKENS[k] for k in "XWU"},
    lambda X, W, U: equal(causal_self_attention(X, W, U, U)[:1], (X @ U)[:1]),
)
MASKED = stated(
    ATTENTION | {"M": boolean(r, n)},
    lambda Q, K, V, sigma, M: equal(
        masked_attention(Q, K[sigma], V[sigma], M[:, sigma]), masked_attention(Q, K, V, M)
    ),
)
SCORES = stated(
    {"S": real(r, n), "s": permutation(n)}, lambda S, s: equal(softmax(S[:, s]), softmax(S)[:, s])
)
SUMS = stated(
    {"X": real(n, d), "s": permutation(n)},
    lambda X, s: equal(xp.sum(X[s], axis=0), xp.sum(X, axis=0)),
)
NO_TOKENS = stated({"A": real(d, d)}, lambda A: equal(A + A, 2 * A))


HONEST = {
    "attention": PAIRS,
    "self-attention": SELF,
    "causal": CAUSAL,
    "masked": MASKED,
    "softmax": SCORES,
    "sums": SUMS,
    "rotary": ROTARY,
    "several heads": stated(
        {"X": real(n, d), "A": real(2, d, ell), "B": real(2, ell, d), "s": permutation(n)},
        lambda X, A, B, s: equal(multi_head(X[s], A, A, A, B), multi_head(X, A, A, A, B)[s]),
    ),
    "bias": stated(
        ATTENTION | {"b": real(r, 1)},
        lambda Q, K, V, sigma, b: equal(
            biased_attention(Q, K, V, b + 0 * (Q @ K[sigma].mT)), attention(Q, K, V)
        ),
    ),
}


def drawn_in(statement: Any, scale: str = "small") -> dict[str, Any]:
    """The values in each distribution that applies, by its name."""
    base = drawn(statement, scale_named(scale), CPU, 0)
    tasks = tasks_of(base, list(DISTRIBUTIONS.values()))
    return {task.scale.distribution.name: task.sample(0).values for task in tasks}


# A fault that only some input distributions show is reported with them; honest code is not.


@pytest.mark.parametrize("name", HONEST)
def test_true_statements_hold_in_every_distribution_and_dtype(name: str) -> None:
    found = measure(HONEST[name], scale="small", dtypes=EVERY)
    assert {m.status for m in found} <= {"held", "skipped"}
    wide = [m for m in found if m.dtype == "float32" and m.status == "held"]
    tried = drawn_in(HONEST[name])
    assert wide
    for m in wide:
        assert m.distribution == "normal"
        assert len(m.distributions) >= 4
        assert all(
            distribution in m.distributions or distribution in m.reason for distribution in tried
        )


def test_float64_is_measured_in_the_normal_distribution_unless_it_is_alone() -> None:
    both = measure(PAIRS, scale="small", dtypes=["float64", "float32"], implementations=["eager"])
    assert [m.distributions for m in both] == [("normal",), ALL]
    (alone,) = measure(PAIRS, scale="small", dtypes=["float64"], implementations=["eager"])
    assert alone.distributions == ALL


def weights(q: Any, k: Any) -> Any:
    return q @ k.mT / math.sqrt(q.shape[-1])


def no_maximum(q: Any, k: Any, v: Any) -> Any:
    w = torch.exp(weights(q, k))
    return (w / w.sum(-1, keepdim=True)) @ v


def outlying_key_dropped(q: Any, k: Any, v: Any) -> Any:
    keep = k.norm(dim=-1) < 3 * k.norm(dim=-1).median()
    return attend(q, k[keep], v[keep])


def equal_keys_once(q: Any, k: Any, v: Any) -> Any:
    first = [j for j in range(len(k)) if not any(torch.equal(k[i], k[j]) for i in range(j))]
    return attend(q, k[first], v[first])


def divided_by_the_spread_of_keys(q: Any, k: Any, v: Any) -> Any:
    spread = (k - k[:1]).abs().max()
    return attend(q, (k - k[:1]) / spread * spread, v)


def summed_key_by_key(q: Any, k: Any, v: Any) -> Any:
    w = torch.softmax(weights(q.float(), k.float()), -1).to(v.dtype)
    total = torch.zeros(len(q), v.shape[-1], dtype=v.dtype)
    for j in range(len(k)):
        total = total + w[:, j, None] * v[j]
    return total


ONLY = {
    "no maximum subtracted": (no_maximum, {"large"}),
    "values above 16 cut off": (lambda q, k, v: attend(q, k, v.clamp(-16, 16)), {"shifted"}),
    "outlying key dropped": (outlying_key_dropped, {"needle"}),
    "equal keys counted once": (equal_keys_once, {"clustered", "structured"}),
    "divided by the spread of keys": (divided_by_the_spread_of_keys, {"constant"}),
    "scores above 15 cut off": (
        lambda q, k, v: torch.softmax(weights(q, k).clamp(max=15), -1) @ v,
        {"peaked", "needle", "large"},
    ),
}


@pytest.mark.parametrize("fault", ONLY)
def test_a_fault_that_some_distributions_show_is_told_with_the_distribution(fault: str) -> None:
    compute, shown_by = ONLY[fault]
    for seed in range(2):
        code: Any = {"implementations": [planted(compute)], "dtypes": ["float32"], "seed": seed}
        (m,) = measure(PAIRS, scale="small", **code)
        assert m.status in ("violated", "non-finite")
        assert m.distribution in shown_by
        assert m.distributions == ALL
        assert ratio_of(m) > 1
        (quiet,) = measure(PAIRS, scale="small", distributions=["normal"], **code)
        assert (quiet.status, quiet.distributions) == ("held", ("normal",))
        for distribution in shown_by:
            (alone,) = measure(PAIRS, scale="small", distributions=[distribution], **code)
            assert (alone.status, alone.distribution) == (m.status, distribution)


def test_a_mask_that_is_not_low_enough_shows_in_large_scores() -> None:
    def low(q: Any, k: Any, v: Any, keep: Any) -> Any:
        return torch.softmax(weights(q, k) + torch.where(keep, 0.0, -300.0).to(q.dtype), -1) @ v

    code = planted(attend)
    masked = replace(
        code,
        replaced={"masked_attention": replace(code.replaced["attention"], compute=low)},
        bounds={"masked_attention": code.bounds["attention"]},
    )
    (m,) = measure(MASKED, scale="small", dtypes=["float32"], implementations=[masked], seed=1)
    assert (m.status, m.distribution) == ("violated", "large")


def test_sums_in_low_precision_show_most_in_shifted_values(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = SCALES["small"].lengths | {"tokens": (600, 500, 400, 300)}
    monkeypatch.setitem(SCALES, "small", replace(SCALES["small"], lengths=lengths))
    low, code = ["bfloat16"], [planted(summed_key_by_key)]
    (normal,) = measure(
        PAIRS, scale="small", dtypes=low, implementations=code, distributions=["normal"]
    )
    (m,) = measure(
        PAIRS, scale="small", dtypes=low, implementations=code, distributions=["normal", "shifted"]
    )
    assert (m.status, m.distribution, m.distributions) == (
        "violated",
        "shifted",
        ("normal", "shifted"),
    )
    assert m.sizes["n"] > 300
    assert ratio_of(m) > 3 * ratio_of(normal)


def test_a_number_that_overflows_in_the_definition_too_says_nothing() -> None:
    def unscaled(X: Any, s: Any) -> Any:
        def over(x: Any) -> Any:
            return xp.exp(x) / xp.sum(xp.exp(x), axis=0, keepdims=True)

        return equal(over(X[s]), over(X)[s])

    statement = stated({"X": real(n, d), "s": permutation(n)}, unscaled)
    (m,) = measure(statement, scale="small", dtypes=["float32"], implementations=["eager"])
    assert (m.status, m.distribution) == ("held", "normal")
    assert f"large: {OVERFLOWED}" in m.reason
    assert "large" not in m.distributions


def test_a_weight_that_becomes_zero_in_the_definition_too_says_nothing() -> None:
    statement = stated({"S": real(r, n)}, lambda S: all_positive(softmax(S)))
    (m,) = measure(statement, scale="small", dtypes=["float32"], implementations=["eager"])
    assert (m.status, m.reason.endswith(f"large: {UNDERFLOWED}")) == ("held", True)
    below = stated({"S": real(r, n)}, lambda S: all_positive(softmax(S) - 2.0**-20))
    (m,) = measure(below, scale="small", dtypes=["float32"], distributions=["large"])
    assert m.status == "violated"


def test_scores_beyond_every_dtype_stop_no_bound() -> None:
    statement = stated(
        {"X": real(d, n), "A": real(ell, d), "s": permutation(n)},
        lambda X, A, s: equal(
            column_self_attention(X[:, s], A, A, A), column_self_attention(X, A, A, A)[:, s]
        ),
    )
    for m in measure(statement, scale="small", dtypes=LOW):
        assert m.status in ("held", "skipped")


def test_what_overflows_in_between_is_not_known_afterwards() -> None:
    """A variance beyond float16 makes a quotient 0, which is a number and wrong."""
    statement = stated(
        {"X": real(n, d), "t": positive()},
        lambda X, t: equal(X / xp.sum(X * X) * t, (X * t) / xp.sum(X * X)),
    )
    (m,) = measure(statement, scale="small", dtypes=["float16"], implementations=["eager"])
    assert m.status == "held"
    assert "large" not in m.distributions


def test_what_is_false_is_violated_in_the_normal_distribution_or_in_another() -> None:
    wrong = stated(
        ATTENTION, lambda Q, K, V, sigma: equal(attention(Q, K, V[sigma]), attention(Q, K, V))
    )
    for m in measure(wrong, scale="small", expected="refuted"):
        assert (m.status, m.distribution, m.distributions) == ("violated", "normal", ("normal",))
    below = stated({"X": real(n, d)}, lambda X: at_least(20, X))
    for m in measure(below, scale="small", dtypes=["float32"], expected="refuted"):
        assert (m.status, m.distribution) == ("violated", "shifted")
    true = stated({"X": real(n, d)}, lambda X: at_least(X * X, 0))
    for m in measure(true, scale="small", dtypes=["float32"], expected="refuted"):
        assert m.status == "skipped"


def test_the_worst_policy_of_the_worst_distribution_speaks() -> None:
    (m,) = measure(PAIRS, scale="small", dtypes=["float32"], implementations=["eager"])
    one = replace(m, distribution="normal", status="held", error=0.5, tolerance=1.0, policies=())
    z = PolicyRecord("residual", "violated", 3.0, "scale")
    odd = replace(one, distribution="peaked", status="violated", error=0.1, policies=(z,))
    worst = replace(odd, distribution="needle", policies=(replace(z, ratio=4.0),))
    silent = replace(one, distribution="large", status="skipped", reason="too coarse")
    said = merged([one, odd, worst, silent], first_stands=True)
    assert (said.distribution, said.status) == ("needle", "violated")
    assert said.distributions == ("normal", "peaked", "needle")
    assert said.reason.endswith("large: too coarse")
    more = replace(one, distribution="peaked", error=0.9)
    assert merged([one, more], first_stands=True).distribution == "normal"
    assert merged([one, more], first_stands=False).distribution == "peaked"
    assert isinstance(merged([silent], first_stands=True), MeasuredEvidence)
