"""A fault that only some input distributions show is reported with them; honest code is not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnproof.numeric.check import OVERFLOWED, UNDERFLOWED, measure, merged, ratio_of
from attnproof.numeric.measurement import Judged, Measurement
from attnproof.numeric.scale import SCALES
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import all_positive, at_least, equal
from attnproof.symbolic.givens import permutation, positive, real
from attnproof.theorems.definitions.attention import attention, column_self_attention, softmax
from tests.numeric.distributed_statements import ALL, EVERY, HONEST, LOW, MASKED, drawn_in
from tests.numeric.statements import ATTENTION, PAIRS, attend, d, ell, n, planted, r, stated


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


def test_sums_in_low_precision_show_most_in_shifted_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    one = replace(m, distribution="normal", status="held", error=0.5, tolerance=1.0, judged=())
    z = Judged("residual", "violated", 3.0, "scale")
    odd = replace(one, distribution="peaked", status="violated", error=0.1, judged=(z,))
    worst = replace(odd, distribution="needle", judged=(replace(z, ratio=4.0),))
    silent = replace(one, distribution="large", status="skipped", reason="too coarse")
    said = merged([one, odd, worst, silent], first_stands=True)
    assert (said.distribution, said.status) == ("needle", "violated")
    assert said.distributions == ("normal", "peaked", "needle")
    assert said.reason.endswith("large: too coarse")
    more = replace(one, distribution="peaked", error=0.9)
    assert merged([one, more], first_stands=True).distribution == "normal"
    assert merged([one, more], first_stands=False).distribution == "peaked"
    assert isinstance(merged([silent], first_stands=True), Measurement)
