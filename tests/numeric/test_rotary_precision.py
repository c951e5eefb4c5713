"""Rotary encoding in short formats: the tables, the bounds, and what two checks refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from attnproof.numeric.devices import one_thread
from attnproof.programs.execution.rotary_matrices import frequencies_of, probe_positions, wrapped
from attnproof.programs.execution.tolerance import FUNCTION
from benchmarks.markdown import markdown
from benchmarks.precision import __main__ as command
from benchmarks.precision import bound as bounds
from benchmarks.precision import limits as scores
from benchmarks.precision import survey as surveying
from benchmarks.precision.bound import (
    FORMATS,
    FORMULA_ERROR,
    Format,
    declared,
    float32_formula,
    format_named,
    tf32,
)
from benchmarks.precision.limits import BASES, SHIFTS, Pairs, breaks, collision, drift, errors, grid
from benchmarks.precision.record import PrecisionRecord, document, sheets
from benchmarks.precision.survey import Tell, checked

BRAIN, HALF, SINGLE = torch.bfloat16, torch.float16, torch.float32
GOOD = ("float32", "float32, float64 angles", "float16", "bfloat16")
# Root mean squares at s = 0, 1e3, 1e4, 1e5, 1e6 for base 1e4, from the trials that came before.
TRIALS = {
    "float32": (9.0e-6, 1.8e-5, 8.5e-5, 8.0e-4, 7.5e-3),
    "float32, float64 angles": (5.7e-8, 6.2e-8, 6.0e-8, 6.0e-8, 5.8e-8),
    "float32, tf32 operands": (3.0e-4, 3.1e-4, 2.9e-4, 9.0e-4, 7.3e-3),
    "float16": (4.8e-4, 4.8e-4, 4.8e-4, 9.2e-4, 7.2e-3),
    "bfloat16": (3.7e-3, 3.9e-3, 3.8e-3, 3.9e-3, 8.0e-3),
    "bfloat16, frequencies too": (3.3e-2, 3.2e-2, 3.5e-2, 3.3e-2, 3.8e-2),
    "bfloat16 throughout": (0.48, 0.64, 0.85, 1.0, 1.0),
    "float16 throughout": (0.069, 0.23, 0.60, math.nan, math.nan),
}


@pytest.fixture(autouse=True, scope="module")
def alone() -> Iterator[None]:
    """Small arrays: one thread is quicker than several that wait for each other."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return Pairs.drawn()


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_table_of_the_trials_comes_out_again(form: Format, pairs: Pairs) -> None:
    for shift, known in zip(SHIFTS, TRIALS[form.name], strict=True):
        found = errors(pairs, form, 1e4, shift)
        assert found.violations == 0
        if math.isnan(known):
            assert math.isnan(found.rms)
            assert found.checked == 0
        else:
            assert known / 1.35 < found.rms < known * 1.35
            assert found.checked == 2 * len(pairs.m)


def test_the_bound_is_one_and_is_not_far(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    form = format_named("float32")
    assert 0.1 < errors(pairs, form, 1e4, 1e6).share <= 1
    wrong = Format("float32", SINGLE, positions=BRAIN)
    monkeypatch.setattr(scores, "bound_of", lambda _, omega: bounds.bound_of(form, omega))
    found = errors(pairs, wrong, 1e4, 1e3)
    assert found.violations > 0.7 * found.checked
    assert errors(pairs, form, 1e4, 1e3).violations == 0


def test_the_formula_of_frequencies_is_within_what_is_said_of_it() -> None:
    for base in BASES:
        omega = declared(base, 64)
        off = ((float32_formula(base, 64).double() - omega) / omega).abs().max()
        assert 0.5 * FORMULA_ERROR < float(off) <= FORMULA_ERROR


def test_cosines_are_within_what_the_bound_takes_them_for() -> None:
    x = torch.rand(200_000, generator=torch.Generator().manual_seed(0)) * 2e6 - 1e6
    for function in (torch.cos, torch.sin):
        off = (function(x).double() - function(x.double())).abs().max()
        assert float(off) <= FUNCTION * 2.0**-24


def test_tf32_keeps_ten_bits() -> None:
    x = torch.randn(5000, generator=torch.Generator().manual_seed(0)) * 3
    kept = tf32(x)
    mantissa, _ = torch.frexp(kept.double())
    assert bool((mantissa * 2**11 == (mantissa * 2**11).round()).all())
    assert float(((kept - x) / x).abs().max()) <= 2.0**-11
    assert bool(((kept - x) != 0).any())


def test_positions_fall_together_where_dtypes_end() -> None:
    assert collision(BRAIN, 70_000).first == 257
    half = collision(HALF, 70_000)
    assert (half.first, half.infinite) == (2049, 65_520)
    single = collision(SINGLE, 70_000)
    assert (single.first, single.infinite) == (None, None)
    last = torch.tensor([16_777_216, 16_777_217]).to(SINGLE)
    assert last[0] == last[1]


def test_every_position_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "benchmarks.precision.limits.CHUNK"
    for chunk in (2, 7, 256, 257):
        monkeypatch.setattr(module, chunk)
        assert collision(BRAIN, 300).first == 257


def test_breaks_and_drifts(pairs: Pairs) -> None:
    found = breaks(pairs, format_named("float32"), 1e4, furthest=1 << 22)
    assert found.rms is not None
    assert found.largest is not None
    assert 10**5 < found.largest < 10**6 < found.rms < 4 * 10**6
    never = breaks(pairs, format_named("float32, float64 angles"), 1e4, furthest=1 << 12)
    assert (never.rms, never.largest) == (None, None)
    assert list(grid(8)) == [1, 2, 3, 4, 6, 8]
    assert 50 < drift(BRAIN, 5e5).at < 90
    assert 400 < drift(HALF, 1e4).at < 620
    assert drift(HALF, 1e6).subnormal > 0


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_identity_is_blind_and_what_is_declared_is_not(name: str) -> None:
    found = {one.code: one for one in checked(format_named(name), 16)}
    right = found.pop("as declared")
    assert (right.identity, right.comparison, right.why) == ("holds", "holds", "")
    other_way = found.pop("rotated the other way")
    assert (other_way.identity, other_way.comparison) == ("holds", "holds")
    assert len(found) == 6
    assert {one.comparison for one in found.values()} == {"broken"}
    seen = {code for code, one in found.items() if one.identity == "broken"}
    assert seen == {"positions in bfloat16"}
    assert "its layout is half" in found["the other layout"].why
    assert "has the frequency 2, and 1 is declared" in found["angles doubled"].why


@pytest.mark.parametrize("name", GOOD)
def test_right_code_is_not_refused_in_any_format(name: str) -> None:
    for base in BASES:
        right = next(checked(format_named(name), 32, base))
        assert (right.identity, right.comparison) == ("holds", "holds")
        assert 0 < right.comparison_ratio < 1


def test_the_frequencies_that_are_read_are_those_used() -> None:
    used = declared(77_777, 16) * (1 + 0.01 * torch.arange(16) % 3)
    at = probe_positions(1 << 14)
    angles = wrapped(at.double()[:, None] * used)
    omega, off = frequencies_of(at, angles, torch.full_like(angles, 1e-12))
    assert float(off.max()) < 1e-15
    assert bool(((omega - used).abs() <= off + 1e-16).all())
    with pytest.raises(ValueError, match="positions from 1 on"):
        frequencies_of(torch.tensor([0, 2]), angles[:2], angles[:2])
    assert float(wrapped(torch.tensor(3 * math.pi - 0.5))) == pytest.approx(math.pi - 0.5)


QUICK = ("float32", "bfloat16", "float16 throughout")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "BASES", (1e4,))
    monkeypatch.setattr(surveying, "DTYPES", surveying.DTYPES[:1])


@cache
def surveyed(device: str, seed: int) -> PrecisionRecord:
    """What is measured, once for all tests."""
    return surveying.survey(device=device, seed=seed, content=64, pairs=8)


def run(tmp_path: Path, violations: int = 0) -> tuple[int, PrecisionRecord, str]:
    """The command; each error that was measured is told with so many more violations."""
    file, written = tmp_path / "precision.json", tmp_path / "precision.md"
    kept: list[PrecisionRecord] = []

    def seen(*, device: str, seed: int, tell: Tell) -> PrecisionRecord:
        tell("all of it", 1, 1)
        found = surveyed(device, seed)
        more = [replace(one, violations=one.violations + violations) for one in found.errors]
        kept.append(found.model_copy(update={"errors": tuple(more)}))
        return kept[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "survey", seen)
        code = command.main(["--json", str(file), "--markdown", str(written)])
    (record,) = kept
    told = json.loads(file.read_text(encoding="utf-8"))
    assert "non-finite" in {one["rms"] for one in told["errors"]}
    assert len(told["breaks"]) == len(record.breaks)
    return code, record, written.read_text(encoding="utf-8")


@pytest.mark.usefixtures("quick")
def test_one_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, record, written = run(tmp_path)
    told = capsys.readouterr().out
    assert code == 0
    assert record.violations == 0
    assert {one.form for one in record.errors} >= set(QUICK)
    for sheet in sheets(record):
        assert sheet.title in told
        assert f"## {sheet.title}" in written
        assert all(len(row) == len(sheet.columns) for row in sheet.rows)
    assert "| bfloat16 | 257 | none |" in written
    assert "base 10001 (float32): pair" in written
    assert f"torch {record.machine.torch}" in written
    assert markdown(document(record)) == written


@pytest.mark.usefixtures("quick")
def test_an_error_above_its_bound_is_an_exit_code(tmp_path: Path) -> None:
    code, record, written = run(tmp_path, violations=1)
    assert code == 1
    assert record.violations == len(record.errors)
    assert f"| {record.violations} |" in written
