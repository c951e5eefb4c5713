"""What a call leaves for later calls is found, though fresh instances find it there as well."""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from importlib.util import module_from_spec, spec_from_file_location
from types import CellType
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.loading.shared_state import SharedState
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from tests.programs.measure import kept_by_shape


def built(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a class of a file of its own, as in a fresh process."""
    spec = spec_from_file_location(f"kept_for_{name}", kept_by_shape.__file__)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, made)
    spec.loader.exec_module(made)
    return getattr(made, name)


@pytest.mark.parametrize("call", ["", "x: B n E -> B n E"], ids=["guessed", "given"])
@pytest.mark.parametrize("name", kept_by_shape.WRONG)
def test_what_is_kept_of_the_first_input_is_found(
    name: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = examine(adapted_as(built(name, monkeypatch), call), [Draw()], ("stateless",))
    assert one.verdict == "broken"


@pytest.mark.parametrize("name", kept_by_shape.RIGHT)
def test_a_cache_of_what_its_key_says_is_left_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = examine(adapted_as(built(name, monkeypatch)), [Draw()], ("stateless",))
    assert one.verdict == "holds"


@pytest.mark.parametrize(
    ("name", "verdict"),
    [*dict.fromkeys(kept_by_shape.NOT_DROPPING, "broken").items(), ("Dropping", "holds")],
)
def test_training_drops_though_the_first_call_was_in_evaluation(
    name: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = examine(adapted_as(built(name, monkeypatch)), [Draw()], ("training-returns",))
    assert one.verdict == verdict


def test_state_is_set_back_and_restored() -> None:
    kept: dict[Any, Tensor] = {}

    def first(x: Tensor) -> Tensor:
        return kept.setdefault(x.shape, x)

    state, one, other = SharedState.of(first), torch.zeros(2), torch.ones(2)
    assert first(one) is one
    with state.as_before():
        assert first(other) is other
    assert first(other) is one


def test_of_two_notes_of_one_place_the_later_is_set_back_beside_what_only_one_has() -> None:
    table: dict[str, int] = {}
    lengths: list[int] = []

    def short(n: int) -> None:
        table["n"] = n

    def long(n: int) -> None:
        short(n)
        lengths.append(n)

    earlier = SharedState.of(long)
    short(1)
    state = SharedState.of(short).after(earlier)
    long(2)
    with state.as_before():
        assert (table, lengths) == ({"n": 1}, [])
        long(3)
    assert (table, lengths) == ({"n": 2}, [2])


class Counting(torch.nn.Module):
    """Counts its calls in a buffer, which is written in place."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + self.calls


def test_a_buffer_that_is_written_in_place_is_set_back_every_time() -> None:
    module = Counting()
    state = SharedState.of(module)
    for _ in range(2):
        with state.as_before():
            assert module(torch.zeros(1)) == 1


class Made(OrderedDict[str, Any]):
    """Classes by name, of which each entry is given as a new object."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name)()


def test_a_mapping_that_makes_its_entries_is_put_back_as_it_was() -> None:
    known = Made(relu=torch.nn.ReLU)

    def call(x: Tensor) -> Tensor:
        known["gelu"] = torch.nn.GELU
        found: Tensor = known["relu"](x) + known["gelu"](x)
        return found

    state = SharedState.of(call)
    call(torch.ones(2))
    with state.as_before():
        assert [*known] == ["relu"]
        call(torch.ones(2))
    assert dict.__getitem__(known, "relu") is torch.nn.ReLU
    assert dict.__getitem__(known, "gelu") is torch.nn.GELU


def test_loggers_are_no_state_of_code() -> None:
    logger = logging.getLogger("code that is checked")

    def call(x: Tensor) -> Tensor:
        logger.debug("called")
        return x

    (place,) = (one for one in SharedState.of(call).places if isinstance(one.of, CellType))
    assert place.read() == [logger]
    assert not any(one.of is vars(logger) for one in SharedState.of(call).places)
