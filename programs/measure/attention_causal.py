"""The law that no output depends on a later token: by value, weight and gradient, in training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from ..arranging import arranged, modules_of
from ..finite import finite_gradients
from ..response import Unsteady
from ..subjects import Attention
from .attention_fills import read_through
from .attention_masks import embed_of, tokens_reached, weights_seen, wrongly
from .base import Outcome, held, probe, undecided
from .influence import attend_sizes, layer_sizes
from .scene import Scene, in_formats

__all__: list[str] = []

MAIN, TRAINING = "the main call", "training"
LONG = 130  # more than two blocks of 64, which kernels have
EDGES = (1, 63, 64, 65, 128, 129)


@probe("causal", "layer")
@probe("causal", "attention")
@in_formats
def causal(scene: Scene) -> Outcome:
    """∂f_i / ∂x_j = 0 for j > i: by other later tokens on every path, in training, by gradient.

    Nor do outputs change where later tokens are left out, at these few lengths: what changes in
    long calls alone (dynamic NTK) is not asked, a scale by the length of the call is.
    """
    one = scene.subject
    told, most, allowed = [], 0.0, 0.0
    for name, call in _ways(scene):
        sizes = layer_sizes(getattr(one, "heads", 3))
        for b, t in sizes if name == MAIN else sizes[:2]:
            reached, within = tokens_reached(scene, call, b, t)
            most = max(most, float((reached * _later(t)).max()))
            allowed = max(allowed, within)
            seen = wrongly((reached > within) & _later(t), torch.zeros(t, t, dtype=torch.bool),
                           f"an output depends on a later token ({name})", "later tokens seen",
                           path=name, B=b, seed=scene.draw.seed)  # fmt: skip
            if seen is not None:
                return seen
            seen = _cut(scene, name, call, b, t)
            if seen is not None:
                return seen
        if name == MAIN:
            seen = _long(scene, call)
            if seen is not None:
                return seen
        told.append(name)
    found = _weights_later(scene) or _gradients_later(scene, told)
    if found.witness is None and scene.low and most > 0:
        return undecided("outputs change with later tokens, by no more than rounding explains in "
                         "this format", most, allowed)  # fmt: skip
    return found if found.witness is not None else replace(found, error=most, bound=allowed)


def _long(scene: Scene, call: Callable[[Tensor], Tensor]) -> Outcome | None:
    """Broken where outputs change with all later tokens of a longer call; None where not."""
    x = scene.draw.normal(1, LONG, embed_of(scene), salt=LONG)
    other = scene.draw.normal(1, LONG, embed_of(scene), salt=LONG + 1)
    try:
        whole = scene.allow(call, x)
    except Unsteady:
        raise
    except Exception:  # noqa: BLE001 (code of fewer tokens raises what it likes)
        return None
    for n in EDGES:
        changed = call(torch.cat((x[:, :n], other[:, n:]), 1))
        seen = scene.differs(
            "", ("the first outputs", whole.output[:, :n]),
            ("the same with other later tokens", changed[:, :n]), whole(2),
            f"an output depends on a later token (of {LONG} tokens)", T=LONG, tokens=n,
        )  # fmt: skip
        if seen.witness is not None:
            return seen
    return None


def _cut(
    scene: Scene, name: str, call: Callable[[Tensor], Tensor], b: int, t: int
) -> Outcome | None:  # fmt: skip
    """Broken where the first outputs are others without the later tokens; None where they are not.

    In training what is dropped is drawn for another shape, and code may take one length alone.
    """
    x = scene.draw.normal(b, t, embed_of(scene), salt=t)
    if name == TRAINING:
        return None
    whole = scene.allow(call, x)
    for n in sorted({1, t // 2, t - 1} - {0, t}):
        try:
            alone = scene.allow(call, x[:, :n].contiguous())
        except Unsteady:
            raise
        except Exception:  # noqa: BLE001 (code of one length raises what it likes)
            return None
        seen = scene.differs(
            "", ("the first outputs of all tokens", whole.output[:, :n]),
            ("those of the first tokens alone", alone.output), whole() + alone(),
            "an output changes where later tokens are left out, and not with what stands in them "
            f"({name}): the length of the call enters", B=b, T=t, tokens=n, path=name,
        )  # fmt: skip
        if seen.witness is not None:
            return seen
    return None


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
    ways = ", ".join([*told, how])
    return held(f"no output depends on a later token: {ways}{read_through(scene)}", 0.0, 0.0)


def _later(t: int) -> Tensor:
    return torch.ones(t, t, dtype=torch.bool).triu(1)


def _ways(scene: Scene) -> list[tuple[str, Callable[[Tensor], Tensor]]]:
    """Maps of tokens (B, T, E): the main call, the other paths, and training with fixed draws."""
    one = scene.subject
    if scene.tokens is not None:
        mains = [(MAIN, scene.tokens)]
        mains += [(f"path {name}", path) for name, path in one.paths.items()]
    else:
        mains = [(MAIN, _of_tokens(scene, one.attend))]
        mains += [(f"path {name}", _of_tokens(scene, path)) for name, path in one.paths.items()]
    if _drops(scene):
        mains.append((TRAINING, _trained(scene, mains[0][1])))
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
    """Truth values (T, T): gradients that are not 0; words, where there are none.

    Raises ``NotFinite`` for one that is no number: that is no influence.
    """
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
                finite_gradients("the layer", one, x)
                found[i] = (one != 0).any(-1).any(0).cpu()
    except RuntimeError:
        return "no gradient is there to look at"
    return found
