"""Attention on tokens (B, T, E): its masks of padding, its cache, its other paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..declared import DeclaredAttention
from ..subjects import Attention
from .code import Code, DoesNotFit
from .roles import parameters, sizes_of
from .stepping import stepping
from .tokens_called import CACHES, B, T, Tokens, called, given_to, result_of, table_for, tokens_form

__all__ = ["dropout_of", "fit_tokens"]

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
    plain, table = called(code, form), table_for(code, form)
    parts = code.module.modules() if code.module is not None else (code.call,)
    heads = code.options.heads or next((n for one in parts for n in sizes_of(one, "heads")), 1)

    def given(x: Tensor, start: int, keys: int) -> dict[str, Any]:
        return given_to(code, form, table, x, start, keys)

    def result(value: Any) -> Tensor:
        return result_of(value, form)

    step = stepping(code, form.cache, given, result, form.embed) if form.cache else None

    def hide(x: Tensor, keep: Tensor) -> Tensor:
        more = {form.padding_name: MASKS[form.padding](keep)}
        return result_of(code.call(**{**given_to(code, form, table, x), **more}), form)

    def make(**settings: Any) -> Attention:
        return _subject(code.again(**settings), form)

    declared = (
        DeclaredAttention(causal=form.causal_mask or None, positions="relative")
        if form.table else None
    )  # fmt: skip
    axes = "(T, B, E)" if form.first else "(B, T, E)"
    told = [f"called as {code.name}({_args(code, form)}); x is {axes}"]
    told += ["with cos, sin of running positions"] if form.table else []
    handed, masked = _masks_given(code, form)
    told += [masked] if masked else []
    told += [f"{form.padding_name} is {form.padding}"] if form.padding else []
    return Attention(
        name=code.name, make=make, module=code.module, source=code.place, layer=plain,
        hide=hide if form.padding else None, embed=form.embed, heads=heads, groups=heads,
        width=form.embed // heads, paths=_paths(code, form), dropout=dropout_of(code.module),
        step=step, declared=declared, adapted=", ".join(told), given=handed,
    )  # fmt: skip


def _masks_given(code: Code, form: Tokens) -> tuple[dict[str, str], str]:
    """What mask the layer is handed, or which parameter of a mask is left out; and the words."""
    if form.causal_mask and not form.hides:
        return {"mask": "a causal mask made here"}, "with a causal mask made here"
    taken = next((one.name for one in parameters(code.call) if one.role == "mask"), "")
    left_out = {"no mask": taken} if taken and taken not in code.options.arguments else {}
    return left_out, "with no mask, as it is causal without one" if form.hides else ""


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
    table = table_for(code, form)
    hidden, shown = x.clone(), x.clone()
    hidden[:, -1] += 1.0
    shown[:, 1] += 1.0
    for one in parameters(code.call):
        for name in MASKS if one.role in ("padding", "mask") and not form.causal_mask else ():
            fresh = code.again()

            more = {one.name: MASKS[name](keep)}

            def call(y: Tensor, fresh: Code = fresh, more: dict[str, Tensor] = more) -> Tensor:
                given = {**given_to(fresh, form, table, y), **more}
                return result_of(fresh.call(**given), form)[:, :-1]

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
    plain, table = called(code, form), table_for(code, form)
    found: dict[str, Callable[[Tensor], Tensor]] = {}
    if any(one.name == "need_weights" for one in parameters(code.call)):
        for wanted in (True, False):

            def path(x: Tensor, wanted: bool = wanted) -> Tensor:
                more = {"need_weights": wanted}
                return result_of(code.call(**{**given_to(code, form, table, x), **more}), form)

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
