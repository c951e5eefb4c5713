"""Laws of what is hidden: keys, whole rows, padding, the other documents of a packed row."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..influence import visible
from ..response import gap
from .attention_fills import COUNT, read_through
from .base import Outcome, held, not_asked, probe
from .influence import Sizes, attend_sizes, inputs, named
from .laws import further
from .scene import Scene, in_formats

__all__: list[str] = []


def random_mask(scene: Scene, sizes: Sizes) -> Tensor:
    """Truth values (B, 1, T, S) that leave every query its own key, and its own alone at worst.

    Code whose masks are the same for every query keeps every other key, the first among them.
    """
    b, t, s, *_ = sizes
    if scene.subject.by_key:
        seen = scene.draw.normal(b, 1, 1, s, salt=91) > 0
        seen[..., ::2] = True
        return seen.expand(b, 1, t, s).clone()
    seen = scene.draw.normal(b, 1, t, s, salt=91) > 0
    seen = seen & visible(scene.declared, t, s).to(seen.device)
    last = torch.arange(t, device=seen.device)
    seen[:, :, last, (last + s - t) if scene.declared.alignment == "end" else last] = True
    return seen


def as_given(scene: Scene, seen: Tensor) -> dict[str, Tensor]:
    """A mask of truth values in each form that the code takes: truth values, or 0 and −inf."""
    forms: dict[str, Tensor] = {}
    if "bool" in scene.subject.masks:
        forms["bool"] = seen
    if "float" in scene.subject.masks:
        zero = torch.zeros(seen.shape, dtype=scene.draw.dtype, device=seen.device)
        forms["float"] = zero.masked_fill(~seen, -math.inf)
    return forms


@further("hidden-keys-do-nothing", "attention")
def beyond_numbers(scene: Scene) -> Outcome:
    """What is told of infinities and NaN in hidden keys, and of scores beyond a finite fill."""
    one = scene.subject
    if one.attend is None or not one.masks:
        return held("")
    sizes = attend_sizes(one, scene.declared)[0]
    seen, hidden = random_mask(scene, sizes), max(1, sizes[2] // 2)
    seen[..., hidden] = False
    seen[..., 0] |= ~seen.any(-1)  # whoever saw that key alone sees the first
    mask = next(iter(as_given(scene, seen).values()))
    told = _not_finite(scene, (*inputs(scene, sizes), mask), hidden)
    if "bool" in one.masks and not one.by_key:
        alone = torch.eye(COUNT, dtype=torch.bool, device=seen.device)[None, None]
        told += read_through(scene, alone)
    return held(told.removeprefix("; "))


def _not_finite(scene: Scene, given: tuple[Tensor, ...], hidden: int) -> str:
    """Which infinities and NaN come through: 0 · NaN is NaN in most code, torch's own as well."""
    q, k, v, mask = given
    through = []
    for name, value in (("inf", math.inf), ("NaN", math.nan)):
        for where in ("key", "value"):
            keys, values = k.clone(), v.clone()
            (keys if where == "key" else values)[:, :, hidden] = value
            if not bool(scene.subject.attend(q, keys, values, mask).isfinite().all()):
                through.append(f"{name} in a hidden {where}")
    return f"; {', '.join(through)} comes through" if through else "; nor did inf and NaN"


@probe("hidden-rows", "attention")
@in_formats
def hidden_rows(scene: Scene) -> Outcome:
    """A query from which all keys are hidden reads zeros, the mean, or what is declared."""
    one, said = scene.subject, scene.declared.hidden_row
    if one.attend is None or not one.masks:
        return not_asked("the code takes no mask")
    words = ""
    for sizes in attend_sizes(one, scene.declared)[:3]:
        b, t, _, h, g, _ = sizes
        q, k, v = inputs(scene, sizes)
        mask = random_mask(scene, sizes)
        full = as_given(scene, mask)
        mask = mask.clone()
        mask[0, 0, slice(None) if one.by_key else 1] = False
        for form, given in as_given(scene, mask).items():
            plain = scene.allow(lambda q, k, v, m=full[form]: one.attend(q, k, v, m), q, k, v)
            output = one.attend(q, k, v, given)
            row = output[0, :, 1]
            each = v[0].mean(1)
            means = each.repeat_interleave(h // g, 0), each.repeat(h // g, 1)  # or groups tiled
            mean = min(means, key=lambda one, row=row: gap(row, one))  # type: ignore[misc]
            ways = {"zero": torch.zeros_like(row), "mean": mean}
            is_one = next((n for n, w in ways.items() if gap(row, w) <= plain()), "something else")
            if bool(row.isnan().any()):
                is_one = "nan"
            told: dict[str, Any] = {**named(sizes), "mask": form, "query": 1, "row": 0}
            words = f"a query that sees no key reads {is_one} ({form} mask)"
            if is_one != said and (said != "any" or is_one == "nan"):
                ways["nan"] = torch.full_like(row, math.nan)
                wanted = ways.get(said, ways["zero"])
                due = {"any": "zeros or the mean", "zero": "zeros"}.get(said, said)
                seen = scene.differs(
                    words, ("what it reads", row), ("what it is to read", wanted), plain(),
                    f"{words}, and {due} {'is' if due in ('mean', 'nan') else 'are'} wanted",
                    **told,
                )  # fmt: skip
                if seen.witness is not None:
                    return seen
            rest = torch.ones(b, t, dtype=torch.bool, device=row.device)
            rest[0, slice(None) if one.by_key else 1] = False
            seen = scene.differs(
                words, ("the output of the other queries", output.transpose(1, 2)[rest]),
                ("theirs where every query sees a key", plain.output.transpose(1, 2)[rest]),
                plain(), **told,
            )  # fmt: skip
            if seen.witness is not None:
                return seen
    return held(words, seen.error, seen.bound)
