"""The class Program: a callable with its signature, called with arrays by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from ..code import DoesNotFit
from ..execution.response import leaves
from ..signatures.grammar import parse
from ..signatures.signature import Argument, Same, Signature, SignatureError, State
from .names import parameters


@dataclass(frozen=True, init=False)
class Program:
    """A callable with its signature in axis letters; calling it calls what it wraps.

    Checks call it by the signature: arguments are passed by name, or, if it has none of these
    names, in the order in which they are written.  ``name`` is for messages.

    Raises :class:`SignatureError` for a signature that cannot be read and for a parameter that does
    not exist.

    >>> import torch
    >>> twice = Program(lambda x: 2 * x, "x: B n E -> B n E", "twice")
    >>> twice(torch.ones(1)).item(), list(twice.run({"x": torch.ones(2, 3, 4)}, {}))
    (2.0, ['0'])
    """

    call: Callable[..., Any]
    signature: Signature
    name: str
    by_name: bool = field(repr=False)

    def __init__(
        self, call: Callable[..., Any], signature: str | Signature, name: str = ""
    ) -> None:
        told = name or getattr(call, "__qualname__", type(call).__name__)
        read = parse(signature) if isinstance(signature, str) else signature
        names = [one.name for one in read.arguments]
        values = {
            "call": call,
            "signature": read,
            "name": told,
            "by_name": _by_name(call, names, told),
        }
        # These names lead to the file, lines and parameters of what is wrapped.
        known = ("__module__", "__name__", "__qualname__", "__doc__")
        values |= {"__qualname__": told}
        values |= {one: getattr(call, one) for one in known if hasattr(call, one)}
        for one, value in {**values, "__wrapped__": call}.items():
            object.__setattr__(self, one, value)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call what is wrapped with the arguments as given."""
        return self.call(*given, **named)

    def run(self, arrays: Mapping[str, Any], lengths: Mapping[str, int]) -> dict[str, Any]:
        """Return the arrays and states it returns, by the names of the results (else "0", "1", ..).

        ``arrays``: the inputs and the states, by name.
        """
        return self._results(self.called(arrays, lengths), lengths)

    def called(self, arrays: Mapping[str, Any], lengths: Mapping[str, int]) -> Any:
        """Return its result unchanged; a parameter without an array keeps its default."""
        given: dict[str, Any] = {}
        for one in self.signature.arguments:
            if isinstance(one.value, Same):
                if one.value.name in given:
                    given[one.name] = given[one.value.name]
            elif one.axes is None or one.name in arrays or not self.by_name:
                given[one.name] = _value(one, arrays, lengths)
        if _LISTENERS:
            for module in _called_module(self.call):
                for tell in _LISTENERS:
                    tell(module)
        before = self._inputs(given, copied=True) if _CHANGES else {}
        found = self._called(dict(given))
        if _CHANGES:
            after = self._inputs(given)
            changed = ((name, after[name], x) for name, x in before.items())
            _CHANGES[-1].extend(one for one in changed if not _same_numbers(*one[1:]))
        return found

    def _called(self, given: dict[str, Any]) -> Any:
        if not self.by_name:
            return self.call(*given.values())
        first = [given.pop(name) for name in self.leading if name in given]
        return self.call(*first, **given)

    def _inputs(self, given: Mapping[str, Any], *, copied: bool = False) -> dict[str, Tensor]:
        """Return the tensors among these arguments, by name; states are there to be written to."""
        states = {one.name for one in self.signature.arguments if isinstance(one.value, State)}
        named = {name: leaves(value) for name, value in given.items() if name not in states}
        return {
            name if k == 0 else f"{name}[{k}]": x.clone() if copied else x
            for name, found in named.items()
            for k, x in enumerate(found)
            if isinstance(x, Tensor)
        }

    @cached_property
    def leading(self) -> tuple[str, ...]:
        """The parameters passed by position, since decorated code may read them that way.

        All others are passed by name: those of undecorated code, and those after one that the call
        omits.
        """
        if not hasattr(self.call, "__wrapped__") or not self.by_name:
            return ()
        told = {one.name for one in self.signature.arguments}
        found = inspect.signature(self.call).parameters.values()
        first = takewhile(lambda one: one.kind == one.POSITIONAL_OR_KEYWORD, found)
        return tuple(one.name for one in takewhile(lambda one: one.name in told, first))

    def _results(self, found: Any, lengths: Mapping[str, int]) -> dict[str, Any]:
        results = self.signature.returned
        if self.signature.mapping:
            try:
                values = [
                    found[one.name] if isinstance(found, Mapping) else getattr(found, one.name)
                    for one in results
                ]
            except (TypeError, KeyError, IndexError, AttributeError):
                raise SignatureError(
                    f"wanted a mapping with {', '.join(r.name for r in results)} "
                    f"back, got {_short(found)}"
                ) from None
        elif isinstance(found, tuple | list):
            values = list(found)
            if len(values) != len(results):
                raise SignatureError(
                    f"wanted {len(results)} back, got {_short(found)}; write _ "
                    "for what is to be left aside"
                )
        else:
            values = [found]
            if len(results) > 1:
                raise SignatureError(f"wanted {len(results)} back, got {_short(found)}")
        whole = {one.name: one for one in self.signature.arguments}
        values = [
            part
            for one, value in zip(results, values, strict=True)
            for part in (_unpacked(whole[one.of], value, lengths) if one.of else (value,))
        ]
        told: dict[str, Any] = {}
        for k, (one, value) in enumerate(zip(self.signature.results, values, strict=True)):
            if isinstance(one.value, State):
                told[one.name] = value
            if one.axes is None:
                continue
            if not isinstance(value, Tensor):
                raise SignatureError(f"wanted an array {one} back, got {_short(value)}")
            told[one.name or str(k)] = _joined(one, value)
        return told


_LISTENERS: list[Callable[[nn.Module], object]] = []
Changed = tuple[str, Tensor, Tensor]
_CHANGES: list[list[Changed]] = []


@contextmanager
def watching_inputs() -> Iterator[list[Changed]]:
    """Collect the inputs that programs modify: the name, the array after the call and before it.

    What a law draws may be copied on its way to the code, where its axes are merged for example.
    """
    _CHANGES.append([])
    try:
        yield _CHANGES[-1]
    finally:
        _CHANGES.pop()


def _same_numbers(one: Tensor, other: Tensor) -> bool:
    """Whether two arrays have one shape and the same numbers, NaN included."""
    if one.shape != other.shape:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())


@contextmanager
def listening_to_modules(tell: Callable[[nn.Module], object]) -> Iterator[None]:
    """Call ``tell`` with each module before it runs, or before a program calls a method of it."""
    _LISTENERS.append(tell)
    try:
        with register_module_forward_pre_hook(lambda module, _: (tell(module), None)[1]):
            yield
    finally:
        _LISTENERS.remove(tell)


def _called_module(call: Any) -> Iterator[nn.Module]:
    """Yield the module that is called, or whose method is, behind wrappers and partials."""
    for _ in range(9):  # wrappers of wrappers
        own = call if isinstance(call, nn.Module) else getattr(call, "__self__", None)
        if isinstance(own, nn.Module):
            yield own
            return
        call = getattr(call, "func", None) or getattr(call, "__wrapped__", None)


def program(signature: str) -> Callable[[Callable[..., Any]], Program]:
    """Return a decorator that attaches a signature to a function.

    >>> @program("x: B n E -> B n E")
    ... def half(x):
    ...     return x / 2
    >>> half(3.0), half.name
    (1.5, 'half')
    """
    return lambda call: Program(call, signature)


def _by_name(call: Callable[..., Any], names: list[str], told: str) -> bool:
    """Whether arguments are passed by these names; by position if the callable has none of them."""
    target = getattr(call, "forward", call.__call__ if inspect.isclass(call) else call)
    try:
        found = [*inspect.signature(target).parameters.values()]
    except (TypeError, ValueError):
        found = []
    known = [one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    if not found or any(one.kind == one.VAR_POSITIONAL for one in found):
        with suppress(DoesNotFit):  # also those of base classes, or of a builtin's documentation
            known = list(dict.fromkeys([*known, *(one.name for one in parameters(call))]))
    more = any(one.kind == one.VAR_KEYWORD for one in found)
    unknown = [name for name in names if name not in known]
    if not unknown or (more and len(unknown) < len(names)):
        return True
    if len(unknown) == len(names):
        return False
    near = get_close_matches(unknown[0], known, n=1) or known
    raise SignatureError(f"{told} has no parameter {unknown[0]!r}; nearest: {', '.join(near)}")


def _value(one: Argument, arrays: Mapping[str, Any], lengths: Mapping[str, int]) -> Any:
    if one.parts:
        parts = tuple(_value(part, arrays, lengths) for part in one.parts)
        if one.named:
            named = zip(one.parts, parts, strict=True)
            return SimpleNamespace(**{part.name: value for part, value in named})
        return _packed(one, parts, lengths) if one.packed is not None else parts
    if one.axes is not None and any(axis.fold for axis in one.axes):
        x: Tensor = arrays[one.name]
        pairs = zip(one.axes, x.shape, strict=True)
        return x.reshape([n for axis, size in pairs for n in axis.folded(size, lengths)])
    if one.axes is not None or isinstance(one.value, State):
        return arrays[one.name]
    return one.at(lengths)


def _packed(one: Argument, parts: tuple[Tensor, ...], lengths: Mapping[str, int]) -> Tensor:
    """Return the array that holds the parts of a packed argument."""
    assert one.packed is not None
    place, slower = one.packed
    axes = one.parts[0].axes or ()
    at = place + sum(bool(axis.fold) for axis in axes[:place])
    if slower is None:
        return torch.stack(parts, at)
    first = math.prod(lengths[c] for c in (axes[place].split or ())[:slower])
    apart = [x.reshape(*x.shape[:at], first, -1, *x.shape[at + 1 :]) for x in parts]
    return torch.stack(apart, at + 1).flatten(at, at + 2)


def _unpacked(one: Argument, value: Any, lengths: Mapping[str, int]) -> tuple[Tensor, ...]:
    """Return the parts of a result in the axes of a packed argument."""
    place, slower = one.packed or (0, None)
    axes = one.parts[0].axes or ()
    at, many = place + sum(bool(axis.fold) for axis in axes[:place]), len(one.parts)
    wanted = [axis.size(lengths) for axis in axes]
    if slower is None:
        wanted.insert(place, many)
    else:
        wanted[place] *= many
    if not isinstance(value, Tensor) or list(value.shape) != wanted:
        raise SignatureError(f"wanted {tuple(wanted)} back, which is {one}, got {_short(value)}")
    if slower is None:
        return value.unbind(at)
    first = math.prod(lengths[c] for c in (axes[place].split or ())[:slower])
    parts = value.reshape(*wanted[:at], first, many, -1, *wanted[at + 1 :]).unbind(at + 1)
    return tuple(x.flatten(at, at + 1) for x in parts)


def _joined(one: Argument, value: Tensor) -> Tensor:
    """Return a result with its two axes of heads merged into one."""
    for place, axis in enumerate(one.axes or ()):
        if axis.fold and place + 1 < value.ndim:
            value = value.flatten(place, place + 1)
    return value


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"one array of shape {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__
