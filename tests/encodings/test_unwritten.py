"""A method that an encoding does not write says so where it is called, and what to do."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from attnproof import Encoding
from attnproof.declarations import EXAMPLES


class Nothing(Encoding):
    """Nothing is done."""


def called(encoding: Encoding, method: str) -> str:
    """What is said where this method is called with numbers."""
    hook = getattr(encoding, method)
    with pytest.raises(NotImplementedError) as caught:
        hook(*(0 for _ in inspect.signature(hook).parameters))
    return str(caught.value)


def bare() -> set[str]:
    """The methods of the base class that give nothing."""
    return {
        name
        for name, method in vars(Encoding).items()
        if inspect.isfunction(method) and "unwritten" in method.__code__.co_names
    }


@pytest.mark.parametrize("method", sorted(EXAMPLES))
def test_the_error_names_class_method_shape_and_example(method: str, root: Path) -> None:
    told = called(Nothing(), method)
    words = (inspect.getdoc(getattr(Encoding, method)) or "").splitlines()[0]
    assert told.startswith(f"Nothing does not write {method}(")
    assert words[1:] in told
    assert f"Write it in class Nothing, as {EXAMPLES[method]} does" in told
    assert f"Nothing.defines({method!r})" in told
    example = (root / EXAMPLES[method]).read_text(encoding="utf-8")
    assert f"    def {method}(self" in example


def test_every_method_that_gives_nothing_has_an_example() -> None:
    assert bare() == set(EXAMPLES)
    assert not Nothing.defines(*EXAMPLES)


def test_a_call_of_super_is_told_apart() -> None:
    class Falls(Encoding):
        """Calls what is not there."""

        def bias(self, m: Any, n: Any) -> Any:
            return super().bias(m, n) - 1

    told = called(Falls(), "bias")
    assert told.startswith("Falls.bias(m, n) calls that of Encoding, which is not written: it is")
    assert "Drop the call of super().bias" in told


def test_shapes_stand_in_the_words_of_what_acts_on_scores() -> None:
    assert "(r, 1) with a key at n: (1, c) -> (r, c)" in called(Nothing(), "bias")
    assert "positions (..) -> (.., d)" in called(Nothing(), "add")
