"""Subjects of equinox: its rotary module and its attention, called with the numbers of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention, DeclaredRotary
from attnproof.programs.subjects import Attention, Rotary, Subject

PACKAGES = ("equinox", "jax", "torch")
WIDTH, HEADS, EMBED, MOST = 8, 2, 16, 300


def _to_jax(x: Tensor) -> Any:
    import jax.numpy as jnp

    if x.dtype == torch.bfloat16:  # NumPy has no such numbers
        return jnp.asarray(x.float().numpy()).astype(jnp.bfloat16)
    return jnp.asarray(x.numpy())


def _to_torch(x: Any, like: Tensor) -> Tensor:
    import numpy as np

    return torch.from_numpy(np.array(x, dtype=np.float64)).to(like.dtype)


def rotary(**settings: Any) -> Rotary:
    """RotaryPositionalEmbedding on 300 tokens, of which those at the positions are read."""
    import equinox
    import jax

    named = {"base": "theta", "width": "embedding_size"}
    given = {"embedding_size": WIDTH} | {named.get(key, key): v for key, v in settings.items()}
    module = equinox.nn.RotaryPositionalEmbedding(**given)
    call = jax.vmap(module)

    def running(x: Tensor) -> Tensor:
        return _to_torch(call(_to_jax(x.flatten(0, 1))), x).reshape(x.shape)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        rows, heads, tokens, width = x.shape
        # each token stands in a row of its own, at its place among 300
        flat = x.permute(0, 2, 1, 3).flatten(0, 1)
        full = x.new_zeros(rows * tokens, heads, MOST, width)
        each, place = torch.arange(rows * tokens), positions.flatten()
        full[each, :, place] = flat
        done = running(full)[each, :, place]
        return done.reshape(rows, tokens, heads, width).permute(0, 2, 1, 3).contiguous()

    width = given["embedding_size"]
    return Rotary(
        name="RotaryPositionalEmbedding",
        rotate=rotate,
        width=width,
        heads=HEADS,
        most=MOST,
        running=running,
        make=lambda **more: rotary(**(settings | more)),
        declared=DeclaredRotary(base=given.get("theta", 10000.0), layout="half", width=width),
        adapted="vmap(RotaryPositionalEmbedding(8)) on 300 tokens",
    )


def attention(**settings: Any) -> Attention:
    """MultiheadAttention on tokens, and with a mask of those that count."""
    import equinox
    import jax

    jax.config.update("jax_disable_most_optimizations", True)  # a shape is used once
    module = equinox.nn.MultiheadAttention(HEADS, EMBED, key=jax.random.PRNGKey(0), **settings)

    def one(tokens: Any, seen: Any) -> Any:
        return module(tokens, tokens, tokens, mask=seen, inference=True)

    every = jax.jit(jax.vmap(lambda tokens: one(tokens, None)))
    masked = jax.jit(jax.vmap(one))

    def layer(x: Tensor, keep: Tensor | None = None) -> Tensor:
        with jax.enable_x64(x.dtype == torch.float64):
            if keep is None:
                return _to_torch(every(_to_jax(x)), x)
            seen = keep[:, None].expand(-1, x.shape[1], -1).contiguous()
            return _to_torch(masked(_to_jax(x), _to_jax(seen)), x)

    return Attention(
        name="MultiheadAttention",
        layer=layer,
        hide=layer,
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=EMBED // HEADS,
        make=lambda: attention(**settings),
        declared=DeclaredAttention(causal=False, positions="none"),
        adapted="vmap of MultiheadAttention(2, 16)(x, x, x, mask=..)",
    )


def attend() -> Attention:
    """dot_product_attention, one head at a time."""
    import jax
    from equinox.nn._attention import dot_product_attention

    jax.config.update("jax_disable_most_optimizations", True)  # a shape is used once
    every = jax.jit(jax.vmap(dot_product_attention))

    def call(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        with jax.enable_x64(q.dtype == torch.float64):
            given = [_to_jax(one.flatten(0, 1)) for one in (q, k, v)]
            if mask is not None:
                shape = (*q.shape[:2], *mask.shape[2:])
                given.append(_to_jax(mask.expand(shape).flatten(0, 1).contiguous()))
            return _to_torch(every(*given), q).reshape(q.shape)

    return Attention(
        name="dot_product_attention",
        attend=call,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        masks=("bool",),
        make=attend,
        adapted="vmap of dot_product_attention(q, k, v, mask)",
    )


def subjects() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Rotary code and attention."""
    yield "RotaryPositionalEmbedding", rotary
    yield "MultiheadAttention", attention
    biases = {f"use_{name}_bias": True for name in ("query", "key", "value", "output")}
    yield "MultiheadAttention, with biases", lambda: attention(**biases)
    yield "dot_product_attention", attend
