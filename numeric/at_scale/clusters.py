"""Compare every row of one forward with float64, on keys that take few distinct values.

If keys take c distinct values k_c, all keys of a cluster have the same weight in each row, and

    o_i = Σ_c w_ic S_c / Σ_c w_ic N_c,     w_ic = exp(q_i·k_c/√ℓ − m_i),

with S_c the sum of the values of the cluster and N_c their number; Σ p v², Σ p e and Σ p e² of the
bound collapse in the same way, since e_j depends on j only through the score.  The left-to-right
maxima of a row are those of the clusters in the order of their first keys.  In causal calls, row i
has the sums over keys up to i: the sums before its group of rows, plus the keys of the group one by
one.

The sums S_c are computed in float64, with an error below 2^-40 of Σ |v| for n up to 10⁴ keys and
more, which the share of the tolerance reserved for the reference covers.

One key of a cluster treated differently from the others (left out, counted twice) moves row i by κ
p_i (v_j − o_i).  Any error that depends on a key only through its score, such as a wrong scale or
the rounding of weights, is the same for all keys of a cluster and moves o_i within the span of the
cluster means of V.  So project the residuals e_i = ô_i − o_i of all rows on the complement of that
span and sum them with the weight p_ic of one key of cluster c,

    G_c = Σ_b G_cb,     G_cb = Σ_{i in block b} p_ic P e_i.

For a correct kernel only the rounding of sums and of the output remains.  If signs are independent
between blocks, Pinelis (1994, Theorem 3.5) gives for sums in a Hilbert space

    P(‖G_c‖ ≥ r (Σ_b ‖G_cb‖²)^½) ≤ 2 exp(−r²/2).

A key left out adds −κ Σ p_ic² P v_j to G_c, in the same direction in every block, and r approaches
the root of the number of blocks.  The limit is r = 7: 5e-11 for each cluster of each head.  The
test needs roundings to nearest (as on the CPU), more features than clusters, and rows that all see
the same keys; otherwise it is skipped with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..attention_bound import Reference, Sums, closed, mapped, weight_error
from ..results import PolicyRecord
from .call import Call, Clusters
from .comparison import Worst, compare, worse

# The exact value of every row of attention over clustered keys, in time n · c · d

ENTRIES = 1 << 16  # of the output per block, in all heads, so that they stay in the cache
KEYS = 2_048  # summed at once
CAUSAL_ROWS = 32  # a group of rows whose own keys are weighed one by one
LATER = 4  # blocks after which the keys of one more block are few in comparison


@dataclass(frozen=True)
class Block:
    """Rows a to b of every head: their reference, and the weight of one key of each cluster."""

    a: int
    b: int
    reference: Reference
    weights: Tensor


@dataclass(frozen=True)
class Totals:
    """Sums over keys: Σ v and Σ v² of each cluster (heads, clusters, width), and their number."""

    sums: Tensor
    squares: Tensor
    number: Tensor

    @staticmethod
    def empty(x: Clusters) -> Totals:
        """The sums over no keys."""
        heads, count, width = x.centres.shape
        none = torch.zeros(heads, count, width, dtype=torch.float64, device=x.centres.device)
        return Totals(none, none.clone(), none.new_zeros(count))

    def add(self, members: Tensor, values: Tensor) -> None:
        """Add keys, given the cluster of each."""
        self.sums.add_(members.mT @ values)
        self.squares.add_(members.mT @ (values * values))
        self.number.add_(members.sum(0))

    @property
    def sizes(self) -> Tensor:
        """A bound on Σ |v| of each column: the root of the number times Σ v²."""
        return (self.number.sum() * self.squares.sum(1, keepdim=True)).sqrt_()


def totals(x: Clusters) -> Totals:
    """The sums over all keys, in float64, in one pass."""
    found = Totals.empty(x)
    members_of = _Members(x)
    for a in range(0, len(x.label), KEYS):
        found.add(members_of(a, a + KEYS), x.arrays.value[:, a : a + KEYS].double())
    return found


class _Members:
    """The membership matrix (keys, clusters): 1 if the key belongs to the cluster."""

    def __init__(self, x: Clusters) -> None:
        self.label = x.label
        count = x.centres.shape[1]
        self.one = torch.eye(count, dtype=torch.float64, device=x.label.device)

    def __call__(self, a: int, b: int) -> Tensor:
        return self.one[self.label[a:b]]


def blocks(call: Call, x: Clusters, of: Totals) -> Iterator[Block]:
    """Yield every row of the call, block by block; ``of``: the sums over all keys."""
    if call.causal:
        yield from _causal(call, x)
        return
    scores_of, sizes = _Scores(call, x), of.sizes
    step = max(1, ENTRIES // (call.heads * call.width))
    for a in range(0, call.tokens, step):
        b = min(call.tokens, a + step)
        weights, error, top, rises = scores_of(a, b, None)
        yield _block(
            call,
            a,
            b,
            weights,
            error,
            weights * of.number,
            top,
            rises,
            weights @ of.sums,
            weights @ of.squares,
            sizes,
        )


def _causal(call: Call, x: Clusters) -> Iterator[Block]:
    scores_of, members_of, before = _Scores(call, x), _Members(x), Totals.empty(x)
    step = max(CAUSAL_ROWS, ENTRIES // (call.heads * call.width) // CAUSAL_ROWS * CAUSAL_ROWS)
    for a in range(0, call.tokens, step):
        b = min(call.tokens, a + step)
        values, members = x.arrays.value[:, a:b].double(), members_of(a, b)
        number = before.number + members.cumsum(0)
        seen = None if bool((before.number > 0).all()) else number > 0
        weights, error, top, rises = scores_of(a, b, seen)
        sums, squares = _up_to_each(weights, members, values, before, exact=a < LATER * step)
        yield _block(
            call, a, b, weights, error, weights * number, top, rises, sums, squares, before.sizes
        )


def _up_to_each(
    weights: Tensor, members: Tensor, values: Tensor, before: Totals, *, exact: bool
) -> tuple[Tensor, Tensor]:
    """Σ w v and Σ w v² of each row over the keys up to it; all these keys are added to ``before``.

    Rows are processed in groups of CAUSAL_ROWS: the totals before each group times the weights,
    plus a triangle of the keys of the group.  For Σ w v², which only widens the radius, every row
    counts all these keys unless ``exact``.
    """
    rows = values.shape[1]
    spare = -rows % CAUSAL_ROWS
    padded = (torch.nn.functional.pad(t, (0, 0, 0, spare)) for t in (weights, values, members))
    groups_of = (-1, CAUSAL_ROWS)
    w, v, m = (torch.unflatten(t, -2, groups_of) for t in padded)
    near = (w @ m.mT).tril_()

    def up_to_each(so_far: Tensor, x: Tensor) -> Tensor:
        groups = m.mT @ x
        until = groups.cumsum(1).add_(so_far[:, None])
        so_far.copy_(until[:, -1])
        found: Tensor = (w @ until.sub_(groups)).add_(near @ x)
        return found.flatten(1, 2)[:, :rows]

    sums = up_to_each(before.sums, v)
    if exact:
        squares = up_to_each(before.squares, v * v)
    else:
        before.squares.add_(members.mT @ (values * values))
        squares = weights @ before.squares
    before.number.add_(members.sum(0))
    return sums, squares


def _block(
    call: Call,
    a: int,
    b: int,
    weights: Tensor,
    error: Tensor,
    many: Tensor,
    top: Tensor,
    rises: Tensor,
    values: Tensor,
    squares: Tensor,
    sizes: Tensor,
) -> Block:
    """The reference from the sums; ``many`` is the total weight of all keys of a cluster."""
    once = many * error
    total = many.sum(-1, keepdim=True)
    sums = Sums(
        top,
        total,
        once.sum(-1, keepdim=True),
        (once * error).sum(-1, keepdim=True),
        rises,
        values,
        squares,
    )
    reference = closed(sums, sizes, call.tokens, call.profile, call.bound(call.tokens))
    return Block(a, b, reference, weights / total)


class _Scores:
    """Weights, relative errors, maxima and rises of a block of rows over the clusters."""

    def __init__(self, call: Call, x: Clusters) -> None:
        self.query = x.arrays.query
        self.order = _order_of_first(x.label, x.centres.shape[1])
        self.u = call.profile.accumulate
        self.scale = 1 / math.sqrt(call.width)
        self.of_norms, self.of_scores = weight_error(call.kernel.bound, call.profile, call.width)
        self.centres = x.centres.double()
        self.norms = self.centres.norm(dim=-1)[:, None] * self.of_norms

    def __call__(self, a: int, b: int, seen: Tensor | None) -> tuple[Tensor, ...]:
        """Compute rows a to b; ``seen`` (rows, clusters): the row sees some key of the cluster."""
        query = self.query[:, a:b].double() * self.scale
        scores = query @ self.centres.mT
        if seen is not None:
            scores.masked_fill_(~seen, -math.inf)
        top, rises = _running(scores[..., self.order])
        below = top - scores
        error = query.norm(dim=-1, keepdim=True) * self.norms + self.u * below
        if self.of_scores:
            error += self.of_scores * scores.abs()
        weights = (-below).exp()
        error = error.expm1()
        if seen is not None:
            error.masked_fill_(~seen, 0.0)
        return weights, error, top, rises


def _running(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum of each row, and how often it rises from left to right."""
    columns = scores.movedim(-1, 0).contiguous()
    top, rises = columns[0], torch.ones_like(columns[0])
    for column in columns[1:]:
        rises += column > top
        top = torch.maximum(top, column)
    return top[..., None], rises[..., None]


def _order_of_first(label: Tensor, count: int) -> Tensor:
    """The clusters in the order of their first keys; those without keys last."""
    place = torch.arange(len(label), device=label.device)
    first = torch.full((count,), len(label), device=label.device)
    return first.scatter_reduce(0, label, place, "amin").argsort()


# Residual tests of single keys, on clustered keys: faults below any bound in bfloat16

LIMIT = 7.0
PARTS = 512  # blocks of one or more rows: r can reach 22


@dataclass(frozen=True)
class KeyTest:
    """The largest r of all clusters and the key that explains it best, or why there is no test."""

    ratio: float = 0.0
    head: int = 0
    key: int = 0
    why_not: str = ""

    def judged(self) -> PolicyRecord:
        """The result as that of a policy."""
        if self.why_not:
            return PolicyRecord("residual", "skipped", 0.0, self.why_not)
        told = f"r = {self.ratio:.2g} of at most {LIMIT:g} over all clusters"
        if self.ratio <= LIMIT:
            return PolicyRecord("residual", "held", self.ratio / LIMIT, told)
        told += f"; key {self.key} of head {self.head} explains it best"
        return PolicyRecord("residual", "violated", self.ratio / LIMIT, told)


class Residuals:
    """The residuals of one call, summed block by block; nothing is kept for single rows."""

    def __init__(self, call: Call, x: Clusters, of: Totals) -> None:
        self.x, self.size = x, max(1, call.tokens // PARTS)
        count, width = x.centres.shape[1:]
        self.why_not = _why_not(call, count, width)
        if not self.why_not:
            self.basis = torch.linalg.qr(of.sums.mT).Q[:, None]  # (heads, 1, width, clusters)
        self.total = torch.zeros_like(of.sums)
        self.squares = of.sums.new_zeros(of.sums.shape[:2])

    def add(self, rows: Tensor, block: Block) -> None:
        """Add the residuals of a block, given the weight of one key of each cluster."""
        if self.why_not:
            return
        residual, weights = rows.double() - block.reference.output, block.weights
        whole = residual.shape[1] // self.size * self.size
        for a, b, size in ((0, whole, self.size), (whole, residual.shape[1], None)):
            if a == b:
                continue
            blocks = (-1, size or b - a)
            e, w = (torch.unflatten(x[:, a:b], 1, blocks) for x in (residual, weights))
            sums = w.mT @ e
            sums = sums - (sums @ self.basis) @ self.basis.mT
            self.total += sums.sum(1)
            self.squares += sums.square().sum((1, -1))

    def test(self) -> KeyTest:
        """The largest coherence of all clusters, and the key that it points to."""
        if self.why_not:
            return KeyTest(why_not=self.why_not)
        coherence = (self.total.norm(dim=-1) / self.squares.sqrt()).nan_to_num_(nan=math.inf)
        coherence = torch.where(self.squares == 0, 0.0, coherence)
        at = int(coherence.argmax())
        head, cluster = divmod(at, coherence.shape[1])
        explained = (self.x.arrays.value[head].double() @ self.total[head, cluster]).abs()
        explained = torch.where(self.x.label == cluster, explained, -1.0)
        return KeyTest(float(coherence.flatten()[at]), head, int(explained.argmax()))


def _why_not(call: Call, count: int, width: int) -> str:
    if call.causal:
        return "rows of a causal call see different keys of a cluster"
    if call.device.type != "cpu":
        return "it assumes rounding to nearest, which the matrix units of a GPU do not use"
    if width < 2 * count:
        return f"{count} clusters span too large a subspace of {width} features"
    if call.tokens < PARTS // 4:
        return f"{call.tokens} rows are too few"
    return ""


# The check of every row

CLUSTERS = 16


@dataclass(frozen=True)
class Checked:
    """The worst entry of all rows, and the residual tests of single keys."""

    worst: Worst
    keys: KeyTest


def check_every_row(call: Call, x: Clusters, output: Tensor) -> Checked:
    """Compare every row with its exact value, and test the residuals that single keys would cause.

    Heads are processed one by one, in threads.
    """
    one = replace(call, heads=1)

    def check(head: int) -> Checked:
        return _head(one, x.head(head), output[head : head + 1], head)

    found = mapped(check, range(call.heads), call.device)
    worst = found[0].worst
    for other in found[1:]:
        worst = worse(worst, other.worst)
    return Checked(worst, max((f.keys for f in found), key=lambda keys: keys.ratio))


def _head(call: Call, x: Clusters, output: Tensor, head: int) -> Checked:
    worst: Worst | None = None
    of = Totals.empty(x) if call.causal else totals(x)  # causal blocks sum on their own
    residuals = Residuals(call, x, of)
    for block in blocks(call, x, of):
        rows = output[:, block.a : block.b]
        one = compare(rows, block.reference, call.profile)
        if worst is None or one.status != "held" or one.ratio > worst.ratio:
            _, row, column = one.place
            worst = worse(worst, replace(one, place=(head, block.a + row, column)))
        residuals.add(rows, block)
    assert worst is not None
    return Checked(worst, replace(residuals.test(), head=head))
