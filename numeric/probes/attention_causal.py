"""The law that no output depends on a later token: by value, weight and gradient, in training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..programs.subjects import Attention
from .attention_masks import embed_of, tokens_seen, weights_seen, wrongly
from .base import Outcome, held, not_asked, probe
from .influence import attend_sizes, layer_sizes
from .scene import Scene, arranged, in_formats, modules_of

__all__: list[str] = []


@probe("causal", "layer")
@probe("causal", "attention")
@in_formats
def causal(scene: Scene) -> Outcome:
    """∂f_i / ∂x_j = 0 for j > i: by other later tokens on every path, in training, by gradient."""
    declared, one = scene.declared, scene.subject
    said = declared.causal
    if said is False:
        return not_asked("declared as not causal")
    if not said:
        return not_asked("no causal mask is declared")
    told = []
    for name, call in _ways(scene):
        sizes = layer_sizes(getattr(one, "heads", 3))
        for b, t in sizes if name == "the main call" else sizes[:2]:
            found = tokens_seen(scene, call, b, t)
            seen = wrongly(found & _later(t), torch.zeros(t, t, dtype=torch.bool),
                           f"an output depends on a later token ({name})", "later tokens seen",
                           path=name, B=b, seed=scene.draw.seed)  # fmt: skip
            if seen is not None:
                return seen
        told.append(name)
    seen = _weights_later(scene)
    return seen if seen is not None else _gradients_later(scene, told)


def _weights_later(scene: Scene) -> Outcome | None:
    """Broken where a later key has weight; None where none has, or there are none to read."""
    if not isinstance(scene.subject, Attention) or scene.subject.attend is None:
        return None
    for t in (3, 6):
        found = weights_seen(scene, t, t).cpu()
        seen = wrongly(found & _later(t), torch.zeros(t, t, dtype=torch.bool),
                       "a later key has weight", "later keys", seed=scene.draw.seed)  # fmt: skip
        if seen is not None:
            return seen
    return None


def _gradients_later(scene: Scene, told: list[str]) -> Outcome:
    """Broken where an output has a gradient at a later token, else held with all that was seen."""
    how = "by gradient"
    for b, t in ((1, 3), (3, 6)):
        reached = _by_gradient(scene, _ways(scene)[0][1], b, t)
        if isinstance(reached, str):
            how = reached
            break
        seen = wrongly(reached & _later(t), torch.zeros(t, t, dtype=torch.bool),
                       "an output has a gradient (or NaN) at a later token",
                       "later tokens with a gradient", B=b, seed=scene.draw.seed)  # fmt: skip
        if seen is not None:
            return seen
    return held(f"no output depends on a later token: {', '.join([*told, how])}", 0.0, 0.0)


def _later(t: int) -> Tensor:
    return torch.ones(t, t, dtype=torch.bool).triu(1)


def _ways(scene: Scene) -> list[tuple[str, Callable[[Tensor], Tensor]]]:
    """Maps of tokens (B, T, E): the main call, the other paths, and training with fixed draws."""
    one = scene.subject
    if scene.tokens is not None:
        mains = [("the main call", scene.tokens)]
        mains += [(f"path {name}", path) for name, path in one.paths.items()]
    else:
        mains = [("the main call", _of_tokens(scene, one.attend))]
        mains += [(f"path {name}", _of_tokens(scene, path)) for name, path in one.paths.items()]
    if _drops(scene):
        mains.append(("training", _trained(scene, mains[0][1])))
    return mains


def _of_tokens(scene: Scene, attend: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """Code on queries, keys and values as a map of tokens (B, T, E), E what all three take."""
    _, _, _, h, g, d = attend_sizes(scene.subject, scene.declared)[0]

    def call(x: Tensor) -> Tensor:
        b, t, _ = x.shape
        wide = x.repeat(1, 1, -(-(h * d) // x.shape[-1]))
        parts = wide[..., : h * d].reshape(b, t, h, d).transpose(1, 2)
        return attend(parts, parts[:, :g], parts[:, :g], None).transpose(1, 2).flatten(2)

    return call


def _drops(scene: Scene) -> bool:
    """Whether training draws at random, and does not mix rows in a normalisation of the batch."""
    found = modules_of(scene.subject)
    if any(isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm)) for m in found):
        return False
    drops = any(isinstance(m, nn.Dropout) and m.p > 0 for m in found)
    return bool(found) and (drops or getattr(scene.subject, "dropout", 0.0) > 0)


def _trained(scene: Scene, call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def trained(x: Tensor) -> Tensor:
        with arranged(scene.subject, train=True), torch.random.fork_rng(devices=[]):
            torch.manual_seed(scene.draw.seed)
            return call(x)

    return trained


def _by_gradient(
    scene: Scene, call: Callable[[Tensor], Tensor], b: int, t: int
) -> Tensor | str:
    """Truth values (T, T): gradients that are not 0 (or NaN); words, where there are none."""
    x = scene.draw.normal(b, t, embed_of(scene), salt=t)
    found = torch.zeros(t, t, dtype=torch.bool)
    try:
        with torch.enable_grad():
            x.requires_grad_(True)
            out = call(x)
            facing = scene.draw.normal(*out.shape, salt=77)
            for i in range(t):
                (one,) = torch.autograd.grad((out[:, i] * facing[:, i]).sum(), x, retain_graph=True)
                # zeros times weights: what rounding leaves of a sum of exact zeros is zero
                found[i] = ((one != 0) | one.isnan()).any(-1).any(0).cpu()
    except RuntimeError:
        return "no gradient is there to look at"
    return found
