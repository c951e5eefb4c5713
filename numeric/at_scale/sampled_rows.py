"""Check some rows of a kernel: against float64, over more keys, with keys permuted, bit for bit.

The reference of m rows over n keys takes m/n of the work of a forward in float64, and memory for m
rows of one chunk of keys.

For ``reach``, a few queries attend to all keys, as in decoding, and are compared with the float64
reference one chunk of keys at a time.  Heads are drawn and run together while they fit in a share
of the free memory, otherwise in groups.

Permuted keys are summed in another order, so the rows agree within two rounding bounds.  To bound
every row in time n · d, the sums over keys in the bound are replaced by upper bounds: with
A = ‖q_i‖ max_j ‖k_j‖ / √ℓ every |s_j| ≤ A and m − s_j ≤ 2A, so that

    η ≤ η_max = (γ(ℓ+4) + u_S) A + 2 u A + c u (1 + R),      Σ p e² ≤ e_max²,    Σ p v² ≤ max_j v_j²

and R, the number of left-to-right maxima, is at most ``most_rises`` for keys in random order: the
j-th key is a maximum with probability 1/j, independently, so R has mean H_n ≤ 1 + ln n, and
Chernoff's bound P(R ≥ r) ≤ exp(r − μ − r ln(r/μ)) over all rows and both orders is below 1e-12.

In the CPU's flash kernel, queries that are permuted or computed in a smaller set give the same rows
to the last bit (measured for float32, bfloat16 and float16), unless a block of queries has only a
few, which are summed in another order.  Therefore whole blocks of 32 queries are run, and rows past
the last whole block are left out.  In causal calls, the rows up to a whole block of keys are the
same without the rest of the sequence.  No tolerance is needed, and any misplaced row shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..attention_bound import Reference, streamed, weight_error
from ..error_analysis import gamma
from ..measurement import place_in
from ..row_selection import ends_and_between
from .call import Arrays, Call, arrays, available, generator, timed
from .comparison import WRONG, Worst, compare, judge_keys, sampling_words, with_residual, worse

# Sampled rows: one forward over all rows, then some of them against float64

ROWS = 64  # in all heads together
ENDS = 2


def places(call: Call, rows: int = ROWS) -> Tensor:
    """Choose rows (heads, r) of each head, in order: both ends and random ones between.

    ``rows`` in total, with at least one random row per head; all rows if there are no more.
    """
    n, each = call.tokens, max(ENDS + 1, rows // call.heads)
    if each >= n:
        return torch.arange(n).expand(call.heads, n)
    source = generator(call, 9)
    return torch.stack([ends_and_between(n, each, source) for _ in range(call.heads)])


def check_rows(call: Call, x: Arrays, output: Tensor, at: Tensor) -> Worst:
    """Compare rows ``at`` (heads, r) of the output with float64; the place is in the whole."""
    here = at.to(call.device)[..., None]
    query = x.query.gather(1, here.expand(-1, -1, x.query.shape[-1]))
    rows = output.gather(1, here.expand(-1, -1, output.shape[-1]))
    last = at.to(call.device) if call.causal else None
    worst = _exactly(call, (query, x.key, x.value), rows, call.tokens, last)
    head, row, column = worst.place
    return replace(worst, place=(head, int(at[head, row]), column))


def _exactly(
    call: Call,
    x: tuple[Tensor, Tensor, Tensor],
    rows: Tensor,
    queries: int,
    last: Tensor | None = None,
) -> Worst:
    """Compare rows of calls with this number of queries with float64, and test their residuals."""
    bound = call.bound(queries)
    reference = streamed(*x, call.profile, bound, last)
    residual = judge_keys(*x, rows, reference, call.profile, bound, last)
    return with_residual(compare(rows, reference, call.profile), residual)


def sampled(call: Call, x: Arrays, output: Tensor, rows: int = ROWS) -> tuple[Worst, str, str]:
    """Return the worst entry of the sampled rows, and words for which rows and what they miss."""
    at = places(call, rows)
    worst = check_rows(call, x, output, at)
    each = at.shape[1]
    if each == call.tokens:
        return worst, "every row", ""
    looked = f"{at.numel()} of {call.heads * call.tokens:,} rows against float64, both ends of each"
    looked += f" head and {each - ENDS} random rows of it; every row was computed"
    ends = ENDS * call.heads
    return worst, looked, sampling_words(at.numel() - ends, ends)


# Reach: the kernel on a few rows, over more keys than a forward of all rows could handle

REACH_ROWS = 64  # of each head
CAUSAL_ROWS = 16  # each in its own call
MEMORY_SHARE = 0.6  # the share of free memory that keys and values may take


class NoMemory(ValueError):
    """The keys and values of one head do not fit in memory."""


@dataclass(frozen=True)
class Reached:
    """The worst entry, what was compared, and its cost."""

    worst: Worst
    looked: str
    kernel_seconds: float
    bytes_of_inputs: int


def group_of_heads(call: Call, free: int | None) -> int:
    """The number of heads that fit at once.

    Raises :class:`NoMemory`, with the bytes needed and free, if one head does not fit.
    """
    item = torch.empty((), dtype=call.dtype).element_size()
    one = 2 * call.tokens * call.width * item
    if free is None:
        return call.heads
    room = int(free * MEMORY_SHARE)
    if one > room:
        raise NoMemory(
            f"wanted room for the keys and values of one head, {one / 2**30:.1f} GiB in "
            f"{str(call.dtype).removeprefix('torch.')}; {room / 2**30:.1f} GiB may be taken of "
            f"{free / 2**30:.1f} GiB that are free; ask for fewer tokens, or for bfloat16"
        )
    return min(call.heads, room // one)


def reach(call: Call) -> Reached:
    """Run the kernel on some rows of each head, over all tokens."""
    rows = min(CAUSAL_ROWS if call.causal else REACH_ROWS, call.tokens)
    group = group_of_heads(call, available(call.device))
    worst: Worst | None = None
    seconds, held = 0.0, 0
    for head in range(0, call.heads, group):
        heads = min(group, call.heads - head)
        one, spent, taken = _heads(call, rows, range(head, head + heads))
        seconds, held = seconds + spent, max(held, taken)
        worst = worse(worst, replace(one, place=(one.place[0] + head, *one.place[1:])))
    assert worst is not None
    looked = f"{rows} rows of each of {call.heads} heads, the only ones that were computed, "
    looked += (
        f"over all {call.tokens:,} keys"
        if not call.causal
        else (f"each over the keys up to its own place of {call.tokens:,}")
    )
    if group < call.heads:
        looked += f"; {group} of {call.heads} heads at once"
    return Reached(worst, looked, seconds, held)


def _heads(call: Call, rows: int, heads: range) -> tuple[Worst, float, int]:
    """Draw some heads, run the kernel and compare; causal rows include both ends."""
    x = arrays(call, rows, heads)
    if not call.causal:
        output, seconds = timed(lambda: call.run(*x), call.device)
        return _exactly(call, x, output, rows), seconds, x.bytes
    n = call.tokens
    inner = torch.randint(n, (max(0, rows - 2),), generator=generator(call, 14))
    places = torch.cat((torch.tensor([0, n - 1])[:rows], inner)).sort().values
    output, seconds = timed(lambda: call.rows(*x, places), call.device)
    one = _exactly(call, x, output, 1, places.to(call.device))
    place = (one.place[0], int(places[one.place[1]]), one.place[2])
    return replace(one, place=place), seconds, x.bytes


# Equivariance under permuted keys: the kernel again on some rows, keys and values permuted

SHARE = 16  # one row in this many
LEAST_ROWS = 16
PIECE = 1_024
RISES_FAILURE = 1e-12  # the probability that some row rises more often


def keys_permuted(call: Call, x: Arrays, output: Tensor) -> tuple[Worst, str, str]:
    """Run the kernel on n/16 random rows with permuted keys and values, and compare the rows."""
    n = call.tokens
    if call.causal:
        return (
            Worst(0.0, 0.0, (), "skipped", "a causal row would see other keys after a permutation"),
            ("nothing"),
            "",
        )
    source = generator(call, 13)
    places = torch.randperm(n, generator=source)[: min(n, max(LEAST_ROWS, n // SHARE))]
    order = torch.randperm(n, generator=source).to(call.device)
    here = places.to(call.device)
    again = call.run(x.query[:, here], x.key[:, order], x.value[:, order])
    worst: Worst | None = None
    most = most_rises(n, 2 * call.heads * len(places))
    for a in range(0, len(places), PIECE):
        at = here[a : a + PIECE]
        rows = output[:, at]
        radius = 2 * _radius(call, x, x.query[:, at], rows, most, math.gcd(n, len(places)))
        one = compare(again[:, a : a + PIECE], Reference(rows.double(), radius), call.profile)
        head, row, column = one.place
        place = (head, int(at[row]), column)
        reason = one.reason.replace(WRONG, "permuting the keys changes the value")
        one = Worst(one.error, one.tolerance, place, one.status, reason)
        worst = one if worst is None or one.ratio > worst.ratio else worst
    assert worst is not None
    looked = f"{len(places):,} random rows of each of {call.heads} heads, run again with permuted"
    return worst, f"{looked} keys and values", f"{sampling_words(len(places))}; {SHARED_FAULTS}"


SHARED_FAULTS = "a fault unaffected by the order of keys, such as a wrong scale, is not detected"


def most_rises(n: int, rows: int) -> int:
    """A bound on R in all of these rows, valid except with probability 1e-12.

    >>> most_rises(16_384, 1_000)
    47
    """
    mean = sum(1 / j for j in range(1, min(n, 1_000) + 1)) + max(0.0, math.log(n / 1_000))
    r = math.ceil(mean) + 1
    while rows * math.exp(r - mean - r * math.log(r / mean)) > RISES_FAILURE and r < n:
        r += 1
    return r


def _radius(call: Call, x: Arrays, query: Tensor, rows: Tensor, most: int, queries: int) -> Tensor:
    """A bound on the error of every entry of some rows, from norms alone.

    ``queries`` divides the number of queries in both calls of the kernel.
    """
    profile, bound, n = call.profile, call.kernel.bound, call.tokens
    u, store = profile.accumulate, profile.store
    of_norms, of_scores = weight_error(bound, profile, call.width)
    measured = profile.kernel(bound.kernel)
    weights_stored = bound.weights_stored or measured.weights_stored
    stored = store if weights_stored and store > u else 0.0
    longest = _longest(x.key)
    norms = query.double().norm(dim=-1, keepdim=True) * longest / math.sqrt(call.width)
    eta = (of_norms + of_scores + 2 * u) * norms
    eta += measured.exponential_error * u * (1 + most)
    e = eta.expm1()
    largest = x.value.abs().amax(1, keepdim=True).double()
    terms = profile.attention_terms(n, bound.kernel, queries)
    total = gamma(terms, u) + profile.operand
    size = rows.double().abs()
    radius = e * largest + (stored + total + most * u) * largest + (total + (most + 2) * u) * size
    radius += profile.least * n * largest
    left = 1 - e - total
    radius = torch.where(left > 0, radius / left, math.inf)
    return radius * (1 + 2 * store) + 2 * store * size + profile.least


def _longest(key: Tensor) -> Tensor:
    """The largest norm of a key of each head, (heads, 1, 1)."""
    pieces = [piece.double().norm(dim=-1).amax(-1) for piece in torch.split(key, PIECE, 1)]
    return torch.stack(pieces).amax(0)[:, None, None]


# Rows that do not depend on other rows, compared bit for bit

QUERIES = 32  # a smaller block takes another path of the kernel
BLOCK = 512
ONLY_ON_CPU = "bitwise equality of rows is known only for the CPU's flash kernel"
OTHER_BITS = "other bits than in the forward over all rows"


def alone(call: Call, x: Arrays, output: Tensor) -> tuple[Worst, str, str]:
    """Run one row in 16 again, in random order; causal, the first quarter without the rest."""
    n = call.tokens
    if not call.kernel.blocks:
        return _skipped(ONLY_ON_CPU)
    if call.causal:
        first = n // 4 // BLOCK * BLOCK
        if not first:
            return _skipped(f"a quarter of {n} tokens holds no whole block of {BLOCK}")
        again = call.run(*(part[:, :first] for part in x))
        worst = _equal(again, output, torch.arange(first))
        return worst, f"the first {first:,} rows of each head, without the rest of the sequence", ""
    if n < QUERIES:
        return _skipped(f"{n} rows are fewer than a block of {QUERIES} queries")
    count = QUERIES * max(1, n // SHARE // QUERIES)
    places = torch.randperm(_in_blocks(n), generator=generator(call, 11))[:count]
    worst = _equal(call.run(x.query[:, places], x.key, x.value), output, places)
    looked = f"{count:,} random rows, the same in each of {call.heads} heads, run alone"
    which = "all rows" if _in_blocks(n) == n else f"the first {_in_blocks(n):,} rows"
    misses = sampling_words(count, wrong=f"{which} has different bits when run alone")
    return worst, f"{looked}, bit for bit", misses


def queries_permuted(call: Call, x: Arrays, output: Tensor) -> tuple[Worst, str, str]:
    """Permute all queries in a second forward: the rows are permuted, bit for bit."""
    if call.causal:
        return _skipped("a causal row sees other keys at another position")
    if not call.kernel.blocks:
        return _skipped(ONLY_ON_CPU)
    n = call.tokens
    if n < QUERIES:
        return _skipped(f"{n} rows are fewer than a block of {QUERIES} queries")
    order = torch.randperm(_in_blocks(n), generator=generator(call, 12))
    worst = _equal(call.run(x.query[:, order], x.key, x.value), output, order)
    looked = "every row" if len(order) == n else f"all but the last {n - len(order)} rows"
    return worst, f"{looked}, with permuted queries, bit for bit", ""


def _in_blocks(n: int) -> int:
    """The number of rows in whole blocks of queries."""
    return n // QUERIES * QUERIES


def _skipped(why: str) -> tuple[Worst, str, str]:
    return Worst(0.0, 0.0, (), "skipped", why), "nothing", ""


def _equal(again: Tensor, output: Tensor, places: Tensor) -> Worst:
    """Compare ``again`` with the rows of the output at some places of every head."""
    for k, piece in enumerate(torch.split(again, BLOCK, 1)):
        at = places[k * BLOCK : k * BLOCK + BLOCK].to(output.device)
        same = output[:, at]
        if torch.equal(piece, same):
            continue
        error = (piece.double() - same.double()).abs().nan_to_num_(nan=math.inf)
        head, row, column = place_in(error, int(error.argmax()))
        place = (head, int(at[row]), column)
        largest = float(error.max())
        if math.isinf(largest):
            return Worst(largest, 0.0, place, "non-finite", "not a number there")
        return Worst(largest, 0.0, place, "violated", OTHER_BITS)
    return Worst(0.0, 0.0, (), "held")
