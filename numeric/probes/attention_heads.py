"""Laws of the heads of attention: each reads its own queries, and the keys of its own group."""

from __future__ import annotations

import torch

from ..programs.finding import Seen
from .base import Outcome, not_asked, probe
from .influence import attend_sizes, inputs, named
from .scene import Scene, in_formats

__all__: list[str] = []


@probe("groups-of-heads", "attention")
@in_formats
def groups_of_heads(scene: Scene) -> Outcome:
    """Head h reads the keys and values of group h // (H / G): repeated, not tiled."""
    one = scene.subject
    sizes = [n for n in attend_sizes(one, scene.declared) if n[3] > n[4]]
    if not sizes:
        return not_asked("there are as many key heads as query heads")
    found = [n for n in sizes if n[4] > 1] or sizes
    for size in found:
        q, k, v = inputs(scene, size)
        b, _, s, h, g, d = size
        plain = scene.allow(lambda q, k, v: one.attend(q, k, v, None), q, k, v)
        for group in range(g):
            other = v.clone()
            other[:, group] = scene.draw.normal(b, s, d, salt=30 + group)
            change = (one.attend(q, k, other, None).double() - plain.output.double()).abs()
            # what a head does not read enters none of its sums: its numbers stay, to the bit
            reads = change.amax(dim=(0, 2, 3)) > 0
            expected = torch.arange(h, device=reads.device) // (h // g) == group
            seen = scene.differs(
                "each group of heads read its own keys and values",
                (f"whether a head reads group {group}", reads.double()),
                ("whether it should", expected.double()), 0.0,
                f"key group {group} is read by {_heads(reads)}; it should be by {_heads(expected)}",
                **named(size),
            )  # fmt: skip
            if seen.witness is not None:
                return seen
    return seen


def _heads(which: torch.Tensor) -> str:
    """The heads of truth values (H,), in words."""
    numbers = [int(n) for n in which.nonzero()]
    told = ", ".join(map(str, numbers[:8])) + (" .." if len(numbers) > 8 else "")
    return f"head{'s' * (len(numbers) > 1)} {told}" if numbers else "no head"


@probe("heads-apart", "attention")
@in_formats
def heads_apart(scene: Scene) -> Outcome:
    """What is asked in one head, and what stands in one group, changes no other head."""
    one = scene.subject
    sizes = [n for n in attend_sizes(one, scene.declared) if n[3] > 1]
    if not sizes:
        return not_asked("there is one head")
    for size in sizes:
        q, k, v = inputs(scene, size)
        b, t, s, h, g, d = size
        plain = scene.allow(lambda q, k, v: one.attend(q, k, v, None), q, k, v)
        for head in range(min(h, 6)):
            other = q.clone()
            other[:, head] = scene.draw.normal(b, t, d, salt=40 + head)
            after = one.attend(other, k, v, None)
            rest = [n for n in range(h) if n != head]
            seen = scene.differs(
                "queries, keys and values of one head reached no other",
                (f"the output of the other heads, with other queries in head {head},",
                 after[:, rest]),
                ("their output as it was", plain.output[:, rest]), plain(), **named(size),
            )  # fmt: skip
            if seen.witness is not None:
                return seen
        moved = v.clone()
        moved[:, 0] = scene.draw.normal(b, s, d, salt=60)
        keys = k.clone()
        keys[:, 0] = scene.draw.normal(b, s, d, salt=61)
        change = (one.attend(q, keys, moved, None).double() - plain.output.double()).abs()
        reached = int((change.amax(dim=(0, 2, 3)) > plain()).sum())
        if reached > h // g:
            far, told = float(change.max()), {**named(size), "seed": scene.draw.seed}
            wrong = Seen(told, ("heads that group 0 reaches", reached),
                         ("heads of a group", h // g), far, plain())  # fmt: skip
            return Outcome("keys and values of one group reached heads of others", far, plain(),
                           wrong, sizes=named(size))  # fmt: skip
    return seen
