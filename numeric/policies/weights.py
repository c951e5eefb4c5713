"""Exact weights of attention and softmax at some rows, and the spread of each source of error.

Scores s, weights p, output o, A = ‖q‖‖k‖/√ℓ, R left-to-right maxima, u of the accumulation.  The
independent roundings inside one score are::

    σ_j² = (√(ℓ+4) u A_j)² + (u_S s_j)² + (u (m − s_j))² + (c u (1 + R))²

u_S is 0 if scores are never stored.  The error e of the output and its adjoint, for any g::

    g·e = Σ_j p_j ε_j (v_j − o)·g + Σ_j p_j π_j v_j·g + Σ_d (τ_d + κ_d) g_d

ε of the scores (σ), π of stored weights (u_P), τ of storing the output (u_out |o|), κ of the sums
over keys (√(N + 2R) u Σ p|v|, as no partial sum exceeds Σ p|v|).

With these errors, to first order and entry by entry::

    attention  λ √( Σ p² σ² (v − o)² + u_P² Σ p² v² + κ² ) + √(Σ p ρ²) √(Σ p v² − o²)  and storing
    softmax    p_j (ε_j − Σ_k p_k ε_k + δ): the first term is the entry's own, the rest shared

ρ bounds the common errors of the scores of a row.  Both grow by 1/(1 − Σ p e), e = exp(λσ + ρ) − 1,
and exp(λσ) − 1 replaces λσ, to cover higher orders; if nothing remains of the 1, the deterministic
radius is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt
from typing import Any

import torch
from torch import Tensor

from ..attention_bound import AttentionBound, Scores, scores_of, softmax_bound
from ..error_analysis import Rounded
from ..profile import Profile
from ..row_selection import Replacement
from ..spread import LAMBDA, Part, radius_of, root, sources

# Attention at some rows: exact weights, and the spread of each source of error

SCALE_ERROR = 3.0  # in units of the accumulation: 1/√ℓ, and log₂ e where exp is a power of 2


@dataclass(frozen=True)
class Kernel:
    """What a kernel does to numbers: how often a score is stored in the dtype, and the rest.

    ``scaled_first``: queries and keys are scaled and stored before; ``terms`` is the depth of its
    sums over keys, ``exponential_error`` that of exp in units of the accumulation.
    """

    scores_stored: int
    weights_stored: bool
    scaled_first: bool
    exponential_error: float
    terms: int


def kernel_of(bound: AttentionBound, query: Rounded, key: Rounded) -> Kernel:
    """The kernel to which a deterministic bound applies."""
    profile, keys = query.arithmetic.profile, key.shape[-2]
    measured = profile.kernel(bound.kernel)
    stored = bound.scores_stored or measured.scores_stored
    return Kernel(
        int(stored),
        bound.weights_stored or measured.weights_stored,
        stored,
        measured.exponential_error,
        profile.attention_terms(keys, bound.kernel, bound.queries),
    )


def eager_kernel(query: Rounded, key: Rounded) -> Kernel:
    """The definition operation by operation: scores are stored, scaled, and stored again."""
    profile = query.arithmetic.profile
    terms = max(profile.product_terms(key.shape[-2], 1, 1), profile.softmax.terms(key.shape[-2]))
    return Kernel(2, True, False, profile.function_error, terms)


@dataclass(frozen=True, eq=False)
class Attended:
    """The spread of errors of one call in one kernel, with axes (.., rows, keys) or columns.

    The squared parameter of a score is that of all kernels, plus ``rows`` for every score of its
    row, plus ``stored_score`` times s².  ``read`` is the roundoff with which queries and keys are
    read, and ``own_query`` and ``own_key`` their independent errors after that.
    """

    scores: Scores
    query: Rounded
    read: float
    own_query: Tensor | None
    own_key: Tensor | None
    rows: Tensor
    stored_score: float
    denominator: Tensor
    stored_weight: float
    sums: Tensor
    flushed: Tensor | None

    @property
    def key(self) -> Rounded:
        """The keys."""
        return self.scores.key

    @property
    def value(self) -> Rounded:
        """The values."""
        return self.scores.value

    @property
    def profile(self) -> Profile:
        """The roundings of the arithmetic."""
        return self.scores.profile

    @property
    def weights(self) -> Tensor:
        """The exact weights."""
        return self.scores.weights

    @property
    def output(self) -> Tensor:
        """The exact output."""
        return self.scores.output

    @property
    def square(self) -> Tensor:
        """The squared parameter of a score, without the errors of its query and key."""
        square = in_every_kernel(self.scores) + self.rows
        if self.stored_score:
            square.add_(size_square(self.scores), alpha=self.stored_score)
        return square

    @property
    def key_errors(self) -> Tensor | None:
        """The contribution of the errors of the key, independent along a row."""
        x, own = self.scores, _read_square(self.key, self.read)
        if own is None:
            return None
        return x.once(("keys", self.read), lambda: x.scale**2 * (self.query.square @ own.mT))

    @property
    def query_errors(self) -> Tensor | None:
        """The contribution of the errors of the query, shared along a row."""
        x, own = self.scores, _read_square(self.query, self.read)
        if own is None:
            return None
        key = x.key.square
        return x.once(("queries", self.read), lambda: x.scale**2 * (own @ key.mT))

    @property
    def bias(self) -> Tensor | None:
        """The likely error of a bias."""
        bias = self.scores.bias
        return None if bias is None else bias.smallest_radius()

    @property
    def scale_error(self) -> float:
        """The error of the number 1/√ℓ, the same in every score."""
        return SCALE_ERROR * self.profile.accumulate

    @property
    def stored(self) -> Tensor:
        """The error bound of storing the output."""
        return self.profile.store * self.output.abs() + self.profile.least

    @property
    def spacing(self) -> Tensor:
        """Half the gap between neighbors of the output in its dtype: its storing error at most."""
        return self.scores.once("spacing", lambda: spacing(self.output, self.profile))


def spacing(output: Tensor, profile: Profile) -> Tensor:
    """Half the gap between neighbors of stored numbers."""
    power = torch.ldexp(torch.full_like(output, 0.5), torch.frexp(output).exponent)
    return profile.store * power + profile.least


def attended(x: Scores, query: Rounded, kernel: Kernel) -> Attended:
    """The errors of one kernel in a call with these scores."""
    profile, v = x.profile, x.value.value
    u = profile.accumulate
    low = profile.store > u
    store_score = math.sqrt(kernel.scores_stored) * profile.store if low else 0.0
    store_weight = profile.store if kernel.weights_stored and low else 0.0
    rises, weights = x.rises, x.weights
    read = profile.operand + (profile.store if kernel.scaled_first and low else 0.0)
    sums = (
        (kernel.terms + 2 * rises + 4).sqrt() * u * x.once("sizes", lambda: weights @ x.value.size)
    )
    if profile.operand:
        sums = sums + profile.operand * squared(x).sqrt()
    flushed = None
    if store_weight and profile.least > 2.0**-100:  # float16: small weights are lost, not rounded
        unscaled = torch.exp(x.scores - x.top)
        flushed = torch.where(unscaled < profile.least, weights, 0.0)
        sums = sums + profile.least * v.norm(dim=-2, keepdim=True)
    return Attended(
        x,
        query,
        read,
        _read(query, read),
        _read(x.key, read),
        (kernel.exponential_error * u * (1 + rises)) ** 2,
        store_score**2,
        (kernel.terms + 2 * rises + 4).sqrt() * u,
        store_weight,
        sums,
        flushed,
    )


def _square(x: Scores) -> Tensor:
    u = x.profile.accumulate
    of_query, of_key = (norm.square() for norm in x.norms)
    square = (x.key.shape[-1] + 4) * u * u * of_query * of_key
    if x.bias is not None:
        square = square + (u * x.dots).square_() + (u * x.sizes).square_()
    return square + x.below.mul_(u).square_()


def in_every_kernel(x: Scores) -> Tensor:
    """The part of the squared parameter of a score that all kernels share."""
    return x.once("square", lambda: _square(x))


def size_square(x: Scores) -> Tensor:
    """s²."""
    return x.once("score square", lambda: torch.square(x.sizes))


def squared(x: Scores) -> Tensor:
    """Σ p² v²."""
    return x.once("squared", lambda: x.weights.square() @ x.value.square)


def _read(x: Rounded, unit: float) -> Tensor | None:
    """The independent errors after a factor is read, or stored, with this roundoff."""
    own = x.sigma()
    own = None if own is None else own.expand(x.value.shape)
    if not unit:
        return own
    if own is None:
        return x.once(("read", unit), x.parts, lambda: unit * x.size)
    square = _read_square(x, unit)
    assert square is not None
    return x.once(("read", unit), x.parts, square.sqrt)


def _read_square(x: Rounded, unit: float) -> Tensor | None:
    """The square of the result of :func:`_read`."""
    own = x.sigma_square()
    if not unit:
        return own
    return x.once(
        ("read square", unit),
        x.parts,
        lambda: unit**2 * x.square if own is None else own + unit**2 * x.square,
    )


def common(call: Attended) -> Tensor:
    """A radius of the errors that the scores of a row have in common.

    They come from the number 1/√ℓ, from queries, from shared errors of keys, and from a bias.
    """
    x, q, k = call.scores, call.query, call.key
    total: Any = call.scale_error * x.dots.abs()
    if call.bias is not None:
        total = total + call.bias
    own = _read_square(q, call.read)
    if own is not None:
        along = own @ k.square.mT
        total = total + LAMBDA * x.scale * along.sqrt()
    for a, b in ((q.shared, k.size), (q.size, k.shared)):
        if a is not None and b is not None:
            total = total + x.scale * (a.expand(q.shape) @ b.expand(k.shape).mT)
    result: Tensor = total
    return result


def _together(call: Attended) -> tuple[Tensor, Tensor]:
    """Σ p e and √Σ p e² for the errors that the scores of a row have in common."""
    x = call.scores
    e = common(call).expm1_().masked_fill_(x.unseen, 0.0)
    off = x.weights * e
    return off.sum(-1, keepdim=True), off.mul_(e).sum(-1, keepdim=True).sqrt()


# The spread of independent errors through attention and softmax, each computed as one kernel


def _of_scores(call: Attended) -> tuple[Tensor, Tensor]:
    """1 − Σ p e and Σ p² (e/λ)² (v − o)², for the independent errors of scores."""
    x, v, o = call.scores, call.value, call.output
    square = call.square
    if call.key_errors is not None:
        square.add_(call.key_errors)
    off = square.sqrt_().mul_(LAMBDA).expm1_().masked_fill_(x.unseen, 0.0).mul_(x.weights)
    left = 1 - off.sum(-1, keepdim=True)
    ours = off.mul_(1 / LAMBDA).square_()
    both = v.once("both", v.value, lambda: torch.cat((v.square, v.value), -1))
    sums, width = ours @ both, v.shape[-1]
    found = sums[..., :width] - 2 * o * sums[..., width:] + o * o * ours.sum(-1, keepdim=True)
    return left, found.clamp(min=0)


def attention_spread(
    bound: AttentionBound, query: Any, key: Any, value: Any, mask: Any = None
) -> Rounded:
    """The deterministic bound of a kernel, with the spread of its errors."""
    x = scores_of(query, key, value, mask)
    result, call = bound.of(x), attended(x, query, kernel_of(bound, query, key))
    p, v, o = x.weights, value, x.output
    error = call.profile.kernel(bound.kernel).exponential_error
    what = ("spread", error, call.stored_score, call.read)
    left, square = x.once(what, lambda: _of_scores(call))
    if call.stored_weight:
        square = square + call.stored_weight**2 * squared(x)
    square = square + call.sums.square()
    own = value.sigma_square()
    theirs = None
    if own is not None:
        theirs = x.once("values", lambda: p.square() @ own)
    if theirs is not None and sources(key) & sources(value):  # common sources: no quadrature
        shared = LAMBDA * (square.sqrt() + theirs.sqrt())
    else:
        shared = LAMBDA * (square if theirs is None else square + theirs).sqrt()
    first, second = x.once(("together", call.read), lambda: _together(call))
    left = left - first
    shared = shared + second * (x.squares - o * o).clamp(min=0).sqrt()
    if value.shared is not None:
        shared = shared + x.once("shared", lambda: p @ value.shared.expand(v.shape))
    if call.flushed is not None:
        shared = shared + call.flushed @ v.size
    shared = torch.where(left > 0, shared / left, inf)
    return result.set_errors([], call.stored, also=shared)


def softmax_spread(s: Rounded) -> Rounded:
    """The deterministic bound of softmax, with the spread of its errors."""
    arithmetic, result = s.arithmetic, softmax_bound(s)
    p, u, profile = result.value, arithmetic.inner(s.unit), arithmetic.profile
    unseen, shared = p == 0, s.shared
    below = (s.value.amax(-1, keepdim=True) - s.value).masked_fill_(s.value.isinf(), 0.0)
    inside = Part.fresh(below.mul_(u).add_(profile.function_error * u), single=True)
    parts = (*(_filled(x, s) for x in s.parts), inside)
    together, far = root(parts), radius_of(parts)
    assert together is not None
    assert far is not None
    rows = LAMBDA * (p * together).square_().sum(-1, keepdim=True).sqrt_()
    if shared is not None:
        rows, far = rows + (p * shared).sum(-1, keepdim=True), far + shared
    rows = rows + LAMBDA * sqrt(profile.softmax.terms(p.shape[-1]) + 1) * u
    e = torch.expm1(far).masked_fill_(unseen, 0.0)
    left = 1 - (p * e).sum(-1, keepdim=True) - rows
    factor = e.div_(far.clamp(min=1e-300)).div_(left).masked_fill_(~(left > 0), inf)
    weight = factor.mul_(p).masked_fill_(unseen, 0.0)
    kept = [Part(x.sources, x.view, weight * x.sigma, x.single) for x in parts]
    result.distinct = s.distinct
    also = weight * (rows if shared is None else shared + rows)
    also.masked_fill_(unseen, 0.0)
    return result.set_parts(kept, also, result.storing(result.unit))


def with_spread(replaced: Replacement) -> Replacement:
    """Add the spread of errors to a bound, if a formula for it is known.

    Any other bound is returned unchanged, and its deterministic radius is then shared.
    """
    compute = replaced.compute
    if isinstance(compute, AttentionBound):
        return replace(replaced, compute=partial(attention_spread, compute))
    return replace(replaced, compute=softmax_spread) if compute is softmax_bound else replaced


def _filled(part: Part, like: Rounded) -> Part:
    sigma: Tensor = part.sigma.expand(like.value.shape)
    return Part(part.sources, part.view, sigma, part.single)
