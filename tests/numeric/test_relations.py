"""Order and difference in numbers: what holds, what is violated, what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnproof.numeric import measurement
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.check import RARELY_EQUAL, measure
from attnproof.numeric.profile import profile_of
from attnproof.numeric.reading import RowReading
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import scale_named, sizes_of
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Law, at_least, differ, equal, for_all, greater
from attnproof.symbolic.givens import (
    Given,
    function,
    index_below,
    natural,
    nonnegative,
    positive,
    probability_space,
    real,
    standard,
)
from attnproof.symbolic.statement import Statement
from tests.numeric.statements import CPU, d, n, stated

X: dict[str, Given] = {"x": real(n), "y": real(n)}
NATURALS: dict[str, Given] = {"a": natural(), "b": natural()}


def found(given: Any, body: Any, expected: str = "proved") -> Any:
    """The status and the reason in each dtype, and the margin at which it was violated."""
    measured = measure(stated(given, body), scale="small", device="cpu", expected=expected)
    return {m.dtype: (m.status, m.reason, m.ratio) for m in measured}


def statuses(given: Any, body: Any, expected: str = "proved") -> set[str]:
    return {status for status, _, _ in found(given, body, expected).values()}


def test_what_is_at_least_holds() -> None:
    for body in (
        lambda x, y: at_least(x * x + y * y, 2 * x * y),
        lambda x, y: at_least(x * x + y * y + 1, 2 * x * y),
        lambda x, y: at_least(x - y + y, x),
    ):
        assert statuses(X, body) == {"held"}
    assert statuses({"t": nonnegative(n)}, lambda t: at_least(t, 0)) == {"held"}


def test_held_says_whether_it_is_certain() -> None:
    sure = found(X, lambda x, y: greater(x * x + y * y + 1, 2 * x * y))
    assert all("above the rounding bound" in reason for _, reason, _ in sure.values())
    at_most = found(X, lambda x, y: at_least(x - y + y, x))
    assert all("not contradicted" in reason for _, reason, _ in at_most.values())


@pytest.mark.parametrize("relation", [at_least, greater])
def test_what_is_false_is_violated_beyond_rounding(relation: Any) -> None:
    for dtype, (status, reason, margin) in found(
        X, lambda x, y: relation(x * x, y + 1), "refuted"
    ).items():
        assert status == "violated", dtype
        assert margin > 4
        assert "left − right is -" in reason


def test_an_inequality_that_rarely_fails_is_drawn_again() -> None:
    seldom = found({"x": real()}, lambda x: at_least(x, -1), "refuted")
    assert {status for status, _, _ in seldom.values()} == {"violated"}
    assert statuses({"x": real()}, lambda x: at_least(x, -1)) == {"held"}
    never = found({"x": positive()}, lambda x: at_least(x, 0), "refuted")
    assert all(s == "skipped" and "held in 16 draws" in why for s, why, _ in never.values())


def test_equal_numbers_are_not_greater_and_too_close_to_tell() -> None:
    for dtype, (status, reason, _) in found(X, lambda x, y: greater(x + y, y + x)).items():
        assert (status, "too close to tell" in reason) == ("skipped", True), dtype
    assert statuses(NATURALS, lambda a, b: greater(a, a + 0 * b)) == {"violated"}


def test_arrays_that_differ_in_one_entry_differ() -> None:
    def body(x: Any, i: Any) -> Any:
        moved = xp.where(xp.arange(n) == i, x + 1, x)
        return differ(moved, x, moved[i], ("", x[i]), 1)

    assert statuses({"x": real(n), "i": index_below(n)}, body) == {"held"}


def test_equal_arrays_never_are_held_to_differ() -> None:
    close = found(X, lambda x, y: differ(x + y, y + x, x[0], ("", y[0]), 1), "refuted")
    assert all(s == "skipped" and "too close" in why for s, why, _ in close.values())
    exact = found(NATURALS, lambda a, b: differ(a + b, b + a, 1), "refuted")
    assert {status for status, _, _ in exact.values()} == {"violated"}


def test_a_draw_does_not_show_that_numbers_are_equal_somewhere() -> None:
    said = found(NATURALS, lambda a, b: differ(a, b), "refuted")  # noqa: PLW0108
    assert {(status, why) for status, why, _ in said.values()} == {("skipped", RARELY_EQUAL)}


def test_some_rows_do_not_show_that_arrays_are_equal() -> None:
    arithmetic = Arithmetic(profile_of(torch.float64, CPU))
    one = torch.ones(3, dtype=torch.float64)
    bounds = (arithmetic.exact(one), arithmetic.exact(one))
    assert measurement.compared("!=", (one, one), bounds, every_entry=True).status == "violated"
    assert measurement.compared("!=", (one, one), bounds, every_entry=False).status == "skipped"


def test_a_side_that_is_not_its_own_definition_is_violated() -> None:
    arithmetic = Arithmetic(profile_of(torch.float64, CPU))
    one = torch.ones(3, dtype=torch.float64)
    bounds = (arithmetic.exact(one + 1), arithmetic.exact(one))
    for wrong in (
        measurement.compared(">=", (one + 3, one), bounds),
        measurement.compared("!=", (one + 3, one), bounds, every_entry=True),
    ):
        assert wrong.status == "violated"
        assert "the left side is not the value of its definition" in wrong.reason
    lost = measurement.compared(">", (one / 0, one), bounds)
    assert lost.status == "non-finite"


def test_further_variables_are_drawn() -> None:
    f = function(0)

    def body(shift: int) -> Any:
        def said(x: Any, f: Any) -> Any:
            law: Law = for_all(
                {"k": natural(), "x": real(d)}, lambda k, x: equal(f(k * x), f(x * k + shift))
            )
            return {"of a number": law.claim, "of itself": equal(x + 0, x + shift)}

        return said

    given = {"x": real(n), "f": f}
    true = measure(stated(given, body(0)), scale="small", device="cpu")
    assert {m.status for m in true if m.dtype != "bfloat16"} == {"held"}
    assert {m.says for m in true} == {"of a number", "of itself"}
    assert {(m.says, *m.sizes) for m in true} == {("of a number", "n", "d"), ("of itself", "n")}
    false = measure(stated(given, body(1)), scale="small", device="cpu")
    assert {m.status for m in false if m.dtype != "bfloat16"} == {"violated"}


def test_a_variable_of_the_name_of_a_given_is_another_number() -> None:
    """x is positive by its hypothesis, and the x of the claim may be negative."""
    given: dict[str, Given] = {"x": real(n)}
    x = real(n).named("x")
    law = for_all({"x": real(n)}, lambda x: at_least(x, 0))
    statement = Statement(given, {"": law.claim}, (), (Law(at_least(x, 1)),))
    said = measure(statement, scale="small", device="cpu")
    assert {m.status for m in said} == {"violated"}
    own = Statement(given, {"": at_least(x, 0)}, (), (Law(at_least(x, 1)),))
    assert {m.status for m in measure(own, scale="small", device="cpu")} == {"held"}


# Random numbers with given moments, and means over finitely many equally likely outcomes.


omega, psi = probability_space("Ω"), probability_space("Ψ")
MOMENTS = {"z": standard(omega, d), "w": standard(psi, d), "mu": real(), "sigma": nonnegative()}


def moments(of_product: Any) -> Any:
    def body(z: Any, w: Any, mu: Any, sigma: Any) -> Any:
        product = (mu + sigma * z) @ (mu + sigma * w).mT
        centred = (product - d * mu**2) ** 2
        variance = xp.sum(xp.sum(centred, axis=0), axis=0)
        return {
            "mean": equal(xp.sum(xp.sum(product, axis=0), axis=0), d * mu**2),
            "variance": equal(variance, of_product(mu, sigma)),
        }

    return stated(MOMENTS, body)


def test_the_variance_of_a_dot_product() -> None:
    right = moments(lambda mu, sigma: d * (sigma**4 + 2 * mu**2 * sigma**2))
    for scale in ("small", "default"):
        said = measure(right, scale=scale, device="cpu")
        assert {m.status for m in said} == {"held"}
    printed = moments(lambda _, sigma: d * sigma**4)
    wrong = [m for m in measure(printed, scale="small") if m.says == "variance"]
    assert {m.status for m in wrong} == {"violated"}
    assert len({said[0].sizes[name] for name in "dΩΨ"}) == 3


def test_random_numbers_have_their_moments() -> None:
    told = stated({"z": standard(omega, d)}, lambda z: equal(z, z))
    scale = scale_named("small")
    lengths = sizes_of(told, scale)
    assert lengths["Ω"] > 2 * lengths["d"]
    found = draw(told, lengths, scale, 0)
    z = found.values["z"]
    assert float(z.mean(0).abs().max()) < 1e-14
    assert float((z.mT @ z / len(z) - torch.eye(z.shape[1])).abs().max()) < 1e-14
    assert float(z.abs().std()) > 0.1
    assert found.in_dtype(torch.bfloat16, CPU)["z"].dtype == torch.float64
    radius = found.with_radii(Arithmetic(profile_of(torch.float32, CPU)), CPU)["z"].error()
    assert 0 < float(radius.max()) < 1e-11


def test_a_mean_over_outcomes_is_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowReading, "averaged", lambda _, total, __: total)
    said = measure(moments(lambda mu, s: d * (s**4 + 2 * mu**2 * s**2)), scale="small")
    assert {m.status for m in said} == {"violated"}


def test_a_logarithm_of_what_underflows_contradicts_no_order() -> None:
    said = found(X, lambda x, y: at_least(xp.log(xp.exp(-5000 * x * x)) + 0 * y, -5000 * x * x))
    assert {status for status, _, _ in said.values()} == {"non-finite"}
