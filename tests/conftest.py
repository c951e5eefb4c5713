"""What the tests of every layer share."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.real_code import forking, running
from attnproof.real_code.forking import ForkServer

ROOT = Path(__file__).resolve().parent.parent

# Constants of rounding that a machine's first test measured are there for all others, in worker
# processes and subprocesses as well; the user's own are left alone.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir()) / f"attnproof-tests-{os.getuid()}")

# What the first subprocess compiles of four hundred files, the next two hundred need not.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Arrays are small here, and the cores are taken by other tests: threads of torch would only wait
# for each other, at seven times the work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Memory that large arrays leave is kept for the next ones: to ask the system for it anew each time
# takes up to a tenth of the time of a test that measures.
KEPT = 1 << 29
os.environ.setdefault(
    "GLIBC_TUNABLES", f"glibc.malloc.trim_threshold={KEPT}:glibc.malloc.mmap_threshold={KEPT}"
)

# What SymPy knows of the lengths of one trace is not forgotten during the next.
os.environ.setdefault("SYMPY_CACHE_SIZE", "30000")

# What runs in the background of a script inherits that Ctrl-C is ignored, and so would the
# programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What takes longest, in the order in which it is begun: whoever gets it last keeps the others
# waiting.  A folder stands for its files.
FIRST = (
    "tests/front/test_claims_of_the_documents.py",
    "tests/numeric/test_catalogue.py",
    "tests/attacks",
    "tests/layout",
    "tests/front/test_zoo_trial.py",
    "tests/bugs",
    "tests/programs",
    "tests/front",
)
TOGETHER = 12  # tests of one file that a worker is given at a time, where they are short
WHOLE = ("tests/numeric/test_catalogue.py",)  # its last test asks for what the others measured
SINGLY = ("tests/attacks", "tests/bugs")  # where each is long


gc.disable()  # what is collected stays: to go through it takes a third of the time meanwhile


def pytest_collection_finish() -> None:
    """What is collected is not gone through again each time that garbage is collected.

    That takes a tenth of the time of all tests otherwise, and pauses of seconds, which count as the
    time of whatever is looked for with a limit.
    """
    something_is_drawn()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@settings(database=None, max_examples=1)
@given(st.none())
def something_is_drawn(_: None) -> None:
    """The first time, Hypothesis goes through all objects; once tests left theirs, for seconds."""


def pytest_unconfigure(config: pytest.Config) -> None:
    """What tests left is gone through once at the end, and not five times as pytest would.

    Nor is it in a worker, where it takes seconds: what is found by then is told to nobody.
    """
    if not hasattr(config, "workerinput"):
        gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Files of tests are not read a second time for examples in docstrings: they have none."""
    found = yield
    tests = file_path.name.startswith("test_")
    return [one for one in found if not (tests and isinstance(one, DoctestModule))]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first; the rest as it stands."""
    items.sort(key=lambda item: place(item.nodeid))


def place(nodeid: str) -> int:
    """Where a test stands in the order of :data:`FIRST`."""
    path = nodeid.partition("::")[0]
    return next((k for k, one in enumerate(FIRST) if is_of(path, one)), len(FIRST))


def is_of(path: str, part: str) -> bool:
    """Whether a file is this one, or in this folder."""
    return path == part or path.startswith(f"{part}/")


def units(nodeids: list[str]) -> dict[str, str]:
    """By test, the unit with which a worker is given it.

    What a module makes for all of its tests is made once: one worker runs them.  Of other files a
    few tests go together, since to hand out thousands one by one takes a third of their time.
    """
    found: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for nodeid in nodeids:
        path = nodeid.partition("::")[0]
        if makes_for_a_module(path) or path in WHOLE:
            found[nodeid] = path
        elif any(is_of(path, part) for part in SINGLY):
            found[nodeid] = nodeid
        else:
            found[nodeid] = f"{path} {seen[path] // TOGETHER}"
            seen[path] += 1
    return found


@cache
def makes_for_a_module(path: str) -> bool:
    """Whether a file makes something for all of its tests, beside settings that cost nothing."""
    file = ROOT / path
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return '@pytest.fixture(scope="module")' in text


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests are handed out by :func:`units`, in their order."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False

    class ByFixture(LoadScopeScheduling):  # type: ignore[misc]
        by_test: dict[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self.by_test is None:
                self.by_test = units(self.collection)
            return self.by_test[nodeid]

        def _reschedule(self, node: Any) -> None:
            if node in self.registered_collections:  # it may just have replaced a crashed one
                super()._reschedule(node)

        def remove_node(self, node: Any) -> str | None:
            """The test that a worker died of, which would be the death of the next one too."""
            given = self.assigned_work.pop(node)
            left = {unit: tests for unit, tests in given.items() if not all(tests.values())}
            if not left:
                return None
            first = next(iter(left.values()))
            crashed: str = next(test for test, done in first.items() if not done)
            first[crashed] = True
            self.workqueue.update(
                {u: tests for u, tests in left.items() if not all(tests.values())}
            )
            for other in self.assigned_work:
                self._reschedule(other)
            return crashed

    return ByFixture(config, log)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


STORES = count()


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A store of its own for each test: what one test finished, no other finds."""
    place = tmp_path_factory.getbasetemp() / f"cache {next(STORES)}"  # made when it is written to
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))


PART, SECONDS, NUMBERS = 40, 0.2, 12
LONGER = (
    ("longer_inputs", "MAX_WORK", PART),
    ("critical_lengths", "MAX_VALUES", PART),
    ("critical_lengths", "CHEAP_VALUES", PART),
)
FEWER = (
    "from importlib import import_module; gates = import_module('attnproof.programs.prove.gate'); "
    f"gates.WORK = {{name: work // {PART} for name, work in gates.WORK.items()}}; "
    f"gates.SECONDS, gates.SOURCE_NUMBERS = {SECONDS}, {NUMBERS}; "
    "own = lambda name: import_module('attnproof.real_code.' + name); "
    f"[setattr(own(m), name, getattr(own(m), name) // part) for m, name, part in {LONGER}]; serve()"
)


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """What code is run in, in processes of their own that do not each load the libraries.

    As with :func:`fewer_lengths`; what is ``spawned`` is run at all lengths.
    """
    assert "serve()" in forking.SERVE
    with ForkServer() as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(forking, "SERVE", forking.SERVE.replace("serve()", FEWER))
            server._begun()
        yield server


def python_settings() -> dict[str, str]:
    """What an interpreter reads when it starts, and a forked process has already."""
    found = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    parts = found.pop("PYTHONPATH", "").split(os.pathsep)
    return found | {"path": os.pathsep.join(part for part in parts if part not in ("", str(ROOT)))}


BEFORE = python_settings()


SPAWNED = running.spawned


@pytest.fixture(autouse=True)
def forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes for the code of users are forked, but for tests that want ``spawned``."""

    def started(asked: str) -> running.Process:
        if python_settings() != BEFORE:
            return SPAWNED(asked)
        server: ForkServer = request.getfixturevalue("fork_server")
        return server.started(asked)

    monkeypatch.setattr(running, "spawned", started)


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes for the code of users begin with nothing, as those of a command with one target."""
    monkeypatch.setattr(running, "spawned", SPAWNED)


@pytest.fixture
def fewer_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is run at fewer lengths, in tests that are not about that.

    Beside its graph, and beyond its numbers, in calls with a fortieth of the work, on the first
    numbers of its source; beside other code at every third length.
    """
    for module, name, part in LONGER:
        own = import_module(f"attnproof.real_code.{module}")
        monkeypatch.setattr(own, name, getattr(own, name) // part)
    gates = import_module("attnproof.programs.prove.gate")  # its function has its name
    monkeypatch.setattr(gates, "WORK", {name: work // PART for name, work in gates.WORK.items()})
    monkeypatch.setattr(gates, "SECONDS", SECONDS)
    monkeypatch.setattr(gates, "SOURCE_NUMBERS", NUMBERS)
    beyond = import_module("attnproof.programs.equal.larger_inputs")
    for name in ("WORK", "TOTAL"):
        monkeypatch.setattr(beyond, name, getattr(beyond, name) // PART)
    measure = import_module("attnproof.programs.equal.measure")
    tried = import_module("attnproof.programs.equal.inputs").lengths_tried
    monkeypatch.setattr(measure, "lengths_tried", lambda both: tried(both)[::3])


@pytest.fixture
def few_lengths(fewer_lengths: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside its graph code is run with a quarter of that, in tests of what is proved of graphs."""
    del fewer_lengths
    gates = import_module("attnproof.programs.prove.gate")
    monkeypatch.setattr(gates, "WORK", {name: work // 4 for name, work in gates.WORK.items()})
    monkeypatch.setattr(gates, "SECONDS", 0.05)
    monkeypatch.setattr(gates, "SOURCE_NUMBERS", NUMBERS // 4)


def torch_settings() -> dict[str, object]:
    """What torch keeps for a whole process, and one test could leave changed for the next."""
    if "torch" not in sys.modules:
        return {}
    import torch

    cuda, mha = torch.backends.cuda, torch.backends.mha
    return {
        "flash attention": cuda.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
        "math attention": cuda.math_sdp_enabled(),  # type: ignore[no-untyped-call]
        "efficient attention": cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        "fast path": mha.get_fastpath_enabled(),
        "default dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "gradients": torch.is_grad_enabled(),
        "matmul precision": torch.get_float32_matmul_precision(),
    }


@pytest.fixture(autouse=True)
def torch_stays_as_it_was() -> Iterator[None]:
    """The test that changes what a later one stands on is the one that fails.

    pytest listens to every logger that hands nothing on, for one test and for all of them, and what
    torch writes of each graph for whoever listens to its traces would be an eighth of the time of
    tracing.
    """
    if "torch" in sys.modules:
        traces = logging.getLogger("torch.__trace")
        traces.propagate = True
        traces.handlers.clear()
    before = torch_settings()
    yield
    after = torch_settings()
    assert not before or after == before
