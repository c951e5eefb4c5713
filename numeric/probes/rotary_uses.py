"""Probes of what is done with rotary code: turned once, caches shifted, layouts converted."""

from __future__ import annotations

import torch
from torch import Tensor

from ..programs.finding import Seen
from ..programs.subjects import Rotary
from .base import Draw, Outcome, broken, held, not_asked, probe, undecided
from .calling import calm, evaluating, plain
from .rotary_matrices import Reach, fastest, point, reach_of, rounding_for, tensor_of

__all__: list[str] = []


def row_of(subject: Rotary, places: list[int], draw: Draw, rows: int = 1) -> Tensor:
    """The ids of tokens at these positions, the same in each row: (B, T), or (B, T, axes)."""
    ids = tensor_of(subject, [point(subject, p) for p in places], draw)
    return ids[None].expand(rows, *ids.shape).contiguous()


def length_of(x: Tensor) -> float:
    """The largest length of a vector."""
    return float(x.double().norm(dim=-1).max().nan_to_num())


@probe("turned-once", "rotary")
def turned_once(subject: Rotary, draw: Draw) -> Outcome:
    """One vector as query, key and value, against each turned by itself."""
    assert subject.all_three is not None  # else it is not asked
    rounding, worst, bound = rounding_for(subject, draw), 0.0, 0.0
    with evaluating(subject):
        reach, omega = reach_of(subject, draw), fastest(subject, draw)
        places = [reach.low + p for p in (0, 1, 5) if reach.has(reach.low + p)]
        x = draw.normal(1, subject.heads, len(places), subject.width)
        ids = row_of(subject, places, draw)
        results = subject.all_three(x.clone(), x.clone(), x.clone(), ids)
        wanted = (
            calm(subject.turn, x, ids),
            calm(subject.turn_key, x, ids),
            calm(subject.turn, x, ids) if subject.values_turn else x.cpu().double(),
        )
        twice = calm(subject.turn, wanted[0].to(x), ids)
    for name, got, want in zip(("query", "key", "value"), results, wanted, strict=True):
        here = got.detach().to("cpu", torch.float64)
        far = max(abs(p) for p in places) * max(1, subject.axes)
        bound = 2 * rounding.vector(max(length_of(want), length_of(x)), omega, far)
        off = (here - want).norm(dim=-1).nan_to_num(nan=torch.inf)[0]
        if not float(off.max()) <= bound:
            token = int((~(off <= bound)).any(0).nonzero()[0])
            head = int(off[:, token].argmax())
            again = float((here - twice).norm(dim=-1)[0].max()) <= 2 * bound
            should = "turned once" if name != "value" or subject.values_turn else "not turned"
            return broken(
                f"the {name} is not {should}" + ("; it is turned twice" if again else ""),
                Seen({"vector": plain(x[0, head, token].double().cpu()), "at": places[token]},
                     (f"the {name} that comes back", plain(here[0, head, token])),
                     (f"the vector {should}", plain(want[0, head, token])),
                     float(off[head, token]), bound),
                B=1, H=subject.heads, T=len(places), D=subject.width,
            )  # fmt: skip
        worst = max(worst, float(off.max()))
    values = "values among them" if subject.values_turn else "values stay"
    return held(f"queries and keys are turned once, {values}", worst, bound, D=subject.width)


@probe("shift-of-cached-keys", "rotary")
def shift_of_cached_keys(subject: Rotary, draw: Draw) -> Outcome:
    """Keys turned at p and shifted by s against keys turned at p + s."""
    assert subject.shift is not None  # else it is not asked
    rounding, worst, bound = rounding_for(subject, draw), 0.0, 0.0
    shifts = (1, 7, -1, -3, 100, -90)
    with evaluating(subject):
        reach, omega = reach_of(subject, draw), fastest(subject, draw)
        units = torch.eye(subject.width, dtype=draw.dtype, device=draw.device)
        for p in (0, 1, 5, 120):
            for s in shifts:
                if not reach.has(reach.low + p, reach.low + p + s):
                    continue
                at = reach.low + p
                x = units[:, None, None].expand(subject.width, subject.heads, 1, subject.width)
                x = x.contiguous()
                turned = subject.turn_key(x, row_of(subject, [at], draw, subject.width))
                shifted = calm(subject.shift, turned.clone(), s)
                want = calm(subject.turn_key, x, row_of(subject, [at + s], draw, subject.width))
                size = max(1.0, length_of(want))
                axes = max(1, subject.axes)
                bound = rounding.vector(size, omega, at * axes, s * axes, (at + s) * axes)
                off = (shifted - want).abs().nan_to_num(nan=torch.inf)[:, :, 0]
                if not float(off.max()) <= bound:
                    i, h, j = (int(n) for n in torch.unravel_index(off.argmax(), off.shape))
                    return broken(
                        f"a key at {at} shifted by {s} is not the key at {at + s}",
                        Seen({"key": f"unit vector of channel {i} of {subject.width}", "at": at,
                              "shift": s, "channel": j},
                             (f"turned at {at}, shifted by {s}", float(shifted[i, h, 0, j])),
                             (f"turned at {at + s}", float(want[i, h, 0, j])),
                             float(off[i, h, j]), bound),
                        B=subject.width, H=subject.heads, T=1, D=subject.width,
                    )  # fmt: skip
                worst = max(worst, float(off.max()))
    return held(f"turned unit vectors shifted by {', '.join(map(str, shifts))}", worst, bound,
                D=subject.width)  # fmt: skip


@probe("cache-keeps-its-positions", "rotary")
def cache_keeps_its_positions(subject: Rotary, draw: Draw) -> Outcome:
    """Every key of a longer and longer cache, against its raw key turned where it stands."""
    assert subject.evict is not None  # else it is not asked
    rounding, worst, bound, evicted = rounding_for(subject, draw), 0.0, 0.0, 0
    with evaluating(subject):
        reach, omega = reach_of(subject, draw), fastest(subject, draw)
        for count in (1, 2, 3, 5, 6, 9, 20, 70, 300):
            if evicted > 20 or not reach.has(reach.low + count):
                continue
            raw = draw.normal(1, subject.heads, count, subject.width, salt=count)
            kept, own, at = subject.evict(raw.clone())
            evicted = max(evicted, count - kept.shape[2])
            points = [point(subject, float(p)) for p in at.flatten().tolist()]
            ids = tensor_of(subject, points, draw)[None]
            want = calm(subject.turn_key, own.to(draw.dtype), ids)
            here = kept.detach().to("cpu", torch.float64)
            off = (here - want).norm(dim=-1).nan_to_num(nan=torch.inf)[0].amax(0)
            # A kept key may have been turned on once for every key that came after it.
            far, size = float(count), max(length_of(want), length_of(own))
            steps = [far * max(1, subject.axes)] * (count + 1)
            bound = rounding.vector(size, omega, *steps)
            if not float(off.max()) <= bound:
                slot = int((~(off <= bound)).nonzero()[0])
                head = int((here - want).norm(dim=-1)[0, :, slot].argmax())
                return broken(
                    f"after {count} keys the one in slot {slot} of {kept.shape[2]} is not its raw "
                    f"key turned at {int(points[slot][0])}, where it is said to be",
                    Seen({"keys": count, "kept": kept.shape[2], "slot": slot,
                          "said to be at": points[slot][0],
                          "raw key": plain(own[0, head, slot].double().cpu())},
                         ("the key in the cache", plain(here[0, head, slot])),
                         (f"its raw key turned at {points[slot][0]:g}", plain(want[0, head, slot])),
                         float(off[slot]), bound),
                    B=1, H=subject.heads, T=count, D=subject.width,
                )  # fmt: skip
            worst = max(worst, float(off.max()))
    if not evicted:
        return undecided("300 keys fit into the cache, and none went", worst, bound)
    return held(
        f"every key kept, with up to {evicted} gone, is its raw key turned where it is said to be",
        worst,
        bound,
        D=subject.width,
    )


@probe("conversion-keeps-scores", "rotary")
def conversion_keeps_scores(subject: Rotary, draw: Draw) -> Outcome:
    """Scores of tokens under projections, and under the converted ones with the other layout."""
    other = subject.converts_to
    if subject.convert is None or other is None:
        return not_asked("no code was given that converts projections to another layout")
    rounding = rounding_for(subject, draw)
    heads, width = subject.heads, subject.width
    embed = heads * width
    with evaluating(subject):
        reaches: list[Reach] = [reach_of(subject, draw), reach_of(other, draw)]
        low = max(r.low for r in reaches)
        places = [low + p for p in (0, 1, 4) if all(r.has(low + p) for r in reaches)]
        tokens = draw.normal(len(places), embed, salt=1).double()
        wq, wk = (draw.normal(embed, embed, salt=s) / embed**0.5 for s in (2, 3))
        converted = subject.convert(wq.clone(), wk.clone(), heads)
        found = []
        for code, (left, right) in ((subject, (wq, wk)), (other, converted)):
            ids = row_of(code, places, draw)
            both = []
            for call, weight in ((code.turn, left), (code.turn_key, right)):
                x = (tokens @ weight.to(tokens).mT).reshape(1, len(places), heads, width)
                both.append(calm(call, x.transpose(1, 2).to(draw.dtype).contiguous(), ids))
            found.append((both[0] @ both[1].mT, length_of(both[0]) * length_of(both[1])))
        omega = max(fastest(subject, draw), fastest(other, draw))
    (here, size), (there, size_there) = found
    far = 2 * max(abs(p) for p in places) * max(1, subject.axes)
    bound = 2 * (rounding.vector(max(size, size_there), omega, far, far))
    off = (here - there).abs().nan_to_num(nan=torch.inf)[0]
    if not float(off.max()) <= bound:
        h, m, n = (int(i) for i in torch.unravel_index(off.argmax(), off.shape))
        return broken(
            "converted projections give other scores",
            Seen({"head": h, "query at": places[m], "key at": places[n], "heads": heads,
                  "width": width, "seed": draw.seed},
                 ("score before", float(here[0, h, m, n])),
                 ("score after", float(there[0, h, m, n])), float(off.max()), bound),
            H=heads, T=len(places), D=width,
        )  # fmt: skip
    return held(f"the scores of {len(places)} tokens are those before", float(off.max()), bound,
                H=heads, D=width)  # fmt: skip
