"""Which keys queries see, as a rule: causal, a window, blocks, a prefix, or none that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["ALIGNED", "Pattern", "pattern", "read_on"]

ALIGNED = {"end": "aligned at the end", "start": "aligned at the start",
           "neither": "aligned at neither end"}  # fmt: skip

BEYOND = 8  # keys that are looked at beyond twice the width of a window


@dataclass(frozen=True)
class Pattern:
    """A rule for what is visible.

    ``name``: none, causal, window, mirrored, inverted, prefix, blocks, sinks, irregular or empty.
    ``before`` and ``after``: how far a query sees, None where as far as was asked.  ``own``:
    whether it sees itself.  ``alignment``: where the last query stands if there are fewer queries
    than keys, "" where that was not asked or cannot be told.  ``size`` of a prefix, block or sink.
    ``counts``: of visible keys, for each query.  ``ahead``: whether any query sees a later key.
    """

    name: str
    before: int | None
    after: int | None
    alignment: str
    counts: tuple[int, ...]
    size: int = 0
    ahead: bool = False

    @property
    def window(self) -> int | None:
        """How many keys a causal query sees, itself among them; None where there is no window."""
        return None if self.before is None or self.after != 0 else self.before + 1

    @property
    def words(self) -> str:
        """As one would say it."""
        if self.name == "causal" and self.after == -1:
            return "causal, without the query's own key"
        known = {
            "none": "no mask", "causal": "causal", "empty": "nothing visible",
            "mirrored": "a query sees itself and later keys only (causal the other way)",
            "inverted": "a query sees later keys only (the inverse of a causal mask)",
            "prefix": f"causal after a prefix of {self.size} keys that all see",
            "blocks": f"blocks of {self.size} keys", "irregular": "an irregular mask",
            "causal blocks": f"causal within blocks of {self.size} keys",
            "sinks": f"causal, a window of {(self.before or 0) + 1} keys and the first {self.size}",
        }  # fmt: skip
        if self.name == "window":
            if self.after == 0:
                return f"causal, a window of {self.window} keys"
            sides = [f"{n if n is not None else 'all'} {side}"
                     for n, side in ((self.before, "before"), (self.after, "after"))]  # fmt: skip
            return f"a window of {' and '.join(sides)}"
        return known[self.name]


def pattern(square: Tensor, wide: Tensor | None = None) -> Pattern:
    """The rule of what is visible in squares (n, n), and where queries stand in (T, S), T < S.

    >>> pattern(torch.ones(4, 4).tril().bool(), torch.ones(2, 4).tril(2).bool()).alignment
    'end'
    """
    counts = tuple(square.sum(-1).tolist())
    name, before, after, size = _rule(square)
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
    return Pattern(name, before, after, alignment, counts, size, ahead)


def read_on(rule: Pattern, see: Callable[[int], Tensor], n: int) -> tuple[Pattern, int]:
    """The rule, read of more keys where few distances beyond its edge were among those of n keys.

    ``see`` gives what is visible (m, m).  A key that is missing at one distance looks like the edge
    of a window until the next is seen.  What the code raises at that size is left to who calls.

    >>> gap = lambda n: (o := torch.arange(n)[:, None] - torch.arange(n)).ge(0) & (o != 7)
    >>> first = pattern(gap(8))
    >>> first.name, read_on(first, gap, 8)[0].name
    ('window', 'irregular')
    """
    edge = 1 + max(rule.before or 0, rule.after or 0)
    if rule.name not in ("window", "sinks") or 2 * edge <= n:
        return rule, n
    more = 2 * edge + BEYOND
    return replace(pattern(see(more)), alignment=rule.alignment), more


def _rule(seen: Tensor) -> tuple[str, int | None, int | None, int]:
    """The name, how far before and after, and a size."""
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
