"""Calls that laws make of code beside its outputs: visible keys, gradients, behaviour in training.

Each maps a call of the code to another call.  Visibility means that a number is 0 or unchanged,
which involves no rounding, so it is read on floats only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..calls.masks import changes
from ..execution.calling import arranged, drawn_since, modules_of, random_states
from ..execution.draw import Draw
from ..execution.finite import NotFinite, finite_gradients
from ..execution.running import CodeFault, in_a_line
from ..subjects import Attention, Layer
from .weights import read_weights

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
SCALES = (1.0, 0.1, 0.01)  # of tokens: a large contribution may hide a small one


class NotAsked(Exception):
    """The law does not apply to this code; the message says why."""


def visible_keys(attend: Callable[..., Tensor], *, anywhere: bool) -> Callable[..., Tensor]:
    """Map queries, keys and a mask to 1 where a weight is not 0 at scores of 0: (B, H, r, n).

    ``anywhere``: combine heads and rows of the batch, without a mask: (r, n).  Then the third
    argument may list keys, and the result covers only these, for the last query (S,), or with
    ``every`` for each query.
    """

    def found(q: Tensor, k: Tensor, more: Any = None, every: bool = False) -> Tensor:
        mask, keys = (None, more) if anywhere else (more, None)
        seen = read_weights(attend, torch.zeros_like(q), k, mask, keys) != 0  # NaN counts as seen
        if anywhere:
            seen = seen.flatten(0, 1).any(0)
        if keys is None:
            return seen.double()
        return _at_places(seen if every else seen[-1], keys, k.shape[2])

    return found


def reached_tokens(layer: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Map tokens x and y to 1 where an output changes if one token of x becomes that of y: (n, n).

    If places are given, only those tokens are replaced, and only the last output is compared (n,),
    unless ``every`` is set.  ``wanted`` (n, n): the search ends once these changes are found.
    """

    def found(
        x: Tensor,
        y: Tensor,
        keys: Sequence[int] | None = None,
        every: bool = False,
        wanted: Tensor | None = None,
    ) -> Tensor:
        places = list(range(x.shape[1])) if keys is None else list(keys)
        seen = torch.zeros(x.shape[1], len(places), dtype=torch.bool)
        enough = torch.ones_like(seen) if wanted is None else wanted[:, places].to(seen)
        for scale in SCALES:
            seen |= changes(layer, scale * x, scale * y, places)[:, places] > 0
            if bool((seen | ~enough).all()):
                break
        if keys is None:
            return seen.double()
        return _at_places(seen if every else seen[-1], keys, x.shape[1])

    return found


def _at_places(seen: Tensor, keys: Sequence[int], many: int) -> Tensor:
    found = torch.zeros(*seen.shape[:-1], many, dtype=torch.float64)
    found[..., list(keys)] = seen.double().cpu()
    return found


def gradients(call: Callable[..., Tensor], name: str, axis: int) -> Callable[..., Any]:
    """Map n and inputs to the gradients of the first n outputs along a fixed vector.

    Raises ``NotFinite`` if a gradient is not finite, since that does not measure an influence.
    """

    def found(n: int, *given: Tensor) -> Any:
        grads = _gradients(call, axis, n, given)
        for grad, x in zip(grads, given, strict=True):
            finite_gradients(name, grad, x.detach())
        return grads if len(grads) > 1 else grads[0]

    return found


def row_gradients(call: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    """Map n and inputs to the gradients of the first n rows of a batch, or of the last -n.

    Raises ``NotAsked`` if there are none, or none that is finite: code need not be differentiable.
    """

    def found(n: int, *given: Tensor) -> list[Tensor]:
        try:
            grads = _gradients(call, 0, n, given)
        except (CodeFault, NotFinite):
            raise
        except Exception as error:
            raise NotAsked(f"its gradient was not computed: {in_a_line(error, 100)}") from error
        if not all(bool(grad.isfinite().all()) for grad in grads):
            raise NotAsked("its gradient is not finite")
        return grads

    return found


def _gradients(
    call: Callable[..., Tensor], axis: int, n: int, given: Sequence[Tensor]
) -> list[Tensor]:
    """Return the gradients of the first n outputs along an axis, or of the last -n.

    They are of the sum along a fixed vector, with respect to each input of floats.
    """
    inputs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in given]
    moved = [x for x in inputs if x.requires_grad]
    with torch.enable_grad():
        out = call(*inputs)
        out = out.narrow(axis, min(n, 0), abs(n))
        facing = Draw(dtype=out.dtype, device=str(out.device)).normal(*out.shape, salt=77)
        made: tuple[Any, ...] = torch.autograd.grad((out * facing).sum(), moved, allow_unused=True)
    return [
        torch.zeros_like(x) if grad is None else grad for grad, x in zip(made, moved, strict=True)
    ]


def has_dropout(subject: Attention | Layer) -> bool:
    """Whether training draws random numbers and no module normalizes over the batch."""
    found = modules_of(subject)
    if any(isinstance(m, NORMS) for m in found):
        return False
    dropout = any(isinstance(m, nn.Dropout) and m.p > 0 for m in found)
    return bool(found) and (dropout or getattr(subject, "dropout", 0.0) > 0)


def in_training(subject: Attention | Layer, call: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call in training mode, with the same random numbers in every call."""

    def found(*given: Any) -> Tensor:
        with arranged(subject, train=True), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return call(*given)

    return found


def set_dropout(subject: Attention | Layer, p: float) -> None:
    """Set the dropout of every module that has it; ``arranged`` restores the old values."""
    for m, name in _dropouts(subject):
        setattr(m, name, p)


def takes_dropout(subject: Attention | Layer) -> bool:
    """Whether :func:`set_dropout` changes anything."""
    return next(_dropouts(subject), None) is not None


def _dropouts(subject: Attention | Layer) -> Iterator[tuple[nn.Module, str]]:
    """Yield the modules that have a dropout, and the name of its attribute."""
    for m in modules_of(subject):
        if isinstance(m, nn.Dropout):
            yield m, "p"
        for name, value in list(m.__dict__.items()):
            if "drop" in name and isinstance(value, float) and 0 <= value < 1:
                yield m, name


def without_dropout(
    subject: Attention | Layer, call: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """A call in training mode with dropout disabled.

    Raises ``NotAsked`` if training differs by design: it still draws random numbers, or normalizes
    over the batch.
    """

    def found(*given: Any) -> Tensor:
        if any(isinstance(m, NORMS) for m in modules_of(subject)):
            raise NotAsked("training uses means over the batch, evaluation stored ones")
        made, drew = [], False
        for seed in (0, 1):
            with arranged(subject, train=True), torch.random.fork_rng(devices=[]):
                set_dropout(subject, 0.0)
                torch.manual_seed(seed)
                before = random_states()
                made.append(call(*given))
                drew = drew or drawn_since(before)
        if not torch.equal(*made):
            raise NotAsked(
                "training is random even without dropout"
                if drew
                else "a call in training depends on earlier calls: see stateless"
            )
        return made[0]

    return found
