"""The record of a sweep: every cell, what was found in it, and how it ended."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import AwareDatetime, Field

from ..evidence import MeasuredEvidence, Number, Record
from ..records import Machine

SWEEP_SCHEMA_VERSION: Final = 2

CellStatus = Literal[
    "held", "violated", "non-finite", "skipped", "out of memory", "out of time", "died", "failed",
]  # fmt: skip
BAD: Final = ("violated", "non-finite")
"""What speaks against a statement, where it is expected to hold."""
LOST: Final = ("out of memory", "out of time", "died", "failed")
"""Cells that came to no end; the store keeps none of them, so that they are tried again."""


class CellRecord(Record):
    """One statement in one implementation, dtype, size, design, seed and device."""

    theorem: str
    control: bool = Field(description="Whether it is the theorem's control.")
    implementation: str
    dtype: str
    scale: str
    tokens: int | None = Field(description="The length asked for; null for that of the scale.")
    design: str
    seed: int
    device: str = Field(description="As it was asked for, and what it is.")
    status: CellStatus = Field(
        description="The worst of its conclusions, or how the cell ended without one: held if any "
        "conclusion held and none was violated."
    )
    reason: str = Field(description="Why it was skipped or lost; empty otherwise.")
    traceback: str = Field(
        default="", description="Of an error of attnproof itself; empty where there was none."
    )
    ratio: Number | None = Field(
        description="The largest error over its bound, or |z| over its limit; null if none."
    )
    policy: str = Field(description="The policy of that ratio; empty if none.")
    says: str = Field(description="The conclusion of that ratio; empty if there is only one.")
    measured: tuple[MeasuredEvidence, ...] = Field(description="Each conclusion.")
    seconds: float = Field(ge=0)
    stored: AwareDatetime | None = Field(
        default=None,
        description="When it was measured, if it was found in the store; null if this sweep did.",
    )


class UnusableRecord(Record):
    """A statement of the sweep that has no cells, and why."""

    theorem: str
    control: bool
    why: str
    broken: bool = Field(description="Whether it should have had cells.")
    traceback: str = Field(
        default="", description="Of an error of attnproof itself; empty where there was none."
    )


class SweepRecord(Record):
    """One sweep."""

    schema_version: Literal[2] = SWEEP_SCHEMA_VERSION
    attnproof: str = Field(description="The version that wrote it.")
    created: AwareDatetime
    seconds: float = Field(ge=0)
    machine: Machine
    engine: Literal["loky", "threading", "ray"]
    jobs: int = Field(ge=1)
    limit: float | None = Field(description="Seconds that a cell might take.")
    memory: float | None = Field(description="GiB that a cell might take.")
    expected: dict[str, Literal["proved", "refuted"]] = Field(
        description="What each theorem is expected to be; its negative control is the other. One "
        "that is ill-typed is not here, and its negative control holds."
    )
    cells: tuple[CellRecord, ...]
    unusable: tuple[UnusableRecord, ...]
    unfinished: int = Field(ge=0, description="Cells that an interrupted sweep did not reach.")
    ok: bool = Field(
        description="No cell of a statement that is expected to hold speaks against it, none was "
        "lost, no statement is unusable, and nothing is unfinished."
    )


def holds(expected: dict[str, Literal["proved", "refuted"]], cell: CellRecord) -> bool:
    """Whether the statement of a cell is expected to hold.

    A negative control is the opposite; that of a theorem with nothing to measure is the theorem's
    truth.
    """
    return (
        expected.get(cell.theorem) != "refuted"
        if not cell.control
        else (expected.get(cell.theorem) != "proved")
    )
