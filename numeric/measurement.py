"""What one measurement found, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["POLICIES", "STATUSES", "Judged", "Measurement"]

STATUSES = ("held", "violated", "non-finite", "skipped")
POLICIES = ("deterministic", "probabilistic", "residual", "bitwise")


@dataclass(frozen=True)
class Judged:
    """What one policy says of one measurement.

    ``ratio`` is the largest error over its bound, or the largest |z| over its limit; above 1 the
    policy says no.  ``told`` names the place or the direction, or why the policy was not applied.
    """

    policy: str
    status: str
    ratio: float
    told: str

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"policy {self.policy!r} is none of {', '.join(POLICIES)}")
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}")
        if self.status == "skipped" and not self.told:
            raise ValueError("a policy that was not applied must say why")


@dataclass(frozen=True)
class Measurement:
    """One conclusion of a statement, in one implementation and dtype.

    ``error`` and ``tolerance`` are those of the entry ``worst`` of the output, where error over
    tolerance is largest.  ``sampled`` says which entries were looked at, ``profile`` the rounding
    model behind the tolerance.  A ``skipped`` measurement says why in ``reason`` and is no
    evidence; a ``non-finite`` one is a failure, and its error is infinite.  ``design`` is the
    input design that spoke, of all ``designs`` that were tried, ``judged`` what each policy said.
    """

    says: str
    implementation: str
    device: str
    dtype: str
    sizes: dict[str, int]
    seed: int
    sampled: str
    error: float
    tolerance: float
    worst: tuple[int, ...]
    seconds: float
    status: str
    reason: str
    profile: str
    design: str = "normal"
    designs: tuple[str, ...] = ("normal",)
    judged: tuple[Judged, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}")
        if self.status == "skipped" and not self.reason:
            raise ValueError("a skipped measurement must say why")

    @property
    def ratio(self) -> float:
        """error / tolerance; above 1 the tolerance is exceeded."""
        if self.error == 0:
            return 0.0
        return self.error / self.tolerance if self.tolerance else float("inf")
