"""Proofs are asked for alone: code is run beside its graph in tests of what such runs find."""

from __future__ import annotations

import pytest

# Files about these runs, the conditions that they find, and the lengths of which they speak.
BESIDE = (
    "test_blocks.py",
    "test_branches.py",
    "test_calls.py",
    "test_comparison_monitor.py",
    "test_conditions.py",
    "test_gate.py",
    "test_kinds.py",
    "test_length_functions.py",
    "test_settings_kept.py",
    "test_settings_read.py",
    "test_state.py",
    "test_tensors_read.py",
    "test_token_blocks.py",
    "test_undefined.py",
    "test_widening.py",
)


@pytest.fixture(autouse=True)
def lengths(request: pytest.FixtureRequest) -> None:
    """Few where nothing else is said; none in files about proofs."""
    if {"every_length", "fewer_lengths"} & set(request.fixturenames):
        return
    request.getfixturevalue("few_lengths")
    if request.path.name not in BESIDE:
        request.getfixturevalue("graphs_alone")
