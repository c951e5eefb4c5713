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
from ..identify.bias import coordinates, offsets_in, shared
from ..identify.offsets import by_offset, heads_of, published_slopes, slopes_of, t5_bucket
from ..subjects import Bias
from .base import Outcome, broken, held, probe, undecided

LENGTHS = (3, 6, 17, 40)
WINDOWS = ((2, 2), (2, 3), (3, 5), (4, 4), (2, 3, 4), (3, 3, 3))
FAR = 300  # past the last bucket of T5


def _square(code: Bias, n: int) -> tuple[Tensor, torch.dtype]:
    assert code.bias is not None  # who calls has seen it
    raw = code.bias(n, n)
    return heads_of(raw, n, n), raw.dtype


@probe("slopes-as-declared", "bias")
def slopes(code: Bias, draw: Draw) -> Outcome:
    """The slope of each head, read over 39 distances, is the declared or published one."""
    del draw
    said = code.declared
    assert said is not None  # else it is not asked
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
    assert said is not None  # else it is not asked
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
    assert code.index is not None  # else it is not asked
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
