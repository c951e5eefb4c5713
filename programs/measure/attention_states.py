"""Laws of calls that follow each other: steps with a cache, and padding."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import Outcome, not_asked, probe
from .scene import Scene, in_formats

__all__: list[str] = []


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
