"""What laws read off code beside what it gives: what it sees, its gradients, and its training.

What is seen is whether a number is 0, or the same as before: nothing is rounded there, so it is
read on floats alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..arranging import arranged, modules_of
from ..draw import Draw
from ..finite import finite_gradients
from ..influence import changes
from ..subjects import Attention, Layer
from .weights import read_weights

__all__ = ["NotAsked", "drops", "pulled", "reached", "set_dropout", "trained", "undropped",
           "weighs"]  # fmt: skip

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
SCALES = (1.0, 0.1, 0.01)  # of tokens: what is large in one may hide another


class NotAsked(Exception):
    """The law is not asked of this code; the text says why."""


def weighs(attend: Callable[..., Tensor], *, anywhere: bool) -> Callable[..., Tensor]:
    """Queries and keys, and a mask -> 1 where a weight is not 0 for scores of 0 (B, H, T, S).

    ``anywhere``: the same in any head or row (T, S), without a mask; and with keys in its place
    those of the last query alone (S,).
    """

    def found(q: Tensor, k: Tensor, more: Any = None) -> Tensor:
        mask, keys = (None, more) if anywhere else (more, None)
        seen = read_weights(attend, torch.zeros_like(q), k, mask, keys) != 0  # NaN is seen
        if anywhere:
            seen = seen.flatten(0, 1).any(0)
        return _of_last(seen[-1], keys, k.shape[2]) if keys is not None else seen.double()

    return found


def reached(layer: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Tokens x and y -> 1 where an output changes with the token of a place (T, T).

    With places: of the last output alone (T,).
    """

    def found(x: Tensor, y: Tensor, keys: Sequence[int] | None = None) -> Tensor:
        places = list(range(x.shape[1])) if keys is None else list(keys)
        seen = torch.zeros(x.shape[1], len(places), dtype=torch.bool)
        for scale in SCALES:
            seen |= changes(layer, scale * x, scale * y, places)[:, places] > 0
            if bool(seen.all()):
                break
        return seen.double() if keys is None else _of_last(seen[-1], keys, x.shape[1])

    return found


def _of_last(seen: Tensor, keys: Sequence[int], many: int) -> Tensor:
    found = torch.zeros(many, dtype=torch.float64)
    found[list(keys)] = seen.double().cpu()
    return found


def pulled(call: Callable[..., Tensor], name: str, axis: int) -> Callable[..., Any]:
    """n and inputs -> the gradients of what the first n outputs are along a fixed vector.

    Raises ``NotFinite`` for one that is no number: that is no influence.
    """

    def found(n: int, *given: Tensor) -> Any:
        inputs = [x.detach().clone().requires_grad_(True) for x in given]
        with torch.enable_grad():
            out = call(*inputs).narrow(axis, 0, n)
            facing = Draw(dtype=out.dtype, device=str(out.device)).normal(*out.shape, salt=77)
            made: tuple[Any, ...] = torch.autograd.grad(
                (out * facing).sum(), inputs, allow_unused=True
            )
        grads = [torch.zeros_like(x) if grad is None else grad
                 for grad, x in zip(made, inputs, strict=True)]  # fmt: skip
        for grad, x in zip(grads, inputs, strict=True):
            finite_gradients(name, grad, x.detach())
        return grads if len(grads) > 1 else grads[0]

    return found


def drops(subject: Attention | Layer) -> bool:
    """Whether training draws at random, and does not mix rows in a normalisation of the batch."""
    found = modules_of(subject)
    if any(isinstance(m, NORMS) for m in found):
        return False
    dropout = any(isinstance(m, nn.Dropout) and m.p > 0 for m in found)
    return bool(found) and (dropout or getattr(subject, "dropout", 0.0) > 0)


def trained(subject: Attention | Layer, call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call in training, where each call draws the same."""

    def found(*given: Any) -> Tensor:
        with arranged(subject, train=True), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return call(*given)

    return found


def set_dropout(subject: Attention | Layer, p: float) -> None:
    """Dropout of every module that has one; what is set is put back with the arrangement."""
    for m in modules_of(subject):
        if isinstance(m, nn.Dropout):
            m.p = p
        for name, value in list(m.__dict__.items()):
            if "drop" in name and isinstance(value, float) and 0 <= value < 1:
                m.__dict__[name] = p


def undropped(subject: Attention | Layer, call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call in training, with nothing dropped.

    Raises ``NotAsked`` where training is meant to be otherwise: it draws, or it norms a batch.
    """

    def found(*given: Any) -> Tensor:
        if any(isinstance(m, NORMS) for m in modules_of(subject)):
            raise NotAsked("training takes means over the batch, which evaluation has stored")
        made = []
        for seed in (0, 1):
            with arranged(subject, train=True), torch.random.fork_rng(devices=[]):
                set_dropout(subject, 0.0)
                torch.manual_seed(seed)
                made.append(call(*given))
        if not torch.equal(*made):
            raise NotAsked("training draws at random without dropout too")
        return made[0]

    return found
