"""The laws of rotary code, as sides that should agree exactly.

``z`` is the first position that the code has; B = 2 rows, T = 3 tokens, as little as shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..probes.rotary_matrices import order_of
from ..programs.subjects import Rotary
from .lab import Lab, NotAsked, Sides, law
from .tensor import numbers_of

__all__: list[str] = []

B, T, SHIFT = 2, 3, 5
UNIT = 2.0**-23  # of float32: at position 0 nothing but products with 1 and 0 is computed


def _places(subject: Rotary, lab: Lab, room: int = SHIFT) -> Tensor:
    """Different positions in each row, with room to be shifted."""
    most = min(subject.most - room, subject.first + 11)
    if most < subject.first + 2:
        raise NotAsked(f"the code has positions {subject.first} to {subject.most} only")
    shape = (B, T, subject.axes) if subject.axes else (B, T)
    found = lab.whole_numbers(most, *shape, first=subject.first)
    found[0, 1] = (found[0, 0] - subject.first + 1) % (most - subject.first + 1) + subject.first
    return found


def _vectors(subject: Rotary, lab: Lab, tokens: int = T) -> Tensor:
    return lab.numbers(B, subject.heads, tokens, subject.width)


def _told(**places: Any) -> dict[str, Any]:
    return {k: v.tolist() if isinstance(v, Tensor) else v for k, v in places.items()}


@law("relative", "rotary")
def _relative(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    q, k, m, n = _vectors(subject, lab), _vectors(subject, lab), *_two(subject, lab)
    turn, key = subject.turn, subject.turn_key

    def scores(shift: int) -> Tensor:
        a, b = turn(q, lab.positions(m + shift)), key(k, lab.positions(n + shift))
        found: Tensor = torch.matmul(a, b.transpose(-1, -2))
        return found

    for shift in (1, SHIFT):
        yield Sides(("scores", scores(0)), (f"scores, all positions + {shift}", scores(shift)),
                    _told(queries_at=m, keys_at=n, shift=shift))  # fmt: skip


def _two(subject: Rotary, lab: Lab) -> tuple[Tensor, Tensor]:
    return _places(subject, lab), _places(subject, lab)


@law("norm", "rotary")
def _norm(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    x, y, m, n = _vectors(subject, lab), _vectors(subject, lab), *_two(subject, lab)
    for turn in dict.fromkeys((subject.turn, subject.turn_key)):
        a, b = turn(x, lab.positions(m)), turn(y, lab.positions(n))
        yield Sides(
            ("|turned x|² |y|²", (a * a).sum(-1) * (y * y).sum(-1)),
            ("|x|² |turned y|²", (b * b).sum(-1) * (x * x).sum(-1)), _told(x_at=m, y_at=n),
        )  # fmt: skip


def _in_order(subject: Rotary, lab: Lab) -> Callable[[Tensor, Tensor], Tensor]:
    """The turning, with the channels in the order in which they went in.

    Scores do not see a fixed order of the channels, the same for queries and keys.
    """
    if subject.first > 0:
        return subject.turn
    unit = torch.eye(subject.width).expand(1, subject.heads, -1, -1).contiguous()
    at = torch.zeros(1, subject.width, *[subject.axes] * bool(subject.axes), dtype=torch.int64)
    turned = subject.turn(lab.known(unit), lab.positions(at))
    zero = numbers_of(turned)[0].double()
    order = order_of(zero, subject.width * UNIT)
    if order is None:
        return subject.turn
    return lambda x, positions: subject.turn(x, positions)[..., order]


@law("composition", "rotary")
def _composition(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    x, m, n = _vectors(subject, lab), *_two(subject, lab)
    m, n = ((v - subject.first) // 2 + subject.first for v in (m, n))
    turn, zero = _in_order(subject, lab), torch.full_like(m, subject.first)
    twice = turn(turn(x, lab.positions(m)), lab.positions(n))
    once = turn(turn(x, lab.positions(m + n - zero)), lab.positions(zero))
    yield Sides(("turned by m, then by n", twice),
                (f"turned by m + n, then by {subject.first}", once), _told(m=m, n=n))  # fmt: skip


@law("linear", "rotary")
def _linear(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    x, y, m = _vectors(subject, lab), _vectors(subject, lab), lab.positions(_places(subject, lab))
    a, b = lab.numbers(1), lab.numbers(1)
    for turn in dict.fromkeys((subject.turn, subject.turn_key)):
        yield Sides(("a x + b y turned", turn(a * x + b * y, m)),
                    ("a · x turned + b · y turned", a * turn(x, m) + b * turn(y, m)),
                    _told(positions=m.numbers))  # fmt: skip


@law("identity-at-zero", "rotary")
def _zero(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if subject.first > 0:
        raise NotAsked(f"the code has no position 0, its first is {subject.first}")
    x, m = _vectors(subject, lab), torch.zeros_like(_places(subject, lab))
    a = _in_order(subject, lab)(x, lab.positions(m))
    yield Sides(("turned x_i · x_0", a * x[..., :1]), ("x_i · turned x_0", x * a[..., :1]),
                _told(positions=m))  # fmt: skip


@law("every-head-alike", "rotary")
def _heads(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if subject.heads < 2:
        raise NotAsked("the code has one head")
    m, order = _places(subject, lab), lab.order(subject.heads)
    x, other = lab.same(_vectors(subject, lab), 1, subject.heads), _vectors(subject, lab)
    for turn in dict.fromkeys((subject.turn, subject.turn_key)):
        found = turn(x, lab.positions(m))
        yield Sides(("every head", found), ("the first head", lab.same(found, 1, found.shape[1])),
                    _told(positions=m))  # fmt: skip
        # a head that turned another one's vector would still give the same for the same
        yield Sides(("heads permuted", turn(other[:, order], lab.positions(m))),
                    ("the results permuted", turn(other, lab.positions(m))[:, order]),
                    _told(positions=m, order=order))  # fmt: skip


@law("follows-its-ids", "rotary")
def _ids(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    x, m, order = _vectors(subject, lab), _places(subject, lab), lab.order(T)
    for turn in dict.fromkeys((subject.turn, subject.turn_key)):
        whole = turn(x, lab.positions(m))
        yield Sides(("permuted with their ids", turn(x[:, :, order], lab.positions(m[:, order]))),
                    ("the results permuted", whole[:, :, order]),
                    _told(positions=m, order=order))  # fmt: skip
        yield Sides(("rows exchanged with their ids", turn(x.flip(0), lab.positions(m.flip(0)))),
                    ("the results exchanged", whole.flip(0)), _told(positions=m))  # fmt: skip
        one = turn(x[:, :, 1:2].contiguous(), lab.positions(m[:, 1:2].contiguous()))
        yield Sides(("a token alone at its position", one), ("among others", whole[:, :, 1:2]),
                    _told(position=m[:, 1:2]))  # fmt: skip


@law("rows-of-batch-apart", "rotary")
def _rows(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    x, m = _vectors(subject, lab), _places(subject, lab)
    for turn in dict.fromkeys((subject.turn, subject.turn_key)):
        for size in (T, 1):
            whole = turn(x[:, :, :size].contiguous(), lab.positions(m[:, :size].contiguous()))
            for row in range(B):
                part = slice(row, row + 1)
                alone = turn(x[part, :, :size].contiguous(),
                             lab.positions(m[part, :size].contiguous()))  # fmt: skip
                yield Sides((f"row {row} in its batch", whole[part]), ("the row alone", alone),
                            _told(positions=m[:, :size]))  # fmt: skip


@law("equal-axes-are-one", "rotary")
def _axes(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if not subject.axes:
        raise NotAsked("positions have one coordinate")
    x, m = _vectors(subject, lab, 5), lab.whole_numbers(11, B, 5, first=subject.first)
    try:  # five tokens: positions (B, 5) are not read as (B, axes)
        one = subject.turn(x, lab.positions(m))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise NotAsked(f"it takes no positions of one axis ({type(error).__name__})") from error
    equal = m[..., None].repeat(1, 1, subject.axes)
    yield Sides(("all coordinates p", subject.turn(x, lab.positions(equal))),
                ("one axis, at p", one), _told(positions=m))  # fmt: skip


@law("turned-once", "rotary")
def _once(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if subject.all_three is None:
        raise NotAsked("the code turns queries and keys one by one")
    q, k, v = (_vectors(subject, lab) for _ in range(3))
    m = _places(subject, lab)
    a, b, c = subject.all_three(q, k, v, lab.positions(m))
    told = _told(positions=m)
    yield Sides(("queries", a), ("queries turned once", subject.turn(q, lab.positions(m))), told)
    yield Sides(("keys", b), ("keys turned once", subject.turn_key(k, lab.positions(m))), told)
    wanted = subject.turn_key(v, lab.positions(m)) if subject.values_turn else v
    words = "values turned once" if subject.values_turn else "values as they were"
    yield Sides(("values", c), (words, wanted), told)


@law("shift-of-cached-keys", "rotary")
def _shift(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if subject.shift is None:
        raise NotAsked("the code shifts no cached keys")
    k, m = _vectors(subject, lab), _places(subject, lab)
    for s in (1, SHIFT):
        yield Sides(
            (f"turned, then shifted by {s}",
             subject.shift(subject.turn_key(k, lab.positions(m)), s)),
            (f"turned at its position + {s}", subject.turn_key(k, lab.positions(m + s))),
            _told(positions=m, shift=s),
        )  # fmt: skip


@law("cache-keeps-its-positions", "rotary")
def _cache(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if subject.evict is None:
        raise NotAsked("the code evicts nothing from a cache")
    kept, raw, places = subject.evict(_vectors(subject, lab, 8))
    at = getattr(places, "numbers", places).long()
    positions = at.expand(B, *at.shape[-1:])
    yield Sides(("keys in the cache", kept),
                ("raw keys turned at their positions",
                 subject.turn_key(raw, lab.positions(positions.contiguous()))),
                _told(positions=at))  # fmt: skip


@law("conversion-keeps-scores", "rotary")
def _conversion(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    other = subject.converts_to
    if subject.convert is None or other is None:
        raise NotAsked("the code converts no projections")
    width, heads, m = subject.width, subject.heads, _places(subject, lab)
    x, embed = lab.numbers(B, T, width), width
    queries, keys = lab.numbers(heads * width, embed), lab.numbers(heads * width, embed)

    def scores(code: Rotary, left: Tensor, right: Tensor) -> Tensor:
        parts = (torch.matmul(x, w.transpose(0, 1)) for w in (left, right))
        q, k = (p.reshape(B, T, heads, width).transpose(1, 2) for p in parts)
        a, b = code.turn(q, lab.positions(m)), code.turn_key(k, lab.positions(m))
        found: Tensor = torch.matmul(a, b.transpose(-1, -2))
        return found

    yield Sides(("scores before", scores(subject, queries, keys)),
                ("scores after conversion", scores(other, *subject.convert(queries, keys, heads))),
                _told(positions=m))  # fmt: skip


@law("paths-agree", "rotary")
def _paths(subject: Rotary, lab: Lab) -> Iterator[Sides]:
    if not subject.paths:
        raise NotAsked("there is one path only")
    x, m = _vectors(subject, lab), _places(subject, lab)
    for name, path in subject.paths.items():
        yield Sides(("the main path", subject.turn(x, lab.positions(m))),
                    (name, path(x, lab.positions(m))), _told(positions=m))  # fmt: skip
