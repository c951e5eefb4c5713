"""The card of code: laws of encodings asked of its graph, and what it must refuse."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnproof.cards.verdicts import settled
from attnproof.cli import main
from attnproof.documents.verdict_line import Condition
from attnproof.laws import LAWS
from attnproof.programs.prove import Traced, prove
from attnproof.programs.prove.traced_rotation import Hooks
from attnproof.programs.subject import adapted_as
from attnproof.real_code.card import card_of, encoding_of
from attnproof.real_code.page_text import card_lines
from attnproof.real_code.records import CardLawRecord, CardRecord, CodesRecord
from tests.front.planted import planted


class Rotated(nn.Module):
    """Half-split rotation; ``power`` of the position, and growth with it, spoil laws."""

    inv_freq: Tensor

    def __init__(self, power: int = 1, grows: bool = False, longest: int = 0) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, 8, 2).float() / 8))
        self.power, self.grows, self.longest = power, grows, longest

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        p = positions[:, None, :, None].float()
        angle = p**self.power * self.inv_freq
        if self.longest and x.shape[-2] > self.longest:
            angle = 2 * angle
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        rotated = torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
        return rotated * (1 + p) if self.grows else rotated


class Stored(nn.Module):
    """The same by stored cosines of 64 positions."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        angle = torch.outer(torch.arange(64.0), 10000.0 ** (-torch.arange(0, 8, 2).float() / 8))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys in one call, by tables that it is given."""

    def one(x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return x * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None]

    return one(q), one(k)


def test_code_of_queries_and_keys_has_a_card_of_both() -> None:
    subject = adapted_as(both, "q: B H n D, k: B H n D, cos: B n D, sin: B n D -> q, k")
    traced = prove(subject, ["norm"])
    assert traced.hooks is not None
    assert traced.hooks.key is not None
    wanted = tuple(law for law in LAWS if law.id in ("relative", "composes", "even"))
    found = {one["law"]: one["verdict"] for one in card_of(traced.hooks, wanted)}
    assert found == {"relative": "proved", "composes": "proved", "even": "refuted"}


MADE = {
    "right": Rotated(),
    "squares": Rotated(power=2),
    "grows": Rotated(grows=True),
    "branch": Rotated(longest=7),
    "stored": Stored(),
}


@cache
def hooks(name: str) -> Hooks:
    subject = adapted_as(MADE[name], "x: B H n D, positions: B n -> x", name=name)
    traced: Traced = prove(subject, ["identity-at-zero"])
    assert traced.hooks is not None
    return traced.hooks


def cells(name: str, *laws: str) -> dict[str, dict[str, Any]]:
    wanted = tuple(law for law in LAWS if law.id in laws)
    assert len(wanted) == len(laws)
    return {one["law"]: one for one in card_of(hooks(name), wanted)}


def test_a_rotation_obeys_what_rope_obeys_and_breaks_what_it_breaks() -> None:
    kept = ("relative", "composes", "keeps-norms", "key-can-be-moved", "translation")
    found = cells("right", *kept, "even")
    assert {found[law]["verdict"] for law in kept} == {"proved"}
    assert found["even"]["verdict"] == "refuted"
    assert "left" in found["even"]["why"]
    assert "inv_freq" not in found["even"]["why"]  # it is the code's own
    told = [one["text"] for one in found["translation"]["assuming"]]
    assert "D = 8" in told
    assert any("every float32 call" in text for text in told)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("squares", "relative"),
        ("squares", "composes"),
        ("grows", "keeps-norms"),
        ("grows", "relative"),
        ("squares", "key-can-be-moved"),
    ],
)
def test_a_law_that_the_code_breaks_is_refuted_with_its_own_numbers(name: str, law: str) -> None:
    assert cells(name, law)[law]["verdict"] == "refuted"


def test_what_is_proved_on_one_side_of_a_branch_says_which() -> None:
    (told,) = cells("branch", "translation").values()
    assert told["verdict"] == "proved"
    texts = [one["text"] for one in told["assuming"]]
    assert {"n_q ≤ 7", "n_k ≤ 7"} <= set(texts)


def test_a_counterexample_at_lengths_of_another_graph_is_none() -> None:
    own = replace(hooks("squares"), allows=lambda _: False)
    (told,) = list(card_of(own, tuple(law for law in LAWS if law.id == "composes")))
    assert told["verdict"] == "undecided"


def test_stored_cosines_are_proved_within_their_table_and_refute_nothing() -> None:
    found = cells("stored", "relative", "even", "defined-beyond")
    assert found["relative"]["verdict"] == "proved"
    texts = [one["text"] for one in found["relative"]["assuming"]]
    assert "indices stay in 0, .., 63, those of a stored table" in texts
    assert found["even"]["verdict"] == "undecided"
    assert "rounded" in found["even"]["why"]
    assert found["defined-beyond"]["verdict"] == "refuted"
    assert "IndexError" in found["defined-beyond"]["why"]


def test_on_numpy_the_code_itself_is_run() -> None:
    made = encoding_of(hooks("right")).with_defaults()
    x, p = np.arange(16.0).reshape(2, 8), np.array([3.0, 5.0])
    want = MADE["right"](torch.tensor(x).float()[None, None], torch.tensor(p)[None])[0, 0]
    assert np.allclose(made.rotate(x, p), want.double().numpy(), atol=1e-6)
    assert np.allclose(made.rotate(x[1], p[1]), want[1].double().numpy(), atol=1e-6)
    other = {**{name: getattr(made, name) for name in made.declared()}}
    other = {name: 2 * value for name, value in other.items()}
    with pytest.raises(ValueError, match="wanted the parameters of the code"):
        type(made)(**other).rotate(x, p)


def test_a_fault_of_ours_in_one_law_is_told_as_ours_and_loses_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, other = (law for law in LAWS if law.id in ("relative", "composes"))
    fails = planted("symbolic/prove.py")
    monkeypatch.setattr(
        "attnproof.real_code.card.settled",
        lambda law, *more: fails() if law is first else settled(law, *more),
    )
    told = list(card_of(hooks("right"), (first, other)))
    assert [one["verdict"] for one in told] == ["internal error", "proved"]
    assert told[0]["traceback"]


def test_what_is_refuted_by_a_proof_has_its_conditions_in_its_line() -> None:
    law = CardLawRecord(
        law="acts-on-scores",
        verdict="refuted",
        why="its negation is proved",
        seconds=0.0,
        says="",
        assuming=(Condition(text="D = 8", kind="for"),),
    )
    (_, line) = card_lines(CardRecord(why="", laws=(law,)))
    assert line == "  refuted for D = 8: acts-on-scores: its negation is proved"


def test_conditions_stand_once_for_all_laws_that_share_them() -> None:
    proved = CardLawRecord(law="even", verdict="proved", why="", assuming=(), seconds=0.0, says="")
    laws = [
        proved,
        proved.model_copy(update={"law": "odd"}),
        proved.model_copy(update={"law": "unique", "verdict": "does not apply"}),
    ]
    told = list(card_lines(CardRecord(why="", laws=tuple(laws))))
    assert "  proved: even, odd" in told
    assert not any("unique" in line for line in told)
    assert any(
        "unique" in line for line in card_lines(CardRecord(why="", laws=tuple(laws)), verbose=True)
    )


def test_the_command_shows_it_and_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "layer.py"
    code.write_text("def layer(x):\n    return 2 * x\n")
    kept = tmp_path / "kept.json"
    words = ["check", f"{code}::layer", "--as", "layer", "--card", "--json", str(kept)]
    assert main([*words, "--store", str(tmp_path / "store")]) == 0
    assert "it has no card: it is layer code" in " ".join(capsys.readouterr().out.split())
    (record,) = CodesRecord.model_validate_json(kept.read_text()).codes
    assert record.card is not None
    assert record.card.laws == ()
