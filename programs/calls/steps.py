"""Code that is called in steps: what carries its state, how a step begins, how one is called.

The line of a step names the state that the code takes, and what it leaves comes back under the same
name or is written in place.  A line that names none belongs to a module that keeps its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..execution.draw import normal
from ..execution.state import copied_state, copy_with_own_state
from ..signatures.signature import SignatureError
from .roles import describe_call_error

if TYPE_CHECKING:
    from .tokens import OnTokens

# What a step leaves: values by name, or one module for each row; and the number of tokens so far.
Left = tuple[Mapping[str, Any] | tuple[nn.Module, ...], int]


@dataclass(frozen=True, eq=False)
class Steps:
    """A step: a chunk of tokens (B, c, E) and the state -> (B, c, E) and the next state.

    The state, None at first, is what the previous step left.  It is copied before it is written to,
    so that a step can be repeated.  A module that keeps its own starts from ``own``, what it held
    when this was made, so that no step can read what a later call leaves.
    """

    call: OnTokens
    own: nn.Module | None  # None if the line of the step names the state

    def __call__(self, x: Tensor, state: Left | None) -> tuple[Tensor, Left]:
        """Take a step.  Raises :class:`SignatureError` if nothing carries the state."""
        left, past = (self._start(x), 0) if state is None else state
        if isinstance(left, Mapping):
            kept = copied_state(left, {})
            out, found = self.call.run(x, None, past, kept)
            left = {name: found.get(name, value) for name, value in kept.items()}
        else:
            left = tuple(map(copy_with_own_state, left))
            code = self.call.code
            if state is None and code.module is not None:
                for one in left:
                    _cast_as(one, code.module)
            on = (replace(self.call, code=replace(code, call=one, module=one)) for one in left)
            rows = zip(on, x.chunk(self._modules(x)), strict=True)
            out = torch.cat([one.run(row, None, past)[0] for one, row in rows])
        return out, (left, past + x.shape[1])

    def _start(self, x: Tensor) -> Mapping[str, Any] | tuple[nn.Module, ...]:
        """Return what the first step is given."""
        code, line = self.call.code, self.call.signature
        if line.states:
            return {one.name: one.value.initial(code.space, code.name) for one in line.states}
        if self.own is None:
            raise SignatureError(
                f"wanted the state that a step passes on, such as cache, in {line}: {code.name} "
                "is not a module with state of its own"
            )
        return (self.own,) * self._modules(x)

    def _modules(self, x: Tensor) -> int:
        """Return how many modules a batch needs: one for each row if the code takes one row."""
        return 1 if "B" in self.call.tokens.letters else x.shape[0]


def steps_of(on: OnTokens, width: int) -> Steps:
    """Return the steps of a call.  Raises :class:`SignatureError` if two cannot be taken."""
    line, module = on.signature.step, on.code.module
    assert line is not None  # checked by the caller
    line = replace(line, source=on.signature.source)
    own = copy_with_own_state(module) if module is not None and not line.states else None
    found = Steps(type(on)(on.code, line, continues=True, apart=on.apart), own)
    x = normal(2, 5, width, seed=5)
    try:
        _, state = found(x[:, :3].contiguous(), None)
        found(x[:, 3:].contiguous(), state)
    except Exception as error:  # noqa: BLE001 (the code may raise anything)
        raise SignatureError(
            f"{on.code.name} was called as step: {line}, and {describe_call_error(on.code, error)}"
        ) from None
    return found


def _cast_as(module: nn.Module, other: nn.Module) -> None:
    """Give a module the dtypes and the mode of another, whose weights it shares."""
    parts = dict(other.named_modules())
    for path, part in module.named_modules():
        if path not in parts:
            continue
        part.training = parts[path].training
        for name, buffer in part.named_buffers(recurse=False):
            like = parts[path]._buffers.get(name)  # noqa: SLF001 (torch has no public name)
            if like is not None and buffer.is_floating_point() and like.is_floating_point():
                setattr(part, name, buffer.to(like.device, like.dtype))
