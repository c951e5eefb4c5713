"""Tables as one part of code hands them to another: with more rows, in their own axes, cast."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove import prove
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary, Subject
from tests.programs.adapting_code import rotates_as_half, user_file

HALVES = "cos: 1 1 {0} D, sin: 1 1 {0} D"


class Kept(nn.Module):
    """Gives the longest tables that it has made so far, all rows of them."""

    inv_freq: Tensor

    def __init__(self, dim: int, base: float = 10000.0) -> None:
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv_freq)
        self.rows = 0

    def forward(self, x: Tensor, seq_len: int) -> tuple[Tensor, Tensor]:
        assert x.ndim == 4
        if seq_len > self.rows:
            self.rows = seq_len
            angles = torch.arange(seq_len, dtype=self.inv_freq.dtype)[:, None] * self.inv_freq
            both = torch.cat((angles, angles), -1)
            self.cos, self.sin = both.cos()[None, None], both.sin()[None, None]
        return self.cos, self.sin


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return x * cos + torch.cat((-v, u), -1) * sin


def cuts(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Takes the first rows of the tables."""
    n = q.shape[-2]
    return _rotated(q, cos[..., :n, :], sin[..., :n, :])


def whole(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Takes the tables as they are."""
    return _rotated(q, cos, sin)


def _kept(applied: str, rows: str = "m", given: str = "m") -> Rotary:
    back, there = HALVES.format(rows), HALVES.format(given)
    then = f"then {applied}(q: B H n D, {there} -> q)"
    found = adapted_as(Kept, f"x: B H n D, seq_len = m -> {back}; {then}; built with dim = D")
    assert isinstance(found, Rotary)
    return found


def _found(code: Subject, law: str) -> Finding:
    (found,) = examine(code, laws=(law,))
    return found


@pytest.mark.parametrize("rows", ["m", "n"])
def test_longer_tables_are_taken_by_code_that_cuts_them(rows: str) -> None:
    assert _found(_kept("cuts", given=rows), "stateless").verdict == "holds"


def test_longer_tables_break_code_that_takes_all_rows() -> None:
    found = _found(_kept("whole", given="n"), "stateless")
    assert found.verdict == "broken"
    assert "raises" in found.why


def test_rows_that_nothing_chooses_are_those_of_the_tokens() -> None:
    """A law of positions was held against the first rows, whatever the positions."""
    code = _kept("cuts")
    x, at = torch.randn(1, 1, 3, code.width), torch.tensor([[4, 9, 2]])
    assert not torch.allclose(code.rotate(x, at), code.rotate(x, torch.arange(3)[None]))


class FromOffset(nn.Module):
    """Tables whose first row is that of an offset."""

    inv_freq: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** -(torch.arange(0, dim, 2) / dim))

    def forward(self, seq_len: int, offset: int) -> tuple[Tensor, Tensor]:
        angles = torch.arange(offset, offset + seq_len)[:, None] * self.inv_freq
        both = torch.cat((angles, angles), -1)
        return both.cos(), both.sin()


def test_tables_from_an_offset_on_are_made_from_the_first_position() -> None:
    tables = "cos: n D, sin: n D"
    then = f"then whole(q: B H n D, {tables} -> q); built with dim = D"
    found = adapted_as(FromOffset, f"seq_len = n, offset = p -> {tables}; {then}")
    for law in ("identity-at-zero", "angles-are-exact"):
        assert _found(found, law).verdict == "holds"


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_kept_of_calls_hides_no_cast(kept: bool) -> None:
    """The tables of the first call outlive a cast; those of a cast module are rounded."""

    class Inside(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.tables = Kept(dim)
            if not kept:  # frequencies that no cast reaches
                frequencies = self.tables.inv_freq
                del self.tables.inv_freq
                self.tables.inv_freq = frequencies

        def forward(self, x: Tensor) -> Tensor:
            return cuts(x, *(t.to(x.dtype) for t in self.tables(x, x.shape[-2])))

    code = adapted_as(Inside, "x: B H n D -> x; built with dim = D", kind="rotary")
    assert _found(code, "survives-casting").verdict == ("broken" if kept else "holds")


class Growing(nn.Module):
    """Tables of so many rows as buffers, made anew of a buffer where more are wanted."""

    inv_freq: Tensor
    cos: Tensor
    sin: Tensor

    def __init__(self, dim: int, rows: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** -(torch.arange(0, dim, 2) / dim))
        self.grow(rows)

    def grow(self, rows: int) -> None:
        angles = torch.arange(rows)[:, None] * self.inv_freq.float()
        both = torch.cat((angles, angles), -1)
        self.register_buffer("cos", both.cos())
        self.register_buffer("sin", both.sin())

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > len(self.cos):
            self.grow(x.shape[-2])
        return cuts(x, self.cos.to(x.dtype), self.sin.to(x.dtype))


@pytest.mark.parametrize("rows", [64, 1 << 17])
def test_a_table_that_grows_is_cast_before_it_has_grown(rows: int) -> None:
    """Of a table that is long enough a cast rounds cosines and sines, and no frequency."""
    code = adapted_as(Growing, f"x: B H n D -> x; built with dim = D, rows = {rows}", kind="rotary")
    assert _found(code, "survives-casting").verdict == ("broken" if rows == 64 else "holds")


TIME_FIRST = """
class RotaryTables(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inv_freq = 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim)
    def forward(self, x, seq_len):
        angles = torch.arange(seq_len)[:, None] * self.inv_freq
        both = torch.cat((angles, angles), -1)[:, None, None]
        return both.cos(), both.sin()
def apply_rotary_pos_emb(q, k, cos, sin):
    cos, sin = cos[: q.shape[0]], sin[: q.shape[0]]  # (m, 1, 1, D), cut along tokens
    return [x * cos + rotate_half(x) * sin for x in (q, k)]
def rotate_half(x):
    u, v = x.chunk(2, -1)
    return torch.cat((-v, u), -1)
"""
FOLDED = """
def apply_rotary_pos_emb(qk, sinu_pos):
    sin, cos = sinu_pos.squeeze(0).chunk(2, -1)
    n = sin.shape[-2]  # of (B H) n D the first n tokens rotate
    rotated, rest = qk[:, :n], qk[:, n:]
    u, v = rotated.unflatten(-1, (-1, 2)).unbind(-1)
    out = torch.stack((u * cos - v * sin, u * sin + v * cos), -1).flatten(-2)
    return torch.cat((out, rest), 1)
"""


@pytest.mark.parametrize("name", ["apply_rotary_pos_emb", "RotaryTables"])
def test_tables_are_handed_on_in_the_axes_in_which_they_are_made(name: str, tmp_path: Path) -> None:
    """Of q: B H n D with a table B 1 n D rows of the batch are cut, and it fits as well."""
    line = adapted_as(getattr(user_file(tmp_path, TIME_FIRST), name)).line
    assert "q: n B H D" in line
    assert "cos: n 1 1 D" in line


def test_more_heads_than_tokens_show_which_axis_is_which(tmp_path: Path) -> None:
    """Of qk: B H n D with more heads than tokens the last heads pass."""
    found = adapted_as(user_file(tmp_path, FOLDED).apply_rotary_pos_emb)
    assert found.line.startswith("qk: B n D, ")


SINES_FIRST = """
def {0}({1}, head_dim):
    angles = {2}[:, None] * 10000.0 ** -(torch.arange(0, head_dim, 2) / head_dim)
    both = torch.cat((angles, angles), -1)
    return both.sin(), both.cos()
def apply_rotary_pos_emb(x, sin, cos):
    u, v = x.chunk(2, -1)
    return x * cos + torch.cat((-v, u), -1) * sin
"""
BY_LENGTH = SINES_FIRST.format("rope_tables", "seq_len", "torch.arange(seq_len)")
BY_PLACE = SINES_FIRST.format("rope_tables", "positions", "positions")


@pytest.mark.parametrize("name", ["apply_rotary_pos_emb", "rope_tables"])
@pytest.mark.parametrize("source", [BY_LENGTH, BY_PLACE])
def test_sines_that_come_back_first_are_told_by_what_they_are(
    source: str, name: str, tmp_path: Path
) -> None:
    rotates_as_half(adapted_as(getattr(user_file(tmp_path, source), name)))


class Pair(nn.Module):
    """Gives cosines and sines, for code that stands elsewhere."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.frequencies = 10000.0 ** -(torch.arange(0, dim, 2) / dim)

    def forward(self, seq_len: int) -> tuple[Tensor, Tensor]:
        angles = torch.arange(seq_len)[:, None] * self.frequencies
        both = torch.cat((angles, angles), -1)
        return both.cos(), both.sin()


def test_tables_are_handed_to_code_of_a_file_from_which_theirs_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "handed_on"
    package.mkdir()
    (package / "__init__.py").touch()
    applied = BY_LENGTH[BY_LENGTH.index("def apply") :]
    (package / "layer.py").write_text(f"import torch\n{applied}\nclass Layer: pass\n")
    tables = BY_LENGTH[: BY_LENGTH.index("def apply")]
    (package / "model.py").write_text(f"import torch\nfrom .layer import Layer\n{tables}")
    (package / "alone.py").write_text(f"import torch\n{tables}")
    monkeypatch.syspath_prepend(str(tmp_path))
    rotates_as_half(adapted_as(importlib.import_module("handed_on.model").rope_tables))
    with pytest.raises(NoAdapter):
        adapted_as(importlib.import_module("handed_on.alone").rope_tables, kind="rotary")


def test_cosines_and_sines_are_no_table_that_is_added() -> None:
    line = "seq_len = n -> cos: n D, sin: n D; built with dim = D"
    with pytest.raises(SignatureError, match="a table of cosines and one of sines"):
        adapted_as(Pair, line)


class InHalf(nn.Module):
    """Gives rows of tables that it keeps in float16; ``stretched``: of sines that are too large."""

    def __init__(self, dim: int = 16, *, stretched: bool = False) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(512.0), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
        angles = angles.repeat(1, 2)[:, None, None]
        self.cos, self.sin = angles.cos().half(), ((1 + stretched) * angles.sin()).half()

    def forward(self, x: Tensor, seq_len: int) -> tuple[Tensor, Tensor]:
        assert x.ndim > 2
        return self.cos[:seq_len], self.sin[:seq_len]


def rotates_in_half(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Of (n, B, H, D)."""
    cos, sin = cos[: q.shape[0]], sin[: q.shape[0]]
    return _rotated(q, cos, sin), _rotated(k, cos, sin)


def test_rounding_of_tables_kept_in_float16_is_not_shown_as_a_fault() -> None:
    def broken(*, stretched: bool) -> set[str]:
        back = "cos: {0} 1 1 D, sin: {0} 1 1 D"
        line = (
            f"x: B m D, seq_len = m -> {back.format('m')}; then rotates_in_half("
            f"q: n B H D, k: n B G D, {back.format('n')} -> q, k)"
        )
        subject = adapted_as(InHalf, line, settings={"stretched": stretched})
        return {
            one.law
            for one in prove(subject, ("norm", "composition")).findings
            if one.verdict == "broken"
        }

    assert broken(stretched=False) == set()
    assert "composition" in broken(stretched=True)
