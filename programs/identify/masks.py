"""Identify the rule by which a mask shows keys, and how attention code uses the masks it is given.

The rule is causal, a window, blocks, a prefix, or unknown.  Further parts are the meaning of True,
how keys are hidden, the effect of numbers, and what a query reads that sees nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numeric.devices import name_of, unit_roundoff
from ..execution.draw import Draw
from ..finding import Identity, Part, format_number, nearest_factor
from ..reading.weights import KEYS, drawn, weights_of
from ..subjects import Attention, Mask

ALIGNED = {
    "end": "aligned at the end",
    "start": "aligned at the start",
    "neither": "aligned at neither end",
}

BEYOND = 8  # keys that are read beyond twice the width of a window


@dataclass(frozen=True)
class Pattern:
    """A rule for what is visible.

    ``name``: none, causal, window, mirrored, inverted, prefix, blocks, chunks, sinks, irregular or
    empty.  ``before`` and ``after``: how far a query sees, None if unlimited in the read range.
    ``alignment``: where the last query stands if there are fewer queries than keys, "" if not read
    or ambiguous.  ``size``: of a prefix, block or sink.  ``around``: how many keys before and after
    a chunk its queries see; None means all.  ``counts``: visible keys per query.  ``ahead``:
    whether any query sees a later key.
    """

    name: str
    before: int | None
    after: int | None
    alignment: str
    counts: tuple[int, ...]
    size: int = 0
    ahead: bool = False
    around: tuple[int | None, int | None] = (0, 0)

    @property
    def window(self) -> int | None:
        """The number of keys that a causal query sees, including itself; None without a window."""
        return None if self.before is None or self.after != 0 else self.before + 1

    @property
    def words(self) -> str:
        """The rule in words."""
        if self.name == "causal" and self.after == -1:
            return "causal, without the query's own key"
        known = {
            "none": "no mask",
            "causal": "causal",
            "empty": "nothing visible",
            "mirrored": "a query sees itself and later keys only (causal the other way)",
            "inverted": "a query sees later keys only (the inverse of a causal mask)",
            "prefix": f"causal after a prefix of {self.size} keys visible to all queries",
            "blocks": f"blocks of {self.size} keys",
            "irregular": f"{'' if self.ahead else 'causal, '}an irregular mask",
            "causal blocks": f"causal within blocks of {self.size} keys",
            "sinks": f"causal, a window of {(self.before or 0) + 1} keys and the first {self.size}",
        }
        if self.name == "window":
            if self.before == self.after == 0:
                return "each token by itself"
            if self.after == 0:
                return f"causal, a window of {self.window} keys"
            return f"a window of {_far(self.before)} before and {_far(self.after)} after"
        if self.name == "chunks":
            sides = zip(self.around, ("before", "behind"), strict=True)
            told = " and ".join(f"{_far(n)} {side}" for n, side in sides if n != 0)
            return f"blocks of {self.size} keys and {told} them"
        return known[self.name]

    def parts(self, seen: str, more: str = "") -> Iterator[Part]:
        """Yield the rule, with ``seen`` as its evidence, and the alignment."""
        value = {
            "rule": self.name,
            "before": self.before,
            "after": self.after,
            "window": self.window,
            "counts": list(self.counts[:16]),
            "ahead": self.ahead,
        }
        yield Part("mask", value, self.words + more, seen, certain=self.name != "irregular")
        if self.alignment:
            words = ALIGNED[self.alignment]
            yield Part("alignment", self.alignment, words, "3 queries and 7 keys")


def _far(keys: int | None) -> int | str:
    return "all" if keys is None else keys


def pattern(square: Tensor, wide: Tensor | None = None) -> Pattern:
    """Find the rule of a visibility matrix (n, n), and the alignment of another (T, S) with T < S.

    >>> pattern(torch.ones(4, 4).tril().bool(), torch.ones(2, 4).tril(2).bool()).alignment
    'end'
    """
    counts = tuple(square.sum(-1).tolist())
    name, before, after, size = _rule(square)
    around: tuple[int | None, int | None] = (0, 0)
    if name == "irregular" and (chunks := _chunks(square)) is not None:
        name, size, around = "chunks", *chunks
    alignment = ""
    if wide is not None and name in ("causal", "window", "mirrored", "inverted"):
        T, S = wide.shape
        t, s = torch.arange(T)[:, None], torch.arange(S)[None, :]
        fit = []
        for word, start in (("end", S - T), ("start", 0)):
            o = s - (t + start)
            low = -S if before is None else -before
            high = S if after is None else after
            if bool((((o >= low) & (o <= high)) == wide).all()):
                fit.append(word)
        alignment = fit[0] if len(fit) == 1 else "" if fit else "neither"
    ahead = bool(square.triu(1).any())
    return Pattern(name, before, after, alignment, counts, size, ahead, around)


def pattern_of_more_keys(
    rule: Pattern, see: Callable[[int], Tensor], n: int
) -> tuple[Pattern, int]:
    """Read the rule from more keys if n keys show few distances beyond its edge.

    ``see`` gives the visibility matrix (m, m).  A key missing at a single distance looks like the
    edge of a window until the next key is seen.  Exceptions of the code at that size propagate.

    >>> gap = lambda n: (o := torch.arange(n)[:, None] - torch.arange(n)).ge(0) & (o != 7)
    >>> first = pattern(gap(8))
    >>> first.name, pattern_of_more_keys(first, gap, 8)[0].name
    ('window', 'irregular')
    """
    edge = 1 + max(rule.before or 0, rule.after or 0)
    if rule.name not in ("window", "sinks") or 2 * edge <= n:
        return rule, n
    more = 2 * edge + BEYOND
    return replace(pattern(see(more)), alignment=rule.alignment), more


def _rule(seen: Tensor) -> tuple[str, int | None, int | None, int]:
    """Return the name, the reach before and after, and a size."""
    n = seen.shape[0]
    t, s = torch.arange(n)[:, None], torch.arange(n)[None, :]
    offset = s - t
    if not bool(seen.any()):
        return "empty", 0, 0, 0
    if bool(seen.all()):
        return "none", None, None, 0
    low, high = int(offset[seen].min()), int(offset[seen].max())
    if bool((((offset >= low) & (offset <= high)) == seen).all()):
        before = None if low == -(n - 1) else -low
        after = None if high == n - 1 else high
        if before is None:
            return ("causal" if high in (0, -1) else "window"), None, after, 0
        if after is None and low in (0, 1):
            return ("mirrored" if low == 0 else "inverted"), before, None, 0
        return "window", before, after, 0
    causal = offset <= 0
    for size in range(2, n):
        block = (t // size) == (s // size)
        if torch.equal(seen, block):
            return "blocks", None, None, size
        if torch.equal(seen, block & causal):
            return "causal blocks", None, 0, size
        if torch.equal(seen, causal | (s < size)):
            return "prefix", None, 0, size
    last = seen[-1]
    hidden = (~last).nonzero()[:, 0].tolist()
    if hidden and bool((seen <= causal).all()):
        size, width = hidden[0], n - 1 - hidden[-1]
        if size and torch.equal(seen, causal & ((offset > -width) | (s < size))):
            return "sinks", width - 1, 0, size
    return "irregular", None, None, 0


def _chunks(seen: Tensor) -> tuple[int, tuple[int | None, int | None]] | None:
    """Return the size of chunks whose queries see the same keys, and their reach before and after.

    A side that fewer than half of the queries reach past may just as well have a gap, so it does
    not count as an edge.

    >>> t, s = torch.arange(8)[:, None], torch.arange(8)
    >>> _chunks(s // 2 <= t // 2), _chunks((s // 2 <= t // 2) & (s // 2 >= t // 2 - 1))
    ((2, (None, 0)), (2, (2, 0)))
    """
    n = seen.shape[0]
    for size in range(2, n // 2 + 1):
        start = torch.arange(n)[:, None] // size * size
        offset, last = torch.arange(n) - start, int(start[-1])
        low, high = int(offset[seen].min()), int(offset[seen].max())
        before = None if low <= -last else -low
        behind = None if high >= n - 1 else high - size + 1
        if not torch.equal(seen, (offset >= low) & (offset <= high)):
            continue
        if all(far is None or 0 <= 2 * far <= last for far in (before, behind)):
            return size, (before, behind)
    return None


LARGE = 160


def identify_mask(code: Mask, draw: Draw) -> Identity:
    """Identify masks of squares and of 3 queries with 7 keys; ``draw`` is unused."""
    del draw
    square, wide = (_plane(code.mask(T, S)) for T, S in ((LARGE, LARGE), (3, 7)))
    visible, says = _visible(code, square)
    wide_visible, _ = _visible(code, wide)
    rule, keys = pattern_of_more_keys(
        pattern(visible, wide_visible), lambda n: _visible(code, _plane(code.mask(n, n)))[0], LARGE
    )
    few = ", ".join(map(str, rule.counts[:8]))
    parts = list(rule.parts(f"{keys} queries and keys, the first of which see {few}"))
    dtype = name_of(square.dtype)
    truth = square.dtype == torch.bool
    parts.append(
        Part(
            "polarity",
            says,
            f"True means {says}" if truth else says,
            "as its maker says" if truth else "the values of the mask",
        )
    )
    parts.append(Part("dtype", dtype, dtype, "the tensor"))
    answers: tuple[str, ...] = ()
    if truth and rule.name in ("mirrored", "inverted"):
        other = "hidden" if says == "visible" else "visible"
        answers = (f"is the mask causal? no: {rule.words}; it would be if True meant {other}",)
    return Identity("mask", tuple(parts), answers)


def _plane(mask: Tensor) -> Tensor:
    """The last two axes."""
    if mask.dim() < 2:
        raise ValueError(f"a mask has axes of queries and keys; this one is {tuple(mask.shape)}")
    return mask.detach().cpu().reshape(-1, *mask.shape[-2:])[0]


def _visible(code: Mask, mask: Tensor) -> tuple[Tensor, str]:
    """Return the visibility matrix, and words for how a mask expresses it."""
    if mask.dtype == torch.bool:
        if code.true_means == "visible":
            return mask, "visible"
        return ~mask, "hidden"
    least = float(mask.min())
    added = mask.double()
    if not code.adds and least >= 0 and set(torch.unique(added).tolist()) <= {0.0, 1.0}:
        return added > 0, "1 for visible, 0 for hidden"
    if least >= 0:
        return torch.ones_like(added, dtype=torch.bool), "numbers added to scores"
    hidden = added <= min(-1e3, least / 2)
    how = "−inf" if least == -torch.inf else format_number(least)
    return ~hidden, f"{how} added to what is hidden"


def mask_parts(code: Attention, draw: Draw, groups: list[int] | None) -> Iterator[Part]:
    """Yield what truth values mean, what numbers do, and what a fully masked query reads."""
    if "bool" in code.masks:
        yield _polarity(code, draw)
    if "float" in code.masks:
        yield _numbers(code, draw)
    if code.masks:
        yield _hidden_row(code, draw, groups)


def _polarity(code: Attention, draw: Draw) -> Part:
    """Read the meaning of True from a mask that is True for keys 0 and 1."""
    q, k = drawn(code, draw, KEYS, KEYS, 21)
    mask = torch.zeros(1, 1, KEYS, KEYS, dtype=torch.bool, device=draw.device)
    mask[..., :2] = True
    plain = weights_of(code, q, k)[0, :, -1] > 0
    seen = weights_of(code, q, k, mask)[0, :, -1] > 0
    marked = mask[0, 0, -1].cpu()
    words, value = "truth values of a mask that neither show nor hide", "other"
    shows = bool((seen == (plain & marked)).all())
    if shows or bool((seen == (plain & ~marked)).all()):
        value = "visible" if shows != code.true_hides else "hidden"
        words = f"True means {value}"
    elif bool((seen == plain).all()):
        words, value = "a mask of truth values that does nothing", "none"
    return Part("polarity", value, words, f"the last of {KEYS} queries, with the first 2 keys True")


def _numbers(code: Attention, draw: Draw) -> Part:
    """Whether numbers are added to scores unchanged."""
    q, k = drawn(code, draw, KEYS, KEYS, 21)
    mask = draw.normal(1, 1, KEYS, KEYS, salt=23)
    mask = mask[:, :, -1:].expand_as(mask) if code.by_key else mask
    before, after = weights_of(code, q, k)[0, :, -1], weights_of(code, q, k, mask)[0, :, -1]
    use = (before > 0).all(0)
    y = (after.log() - before.log())[:, use]
    x = mask[0, 0, -1].double().cpu()[use].expand_as(y)
    y, x = y - y.mean(-1, keepdim=True), x - x.mean(-1, keepdim=True)
    slope = nearest_factor(x, y)
    off = float((y - slope * x).abs().nan_to_num(posinf=1e9, neginf=1e9, nan=1e9).max())
    tol = 64 * unit_roundoff(draw.dtype) * (KEYS + 8 + code.width)
    seen = f"random numbers as a mask: the logarithms of weights change by them times {slope:.4g}"
    if off > tol:
        seen = f"what the weights change by is {off:.2g} from any multiple of them"
        return Part("numbers", None, "a mask of numbers that is not added to the scores", seen)
    plain = abs(slope - 1) <= tol
    words = "" if plain else f"a mask of numbers multiplied by {slope:.4g} before it is added"
    return Part("numbers", slope if not plain else 1.0, words, seen)


def _hidden_row(code: Attention, draw: Draw, groups: list[int] | None) -> Part:
    """What the last query reads if every key is hidden, for each form of mask the code accepts."""
    assert code.attend is not None  # checked by the caller
    q, k = drawn(code, draw, KEYS, KEYS, 21)
    v = draw.normal(1, code.groups, KEYS, code.width, salt=24)
    ways: dict[str, Tensor] = {}
    if "bool" in code.masks:
        shown = torch.ones(1, 1, KEYS, KEYS, dtype=torch.bool, device=draw.device)
        shown[..., 0 if code.by_key else -1 :, :] = False
        ways["all False"] = shown
    if "float" in code.masks:
        for name, value in (("−inf", -torch.inf), ("the least number", torch.finfo(q.dtype).min)):
            added = torch.zeros(1, 1, KEYS, KEYS, dtype=q.dtype, device=draw.device)
            added[..., 0 if code.by_key else -1 :, :] = value
            ways[name] = added
    told = {
        name: _reads(code.attend(q, k, v, mask)[0, :, -1], v, groups) for name, mask in ways.items()
    }
    kinds = set(told.values())
    what = kinds.pop() if len(kinds) == 1 else ", ".join(f"{w} ({n})" for n, w in told.items())
    words = f"a query that sees nothing reads {what}"
    return Part("hidden rows", told, words, f"the last of {KEYS} queries, each way of hiding")


def _reads(row: Tensor, v: Tensor, groups: list[int] | None) -> str:
    """Zeros, NaN, the mean of all values, or something else."""
    if not bool(row.isfinite().all()):
        return "NaN"
    if not bool(row.any()):
        return "zeros"
    mean = v[0].double().mean(-2)
    if groups is None:
        return "some values"
    off = float((row.double() - mean[groups]).abs().max())
    return "the mean of all values" if off <= 64 * KEYS * unit_roundoff(v.dtype) else "some values"
