"""Calibration: what it measures, what it must find and refuse, and files that are kept of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.numeric.calibration import store
from attnproof.numeric.calibration import store as in_force
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
from attnproof.numeric.calibration.record import (
    SEQUENTIAL,
    Calibration,
    Depth,
    backend_of,
    constants_of,
    fitted,
    widest,
)
from attnproof.numeric.calibration.store import NotCalibrated, calibration_of, constants_for
from attnproof.numeric.check import measure
from attnproof.numeric.profile import profile_of
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.statement import Statement
from tests.front.outputs import conforms

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


@pytest.fixture
def found() -> Calibration:
    return calibration_of(CPU)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Calibration) -> Path:
    """An empty folder for the user's own, and none in the package; ``found`` is there before."""
    assert found.constants
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(store, "KNOWN", tmp_path / "known")
    return tmp_path / "attnproof" / "calibrations"


def test_a_calibration_comes_back_as_it_was(found: Calibration, own: Path) -> None:
    file = store.write(found)
    assert file.parent == own
    assert store.read(file) == found
    assert store.stored_calibration(found.backend) == found


def test_another_version_of_torch_is_another_backend(
    found: Calibration, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.write(found).parent == own
    monkeypatch.setattr(torch, "__version__", "2.99.0+cpu")
    assert store.stored_calibration(backend_of(CPU)) is None
    monkeypatch.setenv("ATTNPROOF_CALIBRATE", "never")
    with pytest.raises(NotCalibrated, match="none are guessed; run `attnproof calibrate --device"):
        profile_of(torch.float32, CPU)


@pytest.mark.usefixtures("own")
def test_other_instructions_are_another_backend(
    found: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(found)
    other = {"AVX2": "AVX512"}.get(torch.backends.cpu.get_cpu_capability(), "AVX2")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: other)
    assert store.stored_calibration(backend_of(CPU)) is None
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    assert "MKL_CBWR=COMPATIBLE" in backend_of(CPU).settings


def test_an_unknown_backend_is_skipped_with_a_reason(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not own.exists()
    monkeypatch.setenv("ATTNPROOF_CALIBRATE", "never")
    n, d = sizes("n", "tokens") + sizes("d", "features")
    givens = {"X": real(n, d), "Y": real(n, d)}
    X, Y = (given.named(name) for name, given in givens.items())
    statement = Statement(givens, {"": equal(X + Y, Y + X)})
    measured = measure(statement, scale="small", device="cpu", dtypes=["float32"])
    assert {m.status for m in measured} == {"skipped"}
    assert all("attnproof calibrate --device cpu" in m.reason for m in measured)


def test_what_nothing_is_stored_for_is_measured_once_and_kept(
    found: Calibration, own: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def measured(device: torch.device) -> Calibration:
        calls.append(device)
        return found

    monkeypatch.setattr(in_force, "calibrated", measured)
    with caplog.at_level(logging.WARNING):
        assert calibration_of(CPU) == calibration_of(CPU) == found
    assert calls == [CPU]
    assert len(caplog.records) == 1
    assert "measuring the constants of rounding" in caplog.text
    assert [file.suffix for file in own.iterdir()] == [".json"]


@pytest.mark.usefixtures("own")
def test_a_measurement_that_fails_is_told_and_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_device: torch.device) -> Calibration:
        raise ValueError("no sum")

    monkeypatch.setattr(in_force, "calibrated", broken)
    with pytest.raises(NotCalibrated, match="failed \\(no sum\\), and none are guessed"):
        calibration_of(CPU)


def altered(found: Calibration, change: Any) -> str:
    data = json.loads(found.model_dump_json())
    change(data)
    return json.dumps(data)


CHANGES: dict[str, tuple[Any, str]] = {
    "a constant made smaller": (
        lambda d: d["constants"][1].update(function_error=0.5),
        "do not follow from",
    ),
    "a field that is not known": (lambda d: d.update(extra=1), "Extra inputs are not permitted"),
    "another format": (lambda d: d.update(format=99), "format"),
    "not a number": (lambda d: d["functions"][0].update(error="small"), "error"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_broken_file_is_told_and_not_used(
    name: str, found: Calibration, own: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change, says = CHANGES[name]
    file = store.write(found)
    assert file.parent == own
    file.write_text(altered(found, change), encoding="utf-8")
    with pytest.raises(store.BrokenCalibration, match=says):
        store.read(file)
    with caplog.at_level(logging.WARNING):
        assert store.stored_calibration(found.backend) is None
    assert "not used" in caplog.text


def test_a_foreign_file_under_this_name_is_not_used(
    found: Calibration, own: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = store.write(found)
    assert file.parent == own
    other = found.model_copy(
        update={"backend": found.backend.model_copy(update={"torch": "1.0.0"})}
    )
    file.write_text(other.model_dump_json(), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert store.stored_calibration(found.backend) is None
    assert "is of another backend" in caplog.text


def test_every_calibration_of_the_package_can_be_read() -> None:
    files = sorted(store.KNOWN.glob("*.json"))
    assert files
    for file in files:
        assert store.read(file).backend.label == file.stem


def test_models_are_above_every_depth_measured_up_to_65_536_terms() -> None:
    """And a sum of one term after another is above none that torch.sum has."""
    longest = 0
    for file in store.KNOWN.glob("*.json"):
        found = store.read(file)
        for order in found.orders:
            assert dominates(order.model, order.lengths, order.depths), order.operation
            longest = max(longest, *order.lengths)
        for constants in found.constants:
            sums = [o for o in found.orders if o.dtype == constants.dtype and o.width is None]
            for order in sums:
                if order.operation.startswith("sum,"):
                    assert dominates(constants.sums, order.lengths, order.depths)
            assert not dominates(constants.sums, (4_096, 65_536), (4_095, 65_535))
    assert longest >= 65_536


def test_the_name_stands_in_the_profile(found: Calibration) -> None:
    constants, label = constants_for(torch.bfloat16, CPU)
    assert constants.dtype == "bfloat16"
    assert found.backend.torch in label
    assert label in str(profile_of(torch.bfloat16, CPU))


def test_a_calibration_is_what_the_printed_schema_says(found: Calibration) -> None:
    conforms(found.model_dump_json(), "--calibration")


@pytest.mark.parametrize("part", ["functions", "orders", "operands", "kernels"])
def test_a_file_without_some_measurements_is_told_and_not_used(
    found: Calibration, own: Path, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    file = store.write(found)
    assert file.parent == own
    plain = json.loads(file.read_text())
    plain[part] = type(plain[part])()
    file.write_text(json.dumps(plain))
    with caplog.at_level(logging.WARNING):
        assert store.stored_calibration(found.backend) is None
    assert "not used" in caplog.text


def test_a_file_of_a_dtype_that_is_none_is_told_and_not_used(found: Calibration, own: Path) -> None:
    file = store.write(found)
    assert file.parent == own
    file.write_text(file.read_text().replace('"float16"', '"float17"'))
    assert store.stored_calibration(found.backend) is None
