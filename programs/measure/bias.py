"""Probes of code that makes what is added to scores: offsets, last rows, slopes, buckets, windows.

Rows of a bias are compared up to a number for each query, which softmax does not see: so a bias
s·key is −s·(query − key).  Sizes go from small to large.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...numeric.profile import unit_roundoff
from ..draw import Draw
from ..finding import Seen
from ..identify.offsets import by_offset, heads_of, published_slopes, slopes_of, t5_bucket
from ..identify.windows import coordinates, offsets_in, shared
from ..subjects import Bias
from .base import Outcome, broken, held, not_asked, probe, undecided

__all__ = ["buckets", "last_rows", "offset_only", "own_index", "slopes"]

LENGTHS = (3, 6, 17, 40)
WINDOWS = ((2, 2), (2, 3), (3, 5), (4, 4), (2, 3, 4), (3, 3, 3))
FAR = 300  # past the last bucket of T5


def _square(code: Bias, n: int) -> tuple[Tensor, torch.dtype]:
    assert code.bias is not None  # who calls has seen it
    raw = code.bias(n, n)
    return heads_of(raw, n, n), raw.dtype


@probe("offset-only", "bias")
def offset_only(code: Bias, draw: Draw) -> Outcome:
    """Entries of one offset are equal, each less that of the query's own key."""
    del draw
    if code.bias is None:
        return _window_offsets(code)
    error = bound = 0.0
    before: Tensor | None = None
    for n in LENGTHS:
        bias, dtype = _square(code, n)
        found = by_offset(bias, dtype, causal=code.causal)
        if not found.only:
            h, t, s = found.at
            u, r = found.like
            here, there = (float(bias[h, a, b] - bias[h, a, a]) for a, b in ((t, s), (u, r)))
            seen = Seen({"queries": n, "keys": n, "head": h, "offset": s - t},
                        (f"query {t}, key {s}, less its own key", here),
                        (f"query {u}, key {r}, less its own key", there),
                        found.off, found.tol)  # fmt: skip
            return broken("two entries of one offset differ", seen, queries=n, keys=n)
        error, bound = max(error, found.off), max(bound, found.tol)
        if before is not None and (other := _of_other_length(before, bias, found.tol)):
            return broken(f"with {n} keys it is another than with {before.shape[-1]}", other,
                          queries=n, keys=n)  # fmt: skip
        before = bias
    return held(f"entries of one offset are equal at {', '.join(map(str, LENGTHS))} keys",
                error, bound, queries=LENGTHS[-1], keys=LENGTHS[-1])  # fmt: skip


def _of_other_length(short: Tensor, long: Tensor, allowed: float) -> Seen | None:
    """Where the bias of fewer tokens is not that of more, each less that of the query's own key."""
    n = short.shape[-1]
    here, there = (b - b.diagonal(dim1=-2, dim2=-1)[..., None] for b in (short, long[:, :n, :n]))
    apart = (here - there).abs().nan_to_num()
    if float(apart.max()) <= 2 * allowed:
        return None
    h, t, s = (int(i) for i in torch.unravel_index(apart.argmax(), apart.shape))
    return Seen({"head": h, "query": t, "key": s},
                (f"with {n} keys, less its own key", float(here[h, t, s])),
                (f"with {long.shape[-1]} keys, less its own key", float(there[h, t, s])),
                float(apart.max()), 2 * allowed)  # fmt: skip


def _window_offsets(code: Bias) -> Outcome:
    """The same with offsets of two axes and more, in the index or in the bias of a window."""
    asked = 0
    for sizes in WINDOWS:
        made = _of_window(code, sizes)
        if made is None:
            continue
        asked += 1
        number, _ = offsets_in(sizes)
        for o in torch.unique(number).tolist():
            places = (number == o).nonzero()
            line = made[:, places[:, 0], places[:, 1]]
            apart = line.max(-1).values - line.min(-1).values
            if float(apart.max()) > 0:  # the same entry of a table: no rounding
                h = int(apart.argmax())
                a, b = (places[int(i)].tolist() for i in (line[h].argmax(), line[h].argmin()))
                where = coordinates(sizes).tolist()
                seen = Seen({"window": list(sizes), "head": h},
                            (f"query at {where[a[0]]}, key at {where[a[1]]}", float(line[h].max())),
                            (f"query at {where[b[0]]}, key at {where[b[1]]}", float(line[h].min())),
                            float(apart.max()))  # fmt: skip
                return broken("two pairs of places with one offset differ", seen)
    if not asked:
        return undecided("no window of two or three axes was taken")
    return held(f"places of one offset have one entry in {asked} windows", 0.0, 0.0)


def _of_window(code: Bias, sizes: tuple[int, ...]) -> Tensor | None:
    """The index or the bias of a window, (H, R, R); None where the code refuses the sizes."""
    try:
        if code.index is not None:
            return code.index(sizes).double().cpu()[None]
        if code.window is not None and len(sizes) == 2:
            return code.window(*sizes).double().cpu()
    except Exception:  # noqa: BLE001 (code of one size, or of two axes)
        return None
    return None


@probe("last-rows", "bias")
def last_rows(code: Bias, draw: Draw) -> Outcome:
    """bias(T, S) is the last T rows of bias(S, S), for one query, two and more."""
    del draw
    assert code.bias is not None  # else it is not asked
    error = bound = 0.0
    for T, S in ((1, 3), (1, 6), (2, 6), (5, 17)):
        full, dtype = _square(code, S)
        raw = code.bias(T, S)
        few, rows = heads_of(raw, T, S), full[:, -T:]
        t, s = torch.arange(T)[:, None] + S - T, torch.arange(S)[None, :]
        use = rows.isfinite() & ((s <= t) if code.causal else torch.ones_like(t == s))
        if bool((few.isfinite() != rows.isfinite())[use].any()):
            h, i, j = ((few.isfinite() != rows.isfinite()) & use).nonzero()[0].tolist()
            hidden, shown = float(few[h, i, j]), float(rows[h, i, j])
            seen = _rows_seen(T, S, h, i, j, hidden, shown, abs(hidden - shown), 0.0)
            return broken("one hides a key that the other shows", seen)
        apart = _less_first(torch.where(use, few - rows, torch.nan))
        tol = 12 * unit_roundoff(dtype) * float(torch.where(use, rows.abs(), 0.0).max())
        off = apart.abs().nan_to_num()
        if not float(off.max()) <= tol:
            h, i, j = (int(x) for x in torch.unravel_index(off.argmax(), off.shape))
            here, there = float(few[h, i, j]), float(rows[h, i, j])
            seen = _rows_seen(T, S, h, i, j, here, there, float(off.max()), tol)
            return broken("the bias of few queries is not the last rows of that of all", seen)
        error, bound = max(error, float(off.max())), max(bound, tol)
    return held("1, 2 and 5 queries get the last rows, up to a number for each", error, bound,
                queries=5, keys=17)  # fmt: skip


def _rows_seen(
    T: int, S: int, h: int, i: int, j: int, here: float, there: float, off: float, tol: float
) -> Seen:
    return Seen({"queries": T, "keys": S, "head": h},
                (f"bias of {T} queries and {S} keys at [{i}, {j}]", here),
                (f"bias of {S} and {S} at [{S - T + i}, {j}]", there), off, tol)  # fmt: skip


def _less_first(rows: Tensor) -> Tensor:
    """Rows less their mean over what is known."""
    return rows - rows.nanmean(-1, keepdim=True)


@probe("slopes-as-declared", "bias")
def slopes(code: Bias, draw: Draw) -> Outcome:
    """The slope of each head, read over 39 distances, is the declared or published one."""
    del draw
    said = code.declared
    if code.bias is None or said is None or not (said.slopes or said.name == "alibi"):
        return not_asked("no slopes are declared (bias:name=alibi, or slopes=..)")
    n = LENGTHS[-1]
    bias, dtype = _square(code, n)
    found = slopes_of(by_offset(bias, dtype, causal=code.causal))
    heads = said.heads or code.heads
    want = list(said.slopes or published_slopes(heads))
    if found is None:
        first = by_offset(bias, dtype, causal=code.causal).past()[0, :3].tolist()
        seen = Seen({"keys": n, "head": 0}, ("bias at distances 0, 1, 2", first),
                    ("a line with slope", want[0]), abs(first[2] + 2 * want[0]))  # fmt: skip
        return broken("the bias is no line in the distance", seen, keys=n)
    have, radius = found
    if len(have) != len(want):
        seen = Seen({"keys": n}, ("heads", len(have)), ("slopes declared", len(want)),
                    float(abs(len(have) - len(want))))  # fmt: skip
        return broken("the bias has another number of heads than slopes are declared", seen, keys=n)
    wanted = torch.tensor(want, dtype=torch.float64)
    # a slope is computed as a power in float32 by most code: 8 roundings, and once stored
    allowed = radius + (8 * 2.0**-24 + unit_roundoff(dtype)) * wanted.abs()
    off = (have - wanted).abs()
    wrong = (~(off <= allowed)).nonzero()[:, 0].tolist()
    if wrong:
        h = wrong[0]
        seen = Seen({"keys": n, "head": h, "heads": heads}, ("slope", float(have[h])),
                    ("declared slope", want[h]), float(off[h]), float(allowed[h]))  # fmt: skip
        return broken(f"the slope of head {h} of {heads} is another", seen, keys=n)
    most = float(allowed.max())
    return held(f"all {heads} slopes are as declared", float(off.max()), most, keys=n)


@probe("buckets-as-declared", "bias")
def buckets(code: Bias, draw: Draw) -> Outcome:
    """Offsets of one bucket have one entry, offsets of two have two."""
    del draw
    said = code.declared
    if code.bias is None or said is None or not (said.buckets or said.name == "t5"):
        return not_asked("no buckets are declared (bias:name=t5, or buckets=..)")
    if said.heads is not None and said.heads != code.heads:
        seen = Seen({}, ("heads", code.heads), ("heads declared", said.heads),
                    float(abs(code.heads - said.heads)))  # fmt: skip
        return broken("the bias has another number of heads than is declared", seen)
    count, distance = said.buckets or 32, said.distance or 128
    both = not code.causal if said.bidirectional is None else said.bidirectional
    n = max(FAR, 2 * distance)
    bias, dtype = _square(code, n)
    found = by_offset(bias, dtype, causal=code.causal and not both)
    values = found.values
    offset = torch.arange(-(n - 1), n)
    use = ~values.isnan().any(0)
    every = by_offset(bias, dtype)
    if float(every.values.nan_to_num().abs().max()) <= every.tol:
        return undecided("all entries are alike, so that no bucket can be told from another")
    number = t5_bucket(offset, count, distance, both=both)
    # of each bucket the offset that is nearest to 0 stands for it
    order = offset.abs().argsort(stable=True)
    first: dict[int, int] = {}
    for i, b in zip(order.tolist(), number[order].tolist(), strict=True):
        if bool(use[i]):
            first.setdefault(b, i)
    stands = torch.tensor([first.get(b, 0) for b in number.tolist()])
    apart = torch.where(use, (values - values[:, stands]).abs().amax(0), 0.0)
    those = torch.tensor(list(first.values()))
    same = (values[:, those, None] - values[:, None, those]).abs().amax(0) <= found.tol
    pairs = [(i, int(stands[i]), False) for i in order.tolist() if float(apart[i]) > 2 * found.tol]
    pairs += [(int(those[i]), int(those[j]), True) for i, j in same.triu(1).nonzero().tolist()]
    if pairs:  # the one that is nearest to offset 0
        i, j, alike = min(pairs, key=lambda one: sorted(abs(int(offset[k])) for k in one[:2])[::-1])
        return _bucket_broken(code, values, (i, j), alike, number, (n, found.tol))
    sides = "both directions" if both else "one direction"
    return held(f"{len(first)} of {count} buckets, {sides}, distance {distance}", found.off,
                found.tol, keys=n)  # fmt: skip


def _bucket_broken(
    code: Bias, values: Tensor, places: tuple[int, int], alike: bool, number: Tensor,
    known: tuple[int, float],
) -> Outcome:  # fmt: skip
    """Two offsets in the wrong buckets, with as few keys as have both where those show it."""
    n, tol = known
    a, b = (i - (n - 1) for i in places)
    declared = [int(number[i]) for i in places]
    few = max(abs(a), abs(b)) + 1
    bias, dtype = _square(code, few)
    again = by_offset(bias, dtype)
    smaller = again.values[:, [a + few - 1, b + few - 1]]
    off = (smaller[:, 0] - smaller[:, 1]).abs()
    shows = float(off.max()) <= again.tol if alike else float(off.max()) > 2 * again.tol
    keys, tol = (few, again.tol) if shows else (n, tol)
    two = smaller if shows else values[:, list(places)]
    h = int((two[:, 0] - two[:, 1]).abs().argmax())
    there = f"bias at offset {b}" + (", which should differ" if alike else "")
    seen = Seen({"keys": keys, "head": h, "declared buckets": declared},
                (f"bias at offset {a}", float(two[h, 0])), (there, float(two[h, 1])),
                float((two[h, 0] - two[h, 1]).abs()), 2 * tol)  # fmt: skip
    why = "two buckets are declared for them" if alike else "one bucket is declared for both"
    return broken(f"offsets {a} and {b}: {why}", seen, keys=keys)


@probe("offsets-have-own-index", "bias")
def own_index(code: Bias, draw: Draw) -> Outcome:
    """Distinct offsets have distinct places, on windows of two and three axes."""
    del draw
    if code.index is None:
        return not_asked("the code shows no index into its table")
    taken, refused = [], 0
    for sizes in WINDOWS:
        try:
            index = code.index(sizes).long().cpu()
        except Exception:  # noqa: BLE001 (code of one size, or of two axes)
            refused += 1
            continue
        places, clash = shared(index, sizes)
        if clash is not None:
            where = coordinates(sizes)
            told = [f"{(where[k] - where[q]).tolist()}" for q, k in (clash[:2], clash[2:])]
            at = int(index[clash[0], clash[1]])
            _, count = offsets_in(sizes)
            seen = Seen({"window": list(sizes), "offsets": count, "places": places},
                        (f"index of offset {told[0]}", at),
                        (f"index of offset {told[1]}, which should differ", at), 0.0)  # fmt: skip
            return broken("two offsets share a place in the table", seen)
        taken.append(sizes)
    if not taken:
        return undecided(f"none of {refused} windows of two or three axes was taken")
    told_sizes = ", ".join("×".join(map(str, sizes)) for sizes in taken)
    return held(f"each offset has a place of its own: windows {told_sizes}")
