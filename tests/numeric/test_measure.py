"""What a measurement says, of which claims, and what is skipped or refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attnproof.numeric.check import ReadingError, measure
from attnproof.numeric.devices import devices
from attnproof.numeric.implementations import DoesNotFit, implementations_on
from attnproof.numeric.results import MeasuredEvidence, as_float
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import all_positive, equal, exists
from attnproof.symbolic.givens import (
    angle,
    boolean,
    frequencies,
    function,
    index_below,
    orthogonal,
    permutation,
    positions,
    real,
)
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention, masked_attention, softmax
from attnproof.theorems.definitions.positions import sine_only, sinusoidal
from attnproof.theorems.definitions.rotary import block_rotation
from tests.numeric.statements import (
    ATTENTION,
    CPU,
    PAIRS,
    B,
    attend,
    d,
    ell,
    n,
    planted,
    r,
    stated,
    statuses,
)


def test_what_a_result_says() -> None:
    names = {m.implementation for m in measure(PAIRS, scale="small", device="cpu")}
    assert names == {
        "eager",
        "torch.nn.MultiheadAttention",
        "scaled_dot_product_attention (flash)",
        "scaled_dot_product_attention (math)",
    }
    (m,) = measure(PAIRS, scale="small", dtypes=["float32"], implementations=["eager"], seed=3)
    assert (m.device, m.dtype, m.seed, m.sampled) == (m.device, "float32", 3, "every entry")
    assert m.sizes == {"n": 13, "r": 11, "ell": 8, "d": 6}
    assert 0 < as_float(m.tolerance) < 1e-4
    assert 0 <= m.ratio <= 1
    assert len(m.worst) == 2
    assert m.rounding.startswith("float32: stored at 2^-24")
    assert m == MeasuredEvidence(**{f: getattr(m, f) for f in m.__dataclass_fields__})


def test_false_statements_are_violated() -> None:
    keys_alone = stated(
        ATTENTION, lambda Q, K, V, sigma: equal(attention(Q, K[sigma], V), attention(Q, K, V))
    )
    for m in measure(keys_alone, scale="small"):
        assert m.status == "violated"
        assert m.ratio > 4


def test_the_backend_asked_for_is_the_one_that_runs() -> None:
    from torch.profiler import profile

    for name, kernel in (("flash", "flash_attention"), ("math", "_attention_math")):
        with profile() as seen:
            measure(
                PAIRS,
                scale="small",
                device="cpu",
                dtypes=["float32"],
                implementations=[f"scaled_dot_product_attention ({name})"],
            )
        ran = {event.name for event in seen.events() if "scaled_dot_product" in event.name}
        assert any(kernel in event for event in ran), ran


def test_masks_reach_every_implementation() -> None:
    masked = stated(
        ATTENTION | {"M": boolean(r, n)},
        lambda Q, K, V, sigma, M: equal(
            masked_attention(Q, K[sigma], V[sigma], M[:, sigma]), masked_attention(Q, K, V, M)
        ),
    )
    found_ = measure(masked, scale="small", device="cpu", dtypes=["float64", "float32"])
    assert len(found_) == 8
    assert {m.status for m in found_} == {"held"}


def test_not_a_number_is_its_own_status() -> None:
    (m,) = measure(
        PAIRS,
        scale="small",
        dtypes=["float32"],
        implementations=[planted(lambda q, k, v: attend(q, k, v) * math.nan)],
    )
    assert m.status == "non-finite"
    assert m.error == "non-finite"
    assert "not a number" in m.reason


def test_what_does_not_fit_is_skipped_and_stops_nothing() -> None:
    def refuse(*_: Any) -> Any:
        raise DoesNotFit("widths of 8 are not taken")

    def broken(*_: Any) -> Any:
        raise RuntimeError("kernel launch failed")

    found_ = measure(
        PAIRS,
        scale="small",
        dtypes=["float32"],
        implementations=[planted(refuse), planted(broken), "eager"],
    )
    assert [m.status for m in found_] == ["skipped", "skipped", "held"]
    assert found_[0].reason == "widths of 8 are not taken"
    assert "RuntimeError: kernel launch failed" in found_[1].reason
    wide = stated(
        ATTENTION | {"K": real(n, d), "Q": real(r, d), "V": real(n, ell)},
        lambda Q, K, V, sigma: equal(attention(Q, K[sigma], V[sigma]), attention(Q, K, V)),
    )
    (m,) = [
        m
        for m in measure(wide, scale="small", device="cpu", dtypes=["float32"])
        if "Multihead" in m.implementation
    ]
    assert (m.status == "skipped" and "do not fit" in m.reason) == (m.sizes["ell"] > m.sizes["d"])


def test_a_reading_that_fails_names_itself_and_keeps_the_rest() -> None:
    def typo(*_: Any) -> Any:
        return dict[str, Any]()["no such key"]

    with pytest.raises(ReadingError, match=r"planted, torch.float32: KeyError") as told:
        measure(PAIRS, scale="small", dtypes=["float32"], implementations=[planted(typo), "eager"])
    assert [m.implementation for m in told.value.measurements] == ["eager"]


def test_names_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="'flesh' was asked for; on cpu there are eager"):
        measure(PAIRS, device="cpu", implementations=["flesh"])
    absent = "cuda" if "cuda" not in devices() else "mps"
    with pytest.raises(ValueError, match=f"device '{absent}' was asked for"):
        measure(PAIRS, device=absent)
    assert {i.name for i in implementations_on(CPU)} >= {"eager", "torch.nn.MultiheadAttention"}


def test_a_limit_is_told() -> None:
    found_ = measure(PAIRS, scale="small", limit_seconds=0.0)
    assert {m.status for m in found_} == {"skipped"}
    assert "limit" in found_[0].reason


def test_orthogonal_matrices_and_assumptions() -> None:
    held = stated(
        ATTENTION | {"g": orthogonal(ell)},
        lambda Q, K, V, g, **_: equal(attention(Q @ g, K @ g, V), attention(Q, K, V)),
    )
    assert set(statuses(measure(held, scale="small")).values()) == {"held"}
    givens = {"X": real(n, d), "a": index_below(n), "b": index_below(n)}
    X, a, b = (g.named(k) for k, g in givens.items())
    same = Statement(givens, {"": equal(softmax(X)[a], softmax(X)[b])}, ((X[a].term, X[b].term),))
    other = Statement(givens, same.claims)
    assert {m.status for m in measure(same, scale="small")} == {"held"}
    assert {m.status for m in measure(other, scale="small")} == {"violated"}
    odd = Statement(givens, same.claims, (((X * X).term, (X * X + 1).term),))
    (skipped,) = measure(odd, scale="small")
    assert skipped.status == "skipped"
    assert skipped.reason.startswith("cannot draw values with X·X = X·X + 1")


def test_positivity() -> None:
    scores = {"S": real(r, n)}
    for m in measure(stated(scores, lambda S: all_positive(softmax(S))), scale="small"):
        assert m.status == "held"
        assert "least entry" in m.reason
    for m in measure(stated(scores, lambda S: all_positive(softmax(S) - 0.01)), scale="small"):
        assert m.status == "violated"
        assert as_float(m.error) > 0


def test_existence_with_a_witness_and_by_least_squares() -> None:
    givens = {"p": positions(n), "k": positions(), "omega": frequencies(B)}

    def shifted(code: Any, width: Any, witness: Any = None) -> Any:
        def body(p: Any, k: Any, omega: Any) -> Any:
            return exists(
                real(width, width),
                "M",
                lambda M: equal(code(p + k, omega), code(p, omega) @ M.mT),
                witness=None if witness is None else witness(k, omega),
                free_of=(p,),
            )

        return stated(givens, body)

    right = shifted(sinusoidal, 2 * B, lambda k, omega: block_rotation(-k * omega))
    wrong = shifted(sinusoidal, 2 * B, lambda k, omega: block_rotation(k * omega))
    assert {m.status for m in measure(right, scale="small")} == {"held"}
    assert {m.status for m in measure(wrong, scale="small")} == {"violated"}
    for seed in range(5):
        (none,) = measure(shifted(sine_only, B), scale="small", seed=seed)
        (some,) = measure(shifted(sinusoidal, 2 * B), scale="small", seed=seed)
        assert none.status == "violated"
        assert none.ratio > 1e6
        assert some.status == "held", some
        assert none.implementation == "least squares"


def test_functions_keep_their_traits() -> None:
    def body(f: Any, X: Any, sigma: Any) -> Any:
        return equal(f(X[sigma]), f(X)[sigma])

    for traits, status in ((("equivariant",), "held"), ((), "violated")):
        givens = {
            "f": function(2, out=None, traits=traits),
            "X": real(n, d),
            "sigma": permutation(n),
        }
        assert {m.status for m in measure(stated(givens, body), scale="small")} == {status}


def test_a_function_without_traits_sees_the_order() -> None:
    def body(f: Any, X: Any, sigma: Any) -> Any:
        return equal(f(X[sigma]), f(X))

    givens = {"f": function(2), "X": real(n, d), "sigma": permutation(n)}
    assert {m.status for m in measure(stated(givens, body), scale="small")} == {"violated"}


def test_a_bound_as_large_as_the_values_says_nothing() -> None:
    givens = {"x": real(n)}
    lost = stated(givens, lambda x: equal((x + 1e6) + -1e6, x + 0))
    found_ = {m.dtype: m for m in measure(lost, scale="small")}
    assert (found_["float64"].status, found_["float32"].status) == ("held", "held")
    assert found_["bfloat16"].status == "skipped"
    assert "nothing could be told apart" in found_["bfloat16"].reason


def test_what_should_be_0_is_told_by_a_small_bound() -> None:
    """Beside 0 no bound is small; the values drawn are of the size of 1."""
    givens = {"x": real(n)}
    lost = stated(givens, lambda x: equal(((x + 1e6) + -1e6) - x, 0 * x))
    found_ = {m.dtype: m.status for m in measure(lost, scale="small")}
    assert found_ == {"float64": "held", "float32": "skipped", "bfloat16": "skipped"}
    wrong = stated(givens, lambda x: equal(((x + 1e6) + -1e6) - x, 0 * x + 0.01))
    assert measure(wrong, scale="small", dtypes=["float64"])[0].status == "violated"


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second = (measure(PAIRS, scale="small", seed=7) for _ in range(2))
    other = measure(PAIRS, scale="small", seed=8)
    key = [(m.error, m.tolerance, m.worst) for m in first]
    assert key == [(m.error, m.tolerance, m.worst) for m in second]
    assert key != [(m.error, m.tolerance, m.worst) for m in other]


def test_angles_compose() -> None:
    givens = {"a": angle(B), "b": angle(B)}
    held = stated(
        givens, lambda a, b: equal(block_rotation(a) @ block_rotation(b), block_rotation(a + b))
    )
    assert {m.status for m in measure(held, scale="small")} == {"held"}


def unscaled(factor: int) -> Statement:
    """Softmax of scores that are large, without a shift, in two orders of the keys."""
    givens = {"X": real(n, d), "s": permutation(n)}
    X, s = (given.named(name) for name, given in givens.items())

    def softmax(scores: object) -> object:
        weights = xp.exp(scores)
        return weights / xp.sum(weights, axis=0, keepdims=True)

    return Statement(givens, {"": equal(softmax(factor * X[s]), softmax(factor * X)[s])})  # type: ignore[index]


def test_tokens_that_overflow_are_drawn_again() -> None:
    (found,) = measure(unscaled(40), scale="small", device="cpu", dtypes=["float32"])
    assert found.status == "held"
    assert "overflowed" in found.reason


def test_tokens_that_do_not_overflow_are_not() -> None:
    (found,) = measure(
        unscaled(1), scale="small", device="cpu", dtypes=["float32"], distributions=["normal"]
    )
    assert (found.status, found.reason) == ("held", "")


def test_what_is_never_a_number_stays_a_failure() -> None:
    (found,) = measure(unscaled(4_000), scale="small", device="cpu", dtypes=["float32"])
    assert found.status == "non-finite"
