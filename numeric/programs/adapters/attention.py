"""Attention code: on queries, keys and values, or on tokens with projections of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..subjects import Attention
from .axes import from_order, to_order
from .code import Code, DoesNotFit
from .roles import Parameter, order_in, parameters
from .tokens import fit_tokens

__all__ = ["fit"]

B, H, G, T, S = 6, 4, 2, 5, 7
ORDERS = ("bhtd", "bthd", "btd", "td")
THREE = ("query", "key", "value")


@dataclass(frozen=True)
class Form:
    """How code is called: the order of axes, of what comes back, and the forms of its mask."""

    order: str
    back: str
    groups: bool = False
    bool_as: str = ""
    float_as: str = ""
    hides: bool = False


def fit(code: Code) -> Attention:
    """The code as an `Attention`: its q, k, v if it takes them as heads, else its tokens.

    Raises ``DoesNotFit`` with what was tried.
    """
    known = parameters(code.call)
    named = {one.role: one for one in known}
    first = [one for one in known if one.required][:3]
    three = all(role in named for role in THREE) or (len(first) == 3 and not any(
        one.role in ("cos", "sin", "mask", "positions", "length") for one in first
    ))
    weighty = code.module is not None and any(True for _ in code.module.parameters())
    failed = ""
    if three and not weighty:
        try:
            return _on_heads(code, known)
        except DoesNotFit as error:
            failed = f"{error}; "
    try:
        return fit_tokens(code)
    except DoesNotFit as error:
        raise DoesNotFit(f"{failed}{error}") from None


def _names(known: tuple[Parameter, ...]) -> list[str]:
    by = {one.role: one.name for one in reversed(known)}
    if all(role in by for role in THREE):
        return [by[role] for role in THREE]
    return [one.name for one in known if one.required][:3]


def _caller(code: Code, form: Form) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """(q, k, v, mask) -> (output, weights or None), all in the canonical order."""
    known = parameters(code.call)
    names = _names(known)
    mask_name = next((one.name for one in known if one.role == "mask"), "")
    fixed = {k: v for k, v in code.options.arguments.items() if k in {one.name for one in known}}
    if form.groups and any(one.name == "enable_gqa" for one in known):
        fixed = {"enable_gqa": True, **fixed}

    def call(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        rows, heads = q.shape[:2]
        if "h" not in form.order and heads > 1:
            apart = [call(q[:, h : h + 1], k[:, g : g + 1], v[:, g : g + 1], mask)
                     for h in range(heads) for g in [h * k.shape[1] // heads]]  # fmt: skip
            return torch.cat([out for out, _ in apart], 1), _joined([w for _, w in apart], 1)
        if "b" not in form.order and rows > 1:
            apart = [call(q[b : b + 1], k[b : b + 1], v[b : b + 1],
                          mask if mask is None or mask.shape[0] == 1 else mask[b : b + 1])
                     for b in range(rows)]  # fmt: skip
            return torch.cat([out for out, _ in apart]), _joined([w for _, w in apart], 0)
        given: dict[str, Any] = dict(
            zip(names, (to_order(x, form.order) for x in (q, k, v)), strict=True)
        )
        if mask is not None:
            shown = _mask_as(mask, form.bool_as if mask.dtype == torch.bool else form.float_as)
            given[mask_name] = ~shown if form.hides and shown.dtype == torch.bool else shown
        for one in known:
            if one.required and one.name not in given and one.name not in fixed:
                given[one.name] = _plain(one, q)
        value = code.call(**given, **fixed)
        parts = value if isinstance(value, tuple | list) else (value,)
        out = _back(parts[0], q, v, form.back)
        wanted = (*q.shape[:3], k.shape[2])
        weights = next((w for w in parts[1:] if isinstance(w, Tensor)), None)
        if weights is not None and weights.shape != wanted:
            fits = weights.numel() == torch.Size(wanted).numel()
            weights = weights.reshape(wanted) if fits else None
        return out, weights

    return call


def _joined(parts: list[Tensor | None], axis: int) -> Tensor | None:
    whole = [w for w in parts if w is not None]
    return torch.cat(whole, axis) if len(whole) == len(parts) else None


def _plain(one: Parameter, q: Tensor) -> Any:
    values: Mapping[str, Any] = {
        "mask": None, "dropout": 0.0, "causal": False, "heads": q.shape[1], "width": q.shape[3],
        "padding": None, "length": q.shape[2],
    }  # fmt: skip
    if one.name in ("scale", "scaling", "softmax_scale"):
        return q.shape[3] ** -0.5
    if one.role not in values:
        raise DoesNotFit(f"it must be given {one.name!r}, and what that is its name does not say; "
                         f"give arguments={{{one.name!r}: ..}}")  # fmt: skip
    return values[one.role]


def _mask_as(mask: Tensor, form: str) -> Tensor:
    """From (B, 1, T, S) to the form of the code."""
    if form == "T, S":
        return mask[0, 0]
    return mask[:, 0] if form == "B, T, S" else mask


def _back(out: Any, q: Tensor, v: Tensor, back: str) -> Tensor:
    if not isinstance(out, Tensor):
        raise DoesNotFit(f"a tensor was wanted, and {type(out).__name__} came back")
    if back == "bte":
        rows, heads, tokens = q.shape[:3]
        return out.reshape(rows, tokens, heads, v.shape[3]).transpose(1, 2)
    return from_order(out, back)


def _on_heads(code: Code, known: tuple[Parameter, ...]) -> Attention:
    form = _form(code, known)
    found = _caller(code.again(), form)
    masks = tuple(name for name, has in (("bool", form.bool_as), ("float", form.float_as)) if has)
    q, k, v = _drawn(H, H)
    shown = found(q, k, v, None)[1] is not None
    return _subject(code.again(), form, masks, shown, known)


def _subject(
    code: Code, form: Form, masks: tuple[str, ...], shown: bool, known: tuple[Parameter, ...]
) -> Attention:
    call = _caller(code, form)

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return call(q, k, v, mask)[0]

    def weights(q: Tensor, k: Tensor) -> Tensor:
        found = call(q, k, k.clone(), None)[1]
        assert found is not None
        return found

    def make(**settings: Any) -> Attention:
        return _subject(code.again(**settings), form, masks, shown, known)

    named = [one.name for one in known if one.required or one.role == "mask"]
    mask_told = f", mask as ({form.bool_as or form.float_as})" if masks else ", no mask"
    hides = " that is True where a key is hidden (turned round here)" if form.hides else ""
    return Attention(
        name=code.name, make=make, module=code.module, source=code.place, attend=attend,
        heads=H, groups=G if form.groups else H, width=code.options.width or 8, masks=masks,
        weights=weights if shown else None, dropout=_dropout(code.module),
        true_hides=form.hides,
        adapted=f"called as {code.name}({', '.join(named)}); {named[0]} is "
                f"({', '.join(form.order.upper())}){mask_told}{hides}",
    )  # fmt: skip


def _dropout(module: nn.Module | None) -> float:
    parts = module.modules() if module is not None else ()
    return max((float(m.p) for m in parts if isinstance(m, nn.Dropout)), default=0.0)


def _drawn(heads: int, groups: int, width: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)

    def normal(h: int, n: int) -> Tensor:
        return torch.randn(B, h, n, width, generator=generator)

    return normal(heads, T), normal(groups, S), normal(groups, S)


def _forms(code: Code) -> Iterator[Form]:
    hinted = code.options.order or order_in(code.text)
    said = [code.options.order] if code.options.order else []
    orders = said or dict.fromkeys([hinted if len(hinted) == 4 else "bhtd", *ORDERS])
    for order in orders:
        backs = [order, *(b for b in ("bthd", "bhtd") if "h" in order and b != order)]
        yield from (Form(order, back) for back in [*backs, *(["bte"] if "h" in order else [])])


def _form(code: Code, known: tuple[Parameter, ...]) -> Form:
    """The first order that gives an output of the right shape; then what its mask means."""
    width = code.options.width or 8
    q, k, v = _drawn(H, H, width)
    failed = ""
    for form in _forms(code):
        try:
            out, _ = _caller(code.again(), form)(q, k, v, None)
            if out.shape != q.shape:
                raise DoesNotFit(f"{tuple(q.shape)} was wanted, {tuple(out.shape)} came")
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or " ".join(str(error).split())[:200]
            continue
        found = replace(form, groups=_has_groups(code, form, width))
        masked = any(one.role == "mask" for one in known)
        return _masked(code, found, width) if masked else found
    raise DoesNotFit(f"called with q, k, v of {T} queries and {S} keys: {failed}")


def _has_groups(code: Code, form: Form, width: int) -> bool:
    q, k, v = _drawn(H, G, width)
    try:
        out, _ = _caller(code.again(), replace(form, groups=True))(q, k, v, None)
    except Exception:  # noqa: BLE001 (code for as many keys as queries may raise anything)
        return False
    return out.shape == q.shape and "h" in form.order


def _masked(code: Code, form: Form, width: int) -> Form:
    """The forms of masks that do something, read off one key that is marked."""
    q, k, v = _drawn(H, H, width)
    seen = torch.ones(B, 1, T, S, dtype=torch.bool)
    seen[..., 2] = False
    moved = v.clone()
    moved[:, :, 2] += 1.0
    rest = v.clone()
    rest[:, :, 3] += 1.0
    numbers = torch.zeros(B, 1, T, S).masked_fill(~seen, -torch.inf)

    leaks = ""

    def hidden(trial: Form, mask: Tensor) -> str:
        call = _caller(code.again(), trial)
        plain = call(q, k, v, mask)[0]
        if plain.shape != q.shape or not bool(torch.isfinite(plain).all()):
            return ""
        marked = torch.equal(plain, call(q, k, moved, mask)[0])
        others = torch.equal(plain, call(q, k, rest, mask)[0])
        return "hidden" if marked and not others else "shown" if others and not marked else ""

    for shape in ("B, 1, T, S", "B, T, S", "T, S"):
        for field, mask in (("bool_as", seen), ("float_as", numbers)):
            if getattr(form, field):
                continue
            trial = (replace(form, bool_as=shape) if field == "bool_as"
                     else replace(form, float_as=shape))  # fmt: skip
            try:
                what = hidden(trial, mask)
            except Exception:  # noqa: BLE001 (the code may not take a mask of this shape)
                continue
            if what == "hidden":
                form = trial
            elif what == "shown" and field == "bool_as":
                form = replace(trial, hides=True)
            elif not leaks and field == "bool_as" and _matters(code, trial, seen, (q, k, v)):
                leaks = shape
    return form if form.bool_as or form.float_as else replace(form, bool_as=leaks)


def _matters(code: Code, form: Form, mask: Tensor, drawn: tuple[Tensor, Tensor, Tensor]) -> bool:
    """Whether a mask that hides nothing entirely does something: it leaks, and is asked about."""
    call = _caller(code.again(), form)
    one, every = call(*drawn, mask)[0], call(*drawn, torch.ones_like(mask))[0]
    return one.shape == every.shape and not torch.equal(one, every)
