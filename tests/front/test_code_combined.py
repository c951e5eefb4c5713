"""What legs that disagree are said to show: floating point is blamed only where it is known."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnproof.numeric.programs.declared import DeclaredAttention
from attnproof.numeric.programs.laws import CODE_LAWS
from attnproof.numeric.programs.subjects import Attention
from attnproof.real_code.asked import Asked
from attnproof.real_code.checking import look
from attnproof.real_code.combining import combined
from attnproof.real_code.records import FindingRecord

NORM = next(law for law in CODE_LAWS if law.id == "norm")


def found(leg: str, verdict: str, dtype: str = "float32", **more: object) -> FindingRecord:
    told: dict[str, object] = {
        "law": "norm", "leg": leg, "verdict": verdict, "why": "seen so", "error": None,
        "bound": None, "witness": None, "seed": 0, "dtype": dtype, "device": "cpu", "sizes": {},
        "assuming": (), "seconds": 0.0,
    }  # fmt: skip
    return FindingRecord.model_validate({**told, **more})


def why(*findings: FindingRecord) -> str:
    row = combined(NORM, findings, "again")
    assert row.verdict == "broken"
    return row.why


def test_what_breaks_in_one_format_alone_is_a_matter_of_floating_point() -> None:
    told = why(found("traced", "holds"), found("measured", "holds"),
               found("measured", "broken", "bfloat16"))  # fmt: skip
    assert told == "holds in exact arithmetic, breaks in floating point (bfloat16): seen so"


def test_a_coarser_format_that_holds_blames_nothing() -> None:
    told = why(found("traced", "holds"), found("measured", "broken"),
               found("measured", "holds", "bfloat16"))  # fmt: skip
    assert "floating point" not in told


@pytest.mark.parametrize("assuming", [(), ("n >= 2",)])
def test_floating_point_is_not_blamed_for_what_no_format_holds(assuming: tuple[str, ...]) -> None:
    told = why(found("traced", "holds", assuming=assuming), found("measured", "broken"))
    assert "breaks in floating point" not in told
    assert "broken in float32" not in told
    assert "in float32 (rounding, or a call that no proof is of): seen so" in told
    assert ("where n >= 2" in told) == bool(assuming)


@pytest.mark.parametrize(("error", "hidden"), [(7.5, False), (1e-6, True), (None, True)])
def test_what_numbers_show_is_not_hidden_by_rounding(error: float | None, hidden: bool) -> None:
    told = why(found("exact", "broken", "residues", error=error, bound=1.4e-4),
               found("measured", "holds"))  # fmt: skip
    assert ("hidden by rounding" in told) == hidden
    assert ("in floating point, at other inputs" in told) == (not hidden)


def test_a_law_of_a_mask_that_was_given_says_so() -> None:
    def layer(x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        seen = (x @ x.mT).masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        out: torch.Tensor = seen.softmax(-1) @ x
        return out

    code = Attention(
        name="l", layer=layer, embed=8, declared=DeclaredAttention(causal=True),
        given={"mask": "a causal mask made here"},
    )  # fmt: skip
    told: list[dict[str, Any]] = []
    look(code, Asked(target="l", laws=("causal", "inputs-stay"), legs=("measured",)), told.append)
    rows = {one["finding"]["law"]: one["finding"] for one in told if one["event"] == "found"}
    assert rows["causal"]["verdict"] == "holds"
    assert rows["causal"]["why"].startswith("under the mask it is given (a causal mask made here)")
    assert "given" not in rows["inputs-stay"]["why"]
