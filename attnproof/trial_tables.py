"""The two tables of trials: for a terminal, and as Markdown with the machine and the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .terminal_text import headed
from .trial_records import AIM, CaughtRecord, FaultRecord, RateRecord, TrialsRecord

if TYPE_CHECKING:
    from rich.table import Table

NOTHING = "–"
BRACKETS = (
    "Share of alarms; in brackets the upper {:.0%} confidence bound of Clopper and Pearson, as if "
    "cases were independent (those of one draw share it)."
)
WHOSE = (
    "deterministic, probabilistic, residual and bitwise are attnproof's policies; assert_close is "
    "torch.testing's defaults, by hand 1e-8, 1e-5, 1e-2 and 1e-3 in float64, float32, bfloat16 and "
    "float16, twice eager the rule of flash-attention's tests."
)
EFFECT = (
    "effect: what the fault does exactly, over the deterministic bound at the worst entry; largest "
    "over designs, smallest over seeds."
)
LEAST = (
    "least ratio: of the policy that sees most, the smallest over seeds of error over bound, or "
    "|z| over its limit, and the design that shows it best."
)


@dataclass(frozen=True)
class Grid:
    """A table as text: its title, its columns, its rows, and what a reader must know."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def grids(record: TrialsRecord) -> tuple[Grid, ...]:
    """Both tables."""
    return alarms_grid(record), faults_grid(record)


def alarms_grid(record: TrialsRecord) -> Grid:
    """How often each rule refuses correct programs: a row a rule, a column a dtype."""
    by = {(one.rule, one.dtype): one for one in record.rates}
    rules = dict.fromkeys(one.rule for one in record.rates)
    rows = tuple(
        (rule, *(_rate(by[rule, dtype]) for dtype in (*record.dtypes, "")), _worst(by[rule, ""]))
        for rule in rules
    )
    return Grid(
        f"Alarms on {record.cases:,} correct programs",
        ("rule", *record.dtypes, "all", "cases", "alarms by design"),
        tuple((*row[:-1], f"{by[row[0], ''].cases:,}", row[-1]) for row in rows),
        (BRACKETS.format(record.confidence), WHOSE),
    )


def faults_grid(record: TrialsRecord) -> Grid:
    """In how many seeds each rule catches each fault: a row for a fault and dtype."""
    rules = [one.rule for one in record.faults[0].rules] if record.faults else []
    spoken = [
        rule for k, rule in enumerate(rules) if any(f.rules[k].seeds for f in record.faults)
    ]
    rows, before = [], ""
    for fault in record.faults:
        said = {one.rule: one for one in fault.rules}
        name = fault.fault if fault.fault != before else ""
        best = _strongest(fault)
        rows.append((
            name, fault.dtype, _short(fault.size), *(_seeds(said[rule]) for rule in spoken),
            *((f"{_short(best.least)} {best.rule}", best.design) if best else (NOTHING, NOTHING)),
        ))  # fmt: skip
        before = fault.fault
    return Grid(
        f"Planted faults, {record.fault_cases:,} cases",
        ("fault", "dtype", "effect", *spoken, "least ratio", "in"),
        tuple(rows),
        (
            f"Seeds of {record.fault_seeds} in which some design shows the fault.",
            f"{EFFECT} {_above(record)}",
            LEAST,
        ),
    )


def _above(record: TrialsRecord) -> str:
    above, missed = (sum(getattr(f, name) for f in record.faults) for name in ("above", "missed"))
    return f"Of {above:,} cases above the bound the policies miss {missed:,}."


def _strongest(fault: FaultRecord) -> CaughtRecord | None:
    """The policy that catches it in most seeds, by the largest ratio."""
    spoken = [one for one in fault.rules if one.policy and one.least is not None]
    return max(spoken, key=lambda one: (one.caught, _size(one.least)), default=None)


def _size(x: float | str | None) -> float:
    return float("inf") if isinstance(x, str) else (x or 0.0)


def _seeds(one: CaughtRecord) -> str:
    return f"{one.caught}/{one.seeds}" if one.seeds else NOTHING


def _rate(one: RateRecord) -> str:
    if not one.cases:
        return NOTHING
    return f"{_share(one.alarms / one.cases)} (≤ {_share(one.upper)})"


def _share(x: float) -> str:
    """A share in percent, with two digits that count.

    >>> _share(0.0), _share(0.000299), _share(0.4913), _share(1.0)
    ('0 %', '0.03 %', '49 %', '100 %')
    """
    return f"{100 * x:.2g} %" if x < 0.995 else "100 %"


def _worst(one: RateRecord) -> str:
    most = sorted(one.by_design.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {count:,}" for name, count in most[:3]) or NOTHING


def _short(x: float | str | None) -> str:
    """A number in two digits."""
    if x is None:
        return NOTHING
    return "∞" if isinstance(x, str) else f"{x:.2g}"


def shown(grid: Grid) -> Table:
    """The table for a terminal."""
    table = headed(*grid.columns, title=grid.title, caption="\n".join(grid.notes))
    for row in grid.rows:
        table.add_row(*row)
    return table


def summary(record: TrialsRecord) -> str:
    """What came out, in a line or two."""
    rates = [one for one in record.rates if one.policy and not one.dtype and one.cases]
    alarms = ", ".join(f"{one.rule} {one.alarms}" for one in rates)
    text = f"alarms on {record.cases:,} correct programs (aim: below {_share(AIM)}): {alarms}; "
    text += _above(record)[0].lower() + _above(record)[1:]
    return text + (f" {record.unfinished} draws were not reached." if record.unfinished else "")


def markdown(record: TrialsRecord) -> str:
    """Both tables with where and how they were made."""
    machine = record.machine
    where = (
        f"{record.created:%Y-%m-%d}, attnproof {record.attnproof}, torch {machine.torch}, Python "
        f"{machine.python}, {machine.platform}, {machine.processors} processors, device "
        f"{record.device}, seed {record.seed}; {record.seconds:.0f} s."
    )
    lines = [
        "# Trials of the policies", "",
        "Correct programs must raise no alarm; planted faults must. Both tables are written by",
        "one command:", "", "```sh", record.command, "```", "",
        where, "",
        f"In all: {summary(record)}",
    ]  # fmt: skip
    for grid in grids(record):
        lines += ["", f"## {grid.title}", "", *_lines(grid), ""]
        lines += [f"* {note}" for note in grid.notes]
    if record.alarms:
        lines += ["", "## Alarms of the policies", ""]
        lines += [
            f"* {a.policy}: {a.implementation}, {a.trial}, {a.dtype}, {a.design}, seed {a.seed}: "
            f"ratio {_short(a.ratio)}, {a.told}; again: `{a.again}`"
            for a in record.alarms
        ]
    left = [one for one in record.left_out if one.rule != "twice eager"]
    if left:
        lines += ["", "## Where a policy said nothing", ""]
        lines += [f"* {one.rule or 'not run'}: {one.why} ({one.cases:,} cases)" for one in left]
    return "\n".join(lines) + "\n"


def _lines(grid: Grid) -> Sequence[str]:
    """A table in Markdown."""
    rows = [grid.columns, tuple("---" for _ in grid.columns), *grid.rows]
    return [f"| {' | '.join(cell.replace('|', chr(0x2223)) for cell in row)} |" for row in rows]
