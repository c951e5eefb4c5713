"""The laws of attention code, and of layers, as sides that should agree exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..probes.attention_weights import no_multiple, no_softmax
from ..probes.base import Draw
from ..programs.subjects import Additive, Attention, Layer
from .lab import Lab, NotAsked, Sides, law
from .tensor import apart

__all__: list[str] = []

B, T, S = 2, 3, 5


def _three(subject: Attention, lab: Lab, tokens: int = T, keys: int = S
           ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    if subject.attend is None:
        raise NotAsked("the code takes tokens, not queries, keys and values")
    width = subject.width or 4
    return (lab.numbers(B, subject.heads, tokens, width),
            lab.numbers(B, subject.groups, keys, width),
            lab.numbers(B, subject.groups, keys, width))  # fmt: skip


def _attend(subject: Attention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
            ) -> Tensor:  # fmt: skip
    assert subject.attend is not None
    found: Tensor = subject.attend(q, k, v, mask)
    return found


def _sizes(q: Tensor, k: Tensor) -> dict[str, Any]:
    return {"queries": list(q.shape), "keys": list(k.shape)}


def _causal(subject: Any) -> bool | None:
    declared = getattr(subject, "declared", None)
    found: bool | None = None if declared is None else declared.causal
    return found or (True if declared is not None and declared.window else found)


def _tokens(subject: Attention | Layer, lab: Lab, tokens: int = 4) -> Tensor:
    if not subject.embed:
        raise NotAsked("how wide a token is, is not known")
    return lab.numbers(B, tokens, subject.embed)


@apart
def _asked_of(lab: Lab, why_not: Callable[[Attention, Draw], str]) -> None:
    """Raise ``NotAsked`` where what the code does to plain numbers says that the law is not one."""
    if not isinstance(lab.given, Attention):
        return
    try:
        why = why_not(lab.given, Draw(dtype=lab.dtype))
    except Exception:  # noqa: BLE001 (code may refuse plain numbers of these sizes)
        lab.session.refused = None
        return
    if why:
        raise NotAsked(why)


def _places_matter(subject: Any) -> bool:
    declared = getattr(subject, "declared", None)
    said = declared is not None and declared.positions not in (None, "none")
    return bool(_causal(subject) or subject.positional or said)


@law("order-of-keys", "attention")
def _order(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if _places_matter(subject):
        raise NotAsked("it is declared to look at the order of keys")
    q, k, v = _three(subject, lab)
    order = lab.order(S)
    yield Sides(("keys and values permuted", _attend(subject, q, k[:, :, order], v[:, :, order])),
                ("as they are", _attend(subject, q, k, v)),
                {**_sizes(q, k), "order": order.tolist()})  # fmt: skip


@law("rows-sum-to-one", "attention")
def _ones(subject: Attention, lab: Lab) -> Iterator[Sides]:
    _asked_of(lab, no_softmax)
    q, k, v = _three(subject, lab, S)
    # the same in all groups: which head reads which is another law
    same = lab.same(lab.same(v, 2, S), 1, subject.groups)
    wide = lab.same(same, 1, subject.heads)
    yield Sides(("equal values", _attend(subject, q, k, same)), ("that value", wide),
                _sizes(q, k))  # fmt: skip


@law("shift-of-scores", "attention")
def _shift(subject: Attention, lab: Lab) -> Iterator[Sides]:
    _asked_of(lab, no_multiple)
    _asked_of(lab, no_softmax)
    q, k, v = _three(subject, lab, S)
    more = lab.same(lab.numbers(*k.shape), 2, S)
    yield Sides(("one vector added to all keys", _attend(subject, q, k + more, v)),
                ("the keys as they are", _attend(subject, q, k, v)), _sizes(q, k))  # fmt: skip


@law("groups-of-heads", "attention")
def _groups(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.groups == subject.heads or subject.groups < 2:
        raise NotAsked("there are not two groups of several heads")
    q, k, v = _three(subject, lab, S)
    often = subject.heads // subject.groups
    found = _attend(subject, q, k, v)
    for group in range(subject.groups):
        mine = (torch.arange(subject.groups) == group)[None, :, None, None]
        other = (torch.where(mine, x, lab.numbers(*x.shape)) for x in (k, v))
        heads = slice(group * often, (group + 1) * often)
        yield Sides((f"heads of group {group}", found[:, heads]),
                    ("the same, other keys and values in the other groups",
                     _attend(subject, q, *other)[:, heads]),
                    {**_sizes(q, k), "group": group})  # fmt: skip


@law("heads-apart", "attention")
def _apart(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.heads < 2:
        raise NotAsked("the code has one head")
    q, k, v = _three(subject, lab, S)
    found = _attend(subject, q, k, v)
    for head in (0, subject.heads - 1):
        mine = (torch.arange(subject.heads) == head)[None, :, None, None]
        changed = torch.where(mine, q, lab.numbers(*q.shape))
        keys = [k, v]
        if subject.groups == subject.heads:
            keys = [torch.where(mine, x, lab.numbers(*x.shape)) for x in keys]
        part = slice(head, head + 1)
        yield Sides((f"head {head}", found[:, part]),
                    ("the same, all other heads changed",
                     _attend(subject, changed, *keys)[:, part]),
                    {**_sizes(q, k), "head": head})  # fmt: skip


@law("causal", "attention")
def _past(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if not _causal(subject) and not lab.wanted:
        raise NotAsked("it is not declared causal")
    if subject.layer is not None:
        yield from _later(subject.layer, _tokens(subject, lab), lab)
    if subject.attend is not None:
        q, k, v = _three(subject, lab, S)
        found = _attend(subject, q, k, v)
        for seen in (1, 3):
            past = (torch.arange(S) < seen)[None, None, :, None]
            other = [torch.where(past, x, lab.numbers(*x.shape)) for x in (k, v)]
            yield Sides((f"the first {seen} outputs", found[:, :, :seen]),
                        ("the same, later keys and values changed",
                         _attend(subject, q, *other)[:, :, :seen]),
                        {**_sizes(q, k), "seen": seen})  # fmt: skip


def _later(call: Any, x: Tensor, lab: Lab) -> Iterator[Sides]:
    found = call(x)
    for seen in (1, 2):
        past = (torch.arange(x.shape[1]) < seen)[None, :, None]
        other = call(torch.where(past, x, lab.numbers(*x.shape)))
        told = {"tokens": list(x.shape), "seen": seen}
        yield Sides((f"the first {seen} outputs", found[:, :seen]),
                    ("the same, later tokens changed", other[:, :seen]), told)  # fmt: skip
        try:
            alone = call(x[:, :seen].contiguous())
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            continue  # code of one length
        yield Sides((f"the first {seen} outputs", found[:, :seen]),
                    ("the same, later tokens left out", alone), told)  # fmt: skip


@law("causal", "layer")
def _layer_past(subject: Layer, lab: Lab) -> Iterator[Sides]:
    if not lab.wanted:
        raise NotAsked("nothing says that it is causal: ask for it by name")
    yield from _later(subject.call, _tokens(subject, lab), lab)


@law("alignment", "attention")
def _alignment(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if not _causal(subject) or subject.declared is None or subject.declared.alignment != "end":
        raise NotAsked("it is not declared causal with the last query at the last key")
    q, k, v = _three(subject, lab, S)
    found = _attend(subject, q, k, v)
    for few in (1, 2):
        some = _attend(subject, q[:, :, -few:].contiguous(), k, v)
        yield Sides((f"the last {few} queries alone", some),
                    (f"the last {few} of {S}", found[:, :, -few:]),
                    {**_sizes(q, k), "last": few})  # fmt: skip


@law("rows-of-batch-apart", "attention")
def _rows(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.layer is not None:
        yield from _alone(subject.layer, _tokens(subject, lab))
    if subject.attend is not None:
        q, k, v = _three(subject, lab, S)
        found = _attend(subject, q, k, v)
        for row in range(B):
            one = slice(row, row + 1)
            yield Sides((f"row {row} in its batch", found[one]),
                        ("the row alone", _attend(subject, q[one], k[one], v[one])),
                        _sizes(q, k))  # fmt: skip


def _alone(call: Any, x: Tensor) -> Iterator[Sides]:
    for size, rows in ((x.shape[1], (0, 1)), (len(x), (1,)), (1, (1,))):
        found = call(x[:, :size].contiguous())
        for row in rows:
            one = slice(row, row + 1)
            yield Sides((f"row {row} in its batch", found[one]),
                        ("the row alone", call(x[one, :size].contiguous())),
                        {"tokens": [len(x), size, x.shape[2]]})  # fmt: skip


@law("rows-of-batch-apart", "layer")
def _layer_rows(subject: Layer, lab: Lab) -> Iterator[Sides]:
    yield from _alone(subject.call, _tokens(subject, lab))


@law("rows-of-batch-apart", "additive")
def _additive_rows(subject: Additive, lab: Lab) -> Iterator[Sides]:
    yield from _alone(subject.added, lab.numbers(B, 4, subject.width))


@law("hidden-keys-do-nothing", "attention")
def _hidden(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.hide is not None:
        x = _tokens(subject, lab)
        keep = torch.tensor([[True, True, True, False], [True, True, False, False]])
        kept = keep[..., None]
        other = torch.where(kept, x, lab.numbers(*x.shape))
        yield Sides(("padded", subject.hide(x, keep)),
                    ("the same, other tokens in the padding", subject.hide(other, keep)),
                    {"tokens": list(x.shape), "keep": keep.tolist()}, kept)  # fmt: skip
    if not subject.masks and subject.hide is None:
        raise NotAsked("the code takes no mask")
    for name in subject.masks:
        q, k, v = _three(subject, lab, S)
        seen = torch.tensor([[True, False, True, True, False], [True, True, False, True, False]])
        mask = seen[:, None, None, :].repeat(1, 1, S, 1)
        given = mask if name == "bool" else torch.where(mask, 0.0, -torch.inf).to(lab.dtype)
        shown = seen[:, None, :, None]
        k2, v2 = (torch.where(shown, t, lab.numbers(*t.shape)) for t in (k, v))
        yield Sides(("hidden keys", _attend(subject, q, k, v, given)),
                    ("the same, other numbers in them", _attend(subject, q, k2, v2, given)),
                    {**_sizes(q, k), "seen": seen.tolist(), "mask": name})  # fmt: skip


@law("step-by-step", "attention")
def _steps(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.step is None or subject.layer is None:
        raise NotAsked("the code is not fed in pieces")
    if subject.declared is None or not subject.declared.causal:
        raise NotAsked("it is not declared causal: the past may see what comes later")
    x = _tokens(subject, lab, 5)
    found = subject.layer(x)
    for pieces in ((1, 1, 1, 1, 1), (2, 3), (3, 1, 1)):
        state, parts, start = None, [], 0
        for size in pieces:
            part, state = subject.step(x[:, start : start + size].contiguous(), state)
            parts.append(part)
            start += size
        yield Sides(("in pieces of " + ", ".join(map(str, pieces)), torch.cat(parts, 1)),
                    ("all at once", found),
                    {"tokens": list(x.shape), "pieces": list(pieces)})  # fmt: skip


@law("documents-apart", "attention")
def _documents(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.documents is None:
        raise NotAsked("the code takes no position ids of documents")
    x, first, second = _tokens(subject, lab, 5), torch.arange(2), torch.arange(3)
    ids = torch.cat([first, second]).repeat(B, 1)
    packed = subject.documents(x, ids)
    for part, own in ((slice(0, 2), first), (slice(2, 5), second)):
        alone = subject.documents(x[:, part].contiguous(), own.repeat(B, 1))
        yield Sides(("a document in its row", packed[:, part]), ("the document alone", alone),
                    {"tokens": list(x.shape), "lengths": [2, 3]})  # fmt: skip


@law("translation", "attention")
def _translation(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if subject.whole_layer is None or subject.positional:
        raise NotAsked("the layer is not said to look at offsets alone, or takes no first place")
    x = _tokens(subject, lab)
    for shift in (1, 5):
        yield Sides(("from place 0", subject.whole_layer(x, 0)),
                    (f"from place {shift}", subject.whole_layer(x, shift)),
                    {"tokens": list(x.shape), "shift": shift})  # fmt: skip


@law("permutation", "attention")
def _permutation(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if _places_matter(subject):
        raise NotAsked("it is declared to look at the order of tokens")
    if subject.layer is not None:
        yield from _permuted(subject.layer, _tokens(subject, lab), lab)
    if subject.attend is not None:
        q, k, v = _three(subject, lab, S)
        order = lab.order(S)
        yield Sides(("tokens permuted", _attend(subject, *(x[:, :, order] for x in (q, k, v)))),
                    ("the outputs permuted", _attend(subject, q, k, v)[:, :, order]),
                    {**_sizes(q, k), "order": order.tolist()})  # fmt: skip


def _permuted(call: Any, x: Tensor, lab: Lab) -> Iterator[Sides]:
    order = lab.order(x.shape[1])
    yield Sides(("tokens permuted", call(x[:, order])), ("the outputs permuted", call(x)[:, order]),
                {"tokens": list(x.shape), "order": order.tolist()})  # fmt: skip


@law("permutation", "layer")
def _layer_permutation(subject: Layer, lab: Lab) -> Iterator[Sides]:
    yield from _permuted(subject.call, _tokens(subject, lab), lab)


@law("paths-agree", "attention")
def _paths(subject: Attention, lab: Lab) -> Iterator[Sides]:
    if not subject.paths:
        raise NotAsked("there is one path only")
    for name, path in subject.paths.items():
        if subject.attend is not None:
            q, k, v = _three(subject, lab, S)
            sides = _attend(subject, q, k, v), path(q, k, v, None)
            told = _sizes(q, k)
        else:
            x = _tokens(subject, lab)
            assert subject.layer is not None
            sides, told = (subject.layer(x), path(x)), {"tokens": list(x.shape)}
        yield Sides(("the main path", sides[0]), (name, sides[1]), told)
