"""What code that no call runs may set: a trace takes it as a constant, and the line says so."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Layer

fast = False
flags = [False]
options = {"fast": False}
chosen: set[str] = set()
window = 7


def of_rows(code: Callable[[Tensor], Tensor]) -> Finding:
    module = code if isinstance(code, nn.Module) else None
    subject = Layer(name="l", call=code, embed=4, module=module)
    (found,) = prove(subject, ("rows-of-batch-apart",)).findings
    return found


def mixed(x: Tensor, when: Any) -> Tensor:
    """Rows of a batch meet in it."""
    return x.cumsum(0) if when else 2 * x


def enable() -> None:
    global fast  # noqa: PLW0603 (it is what is tested)
    fast = flags[0] = options["fast"] = True
    chosen.add("fast")


def by_global(x: Tensor) -> Tensor:
    return mixed(x, fast)


def by_list(x: Tensor) -> Tensor:
    return mixed(x, flags[0])


def by_dict(x: Tensor) -> Tensor:
    return mixed(x, options["fast"])


def by_set(x: Tensor) -> Tensor:
    return mixed(x, "fast" in chosen)


class Mode(Enum):
    """How calls are made."""

    SLOW = 1
    FAST = 2


mode = Mode.SLOW


def choose(one: Mode) -> None:
    global mode  # noqa: PLW0603 (it is what is tested)
    mode = one


def by_choice(x: Tensor) -> Tensor:
    return mixed(x, mode is Mode.FAST)


def switched() -> tuple[Callable[[Tensor], Tensor], Callable[[], None]]:
    on = False

    def code(x: Tensor) -> Tensor:
        return mixed(x, on)

    def enable() -> None:
        nonlocal on
        on = True

    return code, enable


class Settings:
    """A class with a setting that a class method changes."""

    fast = False

    @classmethod
    def enable(cls) -> None:
        cls.fast = True


class ByAttribute(nn.Module):
    """A method of it that no call runs sets what calls read."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.scale = False, 2.0

    def enable(self) -> None:
        self.fast = True

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.fast)


class ByName(ByAttribute):
    def enable(self) -> None:
        setattr(self, "fast", 1 > 0)  # noqa: B010 (it is asked so)


SET: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "a global name": (by_global, "the global fast keeps its value, False"),
    "an entry of a list": (by_list, "the global flags keeps its value, [False]"),
    "an entry of a dict": (by_dict, "the global options keeps its value, {'fast': False}"),
    "what a set contains": (by_set, "the global chosen keeps its value, set()"),
    "a choice": (by_choice, "the global mode keeps its value, <Mode.SLOW: 1>"),
    "a variable": (switched()[0], "the variable on keeps its value, False"),
    "a class": (lambda x: mixed(x, Settings.fast), "the attribute fast keeps its value, False"),
    "a module": (ByAttribute(), "the attribute fast keeps its value, False"),
    "by its name": (ByName(), "the attribute fast keeps its value, False"),
}


@pytest.mark.parametrize("name", SET)
def test_what_other_code_may_set_is_a_condition(name: str) -> None:
    code, told = SET[name]
    found = of_rows(code)
    assert found.verdict == "holds", found.why
    assert told in [one.text for one in found.assuming]


def test_the_law_is_broken_where_it_is_set() -> None:
    code = ByAttribute()
    code.enable()
    assert of_rows(code).verdict == "broken"


class Scaled(nn.Module):
    """Only its constructor sets what calls read, and its other method what none reads."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.calls = 2.0, 0

    def count(self) -> None:
        self.calls += 1

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x * self.scale, window > 9)


def test_what_no_code_sets_is_none() -> None:
    found = of_rows(Scaled())
    assert found.verdict == "holds"
    assert not [one.text for one in found.assuming if "keep" in one.text]
    assert torch.equal(Scaled()(torch.ones(1, 1, 4)), torch.full((1, 1, 4), 4.0))
