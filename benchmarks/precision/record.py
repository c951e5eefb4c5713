"""The record of rotary encoding in short formats, and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import AwareDatetime, Field, field_serializer

from attnproof.documents.document import Grid
from attnproof.documents.evidence import Record
from attnproof.theorem_runs.records import Machine
from benchmarks.markdown import items
from benchmarks.precision.limits import Break, Collision, Drift, Errors


@dataclass(frozen=True)
class Checked:
    """Rotary code, the verdicts of two laws, and the largest error over its bound for each.

    ``identity``: scores depend on the offset only.  ``comparison``: layout and frequencies are as
    declared; ``why``: the reason if that is broken.
    """

    code: str
    form: str
    identity: str
    identity_ratio: float
    comparison: str
    comparison_ratio: float
    why: str


class PrecisionRecord(Record):
    """All measurements, with the machine."""

    version: Literal[1] = 1
    made: AwareDatetime
    attnproof: str
    machine: Machine
    device: str
    seed: int
    content: int = Field(description="How many queries and keys were drawn.")
    width: int = Field(description="Channels of a query or key.")
    errors: tuple[Errors, ...]
    breaks: tuple[Break, ...]
    collisions: tuple[Collision, ...]
    drifts: tuple[Drift, ...]
    checked: tuple[Checked, ...]

    @field_serializer("errors", "breaks", "collisions", "drifts", "checked")
    def _plain(self, rows: tuple[Any, ...]) -> list[dict[str, Any]]:
        """Return the fields of the rows, with "non-finite" for numbers that are not finite."""
        return [{name: _word(value) for name, value in asdict(row).items()} for row in rows]

    @property
    def violations(self) -> int:
        """The number of errors above their bound."""
        return sum(one.violations for one in self.errors)


def _word(value: Any) -> Any:
    infinite = isinstance(value, float) and not math.isfinite(value)
    return "non-finite" if infinite else value


FORMATS = (
    "A format is named by the dtype of the data; positions, frequencies and angles are float32 "
    "unless the name says otherwise. TF32 is emulated: the operands of q·k are rounded to 10 "
    "fraction bits. Products are summed in float64, so that the tables show the error of the "
    "rotation."
)


def sheets(record: PrecisionRecord) -> Iterator[Grid]:
    """Yield tables of errors, breaks, collisions, drifts and checks."""
    bases = tuple(dict.fromkeys(one.base for one in record.errors))
    shifts = tuple(dict.fromkeys(one.shift for one in record.errors))
    drawn = (
        f"{record.content} queries and keys of {record.width} channels, normal, seed "
        f"{record.seed}; positions m, n below 2,048 and less than 256 apart"
    )
    for base in bases:
        for kind, says in (
            ("rms", "Error of score(m + s, n + s) against float64"),
            ("identity", "Error of score(m + s, n + s) = score(m, n)"),
        ):
            yield _sheet(
                f"{says}, base {_power(base)}",
                f"Root mean square, in units of |q||k|/√d; / bound: the largest error over its "
                f"bound. {drawn}.",
                ("format", *(f"s = {_power(shift)}" for shift in shifts), "/ bound"),
                tuple(_errors(record, base, kind)),
            )
    yield _bounds(record)
    yield _sheet(
        "Where scores break",
        "The first position, of two per octave, from which the error is above the limit, for a "
        "query there and keys less than 256 positions before it.",
        ("format", "base", "limit", "root mean square", "largest"),
        tuple(
            (
                b.form,
                _power(b.base),
                f"{b.limit:g}",
                *(
                    _count(p) if p is not None else f"none up to {_count(b.furthest)}"
                    for p in (b.rms, b.largest)
                ),
            )
            for b in record.breaks
        ),
    )
    yield _sheet(
        "Positions that collide",
        "The first of 0, 1, 2, .. that a dtype rounds to its predecessor, found by trying each.",
        ("dtype", "first", "infinite from", "looked at up to"),
        tuple(
            (c.dtype, _or(c.first), _or(c.infinite), _count(c.searched)) for c in record.collisions
        ),
    )
    yield _sheet(
        "Frequencies that drift",
        "The float32 formula, stored in a dtype, against float64: the largest relative error, and "
        "the first position at which this error alone makes some angle off by so much.",
        ("dtype", "base", "relative error", "off by", "from position", "subnormal"),
        tuple(
            (
                d.dtype,
                _power(d.base),
                f"{d.relative:.2g}",
                f"{d.off:g} rad",
                _count(d.at),
                str(d.subnormal),
            )
            for d in record.drifts
        ),
    )
    yield _sheet(
        "What two laws find in rotary code",
        "The laws are score(m + s, n + s) = score(m, n), and layout and frequencies as declared; "
        "in brackets is the largest error divided by what rounding explains. The first law cannot "
        "detect frequencies that are wrong in the same way for queries and keys, and neither law "
        "detects the direction of rotation.",
        ("code", "data in", "relative", "as declared"),
        tuple(
            (
                c.code,
                c.form,
                f"{c.identity} ({_short(c.identity_ratio)})",
                f"{c.comparison} ({_short(c.comparison_ratio)})",
            )
            for c in record.checked
        ),
    )


def _sheet(title: str, says: str, head: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Grid:
    return Grid(title, head, rows, (says,), numbers=True)


def _errors(record: PrecisionRecord, base: float, kind: str) -> Iterator[tuple[str, ...]]:
    own = [one for one in record.errors if one.base == base]
    for form in dict.fromkeys(one.form for one in own):
        row = [one for one in own if one.form == form]
        shares = [one.share if kind == "rms" else one.identity_share for one in row]
        known = list(filter(math.isfinite, shares))
        values = (_short(one.rms if kind == "rms" else one.identity) for one in row)
        yield form, *values, f"{max(known):.2f}" if known else "–"


def _bounds(record: PrecisionRecord) -> Grid:
    checked = sum(one.checked for one in record.errors)
    return _sheet(
        "Errors above their bound",
        "Every error of the tables above, against float64 and of the identity, whose bound is "
        "finite.",
        ("errors", "above the bound"),
        ((_count(checked), _count(record.violations)),),
    )


def document(record: PrecisionRecord) -> Iterator[str | Grid]:
    """Yield the parts of a page with all tables and the machine."""
    machine = record.machine
    yield "# Rotary encoding in short formats"
    yield (
        f"Written by `python -m benchmarks.precision --markdown docs/precision.md`, attnproof "
        f"{record.attnproof}, {record.made:%Y-%m-%d}, on {record.device}: {machine.platform}, "
        f"{machine.processors} processors, torch {machine.torch}, Python {machine.python}."
    )
    yield FORMATS
    yield from sheets(record)
    yield "## Where code is not as declared"
    yield items(f"{c.code} ({c.form}): {c.why}." for c in record.checked if c.why)


def _count(value: float) -> str:
    return f"{int(value):,}"


def _power(value: float) -> str:
    """Return a number in short notation, such as 5e5 for 500000."""
    digits, _, power = f"{value:.0e}".partition("e+")
    return f"{digits}e{int(power)}" if value >= 1000 else f"{value:g}"


def _or(value: int | None) -> str:
    return "none" if value is None else _count(value)


def _short(value: float) -> str:
    return f"{value:.1e}" if math.isfinite(value) else "inf/nan"
