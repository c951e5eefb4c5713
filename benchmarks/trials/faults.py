"""Attention written out, correct and with planted faults: the programs of the trials.

Products of bfloat16 and float16 numbers are computed and summed in float32, and weights are rounded
to the dtype before they are multiplied with the values, as in fused kernels.

Each is an :class:`Implementation` with the bounds of the correct program from which it was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnproof.numeric.attention_bound import AttentionBound
from attnproof.numeric.devices import wide_dtype
from attnproof.numeric.implementations import (
    Implementation,
    llama_rotary,
    multihead,
    scaled_dot_product,
)
from attnproof.numeric.implementations.scaled_dot_product import bounded, replacing
from attnproof.numeric.row_selection import Replacement, never

# Attention written out: correct programs, into which faults are planted

Step = Callable[[Tensor], Tensor]


def same(x: Tensor) -> Tensor:
    """Return x."""
    return x


def _rotates(positions: Tensor, frequencies: Tensor, angle: Step, like: Tensor) -> Any:
    angles = angle(positions[..., None] * frequencies)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def half_split(x: Tensor, positions: Tensor, frequencies: Tensor, angle: Step = same) -> Tensor:
    """Rotate channel pairs (b, B + b), as GPT-NeoX and Llama do; ``angle`` rounds the angles."""
    cos, sin = _rotates(positions, frequencies, angle, x)
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def interleaved(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """Rotate channel pairs (2b, 2b + 1), as RoFormer does, of an array in that layout."""
    cos, sin = _rotates(positions, frequencies, same, x)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


def complex_rotate(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """Multiply x, as complex numbers, by exp(i·angle) in float32, rounded once, as Llama does."""
    wide = wide_dtype(x.dtype)
    pairs = torch.complex(*(part.to(wide).contiguous() for part in x.chunk(2, -1)))
    angles = (positions[..., None] * frequencies).to(wide)
    rotated = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((rotated.real, rotated.imag), -1).to(x.dtype)


def _scores(query: Tensor, key: Tensor, scale: float | None, mask: tuple[Tensor, ...]) -> Tensor:
    wide = wide_dtype(query.dtype)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.to(wide) @ key.to(wide).mT * factor
    return scores.masked_fill(~mask[0], -math.inf) if mask else scores


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *mask: Tensor,
    scale: float | None = None,
    sink: bool = False,
    shifted: bool = True,
) -> Tensor:
    """Return softmax(Q Kᵀ·scale) V, computed for all keys at once.

    ``sink`` adds 1 to the denominator Σ exp(s), as a key with score and value 0 does; without
    ``shifted`` the row maximum is not subtracted.
    """
    scores = _scores(query, key, scale, mask)
    top = scores.amax(-1, keepdim=True) if shifted else torch.zeros_like(scores[..., :1])
    weights = torch.exp(scores - top)
    total = weights.sum(-1, keepdim=True)
    if sink:
        total = total + torch.exp(-top)
    product = weights.to(value.dtype).to(weights.dtype) @ value.to(weights.dtype)
    return (product / total).to(value.dtype)


def online(
    query: Tensor, key: Tensor, value: Tensor, *mask: Tensor, block: int, forget: bool = False
) -> Tensor:
    """Compute attention in one pass over blocks of keys, with a running maximum.

    At a block with maximum m' the sum l and the output o of the earlier blocks are scaled by
    exp(m − m'); with ``forget`` the sum is not scaled at the last block.

    Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1.
    """
    scores = _scores(query, key, None, mask)
    top = torch.full_like(scores[..., :1], -math.inf)
    total, output = torch.zeros_like(top), torch.zeros_like(top)
    last = (key.shape[-2] - 1) // block
    for place, part in enumerate(torch.split(scores, block, -1)):
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        shift = torch.where(higher.isinf(), 0.0, higher)  # where no key was seen yet
        rescale, weights = torch.exp(top - shift), torch.exp(part - shift)
        values = value[..., place * block : (place + 1) * block, :].to(scores.dtype)
        kept = 1.0 if forget and place == last else rescale
        total = total * kept + weights.sum(-1, keepdim=True)
        output = output * rescale + weights.to(value.dtype).to(scores.dtype) @ values
        top = higher
    return (output / total).to(value.dtype)


def eager(query: Tensor, key: Tensor, value: Tensor, *mask: Tensor) -> Tensor:
    """Attention as ``eager_attention_forward`` of transformers: scores stored in the dtype.

    The softmax is in float32 for lower dtypes (in transformers also for float64).
    """
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if mask:
        bias = torch.zeros_like(mask[0], dtype=scores.dtype)
        scores = scores + bias.masked_fill(~mask[0], torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1, dtype=wide_dtype(query.dtype)).to(query.dtype)
    return weights @ value


# Correct programs for the trials, each with the bound of its own rounding profile

BLOCKS = (64, 1_000)
"""Block sizes of the online softmax: many blocks, and a block of all or nearly all keys."""
ROTATE_AXIS = (-2, -1, None)
Code = Callable[..., Tensor]


def _interleaved(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """Apply interleaved code to reordered channels, and restore their order."""
    paired = torch.stack(x.chunk(2, -1), -1).flatten(-2)
    rotated = interleaved(paired, positions, frequencies)
    return torch.cat((rotated[..., 0::2], rotated[..., 1::2]), -1)


def _attentions(device: torch.device) -> list[Implementation]:
    """Return programs for attention, masked or not."""
    found = [*scaled_dot_product.implementations(device), *multihead.implementations(device)]
    found += [
        Implementation(
            f"online softmax, blocks of {size}",
            replacing(partial(online, block=size)),
            bounded(AttentionBound()),
        )
        for size in BLOCKS
    ]
    return [*found, _eager()]


def _eager() -> Implementation:
    """Return eager attention, which stores scores and weights in the dtype."""
    bound = bounded(AttentionBound(scores_stored=True))
    return Implementation("transformers' eager attention", replacing(eager), bound)


def _rotating(device: torch.device) -> list[Implementation]:
    """Return rotary programs; those written here have worst-case bounds of each operation."""
    written: dict[str, Code] = {
        "half-split": half_split,
        "interleaved": _interleaved,
        "complex": complex_rotate,
    }
    found = [
        Implementation(f"rotary {name}", {"rotate_half": Replacement(code, ROTATE_AXIS, never)})
        for name, code in written.items()
    ]
    return [*found, *llama_rotary.implementations(device)]


def _rotary(device: torch.device) -> list[Implementation]:
    """Return each rotary program followed by each kernel, and by eager attention."""
    inner = [*scaled_dot_product.implementations(device), _eager()]
    return [
        Implementation(
            f"{rotate.name}, {one.name}",
            {**rotate.replaced, **one.replaced},
            {**rotate.bounds, **one.bounds},
        )
        for rotate in _rotating(device)
        for one in inner
    ]


def honest(trial: str, device: torch.device) -> list[Implementation]:
    """Return the correct programs for a trial."""
    if trial == "rotary attention":
        return _rotary(device)
    found = _attentions(device)
    return [Implementation("eager"), *found] if trial == "attention" else found


# Planted faults: programs with typical errors

BASE, OTHER_BASE = 10_000.0, 10_001.0
PADDING = 8
BLOCK = 64
ROTARY_AXIS = (-2, None, None, -1, None, None)


@dataclass(frozen=True)
class Fault:
    """A wrong program for a trial; ``long``: the fault concerns one of very many keys."""

    name: str
    trial: str
    definition: str
    code: Code
    long: bool = False

    @property
    def implementation(self) -> Implementation:
        """The program, with the bounds of the correct one."""
        code = Replacement(self.code, _AXES[self.definition], never)
        return Implementation(self.name, {self.definition: code}, bounded(AttentionBound()))


_AXES: dict[str, tuple[int | None, ...]] = {
    "attention": (-2, None, None),
    "masked_attention": (-2, None, None, -2),
    "rotary_attention": ROTARY_AXIS,
}


def _scaled(q: Tensor, k: Tensor, v: Tensor, *, more: int = 0, factor: float = 1.0) -> Tensor:
    return attend(q, k, v, scale=factor / math.sqrt(q.shape[-1] + more))


def _dropped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Omit the middle key."""
    at = k.shape[-2] // 2
    kept = torch.arange(k.shape[-2], device=k.device) != at
    return attend(q, k[..., kept, :], v[..., kept, :])


def _doubled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Use the middle key twice."""
    at = k.shape[-2] // 2
    twice = [torch.cat((x, x[..., at : at + 1, :]), -2) for x in (k, v)]
    return attend(q, *twice)


def _padded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Append keys and values of zeros that are not masked."""
    return attend(q, pad(k, (0, 0, 0, PADDING)), pad(v, (0, 0, 0, PADDING)))


def _one_ahead(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """Show keys j <= i + 1: one more than the causal mask does."""
    return attend(q, k, v, keep | keep.roll(1, -1))


def _no_diagonal(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """Show keys j < i; the first query, which would see none, keeps its key."""
    later = pad(keep[..., 1:], (0, 1))
    return attend(q, k, v, keep & (later | (keep.sum(-1, keepdim=True) == 1)))


def _other_order(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Let head h of G·R read the keys of group h mod G instead of group h // R."""
    groups, each = q.shape[0], q.shape[1]
    order = torch.arange(groups * each, device=q.device) % groups
    tiled = [x[:, 0][order].reshape(groups, each, *x.shape[-2:]) for x in (k, v)]
    return attend(q, *tiled)


def _rotated(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    p: Tensor,
    s: Tensor,
    omega: Tensor,
    *,
    positions: Step = same,
    frequencies: Step = same,
    angles: Step = same,
    ahead: int = 0,
    mixed: bool = False,
    more: int = 0,
) -> Tensor:
    """Compute rotary attention with one step changed."""
    p, s, omega = positions(p + ahead), positions(s), frequencies(omega)
    query = half_split(q, p, omega, angles)
    key = interleaved(k, s, omega) if mixed else half_split(k, s, omega, angles)
    return attend(query, key, v, scale=1 / math.sqrt(q.shape[-1] + more))


def _through(dtype: torch.dtype) -> Step:
    """Return the map that rounds to a dtype and converts back."""
    return lambda x: x.to(dtype).to(x.dtype)


def _other_base(omega: Tensor) -> Tensor:
    """Return the frequencies b^(−k/B) for a base that is larger by 1."""
    return (omega.double() ** (math.log(OTHER_BASE) / math.log(BASE))).to(omega.dtype)


def _faults() -> tuple[Fault, ...]:
    low, half = torch.bfloat16, torch.float16
    plain: dict[str, Code] = {
        "scale 1/√(d + 1)": partial(_scaled, more=1),
        "scale × 1.001": partial(_scaled, factor=1.001),
        "scale × 1.00001": partial(_scaled, factor=1.00001),
        "denominator + 1": partial(attend, sink=True),
        "one key dropped": _dropped,
        "one key doubled": _doubled,
        f"{PADDING} padding keys of score 0": _padded,
        "last rescale skipped": partial(online, block=BLOCK, forget=True),
        "no maximum subtracted": partial(attend, shifted=False),
    }
    masks: dict[str, Code] = {"mask j ≤ i + 1": _one_ahead, "diagonal lost": _no_diagonal}
    rotary: dict[str, Code] = {
        "frequencies in bfloat16": partial(_rotated, frequencies=_through(low)),
        "positions in bfloat16": partial(_rotated, positions=_through(low)),
        "positions in float16": partial(_rotated, positions=_through(half)),
        "half-split queries, interleaved keys": partial(_rotated, mixed=True),
        "query position + 1": partial(_rotated, ahead=1),
        "angles in bfloat16": partial(_rotated, angles=_through(low)),
        "base 10001": partial(_rotated, frequencies=_other_base),
        "rotary, scale 1/√(d + 1)": partial(_rotated, more=1),
    }
    long: dict[str, Code] = {
        "one key of 100,000 dropped": _dropped,
        "one key of 100,000 doubled": _doubled,
    }
    return (
        *(Fault(name, "attention", "attention", code) for name, code in plain.items()),
        *(Fault(n, "causal attention", "masked_attention", code) for n, code in masks.items()),
        *(Fault(n, "rotary attention", "rotary_attention", code) for n, code in rotary.items()),
        Fault("order of repeated heads", "grouped keys", "attention", _other_order),
        *(Fault(n, "attention", "attention", code, long=True) for n, code in long.items()),
    )


FAULTS = {fault.name: fault for fault in _faults()}
