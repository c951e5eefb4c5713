"""Subjects of rotary-embedding-torch: its one module, in the ways in which it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention, DeclaredRotary
from attnproof.programs.subjects import Attention, Rotary, Subject

from .examining import at_places, in_runs

PACKAGES = ("rotary-embedding-torch", "torch")
WIDTH, HEADS, MOST = 8, 2, 64
LADDER = DeclaredRotary(base=10000.0, layout="interleaved", width=WIDTH)


def _module(**settings: Any) -> Any:
    from rotary_embedding_torch import RotaryEmbedding

    named = {"base": "theta", "width": "dim"}
    given = {"dim": WIDTH} | {named.get(key, key): value for key, value in settings.items()}
    return RotaryEmbedding(**given)


def by_offset(**settings: Any) -> Rotary:
    """``rotate_queries_or_keys(x, offset=..)``, the path with the cache."""
    module = _module(**settings)

    def run(x: Tensor, start: int) -> Tensor:
        if module.seq_before_head_dim:
            rotated = cast("Tensor", module.rotate_queries_or_keys(x.transpose(1, 2), offset=start))
            return rotated.transpose(1, 2)
        return cast("Tensor", module.rotate_queries_or_keys(x, offset=start))

    return Rotary(
        name="RotaryEmbedding.rotate_queries_or_keys",
        rotate=in_runs(run),
        width=WIDTH,
        heads=HEADS,
        module=module,
        make=lambda **more: by_offset(**(settings | more)),
        running=lambda x: run(x, 0),
        declared=LADDER,
        adapted="rotate_queries_or_keys(x, offset=start), once for each run of positions",
    )


def by_positions(**settings: Any) -> Rotary:
    """``apply_rotary_emb(module(positions), x)``, without the cache."""
    from rotary_embedding_torch import apply_rotary_emb

    module = _module(**settings)

    def row(x: Tensor, positions: Tensor) -> Tensor:
        done: Tensor = apply_rotary_emb(module(positions.float()), x)
        return done

    return Rotary(
        name="RotaryEmbedding.forward",
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        module=module,
        make=lambda **more: by_positions(**(settings | more)),
        declared=LADDER,
        whole=False,
        adapted="apply_rotary_emb(module(positions), x), one row at a time",
    )


def partly(**settings: Any) -> Rotary:
    """Eight of twelve channels."""
    return replace(by_offset(**settings), width=12, make=lambda **more: partly(**(settings | more)))


def scaled(setting: str, factor: float, scaling: str, /, **settings: Any) -> Rotary:
    """Positions or the base changed by a factor, and the frequencies that are declared for it."""
    given = {setting if key == "factor" else key: value for key, value in settings.items()}
    return replace(
        by_offset(**({setting: factor} | given)),
        declared=replace(LADDER, scaling=scaling, factor=factor),
        make=lambda **more: scaled(setting, factor, scaling, **(settings | more)),
    )


def xpos(**settings: Any) -> Rotary:
    """``rotate_queries_and_keys`` on 64 tokens, of which those at the positions are read."""
    module = _module(use_xpos=True, **settings)

    def rotated(which: int) -> Callable[[Tensor, Tensor], Tensor]:
        def row(x: Tensor, positions: Tensor) -> Tensor:
            out = x.clone()
            for t, p in enumerate(positions.tolist()):
                full = torch.zeros(1, x.shape[1], MOST, x.shape[3], dtype=x.dtype)
                full[:, :, p] = x[:, :, t]
                out[:, :, t] = module.rotate_queries_and_keys(full, full)[which][:, :, p]
            return out

        return at_places(row)

    return Rotary(
        name="RotaryEmbedding.rotate_queries_and_keys",
        rotate=rotated(0),
        key=rotated(1),
        width=WIDTH,
        heads=HEADS,
        most=MOST,
        module=module,
        make=lambda **more: xpos(**(settings | more)),
        declared=LADDER,
        adapted="rotate_queries_and_keys(x, x) of 64 tokens; use_xpos",
    )


def axial(**settings: Any) -> Rotary:
    """``get_axial_freqs(1, 1, offsets=(row, column))`` for each place."""
    from rotary_embedding_torch import apply_rotary_emb

    module = _module(dim=WIDTH // 2, **settings)

    def row(x: Tensor, positions: Tensor) -> Tensor:
        parts = [
            apply_rotary_emb(module.get_axial_freqs(1, 1, offsets=tuple(p))[0], x[:, :, t : t + 1])
            for t, p in enumerate(positions.tolist())
        ]
        return torch.cat(parts, -2)

    return Rotary(
        name="RotaryEmbedding.get_axial_freqs with offsets",
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        axes=2,
        module=module,
        make=lambda **more: axial(**(settings | more)),
        declared=replace(LADDER, frequencies=(1.0, 0.01) * 2),
        adapted="get_axial_freqs(1, 1, offsets=(row, column)), then apply_rotary_emb",
    )


def image(**settings: Any) -> Rotary:
    """The angles of a grid of 15 × 15 between −1 and 1, read at each place from its middle."""
    from rotary_embedding_torch import apply_rotary_emb

    if settings:
        raise TypeError(f"frequencies of pixels have no {', '.join(settings)}")
    module = _module(dim=WIDTH // 2, freqs_for="pixel", max_freq=10)

    def row(x: Tensor, positions: Tensor) -> Tensor:
        angles = module.get_axial_freqs(15, 15)[positions[:, 0] + 7, positions[:, 1] + 7]
        done: Tensor = apply_rotary_emb(angles, x)
        return done

    return Rotary(
        name="RotaryEmbedding.get_axial_freqs of pixels",
        rotate=at_places(row),
        width=WIDTH,
        heads=HEADS,
        axes=2,
        first=-7,
        most=8,
        module=module,
        make=image,
        adapted="get_axial_freqs(15, 15) of freqs_for='pixel', counted from the middle",
    )


class Cached(nn.Module):
    """A layer that keeps raw keys, and rotates with ``rotate_queries_with_cached_keys``."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rope = _module(**settings)
        self.project = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH, bias=False)

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        heads = self.project(x).unflatten(-1, (3, HEADS, WIDTH)).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        if state is not None:
            key, value = (torch.cat(both, -2) for both in zip(state, (key, value), strict=True))
        q, k = self.rope.rotate_queries_with_cached_keys(query, key)
        rows, columns = q.shape[-2], k.shape[-2]
        seen = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        weights = (q @ k.mT / WIDTH**0.5).masked_fill(~seen, -torch.inf).softmax(-1)
        return (weights @ value).transpose(1, 2).flatten(2), (key, value)


def cached(**settings: Any) -> Attention:
    """The layer with keys in a cache."""
    layer = Cached(**settings)
    return Attention(
        name="RotaryEmbedding.rotate_queries_with_cached_keys",
        module=layer,
        embed=16,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        step=layer.step,
        positional=True,
        layer=lambda x: layer.step(x, None)[0],
        make=lambda **more: cached(**(settings | more)),
        declared=DeclaredAttention(causal=True, positions="relative"),
        adapted="raw keys in a cache, rotated by rotate_queries_with_cached_keys",
    )


def subjects() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """All ways in which the module is called."""
    yield "lang, by offset", by_offset
    yield "lang, without its cache", lambda: by_offset(cache_if_possible=False)
    yield "lang, heads after tokens", lambda: by_offset(seq_before_head_dim=True)
    yield "lang, by positions", by_positions
    yield "lang, 8 of 12 channels", partly
    yield "lang, interpolate_factor=2", partial(scaled, "interpolate_factor", 2.0, "linear")
    yield "lang, theta_rescale_factor=4", partial(scaled, "theta_rescale_factor", 4.0, "ntk")
    yield "xpos", xpos
    yield "axial with offsets", axial
    yield "pixel, axial", image
    yield "cached keys", cached
    yield "cached keys, xpos", lambda: cached(use_xpos=True)
