"""The attention inside a layer: its projections by name, whose results are set while it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..subjects import Attention

PART_NAME = (
    r"(to_?|w_?|lin(ear)?_?|proj(ection)?_?)?({})(_?(proj|projection|lin|linear|layer|w|net))?"
)
NAMES = {
    part: re.compile(PART_NAME.format(words), re.IGNORECASE)
    for part, words in {
        "q": "q|query|queries",
        "k": "k|key|keys",
        "v": "v|value|values",
        "qkv": "qkv|c_attn|in_proj|query_key_value",
    }.items()
}


@dataclass
class ProjectedRun:
    """One run of a layer: results given to its projections, their own, and the last one's input."""

    given: dict[str, Tensor]
    made: dict[str, Tensor] = field(default_factory=dict)
    read: Tensor | None = None


def projected(layer: Attention) -> Attention | None:
    """Return the attention inside a layer: q (B, H, n, D), k and v (B, G, n, D) -> (B, H, n, D).

    The projections are found by name; while the layer runs, their results are replaced, and the
    input of its last projection is captured.  That this is attention at all is not assumed: callers
    must check that its weights are a softmax of products.  ``None`` if the projections are not
    found, or do not split into the heads.
    """
    parts = projections_of(layer.module)
    if parts is None or layer.layer is None:
        return None
    weight = next(iter(parts.values())).weight
    run, tokens = ProjectedRun({}), torch.zeros(1, 3, layer.embed).to(weight)  # type: ignore[arg-type]
    with torch.no_grad(), setting_projections(layer.module, parts, run):
        out = layer.layer(tokens)
    widths = {
        name: x.shape[-1] for name, x in run.made.items() if x.shape[:-1] == tokens.shape[:-1]
    }
    if set(widths) != set(parts):
        return None
    heads = layer.heads
    whole = widths["qkv"] // 3 if "qkv" in widths else widths["q"]
    width = whole // heads
    if whole % heads or not width or widths.get("k", whole) % width:
        return None
    groups = widths.get("k", whole) // width
    if (out if run.read is None else run.read).shape != (*tokens.shape[:2], whole):
        return None  # values have another width, or it is not what attention gives

    def attend(
        q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, by_head: bool = False
    ) -> Tensor:
        if mask is not None or q.shape[2] != k.shape[2]:
            raise ValueError("a layer has as many queries as keys, and no mask from outside")
        rows = {name: x.transpose(1, 2) for name, x in (("q", q), ("k", k), ("v", v))}
        if "qkv" in parts:  # one array: first the parts, or for each head its own
            rows = {"qkv": torch.stack(tuple(rows.values()), 3 if by_head else 2)}
        run = ProjectedRun({name: x.flatten(2) for name, x in rows.items()})
        with setting_projections(layer.module, parts, run):
            assert layer.layer is not None  # checked above
            out = layer.layer(_tokens(layer, q))
        found = out if run.read is None else run.read
        return found.reshape(*found.shape[:2], heads, width).transpose(1, 2)

    found = attend
    if "qkv" in parts and not _is_linear_in_values(attend, layer, width):
        by_head = partial(attend, by_head=True)
        found = by_head if _is_linear_in_values(by_head, layer, width) else attend
    return replace(layer, attend=found, width=width, groups=groups, masks=())


def _is_linear_in_values(attend: Callable[..., Tensor], layer: Attention, width: int) -> bool:
    """Whether twice the values give twice the result, as they do only where values are read."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(3, 1, layer.heads, 3, width, generator=generator)
    q, k, v = drawn.to(next(layer.module.parameters())) if layer.module is not None else drawn
    with torch.no_grad():
        once, twice = attend(q, k, v), attend(q, k, 2 * v)
    return torch.allclose(2 * once, twice, rtol=1e-3, atol=1e-4 * float(once.abs().max()))


def _tokens(layer: Attention, q: Tensor) -> Tensor:
    return torch.zeros(q.shape[0], q.shape[2], layer.embed, dtype=q.dtype, device=q.device)


def _matrices(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the parts with a single weight matrix, by the last component of their name."""
    for name, part in module.named_modules():
        weight = getattr(part, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2 and not any(part.children()):
            yield name.rpartition(".")[2], part


def projections_of(module: nn.Module | None) -> dict[str, nn.Module] | None:
    """Return the projections by name, q, k and v or a joint qkv; None unless each occurs once."""
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
def setting_projections(
    module: nn.Module | None, parts: dict[str, nn.Module], run: ProjectedRun
) -> Iterator[None]:
    """Replace the results of the layer's projections, and capture its last projection's input."""
    assert module is not None  # its parts were found
    handles: list[Any] = []

    def gives(kind: str) -> Any:
        def hook(_part: nn.Module, _inputs: Any, out: Tensor) -> Tensor | None:
            run.made[kind] = out
            wanted = run.given.get(kind)
            return None if wanted is None else wanted.reshape(out.shape).to(out.dtype)

        return hook

    def listens(_part: nn.Module, inputs: tuple[Any, ...]) -> None:
        given = inputs[0] if inputs else None
        numbers = isinstance(given, Tensor) and given.is_floating_point()  # not places in a table
        if run.made.keys() == parts.keys() and run.read is None and numbers:
            run.read = given

    try:
        handles += [part.register_forward_hook(gives(kind)) for kind, part in parts.items()]
        handles += [
            part.register_forward_pre_hook(listens)
            for _, part in _matrices(module)
            if all(part is not one for one in parts.values())
        ]
        yield
    finally:
        for handle in handles:
            handle.remove()
