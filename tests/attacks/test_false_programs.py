"""Programs of which a law was once called proved that does not hold, and what is said now."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnproof.cli import main
from attnproof.real_code.records import CodesRecord

HERE = Path(__file__).parent / "programs"

# The target, what it is checked as, the law, and what the line must say if it says "proved".
ONCE_PROVED = [
    ("alone.py::layer", "layer", "rows-of-batch-apart", None),
    ("norm.py::rotate", "rotary", "norm", None),
    ("norm.py::rotate_late", "rotary", "norm", None),
    ("gradient.py::attention", "attention:causal", "causal", "not of gradients"),
    ("composition.py::rotary", "rotary", "composition", None),
    ("branches.py::typed", "layer", "permutation", None),
    ("branches.py::cached", "layer", "permutation", None),
    ("branches.py::compiled", "layer", "permutation", None),
    ("flag.py::flagged", "layer", "permutation", "the buffer flag is as it is now"),
    ("wrap.py::rotate", "rotary", "relative", "positions and lengths stay below 8388608"),
    ("fill_added.py::late", "layer", "permutation", None),
    ("length.py::alibi_bias", "bias", "offset-only", None),
    ("remainder.py::seventh", "layer", "permutation", "T mod 97 ≠ 0"),
    ("fill.py::attention", "attention:causal", "causal", "scores stay within ±2.5e+08"),
]


@pytest.mark.parametrize(("target", "meant", "law", "condition"), ONCE_PROVED)
def test_it_is_not_proved_or_only_under_what_the_line_says(
    target: str, meant: str, law: str, condition: str | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    kind, _, declared = meant.partition(":")
    out = tmp_path / "found.json"
    declare = ["--declare", meant] if declared else []
    code = main(["check", f"{HERE}/{target}", "--as", kind, "--law", law, "--json", str(out),
                 *declare])  # fmt: skip
    (found,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    says = found.law(law)
    if condition is None:
        assert says.verdict != "proved"
        assert says.verdict != "broken" or code == 1
        return
    assert says.verdict == "broken" or (says.verdict == "proved" and condition in says.why)
    printed = " ".join(capsys.readouterr().out.split())
    assert says.verdict == "broken" or says.why.split(",")[0] in printed
