"""Contexts for running code in finite fields: follow its whole numbers, restore its state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..execution.response import leaves
from ..loading.shared_state import refill
from ..subjects import Subject
from .guards import as_numbers, reconciled, whole
from .rules import attended
from .session import Field, NoMeaning, Number, Pair, Session, TooDeep
from .tensor import Duck, map_nested, numbers_of, payload_of

FACTORIES = (torch.zeros, torch.empty)
CASTS = (
    Tensor.float,
    Tensor.double,
    Tensor.half,
    Tensor.bfloat16,
    Tensor.to,
    Tensor.type,
    Tensor.type_as,
)
PRODUCTS = (
    torch.mul,
    Tensor.mul,
    Tensor.__mul__,
    Tensor.__rmul__,
    torch.outer,
    Tensor.outer,
    torch.einsum,
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    torch.div,
    Tensor.div,
    Tensor.__truediv__,
    torch.ger,
)


class Running(TorchFunctionMode):
    """Follow the whole numbers of code that runs inside, and read attention as documented.

    ``building``: memory from ``torch.empty`` is not followed, as while a module is built.
    """

    def __init__(self, session: Session, *, building: bool = False) -> None:
        super().__init__()
        self.session, self.building = session, building

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        session = self.session
        if func is torch.nn.functional.scaled_dot_product_attention:
            return self._attended(func, args, kwargs)
        if func is torch.nn.functional.dropout and not kwargs.get("training", True):
            return args[0] if args else kwargs["input"]
        if func is Tensor.__setitem__ and isinstance(args[0], Duck) and isinstance(args[2], Duck):
            _prepared(args[0], args[2], session)
        elif func in PRODUCTS:
            args = self._followed(args)
        found = func(*args, **kwargs)
        if type(found) is not Tensor:
            return found
        if func is torch.arange and (not found.is_floating_point() or _is_whole(found)):
            return Duck(found, whole(found), session)
        if func in CASTS and found.is_floating_point() and _counts(args[0]):
            return Duck(found, whole(args[0]), session)
        if func in FACTORIES[: 1 if self.building else 2] and found.is_floating_point():
            found = found.zero_()
            empty = func is torch.empty  # uninitialised memory: NaN in the field
            known = as_numbers(found.double() + torch.nan if empty else found)
            return Duck(found, known, session)
        return found

    def _followed(self, args: Any) -> Any:
        """Follow whole numbers in a product with real ones: positions times frequencies."""
        tensors = [x for x in leaves(args) if isinstance(x, Tensor)]
        if not any(x.is_floating_point() for x in tensors):
            return args
        return map_nested(lambda x: Duck(x, whole(x), self.session) if _counts(x) else x, args)

    def _attended(self, func: Any, args: Any, kwargs: Any) -> Any:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if not any(isinstance(x, Duck) for x in given.values()):
            return func(*args, **kwargs)
        try:
            if given.get("dropout_p"):
                raise NoMeaning("dropout is random")
            q, k, v, mask = (payload_of(given.get(n)) for n in names[:4])
            carried = attended(
                self.session,
                q,
                k,
                v,
                mask,
                is_causal=given.get("is_causal", False),
                scale=given.get("scale"),
                enable_gqa=given.get("enable_gqa", False),
            )
        except (NoMeaning, TooDeep) as error:
            self.session.refused = error
            raise
        numbers = func(**{k: numbers_of(v) for k, v in given.items()})
        return Duck(numbers, reconciled(carried, numbers, func.__name__), self.session)


def _counts(x: Any) -> bool:
    return type(x) is Tensor and x.dtype in (torch.int64, torch.int32)


def _is_whole(x: Tensor) -> bool:
    return bool((x == x.round()).all())


def _prepared(into: Duck, value: Duck, session: Session) -> None:
    """Convert the target of a write from numbers to residues if residues are written into it."""
    if isinstance(into.carried, Number) and isinstance(value.carried, (Field, Pair)):
        change = session.pair if isinstance(value.carried, Pair) else session.field
        into.carried = change(into.carried).moved(torch.clone)


S = TypeVar("S", bound=Subject)
REFILLED = (dict, OrderedDict, list, set)


@contextmanager
def restored_module(module: nn.Module | None) -> Iterator[None]:
    """Put a module into evaluation mode, and restore its state and its tensors afterwards.

    Its containers stay the same objects: others refer to them.
    """
    parts = [] if module is None else list(module.modules())
    before = [(part, {k: _kept(v) for k, v in vars(part).items()}) for part in parts]
    filled = [(x, copy(x)) for _, state in before for x in state.values() if type(x) in REFILLED]
    held = [] if module is None else [*module.buffers(), *module.parameters()]
    values = [x.detach().clone() for x in held]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, state in before:
            refill(vars(part), state)
        for container, content in filled:
            refill(container, content)
        with torch.no_grad():
            for x, value in zip(held, values, strict=True):
                if not torch.equal(x, value):  # written in place
                    x.copy_(value)


def with_copied_results(subject: S) -> S:
    """Return the same code with results copied, so that later calls cannot overwrite them."""
    calls = {f.name: getattr(subject, f.name) for f in fields(subject) if f.name != "make"}
    found: dict[str, Any] = {
        name: _copies(call) for name, call in calls.items() if callable(call) and name != "module"
    }
    for field in ("paths", "hiding", "calls"):
        ways = getattr(subject, field, {})
        if ways:
            found[field] = {name: _copies(call) for name, call in ways.items()}
    return replace(subject, **found)


def _copies(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call, assigned=(), updated=())
    def copied(*args: Any, **kwargs: Any) -> Any:
        found = call(*args, **kwargs)
        if isinstance(found, tuple) and type(found) is tuple:
            return tuple(x.clone() if isinstance(x, Tensor) else x for x in found)
        return found.clone() if isinstance(found, Tensor) else found

    return copied


def _kept(x: Any) -> Any:
    """Return what stands for a value of a module: a copy of a container that is not refilled."""
    return copy(x) if isinstance(x, (dict, list, set)) and type(x) not in REFILLED else x
