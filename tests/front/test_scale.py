"""The command for kernels at scale: its table, its record, its refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnproof.cli import main
from attnproof.documents.evidence import schema_text
from attnproof.numeric.calibration import store as in_force
from attnproof.numeric.implementations import scaled_dot_product
from attnproof.sweeping.records import SweepRecord
from attnproof.sweeping.scale import ScaleRecord, growths

SMALL = ["--tokens", "256", "--heads", "2", "--device", "cpu"]


def test_the_record_is_what_its_schema_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scale.json"
    both = ["--dtype", "float32", "--dtype", "bfloat16"]
    assert main(["scale", *SMALL, *both, "--json", str(file)]) == 0
    record = ScaleRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert [w.way for w in record.ways] == ["sampled", "clustered", "alone"] * 2
    assert {w.dtype for w in record.ways} == {"float32", "bfloat16"}
    assert all(w.forwards > 0 and w.device == "cpu" for w in record.ways)
    assert [p.policy for p in record.ways[1].policies] == ["deterministic", "residual"]
    told = capsys.readouterr().out
    assert "with probability at most (1−e)^" in told
    assert f"wrote {file}" in told


def test_theorems_are_measured_at_several_numbers_of_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, file, page = "softmax-commutes-with-permutations", tmp_path / "s.json", tmp_path / "page"
    asked = ["--tokens", "64", "--tokens", "256", "--device", "cpu", "--store", str(tmp_path / "s")]
    assert main(["scale", name, *asked, "--json", str(file), "--html", str(page)]) == 0
    record = SweepRecord.model_validate_json(file.read_text(encoding="utf-8"))
    (growth,) = growths(record)
    assert growth.tokens == (64, 256)
    told = capsys.readouterr().out
    assert name in told
    assert "256" in told
    assert "Measured to 256 tokens" in (page / "index.html").read_text(encoding="utf-8")


def test_kernels_are_checked_at_several_numbers_of_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several = [*SMALL, "--tokens", "512", "--way", "sampled", "--html", str(tmp_path)]
    assert main(["scale", *several]) == 0
    told = capsys.readouterr().out
    assert "tokens" in told
    assert "512" in told
    assert "Measured to 512 tokens" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "--schema"]) == 0
    told = capsys.readouterr().out
    assert told == schema_text(ScaleRecord)
    assert "ways" in json.loads(told)["properties"]


def test_a_wrong_kernel_ends_in_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = scaled_dot_product.whole_rows
    monkeypatch.setattr("attnproof.numeric.at_scale.call.whole_rows", lambda *a: right(*a) * 1.01)
    assert main(["scale", *SMALL, "--way", "sampled"]) == 1
    assert "violated: farther from the float64 value" in capsys.readouterr().out


def test_what_cannot_be_checked_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", *SMALL, "--causal", "--way", "queries"]) == 1
    assert "skipped: a causal row sees other keys at another position" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["scale", "--way", "fast"], "wanted a way to check, got 'fast'"),
        (["scale", "--kernel", "slow", "--device", "cpu"], "kernel 'slow' was asked for"),
        (["scale", "--device", "tpu"], "wanted a device"),
        (["scale", "no-such-theorem"], "wanted the id or subject of a theorem"),
        (["scale", "--html", __file__], "wanted a folder that can be written to"),
        (["sharded", *SMALL], "torchrun --nproc-per-node 2"),
        (["sharded", "rows-of-softmax-are-distributions"], "torchrun --nproc-per-node 2"),
        (["sharded", "no-such-theorem"], "wanted the id of a theorem, got 'no-such-theorem'"),
    ],
)
def test_refusals(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


def test_a_backend_without_constants_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnproof.numeric.calibration.store.stored_calibration", lambda _: None)
    monkeypatch.setenv("ATTNPROOF_CALIBRATE", "never")
    in_force._calibrate.cache_clear()
    try:
        assert main(["scale", *SMALL]) == 2
    finally:
        in_force._calibrate.cache_clear()
    assert capsys.readouterr().err.count("run `attnproof calibrate --device cpu`") == 1
