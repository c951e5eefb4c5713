"""Programs that break a law somewhere: torch alone shows it, tracing does not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

TABLES = {"777": torch.arange(777.0), 64: torch.arange(64.0)}
LIMITS = {"long": 555}


def length(x: Tensor, axis: int = 1) -> int | torch.SymInt:
    """The length of an axis, as torch has it while it traces."""
    return x.shape[axis]


def is_int(x: Tensor) -> Tensor:
    n = length(x)
    return x.cumsum(1) if isinstance(n, int) and n > 600 else x


def type_is_int(x: Tensor) -> Tensor:
    n = length(x)
    return x.cumsum(1) if type(n) is int and n > 300 else x


def key_of_text(x: Tensor) -> Tensor:
    key = str(x.shape[1])
    return x * TABLES[key][None, :, None] if key in TABLES else x


def key_of_format(x: Tensor) -> Tensor:
    return x.cumsum(1) if f"{x.shape[1]}" == "345" else x


def text_of_length(x: Tensor) -> Tensor:
    return x.cumsum(1) if repr(x.shape[1]).isdigit() and x.shape[1] > 90 else x


def while_compiling(x: Tensor) -> Tensor:
    return x.cumsum(1) if not torch.compiler.is_compiling() and x.shape[1] > 600 else x


def while_exporting(x: Tensor) -> Tensor:
    return x.cumsum(1) if not torch.compiler.is_exporting() and x.shape[1] > LIMITS["long"] else x


def known_to_python(x: Tensor) -> Tensor:
    try:
        return x.cumsum(1) if x.shape[1] in TABLES else x
    except TypeError:
        return x


def asked_of_values(x: Tensor) -> Tensor:
    try:
        large = bool((x.abs() > 500).any())
    except Exception:  # noqa: BLE001 (as code has it)
        large = False
    return x.cumsum(1) if large else x


def asked_of_zeros(x: Tensor) -> Tensor:
    try:
        none = not bool(x.any())
    except Exception:  # noqa: BLE001 (as code has it)
        none = False
    return x + torch.arange(x.shape[1])[:, None] if none else x


def of_a_kind(x: Tensor) -> Tensor:
    return x.cumsum(1) if type(x) is Tensor and x.shape[1] > 400 else x


def with_gradients(x: Tensor) -> Tensor:
    return x.cumsum(1) if x.requires_grad and x.shape[1] > 50 else x


def one_row(x: Tensor) -> Tensor:
    return 2 * x.cumsum(1) if x.shape[0] == 1 and x.shape[1] > 300 else x


def one_token(x: Tensor) -> Tensor:
    return x.flip(0) if x.shape[1] == 1 else x


def square_of_a_length(x: Tensor) -> Tensor:
    n = length(x)
    return x.cumsum(1) if isinstance(n, int) and n * n > 250_000 else x


def rows_and_tokens(x: Tensor) -> Tensor:
    b, n = length(x, 0), length(x)
    both = isinstance(n, int) and isinstance(b, int) and b > 7 and n > 31
    return x.cumsum(1) if both else x


class Counting(nn.Module):
    """From its 40th call on it adds tokens up."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x if self.calls < 40 else x.cumsum(1)


class Limited(nn.Module):
    """Beyond its limit, an attribute, tokens are added up."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = "820"

    def forward(self, x: Tensor) -> Tensor:
        n = length(x)
        return x.cumsum(1) if isinstance(n, int) and n > int(self.limit) else x


def branch_in_a_helper(x: Tensor) -> Tensor:
    return _added(x, most=413)


def _added(x: Tensor, most: int) -> Tensor:
    n = length(x)
    return x.cumsum(1) if isinstance(n, int) and n >= most else x


UNLIKE: dict[str, Any] = {
    f.__name__: f
    for f in (
        is_int,
        type_is_int,
        key_of_text,
        key_of_format,
        text_of_length,
        while_compiling,
        while_exporting,
        known_to_python,
        asked_of_values,
        asked_of_zeros,
        of_a_kind,
        with_gradients,
        one_row,
        one_token,
        square_of_a_length,
        rows_and_tokens,
        branch_in_a_helper,
    )
} | {"counting": Counting(), "limited": Limited()}


def rotated(x: Tensor, p: Tensor) -> Tensor:
    """A rotary embedding as it should be."""
    angle = p[:, None, :, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def longer_later(x: Tensor, p: Tensor) -> Tensor:
    place = torch.arange(x.shape[2])[None, None, :, None]
    return torch.where(place >= 600, 2 * rotated(x, p), rotated(x, p))


def longer_by_head(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p) * (1 + torch.arange(x.shape[1])[None, :, None, None])


def longer_by_row(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p) * (1 + torch.arange(x.shape[0])[:, None, None, None])


def longer_by_count(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p) * (1 + torch.arange(x.shape[2])[None, None, :, None] // 2)


def vanishing(x: Tensor, p: Tensor) -> Tensor:
    u, _ = x.chunk(2, -1)
    return torch.cat((0 * u, p[:, None, :, None] * u), -1)


def all_zero(x: Tensor, p: Tensor) -> Tensor:
    return 0 * rotated(x, p)


def half_zero(x: Tensor, p: Tensor) -> Tensor:
    return torch.cat((rotated(x[..., :2], p), 0 * x[..., 2:]), -1)


ROTARY: dict[str, tuple[Any, str]] = {
    "longer_later": (longer_later, "norm"),
    "longer_by_head": (longer_by_head, "norm"),
    "longer_by_row": (longer_by_row, "norm"),
    "longer_by_count": (longer_by_count, "norm"),
    "vanishing": (vanishing, "composition"),
    "all_zero": (all_zero, "composition"),
    "half_zero": (half_zero, "composition"),
}


def in_units(bits: int, dtype: torch.dtype) -> Any:
    """Positions in units of 2**-bits: they wrap round in this dtype."""

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, (p.to(dtype) * 2**bits).double() / 2**bits).to(x.dtype)

    return rotate


def by_shift(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, (p << 45).double() / 2.0**45).to(x.dtype)


def by_square(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, ((p * p) * (p * p)).double() / 1e4).to(x.dtype)


WRAPPING: dict[str, Any] = {
    "int64": in_units(40, torch.int64),
    "int32": in_units(20, torch.int32),
    "a shift of bits": by_shift,
    "a fourth power": by_square,
}


def rectified(x: Tensor) -> Tensor:
    return x + torch.relu(x - 100000.0).cumsum(1)


def clipped(x: Tensor) -> Tensor:
    return x + torch.clamp(x + -65504.0, min=0).cumsum(1)


def scored_and_returned(x: Tensor) -> Tensor:
    scores = (x @ x.mT).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -1e9)
    return torch.softmax(scores, -1) @ x + scores.sum(-1, keepdim=True) * 1e-9
