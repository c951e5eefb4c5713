"""What code may use while it runs is reached, and what is only near it is not."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.loading.reach import reached
from attnproof.programs.loading.source_numbers import constants_in, is_own, numbers_in, state_of
from attnproof.programs.prove import prove
from attnproof.programs.prove.executed_code import Executed, is_written
from attnproof.programs.subjects import Layer
from tests.cases import each

NUMBER, OTHER = 3413, 3567
SETTINGS = types.ModuleType("settings_of_a_model")
vars(SETTINGS).update(limit=NUMBER, other=OTHER)


@dataclasses.dataclass
class Plain:
    limit: int = NUMBER
    other: int = OTHER

    def saved(self) -> int:
        return OTHER


@dataclasses.dataclass(slots=True)
class Slots:
    limit: int = NUMBER
    other: int = OTHER


class Named(NamedTuple):
    limit: int = NUMBER


class Kept:
    limit, other = NUMBER, OTHER

    @functools.cached_property
    def late(self) -> int:
        return NUMBER

    @property
    def asked(self) -> int:
        return NUMBER

    def __getattr__(self, name: str) -> int:
        if name == "unknown":
            return NUMBER
        raise AttributeError(name)


class Above(Kept):
    limit = OTHER

    def of_base(self) -> int:
        return super().limit


class Told:
    def __init__(self, number: int) -> None:
        self.number = number

    def __get__(self, _: object, __: type | None = None) -> int:
        return self.number


class Descriptor:
    limit, other = Told(NUMBER), Told(OTHER)


@functools.lru_cache
def remembered() -> int:
    return NUMBER


def defaulted(limit: int = NUMBER) -> int:
    return limit


TABLE: dict[str, Callable[[], int]] = {"a": defaulted, "b": remembered}


def chosen(name: str) -> int:
    return TABLE[name]()


def inlined(x: Tensor) -> Tensor:
    return x[:NUMBER]


@torch.compile(backend="eager")
def compiled(x: Tensor) -> Tensor:
    return inlined(x)


plain, slots, kept = Plain(), Slots(), Kept()
space = types.SimpleNamespace(limit=NUMBER, other=OTHER)
REACHED: dict[str, Callable[[], Any]] = {
    "a constant": lambda: NUMBER,
    "an attribute": lambda: plain.limit,
    "a slot": lambda: slots.limit,
    "a field of a tuple": lambda: Named().limit,
    "what a namespace has": lambda: space.limit,
    "what a class has": lambda: kept.limit,
    "what a base has": Above().of_base,
    "a property": lambda: kept.asked,
    "a property that is kept": lambda: kept.late,
    "an attribute that there is not": lambda: kept.unknown,
    "a descriptor": lambda: Descriptor().limit,
    "a name that is put together": lambda: getattr(plain, f"lim{'it'}"),
    "a name in a text": lambda: operator.attrgetter("limit")(plain),
    "a module of the user's": lambda: SETTINGS.limit,
    "a default": defaulted,
    "what is remembered": remembered,
    "a table of functions": lambda: chosen("a"),
    "a number in a text": lambda: int("of 3413 rows"[3:7]),
    "what is named and does not run": lambda: remembered() if plain.limit < 0 else 0,
    "compiled code": lambda: compiled(torch.zeros(2)),
}
BESIDE: dict[str, Callable[[], Any]] = {
    "another attribute": lambda: plain.limit,
    "another slot": lambda: slots.limit,
    "what else a namespace has": lambda: space.limit,
    "what else a class has": lambda: kept.limit,
    "another descriptor": lambda: Descriptor().limit,
}


def numbers_of(call: Callable[[], Any]) -> list[float]:
    """The numbers that a call reaches, of the codes that it ran."""
    ran = Executed(is_own)
    ran.recording(call)()
    return constants_in([call], ran=ran.codes)


@each(REACHED)
def test_what_code_may_use_is_reached(name: str) -> None:
    remembered()
    assert NUMBER in numbers_of(REACHED[name])


@pytest.mark.parametrize("name", BESIDE)
def test_what_code_does_not_name_is_not_reached(name: str) -> None:
    assert OTHER not in numbers_of(BESIDE[name])
    assert OTHER in numbers_in([BESIDE[name]]), "nothing is said of which code ran"


Table = dict[int, Callable[[Tensor], Tensor]]


def by_length(x: Tensor, n: Any, table: Table) -> Tensor:
    """What a table has for a number of tokens, of which no comparison tells."""
    call = table.get(n) if isinstance(n, int) else None
    return x if call is None else call(x)


def second(x: Tensor) -> Tensor:
    return by_length(x, x.shape[1], {3 * 1789: lambda x: x.cumsum(1)})


def first(x: Tensor) -> Tensor:
    return second(x)


class Led(nn.Module):
    """Code that is led to other code at multiples of one length, and by that to a third."""

    def forward(self, x: Tensor) -> Tensor:
        return by_length(x, x.shape[1] % 1789, {0: first})


@pytest.mark.usefixtures("fewer_lengths")
def test_code_that_runs_at_some_lengths_alone_is_heard_and_its_numbers_are_tried() -> None:
    module = Led()
    subject = Layer(name="l", call=module, embed=4, module=module)
    assert 3 * 1789 not in numbers_of(lambda: module(torch.zeros(1, 2, 4)))
    (found,) = prove(subject, ("permutation",), seconds=3.0).findings
    assert found.verdict == "broken"
    assert found.sizes["n"] == 3 * 1789


ITERATORS: dict[str, Callable[[], Iterator[int]]] = {
    "a list": lambda: iter([1, 2, 3]),
    "a range": lambda: iter(range(5)),
    "a dictionary": lambda: iter({1: 2, 3: 4}),
    "a cycle": lambda: itertools.cycle([1, 2, 3]),
    "a count": lambda: itertools.count(3),
    "a chain": lambda: itertools.chain([1, 2], [3]),
    "a generator": lambda: (n for n in range(4)),
}


@pytest.mark.parametrize("made", ITERATORS.values(), ids=ITERATORS)
def test_how_far_an_iterator_got_is_state(made: Callable[[], Iterator[int]]) -> None:
    code = eval("lambda: next(kept)", {"kept": made(), "__name__": "model"})
    before = state_of([code])
    assert before == state_of([code])
    code()
    assert before != state_of([code])


def test_a_function_that_checks_types_is_what_it_wraps() -> None:
    """As beartype writes it, with numbers of its own that no result depends on."""
    text = "def checked(x):\n    assert limit == 7788\n    return __wrapped(x)\n"
    names: dict[str, Any] = {"limit": 7788, "__wrapped": defaulted, "__name__": __name__}
    exec(compile(text, f"<@beartype({__name__}.checked) at 0x1>", "exec"), names)
    checked = names["checked"]
    checked.__wrapped__ = defaulted
    numbers = [one for one in reached([checked]) if isinstance(one, int)]
    assert NUMBER in numbers
    assert 7788 not in numbers
    assert not is_written(checked.__code__)
