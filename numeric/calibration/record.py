"""The record of a calibration: what was measured, and the constants that follow from it."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import AwareDatetime, Field

from .backend import Backend
from .base import Record
from .depth import Depth

__all__ = [
    "FORMAT", "Calibration", "Constants", "FunctionRecord", "KernelConstants", "KernelRecord",
    "OrderRecord",
]  # fmt: skip

FORMAT: Final = 1
"""Goes up with every change of what is measured or how: older files are then measured again."""


class FunctionRecord(Record):
    """The largest error of one function."""

    function: str
    dtype: str
    error: float = Field(ge=0, description="In units of the roundoff it is computed with.")
    used: float = Field(ge=0, description="With its margin.")
    lost: float = Field(ge=0, description="The largest error of a result below normal numbers.")
    sampled: str


class OrderRecord(Record):
    """In which order one operation sums: its depth at some lengths."""

    operation: str
    dtype: str
    width: int | None = Field(
        default=None, description="Of a product: its fewest rows or columns; else null."
    )
    lengths: tuple[int, ...] = Field(min_length=2, description="Numbers of terms, growing.")
    depths: tuple[int, ...] = Field(min_length=2, description="Of the deepest leaf tried.")
    model: Depth
    bits: int = Field(ge=1, description="Binary digits that partial sums keep.")
    nearest: bool = Field(description="Partial sums are rounded to nearest, not cut off.")
    sampled: str

    @property
    def unit(self) -> float:
        """The largest relative error of one partial sum."""
        return 2.0 ** -(self.bits if self.nearest else self.bits - 1)


class KernelRecord(Record):
    """One attention kernel: its exponential, end to end, and what it stores."""

    kernel: str
    dtype: str
    error: float = Field(ge=0, description="Of a weight, in units of the accumulation.")
    used: float = Field(ge=0, description="With its margin.")
    lost: float = Field(ge=0, description="The largest error of a weight below normal numbers.")
    scores_stored: bool
    weights_stored: bool
    sampled: str


class KernelConstants(Record):
    """The constants of one attention kernel in one dtype."""

    kernel: str
    exponential_error: float
    any_queries: Depth = Field(description="Of the sum over keys, for any number of queries.")
    full_blocks: Depth = Field(
        description="For a number of queries that is a multiple of those of a block."
    )
    scores_stored: bool
    weights_stored: bool


class Constants(Record):
    """The constants of rounding bounds in one dtype."""

    dtype: str
    function_error: float
    power_error: float = Field(description="Of x ** k with a whole k.")
    accumulate: float = Field(gt=0, description="Unit roundoff of sums and attention kernels.")
    product: float = Field(gt=0, description="Unit roundoff of sums in products of matrices.")
    operand: float = Field(
        ge=0, description="Unit roundoff of what products read, at the highest precision asked."
    )
    least: float = Field(ge=0, description="What is lost at most below normal numbers.")
    sums: Depth
    softmax: Depth
    products: Depth
    narrow: int | None = Field(
        description="With fewer rows or columns a product is summed term by term; null: always."
    )
    kernels: tuple[KernelConstants, ...] = Field(description="One for each attention kernel.")


class Calibration(Record):
    """The constants of one backend."""

    format: Literal[1] = FORMAT
    backend: Backend
    threads: int = Field(ge=1)
    created: AwareDatetime
    seconds: float = Field(ge=0)
    thorough: bool
    functions: tuple[FunctionRecord, ...]
    orders: tuple[OrderRecord, ...]
    kernels: tuple[KernelRecord, ...]
    operands: dict[str, float] = Field(description="Unit roundoff of what products read, by dtype.")
    constants: tuple[Constants, ...]

    def of(self, dtype: str) -> Constants | None:
        """The constants in a dtype, or None if it was not measured."""
        return next((c for c in self.constants if c.dtype == dtype), None)

    @property
    def label(self) -> str:
        """Its name in a record of evidence."""
        return f"{self.backend.label} of {self.created:%Y-%m-%d}"
