"""Stacks of any depth and tables in numbers, and how many steps of them are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attnproof.numeric import run as steps
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.check import measure
from attnproof.numeric.profile import profile_of
from attnproof.numeric.row_selection import Rows
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import depths, scale_named
from attnproof.numeric.torch_reading import BoundReading, TorchReading
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal, iterate, rows
from attnproof.symbolic.givens import Given, natural, orthogonal, permutation, real, sizes
from tests.cases import each
from tests.numeric.statements import CPU, d, n, stated
from tests.symbolic.test_recurrences import CASES, SIZES, VALUES

(L,) = sizes("L", "layers")
RECURRENT = {"W": real(d, d), "X": real(n, d), "s": permutation(n)}


def power(M: Any, k: Any) -> Any:
    return iterate(k, xp.eye(M.shape[0]), lambda _, Y: M @ Y)


def last_state(W: Any, X: Any) -> Any:
    return iterate(n, xp.zeros(d), lambda t, h: xp.tanh(W @ h + X[t]))


def tensors() -> dict[str, Any]:
    told: dict[str, Any] = {k: v for k, v in VALUES.items() if k in "mk"}
    return told | {
        k: torch.tensor(v, dtype=torch.float64 if k in "MXz" else torch.int64)
        for k, v in VALUES.items()
        if k not in "mk"
    }


def bound_reading() -> BoundReading:
    profile = profile_of(torch.float64, CPU)
    numbers = Arithmetic(profile)
    values = {
        k: numbers.exact(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        for k, v in tensors().items()
    }
    return BoundReading(SIZES, values, numbers)


READINGS: dict[str, Any] = {
    "torch": lambda: TorchReading(SIZES, tensors(), torch.float64, CPU),
    "radii": bound_reading,
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", CASES)
def test_both_readings_give_the_value(name: str, reading: str) -> None:
    array, expected = CASES[name]
    found = READINGS[reading]()(array.term)
    assert (np.asarray(getattr(found, "value", found)) == np.asarray(expected)).all()


@each([name for name, (array, _) in CASES.items() if array.ndim])
def test_rows_of_tables_are_rows_of_the_whole(name: str) -> None:
    array, expected = CASES[name]
    places = torch.tensor([array.axes[0].op != "size" or 1, 0]).long()
    where = (Rows(places), *(None,) * (array.ndim - 1))
    found = READINGS["torch"]().read(array.term, where)
    assert (np.asarray(found) == np.asarray(expected)[places]).all()


POWERS: dict[str, Given] = {"M": orthogonal(d), "m": natural(), "k": natural()}


def powers_add(M: Any, m: Any, k: Any) -> Any:
    return equal(power(M, m + k), power(M, m) @ power(M, k))


def one_too_many(M: Any, m: Any, k: Any) -> Any:
    return equal(power(M, m + k), power(M, m) @ M @ power(M, k))


def test_powers_of_a_natural_depth() -> None:
    for scale in ("small", "default"):
        said = {m.dtype: m for m in measure(stated(POWERS, powers_add), scale=scale, device="cpu")}
        assert said["float64"].status == "held"
        assert "in steps, m = " in said["float64"].sampled
        wrong = {m.dtype: m for m in measure(stated(POWERS, one_too_many), scale=scale)}
        assert wrong["float64"].status == "violated"


def test_depths_are_small_and_other_natural_numbers_are_not() -> None:
    body = lambda m, k, M: equal(power(M, m) * k, power(M, m) * k)  # noqa: E731
    told = stated({"m": natural(), "k": natural(), "M": real(d, d)}, body)
    assert depths(told) == {"m"}
    scale = scale_named("default")
    drawn = [draw(told, {"d": 2}, scale, seed).values for seed in range(30)]
    assert all(2 <= values["m"] < 40 for values in drawn)
    assert max(values["k"] for values in drawn) > 1_000
    assert len({values["m"] for values in drawn}) > 5


def test_a_table_of_all_states_takes_as_many_steps_as_the_scale_has() -> None:
    def body(M: Any, x: Any) -> Any:
        return equal(
            rows(n, lambda j: power(M, j) @ x), rows(n, lambda j: iterate(j, x, lambda _, y: M @ y))
        )

    (said,) = measure(
        stated({"M": orthogonal(2), "x": real(2)}, body), device="cpu", dtypes=["float64"]
    )
    assert (said.status, said.sizes["n"]) == ("held", 1_024)
    assert said.sampled.startswith("64 of 1,024 places on axis 0")
    assert said.sampled.endswith("in steps, n = 1,024")


def test_fewer_steps_are_taken_where_rounding_would_hide_everything() -> None:
    """A recurrence that may forget nothing: worst-case bounds double with each token."""
    said = measure(
        stated(RECURRENT, lambda W, X, s: equal(last_state(W, X), last_state(W, X[s]))),
        device="cpu",
        dtypes=["float64"],
        expected="refuted",
    )
    assert [m.status for m in said] == ["violated"]
    assert 4 < said[0].sizes["n"] < 1_024
    assert f"in steps, n = {said[0].sizes['n']}" in said[0].sampled


def test_all_steps_would_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_is_informative", lambda *_: True)
    (said,) = measure(
        stated(RECURRENT, lambda W, X, s: equal(last_state(W, X), last_state(W, X[s]))),
        device="cpu",
        dtypes=["float64"],
        distributions=["normal"],
    )
    assert (said.status, said.sizes["n"]) == ("skipped", 1_024)


def test_values_that_would_leave_float32_are_not_reached() -> None:
    def body(x: Any) -> Any:
        grown = iterate(n, x, lambda _, y: 2 * y)
        return equal(grown + grown, 2 * grown)

    said = measure(stated({"x": real(3)}, body), device="cpu")
    assert {m.status for m in said} == {"held"}
    assert said[0].sizes["n"] == 64


def test_a_number_of_layers_is_left_as_it_is() -> None:
    body = lambda X, W: equal(iterate(L, X, lambda _, Y: Y @ W), X @ power(W, L))  # noqa: E731
    said = measure(stated({"X": real(n, d), "W": orthogonal(d)}, body), dtypes=["float32"])
    assert [(m.status, m.sizes["L"], m.sizes["n"]) for m in said] == [("held", 4, 4_096)]


def test_many_small_steps_take_one_thread_and_give_it_back() -> None:
    seen: list[int] = []
    before = torch.get_num_threads()
    original = TorchReading.op_iterate

    def watched(self: Any, t: Any) -> Any:
        seen.append(torch.get_num_threads())
        return original(self, t)

    def stack(depth: Any) -> Any:
        return stated({"x": real(3)}, lambda x: equal(iterate(depth, x, lambda _, y: y + x), x))

    try:
        torch.set_num_threads(2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TorchReading, "op_iterate", watched)
            measure(stack(n), device="cpu", dtypes=["float64"])
            assert set(seen) == {1, 2}  # 16 steps are few, and tried first
            seen.clear()
            measure(stack(L), device="cpu", dtypes=["float64"])
            assert set(seen) == {2}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
