"""Records of kernels checked at scale: one for each way of checking, on one machine."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field

from . import __version__
from .evidence import InternalErrorEvidence, Number, Record, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .numeric.at_scale.comparison import Found

__all__ = ["PolicyRecord", "ScaleRecord", "WayRecord", "scale_record", "scale_schema_text"]


class PolicyRecord(Record):
    """What one policy says."""

    policy: str
    status: Status
    ratio: Number = Field(description="Largest error over bound, or statistic over its limit.")
    told: str


class WayRecord(Record):
    """One way of checking a kernel."""

    way: str
    kernel: str
    device: str
    dtype: str
    tokens: int = Field(ge=1)
    heads: int = Field(ge=1)
    width: int = Field(ge=1)
    causal: bool
    seed: int
    looked: str = Field(description="Which rows were compared, and with what.")
    misses: str = Field(description="What could pass all the same, with its probability.")
    status: Status
    error: Number | None = Field(description="The difference at the worst entry.")
    tolerance: Number | None = Field(description="The rounding bound there; 0 for equal bits.")
    worst: tuple[int, ...] = Field(description="Head, row and column of that entry.")
    reason: str
    rounding: str = Field(description="The model behind the tolerance.")
    policies: tuple[PolicyRecord, ...]
    seconds: float = Field(ge=0, description="Of the check, the kernel included.")
    kernel_seconds: float = Field(ge=0)
    forwards: float = Field(ge=0, description="The seconds in forwards over all rows; 0: none.")
    bytes_of_inputs: int = Field(ge=0)
    bytes_beyond: int | None = Field(description="Peak memory beyond the inputs, where known.")


class ScaleRecord(Record):
    """All ways that one command tried."""

    version: Literal[1] = 1
    made: str = Field(description="When, as an ISO date and time.")
    attnproof: str
    torch: str
    threads: int = Field(ge=1)
    ways: tuple[WayRecord, ...]
    unfinished: tuple[str, ...] = Field(
        default=(), description="Ways that an interrupted run did not reach."
    )
    errors: tuple[InternalErrorEvidence, ...] = Field(
        default=(), description="Errors of attnproof itself, which ended the run."
    )

    @property
    def ok(self) -> bool:
        """Something was checked, and nothing was violated."""
        states = {way.status for way in self.ways}
        return "held" in states and not self.errors and not states & {"violated", "non-finite"}


def scale_record(
    found: Sequence[Found],
    torch: str,
    threads: int,
    unfinished: Sequence[str] = (),
    errors: Sequence[InternalErrorEvidence] = (),
) -> ScaleRecord:
    """The record of what was found."""
    return ScaleRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"), attnproof=__version__, torch=torch,
        threads=threads, ways=tuple(map(_way, found)), unfinished=tuple(unfinished),
        errors=tuple(errors),
    )  # fmt: skip


def _way(found: Found) -> WayRecord:
    nothing = found.status == "skipped" and not found.worst
    values = {
        name: getattr(found, name)
        for name in WayRecord.model_fields
        if name not in ("error", "tolerance", "policies")
    }
    return WayRecord(
        **values,
        error=None if nothing else _number(found.error),
        tolerance=None if nothing else _number(found.tolerance),
        policies=tuple(
            PolicyRecord(
                policy=j.policy, status=cast("Status", j.status), ratio=_number(j.ratio),
                told=j.told,
            )
            for j in found.judged
        ),
    )  # fmt: skip


def _number(x: float) -> Number:
    return x if math.isfinite(x) else "non-finite"


def scale_schema_text() -> str:
    """The JSON schema of :class:`ScaleRecord`."""
    schema = ScaleRecord.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
