"""What is told of hidden keys, and of queries that see none, beside what their laws ask."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..influence import visible
from ..response import gap
from .attention_fills import COUNT, read_through
from .base import Outcome, held
from .influence import Sizes, attend_sizes, inputs
from .laws import further
from .scene import Scene

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


@further("hidden-rows", "attention")
def read_of_no_key(scene: Scene) -> Outcome:
    """What is told of what a query reads that sees no key."""
    one = scene.subject
    sizes = attend_sizes(one, scene.declared)[0]
    q, k, v = inputs(scene, sizes)
    seen = random_mask(scene, sizes)
    seen[0, 0, slice(None) if one.by_key else 1] = False
    told = []
    for form, given in as_given(scene, seen).items():
        made = scene.allow(lambda q, k, v, m=given: one.attend(q, k, v, m), q, k, v)
        row, each = made.output[0, :, 1], v[0].mean(1)
        often = len(row) // len(each)
        ways = {"zero": torch.zeros_like(row), "mean": each.repeat_interleave(often, 0),
                "the mean, of groups that take turns,": each.repeat(often, 1)}  # fmt: skip
        name = next((n for n, way in ways.items() if gap(row, way) <= made()), "something else")
        name = "nan" if bool(row.isnan().any()) else name
        if scene.declared.causal and "mean" in name:  # outside the reach of a causal query
            name += " of all values, those of later tokens too"
        told.append(f"a query that sees no key reads {name} ({form} mask)")
    return held("; ".join(told))
