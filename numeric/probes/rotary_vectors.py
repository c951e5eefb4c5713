"""Probes of what rotary code does to vectors at one position: linear, identity, heads alike."""

from __future__ import annotations

import torch

from ..programs.finding import Seen
from ..programs.subjects import Rotary
from .base import Draw, Outcome, broken, held, not_asked, probe, undecided
from .calling import evaluating, plain
from .rotary_matrices import (
    REORDERED,
    matrices,
    order_of,
    point,
    reach_of,
    rounding_for,
    tensor_of,
    unit_words,
)

__all__: list[str] = []


@probe("linear", "rotary")
def linear(subject: Rotary, draw: Draw) -> Outcome:
    """turn(2x − 3y) = 2 turn(x) − 3 turn(y) for whole numbers, of which no dtype loses any."""
    rounding, count = rounding_for(subject, draw), 3
    with evaluating(subject):
        reach = reach_of(subject, draw)
        places = [p for p in (reach.low, reach.low + 1, reach.low + 5) if reach.has(p)]
        shape = (2, subject.heads, len(places), subject.width)
        x, y = ((4 * draw.normal(*shape, salt=s)).round().clamp(-9, 9) for s in (1, 2))
        x[0, 0, 0], y[0, 0, 0] = 0, 0  # and nothing becomes nothing
        ids = tensor_of(subject, [point(subject, p) for p in places], draw)
        ids = ids[None].expand(2, *ids.shape)
        worst, bound = 0.0, 0.0
        for call in dict.fromkeys((subject.turn, subject.turn_key)):
            of_x, of_y, of_both = (
                call(v, ids).detach().to("cpu", torch.float64) for v in (x, y, 2 * x - 3 * y)
            )
            off = (of_both - (2 * of_x - 3 * of_y)).norm(dim=-1).nan_to_num(nan=torch.inf)
            size = (2 * of_x.norm(dim=-1) + 3 * of_y.norm(dim=-1) + of_both.norm(dim=-1)).cpu()
            size = torch.maximum(
                size, 6 * (x.double().norm(dim=-1) + y.double().norm(dim=-1)).cpu()
            )
            allowed = rounding.turning * size.nan_to_num() + float(torch.finfo(draw.dtype).tiny)
            if bool((~(off <= allowed)).any()):
                worst_at = (off - allowed).argmax()
                b, h, t = (int(i) for i in torch.unravel_index(worst_at, off.shape))
                at = (b, h, t)
                return broken(
                    "turning 2x − 3y is not 2·turn(x) − 3·turn(y)",
                    Seen({"x": plain(x[at].double().cpu()), "y": plain(y[at].double().cpu()),
                          "at": places[t]},
                         ("turn(2x − 3y)", plain(of_both[at])),
                         ("2·turn(x) − 3·turn(y)", plain((2 * of_x - 3 * of_y)[at])),
                         float(off[at]), float(allowed[at])),
                    B=2, H=subject.heads, T=len(places), D=subject.width,
                )  # fmt: skip
            worst, bound = max(worst, float(off.max())), float(allowed.max())
    return held(f"2x − 3y of whole numbers, at {count} positions", worst, bound, D=subject.width)


@probe("identity-at-zero", "rotary")
def identity_at_zero(subject: Rotary, draw: Draw) -> Outcome:
    """The matrix at 0 is the identity times one number; channels that pass have the number 1.

    A fixed order of the channels is undone first: that it is the same further on, composition sees.
    """
    with evaluating(subject):
        if not reach_of(subject, draw).has(0):
            return not_asked(f"its positions start at {subject.first}")
        eta, worst, bound = rounding_for(subject, draw).turning, 0.0, 0.0
        for call in dict.fromkeys((subject.turn, subject.turn_key)):
            found = matrices(subject, call, [point(subject, 0)], draw)[0]
            order = order_of(found, 2 * eta)
            found = found if order is None else found[..., order]
            diagonal = found.diagonal(dim1=-2, dim2=-1)
            factor = float(diagonal[(diagonal - 1).abs() > eta].median()) if bool(
                ((diagonal - 1).abs() > eta).any()) else 1.0  # fmt: skip
            factor = factor if abs(factor) > eta else 1.0  # what becomes 0 has not stayed
            bound = 2 * eta * max(1.0, abs(factor))
            ones = torch.eye(subject.width, dtype=torch.float64)
            off = torch.minimum((found - ones).abs(), (found - abs(factor) * ones).abs())
            off = off.nan_to_num(nan=torch.inf)
            if not float(off.max()) <= bound:
                head, i, j = (int(n) for n in torch.unravel_index(off.argmax(), off.shape))
                want = abs(factor) * float(i == j)
                return broken(
                    "at position 0 a vector does not stay",
                    Seen({"vector": unit_words(i, subject.width), "at": 0, "channel": j,
                          "head": head},
                         ("turned at 0", float(found[head, i, j])), ("itself", want),
                         float(off[head, i, j]), bound),
                    D=subject.width,
                )  # fmt: skip
            worst = max(worst, float(off.max()))
    longer = "" if factor == 1.0 else f", {factor:.7g} times as long"
    longer += "" if order is None else f"; {REORDERED}"
    return held(f"every unit vector stays{longer}", worst, bound, D=subject.width)


@probe("every-head-alike", "rotary")
def every_head_alike(subject: Rotary, draw: Draw) -> Outcome:
    """One vector in every head; as many tokens as heads, and another number of tokens."""
    eta, worst, bound = rounding_for(subject, draw).turning, 0.0, 0.0
    with evaluating(subject):
        reach = reach_of(subject, draw)
        for count in (1, subject.heads, subject.heads + 3):
            places = [p for p in range(reach.low + 3, reach.low + 3 + count) if reach.has(p)]
            if len(places) < count:
                return undecided(f"{count} positions are needed; {reach.why}")
            ids = tensor_of(subject, [point(subject, p) for p in places], draw)[None]
            one = draw.normal(1, 1, 1, subject.width, salt=count)
            x = one.expand(1, subject.heads, count, subject.width).contiguous()
            for call in dict.fromkeys((subject.turn, subject.turn_key)):
                result = call(x, ids).detach().to("cpu", torch.float64)
                off = (result - result[:, :1]).norm(dim=-1).nan_to_num(nan=torch.inf)[0]
                bound = 2 * eta * float(result.norm(dim=-1).max().nan_to_num())
                bound = max(bound, 2 * eta * float(one.double().norm()))
                if not float(off.max()) <= bound:
                    token, head = min((bound < off.T).nonzero().tolist())
                    return broken(
                        f"head {head} turns otherwise than head 0",
                        Seen({"vector": plain(one.double().flatten().cpu()), "at": places[token]},
                             ("head 0", plain(result[0, 0, token])),
                             (f"head {head}", plain(result[0, head, token])),
                             float(off[head, token]), bound),
                        B=1, H=subject.heads, T=count, D=subject.width,
                    )  # fmt: skip
                worst = max(worst, float(off.max()))
    return held(f"one vector in all {subject.heads} heads", worst, bound, H=subject.heads)
