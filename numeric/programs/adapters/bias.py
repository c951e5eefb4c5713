"""Code that makes what is added to scores: ALiBi, tables of offsets, windows.

f(T, S), f(heads, T), f(T), module(query_length, key_length), a method compute_bias, and windows
with a relative_position_bias_table and a relative_position_index.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..subjects import Bias
from .building import method_of
from .code import Code, DoesNotFit
from .counts import Counts, H, S, T, called_with, rows_of, ways
from .roles import parameters, sizes_of

__all__ = ["fit"]

METHODS = re.compile(r"bias|alibi|get_rel", re.IGNORECASE)


def fit(code: Code) -> Bias:
    """The code as a `Bias`.  Raises ``DoesNotFit`` with what was tried."""
    if hasattr(code.call, "relative_position_bias_table"):
        return _window(code)
    if getattr(code.call, "has_relative_attention_bias", True) is False:
        code = code.again(has_relative_attention_bias=True)
    failed = ""
    for one in _codes(code):
        try:
            tried = list(ways(one))
        except DoesNotFit as error:
            failed = failed or str(error)
            continue
        for how in tried:
            said, held = code.options, max(sizes_of(code.call, "heads"), default=0)
            heads = said.heads or held or said.likely.get("heads", 0) or H
            try:
                made = called_with(one.again(), how, heads)(T, S)
                heads = _own(made, how, heads)
                shape = _shape(made, how, heads)
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed = failed or f"called with ({how.told}): {' '.join(str(error).split())[:200]}"
                continue
            placed, many = _placed(one, how, heads), heads if "H" in shape else 1
            return _subject(one.again(), placed, many, shape.endswith("H"))
        try:
            return _index(one)
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or " ".join(str(error).split())[:200]
    raise DoesNotFit(failed or "no parameter of it is a count of queries or keys")


def _codes(code: Code) -> list[Code]:
    named = [] if inspect.isroutine(code.call) else [
        name for name in dir(type(code.call)) if METHODS.search(name)
        and not hasattr(nn.Module, name) and inspect.isroutine(getattr(code.call, name, None))
        and not name.startswith("__")
    ]  # fmt: skip
    first = [method_of(code, name) for name in sorted(named, key=lambda n: "compute" not in n)]
    return [*first, code]


def _own(value: Any, how: Counts, heads: int) -> int:
    """How many heads came from code that is not told how many, and has no name for them."""
    told = any(letter == "H" for _, letter in how.names)
    rows = S if how.square else T
    if told or not isinstance(value, Tensor) or value.dim() < 3:
        return heads
    first, last = value.shape[-3], value.shape[-1]
    if value.shape[-2:] == (rows, S):
        return first if first > 1 else heads
    return last if value.shape[-3:-1] == (rows, S) else heads


def _shape(value: Any, how: Counts, heads: int) -> str:
    """H, T, S where the value has heads, T, S where not; raises for any other shape."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        raise DoesNotFit(f"a tensor of numbers was wanted, and {type(value).__name__} came back")
    queries = S if how.square else T
    found = tuple(value.shape)
    if found in ((queries, S), (1, queries, S), (1, 1, queries, S), (1, S)):
        return "T, S"
    if found in ((heads, queries, S), (1, heads, queries, S), (heads, 1, S), (1, heads, 1, S)):
        return "H, T, S"
    if found == (queries, S, heads):
        return "T, S, H"
    raise DoesNotFit(f"({heads}, {queries}, {S}) was wanted, {found} came")


def _placed(code: Code, how: Counts, heads: int) -> Counts:
    """The counts, and where the first query stands if the code must be told to put it right.

    T5 takes ``past_seen_tokens``, 0 if nothing is said: then few queries stand at the start.
    """
    beside = [one.name for one in parameters(code.call) if one.role == "offset"
              and not one.required and one.name not in code.options.arguments]  # fmt: skip
    if how.square or len(beside) != 1:
        return how
    told = replace(how, names=(*how.names, (beside[0], "S - T")))
    try:
        last = called_with(code.again(), how, heads)(S, S)[..., S - T :, :]
        plain, placed = (called_with(code.again(), one, heads)(T, S) for one in (how, told))
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return how
    ends = placed.shape == last.shape and torch.equal(placed, last)
    return told if ends and not torch.equal(plain, last) else how


def _subject(code: Code, how: Counts, heads: int, heads_last: bool) -> Bias:
    call = called_with(code, how, max(heads, 1))

    def bias(queries: int, keys: int) -> Tensor:
        value = call(queries, keys)
        rows = keys if how.square else queries
        if heads_last:
            value = value.permute(2, 0, 1)
        value = value.reshape(-1, value.shape[-2], keys).expand(heads, rows, keys)
        return rows_of(value, queries) if how.square else value

    def make(**settings: Any) -> Bias:
        return _subject(code.again(**settings), how, heads, heads_last)

    square = "; it knows one count, so the last rows are taken for fewer queries" * how.square
    late = torch.ones(T, T, dtype=torch.bool).triu(1)
    return Bias(
        name=code.name, make=make, module=code.module, source=code.place, heads=heads, bias=bias,
        causal=bool(torch.isneginf(bias(T, T))[:, late].all()),
        adapted=f"called as {code.name}({how.told}){square}",
    )  # fmt: skip


def _window(code: Code) -> Bias:
    """A module with a table and an index for its window, as Swin has."""
    holder: Any = code.call
    table = holder.relative_position_bias_table
    heads = table.shape[-1]

    def of(sizes: tuple[int, ...]) -> Any:
        own = getattr(code.call, "window_size", None)
        if isinstance(own, int):
            if len(set(sizes)) > 1:
                raise TypeError(f"{code.name} has square windows")
            return code.again(window_size=sizes[0]).call
        return code.again(window_size=sizes).call

    def index(sizes: tuple[int, ...]) -> Tensor:
        found: Tensor = of(sizes).relative_position_index
        places = int(torch.tensor(sizes).prod())
        return found.reshape(places, places)

    def window(rows: int, columns: int) -> Tensor:
        made = of((rows, columns))
        places = rows * columns
        rows_of_table = made.relative_position_bias_table[made.relative_position_index.reshape(-1)]
        values: Tensor = rows_of_table.reshape(places, places, heads).permute(2, 0, 1)
        return values

    def make(**settings: Any) -> Bias:
        return _window(code.again(**settings))

    return Bias(
        name=code.name, make=make, module=code.module, source=code.place, heads=heads,
        window=window, index=index,
        adapted=f"the table of {code.name}, read with its index, in windows of (rows, columns)",
    )  # fmt: skip


def _index(code: Code) -> Bias:
    """f(sizes of a window) or f(rows, columns), which gives the index into a table."""

    def whole(sizes: tuple[int, ...]) -> Tensor:
        value: Tensor = code.call(sizes)
        return value

    def apart(sizes: tuple[int, ...]) -> Tensor:
        value: Tensor = code.call(*sizes)
        return value

    for index in (whole, apart):
        try:
            made: Any = index((2, 3))
        except Exception:  # noqa: BLE001 (the code may raise anything)
            continue
        if isinstance(made, Tensor) and made.shape == (6, 6) and not made.is_floating_point():
            told = "(sizes)" if index is whole else "(*sizes)"
            return Bias(
                name=code.name, make=lambda **more: _index(code.again(**more)), heads=1,
                module=code.module, source=code.place, index=index,
                adapted=f"called as {code.name}{told}; it gives the index into a table",
            )  # fmt: skip
    raise DoesNotFit("called with a window of 2 by 3 it gives no index of 6 by 6")
