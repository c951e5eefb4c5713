"""Code that makes what is added to scores: slopes and buckets as declared, and its index.

Rows of a bias are compared up to a number for each query, which softmax does not see: so a bias
s·key is −s·(query − key).  What is compared is what identification reads by the offset.
"""

from __future__ import annotations

import torch

from attnproof.theorems.definitions.references import t5_bucket

from ...numeric.devices import unit_roundoff
from ..draw import Draw
from ..finding import Seen
from ..identify.bias import coordinates, offsets_in, shared
from ..identify.offsets import ByOffset, by_offset, heads_of, published_slopes, slopes_of
from ..subjects import Bias
from .base import Outcome, broken, compared, held, probe, undecided

NEAR = 40  # keys: enough for a slope
WINDOWS = ((2, 2), (2, 3), (3, 5), (4, 4), (2, 3, 4), (3, 3, 3))
FAR = 300  # past the last bucket of T5


def _square(code: Bias, n: int, *, causal: bool = False) -> tuple[ByOffset, torch.dtype]:
    """The bias of n queries and n keys by the offset, and its dtype."""
    assert code.bias is not None  # who calls has seen it
    raw = code.bias(n, n)
    return by_offset(heads_of(raw, n, n), raw.dtype, causal=causal), raw.dtype


def _heads(have: int, want: int, told: str) -> Outcome | None:
    """Broken where there is another number of heads than is declared."""
    if have == want:
        return None
    seen = Seen({"keys": NEAR}, ("heads", have), ("heads declared", want), float(abs(have - want)))
    return broken(f"the bias has another number of heads than {told}", seen)


@probe("slopes-as-declared", "bias")
def slopes(code: Bias, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """The slope of each head, read over 39 distances, is the declared or published one."""
    said = code.declared
    assert said is not None  # else it is not asked
    by, dtype = _square(code, NEAR, causal=code.causal)
    heads = said.heads or code.heads
    want = torch.tensor(said.slopes or published_slopes(heads), dtype=torch.float64)
    found = slopes_of(by)
    if found is None:
        first = by.past()[0, :3].tolist()
        slope = float(want[0])
        seen = Seen(
            {"keys": NEAR, "head": 0},
            ("bias at distances 0, 1, 2", first),
            ("a line with slope", slope),
            abs(first[2] + 2 * slope),
        )
        return broken("the bias is not linear in the distance", seen, keys=NEAR)
    have, radius = found
    # a slope is computed as a power in float32 by most code: 8 roundings, and once stored
    allowed = radius + (8 * 2.0**-24 + unit_roundoff(dtype)) * want.abs()
    return _heads(len(have), len(want), "slopes are declared") or compared(
        have,
        want,
        allowed,
        lambda h: (
            f"the slope of head {h} of {heads} is another",
            {"keys": NEAR, "head": h, "heads": heads},
            "slope",
        ),
        f"all {heads} slopes are as declared",
        there="declared slope",
        keys=NEAR,
    )


@probe("buckets-as-declared", "bias")
def buckets(code: Bias, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """Offsets of one bucket have one entry, offsets of two have two."""
    said = code.declared
    assert said is not None  # else it is not asked
    if wrong := _heads(code.heads, said.heads or code.heads, "is declared"):
        return wrong
    count, distance = said.buckets or 32, said.distance or 128
    both = not code.causal if said.bidirectional is None else said.bidirectional
    n = max(FAR, 2 * distance)
    found, _ = _square(code, n, causal=code.causal and not both)
    values, offset = found.values, torch.arange(-(n - 1), n)
    every = found if not (code.causal and not both) else _square(code, n)[0]
    if float(every.values.nan_to_num().abs().max()) <= every.tol:
        return undecided("all entries are equal, so the buckets cannot be told apart")
    number = t5_bucket(offset, count, distance, both=both)
    # of each bucket the offset that is nearest to 0 stands for it
    order = offset.abs().argsort(stable=True).tolist()
    use = ~values.isnan().any(0)
    first: dict[int, int] = {}
    for i in order:
        if bool(use[i]):
            first.setdefault(int(number[i]), i)
    stands = torch.tensor([first.get(b, 0) for b in number.tolist()])
    apart = torch.where(use, (values - values[:, stands]).abs().amax(0), 0.0)
    those = torch.tensor(list(first.values()))
    same = (values[:, those, None] - values[:, None, those]).abs().amax(0) <= found.tol
    pairs = [(i, int(stands[i]), False) for i in order if float(apart[i]) > 2 * found.tol]
    pairs += [(int(those[i]), int(those[j]), True) for i, j in same.triu(1).nonzero().tolist()]
    if not pairs:
        sides = "both directions" if both else "one direction"
        return held(
            f"{len(first)} of {count} buckets, {sides}, distance {distance}",
            found.off,
            found.tol,
            keys=n,
        )
    # the one that is nearest to offset 0, with as few keys as have both offsets if that shows it
    i, j, alike = min(pairs, key=lambda one: sorted(abs(int(offset[k])) for k in one[:2])[::-1])
    a, b = int(offset[i]), int(offset[j])
    keys = max(abs(a), abs(b)) + 1
    again, _ = _square(code, keys)
    two = again.values[:, [a + keys - 1, b + keys - 1]]
    off = float((two[:, 0] - two[:, 1]).abs().max())
    if (off <= again.tol) != alike or (not alike and off <= 2 * again.tol):
        keys, again, two = n, found, values[:, [i, j]]
    h = int((two[:, 0] - two[:, 1]).abs().argmax())
    here, there = (float(x) for x in two[h])
    seen = Seen(
        {"keys": keys, "head": h, "declared buckets": [int(number[i]), int(number[j])]},
        (f"bias at offset {a}", here),
        (f"bias at offset {b}{', which should differ' * alike}", there),
        abs(here - there),
        2 * again.tol,
    )
    why = "two buckets are declared for them" if alike else "one bucket is declared for both"
    return broken(f"offsets {a} and {b}: {why}", seen, keys=keys)


@probe("offsets-have-own-index", "bias")
def own_index(code: Bias, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """Distinct offsets have distinct places, on windows of two and three axes."""
    assert code.index is not None  # else it is not asked
    taken = []
    for sizes in WINDOWS:
        try:
            index = code.index(sizes).long().cpu()
        except Exception:  # noqa: BLE001 (code of one size, or of two axes)
            continue
        places, clash = shared(index, sizes)
        if clash is not None:
            where, at = coordinates(sizes), int(index[clash[0], clash[1]])
            told = [f"{(where[k] - where[q]).tolist()}" for q, k in (clash[:2], clash[2:])]
            seen = Seen(
                {"window": list(sizes), "offsets": offsets_in(sizes)[1], "places": places},
                (f"index of offset {told[0]}", at),
                (f"index of offset {told[1]}, which should differ", at),
                0.0,
            )
            return broken("two offsets share a place in the table", seen)
        taken.append("×".join(map(str, sizes)))
    if not taken:
        return undecided(f"none of {len(WINDOWS)} windows of two or three axes was taken")
    return held(f"each offset has a place of its own: windows {', '.join(taken)}")
