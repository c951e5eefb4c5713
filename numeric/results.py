"""Results of measurements: made where one measures, and recorded and printed as they are.

A number that is not finite becomes the word ``"non-finite"`` when a result is made, so that it
cannot be mistaken for one that was never measured; JSON that holds NaN or infinity is refused.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

Status = Literal["held", "violated", "non-finite", "skipped"]
Policy = Literal["deterministic", "probabilistic", "residual", "bitwise"]
POLICIES: Final = get_args(Policy)

STRICT: Final = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def _worded(value: object, info: ValidationInfo) -> object:
    wrong = isinstance(value, float) and not isfinite(value)
    return "non-finite" if wrong and info.mode == "python" else value


Number = Annotated[float | Literal["non-finite"], BeforeValidator(_worded)]


def as_float(value: Number | None) -> float:
    """Return a number of a result, for comparison; 0 if there is none.

    >>> as_float(0.5), as_float("non-finite"), as_float(None)
    (0.5, inf, 0.0)
    """
    return inf if value == "non-finite" else value or 0.0


@dataclass(frozen=True, config=STRICT)
class PolicyRecord:
    """What one policy says about one measurement."""

    policy: Policy
    status: Status
    ratio: Number | None = Field(
        description="The largest ratio of error to bound, or of |z| to its limit; null if skipped."
    )
    told: str = Field(description="The entry or direction; if skipped, why it was not applied.")

    @field_validator("ratio", mode="before")
    @classmethod
    def _applied(cls, value: object, info: ValidationInfo) -> object:
        return None if info.data.get("status") == "skipped" else value

    def __post_init__(self) -> None:
        if self.status == "skipped" and not self.told:
            raise ValueError("a policy that was not applied must say why")


class _Compared:
    """What measurements have in common: an error and its tolerance, unless they were skipped."""

    error: Number | None
    tolerance: Number | None
    reason: str

    @property
    def ratio(self) -> float:
        """error / tolerance; above 1 the tolerance is exceeded."""
        error, tolerance = as_float(self.error), as_float(self.tolerance)
        return error if not error else error / tolerance if tolerance else inf

    def _without_error(self) -> None:
        """Remove the error of one that was skipped, which must say why."""
        if not self.reason:
            raise ValueError("a measurement that was skipped must say why")
        for name in ("error", "tolerance"):
            object.__setattr__(self, name, None)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MeasuredEvidence(_Compared):
    """One implementation, on one device and in one dtype, against the statement."""

    kind: Literal["measured"] = "measured"
    says: str
    implementation: str
    device: str
    dtype: str
    sizes: dict[str, int]
    seed: int
    sampled: Annotated[str, Field(description="What was examined, in words.")]
    error: Annotated[
        Number | None, Field(description="The difference at the worst entry; null only if skipped.")
    ]
    tolerance: Annotated[Number | None, Field(description="The rounding bound at that entry.")]
    worst: Annotated[
        tuple[int, ...],
        Field(description="The entry with the largest ratio of error to tolerance."),
    ]
    seconds: Annotated[float, Field(ge=0)]
    status: Status
    reason: str
    rounding: Annotated[
        str, Field(description="The rounding model of the tolerance, in words.")
    ] = ""
    distribution: Annotated[
        str, Field(description="The input distribution that decided the outcome.")
    ] = "normal"
    distributions: Annotated[
        tuple[str, ...], Field(description="All input distributions that were tried.")
    ] = ("normal",)
    policies: Annotated[
        tuple[PolicyRecord, ...],
        Field(
            description="The outcome of each policy; the measurement is violated if any policy is."
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.status == "skipped":
            self._without_error()

    @classmethod
    def of_nothing(
        cls,
        reason: str,
        *,
        implementation: str,
        dtype: str,
        says: str = "",
        device: str = "cpu",
        sizes: dict[str, int] | None = None,
        seed: int = 0,
    ) -> Self:
        """Return the record of a measurement that was not made, and why."""
        return cls(
            says=says,
            implementation=implementation,
            device=device,
            dtype=dtype,
            sizes=sizes or {},
            seed=seed,
            sampled="nothing",
            error=None,
            tolerance=None,
            worst=(),
            seconds=0.0,
            status="skipped",
            reason=reason,
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ExactEvidence:
    """One conclusion, evaluated without rounding in a tower of finite fields.

    It tests the algorithm and not the arithmetic: order, maxima and rounding have no meaning there.
    """

    kind: Literal["exact"] = "exact"
    says: str
    primes: Annotated[
        tuple[int, ...],
        Field(
            description="The primes of the fields: each divides the next minus one. Empty only if "
            "skipped."
        ),
    ]
    sizes: dict[str, int]
    seed: int
    compared: Annotated[int, Field(ge=0, description="Number of entries that were compared.")]
    undefined: Annotated[
        int,
        Field(ge=0, description="Number of entries left out because a denominator was 0."),
    ]
    worst: Annotated[tuple[int, ...], Field(description="The first entry that differs.")] = ()
    status: Literal["held", "violated", "skipped"]
    error: Annotated[
        str,
        Field(
            description="A bound on the probability that a false equation passes; empty if none is "
            "known."
        ),
    ]
    argument: Annotated[str, Field(description="Why the bound holds, or why none is known.")]
    reason: Annotated[str, Field(description="Why it was skipped.")]
    seconds: Annotated[float, Field(ge=0)]

    @classmethod
    def of_nothing(
        cls,
        reason: str,
        *,
        says: str = "",
        sizes: dict[str, int] | None = None,
        seed: int = 0,
        seconds: float = 0.0,
    ) -> Self:
        """Return the record of a check that was not made, and why."""
        return cls(
            says=says,
            primes=(),
            sizes=sizes or {},
            seed=seed,
            compared=0,
            undefined=0,
            status="skipped",
            error="",
            argument="",
            reason=reason,
            seconds=seconds,
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WayRecord(_Compared):
    """One way of checking a kernel."""

    way: str
    kernel: str
    device: str
    dtype: str
    tokens: Annotated[int, Field(ge=1)]
    heads: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)]
    causal: bool
    seed: int
    looked: Annotated[str, Field(description="The rows that were compared, and the reference.")]
    misses: Annotated[
        str, Field(description="Errors that could be missed, with their probability.")
    ]
    status: Status
    error: Annotated[Number | None, Field(description="The difference at the worst entry.")]
    tolerance: Annotated[
        Number | None, Field(description="The rounding bound there; 0 if bits must be equal.")
    ]
    worst: Annotated[tuple[int, ...], Field(description="Head, row and column of that entry.")]
    reason: str
    rounding: Annotated[str, Field(description="The rounding model of the tolerance.")]
    policies: tuple[PolicyRecord, ...]
    seconds: Annotated[
        float, Field(ge=0, description="Duration of the check, including the kernel.")
    ]
    kernel_seconds: Annotated[float, Field(ge=0)]
    forwards: Annotated[
        float,
        Field(
            ge=0,
            description="The duration in units of one forward over all rows; 0 if not measured.",
        ),
    ]
    bytes_of_inputs: Annotated[int, Field(ge=0)]
    bytes_beyond: Annotated[
        int | None, Field(description="Peak memory beyond the inputs, if known.")
    ]

    def __post_init__(self) -> None:
        if self.status == "skipped" and not self.worst:
            self._without_error()
