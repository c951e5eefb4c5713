"""Changes of the reference programs: one edit of an expression, or one additional statement.

An edit is one of ``code_mutants``: another axis, index, constant, operand or function.  A statement
is inserted before or after the rest: one row, head or token scaled, an axis rolled, flipped, summed
or averaged, a value stored by an earlier call, q in place of k, each possibly behind a branch on a
length.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from benchmarks.code_mutants import mutants
from benchmarks.reference_programs import REFERENCES, SOURCE, Reference

BRANCHES = (3, 4, 6, 7, 12, 31, 100, 130)
HEAD = "import math\nimport torch\nfrom torch import Tensor\nKEPT = {}\n"


class At(NamedTuple):
    """Lengths at which torch judges a law; ``queries`` 0: the number of keys.

    ``place``: the position of one token.  ``how``: the form of the inputs: "apart" (not contiguous
    in memory), with "gradients" required, or "one" array for queries, keys and values.
    """

    rows: int
    tokens: int
    heads: int = 4
    queries: int = 0
    place: int = 0
    how: str = ""


@dataclass(frozen=True)
class FalseProgram:
    """A changed reference program: its text, the change, and points at which it may differ."""

    of: Reference
    text: str
    change: str
    at: tuple[At, ...] = ()


def _statements(name: str, rank: int, axes: str) -> Iterator[str]:
    """Yield statements that change an array of this rank; ``axes`` has a letter for each axis."""
    for k in range(rank):
        first, size = f"{name}.narrow({k}, 0, 1)", f"{name}.shape[{k}] - 1"
        yield f"{name} = {name}.roll(1, {k})"
        yield f"{name} = {name}.flip({k})"
        yield f"{name} = {name}.cumsum({k})"
        yield f"{name} = {name} - {name}.mean({k}, keepdim=True)"
        yield f"{name} = {name} + {first}"
        yield f"{name} = torch.cat((2 * {first}, {name}.narrow({k}, 1, {size})), {k})"
        kept, last = f"{name}.narrow({k}, 0, {size})", f"{name}.narrow({k}, {size}, 1)"
        yield f"{name} = torch.cat(({kept}, 0.5 * {last}), {k})"
        if axes[k] in "DE":
            yield f"{name} = {name} / {name}.norm(dim={k}, keepdim=True)"
    yield f"{name} = {name}.abs()"
    yield f"{name} = {name} * (1 + {name}.sum() / 100)"
    yield f"{name} = KEPT.setdefault(tuple({name}.shape), {name}.clone())"


def _arguments(of: Reference) -> dict[str, str]:
    """Return the input arrays, with a letter for each axis."""
    if of.kind == "layer":
        return {"x": "BTE"}
    if of.kind == "attention":
        return dict.fromkeys("qkv", "BHTD")
    return {"x": "BHTD"} if of.kind == "rotary" else {}


def inserted(of: Reference) -> Iterator[tuple[str, bool]]:
    """Yield statements to insert before (False) or after (True) the rest."""
    arguments = _arguments(of)
    for name, axes in arguments.items():
        yield from ((line, False) for line in _statements(name, len(axes), axes))
    axes = next(iter(arguments.values()), "HTS")
    yield from ((line, True) for line in _statements("out", len(axes), axes))
    if of.kind == "attention":
        swaps = ("k = q", "v = k", "v = 0 * v + v.mean(2, keepdim=True)", "q = k", "k = k + v")
        yield from ((line, False) for line in swaps)
    if of.kind == "rotary":
        yield from (
            (f"positions = {e}", False)
            for e in (
                "positions + 1",
                "2 * positions",
                "positions.abs()",
                "positions[:1]",
                "-positions",
                "positions % 64",
                "positions.clamp(max=4)",
                "positions * positions",
                "positions.flip(1)",
                "torch.arange(x.shape[2])[None] + 0 * positions",
                "positions - positions[:, :1]",
            )
        )


def with_line(of: Reference, text: str, line: str, *, behind: bool = False, test: str = "") -> str:
    """Return the file with a statement before or after the rest of the function."""
    tree = ast.parse(text)
    function = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == of.name)
    added = ast.parse(f"if {test}:\n    {line}" if test else line).body
    body = function.body[1:]  # without its docstring
    if behind:
        last = body[-1]
        assert isinstance(last, ast.Return)
        assert last.value is not None
        out = ast.Assign([ast.Name("out", ast.Store())], last.value)
        function.body = [*body[:-1], out, *added, ast.Return(ast.Name("out", ast.Load()))]
    else:
        function.body = [*added, *body]
    return ast.unparse(ast.fix_missing_locations(tree))


def texts(head: str = HEAD) -> dict[str, str]:
    """Return the reference programs, each as a separate file that begins with ``head``."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    parts = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    return {of.name: head + ast.unparse(parts[of.name]) for of in REFERENCES}


def changed(seed: int) -> Iterator[FalseProgram]:
    """Yield changed programs endlessly, in random order, each once."""
    random, plain, made = Random(seed), texts(), set[str]()
    edits = {name: list(mutants(text)) for name, text in plain.items()}
    lines = {of.name: list(inserted(of)) for of in REFERENCES}
    while True:
        of = random.choice(REFERENCES)
        if random.random() < 0.3:
            mutant = random.choice(edits[of.name])
            with suppress(SyntaxError, StopIteration):
                found = FalseProgram(of, mutant.source, str(mutant), _near(str(mutant)))
        else:
            line, behind = random.choice(lines[of.name])
            test = _branch(of, random) if random.random() < 0.5 else ""
            told = f"{'behind' if behind else 'before'}: {f'if {test}: ' * bool(test)}{line}"
            text = with_line(of, plain[of.name], line, behind=behind, test=test)
            found = FalseProgram(of, text, told, _near(told))
        if found.text not in made:
            made.add(found.text)
            yield found


def _near(told: str) -> tuple[At, ...]:
    """Return points with lengths on both sides of the numbers in a change."""
    near = {n + k for n in map(int, re.findall(r"\d+", told)) if 2 < n < 200 for k in (-1, 0, 1)}
    return tuple(At(rows, n) for n in sorted(near) for rows in (2, 3))


def _branch(of: Reference, random: Random) -> str:
    """Return a random test of a length."""
    n = random.choice(BRANCHES)
    length = {"layer": "x.shape[1]", "rotary": "x.shape[2]", "bias": "keys"}.get(
        of.kind, "q.shape[2]"
    )
    tests = [f"{length} > {n}", f"{length} == {n}", f"{length} % {n} == 1", f"{length} < {n}"]
    if of.kind != "bias":
        array = "q" if of.kind == "attention" else "x"
        tests += [f"{array}.shape[0] == 3", f"{length} > {array}.shape[0] + 3"]
    return random.choice(tests)
