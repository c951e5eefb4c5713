"""False statements, none of which may be proved: mutants of all theorems of the catalogue.

``python -m benchmarks.false_statements [--count 10000] [--seed 0] [--jobs 2]``

Whether a mutant (``code_mutants``) is false is judged by numpy, independently of attnproof: its
body is run as plain code at random values that satisfy givens and hypotheses, and it is false if a
conclusion fails there by more than rounding.  Then a proof is attempted.  Prints how many of each
kind were made, were false, and were proved; if a false one is proved, prints its counterexample,
and the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

import attnproof
from attnproof.symbolic.admissible import settle
from attnproof.symbolic.bodies import Code
from attnproof.symbolic.candidates import Candidate, draw
from attnproof.symbolic.comparison import NotRun
from attnproof.symbolic.concrete import ConcreteClaim
from attnproof.symbolic.givens import Given
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.statement import Statement, Theorem
from attnproof.symbolic.terms import free
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorems.definitions.attention import column_softmax
from benchmarks.code_mutants import Mutant, mutants

NEAR = 1e-7  # relative tolerance: rounding stays below, a wrong formula above
SPREAD = 8  # number of exact candidate values that are drawn from
TRIES = 24
PROVE = 2.0  # seconds for a proof
COMMON = 4  # one in this many exchanges of two names is used
OTHER_NAMES = {
    name: getattr(attnproof, name)
    for name in ("at_least", "greater", "equal", "differ", "inverse", "real", "index_map")
} | {"column_softmax": column_softmax}
REPORTED = ("proved", "misread", "internal error")  # outcomes of false statements to print


@dataclass(frozen=True)
class Verdict:
    """The outcome for one mutant; ``false``: inputs at which numpy finds it false."""

    file: str
    mutant: Mutant
    outcome: str
    false: str = ""

    def __str__(self) -> str:
        return f"{self.file}, {self.mutant}: {self.outcome}; {self.false}"


def mutated(seed: int) -> Iterator[tuple[Path, Mutant]]:
    """Yield mutants of all theorem files in random order, then endlessly mutants of mutants.

    Exchanges of two names are so frequent that only some are used.
    """
    random = Random(seed)
    sources = [entry.source for entry in load_catalogue().entries]
    found = [
        (one.path, mutant)
        for one in sources
        for mutant in mutants(alone(one.path.read_text(encoding="utf-8"), one.name))
        if mutant.kind != "operand" or random.random() < 1 / COMMON
    ]
    random.shuffle(found)
    yield from found
    while True:
        path, mutant = random.choice(found)
        yield path, random.choice(list(mutants(mutant.source)))


def alone(text: str, name: str) -> str:
    r"""Return a file with one theorem and only the functions that it uses.

    Line numbers are preserved: other theorems and negative controls become empty lines.

    >>> alone("def f(): return g()\ndef g(): return 1\ndef h(): return 2\n", "f").split("\n")
    ['def f(): return g()', 'def g(): return 1', '', '']
    """
    parts = ast.parse(text).body
    functions = {part.name: part for part in parts if isinstance(part, ast.FunctionDef)}
    waiting = [functions[name], *(part for part in parts if part not in functions.values())]
    used = {name}
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id in functions.keys() - used:
                used.add(node.id)
                waiting.append(functions[node.id])
    lines = text.split("\n")
    for part in (part for name, part in functions.items() if name not in used):
        first = min([part.lineno, *(mark.lineno for mark in part.decorator_list)])
        lines[first - 1 : part.end_lineno] = [""] * ((part.end_lineno or first) - first + 1)
    return "\n".join(lines)


def loaded(path: Path, text: str) -> Theorem:
    """Return the theorem of a file with that text.  Raises what the code raises."""
    module = ModuleType(f"mutant_{path.stem}")
    vars(module).update(OTHER_NAMES, __file__=str(path))
    exec(compile(text, str(path), "exec"), vars(module))
    (theorem,) = {
        v
        for v in vars(module).values()
        if isinstance(v, Theorem) and v.body.__module__ == module.__name__
    }
    return theorem


def judged(path: Path, mutant: Mutant, seed: int = 0) -> Verdict:
    """Return whether numpy finds the mutant false, and if so the verdict of the prover."""
    try:
        theorem = loaded(path, mutant.source)
        statement = theorem.statement
    except Exception as error:  # noqa: BLE001 (a mutant may be meaningless)
        return Verdict(path.stem, mutant, f"no statement: {type(error).__name__}")
    code = Code(theorem.body, theorem.assume)
    try:
        with np.errstate(all="ignore"):
            false = false_at(code, statement, theorem.given, Random(seed))
    except Exception as error:  # noqa: BLE001 (one mutant must not stop the run)
        return Verdict(path.stem, mutant, f"no judge: {type(error).__name__}")
    if not false:
        return Verdict(path.stem, mutant, "not found false")
    try:
        found = decide(statement, effort=Effort(refuting=False, prove=PROVE))
    except NotRun:
        return Verdict(path.stem, mutant, "not run", false)
    return Verdict(path.stem, mutant, found.verdict, false)


def false_at(
    code: Code,
    statement: Statement,
    given: Mapping[str, Given],
    random: Random,
) -> str:
    """Describe values that satisfy all hypotheses where a conclusion fails; "" if none found."""
    lengths = [t for g in given.values() for n in g.lengths for t in (n, *free(n))]
    if any(t.op == "space" for t in lengths):  # a plain sum is no expectation
        return ""
    names = sorted(code.links.sizes | {str(t.data[0]) for t in lengths if t.op == "size"})
    for k in range(TRIES):
        sizes = {name: random.choice((1, 2, 3) if k else (2,)) for name in names}
        guess = draw(given, sizes, random, SPREAD)
        if guess is None:
            continue
        try:
            guess = settle(guess, statement.assume)
            ran = code.run(sizes, floats(guess), draw=variables(random))
            if not all(obeyed(claim) for claim in ran.hypotheses):
                continue
        except Exception:  # noqa: BLE001 (no value at these sizes, or none of this statement)
            continue
        for says, claim in ran.conclusions.items():
            if fails(claim):
                return f"{says}: {sizes}, {_shown(guess)}, {_bound(claim)}"
    return ""


def floats(guess: Candidate) -> dict[str, Any]:
    """Return the values in floating point."""
    return {name: _number(value) for name, value in guess.values.items()}


def _number(value: Any) -> Any:
    if callable(value):
        return lambda *args: _number(value(*(_exactly(a) for a in args)))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value
    if isinstance(value, int):
        return np.asarray(value)
    return np.asarray(value, dtype=float)


def _exactly(value: Any) -> Any:
    return np.asarray(value, dtype=object)


def variables(random: Random) -> Any:
    """Return a function that draws a value for each variable that a body binds."""

    def drawn(name: str, given: Given) -> Any:
        found = draw({name: given}, {}, random, SPREAD)
        if found is None:
            raise ValueError(f"no value for {name}")
        return floats(found)[name]

    return drawn


def _sides(claim: ConcreteClaim) -> tuple[Any, Any]:
    right = 0.0 if claim.right is None else claim.right
    left, right = np.broadcast_arrays(np.asarray(claim.left), np.asarray(right))
    return left, right


def fails(claim: ConcreteClaim) -> bool:
    """Whether a conclusion fails here by more than rounding; False for an existence."""
    if claim.relation == "exists":
        return False
    try:
        left, right = _sides(claim)
    except ValueError:  # shapes that do not broadcast: no judgement by numpy
        return False
    if left.dtype == bool or right.dtype == bool:
        return claim.relation == "=" and bool((left != right).any())
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return False
    gap, near = left - right, NEAR * (1 + np.abs(left) + np.abs(right))
    if claim.relation == "=":
        return bool((np.abs(gap) > near).any())
    if claim.relation == "!=":
        return bool((gap == 0).all())
    return bool((gap < -near).any()) or (claim.relation == ">" and bool((gap == 0).any()))


def obeyed(claim: ConcreteClaim) -> bool:
    """Whether a hypothesis certainly holds here; False for a law about all values."""
    if claim.relation == "exists" or claim.variables:
        return False
    left, right = _sides(claim)
    if left.dtype == bool or right.dtype == bool:
        return claim.relation == "=" and bool((left == right).all())
    gap = np.abs(left - right)
    if claim.relation == "=":
        return bool((gap <= NEAR / 100 * (1 + np.abs(left))).all())
    if claim.relation == "!=":
        return bool((gap > NEAR).any())
    least = NEAR if claim.relation == ">" else 0
    return bool((left - right >= least).all())


def _shown(guess: Candidate) -> str:
    def exact(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return str(
                np.vectorize(lambda x: str(x) if isinstance(x, Fraction) else x)(value).tolist()
            )
        return str(value)

    return ", ".join(f"{name} = {exact(value)}" for name, value in guess.values.items())


def _bound(claim: ConcreteClaim) -> str:
    told = [f"{v.name} = {np.asarray(v.value).tolist()}" for v in claim.variables]
    left, right = (np.asarray(side).tolist() for side in _sides(claim))
    return "; ".join([*told, f"left {left}, right {right}"])


def _batches(seed: int, size: int) -> Iterator[list[tuple[Path, Mutant]]]:
    batch: list[tuple[Path, Mutant]] = []
    for one in mutated(seed):
        batch.append(one)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch


def _judged(batch: Sequence[tuple[Path, Mutant]], seed: int) -> list[Verdict]:
    return [judged(path, mutant, seed) for path, mutant in batch]


def main() -> int:
    """Judge mutants until proofs of ``--count`` false ones were attempted; print the outcomes."""
    from joblib import Parallel, delayed
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_statements")
    parser.add_argument("--count", type=int, default=10_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    console = Console(width=140)
    found: list[Verdict] = []
    false = 0
    work = (delayed(_judged)(batch, asked.seed) for batch in _batches(asked.seed, 50))
    for verdicts in Parallel(n_jobs=asked.jobs, return_as="generator_unordered")(work):
        found += verdicts
        false += sum(bool(v.false) for v in verdicts)
        print(f"\r{false} of {asked.count} false, {len(found)} made", end="", file=sys.stderr)
        for verdict in verdicts:
            if verdict.false and verdict.outcome in REPORTED:
                console.print(f"\nfalse and {verdict.outcome}: {verdict}", soft_wrap=True)
        if false >= asked.count:
            break
    outcomes = sorted({v.outcome for v in found if v.false})
    table = Table("kind", "made", "false", *outcomes, title="mutants")
    for kind in [*sorted({v.mutant.kind for v in found}), ""]:
        of = [v for v in found if v.mutant.kind == kind or not kind]
        wrong = Counter(v.outcome for v in of if v.false)
        counts = (len(of), sum(wrong.values()), *(wrong[outcome] for outcome in outcomes))
        table.add_row(kind or "all", *map(str, counts))
    console.print(table)
    return int(any(v.false and v.outcome == "proved" for v in found))


if __name__ == "__main__":
    sys.exit(main())
