"""What attention code makes of a mask it is given: polarity, numbers, rows that see nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...numeric.profile import unit_roundoff
from ..draw import Draw
from ..identity import Part
from ..subjects import Attention
from .weights import weights_of

__all__ = ["mask_parts"]

KEYS = 5


def mask_parts(code: Attention, draw: Draw, groups: list[int] | None) -> Iterator[Part]:
    """Polarity of truth values, what numbers do, and what a query that sees nothing reads."""
    if "bool" in code.masks:
        yield _polarity(code, draw)
    if "float" in code.masks:
        yield _numbers(code, draw)
    if code.masks:
        yield _hidden_row(code, draw, groups)


def _drawn(code: Attention, draw: Draw) -> tuple[Tensor, Tensor]:
    return (draw.normal(1, code.heads, KEYS, code.width, salt=21),
            draw.normal(1, code.groups, KEYS, code.width, salt=22))  # fmt: skip


def _polarity(code: Attention, draw: Draw) -> Part:
    """Keys 0 and 1 of a mask are True, and the last query's own key."""
    q, k = _drawn(code, draw)
    mask = torch.zeros(1, 1, KEYS, KEYS, dtype=torch.bool, device=draw.device)
    mask[..., :2] = True
    plain = weights_of(code, q, k)[0, :, -1] > 0
    seen = weights_of(code, q, k, mask)[0, :, -1] > 0
    marked = mask[0, 0, -1].cpu()
    words, value = "truth values of a mask that neither show nor hide", "other"
    shows = bool((seen == (plain & marked)).all())
    if shows or bool((seen == (plain & ~marked)).all()):
        value = "visible" if shows != code.true_hides else "hidden"
        words = f"True means {value}"
    elif bool((seen == plain).all()):
        words, value = "a mask of truth values that does nothing", "none"
    return Part("polarity", value, words, f"the last of {KEYS} queries, with the first 2 keys True")


def _numbers(code: Attention, draw: Draw) -> Part:
    """Whether numbers are added to scores as they are."""
    q, k = _drawn(code, draw)
    mask = draw.normal(1, 1, KEYS, KEYS, salt=23)
    mask = mask[:, :, -1:].expand_as(mask) if code.by_key else mask
    before, after = weights_of(code, q, k)[0, :, -1], weights_of(code, q, k, mask)[0, :, -1]
    use = (before > 0).all(0)
    y = (after.log() - before.log())[:, use]
    x = mask[0, 0, -1].double().cpu()[use].expand_as(y)
    y, x = y - y.mean(-1, keepdim=True), x - x.mean(-1, keepdim=True)
    slope = float((x * y).sum() / (x * x).sum())
    off = float((y - slope * x).abs().nan_to_num(posinf=1e9, neginf=1e9, nan=1e9).max())
    tol = 64 * unit_roundoff(draw.dtype) * (KEYS + 8 + code.width)
    seen = f"random numbers as a mask: the logarithms of weights change by them times {slope:.4g}"
    if off > tol:
        seen = f"what the weights change by is {off:.2g} from any multiple of them"
        return Part("numbers", None, "a mask of numbers that is not added to the scores", seen)
    plain = abs(slope - 1) <= tol
    words = "" if plain else f"a mask of numbers multiplied by {slope:.4g} before it is added"
    return Part("numbers", slope if not plain else 1.0, words, seen)


def _hidden_row(code: Attention, draw: Draw, groups: list[int] | None) -> Part:
    """What the last query reads if every key is hidden from it, in each way that the code takes."""
    assert code.attend is not None  # who calls has seen it
    q, k = _drawn(code, draw)
    v = draw.normal(1, code.groups, KEYS, code.width, salt=24)
    ways: dict[str, Tensor] = {}
    if "bool" in code.masks:
        shown = torch.ones(1, 1, KEYS, KEYS, dtype=torch.bool, device=draw.device)
        shown[..., 0 if code.by_key else -1 :, :] = False
        ways["all False"] = shown
    if "float" in code.masks:
        for name, value in (("−inf", -torch.inf), ("the least number", torch.finfo(q.dtype).min)):
            added = torch.zeros(1, 1, KEYS, KEYS, dtype=q.dtype, device=draw.device)
            added[..., 0 if code.by_key else -1 :, :] = value
            ways[name] = added
    told = {
        name: _reads(code.attend(q, k, v, mask)[0, :, -1], v, groups)
        for name, mask in ways.items()
    }
    kinds = set(told.values())
    what = kinds.pop() if len(kinds) == 1 else ", ".join(f"{w} ({n})" for n, w in told.items())
    words = f"a query that sees nothing reads {what}"
    return Part("hidden rows", told, words, f"the last of {KEYS} queries, each way of hiding")


def _reads(row: Tensor, v: Tensor, groups: list[int] | None) -> str:
    """Zeros, NaN, the mean of all values, or something else."""
    if not bool(row.isfinite().all()):
        return "NaN"
    if not bool(row.any()):
        return "zeros"
    mean = v[0].double().mean(-2)
    if groups is None:
        return "some values"
    off = float((row.double() - mean[groups]).abs().max())
    return "the mean of all values" if off <= 64 * KEYS * unit_roundoff(v.dtype) else "some values"
