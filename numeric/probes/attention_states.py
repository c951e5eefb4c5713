"""Laws of calls that follow each other: steps with a cache, and padding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..programs.finding import Seen
from .base import Outcome, not_asked, probe
from .scene import Scene, in_formats

__all__: list[str] = []


@probe("step-by-step", "attention")
@in_formats
def step_by_step(scene: Scene) -> Outcome:
    """Tokens one at a time, in chunks, and prefill then steps, give what all at once give."""
    one = scene.subject
    if scene.declared.causal is None and _sees_ahead(scene):
        return not_asked("its tokens see later ones: fed in pieces they cannot")
    for b, chunks in _feeds(one.heads):
        t = sum(chunks)
        x = scene.draw.normal(b, t, one.embed, salt=t)
        words = " then ".join(str(n) for n in chunks[:4]) + (" .." if len(chunks) > 4 else "")

        def feed(x: Tensor, chunks: tuple[int, ...] = chunks) -> Tensor:
            return torch.cat(_fed(one.step, x, chunks), 1)

        whole = one.layer if one.layer is not None else (lambda x, t=t: feed(x, (t,)))
        at_once = scene.allow(whole, x)
        try:
            fed = feed(x)
        except _Refused as error:
            told = {"B": b, "T": t, "E": one.embed, "chunks": list(chunks)}
            whole_shape = ("the shape of all at once", list(at_once.output.shape))
            seen = Seen(told | {"seed": scene.draw.seed}, ("fed in chunks", str(error)),
                        whole_shape, math.inf, at_once())  # fmt: skip
            why = f"tokens fed as {words}: {error}"
            return Outcome(why, math.inf, at_once(), seen, sizes={"T": t})
        seen_now = scene.differs(
            "tokens one at a time, in chunks, and prefill then steps gave what all at once gave",
            (f"the output of tokens fed as {words}", fed), ("that of all at once", at_once.output),
            at_once(2), B=b, T=t, E=one.embed, chunks=list(chunks),
        )  # fmt: skip
        if seen_now.witness is not None:
            return seen_now
    return seen_now


def _sees_ahead(scene: Scene) -> bool:
    """Whether a change of the last token changes what all at once gives for those before it."""
    one = scene.subject
    if one.layer is None:
        return False
    x = scene.draw.normal(1, 3, one.embed, salt=7)
    other = torch.cat((x[:, :2], scene.draw.normal(1, 1, one.embed, salt=8)), 1)
    at_once = scene.allow(one.layer, x)
    away = (at_once.output - one.layer(other)).abs()[:, :2]
    return bool(away.max() > at_once(2))


class _Refused(RuntimeError):
    """A chunk that the code did not take though it took the ones before."""


def _feeds(heads: int) -> list[tuple[int, tuple[int, ...]]]:
    """Rows and chunks: ones, twos, threes, prefill then steps, tokens as many as heads or rows."""
    few = max(2, min(heads, 8))
    return [(1, (1, 1)), (1, (2, 1)), (1, (1, 2)), (3, (1,) * 6), (3, (2, 2, 2)), (2, (2, 3)),
            (3, (3, 1, 1, 1)), (1, (5, 1)), (5, (4, 1)), (2, (1,) * few),
            (2, (7, 6, 1, 1))]  # fmt: skip


def _fed(step: Callable[..., Any], x: Tensor, chunks: tuple[int, ...]) -> list[Tensor]:
    state, outputs, start = None, [], 0
    for n, many in enumerate(chunks):
        try:
            output, state = step(x[:, start : start + many].contiguous(), state)
        except Exception as error:
            if n == 0:
                raise
            told = " ".join(str(error).split())[:160]
            raise _Refused(f"chunk {n} of {many} raised {type(error).__name__}: {told}") from error
        outputs.append(output)
        start += many
    return outputs


@probe("padding-does-nothing", "attention")
@in_formats
def padding_does_nothing(scene: Scene) -> Outcome:
    """A padded row gives at its tokens what it gives alone: at once, at prefill, two steps on."""
    one = scene.subject
    if one.padded_step is None and (one.hide is None or one.layer is None):
        return not_asked("the code takes no padding")
    seen = None
    if one.hide is not None and one.layer is not None:
        seen = _padded_at_once(scene)
    if one.padded_step is not None and (seen is None or seen.witness is None):
        seen = _padded_steps(scene)
    return seen or not_asked("the code takes no padding")


def _padded_at_once(scene: Scene) -> Outcome:
    one = scene.subject
    looks = one.positional or scene.declared.positions == "absolute"
    for b, lengths in ((1, [2]), (3, [6, 4, 1]), (2, [3, 5])):
        t = max(lengths) + (b == 1)
        for side in ("right",) if looks else ("right", "left"):
            rows = [scene.draw.normal(1, n, one.embed, salt=20 + n) for n in lengths]
            x, counts = _pad(rows, t, side, scene)
            plain = scene.allow(lambda x, c=counts: one.hide(x, c), x)
            for n, row in enumerate(rows):
                alone = one.layer(row)
                # positions that padding shifts turn by angles off by their size
                seen = scene.differs(
                    "padded rows gave at their tokens what they give alone",
                    (f"the output of row {n} ({_many(lengths[n])}, padded on the {side} to {t})",
                     plain.output[n][counts[n]]),
                    ("that of the row alone", alone[0]), plain(2, places=t), B=b, T=t,
                    E=one.embed, lengths=lengths,
                )  # fmt: skip
                if seen.witness is not None:
                    return seen
    return seen


def _many(tokens: int) -> str:
    return f"{tokens} token{'s' * (tokens != 1)}"


def _pad(rows: list[Tensor], t: int, side: str, scene: Scene) -> tuple[Tensor, Tensor]:
    """Rows in one batch, with normal numbers as padding, and which tokens count."""
    x = scene.draw.normal(len(rows), t, rows[0].shape[-1], salt=19)
    counts = torch.zeros(len(rows), t, dtype=torch.bool, device=x.device)
    for n, row in enumerate(rows):
        many = row.shape[1]
        part = slice(0, many) if side == "right" else slice(t - many, t)
        x[n, part] = row[0]
        counts[n, part] = True
    return x, counts


def _padded_steps(scene: Scene) -> Outcome:
    """Rows of unequal length, padded on the left: prefill, then two steps of one token."""
    one = scene.subject
    assert one.padded_step is not None
    step = one.padded_step
    for lengths in ([1, 2], [6, 4, 1], [3, 3, 2]):
        t, b = max(lengths), len(lengths)
        rows = [scene.draw.normal(1, n + 2, one.embed, salt=20 + 7 * k)
                for k, n in enumerate(lengths)]  # fmt: skip
        prefill = [row[:, :n] for row, n in zip(rows, lengths, strict=True)]
        first, _ = _pad(prefill, t, "left", scene)
        later = torch.cat([row[:, -2:] for row in rows])
        pads = torch.tensor([t - n for n in lengths], device=first.device)

        def run(first: Tensor, later: Tensor, pads: Tensor = pads) -> Tensor:
            output, state = step(first, None, pads)
            second, state = step(later[:, :1], state, pads)
            third, _ = step(later[:, 1:], state, pads)
            return torch.cat([output, second, third], 1)

        together = scene.allow(run, first, later)
        for n, row in enumerate(rows):
            none = torch.zeros(1, dtype=pads.dtype, device=pads.device)

            def single(row: Tensor, many: int = lengths[n], none: Tensor = none) -> Tensor:
                return run(row[:, :many], row[:, many:], none)

            seen = scene.differs(
                "rows padded on the left gave what each gives alone, at prefill and two steps more",
                (f"the output of row {n} ({_many(lengths[n])}, padded to {t}) and two steps more",
                 together.output[n, t - lengths[n] :]),
                ("that of the row alone", single(row)[0]), together(2, places=t), B=b, T=t,
                E=one.embed, lengths=lengths,
            )  # fmt: skip
            if seen.witness is not None:
                return seen
    return seen
