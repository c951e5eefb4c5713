"""Probes of the turning of rotary code: relative, norm, composition."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ..programs.finding import Seen
from ..programs.subjects import Rotary
from .base import Draw, Outcome, broken, held, not_asked, probe, undecided
from .calling import evaluating
from .rotary_matrices import (
    FASTEST,
    REORDERED,
    Point,
    Reach,
    alone,
    fastest,
    lengths_of,
    matrices,
    may_be_faster,
    order_of,
    point,
    reach_of,
    rounding_for,
    unit_words,
)

__all__: list[str] = []

# Query and key, and how far both are moved; small numbers first, so that a witness is small.
PAIRS = ((1, 0), (0, 1), (0, 0), (2, 5), (7, 3))
SHIFTS = (1, 2, 5, 50, 300, 2047, 4090, 65520)
TOO_FAST = ("what it is off is what float32 leaves of pairs that turn by more than half a turn "
            "with each position, which whole positions do not tell from slower ones")  # fmt: skip
PLACED = ("; one vector by itself does not show it: what a token becomes depends on its place in "
          "the row or on the other tokens")  # fmt: skip
STEPS = ((0, 1), (1, 1), (1, 2), (3, 5), (20, 37), (100, 157), (1000, 1049), (4000, 4097))


def told(at: Point) -> float | list[float]:
    """A position for a witness."""
    return at[0] if len(at) == 1 else list(at)


def size_of(at: Point) -> float:
    """The sum of the coordinates, by which angles grow."""
    return sum(abs(p) for p in at)


def moved(at: Point, by: float, axis: int | None) -> Point:
    """The position moved along one axis, or along all."""
    return tuple(p + by * (axis is None or axis == i) for i, p in enumerate(at))


def pairs_of(subject: Rotary, reach: Reach) -> Iterator[tuple[Point, Point, Point, Point]]:
    """Query and key, and both moved: along all axes together, then along each."""
    axes = max(1, subject.axes)
    ways: list[int | None] = [None] if axes == 1 else [None, *range(axes)]
    starts = PAIRS if subject.whole else (*PAIRS, (0.5, 0.25))
    for shift in SHIFTS:
        for m, n in starts:
            for axis in ways:
                q = tuple(reach.low + m + (i if axis is not None else 0) for i in range(axes))
                k = tuple(reach.low + n + (2 * i if axis is not None else 0) for i in range(axes))
                there = moved(q, shift, axis), moved(k, shift, axis)
                if reach.has(*q, *k, *there[0], *there[1]):
                    yield q, k, *there


@probe("relative", "rotary")
def relative(subject: Rotary, draw: Draw) -> Outcome:
    """Scores of all unit vectors at (m, n) and at (m + s, n + s)."""
    with evaluating(subject):
        reach, omega = reach_of(subject, draw), fastest(subject, draw)
        rounding = rounding_for(subject, draw)
        asked = list(pairs_of(subject, reach))
        if not asked:
            return not_asked(f"it has one position alone; {reach.why}")
        points = sorted({p for four in asked for p in four})
        row = {p: i for i, p in enumerate(points)}
        queries = matrices(subject, subject.turn, points, draw)
        keys = queries if subject.key is None else matrices(subject, subject.turn_key, points, draw)
        size = float((queries.norm(dim=-1).max() * keys.norm(dim=-1).max()).nan_to_num(nan=1.0))
        worst, doubt = (0.0, 0.0), None
        for q, k, q_moved, k_moved in asked:
            here = queries[row[q]] @ keys[row[k]].mT
            there = queries[row[q_moved]] @ keys[row[k_moved]].mT

            def allow(omega: float, four: tuple[Point, ...] = (q, k, q_moved, k_moved)) -> float:
                far = [size_of(one) for one in four]
                return sum(rounding.score(size, omega, *two) for two in (far[:2], far[2:]))

            allowed = allow(omega)
            off = (here - there).abs().nan_to_num(nan=torch.inf)
            if allowed < float(off.max()) <= allow(FASTEST) and may_be_faster(subject, draw):
                doubt = doubt or undecided(TOO_FAST, float(off.max()), allowed)
                continue
            if not float(off.max()) <= allowed:
                head, i, j = (int(n) for n in torch.unravel_index(off.argmax(), off.shape))
                seen, sizes = score_alone(subject, draw, (i, j), (q, k), (q_moved, k_moved))
                both = (float(here[head, i, j]), float(there[head, i, j]))
                alone_fails = not abs(seen[0] - seen[1]) <= allowed
                return broken(
                    f"the score of a query at {told(q)} and a key at {told(k)} changes when both "
                    f"move to {told(q_moved)} and {told(k_moved)}"
                    + ("" if alone_fails else PLACED),
                    score_seen(subject, (i, j), (q, k), (q_moved, k_moved),
                               seen if alone_fails else both, allowed),
                    **(sizes if alone_fails else dict(sizes, B=subject.width, T=len(points))),
                )  # fmt: skip
            worst = max(worst, (float(off.max()) / allowed, allowed))
        if doubt is not None:
            return doubt
        far = told(max(points, key=size_of))
        return held(
            f"all scores of unit vectors at {len(asked)} pairs of positions, up to {far}, stay "
            "when both move" + (f"; {reach.why}" if reach.why else ""),
            worst[0] * worst[1], worst[1], D=subject.width, positions=len(points),
        )  # fmt: skip


def score_alone(
    subject: Rotary, draw: Draw, channels: tuple[int, int], here: tuple[Point, Point],
    there: tuple[Point, Point],
) -> tuple[tuple[float, float], dict[str, int]]:  # fmt: skip
    """The two scores again, of single vectors turned by themselves."""
    found = [
        float(
            alone(subject, subject.turn, channels[0], q, draw)
            @ alone(subject, subject.turn_key, channels[1], k, draw)
        )
        for q, k in (here, there)
    ]
    return (found[0], found[1]), {"B": 1, "H": subject.heads, "T": 1, "D": subject.width}


def score_seen(
    subject: Rotary, channels: tuple[int, int], here: tuple[Point, Point],
    there: tuple[Point, Point], scores: tuple[float, float], allowed: float,
) -> Seen:  # fmt: skip
    """The witness of a score that changes."""
    words = [f"query at {told(q)} · key at {told(k)}" for q, k in (here, there)]
    return Seen(
        {"query": unit_words(channels[0], subject.width),
         "key": unit_words(channels[1], subject.width),
         "query at": told(here[0]), "key at": told(here[1]),
         "moved to": [told(there[0]), told(there[1])]},
        (words[0], scores[0]), (words[1], scores[1]), abs(scores[0] - scores[1]), allowed,
    )  # fmt: skip


def ladder_points(subject: Rotary, reach: Reach) -> list[Point]:
    """Positions up to a few thousand, the first among them; apart on the axes where there are."""
    offsets = (0, 1, 2, 3, 7, 40, 255, 1857, 4095)
    places = [reach.low + o for o in offsets if reach.has(reach.low + o)]
    same = [point(subject, p) for p in places]
    if subject.axes > 1:
        for axis in range(subject.axes):
            same += [moved(same[0], p - reach.low, axis) for p in places[1:6]]
    return same


@probe("norm", "rotary")
def norm(subject: Rotary, draw: Draw) -> Outcome:
    """M Mᵀ = c at every position, with one c for all channels that do not pass through."""
    with evaluating(subject):
        worst, bound = 0.0, 0.0
        for call in dict.fromkeys((subject.turn, subject.turn_key)):
            points = ladder_points(subject, reach_of(subject, draw))
            found = matrices(subject, call, points, draw)
            eta = rounding_for(subject, draw).turning
            order = order_of(found[0], 2 * eta)
            found = found if order is None else found[..., order]
            squares = found @ found.mT
            _, passes = lengths_of(found)
            square = float(squares[0, 0].diagonal()[~passes].mean()) if not passes.all() else 1.0
            square = square if math.isfinite(square) else 1.0
            want = torch.diag(torch.where(passes, 1.0, square).double())
            off = (squares - want).abs().nan_to_num(nan=torch.inf)
            bound = 4 * (2 * eta + eta**2) * max(square, 1.0)
            over = (~(off <= bound)).flatten(1).any(1)
            if bool(over.any()):
                row = int(over.nonzero()[0])
                head, i, j = (
                    int(n) for n in torch.unravel_index(off[row].argmax(), off[row].shape)
                )
                return norm_broken(subject, points[row], (i, j), squares[row, head], square, bound)
            worst = max(worst, float(off.max()))
    return held(
        f"all lengths and angles between unit vectors are multiplied by {square**0.5:.7g} at "
        f"{len(points)} positions", worst, bound, D=subject.width, positions=len(points),
    )  # fmt: skip


def norm_broken(
    subject: Rotary, at: Point, channels: tuple[int, int], squares: Tensor, square: float,
    bound: float,
) -> Outcome:  # fmt: skip
    """A length that is not what the others are: of one unit vector, or of the sum of two."""
    i, j = channels
    one = i == j
    length = float(squares[i, i] if one else squares[i, i] + squares[j, j] + 2 * squares[i, j])
    wanted = square if one else 2 * square
    vector = unit_words(i, subject.width)
    if not one:
        vector = ([int(c in channels) for c in range(subject.width)] if subject.width <= 8
                  else f"1 in channels {i} and {j} of {subject.width}, 0 elsewhere")  # fmt: skip
    # Where the two squares stand against each other the sum hides it: the product is shown then.
    if abs(length - wanted) <= bound:
        length, wanted = float(squares[i, j]), 0.0
        words = f"product of the turned unit vectors {i} and {j}", "that of the vectors themselves"
    else:
        words = "its squared length, turned", "that times the factor of the first position"
    return broken(
        f"at position {told(at)} a vector becomes longer or shorter than the others, or two that "
        "are at right angles are so no more",
        Seen({"vector": vector, "at": told(at)}, (words[0], length), (words[1], wanted),
             abs(length - wanted), bound),
        D=subject.width,
    )  # fmt: skip


def _vanished(zero: Tensor, allowed: float) -> Outcome | None:
    """A unit vector that becomes 0 at position 0: turned twice and once it would be 0 alike."""
    lengths = zero.norm(dim=-1)
    head, i = (int(x) for x in torch.unravel_index(lengths.argmin(), lengths.shape))
    if not float(lengths[head, i]) <= allowed:
        return None
    seen = Seen({"vector": unit_words(i, zero.shape[-1]), "at": 0},
                ("its length", 1.0), ("its length, turned by 0", float(lengths[head, i])),
                1.0 - float(lengths[head, i]), allowed)  # fmt: skip
    return broken("turned by 0 a vector becomes 0", seen)


@probe("composition", "rotary")
def composition(subject: Rotary, draw: Draw) -> Outcome:
    """Turned at m and then at n against turned once at m + n, up to the factor of lengths.

    What is turned again has its channels in the order in which they went in.
    """
    with evaluating(subject):
        reach, omega = reach_of(subject, draw), fastest(subject, draw)
        rounding = rounding_for(subject, draw)
        asked = [
            (m, n) for m, n in STEPS if reach.has(m, n, m + n)
        ] or [(reach.low, reach.low)] * reach.has(2 * reach.low)  # fmt: skip
        if not asked:
            return not_asked(f"no two of its positions have a sum that it has; {reach.why}")
        places = sorted({p for m, n in asked for p in (m, n, m + n)})
        row = {p: i for i, p in enumerate(places)}
        worst, doubt = (0.0, 0.0), None
        for call in dict.fromkeys((subject.turn, subject.turn_key)):
            found = matrices(subject, call, [point(subject, p) for p in places], draw)
            order = None
            if reach.has(0):
                zero = matrices(subject, call, [point(subject, 0)], draw)[0]
                if gone := _vanished(zero, 2 * rounding.turning):
                    return gone
                order = order_of(zero, 2 * rounding.turning)
            found = found if order is None else found[..., order]
            length, _ = lengths_of(found)
            for m, n in asked:
                twice = found[row[m]] @ found[row[n]]
                once = length[:, None] * found[row[m + n]]
                off = (twice - once).abs().nan_to_num(nan=torch.inf)
                far = [p * max(1, subject.axes) for p in (m, n, m + n)]
                most = max(float(x.norm(dim=-1).nan_to_num().max()) for x in (twice, once))
                size = max(1.0, float(length.max()) ** 2, most)
                allowed, loose = (
                    rounding.vector(size, w, *far) + rounding.turning * size
                    for w in (omega, FASTEST)
                )
                if allowed < float(off.max()) <= loose and may_be_faster(subject, draw):
                    doubt = doubt or undecided(TOO_FAST, float(off.max()), allowed)
                    continue
                if not float(off.max()) <= allowed:
                    head, i, j = (int(x) for x in torch.unravel_index(off.argmax(), off.shape))
                    return broken(
                        f"turned at {m} and then at {n} is not turned at {m + n}",
                        Seen({"vector": unit_words(i, subject.width), "first": m, "then": n,
                              "channel": j},
                             (f"turned at {m}, then at {n}", float(twice[head, i, j])),
                             (f"turned at {m + n}", float(once[head, i, j])),
                             float(off.max()), allowed),
                        D=subject.width,
                    )  # fmt: skip
                worst = max(worst, (float(off.max()) / allowed, allowed))
    if doubt is not None:
        return doubt
    return held(
        f"turning twice is turning by the sum for {len(asked)} pairs of positions up to "
        f"{max(places)}" + (f"; {REORDERED}" if order is not None else ""),
        worst[0] * worst[1], worst[1], D=subject.width,
    )  # fmt: skip
