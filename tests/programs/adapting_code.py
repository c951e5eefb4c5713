"""A user's file of rotary code in every form, and what each should give."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.subjects import Rotary

HALF = """
    import torch
    from torch import nn

    def angles(positions, width, base=10000.0):
        ladder = base ** (-torch.arange(0, width, 2) / width)
        return positions[..., None].float() * ladder

    def turn_half(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
"""
NUMBERS = itertools.count()


def user_file(folder: Path, source: str) -> ModuleType:
    """A user's file, imported."""
    path = folder / f"user_{next(NUMBERS)}.py"
    path.write_text(textwrap.dedent(HALF) + textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def half(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """What every rotary form below should give: halves paired, tokens at positions (B, T)."""
    width = x.shape[-1]
    ladder = base ** (-torch.arange(0, width, 2) / width)
    angle = (positions[..., None].float() * ladder)[:, None]
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def rotates_as_half(subject: Any, base: float = 10000.0) -> None:
    assert isinstance(subject, Rotary)
    x = torch.randn(2, 3, 4, subject.width, generator=torch.Generator().manual_seed(1))
    for positions in (
        [[0, 1, 2, 3], [0, 1, 2, 3]],
        [[3, 1, 9, 0], [2, 2, 7, 40]],
        [[5, 6, 7, 8], [0, 0, 0, 0]],
    ):
        at = torch.tensor(positions)
        for rotate in (subject.rotate, subject.rotate_key):
            torch.testing.assert_close(rotate(x, at), half(x, at, base), atol=1e-5, rtol=1e-5)


FORMS = {
    "f(x, positions)": """
        def rope(x, positions):
            angle = angles(positions, x.shape[-1])[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, positions), tokens before heads": """
        def rope(x, positions):
            angle = angles(positions, x.shape[-1])[:, :, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, positions), no heads": """
        def rope(x, positions):
            b, t, d = x.shape
            angle = angles(positions, d)
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, positions), one row": """
        def rope(x, positions):
            t, d = x.shape
            angle = angles(positions, d)
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(q, k, positions) of all rows": """
        def rope(q, k, pos):
            assert pos.dim() == 1
            angle = angles(pos, q.shape[-1])
            return turn_half(q, angle.cos(), angle.sin()), turn_half(k, angle.cos(), angle.sin())
    """,
    "f(x), running": """
        def rope(x):
            angle = angles(torch.arange(x.shape[2]), x.shape[-1])
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x), running, tokens before heads": """
        def rope(x):
            angle = angles(torch.arange(x.shape[1]), x.shape[-1])[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, offset)": """
        def rope(x, offset=0):
            angle = angles(torch.arange(offset, offset + x.shape[-2]), x.shape[-1])
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(q, k, cos, sin), with a function that makes them": """
        def precompute_cos_sin(head_dim, max_seq_len):
            angle = angles(torch.arange(max_seq_len), head_dim)
            return angle.cos(), angle.sin()

        def rope(q, k, cos, sin):
            return turn_half(q, cos, sin), turn_half(k, cos, sin)
    """,
    "f(q, k, cos, sin, position_ids), with a module of a table": """
        class RotaryTable(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, x, seq_len=None):
                angle = angles(torch.arange(seq_len), self.dim)
                return angle.cos(), angle.sin()

        def rope(q, k, cos, sin, position_ids):
            cos, sin = cos[position_ids].unsqueeze(1), sin[position_ids].unsqueeze(1)
            return turn_half(q, cos, sin), turn_half(k, cos, sin)
    """,
    "f(x, cos, sin) alone": """
        def rope(x, cos, sin):
            return turn_half(x, cos, sin)
    """,
    "f(x, freqs_cis), complex": """
        def precompute_freqs_cis(dim, end, theta=10000.0):
            angle = angles(torch.arange(end), dim, theta)
            return torch.polar(torch.ones_like(angle), angle)

        def rope(xq, xk, freqs_cis):
            assert freqs_cis.shape == (xq.shape[1], xq.shape[-1] // 2)
            by = freqs_cis[None, :, None]
            return (turn_half(xq, by.real, by.imag), turn_half(xk, by.real, by.imag))
    """,
    "a module with a table, f(x, input_pos=None), tokens before heads": """
        class rope(nn.Module):
            def __init__(self, dim, max_seq_len=64, base=10000):
                super().__init__()
                self.register_buffer("cache", angles(torch.arange(max_seq_len), dim, base))

            def forward(self, x, *, input_pos=None):
                angle = self.cache[: x.size(1)] if input_pos is None else self.cache[input_pos]
                angle = angle.view(-1, x.size(1), 1, angle.size(-1))
                return turn_half(x, angle.cos(), angle.sin())
    """,
    "a module that makes cos and sin, and a function beside it": """
        class rope(nn.Module):
            def __init__(self, head_dim, base=10000.0):
                super().__init__()
                self.head_dim, self.base = head_dim, base

            def forward(self, x, position_ids):
                angle = angles(position_ids, self.head_dim, self.base)
                return angle.cos(), angle.sin()

        def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
            cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
            return turn_half(q, cos, sin), turn_half(k, cos, sin)
    """,
    "a module with a method that rotates": """
        class rope(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, t):
                raise RuntimeError("call rotate_queries_or_keys")

            def rotate_queries_or_keys(self, t, seq_dim=-2, offset=0):
                angle = angles(torch.arange(offset, offset + t.shape[seq_dim]), self.dim)
                return turn_half(t, angle.cos(), angle.sin())
    """,
    "a factory": """
        class Encoding(nn.Module):
            def forward(self, x, positions):
                angle = angles(positions, x.shape[-1])[:, None]
                return turn_half(x, angle.cos(), angle.sin())

        def rope():
            return Encoding()
    """,
    "positions that must not be integers": """
        def rope(x, pos):
            angle = torch.einsum("bt,d->btd", pos, angles(torch.tensor(1.0), x.shape[-1]))[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
}


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention on (B, H, T, D) with a mask in the canonical form."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        hides = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if hides else scores + mask
    out: Tensor = scores.softmax(-1) @ v
    return out


def distance(queries: int, keys: int) -> Tensor:
    return torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]
