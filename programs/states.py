"""A layer that is fed in pieces: what a step leaves to the next, given back or written in place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from .code import Code
from .roles import raised
from .signature import Argument, SignatureError, State

if TYPE_CHECKING:
    from .tokens import OnTokens

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


def stepping(on: OnTokens, width: int) -> Step:
    """A chunk of tokens (B, c, E) and the state -> (B, c, E) and the next state.

    The state is what the step before left, and how many tokens there were; it is copied before it
    is written to, so that a step can be taken again.  Raises :class:`SignatureError` where two
    steps cannot be taken.
    """
    call = on.signature.step
    assert call is not None  # who calls has seen it
    call = replace(call, source=on.signature.source)
    first = type(on)(on.code, call)

    def step(x: Tensor, state: Any) -> tuple[Tensor, Any]:
        if not call.states:
            return of_its_own(x, state)
        kept, past = state if state is not None else (_starts(on.code, call.states), 0)
        kept = {name: _apart(value) for name, value in kept.items()}
        out, found = first.run(x, None, past, kept)
        return out, (
            {name: found.get(name, value) for name, value in kept.items()},
            past + x.shape[1],
        )

    def of_its_own(x: Tensor, state: Any) -> tuple[Tensor, Any]:
        held, past = state if state is not None else (on.code.module, 0)
        if held is None:
            raise SignatureError(
                f"wanted what a step leaves to the next, such as cache, in {call}: {on.code.name} "
                "is not a module with state of its own"
            )
        held = _with_its_own(held)
        out, _ = type(on)(replace(on.code, call=held, module=held), call).run(x, None, past)
        return out, (held, past + x.shape[1])

    x = torch.randn(2, 5, width, generator=torch.Generator().manual_seed(5))
    try:
        _, state = step(x[:, :3], None)
        step(x[:, 3:], state)
    except Exception as error:  # noqa: BLE001 (the code may raise anything)
        raise SignatureError(
            f"{on.code.name} was called as step: {call}, and {raised(on.code, error)}"
        ) from None
    return step


def _starts(code: Code, states: tuple[Argument, ...]) -> dict[str, Any]:
    """What the first step is given.  Raises :class:`SignatureError` for an unknown name."""
    found: dict[str, Any] = {}
    for one in states:
        assert isinstance(one.value, State)
        start = one.value.start
        if start.endswith("()"):
            make = code.space.get(start[:-2])
            if make is None:
                raise SignatureError(
                    f"wanted {start} beside {code.name}, and its file has no such name"
                )
            found[one.name] = make()
        else:
            found[one.name] = ast.literal_eval(start) if start else None
    return found


def _with_its_own(module: nn.Module) -> nn.Module:
    """A copy with what it keeps; weights are shared, as nothing is written to them."""
    kept = {id(one): one for one in module.parameters()}
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor | tuple | list | dict) and (
                name == "_buffers" or not name.startswith("_")
            ):
                kept[id(value)] = _apart(value)
    return copy.deepcopy(module, kept)


def _apart(state: Any) -> Any:
    """A copy of a cache that shares no tensor that is written to; gradients go through it."""
    if isinstance(state, Tensor):
        return state.clone()
    if isinstance(state, tuple | list):
        return type(state)(_apart(one) for one in state)
    if isinstance(state, dict):
        return {key: _apart(one) for key, one in state.items()}
    if not hasattr(state, "__dict__"):
        return state
    made = copy.copy(state)
    for key, value in vars(state).items():
        nested = isinstance(value, Tensor | tuple | list | dict)
        made.__dict__[key] = _apart(value) if nested else value
    return made
