"""Each remark falls on code that does other than it says, and not where it does what it says."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.code import place_of, source_of
from attnproof.programs.declarations import parse
from attnproof.programs.identify import identify
from attnproof.programs.identify.remarks import remarks_on
from attnproof.programs.identify.suggestions import suggestions_of
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention


def about(thing: Any, kind: str | None = None) -> list[str]:
    """The parts that are remarked of code as a user gives it."""
    subject = adapted_as(thing, "", kind=kind)
    return [one.about for one in remarks_on(subject, identify(subject), thing)]


class Partial(nn.Module):
    """Half of a head of 16 channels rotates."""

    def __init__(self, over: int, theta: float = 10000.0, used: float = 10000.0) -> None:
        super().__init__()
        self.head_dim, self.rotary_dim, self.rope_theta = 16, 8, theta
        self.frequencies = used ** (-torch.arange(0, 8, 2) / over)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None, :, None].float() * self.frequencies
        cos, sin = angles.cos(), angles.sin()
        u, v = x[..., :8].chunk(2, -1)
        return torch.cat((u * cos - v * sin, u * sin + v * cos, x[..., 8:]), -1)


def test_exponents_over_the_head_where_half_of_it_rotates() -> None:
    assert about(Partial(8)) == []
    assert about(Partial(16)) == ["frequencies"]


def test_a_base_that_is_set_and_not_used() -> None:
    assert about(Partial(8, theta=1e6, used=1e6)) == []
    assert about(Partial(8, theta=1e6)) == ["base"]


class OfItsContext(Partial):
    """Its base follows from the length of the context, as in ProtHash."""

    def __init__(self, over: int) -> None:
        super().__init__(over)
        base = math.ceil((2048 / math.tau) ** (over / (over - 2)))
        self.frequencies = base ** (-torch.arange(0, 8, 2) / over)
        del self.rope_theta


class Slipped(OfItsContext):
    """A base that nobody wrote down, of code that computes none."""

    def __init__(self) -> None:
        super().__init__(8)
        self.frequencies = torch.exp(-9.3 * torch.arange(0, 8, 2) / 8)


def test_a_base_that_is_computed_has_any_digits() -> None:
    assert about(OfItsContext(8)) == []
    assert about(Slipped()) == ["base"]


ANGLES = """
import torch
from torch import nn

class RotaryEmbedding(nn.Module):
    def __init__(self, dim, theta = {base}):
        super().__init__()
        self.inv_freq = 1.0 / theta ** (torch.arange(0, dim, 2) / dim)

    def forward(self, positions):
        angles = positions[:, None].float() * self.inv_freq
        return torch.cat((angles, angles), -1)

def apply_rotary_pos_emb(t, pos):
    a, b = t.chunk(2, -1)
    return t * pos.cos() + torch.cat((-b, a), -1) * pos.sin()
"""


@pytest.mark.parametrize(("base", "found"), [("32768", []), ("2.0 ** 15.1", ["base"])])
def test_a_base_that_the_code_of_the_tables_states_is_not_remarked(
    base: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"angles_{len(found)}"
    (tmp_path / f"{name}.py").write_text(ANGLES.format(base=base), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert about(import_module(name).apply_rotary_pos_emb) == found


def test_a_width_that_is_set_and_not_used() -> None:
    wide = Partial(8)
    wide.rotary_dim = 4
    assert about(wide) == ["width"]


class NeoX(Partial):
    """Its family rotates channel i with channel i + half."""


class GPTJRotary(Partial):
    """Its family rotates neighbours."""


def test_a_family_whose_layout_is_another() -> None:
    assert about(NeoX(8)) == []
    assert about(GPTJRotary(8)) == ["layout"]


def bare(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT, -1) @ v


def upside_down(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * q.shape[-1] ** 0.5, -1) @ v


def over_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -2) @ v


def slot_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -2) @ v


def usual(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (usual, []),
        (bare, ["scale"]),
        (upside_down, ["scale"]),
        (over_queries, ["softmax"]),
        (slot_attention, []),
    ],
)
def test_scale_and_axis_of_the_softmax(code: Callable[..., Tensor], expected: list[str]) -> None:
    assert about(code, "attention") == expected


def test_what_is_declared_is_not_remarked() -> None:
    subject = adapted_as(bare, "", declared=parse("attention:scale=1"))
    assert remarks_on(subject, identify(subject), bare) == ()


def see_one_more(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = q @ k.mT * q.shape[-1] ** -0.5
    seen = torch.ones(s.shape[-2:]).tril(s.shape[-1] - s.shape[-2] + 1).bool()
    return torch.softmax(s.masked_fill(~seen, -torch.inf), -1) @ v


def see_no_more(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = q @ k.mT * q.shape[-1] ** -0.5
    seen = torch.ones(s.shape[-2:]).tril(s.shape[-1] - s.shape[-2]).bool()
    return torch.softmax(s.masked_fill(~seen, -torch.inf), -1) @ v


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


def non_causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (see_no_more, []),
        (see_one_more, ["mask"]),
        (causal_attention, ["mask"]),
        (non_causal_attention, []),
    ],
)
def test_a_causal_mask_that_is_off_by_one_or_missing(
    code: Callable[..., Tensor], expected: list[str]
) -> None:
    assert about(code, "attention") == expected


class Windowed(nn.Module):
    """Attention with a window."""

    def __init__(self, sliding_window: int = 4, more: int = 0) -> None:
        super().__init__()
        self.sliding_window, self.more = sliding_window, more

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        s = q @ k.mT * q.shape[-1] ** -0.5
        back = torch.arange(s.shape[-2])[:, None] - torch.arange(s.shape[-1])
        seen = (back >= 0) & (back < self.sliding_window + self.more)
        return torch.softmax(s.masked_fill(~seen, -torch.inf), -1) @ v


def test_a_window_of_one_key_more() -> None:
    assert about(Windowed(), "attention") == []
    assert about(Windowed(more=1), "attention") == ["window"]


class AlibiBias(nn.Module):
    """Lines with a slope for each head."""

    def __init__(self, heads: int = 8, start: int = 1) -> None:
        super().__init__()
        self.heads, self.start = heads, start

    def forward(self, queries: int, keys: int) -> Tensor:
        slopes = 2.0 ** (-8.0 * (torch.arange(self.heads) + self.start) / self.heads)
        distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
        return -slopes[:, None, None] * distance


def test_slopes_off_by_one() -> None:
    assert about(AlibiBias(), "bias") == []
    assert about(AlibiBias(start=0), "bias") == ["slopes"]


def layer(*, places: bool) -> Attention:
    """Attention over tokens whose places are counted from the first, hidden or not."""
    table = torch.randn(64, 8, generator=torch.Generator().manual_seed(3)) * places

    def hide(x: Tensor, keep: Tensor) -> Tensor:
        h = x + table[: x.shape[1]].to(x)
        s = (h @ h.mT).masked_fill(~keep[:, None], -torch.inf)
        return torch.softmax(s, -1) @ h

    return Attention(
        name="f", layer=lambda x: hide(x, torch.ones(x.shape[:2]).bool()), hide=hide, embed=8
    )


def test_absolute_positions_show_behind_hidden_tokens() -> None:
    for places, value in ((True, True), (False, None)):
        part: Any = identify(layer(places=places)).part("absolute positions")
        assert (part.value, part.certain) == (value, places)


def test_what_code_says_of_itself() -> None:
    said = suggestions_of(Partial(8))
    assert [str(one) for one in said.under(("rope_theta",), float)] == [
        "rope_theta = 10000.0 of Partial"
    ]
    assert said.named(r"\bpartial\b") == "Partial"
    assert 8.0 in said.numbers
    assert said.docs["Partial"].startswith("Half of a head")
    assert suggestions_of(len).settings == ()


def test_the_file_of_a_class_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Again(Partial):
        """To find it takes as long as its file."""

    asked: list[Any] = []
    lines = inspect.getsourcelines

    def counted(one: Any) -> Any:
        asked.append(one)
        return lines(one)

    monkeypatch.setattr(inspect, "getsourcelines", counted)
    said = suggestions_of(Again(8))
    assert said.source.splitlines()[0] == "class Again(Partial):"
    assert source_of(Again).lstrip().startswith(said.source.splitlines()[0])
    assert place_of(Again).startswith(f"{__file__}:")
    assert asked.count(Again) == 1
