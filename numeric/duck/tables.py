"""The laws of biases and of tables that are added, as sides that should agree exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ..programs.subjects import Additive, Bias
from .lab import Lab, NotAsked, Sides, law
from .payload import NoMeaning
from .tensor import Duck, numbers_of

__all__: list[str] = []

LONGER = 8  # keys of a second bias: what holds of one length alone is no law


def _bias(subject: Bias, queries: int, keys: int) -> Tensor:
    if subject.bias is None:
        raise NotAsked("the code makes the bias of a window")
    found = subject.bias(queries, keys)
    if not isinstance(found, Duck):
        raise NoMeaning("the bias is made of plain numbers: the field knows no positions in it")
    return found


def _told(subject: Bias, queries: int, keys: int) -> Tensor:
    """The bias; of one number everywhere these laws say nothing.  Raises ``NotAsked`` for it."""
    found = _bias(subject, queries, keys)
    numbers = numbers_of(found)
    if bool((numbers == numbers.flatten()[0]).all()):
        raise NotAsked(f"the bias is {float(numbers.flatten()[0]):g} everywhere: of that the law "
                       "says nothing")  # fmt: skip
    return found


@law("last-rows", "bias")
def _last(subject: Bias, lab: Lab) -> Iterator[Sides]:  # noqa: ARG001
    whole = _told(subject, 5, 5)
    for few in (1, 2):
        yield Sides((f"the bias of the last {few}", _bias(subject, few, 5)),
                    (f"the last {few} rows of all", whole[:, -few:]),
                    {"queries": few, "keys": 5}, given=False)  # fmt: skip


@law("offset-only", "bias")
def _offset(subject: Bias, lab: Lab) -> Iterator[Sides]:
    found = _told(subject, 5, 5)
    step = found[:, 1:, 1:] - found[:, :-1, :-1]
    seen = torch.ones(4, 4, dtype=torch.bool)
    seen = seen.tril() if subject.causal else seen
    zero = torch.zeros_like(found[:, :1, :1]) + 0 * lab.numbers(1)
    # what every key of a query gains alike is nothing: its softmax takes no notice
    yield Sides(("the bias one further along, less the bias", step - step[:, :, :1] + zero),
                ("one number for each query", step * 0 + zero),
                {"queries": 5, "keys": 5}, seen.expand(step.shape), given=False)  # fmt: skip
    try:
        longer = _bias(subject, LONGER, LONGER)[:, :5, :5]
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError) as error:
        raise NotAsked(f"the code makes the bias of one length ({type(error).__name__} with "
                       f"{LONGER} keys)") from error  # fmt: skip
    seen = torch.ones(5, 5, dtype=torch.bool)
    seen = (seen.tril() if subject.causal else seen).expand(found.shape)
    yield Sides((f"the bias of {LONGER} keys, less that of the query's own", _less_own(longer)),
                ("that of 5", _less_own(found)), {"queries": LONGER, "keys": LONGER}, seen,
                given=False)  # fmt: skip


def _less_own(bias: Tensor) -> Tensor:
    return bias - bias.diagonal(0, 1, 2)[:, :, None]


def _table(subject: Additive, lab: Lab, rows: int) -> Tensor:
    if subject.learned:
        raise NotAsked("the table is learned")
    nothing = lab.numbers(1, rows, subject.width) * 0
    found = subject.added(nothing)[0]
    if lab.session.angles == 0:
        raise NoMeaning("its table holds plain numbers: the field knows no angles in it")
    return found


@law("products-of-offset", "additive")
def _products(subject: Additive, lab: Lab) -> Iterator[Sides]:
    if subject.width % 2:
        raise NotAsked("its width is odd: one sine has no cosine")
    found = _table(subject, lab, 6)
    gram: Any = _products_of(found)
    yield Sides(("products of rows p and q", gram[:-1, :-1]),
                ("of rows p + 1 and q + 1", gram[1:, 1:]), {"rows": 6}, given=False)  # fmt: skip
    if subject.most >= LONGER:
        longer = _products_of(_table(subject, lab, LONGER)[:6])
        yield Sides((f"products of the first rows of {LONGER}", longer), ("those of 6", gram),
                    {"rows": LONGER}, given=False)  # fmt: skip


def _products_of(rows: Tensor) -> Tensor:
    return torch.matmul(rows, rows.transpose(0, 1))

