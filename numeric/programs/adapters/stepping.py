"""A layer fed in pieces: code that takes a cache and gives it back, or writes into it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .code import Code

__all__ = ["stepping"]

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


def stepping(
    code: Code, name: str, given: Callable[[Tensor, int, int], dict[str, Any]],
    result: Callable[[Any], Tensor], embed: int,
) -> Step | None:  # fmt: skip
    """``step`` of a layer whose cache is the argument ``name``; None where two calls do not go.

    The state is (cache, tokens so far).  Where the code gives no cache back it is one of
    transformers, which is written to: the state keeps a copy, so a step can be taken again.
    """

    def step(x: Tensor, state: Any) -> tuple[Tensor, Any]:
        cache, start = state if state is not None else (_empty(code), 0)
        cache = _apart(cache)
        many = start + x.shape[1]
        more = {name: cache}
        if cache is None and "use_cache" in getattr(code.call, "__code__", _code(code)).co_varnames:
            more["use_cache"] = True
        value = code.call(**{**given(x, start, many), **more})
        if cache is not None and not isinstance(cache, tuple | list | dict | Tensor):
            return result(value), (cache, many)
        kept = value[-1] if isinstance(value, tuple | list) and len(value) > 1 else None
        if kept is None:
            raise TypeError("no cache came back")
        return result(value), (kept, many)

    x = torch.randn(2, 5, embed, generator=torch.Generator().manual_seed(5))
    try:
        first, state = step(x[:, :3], None)
        second, _ = step(x[:, 3:], state)
    except Exception:  # noqa: BLE001 (the code may raise anything; then it is not fed in pieces)
        return None
    return step if first.shape[:2] == (2, 3) and second.shape[:2] == (2, 2) else None


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
        made.__dict__[key] = _apart(value) if key in ("layers", "keys", "values") else value
    return made


def _code(code: Code) -> Any:
    target = getattr(code.call, "forward", code.call)
    return getattr(target, "__code__", compile("", "", "exec"))


def _empty(code: Code) -> Any:
    if code.module is None or not type(code.module).__module__.startswith("transformers."):
        return None
    from transformers import DynamicCache

    return DynamicCache()
