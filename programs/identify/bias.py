"""Identify code that makes a bias: slopes, buckets, the table of a window, or another function.

A bias over two or more coordinates, as in Swin, is read from which offsets share a table entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attnproof.theorems.definitions.positions import published_slopes
from attnproof.theorems.definitions.references import t5_bucket

from ..execution.draw import Draw
from ..finding import Identity, Part, format_number
from ..reading.offsets import (
    ByOffset,
    by_offset,
    heads_of,
    offsets_in,
    shared_entries,
    slopes_of,
)
from ..subjects import Bias

NEAR_KEYS, FAR_KEYS = 40, 600  # enough for slopes; enough for the last bucket of T5


def identify_bias(code: Bias, draw: Draw) -> Identity:
    """Read a bias as a function of the offset; ``draw`` is unused."""
    del draw
    with torch.no_grad():
        if code.bias is None:
            return Identity("bias", tuple(window_parts(code)))
        raw = code.bias(NEAR_KEYS, NEAR_KEYS)
        bias = heads_of(raw, NEAR_KEYS, NEAR_KEYS)
        found = by_offset(bias, raw.dtype, causal=code.causal)
        numbers: dict[str, tuple[float, ...]] = {}
        if not found.only:
            parts = [_not_offsets(found)]
        else:
            parts = list(_function(code, found, bias.shape[0]))
            if (slopes := slopes_of(found)) is not None:
                numbers["slopes"] = tuple(slopes[0].tolist())
        parts += [_rows(found), *_alignment(code, bias)]
    return Identity("bias", tuple(parts), tuple(_answers(parts)), numbers)


def _not_offsets(found: ByOffset) -> Part:
    h, t, s = found.at
    seen = (
        f"head {h}: query {t}, key {s} and query {found.like[0]}, key {found.like[1]} have one "
        f"offset and differ by {found.off:.3g}; rounding explains {found.tol:.1g}"
    )
    return Part("function", None, "which depends on more than the offset", seen)


def _function(code: Bias, found: ByOffset, heads: int) -> Iterator[Part]:
    """Yield the function of the offset: slopes, buckets, or another."""
    slopes = slopes_of(found)
    yield Part("heads", heads, f"{heads} heads", "the first axis")
    if slopes is not None and bool((slopes[0].abs() > slopes[1]).any()):
        yield _slopes(*slopes)
        yield _future(found, slopes[0])
        return
    if slopes is not None:
        yield Part(
            "function",
            "none",
            "all zeros before the query: nothing can be read",
            f"distances up to {NEAR_KEYS - 1}",
            certain=False,
        )
        return
    try:
        assert code.bias is not None  # checked by the caller
        raw = code.bias(FAR_KEYS, FAR_KEYS)
        far = by_offset(heads_of(raw, FAR_KEYS, FAR_KEYS), raw.dtype, causal=code.causal)
    except Exception as error:  # noqa: BLE001 (a table may be shorter)
        yield Part(
            "function",
            "other",
            "a function of the offset that is not linear",
            f"{FAR_KEYS} keys were refused: {type(error).__name__}",
            certain=False,
        )
        return
    yield _buckets(far) or _other(far)


def _slopes(slope: Tensor, radius: float) -> Part:
    """Compare slopes with those published for this number of heads."""
    have, heads = slope.tolist(), slope.shape[0]
    want = published_slopes(heads)
    seen = f"{heads} lines through {NEAR_KEYS} distances; each slope within {radius:.1g}"
    if _near(have, want, radius):
        return Part("slopes", have, f"ALiBi, slopes as published for {heads} heads", seen)
    if _near(sorted(have), sorted(want), radius):
        words = f"ALiBi, slopes as published for {heads} heads in another order"
        return Part("slopes", have, words, seen)
    ratio = have[1] / have[0] if heads > 1 and have[0] else 0.0
    one = all(
        abs(have[h] - have[0] * ratio**h) <= (radius + 1e-6 * abs(have[0])) * (1 + heads)
        for h in range(heads)
    )
    how = (
        f"one geometric series from {format_number(have[0])} by {format_number(ratio)}"
        if one and heads > 1
        else (", ".join(format_number(h) for h in have[:4]))
    )
    words = f"lines with slopes not as published for {heads} heads ({how})"
    first = next(h for h in range(heads) if not _near(have[h : h + 1], want[h : h + 1], radius))
    seen += (
        f"; head {first} has {format_number(have[first])}, "
        f"published is {format_number(want[first])}"
    )
    return Part("slopes", have, words, seen)


def _near(have: Sequence[float], want: Sequence[float], radius: float) -> bool:
    """Whether values agree up to their radius and 8 float32 roundings of a power."""
    return all(abs(a - b) <= radius + 8 * 2.0**-24 * b for a, b in zip(have, want, strict=True))


def _future(found: ByOffset, slope: Tensor) -> Part:
    """The bias of keys after the query."""
    future = found.future()[:, 1:]
    d = torch.arange(1, future.shape[1] + 1, dtype=torch.float64)
    if bool(future.isnan().all()):
        return Part("after", "hidden", "", "keys after the query are hidden or were not requested")
    known = future.nan_to_num()
    for sign, name, words in (
        (-1, "falls", "falling to both sides"),
        (1, "rises", "the same line for keys after the query"),
        (0, "zero", "0 for keys after the query"),
    ):
        if float((known - sign * slope[:, None] * d).abs().max()) <= 2 * found.tol:
            return Part("after", name, words, f"distances up to {len(d)} after the query")
    return Part("after", "other", "another function for keys after the query", "")


def _runs(values: Tensor, tol: float) -> list[int]:
    """The distances at which a new value begins in any head, for values (H, n)."""
    change = ((values[:, 1:] - values[:, :-1]).abs() > tol).any(0)
    return [0, *(change.nonzero()[:, 0] + 1).tolist()]


def _buckets(found: ByOffset) -> Part | None:
    """The number and distance of T5's buckets, if the bias is constant on exactly those."""
    past, future = found.past(), found.future()
    n = past.shape[1]
    before = _runs(past, found.tol)
    each = len(before)
    if each < 4 or each > n // 2 or before == list(range(each)):  # the last: clipped, no logarithm
        return None
    hidden = bool(future[:, 1:].isnan().all())
    both = not hidden and len(_runs(future, found.tol)) > 1
    d = torch.arange(n)
    buckets = 2 * each if both else each
    fit = []
    exact, last = each // 2, before[-1]
    most = 2 * n  # the last bucket begins at exact·(distance/exact)^(1 − 1/(each − exact))
    if each - exact > 1:
        most = int(exact * ((last + 1) / exact) ** ((each - exact) / (each - exact - 1))) + 2
    for distance in range(exact + 1, min(most, 2 * n)):
        number = t5_bucket(-d, buckets, distance, both=both)
        if [0, *((number[1:] != number[:-1]).nonzero()[:, 0] + 1).tolist()] == before:
            fit.append(distance)
    if not fit:
        return None
    power = [x for x in fit if x & (x - 1) == 0]
    distance = power[0] if power else fit[0]
    if both:
        after = [0, 1, *(x for x in before if x > 1)]
        if _runs(future, found.tol) != after:
            return None
    sides = "both directions" if both else "one direction"
    words = f"T5 buckets: {buckets}, {sides}, distance {distance}"
    seen = f"the bias changes at distances {', '.join(map(str, before[:20]))}"
    if len(fit) > 1:
        seen += f"; distances from {fit[0]} to {fit[-1]} give the same buckets"
    value = {"buckets": buckets, "distance": distance, "bidirectional": both}
    return Part("buckets", value, words, seen, certain=len(fit) == 1)


def _other(found: ByOffset) -> Part:
    """The part for a function of the offset without a known name."""
    past = found.past()
    starts = _runs(past, found.tol)
    last = starts[-1]
    ends = [*starts[1:], past.shape[1]]
    runs = [past[:, a:b] for a, b in zip(starts, ends, strict=True)]
    words = f"a function of the offset with {len(starts)} values before the query"
    if any(float((run.amax(1) - run.amin(1)).max()) > 2 * found.tol for run in runs):
        words = "a smooth function of the offset"
    elif last < past.shape[1] - 1:
        words += f", one beyond distance {last}"
    if bool((past <= past.cummin(1).values + found.tol).all()):
        words += ", falling with the distance"
    return Part("function", "other", words, f"distances up to {past.shape[1] - 1}", certain=False)


def _rows(found: ByOffset) -> Part:
    words = "up to a number for each query, which softmax ignores" if found.own else ""
    return Part(
        "rows", "own number" if found.own else "none", words, "the entries of the queries' own keys"
    )


def _alignment(code: Bias, square: Tensor) -> Iterator[Part]:
    """Yield where queries are aligned if there are fewer of them than keys."""
    assert code.bias is not None  # checked by the caller
    T, n = 3, NEAR_KEYS
    few = heads_of(code.bias(T, n), T, n)
    visible = few.isfinite() & square[:, -T:].isfinite()
    for name, rows in (("end", square[:, -T:]), ("start", square[:, :T])):
        apart = torch.where(visible & rows.isfinite(), few - rows, 0.0)
        apart = apart - apart[..., :1]
        scale = max(1.0, float(torch.where(square.isfinite(), square.abs(), 0.0).max()))
        if float(apart.abs().max()) <= 1e-5 * scale:
            words = (
                "" if name == "end" else "queries aligned at the start if there are fewer than keys"
            )
            yield Part("alignment", name, words, f"{T} queries and {n} keys")
            return
    yield Part(
        "alignment",
        "neither",
        "queries aligned at neither end if there are fewer than keys",
        f"{T} queries and {n} keys",
    )


def offsets_part(added: Tensor) -> Iterator[Part]:
    """Yield the bias that attention code adds itself, given logarithms of weights (H, r, n)."""
    seen = added.isfinite()
    count = seen.sum(-1, keepdim=True).clamp(min=1)
    mean = torch.where(seen, added, 0.0).sum(-1, keepdim=True) / count
    size = torch.where(seen, added - mean, 0.0).abs().max()
    if float(size) <= 1e-4 or not bool(seen.diagonal(dim1=-2, dim2=-1).all()):
        return
    found = by_offset(added, torch.float32, causal=not bool(seen[:, 0, 1:].any()))
    slopes = slopes_of(found) if found.only else None
    if slopes is not None and bool((slopes[0].abs() > slopes[1]).any()):
        part = _slopes(*slopes)
        yield Part("bias", part.value, part.words, f"queries that are 0; {part.evidence}")
        return
    words = "a bias of the offset is added" if found.only else "a bias of query and key is added"
    yield Part(
        "bias",
        None,
        words,
        f"queries that are 0 have weights whose logarithms differ by {float(size):.2g}",
        certain=False,
    )


def _answers(parts: Sequence[Part]) -> Iterator[str]:
    slopes = next((p for p in parts if p.name == "slopes"), None)
    if slopes is not None:
        right = "as published" in slopes.words and "not as" not in slopes.words
        yield (f"are my slopes the published ones? {'yes' if right else 'no'}: {slopes.words}")


SIZES, SQUARES = ((3, 5), (2, 3, 4)), ((4, 4), (3, 3, 3))


def window_parts(code: Bias) -> Iterator[Part]:
    """Yield the parts of code that makes an index, the bias of a window, or both."""
    tried = SQUARES if code.square else SIZES
    for sizes in tried:
        if code.index is None:
            break
        try:
            index = code.index(sizes).long().cpu()
        except Exception as error:  # noqa: BLE001 (code of one size or of two axes)
            yield Part(
                f"index of {len(sizes)} axes",
                None,
                "",
                f"{sizes} was refused: {type(error).__name__}",
                certain=False,
            )
            continue
        yield _index(index, sizes)
    if code.window is not None:
        yield _window(code.window(*tried[0]).detach().double().cpu(), tried[0])


def _index(index: Tensor, sizes: tuple[int, ...]) -> Part:
    number, count = offsets_in(sizes)
    places, clash = shared_entries(index, sizes)
    told = " × ".join(map(str, sizes))
    seen = f"a window of {told}: {count} offsets, {places} places"
    name = f"index of {len(sizes)} axes"
    if clash is not None:
        words = f"an index in which {count} offsets of {told} share {places} places"
        return Part(name, {"offsets": count, "places": places}, words, seen)
    alike = all(len(torch.unique(index[number == o])) == 1 for o in torch.unique(number).tolist())
    if not alike:
        return Part(
            name,
            {"offsets": count, "places": places},
            "an index that depends on more than the offset",
            seen,
        )
    sign = (
        "key minus query"
        if torch.equal(index, number)
        else ("query minus key" if torch.equal(index, number.mT) else "in another order")
    )
    words = f"an index with a place of its own for each offset of {told}, {sign}"
    return Part(name, {"offsets": count, "places": places}, words, seen)


def _window(bias: Tensor, sizes: tuple[int, ...]) -> Part:
    """Whether a bias (H, R, R) depends on the offset alone."""
    number, count = offsets_in(sizes)
    lines = (bias[:, number == o] for o in torch.unique(number).tolist())
    apart = max(float((one.max(-1).values - one.min(-1).values).max()) for one in lines)
    told = " × ".join(map(str, sizes))
    words = (
        f"a table by the offset in two axes, {bias.shape[0]} heads"
        if apart == 0
        else ("a bias of a window that depends on more than the offset")
    )
    distinct = len({tuple(row) for row in bias.flatten(1).T.tolist()})
    return Part(
        "window",
        {"offsets": count, "distinct": distinct},
        words,
        f"a window of {told}: entries of one offset differ by {apart:.1g}; {distinct} "
        f"different entries, {count} offsets",
    )
