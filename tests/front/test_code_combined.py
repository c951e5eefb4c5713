"""What methods that disagree are said to show: floating point is blamed only where it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import DIFFERS_FROM_GRAPH, LEFT_OPEN
from attnproof.programs.subjects import Attention
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import combined
from attnproof.real_code.page_text import how, without_proof
from attnproof.real_code.records import FindingRecord, TracedRecord
from attnproof.real_code.request import CodeRequest
from attnproof.theorems.laws import LAWS as CODE_LAWS

NORM = next(law for law in CODE_LAWS if law.id == "norm")


def found(method: str, verdict: str, dtype: str = "float32", **more: object) -> FindingRecord:
    told: dict[str, object] = {
        "law": "norm",
        "method": method,
        "verdict": verdict,
        "why": "seen so",
        "error": None,
        "bound": None,
        "witness": None,
        "seed": 0,
        "dtype": dtype,
        "device": "cpu",
        "sizes": {},
        "assuming": (),
        "seconds": 0.0,
    }
    return FindingRecord.read({**told, **more})


def why(*findings: FindingRecord) -> str:
    row = combined(NORM, findings, "again")
    assert row.verdict == "broken"
    return row.why


def test_what_breaks_in_one_format_alone_is_a_matter_of_floating_point() -> None:
    told = why(
        found("traced", "holds"),
        found("measured", "holds"),
        found("measured", "broken", "bfloat16"),
    )
    assert told == "holds in exact arithmetic, breaks in floating point (bfloat16): seen so"


def test_a_coarser_format_that_holds_blames_nothing() -> None:
    told = why(
        found("traced", "holds"),
        found("measured", "broken"),
        found("measured", "holds", "bfloat16"),
    )
    assert "floating point" not in told


@pytest.mark.parametrize("assuming", [(), ({"text": "n ≥ 2", "kind": "for"},)])
def test_floating_point_is_not_blamed_for_what_no_format_holds(
    assuming: tuple[dict[str, str], ...],
) -> None:
    told = why(found("traced", "holds", assuming=assuming), found("measured", "broken"))
    assert "breaks in floating point" not in told
    assert "broken in float32" not in told
    assert "in float32 (rounding, or a call that no proof covers): seen so" in told
    assert ("holds in exact arithmetic for n ≥ 2, but not" in told) == bool(assuming)


def test_what_finite_fields_leave_open_is_not_held_against_a_run() -> None:
    half = found("exact", "holds", why=f"7 entries agree exactly; {LEFT_OPEN}: gradients")
    assert why(half, found("measured", "broken")) == "seen so"


def test_the_line_of_a_proof_has_every_condition() -> None:
    conditions = (
        {"text": "n ≥ 2", "kind": "for"},
        {"text": "n mod 97 ≠ 0", "kind": "for"},
        {"text": "every query sees a key", "kind": "if"},
        {"text": "no mask is given", "kind": "where"},
    )
    rest = ({"text": "the buffer flag keeps its value", "kind": "where"},)
    row = combined(
        NORM,
        [found("traced", "holds", assuming=conditions), found("traced", "holds", assuming=rest)],
        "again",
    )
    assert row.why == (
        "proved, for n ≥ 2 and n mod 97 ≠ 0, if every query sees a key, "
        "where no mask is given and the buffer flag keeps its value"
    )
    assert how(row) == row.why.removeprefix("proved, ")


def test_that_a_graph_is_not_the_code_is_told_with_what_was_measured() -> None:
    unlike = found("traced", "undecided", why=f"at n = 601 {DIFFERS_FROM_GRAPH}")
    row = combined(NORM, [unlike, found("measured", "holds")], "again")
    assert row.verdict == "measured"
    assert f"not proved: at n = 601 {DIFFERS_FROM_GRAPH}" in row.why
    assert f"not proved: at n = 601 {DIFFERS_FROM_GRAPH}" in how(row)


def test_what_finite_fields_leave_open_is_told_of_them() -> None:
    row = combined(NORM, [found("measured", "holds"), found("exact", "undecided")], "again")
    assert "; undecided in finite fields: " in row.why
    assert "; undecided in finite fields: " in how(row)


@pytest.mark.parametrize(("error", "hidden"), [(7.5, False), (1e-6, True), (None, True)])
def test_what_numbers_show_is_not_hidden_by_rounding(error: float | None, hidden: bool) -> None:
    told = why(
        found("exact", "broken", "residues", error=error, bound=1.4e-4), found("measured", "holds")
    )
    assert ("hidden by rounding" in told) == hidden
    assert ("in floating point, at other inputs" in told) == (not hidden)


def test_a_law_of_a_mask_that_was_given_says_so() -> None:
    def layer(x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        seen = (x @ x.mT).masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        out: torch.Tensor = seen.softmax(-1) @ x
        return out

    code = Attention(
        name="l",
        layer=layer,
        embed=8,
        declared=DeclaredAttention(causal=True),
        given={"mask": "a causal mask made here"},
    )
    told: list[dict[str, Any]] = []
    look(
        code,
        CodeRequest(target="l", laws=("causal", "no-mutation"), methods=("measured",)),
        told.append,
    )
    rows = {one["finding"]["law"]: one["finding"] for one in told if one["event"] == "found"}
    assert rows["causal"]["verdict"] == "holds"
    assert rows["causal"]["why"].startswith("under the mask it is given (a causal mask made here)")
    assert "given" not in rows["no-mutation"]["why"]


def test_the_limit_of_a_law_reaches_its_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnproof.programs import prove as traced

    seconds: list[float] = []

    def prove(*_: Any, **more: Any) -> traced.Traced:
        seconds.append(more["seconds"])
        return traced.Traced()

    monkeypatch.setattr(traced, "prove", prove)
    code = Attention(name="l", layer=lambda x: x, embed=8)
    usual = CodeRequest(target="l", methods=("traced",))
    asked = replace(usual, limit=6.0)
    for one in (usual, asked):
        look(code, one, lambda _: None)
    assert seconds == [10.0, 1.0]
    assert asked.again("causal").endswith(" --limit 6")
    assert CodeRequest.read(asked.text()) == asked


def test_why_nothing_is_proved_is_shown_and_no_more_than_that() -> None:
    traced = TracedRecord(operations=9, guards=(), unread=(), why="")
    open_ = found("traced", "undecided", why="no proof was found in 6 seconds")
    other = found("traced", "undecided", why=f"at n = 7 {DIFFERS_FROM_GRAPH}")
    told = "nothing was proved about it: norm: no proof was found in 6 seconds"
    assert without_proof(traced, (other, open_), proved=False) == told
    assert without_proof(traced, (other,), proved=False) == ""
    assert without_proof(traced, (open_,), proved=True) == ""
    unread = traced.model_copy(update={"why": "torch.export refuses `hide`"})
    assert without_proof(unread, (), proved=False).startswith("nothing was proved about it: torch")
    told = "some calls were not read: torch.export refuses `hide`"
    assert without_proof(unread, (), proved=True) == told
