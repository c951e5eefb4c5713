"""Subjects of timm: rotary code of grids, biases of windows, tables of two axes, attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.declarations import (
    DeclaredAdditive,
    DeclaredAttention,
    DeclaredRotary,
)
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Rotary, Subject

from .examining import at_places

PACKAGES = ("timm", "torch")
WIDTH, HEADS, EMBED, SIDE = 16, 2, 16, 64
HALF = SIDE // 2


def indexed(which: str, *, half: bool = False, **settings: Any) -> Rotary:
    """Angles of a grid of 64 × 64 whole places, read at each place."""
    from timm.layers import pos_embed_sincos as code

    given = {"in_pixels": False, "rotate_half": half} | settings
    module = getattr(code, which)(WIDTH, **_named(given))
    table = _table(module, SIDE)

    def row(x: Tensor, positions: Tensor) -> Tensor:
        done: Tensor = code.apply_rot_embed_cat(x, table()[_at(positions)], half=half)
        return done

    base = float(given.get("base", 10000.0))
    axis = tuple(base ** (-i / (WIDTH // 4)) for i in range(WIDTH // 4))
    return Rotary(
        name=which,
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        axes=2,
        most=SIDE,
        module=module,
        make=lambda **more: indexed(which, half=half, **(settings | more)),
        declared=DeclaredRotary(
            base=None, layout="half" if half else "interleaved", frequencies=axis + axis
        ),
        adapted=f"apply_rot_embed_cat(x, {which}(16, in_pixels=False).get_embed((64, 64)) at "
        "the places)",
    )


def centred(which: str, *, half: bool = False, **settings: Any) -> Rotary:
    """Angles of a grid of 15 × 15 that goes from −1 to 1, counted from its middle.

    ``max_res`` is 14, so that no pair rotates by more than π from one place to the next: faster
    ones are told only up to whole turns, and their rounding would be taken for an error.
    """
    from timm.layers import pos_embed_sincos as code

    if which != "RotaryEmbeddingDinoV3":
        if "base" in settings:
            raise TypeError("the frequencies of pixels have no base")
        settings.setdefault("max_res", 14)
    module = getattr(code, which)(WIDTH, rotate_half=half, **_named(settings))
    table = _table(module, 15)

    def row(x: Tensor, positions: Tensor) -> Tensor:
        done: Tensor = code.apply_rot_embed_cat(x, table()[_at(positions + 7, 15)], half=half)
        return done

    return Rotary(
        name=which,
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        axes=2,
        first=-7,
        most=8,
        module=module,
        make=lambda **more: centred(which, half=half, **(settings | more)),
        declared=DeclaredRotary(layout="half" if half else "interleaved"),
        adapted=f"apply_rot_embed_cat(x, {which}(16).get_embed((15, 15)) at the places), counted "
        "from the middle",
    )


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    names = {"base": "temperature", "width": "dim"}
    return {names.get(key, key): value for key, value in settings.items()}


def _at(positions: Tensor, side: int = SIDE) -> Tensor:
    return positions[:, 0] * side + positions[:, 1]


def _table(module: Any, side: int) -> Callable[[], Tensor]:
    def made() -> Tensor:
        found = module.get_embed((side, side))
        return found if isinstance(found, Tensor) else torch.cat(found, -1)

    return made


def mixed() -> Rotary:
    """RotaryEmbeddingMixed: its frequencies are drawn, and learned, for each head."""
    from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed, apply_rot_embed_cat

    torch.manual_seed(0)
    module = RotaryEmbeddingMixed(dim=HEADS * WIDTH, depth=1, num_heads=HEADS)

    def row(x: Tensor, positions: Tensor) -> Tensor:
        angles = module.get_embed((SIDE, SIDE))[0][:, _at(positions)]
        done: Tensor = apply_rot_embed_cat(x, angles)
        return done

    return Rotary(
        name="RotaryEmbeddingMixed",
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        axes=2,
        most=SIDE,
        module=module,
        make=mixed,
        adapted="apply_rot_embed_cat(x, get_embed((64, 64))[0] at the places)",
    )


def window(**settings: Any) -> Bias:
    """RelPosBias, which is that of Swin, built for each window."""
    from timm.layers import RelPosBias
    from timm.layers.pos_embed_rel import gen_relative_position_index

    def bias(rows: int, columns: int) -> Tensor:
        torch.manual_seed(0)
        done: Tensor = RelPosBias((rows, columns), HEADS, **settings).get_bias()[0]
        return done

    return Bias(
        name="RelPosBias",
        heads=HEADS,
        window=bias,
        make=window,
        index=lambda sizes: gen_relative_position_index(_two(sizes)),
        adapted="RelPosBias((rows, columns), 2).get_bias(), and its index",
    )


def _two(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns; these functions read no further and would drop a third axis."""
    rows, columns = sizes
    return rows, columns


def index_of(module: str, name: str, *, first: int = 0) -> Bias:
    """A function that makes the index of a window; of those with a class token, without it."""
    from importlib import import_module

    made = getattr(import_module(module), name)

    def index(sizes: tuple[int, ...]) -> Tensor:
        rows, columns = _two(sizes)
        given = (rows, columns) if name.startswith("get") else ((rows, columns),)
        done: Tensor = made(*given)[first:, first:]
        return done

    return Bias(
        name=name,
        heads=1,
        index=index,
        make=lambda: index_of(module, name, first=first),
        adapted=f"{module}.{name}((rows, columns))",
    )


def network(**settings: Any) -> Bias:
    """RelPosMlp: a small network of the logarithm of the offsets."""
    from timm.layers import RelPosMlp

    def bias(rows: int, columns: int) -> Tensor:
        torch.manual_seed(0)
        module = RelPosMlp((rows, columns), num_heads=HEADS, hidden_dim=16, **settings).eval()
        done: Tensor = module.get_bias()[0]
        return done

    return Bias(
        name="RelPosMlp",
        heads=HEADS,
        window=bias,
        make=lambda: network(**settings),
        adapted="RelPosMlp((rows, columns), num_heads=2).get_bias()",
    )


def table() -> Additive:
    """build_sincos2d_pos_embed of one row, whose columns are the tokens."""
    from timm.layers import build_sincos2d_pos_embed

    def added(x: Tensor) -> Tensor:
        rows: Tensor = build_sincos2d_pos_embed([1, x.shape[1]], dim=EMBED)
        return x + rows.to(x)

    return Additive(
        name="build_sincos2d_pos_embed",
        added=added,
        width=EMBED,
        make=table,
        declared=DeclaredAdditive(base=None),
        adapted="x + build_sincos2d_pos_embed([1, T], dim=16)",
    )


def attention(causal: bool = False, fused: bool = True, **settings: Any) -> Attention:
    """Attention: fused, and not, as two paths."""
    from timm.layers import Attention as Code

    torch.manual_seed(0)
    module = Code(EMBED, num_heads=HEADS, **settings)
    module.fused_attn = fused

    def hidden(x: Tensor, keep: Tensor) -> Tensor:
        mask = keep[:, None, None].expand(-1, 1, x.shape[1], -1)
        done: Tensor = module(x, attn_mask=mask)
        return done

    def layer(x: Tensor) -> Tensor:
        done: Tensor = module(x, is_causal=causal)
        return done

    def other(x: Tensor) -> Tensor:
        module.fused_attn = not fused
        try:
            return layer(x)
        finally:
            module.fused_attn = fused

    return Attention(
        name="Attention",
        layer=layer,
        hide=None if causal else hidden,
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=EMBED // HEADS,
        module=module,
        make=lambda: attention(causal, fused, **settings),
        dropout=settings.get("attn_drop", 0.0),
        paths={"not fused" if fused else "fused": other},
        declared=DeclaredAttention(causal=causal, positions="none"),
        adapted="Attention(16, num_heads=2)(x, attn_mask=.. or is_causal=..)",
    )


def block(module: str, name: str, **settings: Any) -> Layer:
    """Any attention of tokens (B, T, E) of a model."""
    from importlib import import_module

    torch.manual_seed(0)
    made = getattr(import_module(module), name)(EMBED, num_heads=HEADS, **settings)
    return Layer(
        name=name,
        call=made,
        embed=EMBED,
        module=made,
        make=lambda: block(module, name, **settings),
        declared=DeclaredAttention(causal=False, positions="none"),
        adapted=f"{module}.{name}(16, num_heads=2)(x)",
    )


def subjects() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Grids, windows and attention."""
    for which in ("RotaryEmbedding", "RotaryEmbeddingCat"):
        for told, half in (("", False), (", rotate_half", True)):
            yield f"{which}, index{told}", partial(indexed, which, half=half)
            yield f"{which}, pixels{told}", partial(centred, which, half=half)
    for told, half in (("", True), (", interleaved", False)):
        yield f"RotaryEmbeddingDinoV3{told}", partial(centred, "RotaryEmbeddingDinoV3", half=half)
    yield "RotaryEmbeddingMixed", mixed
    yield "RelPosBias", window
    for module, name, first in INDICES:
        yield f"{module.rsplit('.', 1)[-1]}.{name}", partial(index_of, module, name, first=first)
    yield "build_sincos2d_pos_embed, one row", table
    yield "RelPosMlp", network
    yield "RelPosMlp, mode cr", lambda: network(mode="cr")
    yield "Attention", attention
    yield "Attention, is_causal", lambda: attention(causal=True)
    yield "Attention, not fused", lambda: attention(fused=False)
    yield "Attention, attn_drop", lambda: attention(attn_drop=0.3)
    yield "Attention, gated", lambda: attention(gated=True)
    for module, name, more in LAYERS:
        yield f"{module.rsplit('.', 1)[-1]}.{name}", partial(block, module, name, **more)


INDICES = (
    ("timm.layers.pos_embed_rel", "gen_relative_position_index", 0),
    ("timm.models.swin_transformer", "get_relative_position_index", 0),
    ("timm.models.beit", "gen_relative_position_index", 1),
)
LAYERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("timm.layers", "DiffAttention", {}),
    ("timm.layers", "AttentionRope", {}),
    ("timm.models.beit", "Attention", {}),
    ("timm.models.eva", "EvaAttention", {"scale_norm": False}),
    ("timm.models.cait", "TalkingHeadAttn", {}),
    ("timm.models.xcit", "XCA", {}),
)
