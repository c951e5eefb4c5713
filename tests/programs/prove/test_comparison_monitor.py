"""Code whose comparisons are watched does what it did, and its functions are found."""

from __future__ import annotations

import functools
import gc
import importlib
import operator
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.loading import source_numbers
from attnproof.programs.loading.source_numbers import functions_in
from attnproof.programs.prove import executed_code
from attnproof.programs.prove.comparison_monitor import ComparisonMonitor
from attnproof.programs.prove.executed_code import Executed, functions_of
from attnproof.programs.prove.instrumentation import instrument


class Base:
    __secret = 4

    def wide(self, n: int) -> bool:
        return n > self.__secret


class Derived(Base):
    """Private names, ``super``, a closure, a decorator, defaults, all that has a test."""

    def __init__(self, most: int) -> None:
        def far(n: int) -> bool:
            return not (n > 2 * most or n == -1)

        self.far: Callable[[int], bool] = far

    def wide(self, n: int, step: int = 2) -> bool:
        return super().wide(n + step)

    @functools.lru_cache(maxsize=1)  # noqa: B019
    def kept(self, n: int) -> tuple[Any, ...]:
        found: list[Any] = [k for k in range(n) if k % 2 if k != 4]
        while n > 3 and n != 5:
            n -= 1
        assert n <= 5, n
        found += [n if 1 < n < 9 else -n, max(n, 3), min(3, n), {3: "a"}.get(n, "b"), found[n // 4]]
        match n:
            case 3:
                found.append("three")
            case int() if n > 3:
                found.append("more")
            case _:
                found.append("less")
        return (*found, 5 / n, n >> 1, f"{n}", n in (3, 4), operator.eq(n, 3))

    def all(self, n: int) -> tuple[Any, ...]:
        return self.wide(n), self.far(n), Derived.kept.__wrapped__(self, n)


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_code_that_is_watched_does_what_it_did(n: int) -> None:
    one = Derived(3)
    want = one.all(n)
    ran = Executed(lambda names: names is globals())
    assert ran.recording(one.all)(n) == want
    functions = functions_of(ran.codes, functions_in([one.all]))
    before = {function: function.__code__ for function in functions}
    watch = ComparisonMonitor()
    instrument(functions, watch)
    assert [*watch.unseen(ran.codes)] == []
    with watch.run({"n": n}, "plain"):
        changed = [f for f, code in before.items() if f.__code__ is not code]
        assert one.all(n) == want
    assert {f.__name__ for f in changed} >= {"wide", "far", "kept", "all"}
    assert all(f.__code__ is code for f, code in before.items())
    seen = {watch.sites[site].text for site, _, _ in watch.sides}
    assert {"n > self.__secret", "n > 2 * most", "k % 2", "1 < n < 9", "range(n)"} <= seen


def test_what_raises_is_put_back() -> None:
    def fails(n: int) -> None:
        raise ValueError if n > 1 else KeyError

    assert isinstance(fails, FunctionType)
    code, watch = fails.__code__, ComparisonMonitor()
    instrument([fails], watch)
    with pytest.raises(ValueError), watch.run({}, "plain"):  # noqa: PT011, PT012
        assert fails.__code__ is not code
        fails(2)
    assert fails.__code__ is code
    assert [met[0].answer for met in watch.sides.values()] == [True]


LAYOUTS = {
    "a class on one line": "class Far: far = staticmethod(lambda n: n > 7)",
    "a class that goes on": "class Far(\n  object): near = 1; far = staticmethod(lambda n: n > 7)",
    "a class without its other methods": """
class Far:
    'A docstring.'
    def near(self): return 1
    @staticmethod
    def far(n): return n > 7
""",
    "a base that is called": """
class Far((lambda far: type('B', (), {'far': staticmethod(far)}))(
    lambda n: n > 7
)):
    near = 1
""",
    "an end that another statement shares": "near = [\n  1]; far = (\n  lambda n: n > 7)",
    "the future": """
from __future__ import annotations
def far(n):
    def inner(n: Unknown): return n > 7
    return inner(n)
""",
    "a branch": "if True:\n    near = 1\n    def far(n): return n > 7\nelse:\n    far = None",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=list(LAYOUTS))
def test_a_function_is_found_however_its_file_is_laid_out(text: str, tmp_path: Path) -> None:
    file = tmp_path / "laid_out.py"
    file.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "laid_out"}
    exec(compile(text, str(file), "exec", dont_inherit=True), names)
    far = names["far"] if "far" in names else names["Far"].far
    watch = ComparisonMonitor()
    instrument([far], watch)
    with watch.run({}, "plain"):
        assert far(9)
    assert [watch.sites[site].text for site, _, _ in watch.sides] == ["n > 7"]


@pytest.mark.parametrize(("package", "own"), [("einops", False), ("einops_like", True)])
def test_what_rearranges_tensors_is_a_library_and_not_the_code_of_the_user(
    package: str, own: bool
) -> None:
    there: dict[str, Any] = {"__name__": f"{package}.parsing"}
    exec("def cut(x, kept=[]):\n    return x[:, : 7 if x.shape[1] > 7 else None]", there)

    def call(x: Tensor) -> Tensor:
        found: Tensor = there["cut"](2 * x)
        return found

    ran, watch = Executed(source_numbers.is_own), ComparisonMonitor()
    ran.recording(call)(torch.ones(2, 9))
    assert isinstance(call, FunctionType)
    instrument([call], watch)
    with watch.run({}, "plain"):
        call(torch.ones(2, 9))
    assert ("cut" in [code.co_name for code in ran.codes]) == own
    assert ([code.co_name for code in watch.unwatched] == ["cut"]) == own


def test_what_a_library_imports_is_not_the_code_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_late.py").write_text("most = (lambda: 7)()", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any, target: Any = None) -> None:
            """Find nothing."""

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])

    def by_a_library(n: int) -> bool:
        return bool(n > pkgutil.resolve_name("imported_late:most"))

    def by_itself(n: int) -> bool:
        return bool(n > importlib.import_module("imported_late").most)

    for run, own in ((by_a_library, []), (by_itself, ["<module>", "<lambda>"])):
        monkeypatch.delitem(sys.modules, "imported_late", raising=False)
        ran, watch = Executed(source_numbers.is_own), ComparisonMonitor()
        assert isinstance(run, FunctionType)
        instrument([run], watch)
        with watch.run({}, "plain"):
            assert run(8)
        assert [code.co_qualname for code in watch.unwatched] == own
        monkeypatch.delitem(sys.modules, "imported_late")
        ran.recording(run)(8)
        assert [code.co_qualname for code in ran.codes] == [run.__qualname__, *own]


def test_what_the_garbage_collector_calls_is_not_of_the_code() -> None:
    def collects(n: int) -> bool:
        return gc.collect() >= 0 and n > 3

    heard: list[str] = []
    gc.callbacks.append(lambda phase, _: heard.append(phase))
    ran, watch = Executed(source_numbers.is_own), ComparisonMonitor()
    assert isinstance(collects, FunctionType)
    instrument([collects], watch)
    try:
        with watch.run({}, "plain"):
            assert collects(8)
        ran.recording(collects)(8)
    finally:
        gc.callbacks.pop()
    assert heard
    assert not watch.unwatched
    assert [code.co_qualname for code in ran.codes] == [collects.__qualname__]


def test_what_one_watch_looks_at_is_not_what_another_notes() -> None:
    """A call that is watched may make one that another watch watches."""

    def compares(n: int) -> bool:
        return n > 3 and unseen(n)

    outer, inner = ComparisonMonitor(), ComparisonMonitor()
    assert isinstance(compares, FunctionType)
    instrument([compares], outer)

    def both(n: int) -> bool:
        with inner.run({}, "plain"):
            return compares(n)

    with outer.run({}, "plain"):
        assert both(8)
    assert "unseen" in {code.co_name for code in inner.unwatched}


def unseen(n: int) -> bool:
    return n > 4


def test_functions_that_the_collector_leaves_alone_are_found() -> None:
    """A process that runs code freezes what it has loaded."""

    def compares(n: int) -> bool:
        return n > 3

    gc.freeze()
    try:
        assert functions_of({compares.__code__: {}}, []) == [compares]
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def wrapping(inner: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inner)
    def outer(*given: Any) -> Any:
        return inner(*given)

    return outer


@wrapping
def decorated(n: int) -> bool:
    return n > 3


def test_functions_that_globals_name_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Executed(lambda names: names is globals())
    ran.recording(decorated)(3)
    ran.recording(Derived(3).wide)(5)
    monkeypatch.setattr(executed_code, "_holders_of", lambda _: [])
    found = {one.__name__ for one in functions_of(ran.codes, [])}
    assert found >= {"decorated", "wide"}
    assert decorated.__wrapped__ in functions_of(ran.codes, [])  # type: ignore[attr-defined]
