"""How the code of these tests is run: on one thread, and at how many lengths beside its graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attnproof.numeric.devices import one_thread

ABOUT_LENGTHS = ("test_prove_gate", "test_prove_attacks", "test_prove_parts")


@pytest.fixture(autouse=True)
def lengths(request: pytest.FixtureRequest) -> None:
    """All in tests that are about them; in others fewer, by which a fault would be seen as well."""
    if request.path.stem not in ABOUT_LENGTHS:
        request.getfixturevalue("fewer_lengths")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """No threads that would only wait for each other."""
    with one_thread():
        yield
