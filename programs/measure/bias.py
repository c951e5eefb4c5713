"""Probes of code that makes a bias of scores: slopes and buckets as declared, and its index.

Rows of a bias are compared up to a constant for each query, which softmax ignores: so a bias s·key
equals −s·(query − key).  The compared values are those that identification reads by offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from attnproof.theorems.definitions.positions import published_slopes
from attnproof.theorems.definitions.references import t5_bucket

from ...numeric.devices import unit_roundoff
from ..execution.draw import Draw
from ..reading.offsets import (
    ByOffset,
    by_offset,
    coordinates,
    heads_of,
    offsets_in,
    shared_entries,
    slopes_of,
)
from ..subjects import Bias
from .base import Outcome, broken, compare, holds, probe, undecided

HEADS = (4, 6, 8, 12, 16, 5, 25)  # tried on code that takes any number
NEAR = 40  # keys, enough for a slope
WINDOWS = ((2, 2), (2, 3), (3, 5), (4, 4), (2, 3, 4), (3, 3, 3))
FAR_OFFSET = 300  # beyond the last bucket of T5


def _square(code: Bias, n: int, *, causal: bool = False) -> tuple[ByOffset, torch.dtype]:
    """Return the bias of n queries and n keys by offset, and its dtype."""
    assert code.bias is not None  # checked by the caller
    raw = code.bias(n, n)
    return by_offset(heads_of(raw, n, n), raw.dtype, causal=causal), raw.dtype


def _heads(have: int, want: int, told: str) -> Outcome | None:
    """Return a broken outcome if the number of heads is not the declared one."""
    if have == want:
        return None
    return broken(
        f"the bias has another number of heads than {told}",
        {"keys": NEAR},
        ("heads", have),
        ("heads declared", want),
        float(abs(have - want)),
    )


@probe("slopes-as-declared", "bias")
def slopes(code: Bias, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """Compare the slope of each head, read over 39 distances, with the declared or published one.

    If none is declared and the code takes any number of heads, other numbers are compared too.
    """
    said = code.declared
    assert said is not None  # else the law is not asked
    heads = said.heads or code.heads
    assert code.bias is not None  # checked by the caller
    found = _slopes(code, code.bias, said.slopes or published_slopes(heads))
    if found.witness is not None or said.slopes or said.heads or code.of_heads is None:
        return found
    others = []
    for count in HEADS:
        with suppress(Exception):  # code that does not take this number may raise anything
            made = code.of_heads(count)
            if count != heads and made(2, 2).shape[0] == count:
                other = _slopes(code, made, published_slopes(count))
                if other.witness is not None:
                    return other
                others.append(count)
    told = f", and those of {', '.join(map(str, others))} heads" if others else ""
    return replace(found, why=f"{found.why}{told}")


def _slopes(code: Bias, bias: Callable[[int, int], Tensor], slopes: Sequence[float]) -> Outcome:
    """Compare the slopes of a bias with the given ones."""
    by, dtype = _square(replace(code, bias=bias), NEAR, causal=code.causal)
    want = torch.tensor(slopes, dtype=torch.float64)
    heads = len(want)
    found = slopes_of(by)
    if found is None:
        first = by.past()[0, :3].tolist()
        slope = float(want[0])
        return broken(
            "the bias is not linear in the distance",
            {"keys": NEAR, "head": 0},
            ("bias at distances 0, 1, 2", first),
            ("a line with slope", slope),
            abs(first[2] + 2 * slope),
            keys=NEAR,
        )
    have, radius = found
    # most code computes a slope as a power in float32: 8 roundings, and one more when it is stored
    allowed = radius + (8 * 2.0**-24 + unit_roundoff(dtype)) * want.abs()
    return _heads(len(have), len(want), "slopes are declared") or compare(
        have,
        want,
        allowed,
        lambda h: (
            f"the slope of head {h} of {heads} differs",
            {"keys": NEAR, "head": h, "heads": heads},
            "slope",
        ),
        f"all {heads} slopes are as declared",
        there="declared slope",
        keys=NEAR,
    )


@probe("buckets-as-declared", "bias")
def buckets(code: Bias, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """Check that offsets in one bucket share an entry, and those in two buckets do not."""
    said = code.declared
    assert said is not None  # else the law is not asked
    if wrong := _heads(code.heads, said.heads or code.heads, "is declared"):
        return wrong
    count, distance = said.buckets or 32, said.distance or 128
    both = not code.causal if said.bidirectional is None else said.bidirectional
    n = max(FAR_OFFSET, 2 * distance)
    found, _ = _square(code, n, causal=code.causal and not both)
    values, offset = found.values, torch.arange(-(n - 1), n)
    every = found if not (code.causal and not both) else _square(code, n)[0]
    if float(every.values.nan_to_num().abs().max()) <= every.tol:
        return undecided("all entries are equal, so the buckets cannot be told apart")
    number = t5_bucket(offset, count, distance, both=both)
    # each bucket is represented by its offset nearest to 0
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
        rows, told = _rows_read(code, number, found, count) if both else (None, "")
        return rows or holds(
            f"{len(first)} of {count} buckets, {sides}, distance {distance}{told}",
            found.off,
            found.tol,
            keys=n,
        )
    # the pair nearest to offset 0, on the fewest keys with both offsets if the fault shows there
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
    why = "two buckets are declared for them" if alike else "one bucket is declared for both"
    return broken(
        f"offsets {a} and {b}: {why}",
        {"keys": keys, "head": h, "declared buckets": [int(number[i]), int(number[j])]},
        (f"bias at offset {a}", here),
        (f"bias at offset {b}{', which should differ' * alike}", there),
        abs(here - there),
        2 * again.tol,
        keys=keys,
    )


def _rows_read(
    code: Bias, number: Tensor, found: ByOffset, count: int
) -> tuple[Outcome | None, str]:
    """Return a broken outcome if buckets read the wrong rows of the code's table; else a note.

    Offsets in both directions form the same buckets whatever their sign: only the rows that are
    read distinguish key − query from query − key.
    """
    held_by = [] if code.module is None else list(code.module.parameters())
    tables = [
        x.detach().double().cpu().T if x.shape[0] == count else x.detach().double().cpu()
        for x in held_by
        if x.dim() == 2 and sorted(x.shape) == sorted((count, code.heads)) and count != code.heads
    ]
    if len(tables) != 1:
        return None, "; no table was found in it, so the sign of offsets was not compared"
    have, middle = found.values, (len(number) - 1) // 2
    known = ~have.isnan()

    def off(numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows minus the row of offset 0, scaled to the best fit, and their error."""
        rows = tables[0][:, numbers] - tables[0][:, numbers[middle], None]
        rows = rows * ((have * rows)[known].sum() / rows[known].square().sum())
        return rows, torch.where(known, (have - rows).abs(), 0.0)

    allowed = 2 * found.tol
    want, apart = off(number)
    if float(apart.max()) <= allowed:
        return None, ", and each reads its row of the table"
    if not float(off(number.flip(0))[1].max()) <= allowed:
        return (
            None,
            "; it is not read from its table alone, so the sign of offsets was not compared",
        )
    h, place = divmod(int(apart.argmax()), apart.shape[1])
    offset, keys = place - middle, middle + 1
    why = (
        "offsets read the rows of their opposites: query − key stands where key − query is declared"
    )
    return broken(
        why,
        {"keys": keys, "head": h, "offset": offset, "declared bucket": int(number[place])},
        (f"bias at offset {offset} minus that at offset 0", float(have[h, place])),
        ("the row of its bucket minus that of offset 0", float(want[h, place])),
        float(apart[h, place]),
        allowed,
        keys=keys,
    ), ""


@probe("offsets-have-own-index", "bias")
def own_index(code: Bias, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """Check that distinct offsets have distinct places, on windows of two and three axes."""
    assert code.index is not None  # else the law is not asked
    taken = []
    for sizes in WINDOWS:
        try:
            index = code.index(sizes).long().cpu()
        except Exception:  # noqa: BLE001 (code may take one size, or two axes)
            continue
        places, clash = shared_entries(index, sizes)
        if clash is not None:
            where, at = coordinates(sizes), int(index[clash[0], clash[1]])
            told = [f"{(where[k] - where[q]).tolist()}" for q, k in (clash[:2], clash[2:])]
            return broken(
                "two offsets share a place in the table",
                {"window": list(sizes), "offsets": offsets_in(sizes)[1], "places": places},
                (f"index of offset {told[0]}", at),
                (f"index of offset {told[1]}, which should differ", at),
                0.0,
            )
        taken.append("×".join(map(str, sizes)))
    if not taken:
        return undecided(f"the code accepts none of {len(WINDOWS)} windows of two or three axes")
    return holds(f"each offset has its own place: windows {', '.join(taken)}")
