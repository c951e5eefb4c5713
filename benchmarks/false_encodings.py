"""False encodings, no broken law of which may be proved: mutants of all encodings of the package.

``python -m benchmarks.false_encodings [--count 1000] [--seed 0] [--jobs 2]``

Whether a mutant (``code_mutants``) breaks a law is judged by numpy: the function of the law is run
as plain code, on the changed encoding with random parameters, contents and positions, and the law
is broken if its claim fails by more than rounding.  Whether a linear or affine map exists is judged
by least squares.  Then a proof of the law is attempted, as for a card.  The exit code is 1 if a
broken law is proved.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

from attnproof import encodings
from attnproof.cards.verdicts import decided
from attnproof.encoding.base import Encoding
from attnproof.encoding.law import EncodingLaw
from attnproof.encoding.names import LAW_SIZES, letters, named
from attnproof.laws import LAWS
from attnproof.symbolic.array import as_array
from attnproof.symbolic.bodies import Code
from attnproof.symbolic.candidates import draw
from attnproof.symbolic.concrete import Reading, concrete_claim, length_value
from attnproof.symbolic.givens import Given
from attnproof.symbolic.scalars import integer
from attnproof.symbolic.terms import free
from benchmarks.code_mutants import Mutant, mutants
from benchmarks.false_statements import fails, floats, obeyed, variables

TRIES = 12
LIMIT = 1.0  # seconds for a proof
SAMPLES = 60  # pairs of a token and a position to which a map is fitted
EXISTENCES = {"linear-shift": False, "key-can-be-moved": True}  # whether the map may be affine


@dataclass(frozen=True)
class Verdict:
    """The outcome for one law of one mutant; ``broken``: where numpy finds it broken."""

    encoding: str
    mutant: Mutant
    law: str
    outcome: str
    broken: str = ""

    def __str__(self) -> str:
        return f"{self.encoding}, {self.mutant}: {self.law} {self.outcome}; {self.broken}"


def mutated(seed: int) -> Iterator[tuple[Path, Mutant]]:
    """Yield mutants of all encodings of the package in random order."""
    folder = Path(encodings.__path__[0])
    found = [
        (path, mutant)
        for path in sorted(folder.glob("[!_]*.py"))
        for mutant in mutants(path.read_text(encoding="utf-8"))
    ]
    Random(seed).shuffle(found)
    yield from found


def changed(path: Path, text: str) -> list[str]:
    """Return the classes of a file that differ in that text; all of them if none does."""
    before, after = (_classes(code) for code in (path.read_text(encoding="utf-8"), text))
    return [name for name in after if before.get(name) != after[name]] or list(after)


def _classes(text: str) -> dict[str, str]:
    """Return the classes of a file, each as its syntax tree."""
    return {
        node.name: ast.dump(node) for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
    }


def loaded(path: Path, text: str) -> list[type[Encoding]]:
    """Return the encodings of a file that differ in that text.  Raises what the code raises."""
    module = ModuleType(f"attnproof.encodings.mutant_{path.stem}")
    vars(module)["__file__"] = str(path)
    exec(compile(text, str(path), "exec"), vars(module))
    return [vars(module)[name] for name in changed(path, text)]


def judged(path: Path, mutant: Mutant, seed: int = 0) -> Iterator[Verdict]:
    """Yield the verdict of the card on each law that numpy finds broken."""
    try:
        kinds = loaded(path, mutant.source)
        for kind in kinds:
            kind()
    except Exception:  # noqa: BLE001 (a mutant that is not an encoding)
        return
    for kind, law in product(kinds, LAWS):
        with np.errstate(all="ignore"):
            broken = broken_at(kind, law, Random(seed))
        if not broken:
            continue
        try:
            cell = decided(kind, law, limit_seconds=LIMIT)
        except Exception as error:  # noqa: BLE001 (code that a card cannot read is not proved)
            yield Verdict(kind.id(), mutant, law.id, f"refused: {type(error).__name__}", broken)
            continue
        outcome = str(cell.verdict)
        if cell.under and outcome == "proved":
            words = kind.hypotheses()
            under = [name for name in words if words[name] in cell.under]
            with np.errstate(all="ignore"):
                broken = broken_at(kind, law, Random(seed), under, 8 * TRIES)
            outcome = "proved" if broken else "proved under a hypothesis"
        yield Verdict(kind.id(), mutant, law.id, outcome, broken)


def broken_at(
    kind: type[Encoding],
    law: EncodingLaw,
    random: Random,
    under: Sequence[str] = (),
    tries: int = TRIES,
) -> str:
    """Describe numbers at which the law fails for this encoding; "" if none are found.

    They satisfy the hypotheses ``under``.  A law of the form "for some" is broken if it fails in
    every draw.
    """
    held = 0
    try:
        codes = Code(lambda: kind), Code(law.body)  # what they reach is the same in each draw
    except Exception:  # noqa: BLE001 (code of a mutant)
        return ""
    for _ in range(tries):
        try:
            failure = (
                _fitted(kind, codes, law, random)
                if law.id in EXISTENCES and not under
                else _run(kind, codes, law, random, under)
            )
        except Exception:  # noqa: BLE001 (no value at these sizes, or none of this law)
            continue
        if failure is None:
            continue
        if failure and not law.some:
            return failure
        held += not failure
        if failure and law.some:
            return ""
    return f"the contrary held in {held} draws" if law.some and held >= tries // 2 else ""


def _made(kind: type[Encoding], code: Code, random: Random) -> tuple[Encoding, dict[str, int]]:
    """Return the encoding with random parameters at random sizes, and these sizes."""
    given = kind.declared()
    lengths = [n for g in given.values() for n in g.lengths] + [_width(kind)]
    names = {str(t.data[0]) for n in lengths for t in free(n) if t.op == "size"} | LAW_SIZES
    sizes = {name: random.choice((1, 2, 3)) for name in sorted(names)}
    numbers = _drawn(given, sizes, random)
    made = code.links.at(sizes, np)(kind)(**numbers)
    made.width = length_value(_width(kind), sizes)
    return made, sizes


def _width(kind: type[Encoding]) -> Any:
    return integer(as_array(kind.width).term)


def _drawn(given: Mapping[str, Given], sizes: Mapping[str, int], random: Random) -> dict[str, Any]:
    found = draw(given, sizes, random, 8)
    if found is None:
        raise ValueError("no value at these sizes")
    return floats(found)


def _run(
    kind: type[Encoding],
    codes: tuple[Code, Code],
    law: EncodingLaw,
    random: Random,
    under: Sequence[str],
) -> str | None:
    """Describe what fails in one draw; "" if nothing does, None if the draw is inconclusive."""
    made, sizes = _made(kind, codes[0], random)
    names = list(codes[1].arguments)
    own: dict[str, Any] = {names[0]: made}
    for name in names[1:]:
        given, _ = named(name, kind(), law.given)
        value = _drawn(given, sizes, random)
        own[name] = value[name] if name in value else _in_a_row(name, value, sizes)
    if not all(_supposed(made, name, own, random) for name in under):
        return None
    ran = codes[1].run(sizes, own, draw=variables(random))
    claims = dict(ran.conclusions)
    if "assume" in claims:
        return None
    for says, claim in claims.items():
        left = np.asarray(claim.left, dtype=float)
        if not np.isfinite(left).all():
            return None
        if fails(claim):
            shown = {k: np.asarray(v).tolist() for k, v in own.items() if k != names[0]}
            return f"{says or law.id} at {sizes}, {made.parameters}, {shown}"
    return ""


def _supposed(made: Encoding, name: str, own: Mapping[str, Any], random: Random) -> bool:
    """Whether the numbers satisfy a hypothesis of the encoding."""
    with Reading(np, variables(random)).active():
        said = getattr(made, name)(**{letter: own[letter] for letter in letters(made, name)})
        return all(obeyed(concrete_claim(one)) for one in said)


def _in_a_row(name: str, value: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """Return consecutive integer positions from the first."""
    (first,) = value.values()
    return first + np.arange(sizes["n_q" if name == "u" else "n_k"])


def _fitted(
    kind: type[Encoding], codes: tuple[Code, Code], law: EncodingLaw, random: Random
) -> str | None:
    """Describe the failure to fit one map from codes at a to those at a + s; "" if one fits."""
    made, _ = _made(kind, codes[0], random)
    tokens = np.random.default_rng(random.randrange(10**6))
    d, axes = int(made.width), (kind.axes,) * bool(kind.axes)
    shift = np.asarray(tokens.integers(1, 4, axes), dtype=float)
    affine = EXISTENCES[law.id]
    before, after = [], []
    for _ in range(SAMPLES):
        x = tokens.normal(size=d) * (affine or not kind.defines("add"))
        a = np.asarray(tokens.integers(0, 30, axes), dtype=float)
        before.append(np.asarray(made.encode(x, a), dtype=float))
        after.append(np.asarray(made.encode(x, a + shift), dtype=float))
    X, Y = np.stack(before), np.stack(after)
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        return None
    if affine:
        X = np.concatenate([X, np.ones((SAMPLES, 1))], axis=1)
    rest = np.abs(X @ np.linalg.lstsq(X, Y, rcond=None)[0] - Y).max()
    size = 1 + np.abs(Y).max()
    return f"no map fits: {rest:.3g} is left at the shift {shift}" if rest > 1e-4 * size else ""


def _judged(batch: Sequence[tuple[Path, Mutant]], seed: int) -> list[Verdict]:
    return [verdict for path, mutant in batch for verdict in judged(path, mutant, seed)]


def main() -> int:
    """Judge mutants until proofs of ``--count`` broken laws were attempted; print the outcomes."""
    from joblib import Parallel, delayed
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_encodings")
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    console = Console(width=140)
    every = list(mutated(asked.seed))
    batches = [every[k : k + 10] for k in range(0, len(every), 10)]
    found: list[Verdict] = []
    work = (delayed(_judged)(batch, asked.seed) for batch in batches)
    for verdicts in Parallel(n_jobs=asked.jobs, return_as="generator_unordered")(work):
        found += verdicts
        print(f"\r{len(found)} of {asked.count} broken", end="", file=sys.stderr)
        for verdict in verdicts:
            if verdict.outcome.startswith("proved"):
                console.print(f"\nbroken and proved: {verdict}", soft_wrap=True)
        if len(found) >= asked.count:
            break
    outcomes = sorted({v.outcome for v in found})
    table = Table("law", *outcomes, title="laws of mutants that numpy finds broken")
    for law in [*sorted({v.law for v in found}), ""]:
        counts = Counter(v.outcome for v in found if v.law == law or not law)
        table.add_row(law or "all", *(str(counts[o]) for o in outcomes))
    console.print(table)
    return int(any(v.outcome == "proved" for v in found))


if __name__ == "__main__":
    sys.exit(main())
