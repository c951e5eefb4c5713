"""Time the proofs of the whole catalogue, and naive SymPy on a few small cases for comparison.

Ratios are taken within one run; absolute times on a shared machine mean little.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp
from rich.table import Table

from attnproof.symbolic.bodies import given_at
from attnproof.symbolic.budget import OutOfTime, interrupted_after
from attnproof.symbolic.expressions import namespace
from attnproof.symbolic.expressions.array import as_expressions
from attnproof.symbolic.expressions.deriving import value
from attnproof.symbolic.gate import misreading
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.catalogue import load_catalogue


def catalogue_time() -> Table:
    """Return the time of each theorem and its control: proofs, replays and witnesses only."""
    table = Table("theorem", "verdict", "steps", "proof s", "control s", title="Symbolic time")
    total = controls = 0.0
    for entry in load_catalogue().entries:
        *first, other = entry.statements
        start = time.perf_counter()
        decisions = [decide(statement) for statement in first]
        took = time.perf_counter() - start
        decide(other)
        control = time.perf_counter() - start - took
        links = [k for d in decisions for claim in d.claims for k in claim.links]
        verdict = decisions[0].verdict if decisions else "–"  # ill-typed: nothing to decide
        steps = str(sum(link.steps for link in links))
        table.add_row(entry.id, verdict, steps, f"{took:.3f}", f"{control:.3f}")
        total, controls = total + took, controls + control
    table.add_section()
    table.add_row("all", "", "", f"{total:.3f}", f"{controls:.3f}")
    return table


def gate_time() -> Table:
    """Return the thread time, in ms, of comparing the code of a statement with its term.

    For every theorem and control of the catalogue, already built: the code is run on numpy and its
    term evaluated, at all combinations of sizes.
    """
    found: list[tuple[float, str]] = []
    for entry in load_catalogue().entries:
        for statement in entry.statements:
            start = time.thread_time()
            misreading(statement)
            found.append((1000 * (time.thread_time() - start), entry.id))
    found.sort()
    table = Table("statements", "ms", "of", title="Code beside its term")
    for says, share in (("half", 0.5), ("nine of ten", 0.9)):
        table.add_row(f"{says} take at most", f"{found[int(share * len(found))][0]:.1f}", "")
    table.add_row("the longest takes", f"{found[-1][0]:.1f}", found[-1][1])
    table.add_row("on average", f"{sum(took for took, _ in found) / len(found):.1f}", "")
    table.add_section()
    table.add_row(f"all {len(found)}", f"{sum(took for took, _ in found):.0f}", "")
    return table


SYMMETRIES = "attention-is-equivariant-in-all-its-symmetries"
LIMIT = 240
"""The time limit of one SymPy method, in seconds."""
CASES: tuple[tuple[str, dict[str, int], dict[str, Any]], ...] = (
    *(
        (
            SYMMETRIES,
            {"r": n, "n": n, "ell": 2, "d": 2, "e": 2},
            {"sigma": np.roll(np.arange(n), 1), "tau": np.roll(np.arange(n), 1)},
        )
        for n in (3, 4, 5)
    ),
    ("rotary-scores-depend-on-the-offset-only", {"n": 1, "B": 8}, {}),
)
"""Statements with rotations and angles: on permutations alone SymPy is fast as well."""


def against_sympy() -> Table:
    """Compare a proof for all sizes with two methods of SymPy on the entries at one size."""
    theorems = {entry.id: entry.theorem for entry in load_catalogue().entries}
    angle = sp.Symbol("a", real=True)
    rotate = np.array(
        [[sp.cos(angle), -sp.sin(angle)], [sp.sin(angle), sp.cos(angle)]], dtype=object
    )
    table = Table(
        "theorem",
        "how",
        "sizes",
        "seconds",
        "over ours",
        "found it",
        title="Naive SymPy on explicit entries",
    )
    decide(next(iter(theorems.values())).statement)  # imports are not timed
    for name, sizes, values in CASES:
        statement = theorems[name].statement
        start = time.perf_counter()
        verdict = decide(statement).verdict
        ours = time.perf_counter() - start
        table.add_row(name, "attnproof", "all", f"{ours:.3f}", "1", verdict)
        gap = _difference(statement, sizes, {**values, "g": rotate})
        at = ", ".join(f"{size} = {value}" for size, value in sizes.items())
        for how, simpler in (("simplify", sp.simplify), ("expand with trig", _expanded)):
            start = time.perf_counter()
            try:
                with interrupted_after(LIMIT):
                    told = "yes" if all(simpler(entry) == 0 for entry in gap) else "no"
            except OutOfTime:
                told = "stopped"
            took = time.perf_counter() - start
            table.add_row("", how, at, f"{took:.3f}", f"{took / ours:.1f}", told)
    return table


def _difference(
    statement: Statement, sizes: Mapping[str, int], values: Mapping[str, Any]
) -> list[Any]:
    """Return the entries of left − right, computed by the code of the statement on symbols."""
    assert statement.code is not None
    own = {
        name: as_expressions(values[name])
        if name in values
        else value(name, given_at(given, sizes))
        for name, given in statement.givens.items()
    }
    (claim,) = statement.code.run(sizes, own, xp=namespace).conclusions.values()
    return list((claim.left - claim.right).entries.ravel())


def _expanded(expression: Any) -> Any:
    return sp.expand(sp.expand(expression, trig=True))
