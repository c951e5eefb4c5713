"""Compare computed rows with a reference and its radius, and test the residuals of single keys.

A residual is the error projected on the effect of a defective key.  A key j that is left out, or
counted twice, moves row i by κ D_ij with D_ij = p_ij (v_j − o_i).  So for every key the errors
e = computed − exact of the rows that see it are summed,

    N_j = Σ_i c_i D_ij·e_i = Σ_i c_i p_ij (v_j·e_i − o_i·e_i),

in a few matrix products for each chunk of keys; c_i is one over the mean of τ² + κ² below, so that
rows with large outputs do not dominate the others.  The deviation of N_j is that of
:mod:`~attnproof.numeric.policies.residual`, where g_i = c_i D_ij and w_ik = p_ik (v_k − o_i)·g_i

    σ² = Σ (w σ_s)² + u_P² Σ (p_ik v_k·g_i)² + Σ (τ² + κ²) g² + Σ (κ_0 o_i·g_i)²

(σ_s of a score, τ half the gap at the output, κ = κ_0 √(Σ p v²) ≥ κ_0 Σ p |v| of the sums,
κ_0 = √(N + 2R + 4) u), and possible biases are a fixed part: 3/2 Σ |w| σ_s², 3 u |Σ w s| for the
number 1/√ℓ, and small weights that float16 loses.  For all keys only a part of σ² is computed:
storing, sums and the key's own weight.  A smaller deviation makes z larger, so keys that stay below
half the limit need no more.  For the keys that stand out most it is computed in full.

The test fails if |N_j| > 7 σ + fixed, by chance with probability at most 5e-11 per key.  Heads are
tested one by one and, combining keys at equal places, together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..attention_bound import CHUNK, AttentionBound, Reference, mapped, stored_weight
from ..devices import device_label, name_of
from ..measurement import RANK, REFERENCE_SHARE, Comparison, place_in
from ..policies.residual import CANDIDATES, KEY_LIMIT, Projected, standing_out
from ..policies.weights import SCALE_ERROR, spacing
from ..profile import Profile
from ..results import PolicyRecord, WayRecord, as_float
from .call import Call

# What a sample of rows can miss

SHARE = 0.1  # the fraction of wrong rows for which the probability is printed


def sampling_words(random: int, chosen: int = 0, wrong: str = "all rows is wrong") -> str:
    """Say what a sample of rows can miss; ``wrong`` says which rows have which fault.

    m rows drawn without replacement all miss a set that holds a fraction e of the rows with
    probability at most (1−e)^m.  The same holds for m/H rows from each of H heads: the product of
    (1−e_h)^(m/H) is at most (1−e)^m for e the mean of the e_h, since log(1−e) is concave.

    >>> sampling_words(48)[:62]
    'if a fraction e of all rows is wrong, the 48 random rows miss '
    """
    text = (
        f"if a fraction e of {wrong}, the {random} random rows miss them all with "
        f"probability at most (1−e)^{random}: {(1 - SHARE) ** random:.1e} for e = {SHARE:.0%}; "
        f"a single wrong row may go undetected"
    )
    if chosen:
        text += f" ({chosen} more rows are the two ends of each head)"
    return text


# Computed rows against a reference with its radius: the worst entry

NOT_A_NUMBER = "the kernel's output is not a finite number there"
NO_REFERENCE = "the float64 reference is NaN there"
NO_DIGITS = "the rounding bound is as large as the values: nothing could be told apart"
WRONG = "farther from the float64 value than rounding can explain"


@dataclass(frozen=True)
class Worst(Comparison):
    """The entry where error over tolerance is largest, and whether all are within tolerance.

    ``further`` holds the results of other policies on the same rows.
    """

    further: tuple[PolicyRecord, ...] = ()


def worse(a: Worst | None, b: Worst) -> Worst:
    """Return the worse of two results, also for each further policy."""
    if a is None:
        return b
    both = (*a.further, *b.further)
    further = {j.policy: max((k for k in both if k.policy == j.policy), key=_weight) for j in both}
    worst = max(a, b, key=lambda w: (RANK[w.status], w.ratio))
    return replace(worst, further=tuple(further.values()))


def _weight(judged: PolicyRecord) -> tuple[int, float]:
    return RANK[judged.status], as_float(judged.ratio)


def with_residual(worst: Worst, residual: PolicyRecord) -> Worst:
    """Combine the comparison with the residual test: violated if the latter fails."""
    found = replace(worst, further=(residual,))
    if residual.status == "violated" and worst.status in ("held", "skipped"):
        return replace(found, status="violated", reason=f"residual: {residual.told}")
    return found


def allowance(profile: Profile) -> float:
    """The tolerance in radii, since the reference is code with the same bound, in float64.

    For lower dtypes its share is below 2^-12; for float64 it is another full radius.
    """
    return 2.0 if profile.dtype == torch.float64 else 1 + REFERENCE_SHARE


def compare(computed: Tensor, reference: Reference, profile: Profile) -> Worst:
    """Compare rows (heads, r, width) with their reference; the place refers to these rows."""
    error = (computed.double() - reference.output).abs_()
    tolerance = reference.radius
    relative = error / tolerance
    at = int(relative.argmax())
    top = float(relative.flatten()[at])
    place = place_in(error, at)
    known = allowance(profile)
    if math.isnan(top):
        if bool(reference.output[place].isnan()):
            return Worst(math.inf, 0.0, place, "non-finite", NO_REFERENCE)
        return Worst(math.inf, 0.0, place, "non-finite", NOT_A_NUMBER)
    found = (float(error[place]), float(tolerance[place]) * known, place)
    if math.isinf(top):
        return Worst(math.inf, found[1], place, "non-finite", NOT_A_NUMBER)
    if top > known:
        return Worst(*found, "violated", WRONG)
    if not bool((reference.output.abs() > tolerance).any()):
        return Worst(0.0, 0.0, place, "skipped", NO_DIGITS)
    return Worst(*found, "held")


def judge(worst: Worst, told: str) -> PolicyRecord:
    """The result of the deterministic bound."""
    relative = min(worst.ratio, torch.finfo(torch.float64).max)
    if worst.reason.startswith("residual: "):
        if not worst.tolerance:
            return PolicyRecord("deterministic", "skipped", 0.0, NO_DIGITS)
        return PolicyRecord("deterministic", "held", relative, told)
    return PolicyRecord("deterministic", worst.status, relative, worst.reason or told)


def kernel_check(
    call: Call, way: str, worst: Worst, looked: str, misses: str, policies: tuple[PolicyRecord, ...]
) -> WayRecord:
    """Build the record of one method on a call; the caller adds its duration."""
    return WayRecord(
        way=way,
        kernel=call.kernel.name,
        device=device_label(call.device),
        dtype=name_of(call.dtype),
        tokens=call.tokens,
        heads=call.heads,
        width=call.width,
        causal=call.causal,
        seed=call.seed,
        looked=looked,
        misses=misses,
        **worst.recorded,
        rounding=str(call.profile),
        policies=policies,
        seconds=0.0,
        kernel_seconds=0.0,
        forwards=0.0,
        bytes_of_inputs=0,
        bytes_beyond=None,
    )


PARTS = 4


@dataclass(frozen=True)
class _Head:
    """The rows of one head in float64: queries over √ℓ, errors, and statistics over all keys."""

    query: Tensor
    key: Tensor
    value: Tensor
    error: Tensor
    output: Tensor
    top: Tensor
    log_sum: Tensor
    rises: Tensor
    own: Tensor  # τ² + κ², per entry
    share: Tensor  # c, per row
    denominator: Tensor  # κ_0
    last: Tensor | None

    def weights(self, a: int, b: int) -> tuple[Tensor, Tensor]:
        """Scores and weights of keys a to b; hidden keys have weight 0."""
        scores = self.query @ self.key[a:b].double().mT
        weights = (scores - self.log_sum).exp_()
        if self.last is not None:
            hidden = torch.arange(a, b, device=scores.device) > self.last[:, None]
            weights.masked_fill_(hidden, 0.0)
        return scores, weights


def judge_keys(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: Tensor,
    reference: Reference,
    profile: Profile,
    bound: AttentionBound,
    last: Tensor | None = None,
) -> PolicyRecord:
    """Test the residuals of ``rows`` (heads, r, width) for every single key."""
    why_not = _why_not(query, profile, bound)
    if not bool(rows.isfinite().all() and reference.output.isfinite().all()):
        why_not = "something computed is not a finite number"
    if why_not:
        return PolicyRecord("residual", "skipped", 0.0, why_not)
    heads = _heads(query, key, value, rows, reference, profile, bound, last)
    stored = stored_weight(profile, bound)
    n = key.shape[-2]
    edges = [n * k // PARTS for k in range(PARTS + 1)]
    every = [(head, edges[k], edges[k + 1]) for head in heads for k in range(PARTS)]
    found = mapped(lambda item: _keys(*item, stored), every, query.device)
    sums = [torch.cat([f[0] for f in found[k : k + PARTS]]) for k in range(0, len(found), PARTS)]
    short = [torch.cat([f[1] for f in found[k : k + PARTS]]) for k in range(0, len(found), PARTS)]
    least = _column_norms(heads, profile)
    z, told = -1.0, ""
    for group in _groups(len(heads)):
        total = sum(sums[h] for h in group)
        variance = sum(short[h] for h in group)
        assert isinstance(total, Tensor)
        assert isinstance(variance, Tensor)
        one_head = partial(_key_projection, profile=profile, bound=bound)
        whole = [partial(one_head, heads[h], least=least[h]) for h in group]
        many = CANDIDATES if len(group) == len(heads) else 1
        for place, one, sign in standing_out(total, variance, whole, many):
            if one > z:
                where = f"head {group[0]}" if len(group) == 1 else "all heads together"
                z, told = one, f"|z| {sign} {one:.3g} along key {place:,} of {where}"
    told += f", limit {KEY_LIMIT:g}"
    return PolicyRecord("residual", "violated" if z > KEY_LIMIT else "held", z / KEY_LIMIT, told)


def _groups(heads: int) -> list[Sequence[int]]:
    alone: list[Sequence[int]] = [[h] for h in range(heads)]
    return [range(heads), *alone] if heads > 1 else alone


def _why_not(query: Tensor, profile: Profile, bound: AttentionBound) -> str:
    if profile.dtype == torch.float64:
        return "the reference is in float64 itself, and its errors are as large"
    if query.device.type != "cpu":
        return "it assumes rounding to nearest, which the matrix units of a GPU do not use"
    measured = profile.kernel(bound.kernel)
    if bound.scores_stored or measured.scores_stored or profile.operand:
        return "queries, keys or scores are rounded once more in between, which it does not model"
    return ""


def _heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: Tensor,
    reference: Reference,
    profile: Profile,
    bound: AttentionBound,
    last: Tensor | None,
) -> list[_Head]:
    assert reference.seen is not None
    output, keys = reference.output, key.shape[-2]
    top, log_sum, rises, square = reference.seen
    terms = profile.attention_terms(keys, bound.kernel, bound.queries)
    denominator = (terms + 2 * rises + 4).sqrt() * profile.accumulate
    own = spacing(output, profile).square() + denominator.square() * square
    share = own.mean(-1, keepdim=True).reciprocal()
    share = share / share.amax((1, 2), keepdim=True)
    q, error = query.double() / math.sqrt(query.shape[-1]), rows.double() - output
    seen: Any = [None] * len(q) if last is None else last.expand(q.shape[:2])
    every = (q, key, value, error, output, top, log_sum, rises, own, share, denominator, seen)
    return [_Head(*(x[h] for x in every)) for h in range(len(q))]


def _keys(x: _Head, start: int, stop: int, stored: float) -> tuple[Tensor, Tensor]:
    """N and the partial variance of keys start to stop."""
    sums = x.query.new_zeros(stop - start)
    variance = torch.zeros_like(sums)
    error, entry = x.share * x.error, x.share.square() * x.own
    right, own = torch.cat((error, x.output * entry, x.output)).mT, entry.mT
    r, square, weight = len(x.query), x.output.square(), (stored * x.share).square()
    of_error = (x.output * error).sum(-1, keepdim=True)
    of_own, of_output = (square * entry).sum(-1, keepdim=True), square.sum(-1, keepdim=True)
    for a in range(start, stop, CHUNK):
        b = min(stop, a + CHUNK)
        _, p = x.weights(a, b)
        v = x.value[a:b].double()
        e, near, o = torch.unflatten((v @ right).mT, 0, (3, r))
        v.square_()
        here = slice(a - start, b - start)
        sums[here] = p.mul(e - of_error).sum(0)
        p.square_()
        spread = (v @ own).mT.sub(near, alpha=2).add_(of_own).clamp_(min=0)
        far = (v.sum(-1) - 2 * o).add_(of_output).clamp_(min=0)
        spread.addcmul_(p, far.square_().mul_(weight))
        variance[here] = p.mul_(spread).sum(0)
    return sums, variance


def _column_norms(heads: Sequence[_Head], profile: Profile) -> list[Tensor | None]:
    """√Σ v² of each column of the values, if the dtype loses small weights."""
    if profile.least <= 2.0**-100:
        return [None] * len(heads)
    found: list[Tensor | None] = []
    for x in heads:
        square = x.error.new_zeros(x.value.shape[-1])
        for a in range(0, len(x.value), CHUNK):
            square += x.value[a : a + CHUNK].double().square().sum(0)
        found.append(square.sqrt())
    return found


def _key_projection(
    x: _Head, place: int, profile: Profile, bound: AttentionBound, least: Tensor | None
) -> Projected:
    """Project on the effect of one key, with its full deviation."""
    u, width, stored = profile.accumulate, x.query.shape[-1], stored_weight(profile, bound)
    _, p = x.weights(place, place + 1)
    g = x.share * p * (x.value[place].double() - x.output)
    middle = (x.output * g).sum(-1, keepdim=True)
    variance = (g.square() * x.own).sum() + (middle * x.denominator).square().sum()
    fixed = scale_sum = g.new_zeros(())
    if least is not None and stored:
        variance = variance + (profile.least * least * g).square().sum()
    norms = x.query.norm(dim=-1, keepdim=True)
    exponential = (profile.kernel(bound.kernel).exponential_error * u * (1 + x.rises)).square()
    for a in range(0, len(x.key), CHUNK):
        b = min(len(x.key), a + CHUNK)
        scores, p = x.weights(a, b)
        values = g @ x.value[a:b].double().mT
        size = norms * x.key[a:b].double().norm(dim=-1)
        below = x.top - scores
        square = (width + 4) * (u * size).square() + (u * below).square() + exponential
        square = torch.where(p == 0, 0.0, square)
        w = p * (values - middle)
        variance = variance + (w.square() * square).sum() + (stored * p * values).square().sum()
        fixed = fixed + 1.5 * (w.abs() * square).sum()
        scale_sum = scale_sum + (w * torch.where(p == 0, 0.0, scores)).sum()
        if least is not None and stored:
            lost = torch.where(below.neg().exp() < profile.least, p, 0.0)
            fixed = fixed + (lost * values.abs()).sum()
    fixed = fixed + SCALE_ERROR * u * scale_sum.abs()
    return Projected(float((g * x.error).sum()), float(variance), float(fixed))
