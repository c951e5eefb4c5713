"""The bias of a window through a stored index: a function of the offset alone, or refused."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.prove import Traced, prove
from attnproof.programs.subject import subject_of
from attnproof.programs.subjects import Attention, Bias
from attnproof.theorems.definitions.references import t5_bucket

SECONDS = 40.0  # far more than any proof takes: a slow machine decides nothing


def offsets(*window: int) -> Tensor:
    """Query less key in each coordinate, (axes, R, R)."""
    grid = torch.meshgrid(*map(torch.arange, window), indexing="ij")
    places = torch.stack(grid).flatten(1)
    return places[:, :, None] - places[:, None, :]


def index(*window: int) -> Tensor:
    """Swin's index for a window of any number of axes."""
    found = torch.zeros(prod(window), prod(window), dtype=torch.int64)
    for offset, length in zip(offsets(*window), window, strict=True):
        found = found * (2 * length - 1) + offset + length - 1
    return found


def away(n: int) -> Tensor:
    return torch.arange(n)[None, :] - torch.arange(n)[:, None]


def by_distance(*window: int) -> Tensor:
    """LeViT's index: by the distance in each coordinate, whatever the direction."""
    found = torch.zeros(prod(window), prod(window), dtype=torch.int64)
    for offset, length in zip(offsets(*window), window, strict=True):
        found = found * length + offset.abs()
    return found


def verdicts(found: Traced) -> dict[str, str]:
    return {finding.law: finding.verdict for finding in found.findings}


class Window(nn.Module):
    """Swin's table and index; the table starts with zeros, for which every law holds."""

    def __init__(self, *window: int, at: Tensor | None = None) -> None:
        super().__init__()
        self.window_size = window
        self.relative_position_index: Tensor
        self.register_buffer("relative_position_index", index(*window) if at is None else at)
        rows = int(self.relative_position_index.max()) + 1
        self.relative_position_bias_table = nn.Parameter(torch.zeros(rows, 3))

    def get_bias(self) -> Tensor:
        n = round(self.relative_position_index.numel() ** 0.5)
        rows = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        return rows.view(n, n, -1).permute(2, 0, 1)


class WithOwn(Window):
    """And something of each query, or of each key."""

    def __init__(self, *window: int, of: str) -> None:
        super().__init__(*window)
        n = self.relative_position_index.shape[0]
        self.own = nn.Parameter(torch.zeros(n, 1) if of == "query" else torch.zeros(1, n))

    def get_bias(self) -> Tensor:
        return super().get_bias() + self.own


class WrittenTo(Window):
    def get_bias(self) -> Tensor:
        self.relative_position_index[1, 2] = 0
        return super().get_bias()


class Replaced(Window):
    def get_bias(self) -> Tensor:
        self.relative_position_index = self.relative_position_index.flip(0)
        return super().get_bias()


def in_window(module: nn.Module) -> Traced:
    return prove(
        Bias(name="w", heads=3, module=module, index=lambda _: index(2, 2)),
        ("offset-only",),
        seconds=SECONDS,
    )


@pytest.mark.parametrize("window", [(7, 7), (3, 5), (2, 2, 3), (1, 4), (12, 12)])
def test_the_bias_of_a_window_is_proved_to_be_of_the_offset_alone(window: tuple[int, ...]) -> None:
    found = in_window(Window(*window))
    assert not found.why
    assert verdicts(found) == {"offset-only": "holds"}
    assert found.guards == ("window = " + " × ".join(map(str, window)),)
    assert any("relative_position_index are" in told.text for told in found.findings[0].assuming)


def test_one_table_and_its_index_without_a_call_of_their_own() -> None:
    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.window_size = 4
            self.register_buffer("relative_position_index", index(4, 4))
            self.relative_position_bias_table = nn.Parameter(torch.zeros(49, 2))

        def forward(self, x: Tensor) -> Tensor:
            return x

    assert verdicts(in_window(Held())) == {"offset-only": "holds"}


def test_a_number_for_each_query_is_no_fault_and_one_for_each_key_is() -> None:
    for of, verdict in (("query", "holds"), ("key", "broken")):
        assert verdicts(in_window(WithOwn(3, 5, of=of))) == {"offset-only": verdict}


def test_distances_in_a_window() -> None:
    assert verdicts(in_window(Window(3, 5, at=by_distance(3, 5)))) == {"offset-only": "holds"}


def test_the_windows_of_transformers() -> None:
    swin = pytest.importorskip("transformers.models.swin.modeling_swin")
    found = in_window(swin.SwinRelativePositionBias(3, (2, 5)))
    assert verdicts(found) == {"offset-only": "holds"}


def with_one_entry_changed() -> Tensor:
    found = index(3, 5)
    found[2, 3] += 1
    return found


WRONG: dict[str, Callable[[], nn.Module]] = {
    "one entry is another": lambda: Window(3, 5, at=with_one_entry_changed()),
    "columns for rows": lambda: Window(3, 5, at=index(5, 3)),
    "an axis of the window turned round": lambda: Window(
        3, 5, at=index(3, 5).reshape(3, 5, 15).flip(1).reshape(15, 15)
    ),
    "by the place and not by the offset": lambda: Window(2, 3, at=torch.arange(36).reshape(6, 6)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_index_is_refused_with_a_witness(name: str) -> None:
    found = in_window(WRONG[name]())
    assert verdicts(found) == {"offset-only": "broken"}
    witness: Any = found.findings[0].witness
    assert witness.difference > 100 * witness.allowed


UNREAD: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a window that does not fit": (lambda: Window(4, 4, at=index(3, 5)), "wanted a bias of"),
    "an index that the call writes to": (lambda: WrittenTo(3, 5), "earlier calls"),
    "an index that the call replaces": (lambda: Replaced(3, 5), "a later call of the code"),
    "an index in 8 bits": (
        lambda: Window(2, 3, at=index(2, 3).to(torch.int8)),
        "torch.export refuses",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_cannot_be_read_is_told(name: str) -> None:
    make, why = UNREAD[name]
    found = in_window(make())
    assert "holds" not in verdicts(found).values()
    assert found.why
    assert why in found.why


class Rows(nn.Module):
    """A table read at a stored index of 64 by 64; the queries are the first, or the last ones."""

    def __init__(self, at: Tensor, *, last: bool = True) -> None:
        super().__init__()
        self.last = last
        self.at: Tensor
        self.register_buffer("at", at)
        self.table = nn.Parameter(torch.randn(int(at.max()) + 1, 3))

    def forward(self, queries: int, keys: int) -> Tensor:
        first = keys - queries if self.last else 0
        return self.table[self.at[first : first + queries, :keys]].permute(2, 0, 1)


def of_rows(module: Rows) -> Traced:
    return prove(Bias(name="b", heads=3, bias=module, module=module), seconds=SECONDS)


COUNTED = {
    "offsets": away(64) + 63,
    "clamped": away(64).clamp(-4, 4) + 4,
    "buckets": t5_bucket(away(64), 16, 32, both=True),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_stored_table_of_offsets_of_which_a_part_is_used(name: str) -> None:
    found = of_rows(Rows(COUNTED[name]))
    assert verdicts(found) == {"offset-only": "holds", "last-rows": "holds"}
    assert any("≤ 64" in told.text for told in found.findings[0].assuming)


def test_other_rows_and_an_entry_that_is_changed_are_seen() -> None:
    first = of_rows(Rows(COUNTED["clamped"], last=False))
    assert verdicts(first) == {"offset-only": "holds", "last-rows": "broken"}
    changed = COUNTED["clamped"].clone()
    changed[2, 3] = 0
    assert verdicts(of_rows(Rows(changed))) == {"offset-only": "broken", "last-rows": "holds"}


def attended(module: nn.Module) -> Traced:
    module.eval()

    def call(x: Tensor) -> Tensor:
        found: Tensor = module(x)[0]
        return found

    subject = Attention(name="w", layer=call, module=module, embed=8)
    return prove(subject, ("rows-of-batch-apart",), seconds=SECONDS)


def test_the_attention_of_a_window_in_transformers() -> None:
    swin = pytest.importorskip("transformers.models.swin.modeling_swin")
    second = pytest.importorskip("transformers.models.swinv2.modeling_swinv2")
    from transformers import SwinConfig, Swinv2Config

    first = swin.SwinAttention(SwinConfig(embed_dim=8, num_heads=[2]), 8, 2, 3)
    other = second.Swinv2SelfAttention(Swinv2Config(embed_dim=8, num_heads=[2]), 8, 2, (3, 3))
    for module in (first, other):
        found = attended(module)
        assert verdicts(found) == {"rows-of-batch-apart": "holds"}
        assert "n = 9" in found.guards


class Mixing(nn.Module):
    """Attention of a window with a class token, whose index is no formula."""

    def __init__(self, mixes: bool) -> None:
        super().__init__()
        self.mixes, self.window_size = mixes, (5,)
        inner = away(4) + 6
        at = torch.zeros(5, 5, dtype=torch.int64)
        at[0], at[:, 0], at[0, 0], at[1:, 1:] = 0, 1, 2, inner
        self.register_buffer("relative_position_index", at)
        self.table = nn.Parameter(torch.randn(10))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        bias = self.table[self.get_buffer("relative_position_index")]
        y = torch.softmax(x @ x.mT + bias, -1) @ x
        return (y + y.mean(0) if self.mixes else y,)


def test_an_index_with_a_class_token_is_any_numbers() -> None:
    assert verdicts(attended(Mixing(False))) == {"rows-of-batch-apart": "holds"}
    assert verdicts(attended(Mixing(True))) == {"rows-of-batch-apart": "broken"}


class ExactlySix(nn.Module):
    """Attention of exactly six tokens, with a number for each pair of places."""

    def __init__(self, mixes: bool = False) -> None:
        super().__init__()
        self.mixes, self.out = mixes, nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.randn(6, 6))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(torch.softmax(x @ x.mT + self.bias, -1) @ x)
        return y + y.mean(0) if self.mixes else y


def test_code_of_one_number_of_tokens_is_proved_of_that_number() -> None:
    """Nothing is padded there, and the line does not say that anything is."""

    def proved(module: nn.Module) -> Traced:
        code: Any = subject_of(module, "x: B 6 E -> B 6 E", "attention")
        assert "padded with zeros to 6" in code.adapted
        return prove(code, ("rows-of-batch-apart",), seconds=SECONDS)

    (found,) = proved(ExactlySix()).findings
    assert found.verdict == "holds"
    told = [one.text for one in found.assuming]
    assert "n = 6" in told
    assert [one for one in told if "padded" in one] == []
    assert verdicts(proved(ExactlySix(mixes=True))) == {"rows-of-batch-apart": "broken"}
