"""Read the weights of attention code from one-hot values: scale, groups, soft cap, normalization.

If weights need not sum to 1, this file says what they are instead.  With a sink b in addition to
the keys a weight is e_j / (Z + b), where Z is the sum of all e_j: 1 minus the sum of the weights,
divided by the weight of key j, is b/e_j, whatever the other keys are.  In sigmoid attention and its
kin a weight is a function of its own query and key.  Neither is a fault by itself, and its intent
cannot be seen from outside; a sum over another axis, or a factor, is neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..calls.masks import format_mask
from ..execution.draw import Draw
from ..execution.response import allowance, gap
from ..finding import format_number, nearest_factor, simplest
from ..subjects import Attention

KEYS = 5


def drawn(code: Attention, draw: Draw, queries: int, keys: int, salt: int) -> tuple[Tensor, Tensor]:
    """Draw normal queries (1, H, n, D) and keys (1, G, n, D) for the heads of the code."""
    width = code.width or 5
    return (
        draw.normal(1, code.heads, queries, width, salt=salt),
        draw.normal(1, code.groups, keys, width, salt=salt + 1),
    )


def read_weights(
    attend: Callable[..., Tensor],
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    keys: Sequence[int] | None = None,
) -> Tensor:
    """Read weights (B, H, r, n) using values that are 1 at one key, D keys per call.

    ``keys``: the keys whose weights are read, by default all.
    """
    every, width = range(key.shape[-2]) if keys is None else keys, key.shape[-1]
    read = []
    for start in range(0, len(every), width):
        value = torch.zeros_like(key)
        some = every[start : start + width]
        for n, place in enumerate(some):
            value[..., place, n] = 1
        read.append(attend(query, key, value, mask)[..., : len(some)])
    return torch.cat(read, -1)


def weights_of(code: Attention, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights of code (B, H, r, n) in float64, see :func:`read_weights`."""
    assert code.attend is not None  # checked by the caller
    return read_weights(code.attend, q, k, mask).double().cpu()


def groups_of(code: Attention, draw: Draw) -> list[int] | None:
    """The group from which each head reads its values; None if a head mixes groups."""
    assert code.attend is not None  # checked by the caller
    G, (q, k) = code.groups, drawn(code, draw, 8, 8, 1)
    number = torch.arange(1.0, G + 1, dtype=draw.dtype, device=draw.device)[None, :, None, None]
    ones, numbered = (
        code.attend(q, k, torch.ones_like(k) * v, None).double()[0, :, :, 0]
        for v in (torch.ones_like(number), number)
    )
    # the weights of some queries may all be 0, so each head is read at its largest output
    most = ones.abs().nan_to_num().argmax(-1, keepdim=True)
    ratio = (numbered.gather(-1, most) / ones.gather(-1, most))[:, 0]
    if not bool(ratio.isfinite().all()):
        return None
    near = ratio.round()
    if bool(((ratio - near).abs() > 64 * G * unit_roundoff(draw.dtype)).any()):
        return None
    return [int(r) - 1 for r in near.tolist()]


@dataclass(frozen=True)
class Scale:
    """The factor on q·k, within ``radius``.

    ``off``: the largest residual of a logarithm, of which rounding ``allows`` so much; ``keys``:
    the group from which each head reads its keys.
    """

    value: float
    radius: float
    off: float
    allows: float
    keys: tuple[int, ...]

    @property
    def linear(self) -> bool:
        """Whether the logarithms of weights are linear in q·k."""
        return self.off <= self.allows

    def named(self, width: int, embed: int, heads: int) -> str:
        """The scale in words, such as 1/√D."""
        ways = {
            "1/√D": width**-0.5,
            "1/D": 1 / width,
            "√D": width**0.5,
            "1": 1.0,
            "1/√E, E the width of all heads": (embed or width * heads) ** -0.5,
        }
        for name, value in ways.items():
            if abs(self.value - value) <= self.radius:
                return f"{name} = {format_number(value)}" if name != "1" else "1"
        return format_number(simplest(self.value - self.radius, self.value + self.radius))


def scale_of(
    code: Attention, draw: Draw, groups: list[int] | None, seen: Tensor, *, unit: float = 0.0
) -> Scale | None:
    """Fit the scale to log w(q) − log w(0), in which terms added to the scores cancel.

    ``seen``: the keys visible to each query (r, n) in a call of that size.  ``unit``: the unit
    roundoff of the format in which the code computes, if coarser than that of the draw.  A product
    of D numbers is off by at most D·u·|q||k|, an exponential and a quotient of S numbers by
    (S + 8)u.
    """
    H, G, D = code.heads, code.groups, code.width or 5
    T, S = seen.shape
    q, k = drawn(code, draw, T, S, 3)
    size = 4 / max(1.0, float((q.double() @ k.double()[:, :1].mT).abs().max()) ** 0.5)
    q = q * min(1.0, size)
    here, zero = weights_of(code, q, k), weights_of(code, torch.zeros_like(q), k)
    use = seen & (here[0] > 1e-30).all(0) & (zero[0] > 1e-30).all(0)
    rows = use.sum(-1) > 1
    if not bool(rows.any()):
        return None
    use, y = use[rows], (here[0].log() - zero[0].log())[:, rows]
    y = centred(y, use)
    u = max(unit, unit_roundoff(draw.dtype))
    best: Scale | None = None
    for keys in _ways_of_grouping(H, G, groups):
        z = q[0].double().cpu()[:, rows] @ k[0].double().cpu()[keys].mT
        x = centred(z, use)
        value = nearest_factor(x, y)
        lengths = float(q.double().norm(dim=-1).max() * k.double().norm(dim=-1).max())
        allows = 4 * u * (D * abs(value) * lengths + S + 8)
        rms = math.sqrt(float((x * x).sum() / use.sum() / H))
        one = Scale(value, allows / rms, float((y - value * x).abs().max()), allows, tuple(keys))
        if best is None or one.off < best.off:
            best = one
    return best


ROWS = 8  # of a batch, each with a query and a key of its own


def scale_of_own_key(
    code: Attention, draw: Draw, groups: list[int] | None, *, unit: float = 0.0
) -> Scale | None:
    """Fit the scale to the weight of a query's own key beside keys that are 0: rotary code has one.

    A rotation by place turns a query and its own key alike, and leaves keys of 0 as they are.
    ``unit``: as above.  None if the last query sees no key but its own.
    """
    H, G, D = code.heads, code.groups, code.width or 5
    q = draw.normal(ROWS, H, KEYS, D, salt=65)
    k = torch.zeros_like(draw.normal(ROWS, G, KEYS, D, salt=66))
    k[:, :, -1] = draw.normal(ROWS, G, D, salt=66)
    here, zero = (weights_of(code, x, k)[:, :, -1] for x in (q, torch.zeros_like(q)))
    seen = ((here > 1e-30) & (zero > 1e-30)).flatten(0, 1).all(0)
    if not bool(seen[-1]) or not bool(seen[:-1].any()):
        return None
    other = int(seen[:-1].nonzero()[-1])
    ratio = here.log() - zero.log()  # what is added to the scores by place cancels
    y = ratio[..., -1] - ratio[..., other]
    u = max(unit, unit_roundoff(draw.dtype))
    found = []
    for keys in _ways_of_grouping(H, G, groups):
        x = (q[:, :, -1] * k[:, keys, -1]).double().cpu().sum(-1)
        value = nearest_factor(x, y)
        sizes = float((q[:, :, -1].norm(dim=-1) * k[:, keys, -1].norm(dim=-1)).max())
        allows = 4 * u * (D * abs(value) * sizes + KEYS + 8)
        radius = allows / math.sqrt(float((x * x).mean()))
        found.append(Scale(value, radius, float((y - value * x).abs().max()), allows, tuple(keys)))
    return min(found, key=lambda one: one.off)


def _ways_of_grouping(heads: int, groups: int, known: list[int] | None) -> list[list[int]]:
    """Return the groups from which heads may read their keys, those that are known first."""
    repeat = [h * groups // heads for h in range(heads)]
    tile = [h % groups for h in range(heads)]
    return [known, repeat, tile] if known else [repeat, tile]


def scale_alone(code: Attention, draw: Draw, floor: float = 0.0) -> Scale | None:
    """Fit the scale without further readings, over the keys visible to queries that are 0.

    ``floor``: the unit roundoff of the tables that the code keeps.
    """
    assert code.attend is not None  # checked by the caller
    attend, (q, k) = code.attend, drawn(code, draw, KEYS, KEYS, 54)
    q = torch.zeros_like(q)
    at_zero = allowance(lambda k: read_weights(attend, q, k), k, draw=draw, floor=floor)
    seen = (at_zero.output[0] > 0).all(0).cpu()
    return scale_of(code, draw, None, seen, unit=at_zero.unit)


def centred(x: Tensor, use: Tensor) -> Tensor:
    """Each row minus its mean over the entries in use, 0 elsewhere."""
    x = torch.where(use, x, 0.0)
    return torch.where(use, x - x.sum(-1, keepdim=True) / use.sum(-1)[:, None], 0.0)


SMALL, LARGE = 0.05, 30.0  # of s: nearly linear; clearly bent, but weights do not underflow
SHARE = 2e-3  # of LARGE: the error of the slope read at SMALL, 2u/SMALL and (SMALL/c)²


@dataclass(frozen=True)
class Cap:
    """The cap c and the factor of s on q·k, with the largest residual of a log weight."""

    value: float
    scale: float
    off: float


def cap_of(code: Attention, draw: Draw, keys: tuple[int, ...], seen: Tensor) -> Cap | None:
    """Return the soft cap if weights are those of scores c·tanh(s/c) for one c, otherwise None.

    ``keys``: the group from which each head reads its keys; ``seen``: visible keys (r, n).
    """
    T, S = seen.shape
    q, k = drawn(code, draw, T, S, 41)
    rows = seen.sum(-1) > 1
    if not bool(rows.any()):
        return None
    use, zero = seen[rows], weights_of(code, torch.zeros_like(q), k)[0].log()

    def logarithms(times: float) -> tuple[Tensor, Tensor]:
        y = (weights_of(code, q * times, k)[0].log() - zero)[:, rows]
        z = (q * times)[0].double().cpu()[:, rows] @ k[0].double().cpu()[list(keys)].mT
        return centred(y, use), z

    most = float((q[0].double().cpu() @ k[0].double().cpu()[list(keys)].mT).abs().max())
    y, z = logarithms(SMALL / most)
    x = centred(z, use)
    scale = nearest_factor(x, y)
    if scale <= 0:
        return None
    y, z = logarithms(LARGE / (scale * most))
    if not bool(y.isfinite().all()):
        return None
    every = torch.logspace(0, 3, 1201, dtype=torch.float64)
    bent = (centred(c * torch.tanh(scale * z / c), use) for c in every)
    rest = torch.stack([(y - one).abs().max() for one in bent])
    best = int(rest.argmin())
    if float(rest[best]) > SHARE * LARGE * 2:
        return None
    low, high = every[max(best - 1, 0)], every[min(best + 1, len(every) - 1)]
    return Cap(simplest(float(low), float(high)), scale, float(rest[best]))


DECLARE = "declare attention:causal=false,positions=none to have it checked"
STEPS = (-1.0, 0.0, 1.0)  # from a query: a linear function has no second difference
CURVED = 1e-3  # of a logarithm; kernels other than the exponential are off by far more
NOT_SOFTMAX = (
    "its weights are not a softmax: their ratios are not exponentials of a linear function "
    "of the query, and it is not declared to be attention"
)
INDEPENDENT_WEIGHTS = (
    "each weight is a function of its own query and key alone, as in sigmoid attention, where "
    "nothing makes them add up to 1; if that is not meant, the softmax is missing"
)
SINK_IN_DENOMINATOR = (
    "a sink, a number that is not a key's, stands in each denominator; if that is not meant, "
    "something is counted that should not be"
)
MORE_KEYS_COUNTED = (
    "each denominator counts a whole number of keys more than there are, of score 0, as in "
    "a softmax with a 1 added, or where padding is counted"
)


def no_softmax(one: Attention, draw: Draw) -> str:
    """Return why the weights of a query need not sum to 1, or "" if they should.

    A sink is a choice that no declaration covers.  Weights that are independent of each other are a
    choice if nothing is declared, whereas code declared to be attention must have a softmax.
    Counting a key that does not exist is a fault.
    """
    why = weights_are(one, draw)
    if not why and one.declared is None:
        try:  # float64 reveals small terms of a denominator
            return _other_kernel(one, replace(draw, dtype=torch.float64))
        except Exception:  # noqa: BLE001 (code with stored weights takes one dtype)
            return _other_kernel(one, draw)
    return (
        ""
        if why == MORE_KEYS_COUNTED or (why == INDEPENDENT_WEIGHTS and one.declared is not None)
        else why
    )


def _other_kernel(one: Attention, draw: Draw) -> str:
    """Return a reason if weights come from a kernel other than exp and need not sum to 1.

    Under a softmax the logarithm of the ratio of two weights of one query is linear in the query,
    whatever is added to the scores by place.  If other queries have an influence, the weights are
    normalized over them.  Other kernels that are normalized are checked like a softmax.
    """
    attend, width = one.attend, one.width or 5
    if attend is None:
        return ""
    q, k = drawn(one, draw, KEYS, KEYS, 61)
    alone = q.clone()
    alone[:, :, :-1] = draw.normal(1, one.heads, KEYS - 1, width, salt=63)
    step = draw.normal(1, one.heads, KEYS, width, salt=64)
    ways = (q, alone, -q.abs(), *(q + t * step for t in STEPS))
    seen = [allowance(lambda q: read_weights(attend, q, k), way, draw=draw) for way in ways]
    off = max(way() for way in seen)
    plain, beside, other, *scaled = (way.output[0, :, -1].double().cpu() for way in seen)
    if float((beside - plain).abs().max()) > off:
        return ""
    if all(float((w.sum(-1) - 1).abs().max()) <= KEYS * off for w in (plain, other)):
        return ""
    shown = (torch.stack(scaled).abs() > off).all(0)  # (H, n)
    if not bool(shown.any()):
        return ""  # no weight is visible
    logs = [torch.where(shown, w, 1.0).log() for w in scaled]  # NaN for a negative weight
    low, here, high = (each[:, :, None] - each[:, None] for each in logs)
    gaps = (low + high - 2 * here)[shown[:, :, None] & shown[:, None]]
    exponential = bool(gaps.abs().max() <= CURVED) and int(shown.sum(-1).max()) > 1
    return "" if exponential else NOT_SOFTMAX


def weights_are(one: Attention, draw: Draw) -> str:
    """Return what weights that do not sum to 1 are: with a sink, or independent; "" for neither.

    Read from the last query, which sees every key under a causal mask.
    """
    attend, width = one.attend, one.width or 5
    if attend is None:
        return ""
    q, k = drawn(one, draw, KEYS, KEYS, 51)
    other = k.clone()
    other[:, :, 0] = draw.normal(1, one.groups, width, salt=53)
    alone = q.clone()
    alone[:, :, :-1] = draw.normal(1, one.heads, KEYS - 1, width, salt=60)
    ways = ((q, k), (q, other), (alone, k))
    found = [allowance(lambda q, k: read_weights(attend, q, k), *way, draw=draw) for way in ways]
    off = sum(seen() for seen in found)
    w, u, same = (seen.output[0, :, -1].double().cpu() for seen in found)  # (H, n)
    left, left_there = 1 - w.sum(-1, keepdim=True), 1 - u.sum(-1, keepdim=True)
    if not bool((w.isfinite() & u.isfinite()).all()) or float(left.abs().max()) <= KEYS * off:
        return ""
    if not bool((w >= 0).all()) or float((same - w).abs().max()) > off:
        return ""  # in neither case do other queries matter
    rest, rest_there = w[:, 1:], u[:, 1:]
    if float((rest - rest_there).abs().max()) <= off < float((w - u)[:, 0].abs().max()):
        return INDEPENDENT_WEIGHTS
    if not bool((rest > 0).all() and (left > 0).all() and (left_there > 0).all()):
        return ""
    here, there = left / rest, left_there / rest_there
    doubt = _quotient(left, rest, off) + _quotient(left_there, rest_there, off)
    if not bool(((here - there).abs() <= doubt).all()):
        return ""
    # at a query of 0 all scores are 0, so that the sink is worth a number of keys
    nothing = torch.zeros_like(q)
    seen = allowance(lambda k: read_weights(attend, nothing, k), k, draw=draw)
    w = seen.output[0, :, -1].double().cpu()
    left, last = 1 - w.sum(-1, keepdim=True), w[:, -1:]
    count, near = left / last, (left / last).mean().round()
    whole = bool(((count - near).abs() <= _quotient(left, last, seen())).all())
    return MORE_KEYS_COUNTED if whole and float(near) >= 1 else SINK_IN_DENOMINATOR


def ratios_see_others(one: Attention, draw: Draw) -> bool:
    """Whether the ratio of two weights of a query depends on a third key.

    It does where keys are normalized for each feature, and not in a softmax of scores.  Read from
    the last query, which sees every key under a causal mask.
    """
    attend = one.attend
    if attend is None:
        return False
    q, k = drawn(one, draw, KEYS, KEYS, 51)
    other = k.clone()
    other[:, :, 0] = draw.normal(1, one.groups, one.width or 5, salt=53)
    found = [
        allowance(lambda k: read_weights(attend, q, k), keys, draw=draw) for keys in (k, other)
    ]
    w, u = (seen.output[0, :, -1, 1:].double().cpu() for seen in found)  # (H, S - 1)
    products = w[:, :, None] * u[:, None]
    off = sum(seen() for seen in found) * float(w.abs().max() + u.abs().max())
    return bool(products.isfinite().all()) and float((products - products.mT).abs().max()) > 2 * off


def _quotient(over: Tensor, under: Tensor, off: float) -> Tensor:
    """Error bound of the quotient of a remainder, a sum over keys, and one weight."""
    return over / under * (KEYS * off / over.abs() + off / under.abs())


def no_multiple(one: Attention, draw: Draw) -> str:
    """Return why a vector added to all keys does not shift all scores equally, or "" if it does.

    Scores must be s q·k plus terms that depend on places.  This excludes scores that are softly
    capped, normalized or rotated by position, and terms of each key.
    """
    attend = one.attend
    if attend is None:
        return ""
    q = draw.normal(1, one.heads, KEYS, one.width or 5, salt=54)
    keys = [draw.normal(1, one.groups, KEYS, one.width or 5, salt=s) for s in (55, 56)]
    nothing = torch.zeros_like(q)
    at_zero = [allowance(lambda k: read_weights(attend, nothing, k), k, draw=draw) for k in keys]
    apart = (at_zero[0].output.double() - at_zero[1].output.double()).abs().max()
    if not float(apart) <= at_zero[0]() + at_zero[1]():
        return "a number of each key's own is part of its score"
    found = scale_alone(one, draw)
    if found is None or not found.linear:
        return "the scores are not a multiple of q·k"
    return ""


def _ordered(one: Attention, q: Tensor, k: Tensor, v: Tensor, draw: Draw) -> bool:
    """Whether permuting keys and values together changes the output."""
    attend, order = one.attend, draw.permutation(k.shape[2])
    assert attend is not None  # checked by the caller
    seen = allowance(lambda q, k, v: attend(q, k, v, None), q, k, v, draw=draw)
    return gap(attend(q, k[:, :, order], v[:, :, order], None), seen.output) > seen()


def no_order(one: Attention, draw: Draw, keys: int = KEYS) -> str:
    """Return why keys may have an order: they do, and no declaration says otherwise."""
    declared = one.declared
    if one.attend is None or (declared is not None and declared.causal is False):
        return ""
    (q, k), (_, v) = drawn(one, draw, keys, keys, 57), drawn(one, draw, keys, keys, 58)
    # the denominators of linear attention, sums of products of either sign, may be near 0
    if not (_ordered(one, q, k, v, draw) or _ordered(one, q.abs(), k.abs(), v, draw)):
        return ""
    shown = format_mask(read_weights(one.attend, torch.zeros_like(q), k)[0, 0] > 0)
    return (
        f"keys have an order, and nothing is declared (keys seen: {' '.join(shown)}): a mask, "
        f"or positions, may be meant; {DECLARE}"
    )
