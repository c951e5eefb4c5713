"""Records of trials: how often each policy alarms on correct programs, and which faults it sees."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from .evidence import Number, Record
from .records import Machine

AIM = 1e-3
"""The share of correct programs that a policy may refuse."""


class RateRecord(Record):
    """How often one policy or rule refuses correct programs."""

    rule: str
    policy: bool = Field(description="One of attnproof's policies; else a usual rule.")
    dtype: str = Field(description="Empty for all together.")
    cases: int = Field(ge=0, description="Cases that it was applied to.")
    alarms: int = Field(ge=0)
    upper: float = Field(
        ge=0, le=1, description="Clopper and Pearson's one-sided upper confidence bound."
    )
    by_design: dict[str, int] = Field(description="Alarms in each input design that has any.")


class AlarmRecord(Record):
    """A correct program that one of attnproof's policies refused, and what shows it again."""

    trial: str
    implementation: str
    dtype: str
    design: str
    seed: int
    sizes: dict[str, int]
    policy: str
    ratio: Number
    told: str
    again: str = Field(description="The command that shows it again, among others of its kind.")


class LeftOutRecord(Record):
    """Cases in which a policy said nothing, or that no program could be run in."""

    rule: str = Field(description="Empty where the program was not run.")
    why: str
    cases: int = Field(ge=1)


class CaughtRecord(Record):
    """What one policy or rule makes of one fault: a seed counts if any design shows the fault."""

    rule: str
    policy: bool
    seeds: int = Field(ge=0, description="Seeds in which it was applied, in some design.")
    caught: int = Field(ge=0)
    least: Number | None = Field(
        description="Over the seeds the smallest of the largest ratios over designs: error over "
        "tolerance, or |z| over its limit. Null if it was never applied."
    )
    design: str = Field(description="The design in which its smallest ratio is largest.")


class FaultRecord(Record):
    """One planted fault in one dtype."""

    fault: str
    trial: str
    dtype: str
    size: Number = Field(
        description="Its exact effect over the deterministic bound at the worst entry: the largest "
        "over designs, the smallest over seeds."
    )
    above: int = Field(ge=0, description="Cases in which that is above 1.")
    missed: int = Field(ge=0, description="Of those, the cases that no policy caught.")
    rules: tuple[CaughtRecord, ...]


class TrialsRecord(Record):
    """One run of the trials."""

    attnproof: str
    created: AwareDatetime
    seconds: float = Field(ge=0)
    command: str
    machine: Machine
    device: str
    seed: int
    fault_seeds: int
    designs: tuple[str, ...]
    dtypes: tuple[str, ...]
    confidence: float
    cases: int = Field(ge=0, description="Correct programs that were run.")
    fault_cases: int = Field(ge=0, description="Wrong programs that were run.")
    rates: tuple[RateRecord, ...]
    alarms: tuple[AlarmRecord, ...] = Field(description="The first of them, at most a hundred.")
    left_out: tuple[LeftOutRecord, ...]
    faults: tuple[FaultRecord, ...]
    unfinished: int = Field(ge=0, description="Draws that an interrupted run did not reach.")

    @property
    def ok(self) -> bool:
        """No policy refuses more than it may, and every fault above the bound is seen."""
        rates = [one for one in self.rates if one.policy and not one.dtype and one.cases]
        few = all(one.alarms <= AIM * one.cases for one in rates)
        return few and not self.unfinished and not any(fault.missed for fault in self.faults)
