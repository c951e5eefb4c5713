"""A setting is a condition however it is read and however it is set, and only if it is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.prove.attributes_read import AttributesRead, is_observable
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


class Setting(nn.Module):
    """What calls read of it is set by name."""

    set_by_name = False

    def __init__(self) -> None:
        super().__init__()
        self.fast = self.set_by_name = False


class WithMethod(Setting):
    def enable(self) -> None:
        self.fast = True


class ByComputedName(WithMethod):
    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, getattr(self, "fa" + "st"))


class AmongAll(WithMethod):
    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, any(v is True for k, v in vars(self).items() if k != "training"))


class ByPattern(WithMethod):
    def forward(self, x: Tensor) -> Tensor:
        match self:
            case WithMethod(fast=True):
                return x.cumsum(0)
        return 2 * x


class InText(WithMethod):
    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, "{.fast}".format(self) == "True")  # noqa: UP032 (it is what is tested)


class NotYet(WithMethod):
    """It is read by an instruction that no run reaches."""

    limit = 1 << 40

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, x.shape[1] > self.limit and self.fast)


class Renamed(WithMethod):
    """It reads another attribute than it was asked for."""

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "fast" if name == "quick" else name)

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.quick)


class PassedOn:
    pass


class RenamedAbove(WithMethod, PassedOn):
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__("fa" + "st" if name == "quick" else name)

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.quick)


class SetByAnyName(Setting):
    def enable(self, **settings: bool) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.set_by_name)


class SetAmongAll(Setting):
    def enable(self, **settings: bool) -> None:
        self.__dict__.update(settings)

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.set_by_name)


class UnderAnotherName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flags = [False]

    def enable(self) -> None:
        known = self.flags
        known[0] = True

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.flags[0])


class OfTorch(nn.Module):
    """What a module of torch reads."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def coarser(self) -> None:
        self.norm.eps = 1.0

    def forward(self, x: Tensor) -> Any:
        return self.norm(x)


class Part(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x

    def other(self, x: Tensor) -> Tensor:
        return x.cumsum(0)


class OfAnotherMethod(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Part()

    def exchange(self) -> None:
        self.part.forward = self.part.other  # type: ignore[method-assign]

    def forward(self, x: Tensor) -> Any:
        return self.part(x)


def _given(x: Tensor, soon: bool = False) -> Tensor:
    return mixed(x, soon)


def _named(x: Tensor, *, late: bool = False) -> Tensor:
    return mixed(x, late)


def begin() -> None:
    _given.__defaults__ = (True,)
    _named.__kwdefaults__.update(late=True)  # type: ignore[union-attr]


def by_default(x: Tensor) -> Tensor:
    return _given(x)


def by_default_of_name(x: Tensor) -> Tensor:
    return _named(x)


def kept_in_cell() -> Callable[[Tensor], Tensor]:
    held = False

    def code(x: Tensor) -> Tensor:
        return mixed(x, held)

    return code


in_cell = kept_in_cell()


def replace_in_cell() -> None:
    in_cell.__closure__[0].cell_contents = True  # type: ignore[index]


READ: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "by a computed name": (ByComputedName(), "fast"),
    "among all": (AmongAll(), "fast"),
    "by a pattern": (ByPattern(), "fast"),
    "in a text": (InText(), "fast"),
    "not yet": (NotYet(), "fast"),
    "renamed": (Renamed(), "fast"),
    "renamed above": (RenamedAbove(), "fast"),
    "set by any name": (SetByAnyName(), "set_by_name"),
    "set among all": (SetAmongAll(), "set_by_name"),
    "under another name": (UnderAnotherName(), "flags"),
    "by a module of torch": (OfTorch(), "eps"),
    "another method": (OfAnotherMethod(), "forward"),
    "a default": (by_default, "soon"),
    "a default of a name": (by_default_of_name, "late"),
    "in a cell": (in_cell, "held"),
}


def conditions(code: Callable[[Tensor], Tensor]) -> list[str]:
    found = of_rows(code)
    assert found.verdict == "holds", found.why
    return [one.text for one in found.assuming if "keep" in one.text]


@pytest.mark.parametrize("how", READ)
def test_a_setting_is_found_however_it_is_read_and_set(how: str) -> None:
    code, name = READ[how]
    (told,) = conditions(code)
    assert re.search(rf"\b{name}\b", told), told


class Config:
    """An object whose attribute no code sets."""

    def __init__(self) -> None:
        self.fast = False


class OfAnother(WithMethod):
    """Its own ``fast`` is set, and that of its config is read."""

    def __init__(self) -> None:
        super().__init__()
        self.config = Config()

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x, self.config.fast)


def test_of_two_objects_it_is_the_one_that_is_read() -> None:
    assert not [one for one in conditions(OfAnother()) if "fast" in one]


@pytest.mark.parametrize("made", [WithMethod, RenamedAbove, Config])
def test_classes_are_left_as_they_were(made: Any) -> None:
    before = [{**vars(one)} for one in made.__mro__]
    reads = AttributesRead()
    with reads.of([made]):
        assert made().fast is False
    assert len(reads.classes) == 1
    assert before == [{**vars(one)} for one in made.__mro__]


def test_what_cannot_be_observed() -> None:
    assert is_observable(RenamedAbove)
    assert not is_observable(Renamed)
    assert not is_observable(nn.Linear)
    assert not is_observable(torch.Tensor)
    assert not is_observable(type(sys))
