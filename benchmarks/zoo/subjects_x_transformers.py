"""Subjects of x-transformers: rotary, biases of positions, tables, attention and its layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from attnproof.programs.declarations import (
    DeclaredAdditive,
    DeclaredAttention,
    DeclaredBias,
    DeclaredRotary,
)
from attnproof.programs.subjects import Additive, Attention, Bias, Rotary, Subject

PACKAGES = ("x-transformers", "torch")
WIDTH, HEADS, EMBED, MOST = 8, 2, 16, 1 << 10


def rotary(**settings: Any) -> Rotary:
    """``apply_rotary_pos_emb(x, *RotaryEmbedding(positions))``."""
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    named = {"width": "dim", "factor": "interpolation_factor"}
    given = {"dim": WIDTH} | {named.get(key, key): value for key, value in settings.items()}
    module = RotaryEmbedding(**given)

    def rotated(power: int) -> Callable[[Tensor, Tensor], Tensor]:
        def rotate(x: Tensor, positions: Tensor) -> Tensor:
            if module.scale is None:
                return cast("Tensor", apply_rotary_pos_emb(x, *module(positions)))
            # xpos counts its scale from the middle of a call, so that a last position is added
            last = torch.full_like(positions[:, :1], MOST - 1)
            freqs, scale = module(torch.cat((last, positions), 1))
            return cast("Tensor", apply_rotary_pos_emb(x, freqs, scale**power))

        return rotate

    xpos = module.scale is not None
    factor = given.get("interpolation_factor", 1.0)
    return Rotary(
        name="RotaryEmbedding",
        rotate=rotated(1),
        key=rotated(-1) if xpos else None,
        width=12,
        heads=HEADS,
        most=MOST if xpos else 1 << 20,
        module=module,
        make=lambda **more: rotary(**(settings | more)),
        declared=DeclaredRotary(
            base=10000.0,
            layout="interleaved",
            width=WIDTH,
            factor=factor,
            scaling="linear" if factor != 1 else "",
        ),
        adapted="apply_rotary_pos_emb(x, *RotaryEmbedding(8)(positions)), 12 channels",
    )


def alibi(heads: int) -> Bias:
    """AlibiPositionalBias: its cached bias, and that of positions that are given."""
    from x_transformers.x_transformers import AlibiPositionalBias

    module = AlibiPositionalBias(heads)
    return Bias(
        name="AlibiPositionalBias",
        heads=heads,
        bias=module,
        module=module,
        make=lambda **more: alibi(more.get("heads", heads)),
        declared=DeclaredBias(name="alibi"),
        paths={
            "forward_custom_pos": lambda t, s: module.forward_custom_pos(
                torch.arange(s - t, s), torch.arange(s)
            )
        },
        adapted="AlibiPositionalBias(heads)(queries, keys)",
    )


def bucketed(causal: bool) -> Bias:
    """RelativePositionBias, which is that of T5."""
    from x_transformers.x_transformers import RelativePositionBias

    module = RelativePositionBias(1.0, causal=causal, heads=3)
    return Bias(
        name="RelativePositionBias",
        heads=3,
        bias=module,
        module=module,
        causal=causal,
        make=lambda: bucketed(causal),
        adapted="RelativePositionBias(1.0)(queries, keys)",
        declared=DeclaredBias(name="t5", bidirectional=not causal, buckets=32, distance=128),
    )


def dynamic(**settings: Any) -> Bias:
    """DynamicPositionBias: a small network of the distance."""
    from x_transformers.x_transformers import DynamicPositionBias

    module = DynamicPositionBias(EMBED, heads=3, depth=2, **settings)
    return Bias(
        name="DynamicPositionBias",
        heads=3,
        bias=module,
        module=module,
        make=lambda: dynamic(**settings),
        adapted="DynamicPositionBias(16, heads=3, depth=2)(queries, keys)",
    )


def sinusoidal() -> Additive:
    """ScaledSinusoidalEmbedding, whose table is multiplied with 1/√D."""
    from x_transformers.x_transformers import ScaledSinusoidalEmbedding

    module = ScaledSinusoidalEmbedding(EMBED)
    return Additive(
        name="ScaledSinusoidalEmbedding",
        added=lambda x: x + module(x),
        width=EMBED,
        module=module,
        make=sinusoidal,
        adapted="x + ScaledSinusoidalEmbedding(16)(x)",
        declared=DeclaredAdditive(base=10000.0, layout="half"),
    )


def absolute() -> Additive:
    """AbsolutePositionalEmbedding, which is learned."""
    from x_transformers.x_transformers import AbsolutePositionalEmbedding

    module = AbsolutePositionalEmbedding(EMBED, 64)
    return Additive(
        name="AbsolutePositionalEmbedding",
        added=lambda x: x + module(x),
        width=EMBED,
        most=64,
        learned=True,
        module=module,
        make=absolute,
        adapted="x + AbsolutePositionalEmbedding(16, 64)(x)",
    )


def attend(groups: int = HEADS, **settings: Any) -> Attention:
    """Attend: queries, keys, values and a mask of truth values."""
    from x_transformers.attend import Attend

    module = Attend(heads=2 * groups if groups != HEADS else HEADS, **settings)
    heads = 2 * groups if groups != HEADS else HEADS

    def call(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        added = mask is not None and mask.dtype != torch.bool
        done: Tensor = module(q, k, v, **({"attn_bias": mask} if added else {"mask": mask}))[0]
        return done

    return Attention(
        name="Attend",
        attend=call,
        heads=heads,
        groups=groups,
        width=WIDTH,
        module=module,
        masks=("bool", "float"),
        make=lambda: attend(groups, **settings),
        declared=DeclaredAttention(causal=bool(settings.get("causal"))),
        adapted="Attend()(q, k, v, mask=.. or attn_bias=..)[0]",
    )


def layer(**settings: Any) -> Attention:
    """One Attention: tokens, and a mask of those that count."""
    from x_transformers.x_transformers import Attention as Code

    torch.manual_seed(0)
    module = Code(EMBED, heads=HEADS, dim_head=WIDTH, **settings)
    causal = bool(settings.get("causal"))
    return Attention(
        name="Attention",
        layer=module,
        hide=lambda x, keep: module(x, mask=keep),
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        module=module,
        make=lambda: layer(**settings),
        dropout=settings.get("dropout", 0.0),
        declared=DeclaredAttention(causal=causal, positions="none"),
        adapted="Attention(16, heads=2, dim_head=8)(x, mask=..)",
    )


def decoder(positions: str = "relative", **settings: Any) -> Attention:
    """Decoder of one block, all at once and with its cache."""
    from x_transformers import Decoder

    torch.manual_seed(0)
    module = Decoder(
        dim=EMBED, depth=1, heads=HEADS, attn_dim_head=WIDTH, verbose=False, **settings
    )

    def step(x: Tensor, state: Any) -> tuple[Tensor, Any]:
        # the cache keeps only as many of the last tokens as its age says
        done = module(
            x, cache=state, cache_age=x.shape[1], input_not_include_cache=True, return_hiddens=True
        )
        return cast("tuple[Tensor, Any]", done)

    return Attention(
        name="Decoder",
        layer=module,
        hide=lambda x, keep: module(x, mask=keep),
        step=step,
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        module=module,
        positional=positions == "absolute",
        make=lambda: decoder(positions, **settings),
        declared=DeclaredAttention(
            causal=True,
            positions=positions,
            window=settings.get("attn_max_attend_past", -1) + 1 or None,
        ),
        adapted="Decoder(dim=16, depth=1, heads=2)(x, cache=.., input_not_include_cache=True)",
    )


def encoder(**settings: Any) -> Attention:
    """Encoder of one block; ``causal`` asks for a mask at the call."""
    from x_transformers import Encoder

    torch.manual_seed(0)
    given = dict(settings)
    called = {"causal": True} if given.pop("causal", False) else {}
    module = Encoder(dim=EMBED, depth=1, heads=HEADS, attn_dim_head=WIDTH, verbose=False, **given)
    return Attention(
        name="Encoder",
        layer=lambda x: module(x, **called),
        hide=lambda x, keep: module(x, mask=keep, **called),
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        module=module,
        make=lambda: encoder(**settings),
        declared=DeclaredAttention(causal=bool(called)),
        adapted=f"Encoder(dim=16, depth=1, heads=2)(x{', causal=True' if called else ''})",
    )


def subjects() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Rotary code, biases, tables, attention, and layers with each of the position encodings."""
    yield "RotaryEmbedding", rotary
    yield "RotaryEmbedding, interpolation_factor=2", lambda: rotary(factor=2.0)
    yield "RotaryEmbedding, xpos", lambda: rotary(use_xpos=True)
    for heads in (6, 8):
        yield f"AlibiPositionalBias, {heads} heads", partial(alibi, heads)
    yield "RelativePositionBias", lambda: bucketed(False)
    yield "RelativePositionBias, causal", lambda: bucketed(True)
    yield "DynamicPositionBias", dynamic
    yield "DynamicPositionBias, log_distance", lambda: dynamic(log_distance=True)
    yield "ScaledSinusoidalEmbedding", sinusoidal
    yield "AbsolutePositionalEmbedding", absolute
    for told, flash in (("", False), (", flash", True)):
        yield f"Attend{told}", partial(attend, flash=flash)
        yield f"Attend, causal{told}", partial(attend, causal=True, flash=flash)
        yield f"Attend, 4 heads over 2{told}", partial(grouped, flash=flash)
        yield f"Attention{told}", partial(layer, flash=flash)
        yield f"Attention, causal{told}", partial(layer, causal=True, flash=flash)
        yield (
            f"Encoder called with causal=True{told}",
            partial(encoder, causal=True, attn_flash=flash),
        )
        for name, kind in ENCODED.items():
            if not (flash and name in WITHOUT_FLASH):
                yield f"Decoder, {name}{told}", partial(decoder, **kind, attn_flash=flash)
    yield "Attention, dropout", lambda: layer(dropout=0.3)
    yield "Attention, qk_norm", lambda: layer(qk_norm=True)
    yield "Decoder, attn_max_attend_past=3", lambda: decoder("none", attn_max_attend_past=3)
    yield "Decoder, data dependent alibi", lambda: decoder(attn_data_dependent_alibi=True)


ENCODED: dict[str, dict[str, Any]] = {
    "no positions": {"positions": "none"},
    "rotary_pos_emb": {"rotary_pos_emb": True},
    "rotary_xpos": {"rotary_xpos": True},
    "alibi_pos_bias": {"alibi_pos_bias": True},
    "rel_pos_bias": {"rel_pos_bias": True},
    "dynamic_pos_bias": {"dynamic_pos_bias": True},
}
WITHOUT_FLASH = ("rel_pos_bias", "dynamic_pos_bias")  # the library refuses both together


def grouped(**settings: Any) -> Attention:
    """Four heads of queries over two of keys and values."""
    made = attend(groups=2, **settings)
    return replace(made, heads=4, make=lambda: grouped(**settings))
