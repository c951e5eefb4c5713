"""Calibrations that are kept: found again, and never taken over from another backend."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from attnproof.numeric.calibration import store
from attnproof.numeric.calibration import store as in_force
from attnproof.numeric.calibration.record import Calibration, backend_of
from attnproof.numeric.calibration.store import NotCalibrated, calibration_of, constants_for
from attnproof.numeric.check import measure
from attnproof.numeric.profile import profile_of
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.statement import Statement
from tests.front.outputs import conforms
from tests.numeric.test_calibration import dominates

CPU = torch.device("cpu")


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
