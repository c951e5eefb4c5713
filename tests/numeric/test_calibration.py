"""Calibration: what it measures, what it must find, and what it must refuse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.numeric.calibration.functions import (
    FUNCTIONS,
    Function,
    kernel_record,
    measured_error,
    scores_stored,
    softmax_error,
    summed_by,
    weights_stored,
)
from attnproof.numeric.calibration.measuring import operand_unit, order_record
from attnproof.numeric.calibration.order import depth_of, digits_kept, softmax_depth
from attnproof.numeric.calibration.record import SEQUENTIAL, Depth, constants_of, fitted, widest
from attnproof.numeric.calibration.store import calibration_of
from attnproof.numeric.profile import profile_of

CPU = torch.device("cpu")
LOW = (torch.bfloat16, torch.float16)


def one_by_one(cases: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A planted sum: one term after another in one dtype."""
    total = torch.zeros(len(cases), dtype=dtype)
    for column in cases.T:
        total = total + column.to(dtype)
    return total.to(cases.dtype)


def attention(query: Tensor, key: Tensor, value: Tensor, *, inside: Any = None) -> Tensor:
    """Attention in float64, with what ``inside`` does to scores and weights."""
    wide = [x.double() for x in (query, key, value)]
    scores = wide[0] @ wide[1].mT / query.shape[-1] ** 0.5
    scores, weights = (inside or (lambda s, w: (s, w)))(scores, None)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    scores, stored = (inside or (lambda s, w: (s, w)))(scores, weights)
    output: Tensor = stored @ wide[2] / weights.sum(-1, keepdim=True)
    return output.to(query.dtype)


def test_an_inaccurate_exponential_is_measured() -> None:
    exp = next(f for f in FUNCTIONS if f.name == "exp")
    wrong = Function("exp", partial(_off, 20.0), exp.low, exp.high, exp.ball)
    assert measured_error(exp, torch.float32, CPU, 1 << 14).error < 2
    assert 19 < measured_error(wrong, torch.float32, CPU, 1 << 14).error < 22


def _off(units: float, x: Tensor) -> Tensor:
    if x.dtype == torch.float64:  # the reference
        return torch.exp(x)
    return (torch.exp(x.double()) * (1 + units * 2.0**-24)).float()


def test_an_inaccurate_exponential_in_float64_is_measured_against_balls() -> None:
    exp = next(f for f in FUNCTIONS if f.name == "exp")
    wrong = Function(
        "exp", lambda x: torch.exp(x) * (1 + 20 * 2.0**-53), exp.low, exp.high, exp.ball
    )
    assert measured_error(exp, torch.float64, CPU).error < 3
    assert measured_error(wrong, torch.float64, CPU).error > 17


def test_an_inaccurate_softmax_is_measured() -> None:
    def wrong(scores: Tensor, axis: int) -> Tensor:
        weights = torch.softmax(scores, axis)
        small = weights < weights.amax(-1, keepdim=True)
        return torch.where(small, weights * (1 + 2**-19), weights)

    assert softmax_error(torch.float32, CPU, rows=64).error < 4
    assert softmax_error(torch.float32, CPU, rows=64, how=wrong).error > 30


def test_every_number_of_sixteen_bits_is_tried() -> None:
    found = measured_error(FUNCTIONS[0], torch.bfloat16, CPU)
    assert "every number" in found.sampled
    assert found.used == found.error


def test_the_cube_in_bfloat16_is_rounded_twice() -> None:
    cube = next(f for f in FUNCTIONS if f.name == "power 3")
    assert measured_error(cube, torch.bfloat16, CPU).error > 1_000
    profile = profile_of(torch.bfloat16, CPU)
    assert profile.power_error > 1_000 > profile.function_error


def dominates(model: Depth, lengths: Sequence[int], depths: Sequence[int]) -> bool:
    """Whether no measured depth exceeds the model."""
    return all(d <= model.terms(k) for k, d in zip(lengths, depths, strict=True))


def test_a_sum_one_by_one_is_as_deep_as_it_is_long() -> None:
    assert depth_of(one_by_one, 64, 0, torch.float32, CPU) == 63
    assert depth_of(one_by_one, 64, 63, torch.float32, CPU) == 1
    found = order_record("planted", one_by_one, torch.float32, CPU, (64, 256, 512))
    assert found.model.sequential
    summed = profile_of(torch.float32, CPU).sums
    assert not dominates(summed, found.lengths, found.depths)
    assert summed.terms(512) < 511


def test_the_depth_of_a_tree_is_its_height() -> None:
    def halved(cases: Tensor) -> Tensor:
        while cases.shape[-1] > 1:
            cases = cases[:, 0::2] + cases[:, 1::2]
        return cases[:, 0]

    assert {depth_of(halved, 64, leaf, torch.float32, CPU) for leaf in (0, 31, 63)} == {6}
    assert depth_of(halved, 512, 5, torch.bfloat16, CPU) == 9


def test_what_is_no_sum_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted a sum in which a large term swallows all"):
        depth_of(lambda x: x[:, 3], 64, 0, torch.float32, CPU)


def test_sums_in_bfloat16_are_found() -> None:
    short = partial(one_by_one, dtype=torch.bfloat16)
    assert digits_kept(one_by_one, 64, torch.bfloat16, CPU) == (24, True)
    assert digits_kept(short, 64, torch.bfloat16, CPU) == (8, True)
    found = order_record("sum, planted", short, torch.bfloat16, CPU, (64, 128))
    assert found.unit == 2.0**-8


def test_sums_that_cut_off_digits_are_found() -> None:
    def cut(cases: Tensor) -> Tensor:
        total = torch.zeros(len(cases), dtype=torch.float64)
        for column in cases.double().T:
            exact = total + column
            near = exact.float()
            over = near.double().abs() > exact.abs()
            total = torch.where(over, near.nextafter(torch.zeros(())), near).double()
        return total.float()

    assert digits_kept(cut, 64, torch.float32, CPU) == (24, False)


def test_the_sum_of_weights_is_followed_by_parity() -> None:
    def late(scores: Tensor) -> Tensor:
        weights = scores.exp()
        return weights[:, 0] / one_by_one(weights)

    assert softmax_depth(late, 256, torch.float32, CPU) == 255
    assert softmax_depth(lambda s: torch.softmax(s, -1)[:, 0], 256, torch.float32, CPU) < 128


@pytest.mark.parametrize("dtype", LOW)
def test_what_a_kernel_stores_is_found(dtype: torch.dtype) -> None:
    def scores(s: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return s.to(dtype).double(), w

    def weights(s: Tensor, w: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return s, None if w is None else w.to(dtype).double()

    assert not scores_stored(attention, dtype, CPU)
    assert not weights_stored(attention, dtype, CPU)
    assert scores_stored(partial(attention, inside=scores), dtype, CPU)
    assert weights_stored(partial(attention, inside=weights), dtype, CPU)


def test_a_kernel_with_an_inaccurate_exponential_is_measured() -> None:
    def wrong(s: Tensor, w: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return s * (1 + 2.0**-22), w

    assert kernel_record("planted", attention, torch.float32, CPU).error < 3
    planted = kernel_record("planted", partial(attention, inside=wrong), torch.float32, CPU)
    assert planted.error > 100


def test_a_kernel_that_sums_in_bfloat16_is_found() -> None:
    def kernel(query: Tensor, _key: Tensor, value: Tensor) -> Tensor:
        flat = value.mT.reshape(-1, value.shape[-2])
        mean = one_by_one(flat, torch.bfloat16) / value.shape[-2]
        columns = mean.reshape(*value.shape[:-2], 1, value.shape[-1])
        return columns.expand(*query.shape[:-1], value.shape[-1])

    summed = summed_by(kernel, 1, 0, torch.float32, CPU)
    assert digits_kept(summed, 64, torch.float32, CPU)[0] == 8
    assert depth_of(summed, 64, 0, torch.float32, CPU) == 63


def test_operands_that_are_rounded_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert operand_unit(torch.float32, CPU) == 0.0
    product = Tensor.__matmul__
    short = lambda a, b: product(a.bfloat16().float(), b.bfloat16().float())  # noqa: E731
    monkeypatch.setattr(Tensor, "__matmul__", short)
    assert operand_unit(torch.float32, CPU) == 2.0**-8


def test_a_model_is_above_the_depths_it_was_fitted_to() -> None:
    lengths, depths = (64, 512, 4_096, 16_384), (63, 193, 212, 277)
    model = fitted(lengths, depths)
    assert dominates(model, lengths, depths)
    assert model.terms(65_536) >= 192 + 65_536 // 192
    assert not dominates(Depth(inner=64, outer=512), lengths, depths)
    assert widest([model, SEQUENTIAL]).terms(1_000) == 1_000
    assert widest([]) == SEQUENTIAL


def test_the_worst_measurement_counts() -> None:
    found = calibration_of(CPU)
    constants = found.of("float32")
    assert constants is not None
    worse = [
        r.model_copy(update={"bits": 8}) if r.operation.startswith("sum") else r
        for r in found.orders
    ]
    less = constants_of(torch.float32, found.functions, worse, found.kernels, 0.0)
    assert less.accumulate == 2.0**-8 > constants.accumulate
    assert less.product == constants.product
