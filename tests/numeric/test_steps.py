"""Stacks of any depth, tables, natural numbers and expectations in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attnproof.numeric import norms, rounded, steps
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.check import measure
from attnproof.numeric.integers import Integers
from attnproof.numeric.profile import profile_of
from attnproof.numeric.reading import RowReading
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import depths, scale_named, sizes_of
from attnproof.numeric.torch_reading import BoundReading, TorchReading
from attnproof.numeric.walk import Rows
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal, iterate, rows
from attnproof.symbolic.givens import (
    Given,
    frequencies,
    index_map,
    inverse,
    natural,
    nonnegative,
    orthogonal,
    permutation,
    probability_space,
    real,
    sizes,
    standard,
)  # fmt: skip
from tests.numeric.statements import CPU, B, d, n, stated
from tests.symbolic.test_recurrences import CASES, SIZES, VALUES

omega, psi = probability_space("Ω"), probability_space("Ψ")
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
    return BoundReading(SIZES, values, profile)


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


@pytest.mark.parametrize("name", [name for name, (array, _) in CASES.items() if array.ndim])
def test_rows_of_tables_are_rows_of_the_whole(name: str) -> None:
    array, expected = CASES[name]
    places = torch.tensor([array.axes[0].op != "size" or 1, 0]).long()
    where = (Rows(places), *(None,) * (array.ndim - 1))
    found = READINGS["torch"]().read(array.term, where)
    assert (np.asarray(found) == np.asarray(expected)[places]).all()


def test_whole_numbers_stay_exact_where_a_dtype_has_few_digits() -> None:
    m: Any = natural().named("m")
    number = 123_456_789
    read = TorchReading({}, {"m": number}, torch.bfloat16, CPU)
    assert read((m // 1000 * 1000 + m % 1000).term) == number
    assert Integers({}, {"m": 7})((m // (m - 7) + m % (m - 7)).term) == 7  # x // 0 = 0, x % 0 = x
    x: Any = real(n).named("x")
    for wrong in (x // 2, x % 2, m // 2.5):
        reading = TorchReading({"n": 2}, {"x": torch.ones(2), "m": 3}, torch.float32, CPU)
        with pytest.raises(TypeError, match="no whole number"):
            reading(wrong.term)


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
        device="cpu", dtypes=["float64"], expected="refuted",
    )  # fmt: skip
    assert [m.status for m in said] == ["violated"]
    assert 4 < said[0].sizes["n"] < 1_024
    assert f"in steps, n = {said[0].sizes['n']}" in said[0].sampled


def test_all_steps_would_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_tells", lambda *_: True)
    (said,) = measure(
        stated(RECURRENT, lambda W, X, s: equal(last_state(W, X), last_state(W, X[s]))),
        device="cpu", dtypes=["float64"],
    )  # fmt: skip
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
    radius = found.with_radii(profile_of(torch.float32, CPU), CPU)["z"].error()
    assert 0 < float(radius.max()) < 1e-11


def test_a_mean_over_outcomes_is_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowReading, "averaged", lambda _, total, __: total)
    said = measure(moments(lambda mu, s: d * (s**4 + 2 * mu**2 * s**2)), scale="small")
    assert {m.status for m in said} == {"violated"}


def test_maps_and_their_inverses() -> None:
    given = {"s": permutation(n), "e": index_map(n, n), "X": real(n, d)}

    def body(s: Any, e: Any, X: Any) -> Any:
        return {
            "back": equal(X[s][inverse(s)], X),
            "forth": equal(X[inverse(s)][e], X[inverse(s)][e]),
        }

    assert {m.status for m in measure(stated(given, body), scale="small")} == {"held"}
    wrong = stated(given, lambda s, X, **_: equal(X[s][s], X))
    assert {m.status for m in measure(wrong, scale="small")} == {"violated"}


def test_positions_in_a_table() -> None:
    """The table of rows e^{imω}, m = 0, 1, ..: an index may be a number and a position."""
    body = lambda omega: equal(  # noqa: E731
        rows(n, lambda m: xp.cos(m * omega)), xp.cos(xp.arange(n)[:, None] * omega)
    )
    said = measure(stated({"omega": frequencies(B)}, body), device="cpu")
    assert {m.status for m in said} == {"held"}
    other = lambda omega: equal(  # noqa: E731
        rows(n, lambda m: xp.cos((m + 1) * omega)), xp.cos(xp.arange(n)[:, None] * omega)
    )
    said = measure(stated({"omega": frequencies(B)}, other), scale="small", expected="refuted")
    assert {m.status for m in said} == {"violated"}


def test_angles_that_are_numbers_alone_are_rounded_too() -> None:
    """A cosine of a natural number, and sines that are 0 at multiples of π."""

    def body(a: Any) -> Any:
        return {
            "on the circle": equal(xp.cos(a) ** 2 + xp.sin(a) ** 2, 1),
            "half a turn": equal(xp.sin(xp.pi) + xp.cos(xp.pi), -1),
            "whole turns": equal(xp.sin(2 * xp.pi * a), 0),
            "a third": equal((1 / (a + 1)) * (a + 1), 1),
        }

    for seed in range(5):
        said = measure(stated({"a": natural()}, body), scale="small", device="cpu", seed=seed)
        assert {m.status for m in said if m.says != "whole turns"} == {"held"}
        assert {m.status for m in said} <= {"held", "skipped"}
    off = stated({"a": natural()}, lambda a: equal(xp.cos(a) ** 2 + xp.sin(a) ** 2, 1.001))
    assert measure(off, dtypes=["float64"])[0].status == "violated"


def chain(matrix: Any, start: Any, depth: int, bias: Any) -> Any:
    state = start
    for _ in range(depth):
        state = matrix @ state
        if bias is not None:
            state = torch.tanh(state + bias) if isinstance(state, torch.Tensor) else (
                state.arithmetic.tanh(state + bias)
            )  # fmt: skip
    return state


@pytest.mark.parametrize("orthonormal", [True, False])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("shape", [(24,), (24, 24)])
def test_the_bound_of_many_products_is_never_exceeded(
    shape: tuple[int, ...], *, biased: bool, orthonormal: bool
) -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU))
    worst, few = 0.0, 0.0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        matrix = torch.randn(24, 24, generator=generator) / 24**0.5
        matrix = torch.linalg.qr(matrix).Q if orthonormal else matrix * 0.8
        start, bias = (torch.randn(shape, generator=generator) for _ in range(2))
        added = bias if biased else None
        computed = chain(matrix, start, 12, added)
        exact = None if added is None else numbers.exact(added.double())
        bound = chain(numbers.exact(matrix.double()), numbers.exact(start.double()), 12, exact)
        ratio = (computed.double() - bound.value).abs() / bound.error()
        worst = max(worst, float(ratio.max()))
        few = max(few, float((bound.error() / bound.value.abs().mean()).max()))
    assert worst <= 1
    assert worst > 1e-6
    assert few < 1


def test_a_wrong_product_leaves_the_bound() -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU))
    generator = torch.Generator().manual_seed(0)
    matrix = torch.linalg.qr(torch.randn(24, 24, generator=generator)).Q
    start = torch.randn(24, generator=generator)
    bound = chain(numbers.exact(matrix.double()), numbers.exact(start.double()), 40, None)
    wrong = chain(matrix, start, 39, None)
    assert bool(((wrong.double() - bound.value).abs() > bound.error()).any())


def test_entries_alone_would_lose_a_long_product(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU))
    generator = torch.Generator().manual_seed(0)
    matrix = torch.linalg.qr(torch.randn(24, 24, generator=generator)).Q.double()
    start = numbers.exact(torch.randn(24, generator=generator).double())
    in_norm = chain(numbers.exact(matrix), start, 40, None)
    assert float(in_norm.error().max()) < 0.05
    monkeypatch.setattr(rounded, "LARGEST", 0)
    entries = chain(numbers.exact(matrix), start, 40, None)
    assert float(entries.error().max()) > 1e3


def test_a_norm_is_not_below_the_largest_singular_value() -> None:
    for seed in range(10):
        m = torch.randn(7, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        assert norms.spectral(m) >= float(torch.linalg.svdvals(m).max())
        assert norms.spectral(m) < 1.001 * float(torch.linalg.svdvals(m).max())


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
