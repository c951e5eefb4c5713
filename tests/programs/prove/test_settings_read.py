"""A setting is a condition however it is read and however it is set, and only if it is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.prove.settings_read import AttributesRead, is_observable

from .test_settings_kept import of_rows


def mixed(x: Tensor, when: Any) -> Tensor:
    """Rows of a batch meet in it."""
    return x.cumsum(0) if when else 2 * x


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
