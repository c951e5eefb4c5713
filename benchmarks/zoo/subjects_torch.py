"""Attention of torch itself: the fused function, the modules, flex_attention, causal biases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)
from torch.utils._python_dispatch import _disable_current_modes

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention, Mask, Subject

from .examining import Maker

PACKAGES = ("torch",)
EMBED, HEADS, WIDTH = 16, 4, 4
BOTH_WAYS = DeclaredAttention(causal=False, positions="none")
CAUSAL = DeclaredAttention(causal=True, positions="none")
FROM_START = DeclaredAttention(causal=True, positions="none", alignment="start")


def subjects() -> Iterator[tuple[str, Maker]]:
    """Every subject of the library: a name, and what makes it."""
    yield "scaled_dot_product_attention", partial(_fused, BOTH_WAYS)
    yield "scaled_dot_product_attention, is_causal", partial(_fused, FROM_START, is_causal=True)
    yield (
        "scaled_dot_product_attention, enable_gqa",
        partial(_fused, BOTH_WAYS, groups=2, enable_gqa=True),
    )
    yield (
        "scaled_dot_product_attention, scale",
        partial(_fused, DeclaredAttention(causal=False, positions="none", scale=0.25), scale=0.25),
    )
    for name, declared in (("causal_upper_left", FROM_START), ("causal_lower_right", CAUSAL)):
        yield f"scaled_dot_product_attention, {name}", partial(_biased, name, declared)
        yield f"{name} (mask)", partial(_bias_mask, name, declared)
    yield "MultiheadAttention", partial(_multihead, bias=True)
    yield "MultiheadAttention, causal", partial(_multihead, bias=True, causal=True)
    yield "MultiheadAttention, batch_first=False", partial(_multihead, bias=True, first=False)
    yield "MultiheadAttention, add_bias_kv", partial(_multihead, bias=True, add_bias_kv=True)
    yield "MultiheadAttention, add_zero_attn", partial(_multihead, bias=True, add_zero_attn=True)
    yield "TransformerEncoderLayer", partial(_encoder_layer, norm_first=False)
    yield "TransformerEncoderLayer, norm_first", partial(_encoder_layer, norm_first=True)
    yield "TransformerEncoderLayer, causal", partial(_encoder_layer, norm_first=False, causal=True)
    yield "TransformerEncoder", _encoder
    yield "TransformerDecoderLayer", _decoder_layer
    yield "generate_square_subsequent_mask", _square_mask
    yield "flex_attention", partial(_flex, BOTH_WAYS)
    yield "flex_attention, causal score_mod", partial(_flex, FROM_START, causal="score")
    yield "flex_attention, causal block_mask", partial(_flex, FROM_START, causal="block")
    yield "flex_attention, enable_gqa", partial(_flex, BOTH_WAYS, groups=2)


def _fused(declared: DeclaredAttention, groups: int = HEADS, **more: Any) -> Subject:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask, **more)

    masks = () if "is_causal" in more else ("bool", "float")
    return Attention(
        name="scaled_dot_product_attention",
        attend=attend,
        heads=HEADS,
        groups=groups,
        width=WIDTH,
        masks=masks,
        declared=declared,
        adapted="called as it is",
    )


def _biased(name: str, declared: DeclaredAttention) -> Subject:
    from torch.nn.attention import bias

    def attend(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None = None) -> Tensor:
        with _disable_current_modes():  # no mode that looks on can make a tensor of a subclass
            shape = getattr(bias, name)(q.shape[-2], k.shape[-2])
        return F.scaled_dot_product_attention(q, k, v, shape)

    return Attention(
        name=name,
        attend=attend,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        declared=declared,
        adapted=f"with the mask {name}(T, S)",
    )


def _bias_mask(name: str, declared: DeclaredAttention) -> Subject:
    from torch.nn.attention import bias

    def mask(queries: int, keys: int) -> Tensor:
        with _disable_current_modes():
            shape = getattr(bias, name)(queries, keys)
            found: Tensor = shape._materialize(torch.device("cpu"))  # noqa: SLF001
        return found

    return Mask(name=name, mask=mask, declared=declared, adapted="the mask that it stands for")


def _square_mask() -> Subject:
    def mask(queries: int, keys: int) -> Tensor:
        return nn.Transformer.generate_square_subsequent_mask(keys)[keys - queries :]

    return Mask(
        name="generate_square_subsequent_mask",
        mask=mask,
        declared=CAUSAL,
        adapted="it knows one count: the last rows are taken",
    )


def _multihead(*, causal: bool = False, first: bool = True, **settings: Any) -> Subject:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(EMBED, HEADS, batch_first=first, **settings).eval()

    def call(x: Tensor, weights: bool, **more: Any) -> Tensor:
        if causal:
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            more["attn_mask"] = hidden
        x = x if first else x.transpose(0, 1)
        found: Tensor = module(x, x, x, need_weights=weights, **more)[0]
        return found if first else found.transpose(0, 1)

    return Attention(
        name="MultiheadAttention",
        module=module,
        make=lambda: _multihead(causal=causal, first=first, **settings),
        layer=lambda x: call(x, False),
        hide=lambda x, keep: call(x, False, key_padding_mask=~keep),
        paths={"need_weights": lambda x: call(x, True)},
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        declared=CAUSAL if causal else BOTH_WAYS,
        adapted="self-attention, need_weights=False; key_padding_mask for padding",
    )


def _encoder_layer(*, norm_first: bool, causal: bool = False) -> Subject:
    torch.manual_seed(0)
    module = nn.TransformerEncoderLayer(
        EMBED, HEADS, 24, 0.0, batch_first=True, norm_first=norm_first
    ).eval()

    def call(x: Tensor, keep: Tensor | None = None) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if causal else None
        padding = None if keep is None else ~keep
        found: Tensor = module(x, src_mask=hidden, is_causal=causal, src_key_padding_mask=padding)
        return found

    return _of_layer(
        module,
        call,
        lambda: _encoder_layer(norm_first=norm_first, causal=causal),
        CAUSAL if causal else BOTH_WAYS,
    )


def _encoder() -> Subject:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(EMBED, HEADS, 24, 0.0, batch_first=True)
    module = nn.TransformerEncoder(layer, 2).eval()

    def call(x: Tensor, keep: Tensor | None = None) -> Tensor:
        padding = None if keep is None else ~keep
        found: Tensor = module(x, src_key_padding_mask=padding)
        if found.shape[1] < x.shape[1]:  # it cuts what is padding in every row
            found = F.pad(found, (0, 0, 0, x.shape[1] - found.shape[1]))
        return found

    return _of_layer(module, call, _encoder, BOTH_WAYS)


def _decoder_layer() -> Subject:
    torch.manual_seed(0)
    module = nn.TransformerDecoderLayer(EMBED, HEADS, 24, 0.0, batch_first=True).eval()
    memory = torch.randn(1, 3, EMBED)

    def call(x: Tensor, keep: Tensor | None = None) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        padding = None if keep is None else ~keep
        found: Tensor = module(
            x,
            memory.to(x.dtype).expand(x.shape[0], -1, -1),
            tgt_mask=hidden,
            tgt_is_causal=True,
            tgt_key_padding_mask=padding,
        )
        return found

    return _of_layer(module, call, _decoder_layer, CAUSAL)


def _of_layer(
    module: nn.Module,
    call: Callable[..., Tensor],
    make: Callable[[], Subject],
    declared: DeclaredAttention,
) -> Subject:
    def slow(x: Tensor) -> Tensor:
        """With gradients wanted, which the fast path does not give."""
        with torch.enable_grad():
            return call(x.detach().requires_grad_()).detach()

    return Attention(
        name=type(module).__name__,
        module=module,
        make=make,
        layer=call,
        hide=call,
        paths={"slow path": slow},
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        declared=declared,
        adapted="in evaluation, without gradients: the fast path where it has one",
    )


def _flex(declared: DeclaredAttention, groups: int = HEADS, causal: str = "") -> Subject:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def after(score: Tensor, _b: Tensor, _h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return torch.where(q >= k, score, -torch.inf)

    def attend(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None = None) -> Tensor:
        block = None
        if causal == "block":
            block = create_block_mask(
                lambda _b, _h, q, k: q >= k, None, None, q.shape[-2], k.shape[-2], device="cpu"
            )
        with torch.compiler.set_stance("force_eager"):  # no graph is made for every size
            found: Tensor = flex_attention(
                q,
                k,
                v,
                score_mod=after if causal == "score" else None,
                block_mask=block,
                enable_gqa=groups != HEADS,
            )
        return found

    return Attention(
        name="flex_attention",
        attend=attend,
        heads=HEADS,
        groups=groups,
        width=WIDTH,
        declared=declared,
        adapted="called as it is, not compiled",
    )
