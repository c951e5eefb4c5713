"""Code is taken for what it is, left as it was, and told why where it fits nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.running import CodeFault
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary
from tests.programs.adapting_code import half, plain, rotates_as_half


def test_an_instance_is_copied_and_not_used() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            self.calls += 1
            return half(x, positions)

    mine = Counting()
    subject = adapted_as(mine, kind="rotary")
    assert mine.calls == 0
    assert subject.module is not mine
    rotates_as_half(subject)


def test_a_subject_is_returned_with_what_is_declared() -> None:
    mine = Rotary(name="mine", rotate=half, width=8)
    assert adapted_as(mine) is mine
    declared = DeclaredRotary(base=10000.0)
    made = adapted_as(mine, declared=declared, name="theirs")
    assert (made.name, getattr(made, "declared", None)) == ("theirs", declared)
    with pytest.raises(ValueError, match="is rotary code"):
        adapted_as(mine, kind="bias")
    assert adapted_as(lambda: mine) is mine


def test_fields_are_set_and_stay_set_when_built_anew() -> None:
    subject = adapted_as(half, kind="rotary", first=-4)
    assert isinstance(subject, Rotary)
    assert subject.make is not None
    assert subject.first == subject.make().first == -4
    with pytest.raises(TypeError, match="no colour"):
        adapted_as(half, kind="rotary", colour=1)


LAYERS = (nn.Linear(8, 8), nn.LayerNorm(16), nn.GRU(8, 8, batch_first=True))


@pytest.mark.parametrize("module", LAYERS)
def test_what_is_nothing_else_is_a_layer(module: nn.Module) -> None:
    assert adapted_as(module).kind == "layer"


def test_the_guess_is_said() -> None:
    assert "taken for attention code" in adapted_as(plain).adapted
    assert "taken for" not in adapted_as(plain, kind="attention").adapted


class RopeBlock(nn.Module):
    """A layer that is named after a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.weight(x)
        return out


def test_code_of_another_shape_than_its_name_says_is_no_layer_unless_it_has_weights() -> None:
    def my_rope(x: Tensor) -> Tensor:
        return torch.cat((x, x), -1)

    def doubled(x: Tensor) -> Tensor:
        return torch.cat((x, x), -1)

    with pytest.raises(NoAdapter, match="its names say rotary: if it is a layer, say so"):
        adapted_as(my_rope)
    assert adapted_as(my_rope, kind="layer").kind == adapted_as(doubled).kind == "layer"
    told = adapted_as(RopeBlock()).adapted
    assert "taken for layer code" in told
    assert "as rotary code, which its names say, it cannot be called" in told
    assert "names" not in adapted_as(doubled).adapted


def test_code_that_fits_nothing_is_told_what_was_tried_and_what_to_write() -> None:
    def odd(colour: str, shade: str) -> str:
        return colour + shade

    with pytest.raises(NoAdapter) as caught:
        adapted_as(odd)
    assert set(caught.value.tried) == {"rotary", "attention", "bias", "additive", "mask", "layer"}
    text = str(caught.value)
    assert "test_adapting.py" in text
    assert "'shade'" in text
    assert "def subject():" in text


def test_a_class_that_wants_what_no_name_says_is_told() -> None:
    class Wants(nn.Module):
        def __init__(self, colour: str) -> None:  # noqa: ARG002
            super().__init__()

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(NoAdapter, match="'colour'"):
        adapted_as(Wants)
    assert adapted_as(Wants, settings={"colour": "red"}).kind == "layer"


def test_what_cannot_be_called_is_told() -> None:
    with pytest.raises(NoAdapter, match="cannot be called"):
        adapted_as(3)
    with pytest.raises(ValueError, match="kind is one of"):
        adapted_as(plain, kind="colour")


def test_code_that_prints_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    def talks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        print("hello")
        return plain(q, k, v)

    adapted_as(talks)
    assert capfd.readouterr() == ("", "")


def test_the_random_state_is_as_it_was() -> None:
    before = torch.random.get_rng_state()
    adapted_as(lambda x: x + torch.randn_like(x), kind="layer")
    assert torch.equal(before, torch.random.get_rng_state())


def test_code_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnproof.programs.adapting.SECONDS", 0.2)

    def forever(x: Tensor) -> Tensor:
        while True:
            x = x + 1

    with pytest.raises(CodeFault, match="did not end"):
        adapted_as(forever)


def test_rotary_code_may_still_be_given_as_turn_and_it_is_said() -> None:
    with pytest.warns(DeprecationWarning, match="turn= of Rotary is now called rotate=") as told:
        former = Rotary(name="mine", turn=half, width=8)  # type: ignore[call-arg]
    assert former == Rotary(name="mine", rotate=half, width=8)
    assert [warning.filename for warning in told] == [__file__]
