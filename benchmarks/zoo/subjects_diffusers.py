"""Subjects of diffusers: rotary functions in their variants and of models, tables, attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor

from attnproof.programs.declarations import (
    DeclaredAdditive,
    DeclaredAttention,
    DeclaredRotary,
)
from attnproof.programs.subjects import Additive, Attention, Rotary, Subject

from .examining import at_places, in_runs

PACKAGES = ("diffusers", "torch")
WIDTH, HEADS, EMBED, SIDE = 16, 2, 16, 16
EMBEDDINGS = "diffusers.models.embeddings"
MODELS = "diffusers.models.transformers"
Rotate = Callable[[Tensor, Tensor], Tensor]


def _get(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _applied(x: Tensor, table: Any, way: str) -> Tensor:
    """``apply_rotary_emb`` on one row (1, H, T, D) with cos and sin (T, D), or a complex table."""
    apply = _get(EMBEDDINGS, "apply_rotary_emb")
    if way == "complex":
        rotated = cast("Tensor", apply(x.transpose(1, 2), table[None], use_real=False))
        return rotated.transpose(1, 2)
    return cast("Tensor", apply(x, table, use_real_unbind_dim=-1 if way == "interleaved" else -2))


def line(way: str, **settings: Any) -> Rotary:
    """get_1d_rotary_pos_embed and apply_rotary_emb, as the three kinds of models call them."""
    width = settings.get("width", WIDTH)
    given = {key: v for key, v in settings.items() if key not in ("base", "width", "factor")}
    base, factor = settings.get("base", 10000.0), settings.get("factor")
    if "ntk_factor" in given and "base" in settings:
        raise TypeError("what is declared is the base times ntk_factor, and no other base is built")
    if factor is not None:
        given["linear_factor"] = factor

    def row(x: Tensor, positions: Tensor) -> Tensor:
        table = _get(EMBEDDINGS, "get_1d_rotary_pos_embed")(
            width,
            positions,
            theta=base,
            use_real=way != "complex",
            repeat_interleave_real=way == "interleaved",
            **given,
        )
        return _applied(x, table, way)

    factor = given.get("linear_factor", 1.0)
    return Rotary(
        name="get_1d_rotary_pos_embed",
        rotate=at_places(row),
        width=width,
        heads=HEADS,
        make=lambda **more: line(way, **(settings | more)),
        declared=DeclaredRotary(
            base=base * given.get("ntk_factor", 1.0),
            width=width,
            layout="half" if way == "half" else "interleaved",
            scaling="linear" if factor != 1 else "",
            factor=factor,
        ),
        adapted=f"apply_rotary_emb(x, get_1d_rotary_pos_embed(16, positions)), {way}",
    )


def grid(
    name: str,
    make: Callable[[], Callable[[Tensor], Any]],
    *,
    axes: int = 2,
    way: str = "interleaved",
    most: int = SIDE,
    first: int = 0,
) -> Rotary:
    """Code that makes the table of a grid, read at each place; ``make``: positions -> table."""
    table = make()

    def row(x: Tensor, positions: Tensor) -> Tensor:
        return _applied(x, table(positions), way)

    return Rotary(
        name=name,
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        axes=axes,
        first=first,
        most=most,
        declared=DeclaredRotary(layout="half" if way == "half" else "interleaved"),
        make=lambda: grid(name, make, axes=axes, way=way, most=most, first=first),
        adapted=f"apply_rotary_emb(x, {name} of {SIDE} × {SIDE} places, at the places)",
    )


def _at(table: Any, positions: Tensor, side: int = SIDE) -> Any:
    index = torch.zeros(len(positions), dtype=torch.long)
    for p in positions.unbind(-1):
        index = index * side + p
    return tuple(one[index] for one in table) if isinstance(table, tuple) else table[index]


def _plane() -> Callable[[Tensor], Any]:
    made = _get(EMBEDDINGS, "get_2d_rotary_pos_embed")(WIDTH, ((0, 0), (SIDE, SIDE)), (SIDE, SIDE))
    return lambda positions: _at(made, positions)


def _plane_lumina() -> Callable[[Tensor], Any]:
    made = _get(EMBEDDINGS, "get_2d_rotary_pos_embed_lumina")(WIDTH, SIDE, SIDE).flatten(0, 1)
    return lambda positions: _at(made, positions)


def _space(grid_type: str) -> Callable[[], Callable[[Tensor], Any]]:
    def make() -> Callable[[Tensor], Any]:
        made = _get(EMBEDDINGS, "get_3d_rotary_pos_embed")(
            WIDTH,
            ((0, 0), (SIDE, SIDE)),
            (SIDE, SIDE),
            SIDE,
            grid_type=grid_type,
            max_size=(SIDE, SIDE),
        )
        return lambda positions: _at(made, positions)

    return make


def _flux() -> Callable[[Tensor], Any]:
    made = _get(f"{MODELS}.transformer_flux", "FluxPosEmbed")(10000, [4, 6, 6])
    return cast("Callable[[Tensor], Any]", made)


def _lumina2() -> Callable[[Tensor], Any]:
    module = _get(f"{MODELS}.transformer_lumina2", "Lumina2RotaryPosEmbed")(
        10000, [4, 6, 6], (SIDE, SIDE, SIDE)
    )
    return lambda positions: module._get_freqs_cis(positions[None])[0]  # noqa: SLF001


def _video(
    module: str, name: str, *given: Any, **more: Any
) -> Callable[[], Callable[[Tensor], Any]]:
    """Code that looks only at the shape (B, C, frames, rows, columns) of what it is given."""

    def make() -> Callable[[Tensor], Any]:
        made = _get(f"{MODELS}.{module}", name)(*given, **more)
        cos, sin = (one.reshape(SIDE**3, -1) for one in made(torch.zeros(1, 1, SIDE, SIDE, SIDE)))
        return lambda positions: _at((cos, sin), positions)

    return make


def _qwen() -> Callable[[Tensor], Any]:
    """Rows and columns, counted from the middle, of the first frame."""
    module = _get(f"{MODELS}.transformer_qwenimage", "QwenEmbedRope")(
        10000, [4, 6, 6], scale_rope=True
    )
    made = module([(1, SIDE, SIDE)], device=torch.device("cpu"), max_txt_seq_len=1)[0]
    return lambda positions: _at(made, positions + SIDE // 2)


def cropped(**settings: Any) -> Rotary:
    """get_2d_rotary_pos_embed of the crop that begins at the first position and has one row."""
    if settings:
        raise TypeError(f"get_2d_rotary_pos_embed has no {', '.join(settings)}")

    def run(x: Tensor, start: int) -> Tensor:
        count = x.shape[-2]
        crop = ((0, start), (1, start + count))
        table = _get(EMBEDDINGS, "get_2d_rotary_pos_embed")(2 * WIDTH, crop, (1, count))
        return _applied(x, tuple(one[:, :WIDTH] for one in table), "interleaved")

    return Rotary(
        name="get_2d_rotary_pos_embed of a crop",
        rotate=in_runs(run),
        width=WIDTH,
        heads=HEADS,
        make=cropped,
        declared=DeclaredRotary(base=10000.0, layout="interleaved"),
        adapted="get_2d_rotary_pos_embed(32, ((0, start), (1, start + T)), (1, T)), the channels "
        "of the columns",
    )


def allegro() -> Rotary:
    """get_3d_rotary_pos_embed_allegro and apply_rotary_emb_allegro at the places."""
    made = _get(EMBEDDINGS, "get_3d_rotary_pos_embed_allegro")(
        24, ((0, 0), (SIDE, SIDE)), (SIDE, SIDE), SIDE
    )[:3]

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        done: Tensor = _get(EMBEDDINGS, "apply_rotary_emb_allegro")(x, made, positions.unbind(-1))
        return done

    return Rotary(
        name="apply_rotary_emb_allegro",
        rotate=rotate,
        width=24,
        heads=HEADS,
        axes=3,
        most=SIDE,
        make=allegro,
        adapted="apply_rotary_emb_allegro(x, get_3d_rotary_pos_embed_allegro(24, ..), positions)",
    )


def timesteps(**settings: Any) -> Additive:
    """get_timestep_embedding of 0, 1, 2, ..: added to zeros, as tables are."""

    def added(x: Tensor) -> Tensor:
        make = _get(EMBEDDINGS, "get_timestep_embedding")
        return x + cast("Tensor", make(torch.arange(x.shape[1]), EMBED, **settings)).to(x)

    shift = settings.get("downscale_freq_shift", 1)
    ladder = tuple(10000.0 ** (-i / (EMBED // 2 - shift)) for i in range(EMBED // 2))
    return Additive(
        name="get_timestep_embedding",
        added=added,
        width=EMBED,
        make=lambda: timesteps(**settings),
        declared=DeclaredAdditive(frequencies=ladder),
        adapted="x + get_timestep_embedding(0..T−1, 16)",
    )


def sinusoidal() -> Additive:
    """SinusoidalPositionalEmbedding."""
    module = _get(EMBEDDINGS, "SinusoidalPositionalEmbedding")(EMBED, 512)
    return Additive(
        name="SinusoidalPositionalEmbedding",
        added=module,
        width=EMBED,
        most=512,
        module=module,
        make=sinusoidal,
        declared=DeclaredAdditive(base=10000.0, layout="interleaved"),
        adapted="SinusoidalPositionalEmbedding(16, 512)(x)",
    )


def sincos() -> Additive:
    """get_1d_sincos_pos_embed_from_grid."""

    def added(x: Tensor) -> Tensor:
        make = _get(EMBEDDINGS, "get_1d_sincos_pos_embed_from_grid")
        return x + cast("Tensor", make(EMBED, torch.arange(x.shape[1]))).to(x)

    return Additive(
        name="get_1d_sincos_pos_embed_from_grid",
        added=added,
        width=EMBED,
        make=sincos,
        declared=DeclaredAdditive(base=10000.0, layout="half"),
        adapted="x + get_1d_sincos_pos_embed_from_grid(16, 0..T−1)",
    )


def attention(first: str = "AttnProcessor2_0", **settings: Any) -> Attention:
    """Attention with one of its processors; the others are paths to the same."""
    code = import_module("diffusers.models.attention_processor")
    torch.manual_seed(0)
    module = code.Attention(EMBED, heads=HEADS, dim_head=EMBED // HEADS, **settings)
    others: dict[str, Any] = {
        "AttnProcessor": code.AttnProcessor(),
        "AttnProcessor2_0": code.AttnProcessor2_0(),
        "SlicedAttnProcessor": code.SlicedAttnProcessor(1),
    }

    def by(name: str) -> Callable[..., Tensor]:
        def layer(x: Tensor, keep: Tensor | None = None) -> Tensor:
            module.set_processor(others[name])
            mask = None
            if keep is not None:
                mask = torch.zeros(keep.shape, dtype=x.dtype).masked_fill(~keep, -10000.0)[:, None]
            done: Tensor = module(x, attention_mask=mask)
            return done

        return layer

    return Attention(
        name="Attention",
        layer=by(first),
        hide=by(first),
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=EMBED // HEADS,
        module=module,
        make=lambda: attention(first, **settings),
        paths={name: by(name) for name in others if name != first},
        declared=DeclaredAttention(causal=False, positions="none"),
        adapted=f"Attention(16, heads=2)(x, attention_mask=..) with {first}",
    )


def subjects() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Lines, grids, videos, tables and attention."""
    for way in ("interleaved", "half", "complex"):
        yield f"get_1d_rotary_pos_embed, {way}", partial(line, way)
    yield "get_1d_rotary_pos_embed, linear_factor=2", lambda: line("interleaved", linear_factor=2.0)
    yield "get_1d_rotary_pos_embed, ntk_factor=4", lambda: line("interleaved", ntk_factor=4.0)
    yield "get_1d_rotary_pos_embed, float64", lambda: line("interleaved", freqs_dtype=torch.float64)
    for name, make, more in GRIDS:
        yield name, partial(grid, name, make, **more)
    yield "get_2d_rotary_pos_embed of a crop", cropped
    yield "apply_rotary_emb_allegro", allegro
    yield "get_timestep_embedding", timesteps
    yield (
        "get_timestep_embedding, flip_sin_to_cos",
        lambda: timesteps(flip_sin_to_cos=True, downscale_freq_shift=0),
    )
    yield "SinusoidalPositionalEmbedding", sinusoidal
    yield "get_1d_sincos_pos_embed_from_grid", sincos
    yield "Attention", attention
    yield "Attention, AttnProcessor", lambda: attention("AttnProcessor")
    yield "Attention, qk_norm=rms_norm", lambda: attention(qk_norm="rms_norm")


THREE = {"axes": 3}
GRIDS: tuple[tuple[str, Callable[[], Callable[[Tensor], Any]], dict[str, Any]], ...] = (
    ("FluxPosEmbed", _flux, {**THREE, "most": 1 << 20}),
    ("get_2d_rotary_pos_embed", _plane, {}),
    ("get_2d_rotary_pos_embed_lumina", _plane_lumina, {"way": "complex"}),
    ("get_3d_rotary_pos_embed, linspace", _space("linspace"), THREE),
    ("get_3d_rotary_pos_embed, slice", _space("slice"), THREE),
    ("Lumina2RotaryPosEmbed", _lumina2, {**THREE, "way": "complex"}),
    (
        "WanRotaryPosEmbed",
        _video("transformer_wan", "WanRotaryPosEmbed", WIDTH, (1, 1, 1), 1024),
        THREE,
    ),
    (
        "CosmosRotaryPosEmbed",
        _video("transformer_cosmos", "CosmosRotaryPosEmbed", WIDTH, (32, 32, 32), (1, 1, 1)),
        {**THREE, "way": "half"},
    ),
    (
        "QwenEmbedRope, scale_rope",
        _qwen,
        {"way": "complex", "first": -(SIDE // 2), "most": SIDE // 2},
    ),
)
