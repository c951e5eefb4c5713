"""The record of ``attnproof precision``: rotary encoding in short formats."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import AwareDatetime, Field

from .evidence import Number, Record
from .records import Machine

if TYPE_CHECKING:
    from .numeric.rotary_precision.survey import Survey

PRECISION_VERSION: Final = 1
Checks = Literal["held", "refused"]


class ErrorsRecord(Record):
    """Errors of scores in one format, at one base and shift, in units of |q||k|/√d."""

    form: str
    base: float
    shift: float
    rms: Number
    largest: Number
    identity: Number = Field(description="Root mean square against the same content at shift 0.")
    share: Number = Field(description="The largest error over its bound.")
    identity_share: Number
    checked: int = Field(ge=0, description="Errors whose bound is finite.")
    violations: int = Field(ge=0)


class BreakRecord(Record):
    """The first position drawn from which errors are above a limit; null: none is."""

    form: str
    base: float
    limit: float
    rms: int | None
    largest: int | None
    furthest: int


class CollisionRecord(Record):
    """The first position that a dtype keeps as the one before, and the first it cannot keep."""

    dtype: str
    first: int | None
    infinite: int | None
    searched: int


class DriftRecord(Record):
    """How far rounded frequencies drift."""

    dtype: str
    base: float
    relative: float
    off: float = Field(description="Radians.")
    at: int = Field(description="The first position at which some angle is off by so much.")
    subnormal: int


class CheckedRecord(Record):
    """What the relative identity and the comparison with declared frequencies say of a code."""

    code: str
    form: str
    identity: Checks
    identity_ratio: Number
    comparison: Checks
    comparison_ratio: Number
    why: str


class PrecisionRecord(Record):
    """All of it, with the machine."""

    version: Literal[1] = PRECISION_VERSION
    made: AwareDatetime
    attnproof: str
    machine: Machine
    device: str
    seed: int
    content: int = Field(description="How many queries and keys were drawn.")
    width: int = Field(description="Channels of a query or key.")
    errors: tuple[ErrorsRecord, ...]
    breaks: tuple[BreakRecord, ...]
    collisions: tuple[CollisionRecord, ...]
    drifts: tuple[DriftRecord, ...]
    checked: tuple[CheckedRecord, ...]

    @property
    def violations(self) -> int:
        """How many errors are above their bound."""
        return sum(one.violations for one in self.errors)


def recorded(found: Survey, made: AwareDatetime, version: str, machine: Machine) -> PrecisionRecord:
    """The record of a survey."""
    return PrecisionRecord(
        made=made, attnproof=version, machine=machine, device=found.device, seed=found.seed,
        content=found.content, width=found.width,
        errors=tuple(ErrorsRecord(**_plain(one)) for one in found.errors),
        breaks=tuple(BreakRecord(**_plain(one)) for one in found.breaks),
        collisions=tuple(CollisionRecord(**_plain(one)) for one in found.collisions),
        drifts=tuple(DriftRecord(**_plain(one)) for one in found.drifts),
        checked=tuple(CheckedRecord(**_plain(one)) for one in found.checked),
    )  # fmt: skip


def _plain(one: Any) -> dict[str, Any]:
    """Its fields; an error that is no number is told as that."""
    return {
        name: "non-finite" if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(one).items()
    }
