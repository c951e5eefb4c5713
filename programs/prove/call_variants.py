"""The ways of making a call that its numbers do not reveal.

Code may ask whether gradients are wanted, how its inputs lie in memory, whether two of them are the
same array, or whether its weights are zero, as before training.  A function of its inputs gives the
same result in every way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..execution.state import LARGE

WAY_TEXTS = {
    "gradients": "with inputs that require gradients",
    "trained": "with parameters as inputs",
    "strided": "with inputs that are not contiguous",
    "inference": "in inference mode",
    "one": "with one parameter, which is not contiguous, for all inputs of its shape",
    "shared": "with one array for all inputs of its shape but the first",
    "outer": "with one array for all inputs of its shape but the second",
    "leading": "with one array for all inputs of its shape but the last",
    "repeated": "with one row repeated without copies",
    "expanded": "with an input that is expanded along its axis before the last",
    "int32": "with int32 positions",
    "enabled": "with gradients enabled",
    "computed": "with inputs that were computed with gradients",
    "view": "with inputs that are views of arrays that were written to",
    "made": "with inputs that were made in inference mode",
    "subclass": "with inputs of a subclass of Tensor",
    "first": "with only the first input requiring gradients, and not contiguous",
    "rest": "with all inputs but the first requiring gradients, and not contiguous",
    "frozen": "with parameters that require no gradients",
}
ALL_WAYS = ("plain", *WAY_TEXTS)
APART = {"shared": 0, "outer": 1, "leading": -1}  # which of the inputs with numbers is not shared
SHARING = ("one", *APART)  # ways in which inputs are one array
OF_ONE_SHAPE = ("one", "outer", "leading")  # queries are shared: all inputs need one shape
GRADIENTS = ("gradients", "trained", "one", "enabled", "computed", "first", "rest", "frozen")


def inputs_for(
    way: str, inputs: Sequence[Tensor], rows: Sequence[int | None]
) -> tuple[Tensor, ...]:
    """Return the numbers of a call made in some way: repeated without copies, or shared inputs.

    ``rows``: the batch axis of each input, if it has one.
    """
    if way == "one":  # inputs of one shape are one array, as in self-attention
        return _shared_by_shape(inputs)
    if way in APART:  # as keys and values may be one array, or queries and keys
        return _shared_but_one(inputs, APART[way])
    if way == "repeated":
        return tuple(
            x if row is None else x.narrow(row, 0, 1).expand(x.shape)
            for x, row in zip(inputs, rows, strict=True)
        )
    if way == "expanded" and inputs and inputs[-1].ndim > 1:  # as is a mask by key alone
        return *inputs[:-1], inputs[-1].narrow(-2, 0, 1).expand(inputs[-1].shape)
    return tuple(inputs)


def _shared_by_shape(inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return one array for all inputs of a shape."""
    first: dict[torch.Size, Tensor] = {}
    return tuple(first.setdefault(x.shape, x) if x.is_floating_point() else x for x in inputs)


def _shared_but_one(inputs: Sequence[Tensor], apart: int) -> tuple[Tensor, ...]:
    """Return one array for all inputs of a shape, but one of those with numbers as it is."""
    numbers = [k for k, x in enumerate(inputs) if x.is_floating_point()]
    kept = numbers[apart] if len(numbers) > max(apart, 0) else None
    shared = iter(_shared_by_shape([x for k, x in enumerate(inputs) if k != kept]))
    return tuple(x if k == kept else next(shared) for k, x in enumerate(inputs))


def call_in(
    way: str,
    code: Callable[..., Iterable[Tensor]],
    inputs: Sequence[Tensor],
    modules: Iterable[nn.Module] = (),
) -> tuple[Tensor, ...]:
    """Call code in some way on copies of these inputs; its exceptions propagate.

    >>> double = lambda x: (x + x if x.is_contiguous() else x,)
    >>> [call_in(way, double, [torch.ones(2, 2)])[0].sum().item() for way in ("plain", "strided")]
    [8.0, 4.0]
    """
    inside = way in ("computed", "made", "first", "rest")
    copies = {} if inside else _copies(inputs, way)
    with ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(way in GRADIENTS))
        if way in ("inference", "made"):
            stack.enter_context(torch.inference_mode())
        if way == "frozen":
            stack.enter_context(_frozen(modules))
        copies = copies or _copies(inputs, way)
        found = code(*(copies[id(x)] for x in inputs))
        return tuple(x.detach().clone() for x in found)


def _copies(inputs: Sequence[Tensor], way: str) -> dict[int, Tensor]:
    """Return the inputs prepared for a way of calling, by the ids of the originals."""
    if way in ("first", "rest"):
        own = [(k == 0) == (way == "first") for k in range(len(inputs))]
        return {
            id(x): _copied(in_other_layout(x) if other else x, "computed" if other else "plain")
            for x, other in zip(inputs, own, strict=True)
        }
    return {id(x): _copied(x, way) for x in inputs}  # the same array stays the same


class _Own(Tensor):
    """A subclass of Tensor, as some libraries define."""


@contextmanager
def _frozen(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Let no parameter require a gradient within a context."""
    wanted = {id(p): p for module in modules for p in module.parameters() if p.requires_grad}
    try:
        for p in wanted.values():
            p.requires_grad_(False)
        yield
    finally:
        for p in wanted.values():
            p.requires_grad_(True)


def _copied(x: Tensor, way: str) -> Tensor:
    """Return an input prepared for a way of calling; positions and masks as far as they can be."""
    if way == "int32" and x.dtype == torch.int64:
        return x.int()
    if way in ("repeated", "expanded"):  # its parts share memory, at an offset
        kept = torch.cat((x.new_zeros(1), x.as_strided((_stored(x),), (1,)).clone()))
        return kept.as_strided(x.shape, x.stride(), 1)
    if way == "view":
        return _view_of_written(x)
    if way == "subclass":
        return x.clone().as_subclass(_Own)
    if way == "strided":
        return in_other_layout(x)
    if not x.is_floating_point():
        return x.clone()
    if way in ("trained", "one"):
        return nn.Parameter(in_other_layout(x))
    if way == "computed":
        return x.clone().requires_grad_() * 1
    return x.clone().requires_grad_(way == "gradients")


def _view_of_written(x: Tensor) -> Tensor:
    """Return a copy of the numbers as a view, at an offset, of an array that was written to."""
    whole = x.new_zeros(x.numel() + 1)
    whole[1:] = x.flatten()
    return whole[1:].view(x.shape)


def _stored(x: Tensor) -> int:
    """Return the span of an array in memory, in elements."""
    return 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))


def in_other_layout(x: Tensor) -> Tensor:
    """Return a copy of the numbers in another memory layout, if they have more than one axis."""
    if x.ndim < 2:
        return x.clone()
    turned = x.transpose(0, -1)
    return turned.clone(memory_format=torch.contiguous_format).transpose(0, -1)


@contextmanager
def random_flat_weights(modules: Iterable[nn.Module]) -> Iterator[bool]:
    """Replace constant parameters, such as zeros before training, by random numbers in a context.

    Yields whether there are any.
    """
    flat = {id(p): p for module in modules for p in module.parameters() if _is_flat(p)}
    generator = torch.Generator().manual_seed(5)

    def drawn(p: nn.Parameter) -> Tensor:
        numbers = torch.rand(p.shape, generator=generator) + 0.5
        return numbers / math.sqrt(p.shape[-1]) if p.dim() > 1 else numbers

    with _filled(flat.values(), drawn):
        yield bool(flat)


@contextmanager
def random_weights(modules: Iterable[nn.Module]) -> Iterator[bool]:
    """Shuffle and scale the entries of all parameters within a context.

    Constant parameters are replaced by random numbers.  So no property of initial weights is left,
    such as a symmetric matrix.  Yields whether there are any.
    """
    kept = list(modules)
    numbers = {id(p): p for module in kept for p in module.parameters() if _is_number(p)}
    generator = torch.Generator().manual_seed(7)

    def mixed(p: nn.Parameter) -> Tensor:
        order = torch.randperm(p.numel(), generator=generator)
        scales = torch.rand(p.numel(), generator=generator) + 0.5
        return (p.detach().flatten()[order] * scales).reshape(p.shape)

    with random_flat_weights(kept), _filled(numbers.values(), mixed):
        yield bool(numbers)


def trainable(modules: Iterable[nn.Module]) -> list[nn.Parameter]:
    """Return the trainable floating-point parameters of these modules, without duplicates."""
    found = {id(p): p for module in modules for p in module.parameters() if _is_number(p)}
    return [p for p in found.values() if p.requires_grad]


def random_contents(tables: Collection[Tensor]) -> AbstractContextManager[None]:
    """Fill arrays that code writes to with random numbers, as from earlier calls, unless large."""
    generator = torch.Generator().manual_seed(11)
    small = [x for x in tables if x.numel() * x.element_size() < LARGE]
    return _filled(small, lambda x: torch.rand(x.shape, generator=generator) + 0.5)


def zeroed(parameters: Collection[nn.Parameter]) -> AbstractContextManager[None]:
    """Set these parameters to 0 within a context."""
    return _filled(parameters, torch.zeros_like)


@contextmanager
def _filled(parameters: Collection[Tensor], numbers: Callable[[Any], Tensor]) -> Iterator[None]:
    before = [(p, p.detach().clone()) for p in parameters]
    try:
        for p, _ in before:
            p.data.copy_(numbers(p))
        yield
    finally:
        for p, kept in before:
            p.data.copy_(kept)


def _is_number(p: nn.Parameter) -> bool:
    return p.is_floating_point() and p.device.type == "cpu" and p.numel() > 0


def _is_flat(p: nn.Parameter) -> bool:
    return _is_number(p) and bool((p.detach() == p.detach().flatten()[0]).all())
