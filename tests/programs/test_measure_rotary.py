"""Probes of rotary code: quiet on what is right, and each refuses a planted fault."""

from __future__ import annotations

import json

import pytest
import torch

from attnproof.programs.draw import Draw
from attnproof.programs.measure.base import PROBES
from attnproof.programs.measure.examine import examine
from attnproof.programs.measure.rotary_casting import cast
from attnproof.programs.tolerance import ladder_error, rounding_of, sums
from attnproof.theorems.laws import laws_of
from tests.programs.rotary_faults import FAULTS, OMEGA, PARTNERS, faults_of, verdict

from .rotary_code import RIGHT, InBuffer, code, half, ladder, llama

OTHERS = (torch.float64, torch.bfloat16, torch.float16)
FEW = ("half", "complex", "cached", "partial, longer", "yarn", "two axes, halves")
DRAWN = (
    "linear",
    "every-head-alike",
    "follows-its-ids",
    "sees-positions",
    "rows-of-batch-apart",
    "no-mutation",
    "rotated-once",
    "cache-keeps-its-positions",
    "conversion-keeps-scores",
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, torch.float32) for n in RIGHT if n != "llama"] + [(n, d) for n in FEW for d in OTHERS],
)
def test_right_code_is_left_alone(name: str, dtype: torch.dtype) -> None:
    assert faults_of(examine(RIGHT[name](), [Draw(seed=1, dtype=dtype)])) == []


def test_llama_of_transformers_breaks_nothing_but_when_cast() -> None:
    """huggingface/transformers#25681: its frequencies are a buffer, which a cast rounds."""
    broken = [f.law for f in examine(llama()) if f.verdict == "broken"]
    assert broken == ["survives-casting"]


@pytest.mark.parametrize("name", ["half", "complex", "two axes", "yarn"])
def test_no_seed_makes_right_code_look_wrong(name: str) -> None:
    """The laws whose inputs are drawn; the others rotate unit vectors, the same with every seed."""
    for dtype in (torch.float32, torch.bfloat16):
        draws = [Draw(seed=seed, dtype=dtype) for seed in range(5)]
        assert faults_of(examine(RIGHT[name](), draws, DRAWN)) == []


def test_every_law_of_rotary_code_has_a_probe_and_a_fault() -> None:
    examine(code(half(OMEGA)), laws=["norm"])
    asked = {p.law for p in PROBES if p.kind == "rotary"}
    assert asked == {law.id for law in laws_of("rotary")}
    assert asked - {"finite"} <= set(FAULTS)  # what gives no numbers: test_finite


@pytest.mark.parametrize("law", FAULTS)
def test_each_law_refuses_a_planted_fault(law: str) -> None:
    found = verdict(law, FAULTS[law]())
    assert found.verdict == "broken", found.why
    assert found.witness is not None
    assert found.why
    json.dumps([dict(found.witness.inputs), found.witness.here, found.witness.there])
    if law in PARTNERS:
        assert verdict(law, PARTNERS[law]()).verdict == "holds"


@pytest.mark.parametrize(
    "law", ["relative", "norm", "layout-as-declared", "frequencies-as-declared"]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_faults_are_seen_in_other_dtypes(law: str, dtype: torch.dtype) -> None:
    subject = FAULTS[law]()
    if law == "frequencies-as-declared":
        subject = code(half(ladder(8, 20_000.0)))
    assert verdict(law, subject, Draw(dtype=dtype)).verdict == "broken"


def test_a_fault_of_keys_alone_is_found() -> None:
    subject = code(half(OMEGA), key=half(ladder(8, 20_000.0)))
    assert verdict("relative", subject).verdict == "broken"
    assert verdict("frequencies-as-declared", subject).verdict == "broken"


def test_numbers_that_are_none_are_broken_and_not_quiet() -> None:
    nan = code(lambda x, p: half(OMEGA)(x, p) * float("nan"))
    for law in ("relative", "norm", "linear", "composition", "identity-at-zero"):
        assert verdict(law, nan).verdict == "broken"


def test_a_cast_is_undone() -> None:
    module = InBuffer()
    before = module.omega
    with cast([module], torch.bfloat16):
        assert module.omega.dtype == torch.bfloat16
    assert module.omega is before


def test_bounds_grow_with_the_dtype_the_position_and_the_terms() -> None:
    short, long = rounding_of(torch.bfloat16), rounding_of(torch.float64)
    assert short.score(1, 1, 5, 3) > rounding_of(torch.float32).score(1, 1, 5, 3)
    assert long.rotating < 1e-5  # the angles are float32 all the same
    assert short.vector(1.0, 1.0, 10_000) > short.vector(1.0, 1.0, 1)
    assert sums(100, torch.float32, 1.0) > sums(10, torch.float32, 1.0) > 0
    assert float(ladder_error(torch.tensor([1e-4]), 2**-24)) < 1e-8
