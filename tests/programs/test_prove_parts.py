"""Code with a branch on a length: what is proved on one side says what is found on the other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.prove.parts import lengths_elsewhere
from attnproof.programs.prove.proofs import Proofs
from attnproof.programs.subject import adapted_as

CALL = "x: B H n D, positions: B n -> x"


class Branched(nn.Module):
    """A rotation which past 24 tokens is interpolated, absolute, or refused."""

    inv_freq: Tensor

    def __init__(self, beyond: str) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, 8, 2).float() / 8))
        self.beyond = beyond

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        p = positions[:, None, :, None].float()
        angle = p * self.inv_freq
        if x.shape[-2] > 24:
            if self.beyond == "refused":
                raise ValueError("at most 24 tokens")
            angle = angle / 4 if self.beyond == "interpolated" else angle * p
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def found(beyond: str, law: str = "relative") -> Finding:
    subject = adapted_as(Branched(beyond), CALL, name=beyond)
    (finding,) = (one for one in prove(subject, [law]).findings if one.law == law)
    return finding


def test_what_holds_on_both_sides_says_so_of_both() -> None:
    told = found("interpolated")
    assert told.verdict == "holds"
    elsewhere = [one.text for one in told.assuming if "elsewhere" in one.text]
    assert len(elsewhere) == 2  # of two formulas, each with lengths of its own
    assert all("of which it is proved for" in one for one in elsewhere)
    assert all("T > 24" in one or "T ≥ 25" in one for one in elsewhere)


def test_what_is_broken_on_the_other_side_is_broken() -> None:
    told = found("absolute")
    assert told.verdict == "broken"
    assert told.why.startswith("proved for")
    assert "T ≤ 24" in told.why
    assert "as at B = 3, H = 2, T = 25, other code runs, and breaks it" in told.why
    assert told.witness is not None


def test_a_law_that_the_other_side_keeps_is_proved_there() -> None:
    assert found("absolute", "norm").verdict == "holds"


def test_where_the_code_raises_there_is_nothing_to_say() -> None:
    told = found("refused")
    assert told.verdict == "holds"
    assert any("T ≤ 24" in one.text for one in told.assuming)
    assert not any("elsewhere" in one.text for one in told.assuming)


def test_what_is_not_proved_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Proofs.of
    monkeypatch.setattr(
        Proofs, "of", lambda self, law: whole(self, law) if self.elsewhere else None
    )
    told = [one.text for one in found("interpolated").assuming]
    where = "as at B = 3, H = 2, T = 25"
    assert f"other code runs elsewhere, {where}, of which it is not proved" in told


def test_lengths_on_the_other_side_are_the_smallest_at_which_the_code_runs() -> None:
    seen = []
    for beyond in ("interpolated", "refused"):
        subject = adapted_as(Branched(beyond), CALL, name=beyond)
        hooks = prove(subject, ["norm"]).hooks
        assert hooks is not None
        seen.append(lengths_elsewhere(hooks.rotate.graph))
    assert seen == [[{"B": 3, "H": 2, "n": 25}], []]
