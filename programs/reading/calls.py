"""The calls of a subject under the names that laws use, for every method that runs the code itself.

A method states how it passes numbers to code and reads results (:class:`Adapter`); this file maps
the fields of a subject to calls.  Laws use more than outputs (``derived_calls.py``): which inputs
are visible, gradients, and behaviour in training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.theorems.laws import called

from ..applicable_laws import declared_of
from ..calls.masks import mask_visibility, unaffected_queries
from ..subjects import Additive, Attention, Bias, Layer, Mask, Pair, Rotary, Subject
from .applicability import channel_order, plain_arguments
from .derived_calls import (
    NotAsked,
    gradients,
    has_dropout,
    in_training,
    reached_tokens,
    row_gradients,
    visible_keys,
    without_dropout,
)

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)


def _same(x: Any) -> Any:
    return x


@dataclass(frozen=True)
class Adapter:
    """How a method passes numbers to code.

    ``call``: maps the name of a call and the code to the call on the arrays of the method.
    ``to_arrays``: converts plain numbers or positions to those arrays; ``to_numbers``: converts
    results to plain numbers.  ``dtype``: that of the scores, in which −∞ hides a key.
    """

    call: Callable[[str, Callable[..., Any]], Callable[..., Any]]
    to_arrays: Callable[[Tensor], Any] = _same
    to_numbers: Callable[[Any], Tensor] = _same
    dtype: torch.dtype = torch.float32


def calls_of(subject: Subject, adapter: Adapter) -> SimpleNamespace:
    """Return the calls and plain numbers of a subject under the names that laws use."""
    found: dict[str, Any] = {}
    more: dict[str, Any] = {}
    match subject:
        case Pair():
            found = {name: adapter.call(name, code) for name, code in subject.calls.items()}
        case Rotary():
            found = _rotary(subject, adapter)
        case Attention():
            found = _attention(subject, adapter)
        case Bias():
            found = _bias(subject, adapter)
        case Additive():
            found = {
                "added": adapter.call("added", subject.added),
                "added_of_rows": adapter.call("of_rows", row_gradients(subject.added)),
            }
            if subject.grid is not None:
                found["gridded"] = adapter.call("gridded", subject.grid)
        case Layer():
            found = {
                "call": adapter.call("call", subject.call),
                **_token_calls(subject, "call", adapter),
            }
            if subject.step is not None:
                found |= {"step": adapter.call("step", subject.step), "at_once": found["call"]}
        case Mask():
            found = {"masked": adapter.call("masked", _of_lengths(subject.mask))}
            found["seen"] = _of_lengths(_square_or_more(subject))
            more = {"true_means": subject.true_means}
            if subject.padded is not None:
                found["padded"] = adapter.call("padded", partial(_of_rows, subject.padded))
    return called(found, **plain_arguments(subject), **more)


def _rotary(subject: Rotary, adapter: Adapter) -> dict[str, Any]:
    found: dict[str, Any] = {"rotate": adapter.call("rotate", subject.rotate)}
    if subject.key is not None:
        found["key"] = adapter.call("key", subject.key)
    found["in_order"] = _in_order(subject, adapter, False)
    found["key_in_order"] = _in_order(subject, adapter, True)
    if subject.axes:
        found["one_axis"] = _along_one_axis(found["rotate"])
    for name in ("all_three", "shift", "convert", "running", "last"):
        if getattr(subject, name) is not None:
            found[name] = adapter.call(name, getattr(subject, name))
    for name in ("rotate", "running"):
        if getattr(subject, name) is not None:
            gradient = row_gradients(getattr(subject, name))
            found[f"{name}_of_rows"] = adapter.call("of_rows", gradient)
    if subject.evict is not None:
        found["evict"] = _evicting(adapter.call("evict", subject.evict), adapter)
    other = subject.converts_to
    if other is not None:
        found["converted"] = (
            adapter.call("rotate", other.rotate),
            adapter.call("key", other.rotate_key),
        )
    if subject.paths:
        found["rotated_paths"] = [adapter.call("rotate", path) for path in subject.paths.values()]
    return found


def _in_order(subject: Rotary, adapter: Adapter, key: bool) -> Callable[..., Any]:
    """The rotation with its channels in their original order, which is read when first needed."""
    rotate = adapter.call("key" if key else "rotate", subject.rotate_key if key else subject.rotate)
    read: list[list[int] | None] = []

    def rotated(x: Any, positions: Any) -> Any:
        if not read:
            read.append(channel_order(subject, key, adapter.to_arrays, adapter.to_numbers))
        found = rotate(x, positions)
        return found if read[0] is None else found[..., read[0]]

    return rotated


def _along_one_axis(rotate: Callable[..., Any]) -> Callable[..., Any]:
    def rotated(x: Any, positions: Any) -> Any:
        try:
            return rotate(x, positions)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            told = f"it does not accept positions of one axis ({type(error).__name__})"
            raise NotAsked(told) from error

    return rotated


def _evicting(evict: Callable[..., Any], adapter: Adapter) -> Callable[..., Any]:
    def evicted(keys: Any) -> tuple[Any, Any, Any]:
        kept, raw, places = evict(keys)
        at = adapter.to_numbers(places).long()
        return kept, raw, adapter.to_arrays(at.expand(keys.shape[0], *at.shape[-1:]).contiguous())

    return evicted


def _token_calls(subject: Attention | Layer, name: str, adapter: Adapter) -> dict[str, Any]:
    """A map of tokens with its other paths, its training mode, and its gradients."""
    code, paths = getattr(subject, name), list(subject.paths.values())
    found: dict[str, Any] = {
        f"{name}_pulled": adapter.call("pulled", gradients(code, "the layer", 1)),
        f"{name}_of_rows": adapter.call("of_rows", row_gradients(code)),
    }
    if has_dropout(subject):
        found[f"{name}_trained"] = adapter.call(name, in_training(subject, code))
    if subject.module is not None:
        found[f"{name}_undropped"] = adapter.call(name, without_dropout(subject, code))
    if paths:
        found[f"{name}_paths"] = [adapter.call(name, path) for path in paths]
    return found


def _padding(subject: Attention, adapter: Adapter) -> dict[str, Any]:
    """Padded rows, at once and in steps, and the same rows alone at the same relative positions."""
    found: dict[str, Any] = {}
    hide, layer, step = subject.hide, subject.layer, subject.padded_step
    if hide is not None and layer is not None:
        found["alone"] = adapter.call("hide", layer)
        absolute = subject.positional or declared_of(subject).positions == "absolute"
        if not absolute and not subject.from_start:
            found["hide_left"] = adapter.call("hide", hide)
    if step is not None:

        def in_steps(x: Tensor, keep: Tensor) -> Tensor:
            pads, state, parts = (~keep).sum(1), None, []
            for part in (x[:, :-2], x[:, -2:-1], x[:, -1:]):
                out, state = step(part.contiguous(), state, pads)
                parts.append(out)
            return torch.cat(parts, 1)

        def unpadded(x: Tensor) -> Tensor:
            return in_steps(x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device))

        found["padded_steps"] = adapter.call("hide", in_steps)
        found["steps_alone"] = adapter.call("hide", unpadded)
    return found


def _attention(subject: Attention, adapter: Adapter) -> dict[str, Any]:
    found: dict[str, Any] = _padding(subject, adapter)
    if subject.hide is not None and subject.hiding:
        found["hidden_paths"] = [adapter.call("hide", path) for path in subject.hiding.values()]
    for name in ("layer", "hide", "step", "documents", "whole_layer", "reading"):
        if getattr(subject, name) is not None:
            found[name] = adapter.call(name, getattr(subject, name))
    if subject.step is not None:
        step = subject.step
        found["at_once"] = found.get("layer") or adapter.call("layer", lambda x: step(x, None)[0])
    attend = subject.attend
    if subject.layer is not None:
        found |= _token_calls(subject, "layer", adapter)
        found["reached"] = adapter.call("reached", reached_tokens(subject.layer))
    if attend is None:
        return found
    for name in ("layer_paths", "reached"):  # paths and masks concern queries, keys and values
        found.pop(name, None)
    found |= _reading(subject, attend, adapter)
    found["attend"] = _under(adapter.call("attend", attend), lambda _: None)
    if subject.counting is not None:
        found["counting"] = adapter.call("counting", subject.counting)
        found["heeds"] = adapter.call(
            "heeds", partial(unaffected_queries, attend, subject.counting)
        )
    if subject.paths:
        paths = (adapter.call("attend", path) for path in subject.paths.values())
        found["attended_paths"] = [_under(path, lambda _: None) for path in paths]
        pairs = [
            (adapter.call("attend", attend), adapter.call("attend", path))
            for path in subject.paths.values()
        ]
        if "bool" in subject.masks:
            found["masked_paths"] = pairs
        if "float" in subject.masks:
            found["added_paths"] = pairs
    return found | _with_masks(subject, attend, adapter)


def _with_masks(
    subject: Attention, attend: Callable[..., Tensor], adapter: Adapter
) -> dict[str, Any]:
    """The calls under a mask, in each form that the code accepts."""
    hides, call = torch.tensor(-torch.inf, dtype=adapter.dtype), adapter.call("attend", attend)
    found: dict[str, Any] = {}
    forms = {
        "bool": lambda seen: seen,  # numbers pass unchanged
        "float": lambda seen: torch.where(seen, 0, hides.to(seen.device)),
    }
    if subject.masks:
        found["attend_masked"] = [_under(call, forms[name]) for name in subject.masks]
        said = declared_of(subject).hidden_row != "any"
        asked = [name for name in subject.masks if said or name == "bool"]
        found["attend_blinded"] = [_under(call, forms[name]) for name in asked]
    if "float" in subject.masks:
        found |= {
            "attend_added": _under(call, forms["bool"]),
            "attend_lowered": _under(call, forms["float"]),
        }
        found |= {"added_by_head": call} if subject.by_head else {}
    if "bool" in subject.masks:
        found |= {
            "attend_keeping": _under(call, forms["bool"]),
            "weighs": adapter.call("weighs", visible_keys(attend, anywhere=False)),
        }
        found |= {"keeping_by_head": call} if subject.by_head else {}
    return found


def _reading(subject: Attention, attend: Callable[..., Tensor], adapter: Adapter) -> dict[str, Any]:
    """What is read from code on queries, keys and values: visible keys, gradients, training."""

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, None)

    found: dict[str, Any] = {
        "shown": adapter.call("shown", visible_keys(attend, anywhere=True)),
        "attend_pulled": adapter.call("pulled", gradients(plain, "the attention", 2)),
        "attend_of_rows": adapter.call("of_rows", row_gradients(plain)),
    }
    if has_dropout(subject):
        found["attend_trained"] = adapter.call("attend", in_training(subject, plain))
    if subject.module is not None:
        found["attend_undropped"] = adapter.call("attend", without_dropout(subject, plain))
    if subject.weights is not None:
        found["weights"] = adapter.call("attend", subject.weights)
    return found


def _under(attend: Callable[..., Any], mask: Callable[[Any], Any]) -> Callable[..., Any]:
    """Attention under a mask built from truth values, or without a mask."""
    return lambda q, k, v, seen=None: attend(q, k, v, mask(seen))


def _bias(subject: Bias, adapter: Adapter) -> dict[str, Any]:
    if subject.bias is None:
        made = {"indexed": subject.index, "windowed": _of_two_sides(subject.window)}
        return {
            name: adapter.call("windowed", _apart(call))
            for name, call in made.items()
            if call is not None
        }
    bias = subject.bias

    def biased(queries: int, keys: int) -> Tensor:
        try:
            return bias(queries, keys)
        except REFUSALS as error:
            told = f"{type(error).__name__} with {keys} keys"
            raise NotAsked(f"the code computes the bias for one length only ({told})") from error

    found: dict[str, Any] = {"biased": adapter.call("biased", _of_lengths(biased))}
    if subject.paths:
        paths = subject.paths.values()
        found["biased_paths"] = [adapter.call("biased", _of_lengths(path)) for path in paths]
    return found


def _of_two_sides(
    window: Callable[[int, int], Tensor] | None,
) -> Callable[[tuple[int, ...]], Tensor] | None:
    """The bias of a window, given its sizes."""

    def of(sizes: tuple[int, ...]) -> Tensor:
        if len(sizes) != 2:
            raise ValueError(f"the code makes no window of {len(sizes)} axes")
        return window(*sizes)  # type: ignore[misc]

    return None if window is None else of


def _apart(call: Callable[[tuple[int, ...]], Tensor]) -> Callable[[tuple[int, ...]], Tensor]:
    """The same with an axis for each side of the window, of queries and of keys."""

    def windowed(sizes: tuple[int, ...]) -> Tensor:
        made = call(sizes)
        return made.reshape(*made.shape[:-2], *sizes, *sizes)

    return windowed


def _square_or_more(subject: Mask) -> Callable[[int, int], Tensor]:
    """The visibility matrix of a mask, in truth values."""

    def seen(queries: int, keys: int) -> Tensor:
        try:
            return mask_visibility(subject, queries, keys)
        except REFUSALS as error:
            if queries == keys:
                raise
            told = "the code computes masks only for as many queries as keys"
            raise NotAsked(told) from error

    return seen


def _of_lengths(make: Callable[[int, int], Tensor]) -> Callable[..., Any]:
    """Turn a function of two lengths into a call on arrays of those lengths."""
    return lambda x, y: make(x.shape[0], y.shape[0])


def _of_rows(padded: Callable[[Tensor, int], Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    """The visibility in padded rows of different lengths, in one batch and each row alone."""
    most = y.shape[0]
    counts = most - torch.arange(x.shape[0]) % most
    alone = [padded(counts[b : b + 1], int(n)) for b, n in enumerate(counts)]
    whole = torch.cat([nn.functional.pad(one, (0, most - one.shape[1])) for one in alone])
    return [padded(counts, most), whole]
