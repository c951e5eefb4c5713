"""Laws of the scores of attention: a scale times q·k, where a common number changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from ..finding import Seen
from ..identify.weights import read_weights
from ..response import gap
from .attention_projected import projected
from .base import Outcome, broken, held, not_asked, probe, undecided
from .influence import attend_sizes, inputs, named
from .laws import instead
from .scene import Scene, in_formats

__all__: list[str] = []


LARGE = 1e4


@instead("shift-of-scores")
def large_in_a_layer(scene: Scene) -> Outcome:
    """Large scores inside a layer give numbers, where its projections can be set."""
    inner = projected(scene.subject)
    if inner is None:
        return not_asked("the code takes tokens: nothing can be added to its scores")
    sizes = attend_sizes(inner, scene.declared)[0]
    most = torch.finfo(scene.draw.dtype).max
    large = LARGE * math.log(most) / math.log(torch.finfo(torch.float32).max)  # an exponent's range
    large = min(large, math.sqrt(most) / 16)  # so that products are finite
    for name in "qk":
        given = dict(zip("qkv", inputs(scene, sizes, 80), strict=True))
        given[name] = large * given[name]
        assert inner.attend is not None  # what is projected has one
        found = inner.attend(*given.values(), None)
        bad = (~found.isfinite()).nonzero().tolist()
        if bad:
            words = ("queries", "keys")[name == "k"]
            seen = Seen({**named(sizes), "seed": scene.draw.seed, f"{words} times": large},
                        ("what attention gives inside the layer", str(float(found[tuple(bad[0])]))),
                        ("wanted there", "a finite number"), math.inf)  # fmt: skip
            return broken(f"large scores give {float(found[tuple(bad[0])])} inside the layer", seen)
    return not_asked("the code takes tokens: nothing can be added to its scores; large ones give "
                     "finite numbers")  # fmt: skip


@probe("scale-as-declared", "attention")
@in_formats
def scale_as_declared(scene: Scene) -> Outcome:
    """ln(p_0 / p_1) − ln(p_0' / p_1') = scale · gap of the scores, for two keys and every head."""
    one = scene.subject
    inside = one.attend is None
    if inside:
        inner = projected(one) if scene.declared.scale is not None else None
        if inner is None:
            return not_asked("the code takes tokens: its scores cannot be set")
        scene, one = replace(scene, subject=inner), inner
    for sizes in _two_keys(scene):
        read = _read_scale(scene, sizes)
        wanted = scene.declared.scale or 1 / math.sqrt(sizes[5])
        apart = float((read[0] - wanted).abs().max())
        if not math.isfinite(read[1]):
            return undecided("one of two keys has no weight, so that no scale can be read")
        as_wanted = apart <= read[1]
        if as_wanted and (not inside or _products(scene, sizes, wanted)):
            continue
        if as_wanted or not _products(scene, sizes, float(read[0].median())):
            return undecided("the scores are not a scale times q·k: no scale can be read")
        values = sorted({round(float(x), 6) for x in read[0].flatten()})[:4]
        seen = Seen({**named(sizes), "seed": scene.draw.seed}, ("the scale that was read", values),
                    ("the declared scale", wanted), apart, read[1])  # fmt: skip
        return Outcome(_scale_words(values, wanted), apart, read[1], seen,
                       sizes=named(sizes))  # fmt: skip
    return held(f"the weights have the ratios of scale {wanted:.6g}", apart, read[1])


def _scale_words(values: list[float], wanted: float) -> str:
    read = " or ".join(f"{value:.6g}" for value in values)
    return f"weights have the ratios of a scale of {read}, and {wanted:.6g} is declared"


def _two_keys(scene: Scene) -> list[tuple[int, int, int, int, int, int]]:
    known = attend_sizes(scene.subject, scene.declared)
    found = [(1, 2, 2, h, g, d) for _, _, _, h, g, d in known]
    return list(dict.fromkeys(found))


def _read_scale(scene: Scene, sizes: tuple[int, ...]) -> tuple[torch.Tensor, float]:
    """The scale of every head at three gaps (3, H), and how exactly it was read."""
    _, t, s, h, g, d = sizes
    scales, doubt = [], 0.0
    for score in (0.5, 1.0, -2.0):
        q = torch.zeros(1, h, t, d, dtype=scene.draw.dtype, device=scene.draw.device)
        k = torch.zeros(1, g, s, d, dtype=scene.draw.dtype, device=scene.draw.device)
        along = min(1, d - 1)
        q[..., along], k[..., 0, along] = 1.0, score
        q[..., 0] = 1.0

        def last(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return read_weights(scene.subject.attend, q, k)[:, :, -1]

        with_gap, without = scene.allow(last, q, k), scene.allow(last, q, torch.zeros_like(k))
        ratio = [one.output.double().clamp(min=1e-300).log() for one in (with_gap, without)]
        least = min(float(one.output.min()) for one in (with_gap, without))
        log = (ratio[0][..., 0] - ratio[0][..., 1]) - (ratio[1][..., 0] - ratio[1][..., 1])
        scales.append(log[0] / score)
        # d ln p = dp / p, for each of the four weights
        off = 2 * (with_gap() + without()) / least if least > 0 else math.inf
        doubt = max(doubt, off / abs(score))
    return torch.stack(scales), doubt


def _products(scene: Scene, sizes: tuple[int, ...], scale: float) -> bool:
    """Whether the last query's weights have the ratios of exp(scale q·k) at normal inputs."""
    _, _, _, h, g, d = sizes
    q, k, _ = inputs(scene, (1, 3, 3, h, g, d), 70)
    read = scene.allow(lambda q, k: read_weights(scene.subject.attend, q, k)[:, :, -1], q, k)
    weights = read.output.double()
    for keys in (k.repeat_interleave(h // g, 1), k.repeat(1, h // g, 1, 1)):  # repeated, or tiled
        products = (q[:, :, -1:].double() * keys.double()).sum(-1) * scale
        expected = torch.where(weights > 0, products, -math.inf).softmax(-1)
        # the scale itself was read no better than the weights were
        if gap(weights, expected) <= read(4):
            return True
    return False
