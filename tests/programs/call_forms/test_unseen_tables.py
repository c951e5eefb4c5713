"""Tables of positions, and layers with one inside, as published code makes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, kind_of
from attnproof.programs.subjects import Additive, Subject


def _found(code: Subject, law: str) -> Finding:
    (found,) = examine(code, laws=(law,))
    return found


class PaddedTable(nn.Module):
    """A table of positions, in which the rows of padding are zeros."""

    pe: Tensor

    def __init__(self, d_model: int = 16) -> None:
        super().__init__()
        at, k = torch.arange(64.0)[:, None], torch.arange(0, d_model, 2)
        pe = torch.zeros(1, 64, d_model)
        angles = at * 10000.0 ** (-k / d_model)
        pe[0, :, 0::2], pe[0, :, 1::2] = angles.sin(), angles.cos()
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor, padding_mask: Tensor) -> Tensor:
        rows = self.pe[:, : x.shape[1]].repeat(x.shape[0], 1, 1)
        return rows.masked_fill(padding_mask[..., None], 0.0)


@pytest.mark.parametrize("line", ["", "x: B n E, padding_mask: B n hide -> B n E"])
def test_a_table_that_takes_padding_is_a_table(line: str) -> None:
    found = adapted_as(PaddedTable, line, name="PositionalEncoding")
    assert isinstance(found, Additive)
    assert "padding_mask: B n hide" in found.line


def test_what_is_called_a_layer_and_takes_padding_is_one() -> None:
    call = parse("x: B n E, padding_mask: B n hide -> B n E")
    assert kind_of(call, "PositionalAttention") == "attention"
    assert kind_of(call, "PositionalEncoding") == "additive"


class PositionalEncoder(nn.Module):
    """Scales its tokens in place, adds a table and gives the norm of the sum: no table alone."""

    def __init__(self, model_size: int = 24) -> None:
        super().__init__()
        self.pe = torch.randn(50, model_size, generator=torch.Generator().manual_seed(1))
        self.norm = nn.LayerNorm(model_size)

    def forward(self, x: Tensor) -> Tensor:
        x *= 3.0
        out: Tensor = self.norm(x + self.pe[: x.shape[1]])
        return out


def test_tokens_are_no_coordinates_and_code_that_writes_in_them_breaks_one_law() -> None:
    found = adapted_as(PositionalEncoder)
    assert found.line == "x: B n E -> B n E"
    assert {law: _found(found, law).verdict for law in ("no-mutation", "stateless")} == {
        "no-mutation": "broken",
        "stateless": "holds",
    }


class TimeFirst(nn.Module):
    """Adds a learned table to tokens (n, B, E), and gives the norm of the sum."""

    def __init__(self, d_model: int = 16) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(50, d_model), nn.LayerNorm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x + self.table(torch.arange(x.shape[0]))[:, None])
        return out


def test_rows_that_have_places_are_tokens() -> None:
    """Called as x: B n E, equal rows of the batch came back different."""
    found = adapted_as(TimeFirst, name="PositionalEncoding")
    assert found.line == "x: n B E -> n B E"
    told = adapted_as(TimeFirst, "x: B n E -> B n E", kind="layer")
    assert _found(told, "rows-of-batch-apart").verdict == "broken"


class TimeEncoding(nn.Module):
    """Sines and cosines of times (B, n)."""

    omega: Tensor

    def __init__(self, d_model: int = 16) -> None:
        super().__init__()
        self.register_buffer("omega", 10000.0 ** -(torch.arange(0, d_model, 2) / d_model))

    def forward(self, x: Tensor) -> Tensor:
        angles = x[..., None] * self.omega
        return torch.cat((angles.sin(), angles.cos()), -1)


class WordPositionEmbedding(nn.Module):
    """A row for each word, whatever its name says."""

    def __init__(self, d_model: int = 16) -> None:
        super().__init__()
        self.rows = nn.Embedding(50, d_model)

    def forward(self, input_ids: Tensor) -> Tensor:
        out: Tensor = self.rows(input_ids)
        return out


def test_times_are_no_words() -> None:
    """Called with words that are all alike, each place had the same row, and that was told."""
    found = adapted_as(TimeEncoding, name="TimePositionalEncoding")
    assert "x: n coordinates" in found.line
    assert _found(found, "sees-positions").verdict == "holds"


def test_a_row_for_each_word_is_no_table_of_positions() -> None:
    with pytest.raises(NoAdapter, match="the same row for an id"):
        adapted_as(WordPositionEmbedding)


def months(encoding_dim: int) -> Tensor:
    """A table of twelve rows."""
    angles = torch.arange(12)[:, None] * torch.arange(1, encoding_dim // 2 + 1) * math.tau / 12
    return torch.cat((angles.sin(), angles.cos()), -1)


def test_a_table_of_so_many_rows_is_told_by_their_number() -> None:
    found: Any = adapted_as(months, "encoding_dim = E -> 12 E")
    assert found.added(torch.zeros(2, 5, found.width)).shape == (2, 5, found.width)
    with pytest.raises(SignatureError, match="at most 12 tokens"):
        found.added(torch.zeros(2, 13, found.width))


def weighed(at: Tensor, mask: Tensor) -> Tensor:
    """A table by positions, times a mask of ones."""
    return mask[..., None] * torch.sin(at[..., None] * torch.arange(1.0, 9.0))


def test_numbers_beside_a_table_are_ones() -> None:
    found: Any = adapted_as(weighed, "at: B n positions, mask: B n ones -> B n E", kind="additive")
    assert bool(found.added(torch.zeros(1, 3, 8))[:, 1:].any())


class Waves(nn.Module):
    """Waves of coordinates, the shortest a thousandth of a unit long."""

    def __init__(self, width: int = 16, power: int = 1) -> None:
        super().__init__()
        self.power = power
        lengths = 0.001 * 10.0 ** (torch.arange(width // 2) * 7 / (width // 2 - 1))
        self.register_buffer("lengths", lengths)

    def forward(self, t: Tensor) -> Tensor:
        angles = 2 * math.pi * t[..., None] ** self.power / self.get_buffer("lengths")
        return torch.cat((angles.sin(), angles.cos()), -1)


@pytest.mark.parametrize("power", [1, 2])
def test_what_rounding_leaves_of_short_waves_is_no_fault(power: int) -> None:
    found = adapted_as(Waves(power=power), "t: B n coordinates -> B n E", kind="additive")
    broken = [
        one.law
        for one in examine(found, laws=("linear-shift", "products-of-offset"))
        if one.verdict == "broken"
    ]
    assert broken == ([] if power == 1 else ["linear-shift", "products-of-offset"])


def sincos_of_numpy(embed_dim: int, length: int) -> Any:
    """A table that numpy makes."""
    omega = 10000.0 ** (-np.arange(embed_dim // 2) / (embed_dim // 2))
    angles = np.arange(length)[:, None] * omega
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def squares_of_numpy(embed_dim: int, length: int) -> Any:
    """The same of squares of positions, which no matrix shifts."""
    omega = 10000.0 ** (-np.arange(embed_dim // 2) / (embed_dim // 2))
    angles = np.arange(length)[:, None] ** 2 * omega
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def test_a_table_of_numpy_is_a_table() -> None:
    right, wrong = (adapted_as(one, kind="additive") for one in (sincos_of_numpy, squares_of_numpy))
    assert _found(right, "linear-shift").verdict == "holds"
    assert _found(wrong, "linear-shift").verdict == "broken"


def waves(dims: tuple[int, ...], bands: int) -> Tensor:
    """Sines, cosines and the place itself, from -1 to 1."""
    at = torch.linspace(-1, 1, dims[0])[:, None]
    angles = at * torch.arange(1, bands + 1) * math.pi
    return torch.cat((angles.sin(), angles.cos(), at), -1)


def test_rows_of_a_told_number_of_features_are_a_table() -> None:
    found = adapted_as(waves, "dims = (n,), bands = 4 -> n 9")
    assert isinstance(found, Additive)
    assert found.width == 9
    with pytest.raises(SignatureError, match="wanted rows of 8 numbers from waves, got 9"):
        adapted_as(waves, "dims = (n,), bands = 4 -> n 8")


class StoredTables(nn.Module):
    """Cosines and sines of as many tokens as are asked for; x says their format alone."""

    def __init__(self, dim: int = 8, longest: int = 64) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(longest), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
        self.register_buffer("angles", torch.cat((angles, angles), -1))

    def forward(self, x: Tensor, seq_len: int) -> tuple[Tensor, Tensor]:
        angles = self.get_buffer("angles")[:seq_len].to(x.dtype)
        return angles.cos(), angles.sin()


def test_tables_that_are_called_as_if_they_were_what_is_rotated_are_refused() -> None:
    line = "x: B n D tokens, seq_len = n -> cos: n D, sin: n D"
    with pytest.raises(SignatureError, match=r"wanted \(13, 16\) back"):
        adapted_as(StoredTables, line, kind="rotary")
