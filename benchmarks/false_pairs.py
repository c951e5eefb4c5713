"""Pairs of different functions, none of which may be proved equal: a program and a change of it.

``python -m benchmarks.false_pairs [--count 200] [--seed 0] [--family lengths]``

The families are those of :mod:`benchmarks.false_programs`.  That two programs differ is judged by
torch alone, in float64, at lengths on both sides of each branch.  Then they are compared; a pair
that is proved equal at lengths at which torch finds a difference is printed, and the exit code is
1.  A proof whose conditions exclude these lengths is "elsewhere"; exact and measured are statements
about the lengths that were run, and are printed as differences that were missed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import process_time

import torch
from torch import Tensor

from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.sides import Operand
from benchmarks.false_programs import (
    EMBED,
    FAMILIES,
    TRIED,
    WIDTH,
    Draws,
    differ,
    loaded,
    outside,
)
from benchmarks.program_changes import At, FalseProgram, texts
from benchmarks.reference_programs import Reference

UNSEEN = ("exact", "measured")


@dataclass(frozen=True)
class Compared:
    """The verdict on a program and a change of it that differ at these lengths."""

    program: FalseProgram
    at: At
    verdict: str
    why: str

    @property
    def is_wrong(self) -> bool:
        """Whether different functions were proved equal."""
        return self.verdict == "proved"

    def __str__(self) -> str:
        told = f"{self.program.of.name}, {self.program.change}: {self.verdict}, {self.why}"
        return f"{told}; they differ at {self.at}"


def _given(of: Reference, at: At) -> list[Tensor]:
    draw, b, t, h = Draws(at), at.rows, at.tokens, at.heads
    if of.kind == "layer":
        return [draw(b, t, EMBED)]
    if of.kind == "rotary":
        return [draw(b, h, t, WIDTH), draw.places(b, t, 1)]
    q = draw(b, h, at.queries or t, WIDTH)
    return [q, q, q] if at.how == "one" else [q, *(draw(b, h, t, WIDTH, salt=s) for s in (1, 2))]


def differs_at(
    one: Callable[..., Tensor], other: Callable[..., Tensor], of: Reference, points: tuple[At, ...]
) -> At | None:
    """Return the first point at which torch finds a difference.  Raises what the programs raise."""
    for at in points:
        given = _given(of, at)
        with torch.set_grad_enabled(at.how == "gradients"):
            here, there = (Draws(at).given(f)(*given) for f in (one, other))
        if differ(here, there):
            return at
    return None


def compared(program: FalseProgram, folder: Path, name: str) -> Compared | str:
    """Return the verdict on a program and its change, or why they were not compared."""
    of = program.of
    if of.kind == "bias":
        return "no arrays go in"
    first = getattr(loaded(texts()[of.name], folder, f"{name}_plain"), of.name)
    try:
        changed = getattr(loaded(program.text, folder, name), of.name)
        at = differs_at(first, changed, of, (*TRIED, *program.at))
    except Exception as error:  # noqa: BLE001 (a change may be meaningless)
        return f"no program: {type(error).__name__}"
    if at is None:
        return "not found to differ"
    fresh = getattr(loaded(program.text, folder, f"{name}_again"), of.name)
    try:
        found = compare(
            Operand(first, "plain", of.call), Operand(fresh, "changed", of.call), seconds=6.0
        )
    except Exception as error:  # noqa: BLE001 (the change may have another call)
        return f"refused: {type(error).__name__}"
    letters = {
        "B": at.rows,
        "H": at.heads,
        "n": at.tokens,
        "r": at.queries or at.tokens,
        "D": WIDTH,
        "E": EMBED,
    }
    told = tuple(c.text for c in found.assuming)
    elsewhere = found.verdict == "proved" and any(outside(text, letters) for text in told)
    return Compared(
        program, at, "elsewhere" if elsewhere else found.verdict, "; ".join((found.why, *told))
    )


def false_pairs(family: str, seed: int, folder: Path) -> Iterator[Compared | str]:
    """Yield the verdicts on an endless sequence of pairs."""
    for k, program in enumerate(FAMILIES[family](seed)):
        yield compared(program, folder, f"pair_{family}_{seed}_{k}")


def main() -> int:
    """Print how many pairs differ, and those that were taken for equal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_pairs", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="number of pairs that differ")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, default="changes")
    asked = parser.parse_args()
    begun, counts, wrong = process_time(), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        found = false_pairs(asked.family, asked.seed, Path(folder))
        differing = (one for one in found if isinstance(one, Compared))
        for k, one in enumerate(islice(differing, asked.count), 1):
            counts[one.verdict] += 1
            wrong += one.is_wrong
            if one.is_wrong or one.verdict in UNSEEN:
                print(one, flush=True)
            if k % 20 == 0:
                print(
                    f"{k} pairs, {(process_time() - begun) / k:.2f} s of processor time each: "
                    f"{dict(counts)}",
                    flush=True,
                )
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
