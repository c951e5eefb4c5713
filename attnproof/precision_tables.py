"""The tables of ``attnproof precision``, for a terminal and for a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .evidence import Number
from .precision_records import PrecisionRecord

if TYPE_CHECKING:
    from rich.table import Table

FORMATS = (
    "A format is named by the dtype of the data; positions, frequencies and angles are float32 "
    "where the name says nothing else. TF32 is emulated: the operands of q·k are rounded to 10 "
    "bits of fraction. Products are summed in float64, so that what is seen is the error of "
    "turning."
)


@dataclass(frozen=True)
class Sheet:
    """A table with its title and what is to be known of it."""

    title: str
    says: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(record: PrecisionRecord) -> Iterator[Sheet]:
    """Errors against float64 and against themselves, breaks, collisions, drifts, checks."""
    bases = tuple(dict.fromkeys(one.base for one in record.errors))
    shifts = tuple(dict.fromkeys(one.shift for one in record.errors))
    drawn = (f"{record.content} queries and keys of {record.width} channels, normal, seed "
             f"{record.seed}; positions m, n below 2,048 and less than 256 apart")  # fmt: skip
    for base in bases:
        for kind, says in (
            ("rms", "Error of score(m + s, n + s) against float64"),
            ("identity", "Error of score(m + s, n + s) = score(m, n)"),
        ):
            yield Sheet(
                f"{says}, base {_power(base)}",
                f"Root mean square, in units of |q||k|/√d; / bound: the largest error over its "
                f"bound. {drawn}.",
                ("format", *(f"s = {_power(shift)}" for shift in shifts), "/ bound"),
                tuple(_errors(record, base, kind)),
            )
    yield _bounds(record)
    yield Sheet(
        "Where scores break",
        "The first position drawn, two to an octave, from which the error is above the limit: "
        "a query there, keys less than 256 before it.",
        ("format", "base", "limit", "root mean square", "largest"),
        tuple(
            (b.form, _power(b.base), f"{b.limit:g}", *(
                _count(p) if p is not None else f"none up to {_count(b.furthest)}"
                for p in (b.rms, b.largest)
            )) for b in record.breaks
        ),
    )  # fmt: skip
    yield Sheet(
        "Positions that fall together",
        "The first of 0, 1, 2, .. that a dtype keeps as the one before, found by looking at each.",
        ("dtype", "first", "infinite from", "looked at up to"),
        tuple((c.dtype, _or(c.first), _or(c.infinite), _count(c.searched))
              for c in record.collisions),
    )  # fmt: skip
    yield Sheet(
        "Frequencies that drift",
        "Of the float32 formula, kept in a dtype, against float64: the largest relative error, "
        "and the first position at which some angle is off by that alone.",
        ("dtype", "base", "relative error", "off by", "from position", "subnormal"),
        tuple((d.dtype, _power(d.base), f"{d.relative:.2g}", f"{d.off:g} rad", _count(d.at),
               str(d.subnormal)) for d in record.drifts),
    )  # fmt: skip
    yield Sheet(
        "What two checks say of rotary code",
        "The identity score(m + s, n + s) = score(m, n), and the comparison with the declared "
        "frequencies; in brackets the largest error over its bound. The identity cannot see "
        "frequencies that are wrong alike for queries and keys.",
        ("code", "format", "identity", "declared frequencies"),
        tuple((c.code, c.form, f"{c.identity} ({_short(c.identity_ratio)})",
               f"{c.comparison} ({_short(c.comparison_ratio)})") for c in record.checked),
    )  # fmt: skip


def _errors(record: PrecisionRecord, base: float, kind: str) -> Iterator[tuple[str, ...]]:
    own = [one for one in record.errors if one.base == base]
    for form in dict.fromkeys(one.form for one in own):
        row = [one for one in own if one.form == form]
        shares = [one.share if kind == "rms" else one.identity_share for one in row]
        known = [share for share in shares if isinstance(share, float)]
        values = (_short(one.rms if kind == "rms" else one.identity) for one in row)
        yield form, *values, f"{max(known):.2f}" if known else "–"


def _bounds(record: PrecisionRecord) -> Sheet:
    checked = sum(one.checked for one in record.errors)
    return Sheet(
        "Errors above their bound",
        "Every error of the tables above, against float64 and of the identity, whose bound is "
        "finite.",
        ("errors", "above the bound"),
        ((_count(checked), _count(record.violations)),),
    )


def shown(sheet: Sheet) -> Table:
    """A sheet for a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(sheet.head):
        table.add_column(name, justify="right" if place else "left", no_wrap=not place)
    for row in sheet.rows:
        table.add_row(*row)
    return table


def markdown(record: PrecisionRecord) -> str:
    """All sheets as a document, with the machine."""
    machine = record.machine
    written = (
        f"Written by `attnproof precision --markdown docs/precision.md`, attnproof "
        f"{record.attnproof}, {record.made:%Y-%m-%d}, on {record.device}: {machine.platform}, "
        f"{machine.processors} processors, torch {machine.torch}, Python {machine.python}."
    )
    lines = ["# Rotary encoding in short formats", "", written, "", FORMATS, ""]
    for sheet in sheets(record):
        lines += [f"## {sheet.title}", "", sheet.says, "", *_rows(sheet), ""]
    faults = [f"* {c.code} ({c.form}): {c.why}." for c in record.checked if c.why]
    lines += ["## Why the comparison refuses", "", *faults]
    return "\n".join(lines) + "\n"


def _rows(sheet: Sheet) -> Iterator[str]:
    for row in (sheet.head, ("---", *["---:"] * (len(sheet.head) - 1)), *sheet.rows):
        yield f"| {' | '.join(_cell(row))} |"


def _cell(row: Sequence[str]) -> Iterator[str]:
    return (cell.replace("|", "\\|") for cell in row)


def _count(value: float) -> str:
    return f"{int(value):,}"


def _power(value: float) -> str:
    """5e5 for 500000."""
    digits, _, power = f"{value:.0e}".partition("e+")
    return f"{digits}e{int(power)}" if value >= 1000 else f"{value:g}"


def _or(value: int | None) -> str:
    return "none" if value is None else _count(value)


def _short(value: Number) -> str:
    return f"{value:.1e}" if isinstance(value, float) else "inf/nan"
