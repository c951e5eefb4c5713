"""How a layer on tokens (B, T, E) is called: what it is given beside them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from .code import Code, DoesNotFit
from .roles import Parameter, order_in, parameters, sizes_of

__all__ = [
    "CACHES",
    "B",
    "T",
    "Tokens",
    "called",
    "embeds",
    "given_to",
    "result_of",
    "table_for",
    "tokens_form",
]  # fmt: skip

B, T = 3, 5
CACHES = ("past_key_value", "past_key_values", "layer_past", "kv_cache", "cache", "past_kv", "past",
          "state", "cache_kv", "past_kvs", "prev_state")  # fmt: skip


@dataclass(frozen=True)
class Tokens:
    """How a layer is called on tokens.

    ``first``: sequence-first.  ``count``: how often the tokens are given (as q, k and v).
    ``table``: the cos and sin that an attention of transformers is given.
    ``causal_mask``: it says that it is causal; ``hides``: it is so without a mask, and is given one
    only where there are more keys than queries.
    """

    embed: int
    first: bool
    count: int
    causal_mask: bool = False
    hides: bool = False
    table: bool = False
    padding: str = ""
    padding_name: str = ""
    cache: str = ""


def embeds(code: Code) -> list[int]:
    """Widths of a token to try: what is said, what the object holds, what its first layer takes."""
    if code.options.embed:
        return [code.options.embed]
    linear = [m.in_features for m in code.module.modules() if isinstance(m, nn.Linear)] if (
        code.module is not None) else []  # fmt: skip
    shapes = [p.shape[-1] for p in code.module.parameters()] if code.module is not None else []
    held = sizes_of(code.call, "embed")
    return list(dict.fromkeys([*linear[:1], *held, *shapes[:2], 16, 8, 32, 64]))


def table_for(code: Code, form: Tokens) -> nn.Module | None:
    """The module that makes the cos and sin which the layer is given, built beside it."""
    if not form.table:
        return None
    from .transformers import attends_with

    made: nn.Module | None = attends_with(code)
    return made


def given_to(
    code: Code, form: Tokens, table: nn.Module | None, x: Tensor, start: int = 0, keys: int = 0
) -> dict[str, Any]:  # fmt: skip
    """The arguments beside the cache: tokens, positions, cos and sin, a causal mask."""
    known = parameters(code.call)
    fixed = {k: v for k, v in code.options.arguments.items() if k in {one.name for one in known}}
    given: dict[str, Any] = {}
    for one in known[: form.count] if form.count > 1 else known[:1]:
        given[one.name] = x.transpose(0, 1) if form.first else x
    given.update(fixed)
    rows, tokens = x.shape[:2]
    for one in known:
        if one.name in given:
            continue
        if one.role == "pair" and table is not None:
            places = torch.arange(start, start + tokens).expand(rows, -1)
            axes = _axes(table)
            places = places.expand(axes, *places.shape) if axes else places
            more = {"layer_type": _layer_type(code, table)} if "layer_type" in inspect.signature(
                table.forward).parameters else {}  # fmt: skip
            given[one.name] = table(x, places, **more)
        elif one.role == "mask" and form.causal_mask and not (
            form.hides and keys in (0, tokens)
        ):
            there = keys or tokens
            late = torch.arange(there)[None] > torch.arange(there - tokens, there)[:, None]
            least = torch.finfo(x.dtype).min
            added = torch.zeros(1, 1, tokens, there, dtype=x.dtype)
            given[one.name] = added.masked_fill(late, least)
        elif one.required:
            given[one.name] = _plain(one, x, start)
    return given


def _axes(table: nn.Module) -> int:
    """How many axes the positions of a table have, where it gives each its pairs."""
    from .transformers import sections_of

    return len(sections_of(table))


def _layer_type(code: Code, table: nn.Module) -> str:
    named = [n for n, _ in table.named_buffers() if n.endswith("_inv_freq")]
    kinds = [n.removesuffix("_inv_freq") for n in named]
    return str(getattr(code.module, "layer_type", None) or kinds[0])


def _plain(one: Parameter, x: Tensor, start: int) -> Any:
    if one.role in ("mask", "padding", "pair") or one.name in CACHES:
        return None
    if one.role == "positions":
        return torch.arange(start, start + x.shape[1]).expand(x.shape[0], -1)
    if one.role == "offset":
        return start
    if one.role == "length":
        return x.shape[1]
    if one.role == "causal":
        return False
    raise DoesNotFit(
        f"it must be given {one.name!r}, and what that is its name does not say; "
        f"give arguments={{{one.name!r}: ..}}"
    )


def result_of(value: Any, form: Tokens) -> Tensor:
    """(B, T, ..) out of what a layer gave: the first of several, rows before tokens."""
    out = value[0] if isinstance(value, tuple | list) and value else value
    out = getattr(out, "last_hidden_state", out)
    if not isinstance(out, Tensor):
        raise DoesNotFit(f"a tensor was wanted, and {type(out).__name__} came back")
    return out.transpose(0, 1) if form.first and out.dim() == 3 else out


def called(code: Code, form: Tokens) -> Callable[[Tensor], Tensor]:
    """x (B, T, E) -> what the layer gives."""
    table = table_for(code, form)
    return lambda x: result_of(code.call(**given_to(code, form, table, x)), form)


def tokens_form(code: Code, *, keeps: bool) -> Tokens:
    """The first way in which tokens go in and (B, T, ..) comes out.  Raises ``DoesNotFit``."""
    known = parameters(code.call)
    tables = any(one.role == "pair" for one in known)
    roles = [one.role for one in known[:3]]
    three = roles == ["query", "key", "value"] or sum(one.required for one in known) == 3
    two = len(known) > 1 and known[1].required and known[1].role in ("key", "value", "tokens")
    failed = "it takes no argument" if not known else ""
    for embed in embeds(code) if known else []:
        x = torch.randn(B, T, embed, generator=torch.Generator().manual_seed(2))
        for count in (3, 2, 1) if three else (1, 2) if two else (1,):
            causal = tables and bool(getattr(code.module, "is_causal", False))
            form = Tokens(embed, _first(code), count, table=tables, causal_mask=causal)
            try:
                out = called(code.again(), form)(x)
                if out.shape[:2] != x.shape[:2] or (keeps and out.shape != x.shape):
                    raise DoesNotFit(f"{tuple(x.shape)} was wanted, {tuple(out.shape)} came")
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed = failed or f"{_said(x)}: {' '.join(str(error).split())[:240]}"
                continue
            return replace(form, hides=True) if causal and _hides(code, form, x) else form
    raise DoesNotFit(failed)


def _hides(code: Code, form: Tokens, x: Tensor) -> bool:
    """Whether the layer hides later tokens where it is given no mask, as a fused kernel does."""
    call = called(code.again(), replace(form, hides=True))
    late, early = x.clone(), x.clone()
    late[:, -1] += 1.0
    early[:, 0] += 1.0
    try:
        plain = call(x)
        return torch.equal(plain[:, :-1], call(late)[:, :-1]) and not torch.equal(
            plain[:, -1], call(early)[:, -1]
        )
    except Exception:  # noqa: BLE001 (code that wants its mask may raise anything)
        return False


def _said(x: Tensor) -> str:
    return f"called with tokens {tuple(x.shape)}"


def _first(code: Code) -> bool:
    """Whether tokens come before rows: said in the options, by the module, or by its source."""
    if code.options.order:
        return code.options.order.startswith("t")
    own = getattr(code.module, "batch_first", None)
    if own is not None:
        return not own
    inner = getattr(getattr(code.module, "self_attn", None), "batch_first", None)
    if inner is not None and type(code.module).__module__.startswith("torch."):
        return not inner
    return order_in(code.text).startswith("t")
