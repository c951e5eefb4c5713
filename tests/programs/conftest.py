"""How the code of these tests is run: on one thread, and at how many lengths beside its graph."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn

import pytest

from attnproof.numeric.devices import one_thread
from attnproof.symbolic.faults import Fault
from attnproof.theorems.laws import Formula


@pytest.fixture
def every_length() -> None:
    """The code of a test that is about lengths is run at all of them beside its graph."""


@pytest.fixture(autouse=True)
def lengths(request: pytest.FixtureRequest) -> None:
    """All for ``every_length``, ``fewer_lengths`` in tests of runs; in those of graphs, few."""
    if not {"every_length", "fewer_lengths"} & set(request.fixturenames):
        request.getfixturevalue("few_lengths")


@pytest.fixture
def lengths_of_one() -> None:
    """The code of a test that is about lengths of 1 is traced anew there, if need be."""


@pytest.fixture(autouse=True)
def traced_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced from 2 tokens on is proved from there on: other traces take as long again."""
    if "lengths_of_one" not in request.fixturenames:
        widening = import_module("attnproof.programs.prove.widening")
        monkeypatch.setattr(widening, "MAX_OPERATIONS", 0)


@pytest.fixture
def graphs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is not run beside its graph, in tests of what is proved of graphs."""
    from attnproof.programs.prove import proofs
    from attnproof.programs.prove.paired_runs import Gate

    monkeypatch.setattr(proofs, "gate", lambda *_, **__: Gate())


@pytest.fixture
def proofs_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a proof keeps code from being proved: nor is a graph compared with its term."""
    from attnproof.programs.prove import proofs

    def defined(made: proofs.Proofs) -> None:
        """Note that no denominator was 0, as a comparison at the traced lengths would."""
        for graph in made.graphs.values():
            graph.program.notes.undefined.append(False)

    request.getfixturevalue("graphs_alone")
    monkeypatch.setattr(proofs.Proofs, "compare", defined)


@pytest.fixture
def faults_told() -> None:
    """A test is about how faults of our own are told."""


@pytest.fixture(autouse=True)
def faults_fail(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of our own in a proof fails its test, also one that asks only for no proof."""
    from attnproof.programs.prove import proofs

    if "faults_told" in request.fixturenames:
        return

    def failed(law: Formula, fault: Fault) -> NoReturn:
        pytest.fail(f"internal error on {law.id}: {fault.message}\n{fault.traceback}")

    monkeypatch.setattr(proofs, "_failed", failed)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """No threads that would only wait for each other."""
    with one_thread():
        yield
