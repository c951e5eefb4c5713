"""Prefill and decode: caches, chunks, windows, states that are carried on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, softmax

from .corpus import alike, unlike
from .plain import SCALE, SELF, attention, causal, masked, rotate_half

WINDOW = 4

# x is what was seen before, y the tokens that come now; widths of tokens and heads are 6 and 4.
STEP = "x: B n 6, y: B m 6, wq: 6 4, wk: 6 4, wv: 6 4 -> B m 4"


def windowed(queries: int, keys: int, width: int) -> Tensor:
    """True where a key is one of the last `width`, the query's own included."""
    place, key = torch.arange(keys - queries, keys)[:, None], torch.arange(keys)
    return (key <= place) & (key > place - width)


def full_causal(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """All tokens at once; of the result the new ones."""
    both = torch.cat((x, y), dim=1)
    length = both.shape[1]
    return masked(both @ wq, both @ wk, both @ wv, causal(length, length))[:, x.shape[1] :]


def with_cache(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    k = torch.cat((x @ wk, y @ wk), dim=1)
    v = torch.cat((x @ wv, y @ wv), dim=1)
    place = torch.arange(y.shape[1])[:, None] + x.shape[1]
    return masked(y @ wq, k, v, torch.arange(k.shape[1]) <= place)


def with_cache_from_0(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """The ONNX operator's causal mask ignores the past: row i sees keys up to i."""
    k = torch.cat((x @ wk, y @ wk), dim=1)
    v = torch.cat((x @ wv, y @ wv), dim=1)
    return masked(y @ wq, k, v, torch.ones(y.shape[1], k.shape[1], dtype=torch.bool).tril())


def with_cache_is_causal(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """Prefill that resumes: SDPA's is_causal begins at the first key, not at the first new one."""
    k = torch.cat((x @ wk, y @ wk), dim=1)
    v = torch.cat((x @ wv, y @ wv), dim=1)
    q, k, v = (one[:, None] for one in (y @ wq, k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]


def with_cache_unmasked(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    """A mask of the chunk alone does not fit the keys, and is dropped."""
    k = torch.cat((x @ wk, y @ wk), dim=1)
    v = torch.cat((x @ wv, y @ wv), dim=1)
    keep = causal(y.shape[1], y.shape[1])
    if keep.shape[-1] != k.shape[1]:
        return attention(y @ wq, k, v)
    return masked(y @ wq, k, v, keep)


alike(
    "cache",
    "tinygrad/tinygrad#15949",
    "a chunk behind a cache is the end of all tokens at once",
    full_causal,
    with_cache,
    STEP,
)
unlike(
    "cache-from-0",
    "tinygrad/tinygrad#15949",
    "the causal mask ignores the past",
    full_causal,
    with_cache_from_0,
    STEP,
)
unlike(
    "cache-is-causal",
    "tenstorrent/vllm#415",
    "prefill that resumes from cached keys is wrong",
    full_causal,
    with_cache_is_causal,
    STEP,
)
unlike(
    "cache-unmasked",
    "lablup/mlxcel#885",
    "a chunk-local mask does not fit, and is dropped",
    full_causal,
    with_cache_unmasked,
    STEP,
)


def no_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention(q, k, v)


def sdpa_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def eager_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
    length = q.shape[-2]
    hidden = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
    return softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v


alike(
    "is-causal",
    "pytorch/executorch#22426",
    "SDPA's is_causal and a triangular mask, r = n",
    sdpa_causal,
    eager_causal,
    SELF,
)
unlike(
    "no-caches-no-mask",
    "meta-pytorch/torchtune#959",
    "without setup_caches there is no causal mask at all",
    eager_causal,
    no_mask,
    SELF,
)


CHUNK = "q: B H m 4, k: B H n 4, v: B H n 4, k1: B H m 4, v1: B H m 4 -> B H m 4"


def last_queries(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """PyTorch's CausalVariant.LOWER_RIGHT: the last query sees all keys."""
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    keep = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    return masked(q, k, v, keep.tril(diagonal=k.shape[2] - q.shape[2]))


def last_queries_by_places(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The specification: query i stands at i + keys - queries."""
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    rows, keys = q.shape[2], k.shape[2]
    place = torch.arange(rows).unsqueeze(1) + (keys - rows)
    zero = torch.zeros(rows, keys, dtype=q.dtype)
    return attention(q, k, v, zero.where(torch.arange(keys) <= place, float("-inf")))


def first_queries(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The CPU kernel anchors the mask at the first key."""
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    return masked(q, k, v, torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril())


alike(
    "lower-right",
    "onnx/onnx#8054",
    "a triangle anchored at the last key, and by positions",
    last_queries,
    last_queries_by_places,
    CHUNK,
)
unlike(
    "upper-left",
    "onnx/onnx#8054",
    "is_causal anchored at the other corner",
    last_queries,
    first_queries,
    CHUNK,
)


def window_eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """transformers: a key is seen where i - W < j <= i."""
    return masked(q, k, v, windowed(q.shape[2], k.shape[2], WINDOW))


def window_left_right(q: Tensor, k: Tensor, v: Tensor, left: int = WINDOW - 1) -> Tensor:
    """FlashAttention's window_size = (left, 0)."""
    place = torch.arange(q.shape[2])
    back = place[:, None] - place
    return masked(q, k, v, (back >= 0) & (back <= left))


def window_one_too_wide(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The configuration's sliding_window is handed on as it is."""
    return window_left_right(q, k, v, left=WINDOW)


alike(
    "window",
    "NVIDIA-NeMo/Megatron-Bridge#2656",
    "a window of W is (W - 1, 0) of the other library",
    window_eager,
    window_left_right,
    SELF,
)
unlike(
    "window-too-wide",
    "NVIDIA-NeMo/Megatron-Bridge#2656",
    "sliding_window is handed on without -1",
    window_eager,
    window_one_too_wide,
    SELF,
)
unlike(
    "window-ignored",
    "sgl-project/sglang#26516",
    "one backend ignores the window",
    window_eager,
    eager_causal,
    SELF,
)


def window_chunk(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    return masked(q, k, v, windowed(q.shape[2], k.shape[2], WINDOW))


def window_chunk_end(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """Every row of the chunk sees what the first row's window holds, and what came since."""
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    rows, start = q.shape[2], max(k.shape[2] - q.shape[2] - WINDOW + 1, 0)
    k, v = k[:, :, start:], v[:, :, start:]
    return masked(q, k, v, causal(rows, k.shape[2]))


def window_last_kept(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """Of a chunk that is longer than the ring buffer only the last W keys are left."""
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    keep = windowed(q.shape[2], k.shape[2], WINDOW)[:, -WINDOW:]
    scores = q @ k[:, :, -WINDOW:].transpose(-1, -2) * SCALE
    scores = scores.masked_fill(~keep, torch.finfo(q.dtype).min)
    return torch.softmax(scores, dim=-1) @ v[:, :, -WINDOW:]


unlike(
    "window-chunk",
    "pytorch/executorch#21857",
    "rows of a chunk see more keys than the window",
    window_chunk,
    window_chunk_end,
    CHUNK,
)
unlike(
    "ring-cache-overrun",
    "pytorch/executorch#20346",
    "a chunk longer than the ring cache overwrites keys that its first rows need",
    window_chunk,
    window_last_kept,
    CHUNK,
)


DECODE = "q: B H 1 4, k: B H n 4, v: B H n 4, k1: B H 1 4, v1: B H 1 4 -> B H 1 4"


def last_window(
    q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor, width: int = WINDOW
) -> Tensor:
    """One token more: all keys, masked to the last W."""
    k, v = torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2)
    return masked(q, k, v, windowed(1, k.shape[2], width))


def rolling_cache(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The cache holds W - 1 keys, to which the new one is added."""
    k, v = k[:, :, -(WINDOW - 1) :], v[:, :, -(WINDOW - 1) :]
    return attention(q, torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2))


def rolled_early(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The cache rolls one step before it is full."""
    k, v = k[:, :, -(WINDOW - 2) :], v[:, :, -(WINDOW - 2) :]
    return attention(q, torch.cat((k, k1), dim=2), torch.cat((v, v1), dim=2))


def decode_wide(q: Tensor, k: Tensor, v: Tensor, k1: Tensor, v1: Tensor) -> Tensor:
    """The window of prefill is mended, and the decode kernel still has the width before."""
    return last_window(q, k, v, k1, v1, width=2 * WINDOW)


alike(
    "rolling-cache",
    "huggingface/transformers#37574",
    "a cache of the last keys is a window",
    last_window,
    rolling_cache,
    DECODE,
    open="a slice from -3 on, of any length",
)
unlike(
    "rolled-early",
    "huggingface/transformers#37574",
    "the static cache rolls one step early",
    last_window,
    rolled_early,
    DECODE,
)
unlike(
    "decode-window",
    "ModelTC/LightLLM#1311",
    "decoding is left at another width than prefill",
    last_window,
    decode_wide,
    DECODE,
)


ROTARY = "q: B H m 2, k: B H n 2, k1: B H m 2, freq: 1 -> B H m (n + m)"


def rotated_at_once(q: Tensor, k: Tensor, k1: Tensor, freq: Tensor) -> Tensor:
    """Scores of the new queries, all keys rotated by their positions."""
    k = torch.cat((k, k1), dim=2)
    angles = torch.arange(k.shape[2])[:, None] * freq
    return rotate_half(q, angles[-q.shape[2] :]) @ rotate_half(k, angles).transpose(-1, -2)


def rotated_by_offset(q: Tensor, k: Tensor, k1: Tensor, freq: Tensor) -> Tensor:
    """Cached keys are rotated already; the new ones begin at the offset of the cache."""
    cached = rotate_half(k, torch.arange(k.shape[2])[:, None] * freq)
    angles = (torch.arange(q.shape[2]) + k.shape[2])[:, None] * freq
    q, new = rotate_half(q, angles), rotate_half(k1, angles)
    return q @ torch.cat((cached, new), dim=2).transpose(-1, -2)


def rotated_by_advanced(q: Tensor, k: Tensor, k1: Tensor, freq: Tensor) -> Tensor:
    """The offset is held by reference: keys are rotated behind its update, queries before."""
    cached = rotate_half(k, torch.arange(k.shape[2])[:, None] * freq)
    offset = k.shape[2]
    place = torch.arange(q.shape[2])
    q = rotate_half(q, (place + offset)[:, None] * freq)
    offset += q.shape[2]
    new = rotate_half(k1, (place + offset)[:, None] * freq)
    return q @ torch.cat((cached, new), dim=2).transpose(-1, -2)


def rotated_from_7(q: Tensor, k: Tensor, k1: Tensor, freq: Tensor) -> Tensor:
    """All positions begin at 7, as behind padding on the left."""
    k = torch.cat((k, k1), dim=2)
    angles = (torch.arange(k.shape[2]) + 7)[:, None] * freq
    return rotate_half(q, angles[-q.shape[2] :]) @ rotate_half(k, angles).transpose(-1, -2)


alike(
    "rotated-offset",
    "ml-explore/mlx-lm#1806",
    "new keys rotated from the offset of the cache on",
    rotated_at_once,
    rotated_by_offset,
    ROTARY,
)
unlike(
    "rotated-advanced",
    "ml-explore/mlx-lm#1097",
    "the offset is advanced in place before its use",
    rotated_at_once,
    rotated_by_advanced,
    ROTARY,
)
alike(
    "rotated-from-7",
    "ml-explore/mlx-lm#1097",
    "positions that begin elsewhere give equal scores",
    rotated_at_once,
    rotated_from_7,
    ROTARY,
)


SHARED_KV = "x: B n 6, y: B n 6, wq: 6 4, wk: 6 4, wv: 6 4, wk2: 6 4, wv2: 6 4 -> B n 4"


def shared_from_cache(
    x: Tensor,
    y: Tensor,
    wq: Tensor,
    wk: Tensor,
    wv: Tensor,
    wk2: Tensor,  # noqa: ARG001
    wv2: Tensor,  # noqa: ARG001
) -> Tensor:
    """Gemma 3n: a late layer reads the keys and values of an early one."""
    return attention(y @ wq, x @ wk, x @ wv)


def shared_without_cache(
    x: Tensor,  # noqa: ARG001
    y: Tensor,
    wq: Tensor,
    wk: Tensor,  # noqa: ARG001
    wv: Tensor,  # noqa: ARG001
    wk2: Tensor,
    wv2: Tensor,
) -> Tensor:
    """No cache to read from: the late layer projects its own."""
    return attention(y @ wq, y @ wk2, y @ wv2)


unlike(
    "shared-layers",
    "ml-explore/mlx-swift-lm#333",
    "without a cache the layers that share keys and values project their own",
    shared_from_cache,
    shared_without_cache,
    SHARED_KV,
)


GATED = (
    "q1: B H n 4, k1: B H n 4, v1: B H n 4, q2: B H m 4, k2: B H m 4, v2: B H m 4 -> B H (n + m) 4"
)


def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2)).tril() @ v


def linear_at_once(
    q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor
) -> Tensor:
    return linear(*(torch.cat(x, dim=2) for x in ((q1, q2), (k1, k2), (v1, v2))))


def linear_chunks(q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    state = k1.transpose(-1, -2) @ v1
    return torch.cat((linear(q1, k1, v1), q2 @ state + linear(q2, k2, v2)), dim=2)


def linear_stateless(
    q1: Tensor, k1: Tensor, v1: Tensor, q2: Tensor, k2: Tensor, v2: Tensor
) -> Tensor:
    return torch.cat((linear(q1, k1, v1), linear(q2, k2, v2)), dim=2)


alike(
    "linear-chunks",
    "gittensor-ai-lab/sparkinfer#1071",
    "a state carried from chunk to chunk",
    linear_at_once,
    linear_chunks,
    GATED,
)
unlike(
    "linear-stateless",
    "gittensor-ai-lab/sparkinfer#1071",
    "the state is not carried on",
    linear_at_once,
    linear_stateless,
    GATED,
)
