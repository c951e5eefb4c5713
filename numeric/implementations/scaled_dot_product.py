"""``torch.nn.functional.scaled_dot_product_attention``, with each backend of the device."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..attention_bound import AttentionBound
from ..row_selection import Lengths, Replacement, never
from . import DoesNotFit, Implementation

ROW_AXIS = {
    "attention": (-2, None, None),
    "masked_attention": (-2, None, None, -2),
    "biased_attention": (-2, None, None, -2),
}
NOT_KERNELS = ("ERROR", "OVERRIDEABLE")
STORED_SCORES = 1 << 25
"""The most scores or mask entries in memory at once."""
FUSED_SCORES = 1 << 33
"""The most scores that a fused kernel is called for: two heads of 65,536 tokens."""
REFUSALS = ("No available kernel", "No viable backend")
_BACKEND_LOCK = threading.Lock()
"""The choice of backends in torch is shared by all threads, so calls are made one at a time."""


class Backend(NamedTuple):
    """A backend, whether it stores scores in the dtype, and whether it holds all of them."""

    kind: SDPBackend
    scores_stored: bool
    quadratic: bool


def backends(device: torch.device) -> dict[str, Backend]:
    """The backends that accept some call on this device, by short names; found by trying."""
    allowed = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed  # otherwise float32 inside
    found = {}
    for name, kind in SDPBackend.__members__.items():
        if name not in NOT_KERNELS and _accepts(kind, device):
            math_only = kind is SDPBackend.MATH
            stored: bool = math_only and allowed()  # type: ignore[no-untyped-call]
            found[name.removesuffix("_ATTENTION").lower()] = Backend(kind, stored, math_only)
    return found


def implementations(device: torch.device) -> Sequence[Implementation]:
    """Return one implementation for each backend of this device."""
    return [_implementation(name, backend) for name, backend in backends(device).items()]


def _accepts(backend: SDPBackend, device: torch.device) -> bool:
    for dtype in (torch.float32, torch.bfloat16):
        probe = torch.ones((1, 1, 16, 16), dtype=dtype, device=device)
        try:
            with_backend(backend, probe, probe, probe)
            return True
        except (DoesNotFit, RuntimeError):
            continue
    return False


def _implementation(name: str, backend: Backend) -> Implementation:
    bound = AttentionBound(scores_stored=backend.scores_stored, kernel=name)
    call = partial(four_axes, partial(with_backend, backend.kind))
    whole = partial(_whole, backend.quadratic)
    return Implementation(
        f"scaled_dot_product_attention ({name})",
        replacing(call, whole),
        bounded(bound),
        fused=not backend.quadratic,
    )


def replacing(
    code: Callable[..., Any], whole: Callable[[Sequence[Lengths]], bool] = never
) -> dict[str, Replacement]:
    """Replace every definition of attention by code, by default for the selected rows only."""
    return {name: Replacement(code, axes, whole) for name, axes in ROW_AXIS.items()}


def bounded(bound: AttentionBound) -> dict[str, Replacement]:
    """Assign a bound to every definition of attention."""
    return {name: Replacement(bound, axes, never, pairs) for name, axes in ROW_AXIS.items()}


def pairs(lengths: Sequence[Lengths]) -> int:
    """The number of scores of the call, in all heads."""
    query, key = lengths[0], lengths[1]
    return math.prod(query[:-1]) * key[-2]


def _whole(quadratic: bool, lengths: Sequence[Lengths]) -> bool:
    """Compute all rows at once, unless the scores or the mask would not fit."""
    held = pairs(lengths) if quadratic or len(lengths) > 3 else 0
    return held <= STORED_SCORES and pairs(lengths) <= FUSED_SCORES


def whole_rows(
    backend: SDPBackend, query: Tensor, key: Tensor, value: Tensor, causal: bool
) -> Tensor:
    """Compute all rows of (heads, tokens, width); a causal row sees the keys up to its own place.

    No mask is held: the kernel counts places from the first row and the first key.
    """
    kernel = partial(with_backend, backend, causal=causal)
    return four_axes(kernel, query, key, value)


def leading(*arrays: Tensor) -> Lengths:
    """The axes before tokens and width, broadcast."""
    # that of torch imports all of its symbolic shapes, for most of a second
    return np.broadcast_shapes(*(x.shape[:-2] for x in arrays))


def four_axes(
    kernel: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, *mask: Tensor
) -> Tensor:
    """Call the kernel on (batch, heads, tokens, width), and restore the leading axes."""
    lead = leading(query, key, value)
    arrays = [
        x.expand(*lead, *x.shape[-2:]).reshape(1, -1, *x.shape[-2:]) for x in (query, key, value)
    ]
    masks = [as_mask(m, query, key, lead) for m in mask]
    return kernel(*arrays, *masks).reshape(*lead, query.shape[-2], value.shape[-1])


def as_mask(mask: Tensor, query: Tensor, key: Tensor, lead: Lengths) -> Tensor:
    """A mask or bias of shape (1, heads or 1, r, n); a bias has the dtype of the query."""
    pair = (query.shape[-2], key.shape[-2])
    mask = mask if mask.dtype == torch.bool else mask.to(query.dtype)
    if mask.ndim <= 2:
        return mask.expand(pair)[None, None]
    return mask.expand(*lead, *pair).reshape(1, -1, *pair)


def with_backend(
    backend: SDPBackend,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
) -> Tensor:
    """Make one call with one backend, with scale 1/√ℓ of the unpadded width.

    Fused kernels require queries, keys and values of one width, a multiple of 8: zeros are
    appended, which change no score and no output.  Raises :class:`DoesNotFit` if refused.
    """
    width, columns = query.shape[-1], value.shape[-1]
    if backend is not SDPBackend.MATH:
        wide = 8 * math.ceil(max(width, columns) / 8)
        query, key, value = (
            x if x.shape[-1] == wide else F.pad(x, (0, wide - x.shape[-1]))
            for x in (query, key, value)
        )
    try:
        with _BACKEND_LOCK, sdpa_kernel(backend), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            output = F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=causal, scale=1 / math.sqrt(width)
            )
    except RuntimeError as error:
        if not any(text in str(error) for text in REFUSALS):
            raise
        reasons = "; ".join(str(w.message).split("(Triggered")[0].strip() for w in told)
        raise DoesNotFit(f"{backend.name} refuses the call: {reasons or error}") from error
    return output[..., :columns]
