"""A layer on tokens as attention on queries, keys and values: what its projections give is set.

The projections of queries, keys and values are found by their names; while the layer runs, what
they give is replaced by chosen numbers, and what its last projection is given is read.  That this
is attention at all is not assumed: who reads it has to see weights that are a softmax of products.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..subjects import Attention

__all__ = ["projected"]

ONE = r"(to_?|w_?|lin(ear)?_?|proj(ection)?_?)?({})(_?(proj|projection|lin|linear|layer|w|net))?"
NAMES = {part: re.compile(ONE.format(words), re.IGNORECASE)
         for part, words in {"q": "q|query|queries", "k": "k|key|keys", "v": "v|value|values",
                             "qkv": "qkv|c_attn|in_proj|query_key_value"}.items()}  # fmt: skip


@dataclass
class _Run:
    """One run of a layer: what its projections are to give, and what its last one was given."""

    given: dict[str, Tensor]
    seen: set[str] = field(default_factory=set)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    read: Tensor | None = None


def projected(layer: Attention) -> Attention | None:
    """The attention inside a layer: q (B, H, T, D), k and v (B, G, T, D) -> (B, H, T, D).

    ``None`` where its projections are not found, or do not split into its heads.
    """
    parts = _parts(layer.module)
    if parts is None or layer.layer is None:
        return None
    weight = next(iter(parts.values())).weight
    run, tokens = _Run({}), torch.zeros(1, 3, layer.embed).to(weight)  # type: ignore[arg-type]
    with torch.no_grad(), _hooked(layer.module, parts, run):
        out = layer.layer(tokens)
    widths = {name: shape[-1] for name, shape in run.shapes.items()
              if shape[:-1] == tokens.shape[:-1]}  # fmt: skip
    if set(widths) != set(parts):
        return None
    heads = layer.heads
    whole = widths["qkv"] // 3 if "qkv" in widths else widths["q"]
    width = whole // heads
    if whole % heads or not width or widths.get("k", whole) % width:
        return None
    groups = widths.get("k", whole) // width
    if (out if run.read is None else run.read).shape[-1] != whole:
        return None  # values have another width

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None or q.shape[2] != k.shape[2]:
            raise ValueError("a layer has as many queries as keys, and no mask from outside")
        rows = {name: x.transpose(1, 2).flatten(2) for name, x in (("q", q), ("k", k), ("v", v))}
        run = _Run({"qkv": torch.cat(tuple(rows.values()), -1)} if "qkv" in parts else rows)
        with _hooked(layer.module, parts, run):
            assert layer.layer is not None  # seen above
            out = layer.layer(_tokens(layer, q))
        found = out if run.read is None else run.read
        return found.reshape(*found.shape[:2], heads, width).transpose(1, 2)

    return replace(layer, attend=attend, width=width, groups=groups, masks=())


def _tokens(layer: Attention, q: Tensor) -> Tensor:
    return torch.zeros(q.shape[0], q.shape[2], layer.embed, dtype=q.dtype, device=q.device)


def _matrices(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The parts that are one matrix, by the last word of their name."""
    for name, part in module.named_modules():
        weight = getattr(part, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2 and not any(part.children()):
            yield name.rpartition(".")[2], part


def _parts(module: nn.Module | None) -> dict[str, nn.Module] | None:
    """The projections by name: q, k and v, or qkv in one; None where these are not one of each."""
    if module is None:
        return None
    found: dict[str, list[nn.Module]] = {name: [] for name in NAMES}
    for name, part in _matrices(module):
        for kind, pattern in NAMES.items():
            if pattern.fullmatch(name):
                found[kind].append(part)
    many = {kind: len(those) for kind, those in found.items()}
    for kinds in (("q", "k", "v"), ("qkv",)):
        if many == {kind: int(kind in kinds) for kind in NAMES}:
            return {kind: found[kind][0] for kind in kinds}
    return None


@contextmanager
def _hooked(module: nn.Module | None, parts: dict[str, nn.Module], run: _Run) -> Iterator[None]:
    """The layer with what its projections give replaced, and its last projection listened to."""
    assert module is not None  # its parts were found
    handles: list[Any] = []

    def gives(kind: str) -> Any:
        def hook(_part: nn.Module, _inputs: Any, out: Tensor) -> Tensor | None:
            run.seen.add(kind)
            run.shapes[kind] = tuple(out.shape)
            wanted = run.given.get(kind)
            return None if wanted is None else wanted.reshape(out.shape).to(out.dtype)

        return hook

    def listens(_part: nn.Module, inputs: tuple[Any, ...]) -> None:
        if run.seen == set(parts) and run.read is None and isinstance(inputs[0], Tensor):
            run.read = inputs[0]

    try:
        handles += [part.register_forward_hook(gives(kind)) for kind, part in parts.items()]
        handles += [part.register_forward_pre_hook(listens) for _, part in _matrices(module)
                    if all(part is not one for one in parts.values())]  # fmt: skip
        yield
    finally:
        for handle in handles:
            handle.remove()
