"""How the code of these tests is run: on one thread, and at how many lengths beside its graph."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from attnproof.numeric.devices import one_thread


@pytest.fixture
def every_length() -> None:
    """The code of a test that is about lengths is run at all of them beside its graph."""


@pytest.fixture(autouse=True)
def lengths(request: pytest.FixtureRequest) -> None:
    """All for tests that want ``every_length``; else fewer, by which a fault is seen as well."""
    if "every_length" not in request.fixturenames:
        request.getfixturevalue("fewer_lengths")


@pytest.fixture
def lengths_of_one() -> None:
    """The code of a test that is about lengths of 1 is traced anew there, if need be."""


@pytest.fixture(autouse=True)
def traced_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced from 2 tokens on is proved from there on: other traces take as long again."""
    if "lengths_of_one" not in request.fixturenames:
        widening = import_module("attnproof.programs.prove.widening")
        monkeypatch.setattr(widening, "TRACED_ANEW", 0)


@pytest.fixture
def proofs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a proof keeps code from being proved: no run beside its graph or its term."""
    from attnproof.programs.prove import proofs
    from attnproof.programs.prove.gate import Gate

    monkeypatch.setattr(proofs, "gate", lambda *_, **__: Gate())
    monkeypatch.setattr(proofs.Proofs, "compare", lambda _: None)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """No threads that would only wait for each other."""
    with one_thread():
        yield
