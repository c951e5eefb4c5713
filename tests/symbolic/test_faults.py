"""Whose error it is, read off its traceback."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnproof.symbolic.budget import Budget
from attnproof.symbolic.claim import equal
from attnproof.symbolic.faults import REPORT, Fault, fault_of
from attnproof.symbolic.givens import real, sizes

(n,) = sizes("n")


def raised(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (any of them is looked at)
        call()
    return caught.value


def ours(call: Callable[[], object], *theirs: str | Path) -> Fault | None:
    return fault_of(raised(call), theirs)


def test_what_the_code_of_a_user_raises_is_the_users() -> None:
    def theirs() -> object:
        return dict[str, int]()["left"]

    assert ours(theirs) is None


def test_what_code_of_ours_raises_by_accident_is_ours() -> None:
    found = ours(lambda: Budget(None))  # type: ignore[arg-type]  # None + float, in our line
    assert found is not None
    assert "symbolic/budget.py, line" in found.error
    assert found.message.startswith("internal error of attnproof: TypeError")
    assert found.message.endswith(REPORT)
    assert "Traceback" in found.traceback
    assert "budget.py" in found.traceback


class Mine:
    """Of the user's: a method that takes no argument."""

    def hook(self) -> None:
        """Take nothing."""


def own(name: str) -> Callable[[Any], Any]:
    """A function of a file of attnproof that calls what it is given."""
    space: dict[str, Any] = {}
    file = str(Path(Budget.__init__.__code__.co_filename).with_name(f"{name}.py"))
    text = "def plainly(call): call(1)\ndef hooked(made): made.hook(1)\ndef takes(): ...\n"
    exec(compile(text, file, "exec"), space)
    calls: Callable[[Any], Any] = space[name]
    return calls


def test_a_function_of_the_user_that_does_not_take_its_arguments_is_the_users() -> None:
    assert ours(lambda: own("plainly")(lambda: None)) is None
    assert ours(lambda: own("hooked")(Mine())) is None
    found = ours(lambda: own("plainly")(own("takes")))
    assert found is not None
    assert "; called from tests/symbolic/test_faults.py, line" in found.error


def test_a_refusal_under_code_of_the_user_is_for_the_user() -> None:
    a, b = real(n, 2).named("a"), real(n, 3).named("b")
    error = raised(lambda: a @ b)
    assert "attnproof" in type(error).__module__
    assert fault_of(error) is None


def deep(call: Callable[[], Any]) -> Exception:
    """An exception with the frames of the call alone, as where a command of ours catches it."""
    error = raised(call)
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    return error.with_traceback(tb)


def test_an_explicit_error_of_a_known_type_is_a_refusal_and_any_other_is_a_fault() -> None:
    error = deep(lambda: equal("left", 1))
    assert isinstance(error, TypeError | ValueError)
    assert fault_of(error) is None
    assert fault_of(error, refusals=()) is not None


def test_a_file_of_the_catalogue_is_judged_as_anybodys() -> None:
    error = deep(lambda: Budget(None))  # type: ignore[arg-type]
    where = error.__traceback__
    assert where is not None
    assert fault_of(error) is not None
    assert fault_of(error, (where.tb_frame.f_code.co_filename,)) is None


def test_an_assertion_of_ours_is_never_a_refusal() -> None:
    space: dict[str, Any] = {}
    file = str(Path(Budget.__init__.__code__.co_filename).with_name("asserting.py"))
    exec(compile("def f():\n    raise AssertionError('no')\n", file, "exec"), space)
    assert ours(space["f"]) is not None


def test_what_a_library_raises_is_laid_on_who_called_it() -> None:
    import numpy as np

    space: dict[str, Any] = {"np": np}
    file = str(Path(Budget.__init__.__code__.co_filename).with_name("calling.py"))
    exec(compile("def f():\n    return np.linalg.inv(np.zeros((2, 3)))\n", file, "exec"), space)
    found = ours(space["f"])
    assert found is not None
    assert "calling.py, line 2" in found.error
    assert ours(lambda: np.linalg.inv(np.zeros((2, 3)))) is None


def test_what_torch_raises_under_a_mode_of_ours_is_of_who_called_torch() -> None:
    space: dict[str, Any] = {}
    file = str(Path(Budget.__init__.__code__.co_filename).with_name("mode.py"))
    text = (
        "def __torch_function__(func, *args):\n    return func(*args)\n"
        "def other(func, *args):\n    return __torch_function__(func, *args)\n"
        "def __torch_dispatch__(func, *args):\n    return {}['left']\n"
    )
    exec(compile(text, file, "exec"), space)
    for name, is_theirs in (("__torch_function__", True), ("__torch_dispatch__", False)):
        found = ours(lambda name=name: space[name](math.sqrt, -1.0))  # type: ignore[misc]
        assert (found is None) == is_theirs
    assert ours(lambda: space["other"](math.sqrt, -1.0)) is not None


def test_an_error_raised_for_another_is_of_who_raised_that() -> None:
    space: dict[str, Any] = {}
    file = str(Path(Budget.__init__.__code__.co_filename).with_name("passing.py"))
    text = (
        "def f(call):\n    try:\n        call()\n    except Exception as error:\n"
        "        raise RuntimeError('told') from error\n"
    )
    exec(compile(text, file, "exec"), space)
    assert fault_of(deep(lambda: space["f"](lambda: dict[str, int]()["a"]))) is None
    assert fault_of(deep(lambda: space["f"](lambda: Budget(None)))) is not None  # type: ignore[arg-type]


def test_an_interrupt_is_nobodys_fault() -> None:
    assert fault_of(KeyboardInterrupt()) is None
    assert fault_of(SystemExit(3)) is None
