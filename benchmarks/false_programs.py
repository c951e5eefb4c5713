"""False programs, of which none may be proved: each reference program, changed.

``python -m benchmarks.false_programs [--count 3000] [--seed 0]``

A change is one edit of an expression (``code_mutants``: another axis, index, constant, operand,
function), or a statement put before or behind the rest: one row, head or token scaled, an axis
rolled, flipped, summed or averaged, a value kept from an earlier call, q for k, each also behind
a branch at some length.  Whether a law still holds is judged by torch alone, in float64, at
lengths on both sides of the branch; no reading of ours takes part in that.  Then the law is put
to the proof.  A law that is proved of lengths at which torch finds it false is printed with the
program; exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.util
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType

import torch
from torch import Tensor

from attnproof.numeric.devices import one_thread
from attnproof.programs.declared import parse
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from benchmarks.code_mutants import mutants
from benchmarks.reference_programs import REFERENCES, SOURCE, Reference

__all__ = ["FalseProgram", "Judged", "broken_at", "changed", "judged", "outside"]

NEAR = 1e-5  # of the size of the numbers: rounding of float64 stays far below
TRIED = ((2, 2), (2, 5), (3, 3), (3, 7), (2, 16), (2, 33))  # rows, tokens
BRANCHES = (3, 4, 6, 7, 12, 31, 100, 130)
PROVE = 3.0  # seconds for a proof
WIDTH, EMBED, HEADS = 8, 16, 4
YOUNG = 100_000  # objects made before cycles are looked for

Lengths = Mapping[str, int]


@dataclass(frozen=True)
class FalseProgram:
    """A changed reference program: its text, what was changed, the lengths it branches at."""

    of: Reference
    text: str
    change: str


@dataclass(frozen=True)
class Judged:
    """What became of one law of a changed program; ``false`` are the lengths that show it."""

    program: FalseProgram
    law: str
    verdict: str
    false: tuple[Lengths, ...]
    conditions: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = f"{self.program.of.name}, {self.program.change}: {self.law} {self.verdict}"
        return f"{told}; false at {self.false[0]}; proved {'; '.join(self.conditions)}"


# --- changes


def _statements(name: str, rank: int, axes: str) -> Iterator[str]:
    """Statements that change an array of this rank; ``axes`` has a letter for each axis."""
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
    """The arrays that go in, with a letter for each axis."""
    if of.kind == "layer":
        return {"x": "BTE"}
    if of.kind == "attention":
        return dict.fromkeys("qkv", "BHTD")
    return {"x": "BHTD"} if of.kind == "rotary" else {}


def _inserted(of: Reference) -> Iterator[tuple[str, bool]]:
    """Statements to put before (False) or behind (True) the rest."""
    arguments = _arguments(of)
    for name, axes in arguments.items():
        yield from ((line, False) for line in _statements(name, len(axes), axes))
    axes = next(iter(arguments.values()), "HTS")
    yield from ((line, True) for line in _statements("out", len(axes), axes))
    if of.kind == "attention":
        swaps = ("k = q", "v = k", "v = 0 * v + v.mean(2, keepdim=True)", "q = k", "k = k + v")
        yield from ((line, False) for line in swaps)
    if of.kind == "rotary":
        yield from ((f"positions = {e}", False) for e in (
            "positions + 1", "2 * positions", "positions.abs()", "positions[:1]", "-positions",
            "positions % 64", "positions.clamp(max=4)", "positions * positions",
            "positions.flip(1)", "torch.arange(x.shape[2])[None] + 0 * positions",
            "positions - positions[:, :1]",
        ))  # fmt: skip


def _with(of: Reference, tree: ast.Module, line: str, behind: bool, test: str) -> str:
    """The file with a statement before or behind the rest of the function."""
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


def changed(seed: int) -> Iterator[FalseProgram]:
    """Changed programs without an end, in random order."""
    random = Random(seed)
    source = SOURCE.read_text(encoding="utf-8")
    parts = {f.name: f for f in ast.parse(source).body if isinstance(f, ast.FunctionDef)}
    head = "import math\nimport torch\nfrom torch import Tensor\nKEPT = {}\n"
    texts = {of.name: head + ast.unparse(parts[of.name]) for of in REFERENCES}
    edits = {of.name: list(mutants(texts[of.name])) for of in REFERENCES}
    lines = {of.name: list(_inserted(of)) for of in REFERENCES}
    while True:
        of = random.choice(REFERENCES)
        if random.random() < 0.3:
            mutant = random.choice(edits[of.name])
            with suppress(SyntaxError, StopIteration):
                yield FalseProgram(of, mutant.source, str(mutant))
            continue
        line, behind = random.choice(lines[of.name])
        test = _branch(of, random) if random.random() < 0.5 else ""
        change = f"{'behind' if behind else 'before'}: {f'if {test}: ' * bool(test)}{line}"
        yield FalseProgram(of, _with(of, ast.parse(texts[of.name]), line, behind, test), change)


def _branch(of: Reference, random: Random) -> str:
    """A test of a length."""
    n = random.choice(BRANCHES)
    length = {"layer": "x.shape[1]", "rotary": "x.shape[2]", "bias": "keys"}.get(
        of.kind, "q.shape[2]"
    )
    tests = [f"{length} > {n}", f"{length} == {n}", f"{length} % {n} == 1", f"{length} < {n}"]
    if of.kind != "bias":
        array = "q" if of.kind == "attention" else "x"
        tests += [f"{array}.shape[0] == 3", f"{length} > {array}.shape[0] + 3"]
    return random.choice(tests)


# --- what torch says


def _draw(*shape: int, salt: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(salt)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _places(b: int, t: int, salt: int) -> Tensor:
    generator = torch.Generator().manual_seed(salt)
    return torch.randint(0, 50, (b, t), generator=generator)


Sides = tuple[Tensor, Tensor]
Code = Callable[..., Tensor]


def _first(t: int) -> int:
    """How many tokens stand before the cut at which a causal program is cut."""
    return t - 2 if t > 3 else t - 1


def _lengths(of: Reference, law: str, b: int, t: int) -> Lengths:
    """The lengths that a law is asked of, by the letters of a verdict's line."""
    found = {"B": b, "B′": b, "T": t, "S": t, "H": HEADS, "G": HEADS, "T′": t}
    if of.kind == "bias":
        found |= {"S": t + b}
    if law == "causal":
        n = _first(t)
        found |= {"T": n, "S": n, "T′": t - n, "S′": t - n}
    return found


def _layer(f: Code, b: int, t: int) -> Iterator[tuple[str, Sides]]:
    x, order = _draw(b, t, EMBED), torch.arange(t).roll(1)
    yield "permutation", (f(x[:, order]), f(x)[:, order])
    more = torch.cat((x, _draw(b, t, EMBED, salt=1)))
    yield "rows-of-batch-apart", (f(more), torch.cat((f(more[:b]), f(more[b:]))))
    n = _first(t)
    yield "causal", (f(x)[:, :n], f(x[:, :n]))


def _attention(f: Code, b: int, t: int) -> Iterator[tuple[str, Sides]]:
    q, k, v = (_draw(b, HEADS, t, WIDTH, salt=salt) for salt in range(3))
    order, whole = torch.arange(t).roll(1), f(q, k, v)
    yield "order-of-keys", (f(q, k[:, :, order], v[:, :, order]), whole)
    moved = (x[:, :, order] for x in (q, k, v))
    yield "permutation", (f(*moved), whole[:, :, order])
    same = v[:, :1, :1].expand_as(v)  # one for all heads, as the law says
    yield "rows-sum-to-one", (f(q, k, same), same)
    twice = [torch.cat((x, x.flip(0) + 1)) for x in (q, k, v)]
    rows = [f(*(x[part] for x in twice)) for part in (slice(b), slice(b, None))]
    yield "rows-of-batch-apart", (f(*twice), torch.cat(rows))
    n = _first(t)
    yield "causal", (whole[:, :, :n], f(*(x[:, :, :n] for x in (q, k, v))))


def _rotary(f: Code, b: int, t: int) -> Iterator[tuple[str, Sides]]:
    x, y = (_draw(b, HEADS, t, WIDTH, salt=salt) for salt in range(2))
    m, n = _places(b, t, 1), _places(b, t, 2)

    def square(a: Tensor) -> Tensor:
        return (a * a).sum(-1)

    at = f(x, m)
    yield "relative", (f(x, m + 3) @ f(y, n + 3).mT, at @ f(y, n).mT)
    yield "norm", (square(at) * square(x[:, :1, :1]), square(x) * square(at[:, :1, :1]))
    zero = 0 * m
    yield "composition", (f(at, n), f(f(x, m + n), zero))
    yield "linear", (f(2 * x + y, m), 2 * at + f(y, m))
    heads = torch.arange(HEADS).roll(1)
    yield "every-head-alike", (f(x[:, heads], m), at[:, heads])
    order = torch.arange(t).roll(1)
    yield "follows-its-ids", (f(x[:, :, order], m[:, order]), at[:, :, order])
    both, places = torch.cat((x, y)), torch.cat((m, n))
    yield "rows-of-batch-apart", (f(both, places), torch.cat((at, f(y, n))))


def _bias(f: Code, b: int, t: int) -> Iterator[tuple[str, Sides]]:
    found = f(t, t + b).double()
    moved = found[..., 1:, 1:] - found[..., :-1, :-1]  # up to a number for each query
    yield "offset-only", (moved, moved[..., :1].expand_as(moved))


CHECKS = {"layer": _layer, "attention": _attention, "rotary": _rotary, "bias": _bias}


def broken_at(
    f: Code, of: Reference, lengths: tuple[tuple[int, int], ...]
) -> dict[str, list[Lengths]]:
    """The lengths at which torch finds each law of a program broken.  Raises what the code does."""
    found: dict[str, list[Lengths]] = {}
    for b, t in lengths:
        for law, (here, there) in CHECKS[of.kind](f, b, t):
            if law not in of.laws:
                continue
            size = max(1.0, float(there.abs().nan_to_num().max()))
            if here.shape != there.shape or not torch.allclose(
                here, there, NEAR, NEAR * size, equal_nan=True
            ):
                found.setdefault(law, []).append(_lengths(of, law, b, t))
    return found


# --- what is proved


def outside(text: str, lengths: Lengths) -> bool:
    """Whether a condition of a proof says that it is not of these lengths.

    >>> outside("B, T ≥ 3", {"B": 4, "T": 2}), outside("T mod 7 ≠ 1", {"T": 8})
    (True, True)
    >>> outside("D = 8", {"T": 2})
    False
    """
    one = re.fullmatch(r"([A-Z′ +,]+?)(?: mod (\d+))? ([≥≤=≠<>]) ([A-Z′\d +]+)", text)
    if one is None:
        return False
    left, modulus, sign, right = one.groups()
    try:
        values, other = [_sum(part, lengths) for part in left.split(",")], _sum(right, lengths)
    except (KeyError, ValueError):
        return False  # of a length that the law does not have
    return any(not _HOLDS[sign](v % int(modulus) if modulus else v, other) for v in values)


def _sum(text: str, lengths: Lengths) -> int:
    parts = (part.strip() for part in text.split("+"))
    return sum(int(part) if part.isdigit() else lengths[part] for part in parts)


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "≥": int.__ge__, "≤": int.__le__, "=": int.__eq__, "≠": int.__ne__, "<": int.__lt__,
    ">": int.__gt__,
}  # fmt: skip


def _module(text: str, folder: Path, name: str) -> ModuleType:
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judged(
    program: FalseProgram, folder: Path, name: str, most: int = 0, seconds: float = PROVE
) -> list[Judged] | str:  # fmt: skip
    """What is said of each law that torch finds false (of ``most``); or why nothing was asked."""
    of = program.of
    near = [
        n + k
        for n in map(int, re.findall(r"\d+", program.change))
        if 2 < n < 200
        for k in (-1, 0, 1)
    ]
    lengths = (*TRIED, *((b, n) for n in sorted(set(near)) for b in (2, 3)))
    try:
        f = getattr(_module(program.text, folder, name), of.name)
        with torch.no_grad(), one_thread():
            false = broken_at(f, of, lengths)
    except Exception as error:  # noqa: BLE001 (what a change means nothing by is no program)
        return f"no program: {type(error).__name__}"
    if not false:
        return "not found false"
    declared = parse(of.declared) if of.declared else None
    try:
        fresh = getattr(_module(program.text, folder, f"{name}_again"), of.name)
        subject = adapted_as(fresh, of.call, kind=of.kind, declared=declared, name=of.name)
    except Exception as error:  # noqa: BLE001 (it may not be called so any more)
        return f"refused: {type(error).__name__}"
    with torch.no_grad(), one_thread():
        findings = prove(subject, list(false)[: most or None], seconds=seconds).findings
    said = []
    for one in findings:
        told = tuple(c.text for c in one.assuming)
        left = tuple(at for at in false[one.law] if not any(outside(c, at) for c in told))
        verdict = "elsewhere" if one.verdict == "holds" and not left else one.verdict
        said.append(Judged(program, one.law, verdict, left or tuple(false[one.law]), told))
    return said or "nothing was said"


def main() -> int:
    """Print how many were made, were false, and were proved all the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.false_programs",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("--count", type=int, default=3000, help="how many false programs")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    laws: Counter[str] = Counter()
    proved: list[Judged] = []
    gc.freeze()  # the libraries have a million objects, which are not gone through again
    gc.set_threshold(YOUNG)
    with tempfile.TemporaryDirectory() as folder:
        for k, program in enumerate(changed(asked.seed)):
            said = judged(program, Path(folder), f"program_{k}")
            if isinstance(said, str):
                counts[said] += 1
                continue
            counts["false"] += 1
            laws.update(one.verdict for one in said)
            for one in said:
                if one.verdict == "holds":
                    proved.append(one)
                    print(f"PROVED {one}\n{program.text}", flush=True)
            if counts["false"] % 50 == 0:
                print(f"{counts['false']} false programs", file=sys.stderr, flush=True)
            if counts["false"] >= asked.count:
                break
    for told, counted in (("programs", counts), ("laws of false programs", laws)):
        print(f"{told}: " + ", ".join(f"{n} {name}" for name, n in counted.most_common()))
    return int(bool(proved))


if __name__ == "__main__":
    sys.exit(main())
