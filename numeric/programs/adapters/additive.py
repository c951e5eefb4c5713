"""Code that adds a table of positions to tokens, or makes the table.

module(x) -> x + table, module(x) -> table, f(length, width), f(positions, width).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..subjects import Additive
from .code import Code, DoesNotFit
from .roles import Parameter, order_in, parameters
from .tokens_called import embeds

__all__ = ["fit"]

B, T = 3, 5
LONGEST = 4096


@dataclass(frozen=True)
class Form:
    """``adds``: the code adds; else it makes a table, which is added here.  ``scale`` of tokens."""

    width: int
    first: bool
    adds: bool
    scale: float = 1.0


def fit(code: Code) -> Additive:
    """The code as an `Additive`.  Raises ``DoesNotFit`` with what was tried."""
    known = parameters(code.call)
    failed = "it takes no argument" if not known else ""
    hint = code.options.order or order_in(code.text)
    for width in _widths(code, known):
        for first in (True, False) if hint.startswith("t") else (False, True):
            try:
                form = _form(code, width, first)
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed = failed or " ".join(str(error).split())[:240]
                continue
            return _subject(code.again(), form, code.options.most or _most(code, form))
    raise DoesNotFit(failed)


def _widths(code: Code, known: tuple[Parameter, ...]) -> list[int]:
    if code.options.width or code.options.embed:
        return [code.options.width or code.options.embed]
    tables = code.module.buffers() if code.module is not None else ()
    held = [b.shape[-1] for b in tables if b.dim() > 1]
    free = any(one.role in ("width", "embed") for one in known)
    return list(dict.fromkeys([*held, *([16] if free else embeds(code))]))


def _called(code: Code, width: int, first: bool) -> Callable[[Tensor], Tensor]:
    known = parameters(code.call)
    fixed = {k: v for k, v in code.options.arguments.items() if k in {one.name for one in known}}

    def call(x: Tensor) -> Tensor:
        given: dict[str, Any] = dict(fixed)
        for index, one in enumerate(known):
            if one.name in given or (not one.required and one.role != "positions"):
                continue
            given[one.name] = _argument(one, x, width, first, index == 0)
        value = code.call(**given)
        if not isinstance(value, Tensor):
            raise DoesNotFit(f"a tensor was wanted, and {type(value).__name__} came back")
        return value

    return call


def _argument(one: Parameter, x: Tensor, width: int, first: bool, leads: bool) -> Any:
    if one.role in ("width", "embed"):
        return width
    if one.role == "length":
        return x.shape[1]
    if one.role == "positions":
        return torch.arange(x.shape[1])
    if one.role == "offset":
        return 0
    if one.role == "base":
        return 10000.0
    if one.role in ("tokens", "value", "query") or leads:
        return x.transpose(0, 1) if first else x
    raise DoesNotFit(f"it must be given {one.name!r}, and what that is its name does not say; "
                     f"give arguments={{{one.name!r}: ..}}")  # fmt: skip


def _back(value: Tensor, x: Tensor, first: bool) -> Tensor:
    """What came, as (B, T, D): a table has 1 for B, or lacks it."""
    rows, tokens, width = x.shape
    if value.dim() == 2 and value.shape == (tokens, width):
        return value
    if value.dim() == 3 and first and value.shape[0] == tokens:
        value = value.transpose(0, 1)
    if value.dim() == 3 and value.shape[1:] == (tokens, width) and value.shape[0] in (1, rows):
        return value
    raise DoesNotFit(f"called with tokens {tuple(x.shape)}: {tuple(value.shape)} came back")


def _form(code: Code, width: int, first: bool) -> Form:
    call = _called(code.again(), width, first)
    zero = torch.zeros(B, T, width)
    one = torch.randn(B, T, width, generator=torch.Generator().manual_seed(6))
    at_zero, at_one = _back(call(zero), zero, first), _back(call(one), one, first)
    if torch.equal(at_zero, at_one):
        return Form(width, first, adds=False)
    if at_one.shape != one.shape:
        raise DoesNotFit("what it makes depends on the tokens, and has another shape")
    scale = float(((at_one - at_zero) * one).sum() / (one * one).sum())
    if not torch.allclose(at_one - at_zero, scale * one, rtol=1e-3, atol=1e-4):
        raise DoesNotFit("it does not add something to the tokens: it is no sum of both")
    return Form(width, first, adds=True, scale=scale if abs(scale - 1) > 1e-5 else 1.0)


def _most(code: Code, form: Form) -> int:
    """How many positions its table has."""

    def works(count: int) -> bool:
        x = torch.zeros(1, count, form.width)
        try:
            _back(_called(code.again(), form.width, form.first)(x), x, form.first)
        except Exception:  # noqa: BLE001 (past its end code may raise anything)
            return False
        return True

    if works(LONGEST):
        return LONGEST
    low, high = 1, LONGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def _subject(code: Code, form: Form, most: int) -> Additive:
    call = _called(code, form.width, form.first)

    def added(x: Tensor) -> Tensor:
        value = _back(call(x), x, form.first)
        return value if form.adds else x + value

    def make(**settings: Any) -> Additive:
        return _subject(code.again(**settings), form, most)

    axes = "(T, B, D)" if form.first else "(B, T, D)"
    what = f"x is {axes}" if form.adds else "it makes the table, which is added to x here"
    named = ", ".join(one.name for one in parameters(code.call) if one.required)
    return Additive(
        name=code.name, make=make, module=code.module, source=code.place, added=added,
        width=form.width, most=most, scale=form.scale,
        learned=code.module is not None and any(p.requires_grad for p in code.module.parameters()),
        adapted=f"called as {code.name}({named}); {what}",
    )  # fmt: skip
