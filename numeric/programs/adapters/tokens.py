"""Attention and other layers on tokens (B, T, E): what they are given beside the tokens."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..declared import DeclaredAttention
from ..subjects import Attention
from .code import Code, DoesNotFit
from .roles import Parameter, order_in, parameters, sizes_of
from .stepping import stepping

__all__ = ["Tokens", "called", "dropout_of", "embeds", "fit_tokens", "tokens_form"]

B, T = 3, 5
CACHES = ("past_key_value", "past_key_values", "layer_past", "kv_cache", "cache", "past_kv", "past",
          "state", "cache_kv", "past_kvs", "prev_state")  # fmt: skip
MASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "(B, T), True for padding": lambda keep: ~keep,
    "(B, T), True for tokens": lambda keep: keep,
    "(B, T), 1 for tokens": lambda keep: keep.long(),
    "(B, 1, 1, T), True for tokens": lambda keep: keep[:, None, None],
    "(B, 1, 1, T), -inf for padding": lambda keep: torch.zeros_like(keep, dtype=torch.float32)
    .masked_fill(~keep, torch.finfo(torch.float32).min)[:, None, None],
    "(B, 1, 1, T), True for padding": lambda keep: ~keep[:, None, None],
    "(B, T, T), True for tokens": lambda keep: keep[:, None].expand(-1, keep.shape[1], -1),
}  # fmt: skip


@dataclass(frozen=True)
class Tokens:
    """How a layer is called on tokens.

    ``first``: sequence-first.  ``count``: how often the tokens are given (as q, k and v).
    ``table``: the cos and sin that an attention of transformers is given.
    """

    embed: int
    first: bool
    count: int
    causal_mask: bool = False
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


def _table(code: Code, form: Tokens) -> nn.Module | None:
    if not form.table:
        return None
    from .transformers import attends_with

    made: nn.Module | None = attends_with(code)
    return made


def _given(
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
        elif one.role == "mask" and form.causal_mask:
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


def _result(value: Any, form: Tokens) -> Tensor:
    out = value[0] if isinstance(value, tuple | list) and value else value
    out = getattr(out, "last_hidden_state", out)
    if not isinstance(out, Tensor):
        raise DoesNotFit(f"a tensor was wanted, and {type(out).__name__} came back")
    return out.transpose(0, 1) if form.first and out.dim() == 3 else out


def called(code: Code, form: Tokens) -> Callable[[Tensor], Tensor]:
    """x (B, T, E) -> what the layer gives."""
    table = _table(code, form)
    return lambda x: _result(code.call(**_given(code, form, table, x)), form)


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
            return form
    raise DoesNotFit(failed)


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


def fit_tokens(code: Code) -> Attention:
    """A layer on tokens as an `Attention`; code that does not speak of attention is refused."""
    form = tokens_form(code, keeps=True)
    if not _says(code):
        raise DoesNotFit("neither its name nor its source speaks of attention or softmax")
    form = _padded(code, form)
    return _subject(code.again(), stepping_form(code, form))


def _says(code: Code) -> bool:
    own = f"{code.name} {type(code.call).__name__} {code.text}".lower()
    return any(word in own for word in ("atten", "attn", "softmax", "scaled_dot", "transformer"))


def stepping_form(code: Code, form: Tokens) -> Tokens:
    """The form with the name of its cache, where it takes one."""
    for one in parameters(code.call):
        if one.name in CACHES:
            return replace(form, cache=one.name)
    return form


def _subject(code: Code, form: Tokens) -> Attention:
    plain, table = called(code, form), _table(code, form)
    parts = code.module.modules() if code.module is not None else (code.call,)
    heads = code.options.heads or next((n for one in parts for n in sizes_of(one, "heads")), 1)

    def given(x: Tensor, start: int, keys: int) -> dict[str, Any]:
        return _given(code, form, table, x, start, keys)

    def result(value: Any) -> Tensor:
        return _result(value, form)

    step = stepping(code, form.cache, given, result, form.embed) if form.cache else None

    def hide(x: Tensor, keep: Tensor) -> Tensor:
        more = {form.padding_name: MASKS[form.padding](keep)}
        return _result(code.call(**{**_given(code, form, table, x), **more}), form)

    def make(**settings: Any) -> Attention:
        return _subject(code.again(**settings), form)

    declared = (
        DeclaredAttention(causal=form.causal_mask or None, positions="relative")
        if form.table else None
    )  # fmt: skip
    axes = "(T, B, E)" if form.first else "(B, T, E)"
    told = [f"called as {code.name}({_args(code, form)}); x is {axes}"]
    told += ["with cos, sin of running positions"] if form.table else []
    told += ["with a causal mask"] if form.causal_mask else []
    told += [f"{form.padding_name} is {form.padding}"] if form.padding else []
    return Attention(
        name=code.name, make=make, module=code.module, source=code.place, layer=plain,
        hide=hide if form.padding else None, embed=form.embed, heads=heads, groups=heads,
        width=form.embed // heads, paths=_paths(code, form), dropout=dropout_of(code.module),
        step=step, declared=declared, adapted=", ".join(told),
    )  # fmt: skip


def _args(code: Code, form: Tokens) -> str:
    known = parameters(code.call)
    if form.count > 1:
        return ", ".join(["x"] * form.count)
    rest = [one.name for one in known[1:] if one.required or (one.role == "pair" and form.table)]
    return ", ".join(["x", *rest])


def dropout_of(module: nn.Module | None) -> float:
    """The largest dropout of a module's parts."""
    parts = module.modules() if module is not None else ()
    found = [m.p if isinstance(m, nn.Dropout) else getattr(m, "dropout", 0.0) for m in parts]
    return max((float(p) for p in found if isinstance(p, int | float)), default=0.0)


def _padded(code: Code, form: Tokens) -> Tokens:
    """The form with the mask under which padding has no influence, where there is one."""
    x = torch.randn(B, T, form.embed, generator=torch.Generator().manual_seed(4))
    keep = torch.ones(B, T, dtype=torch.bool)
    keep[:, -1] = False
    table = _table(code, form)
    hidden, shown = x.clone(), x.clone()
    hidden[:, -1] += 1.0
    shown[:, 1] += 1.0
    for one in parameters(code.call):
        for name in MASKS if one.role in ("padding", "mask") and not form.causal_mask else ():
            fresh = code.again()

            more = {one.name: MASKS[name](keep)}

            def call(y: Tensor, fresh: Code = fresh, more: dict[str, Tensor] = more) -> Tensor:
                given = {**_given(fresh, form, table, y), **more}
                return _result(fresh.call(**given), form)[:, :-1]

            try:
                plain = call(x)
                right = torch.equal(plain, call(hidden)) and not torch.equal(
                    plain[:, -1], call(shown)[:, -1]
                )
            except Exception:  # noqa: BLE001 (the code may not take a mask of this form)
                continue
            if right and bool(torch.isfinite(plain).all()):
                return replace(form, padding=name, padding_name=one.name)
    return form


def _paths(code: Code, form: Tokens) -> dict[str, Callable[[Tensor], Tensor]]:
    """Torch's own modules on their other paths: with weights asked for, with no fast path."""
    plain, table = called(code, form), _table(code, form)
    found: dict[str, Callable[[Tensor], Tensor]] = {}
    if any(one.name == "need_weights" for one in parameters(code.call)):
        for wanted in (True, False):

            def path(x: Tensor, wanted: bool = wanted) -> Tensor:
                more = {"need_weights": wanted}
                return _result(code.call(**{**_given(code, form, table, x), **more}), form)

            found[f"need_weights={wanted}"] = path
    torch_parts = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    if code.module is not None and any(isinstance(m, torch_parts) for m in code.module.modules()):

        def slow(x: Tensor) -> Tensor:
            with _no_fast_path():
                return plain(x)

        found["no fast path"] = slow
    return found


@contextmanager
def _no_fast_path() -> Iterator[None]:
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
