"""Bound the error of a fused attention kernel against softmax(Q Kᵀ / √ℓ) V, whole or chunked.

The kernel keeps scores and weights in its accumulation precision (unless the profile says they are
stored), may process the keys in blocks with a running maximum, and rounds its output once.  With
exact weights p, output o, scores s, row maximum m, A = ‖q‖‖k‖/√ℓ, R the number of left-to-right
maxima of the row, N the roundings of one term of the sum over keys, and c the error of exp, the
last two measured::

    η_j = γ(ℓ+4) A_j + Δs_j + u_S |s_j| + u (m − s_j) + c u (1 + R),      e_j = exp(η_j) − 1
    |ô − o| ≤ [√(Σ p e²) √(Σ p v² − o²) + (u_P + γ_N + R u) √(Σ p v²) + (γ_N + (R+2) u) |o|]
              / (1 − Σ p e − γ_N)

The first term does not change if a constant is added to the values: errors ε of the weights
contribute Σ p ε (v − o).  The bound held in 60,480 trials on six correct implementations, with a
smaller c and N than have been measured since.

For r rows the bound needs the sums

    S0 = Σ w,   S1 = Σ w e,   S2 = Σ w e²,   Σ w v,   Σ w v²,      w_j = exp(s_j − m)

with m the maximum and e_j = exp(η_j) − 1 the relative error of a weight.  If a chunk raises the
maximum by δ, η_j grows by u δ for all keys so far, so that with E = exp(u δ)

    e → E e + (E − 1),     S1 → E S1 + (E − 1) S0,     S2 → E² S2 + 2 E (E − 1) S1 + (E − 1)² S0

(positive terms only, so nothing cancels), and every sum shrinks by exp(−δ).  The term c u (1 + R)
of η_j, where the number R of rises is known only at the end, enters in the same way.  So r rows
need memory for r × chunk scores and r × width sums, whatever the number of keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar
from weakref import ReferenceType, ref

import torch
from torch import Tensor

from .devices import one_thread
from .error_analysis import Rounded, gamma
from .profile import Profile

A = TypeVar("A")

# The error bound of a fused attention kernel


def softmax_bound(scores: Rounded) -> Rounded:
    """Return softmax weights and their radius, for code that first subtracts the row maximum m.

    With η_j = Δs_j + u (m − s_j) + c u, e_j = exp(η_j) − 1 and D = Σ p e + γ_n, weight j is off by
    at most p_j (e_j + D) / (1 − D).
    """
    s, arithmetic = scores.value, scores.arithmetic
    profile, u = arithmetic.profile, arithmetic.inner(scores.unit)
    weights = torch.softmax(s, -1)
    eta = (s.amax(-1, keepdim=True) - s).mul_(u).add_(scores.error())
    e = eta.add_(profile.function_error * u).expm1_().masked_fill_(weights == 0, 0.0)
    total = (weights * e).sum(-1, keepdim=True) + gamma(profile.softmax.terms(s.shape[-1]), u)
    radius = e.add_(total).mul_(weights).div_(1 - total).masked_fill_(~(total < 1), math.inf)
    return arithmetic.rounded(weights, radius, scores.unit)


@dataclass(frozen=True, eq=False)
class Scores:
    """An exact attention call at some rows: what all kernels have in common, computed once.

    ``dots`` are the scores without mask and bias, ``scores`` the final ones, ``norms`` are ‖q‖/√ℓ
    and ‖k‖, ``bias`` is the bias as stored, ``rises`` the number of left-to-right maxima of a row,
    and ``cache`` holds further results.
    """

    query_reference: ReferenceType[Rounded]
    key: Rounded
    value: Rounded
    mask: Tensor | Rounded | None
    dots: Tensor
    norms: tuple[Tensor, Tensor]
    scores: Tensor
    bias: Rounded | None
    top: Tensor
    rises: Tensor
    weights: Tensor
    cache: dict[object, Any] = field(default_factory=dict)

    def once(self, what: object, compute: Callable[[], A]) -> A:
        """Cache a result that does not depend on the kernel."""
        if what not in self.cache:
            self.cache[what] = compute()
        found: A = self.cache[what]
        return found

    @property
    def query(self) -> Rounded:
        """The queries, referenced weakly because they keep the calls."""
        query = self.query_reference()
        assert query is not None
        return query

    @property
    def profile(self) -> Profile:
        """The roundings of the arithmetic."""
        return self.key.arithmetic.profile

    @property
    def scale(self) -> float:
        """1/√ℓ."""
        return 1 / math.sqrt(self.key.shape[-1])

    @cached_property
    def unseen(self) -> Tensor:
        """Where a weight is 0."""
        return self.weights == 0

    @cached_property
    def hidden(self) -> Tensor | None:
        """Where a key is hidden, or None if no key is."""
        found = self.scores.isinf()
        return found if bool(found.any()) else None

    @property
    def sizes(self) -> Tensor:
        """|s|, with 0 for hidden keys."""
        found = self.scores.abs()
        return found if self.hidden is None else found.masked_fill_(self.hidden, 0.0)

    @property
    def below(self) -> Tensor:
        """How far scores are below the largest of the row, with 0 for hidden keys."""
        found = self.top - self.scores
        return found if self.hidden is None else found.masked_fill_(self.hidden, 0.0)

    @cached_property
    def eta(self) -> Tensor:
        """The part of η shared by all kernels: inputs, the bias and its addition, the maximum."""
        u = self.profile.accumulate
        total = self.below.mul_(u)
        given = _input_error(self.query, self.key, self.scale)
        if isinstance(given, Tensor):
            total.add_(given)
        if self.bias is not None:
            total.add_(self.dots.abs(), alpha=u).add_(self.bias.error())
            total.add_(self.sizes, alpha=u)
        return total

    def weighted_errors(
        self, of_norms: float, of_scores: float
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Σ p e, Σ p e² and Σ p (1 + e) Δv with these factors of A and |s| in η, and c = 0."""

        def compute() -> tuple[Tensor, Tensor, Tensor | None]:
            eta = torch.addcmul(self.eta, *self.norms, value=of_norms)
            if of_scores:
                eta.add_(self.sizes, alpha=of_scores)
            e = eta.expm1_().masked_fill_(self.unseen, 0.0)
            off = self.weights * e
            first, second = off.sum(-1, keepdim=True), e.mul_(off).sum(-1, keepdim=True)
            radius = self.value.radius
            return first, second, None if radius is None else off.add_(self.weights) @ radius

        return self.once(("weighed", of_norms, of_scores), compute)

    @cached_property
    def output(self) -> Tensor:
        """Σ p v."""
        return self.weights @ self.value.value

    @cached_property
    def squares(self) -> Tensor:
        """Σ p v²."""
        return self.weights @ self.value.square


def scores_of(
    query: Rounded, key: Rounded, value: Rounded, mask: Tensor | Rounded | None = None
) -> Scores:
    """Return the attention call at the exact values of its arguments.

    ``mask`` is a mask, or a bias on the scores.  Queries keep their calls, so that kernels share
    the exact results.
    """
    for call in query.calls:
        if call.key is key and call.value is value and call.mask is mask:
            return call
    scale = 1 / math.sqrt(query.shape[-1])
    q, k = query.value, key.value
    dots = q @ k.mT * scale
    norms = scale * query.lengths[..., :, None], key.lengths[..., None, :]
    scores, bias = dots, None
    if isinstance(mask, Rounded):
        bias = query.arithmetic.stored(mask, query.arithmetic.profile.store)
        scores = dots + bias.value
    elif mask is not None:
        scores = torch.where(mask, dots, -math.inf)
    top, rises, weights = (
        scores.amax(-1, keepdim=True),
        1 + rises_of(scores).double(),
        torch.softmax(scores, -1),
    )
    found = Scores(ref(query), key, value, mask, dots, norms, scores, bias, top, rises, weights)
    query.calls.append(found)
    return found


@dataclass(frozen=True)
class AttentionBound:
    """The bound for one kernel.

    ``scores_stored`` and ``weights_stored``: whether it stores scores and weights in the dtype.
    ``kernel`` is its short name in the calibration, or "" for a kernel that was not measured, which
    gets the constants of the worst one.  Whatever a kernel was observed to store counts as stored.
    ``queries`` is the number of queries per call, 0 if unknown.
    """

    scores_stored: bool = False
    weights_stored: bool = True
    kernel: str = ""
    queries: int = 0

    def __call__(
        self, query: Rounded, key: Rounded, value: Rounded, mask: Tensor | Rounded | None = None
    ) -> Rounded:
        """Return the exact attention and its radius."""
        return self.of(scores_of(query, key, value, mask))

    def of(self, x: Scores) -> Rounded:
        """Return the exact attention and its radius, given the scores."""
        profile, u = x.profile, x.profile.accumulate
        first, second, moved = x.weighted_errors(*weight_error(self, profile, x.query.shape[-1]))
        one = Sums(x.top, torch.ones_like(x.top), first, second, x.rises, x.output, x.squares)
        grown = profile.kernel(self.kernel).exponential_error * u * (1 + x.rises)
        one.errors_grow(grown)
        least = x.value.once("sums", x.value.value, lambda: x.value.size.sum(-2, keepdim=True))
        radius, spread, total = distance(one, least, x.key.shape[-2], profile, self)
        if moved is not None:
            radius = radius + (1 + spread + total) * grown.exp() * moved
        return x.query.arithmetic.rounded(x.output, radius, profile.store)


def rises_of(scores: Tensor) -> Tensor:
    """How often a row reaches a new maximum after its first; no blocking rescales more often."""
    running = scores.cummax(-1).values
    return (running[..., 1:] > running[..., :-1]).sum(-1, keepdim=True)


def _input_error(query: Rounded, key: Rounded, scale: float) -> Tensor | float:
    """The error of a score caused by the radii of queries and keys."""
    total: Tensor | float = 0.0
    for a, b in (
        (query.radius, key.size),
        (query.size, key.radius),
        (query.radius, key.radius),
    ):
        if a is not None and b is not None:
            total = total + scale * (a @ b.mT)
    return total


# Work in a few threads, each operation in one: a chunk that fits in the cache is too small to be
# split inside one operation, and threads that synchronize after each mostly wait (40 times slower)

B = TypeVar("B")


def mapped(work: Callable[[A], B], items: Iterable[A], device: torch.device) -> list[B]:
    """Apply ``work`` to every item, in order; on the CPU in as many threads as torch may use."""
    every, threads = list(items), torch.get_num_threads()
    if device.type != "cpu":
        return [work(item) for item in every]
    with one_thread():
        if threads == 1 or len(every) == 1:
            return [work(item) for item in every]
        most = min(threads, len(every))
        with ThreadPoolExecutor(most, "", torch.set_num_threads, (1,)) as pool:
            return list(pool.map(work, every))


# Attention in float64 and the bound of a fused kernel, over keys in chunks

CHUNK = 512  # keys at once; larger chunks leave the cache (8,192 took 2.6 times as long)
CHUNK_ROWS = 64  # rows of a head for which CHUNK holds; with fewer rows, more keys
LARGEST_CHUNK = 4_096
PARTS = 4
LONG = 1 << 17  # keys from which on those of a few heads are split into parts
SUMMED = ("weights", "first", "second", "values", "squares")


@dataclass(frozen=True)
class Reference:
    """The exact rows, and how far a kernel with the bound may be from them.

    ``seen`` holds statistics of the rows over all their keys: the maximum of the scores, log Σ exp
    s, the rises, and Σ p v².
    """

    output: Tensor
    radius: Tensor
    seen: tuple[Tensor, Tensor, Tensor, Tensor] | None = None


@dataclass
class Sums:
    """The sums over the keys so far, with axes (heads, rows, 1) or (heads, rows, width)."""

    top: Tensor
    weights: Tensor
    first: Tensor
    second: Tensor
    rises: Tensor
    values: Tensor
    squares: Tensor

    def errors_grow(self, delta: Tensor) -> None:
        """Increase η_j by delta for every key so far."""
        grown, more = delta.exp(), delta.expm1()
        self.second = grown**2 * self.second + 2 * grown * more * self.first
        self.second += more**2 * self.weights
        self.first = grown * self.first + more * self.weights

    def raised(self, top: Tensor, u: float) -> None:
        """Raise the maximum: the error of the distance to it grows, and the sums shrink."""
        begun = self.top > -math.inf
        self.errors_grow(torch.where(begun, u * (top - self.top), 0.0))
        shrink = torch.where(begun, (self.top - top).exp(), 0.0)
        for name in SUMMED:
            setattr(self, name, getattr(self, name) * shrink)
        self.top = top

    def join(self, other: Sums, u: float) -> None:
        """Add the sums over further keys."""
        top = torch.maximum(self.top, other.top)
        for sums in (self, other):
            sums.raised(top, u)
        for name in (*SUMMED, "rises"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def weight_error(bound: AttentionBound, profile: Profile, width: int) -> tuple[float, float]:
    """The factors of A_j and |s_j| in η_j, without the terms that grow with the maximum and R."""
    u = profile.accumulate
    scores_stored = bound.scores_stored or profile.kernel(bound.kernel).scores_stored
    stored = profile.store if scores_stored and profile.store > u else 0.0
    operand = 2 * profile.operand + profile.operand**2 + 2 * stored
    return gamma(width + 4, u) + operand, stored


def streamed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    profile: Profile,
    bound: AttentionBound,
    last: Tensor | None = None,
    chunk: int | None = None,
) -> Reference:
    """Compute the rows of ``query`` (heads, r, width) over all keys, or keys 0 to ``last[row]``.

    ``last`` has axes (r,) or (heads, r).  The arrays are the stored numbers, converted to float64
    one chunk at a time.  Heads are processed one by one, in threads; if there are few heads and
    many keys, the keys of each head are split into parts whose sums are joined, since the
    left-to-right maxima of the whole are at most those of its parts together.  The result does not
    depend on the number of threads or on other heads.
    """
    heads, rows = query.shape[:2]
    until = key.shape[-2] if last is None else int(last.max()) + 1
    if chunk is None:
        chunk = min(LARGEST_CHUNK, max(CHUNK, CHUNK * CHUNK_ROWS // rows))
    parts = PARTS if heads < PARTS and until >= LONG else 1
    edges = [until * k // parts for k in range(parts + 1)]
    seen = None if last is None else last.expand(heads, rows)[..., None]

    def one(item: tuple[int, int]) -> tuple[Sums, Tensor]:
        head, part = item
        q, k, v = (a[head : head + 1] for a in (query, key, value))
        here = None if seen is None else seen[head : head + 1]
        return _sums(q, k, v, profile, bound, here, (edges[part], edges[part + 1], chunk))

    every = [(head, part) for head in range(heads) for part in range(parts)]
    found = mapped(one, every, query.device)
    closed_ones = []
    for head in range(heads):
        sums, least = found[head * parts]
        for more, more_least in found[head * parts + 1 : (head + 1) * parts]:
            sums.join(more, profile.accumulate)
            least += more_least
        one_head = closed(sums, least, until, profile, bound)
        known = (sums.top, sums.top + sums.weights.log(), sums.rises, sums.squares / sums.weights)
        closed_ones.append(replace(one_head, seen=known))
    seen_ones = zip(*(r.seen for r in closed_ones if r.seen is not None), strict=True)
    top, log_sum, rises, square = (torch.cat(every_head) for every_head in seen_ones)
    return Reference(
        torch.cat([r.output for r in closed_ones]),
        torch.cat([r.radius for r in closed_ones]),
        (top, log_sum, rises, square),
    )


def _sums(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    profile: Profile,
    bound: AttentionBound,
    seen: Tensor | None,
    span: tuple[int, int, int],
) -> tuple[Sums, Tensor]:
    """The sums over keys a to b, one chunk at a time, and Σ |v|."""
    heads, rows, width = query.shape
    start, stop, chunk = span
    scale, u = 1 / math.sqrt(width), profile.accumulate
    of_norms, of_scores = weight_error(bound, profile, width)
    q = query.double() * scale
    q_norm = q.norm(dim=-1, keepdim=True) * of_norms
    sums = Sums(
        q.new_full((heads, rows, 1), -math.inf),
        *(q.new_zeros(heads, rows, 1) for _ in range(4)),
        *(q.new_zeros(heads, rows, value.shape[-1]) for _ in range(2)),
    )
    least = q.new_zeros(heads, 1, value.shape[-1])
    for a in range(start, stop, chunk):
        b = min(stop, a + chunk)
        k, v = key[:, a:b].double(), value[:, a:b].double()
        scores = q @ k.mT
        hidden = None if seen is None else torch.arange(a, b, device=key.device) > seen
        if hidden is not None:
            scores.masked_fill_(hidden, -math.inf)
        _raise(sums, scores, u)
        below = sums.top - scores
        if hidden is not None:
            below.masked_fill_(hidden, math.inf)
        eta = (q_norm * k.norm(dim=-1)[:, None]).add_(below, alpha=u)
        if of_scores:
            eta.add_(scores.abs(), alpha=of_scores)
        weights = below.neg_().exp_()
        error = eta.expm1_()
        if hidden is not None:
            error.masked_fill_(hidden, 0.0)
        sums.weights += weights.sum(-1, keepdim=True)
        sums.values += weights @ v
        least += v.abs().sum(-2, keepdim=True)
        sums.squares += weights @ (v * v)
        weights.mul_(error)
        sums.first += weights.sum(-1, keepdim=True)
        sums.second += weights.mul_(error).sum(-1, keepdim=True)
    return sums, least


def _raise(sums: Sums, scores: Tensor, u: float) -> None:
    """Update the maximum with these scores, and count its rises from left to right."""
    top = torch.maximum(sums.top, scores.amax(-1, keepdim=True))
    if bool((top > sums.top).any()):
        sums.rises += rises_of(torch.cat((sums.top, scores), -1))
        sums.raised(top, u)


def closed(
    sums: Sums, least: Tensor, keys: int, profile: Profile, bound: AttentionBound
) -> Reference:
    """The output and its radius, from the sums over all keys."""
    sums.errors_grow(
        profile.kernel(bound.kernel).exponential_error * profile.accumulate * (1 + sums.rises)
    )
    radius, _, _ = distance(sums, least, keys, profile, bound)
    output = sums.values / sums.weights
    own = output.abs().mul_(profile.store).add_(profile.least)
    return Reference(output, radius.mul_(1 + profile.store).add_(own))


def stored_weight(profile: Profile, bound: AttentionBound) -> float:
    """The roundoff with which a kernel stores weights, 0 if not in a shorter dtype."""
    stored = bound.weights_stored or profile.kernel(bound.kernel).weights_stored
    return profile.store if stored and profile.store > profile.accumulate else 0.0


def distance(
    sums: Sums, least: Tensor, keys: int, profile: Profile, bound: AttentionBound
) -> tuple[Tensor, Tensor, float]:
    """Return the radius before the output is stored, √(Σ p e²), and the error of the key sum."""
    u = profile.accumulate
    terms = profile.attention_terms(keys, bound.kernel, bound.queries)
    total = gamma(terms, u) + profile.operand
    output, square = sums.values / sums.weights, sums.squares / sums.weights
    left = 1 - sums.first / sums.weights - total
    spread = (sums.second / sums.weights).sqrt_()
    radius = torch.addcmul(square, output, output, value=-1).clamp_(min=0).sqrt_().mul_(spread)
    radius.addcmul_(square.sqrt_(), stored_weight(profile, bound) + total + sums.rises * u)
    radius.addcmul_(output.abs_(), total + (sums.rises + 2) * u)
    radius.add_(profile.least * least)
    radius.div_(torch.where(left > 0, left, math.nan)).nan_to_num_(nan=math.inf, posinf=math.inf)
    return radius, spread, total
