"""False programs, none of which may be proved: changes of the reference programs.

``python -m benchmarks.false_programs [--count 3000] [--seed 0] [--family lengths] [--into FILE]``

There are two families: any change of a program (``program_changes``), and faults at a single
length, a single position or from some length on, behind a branch that tracing does not see
(``length_faults``).  Whether a law still holds is judged by torch alone, in float64, at lengths on
both sides of the branch, independently of attnproof.  Then a proof of the law is attempted.  A law
that is proved for lengths at which torch finds it false, or an internal error, is printed with the
program, and the exit code is 1.  Each result is stored in FILE, if one is given, and reused.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import operator
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from attnproof.numeric.devices import one_thread
from attnproof.programs.declarations import parse
from attnproof.programs.finding import Finding
from attnproof.programs.prove import proofs, prove
from attnproof.programs.subject import adapted_as
from benchmarks.length_faults import faulty
from benchmarks.program_changes import At, FalseProgram, changed
from benchmarks.reference_programs import Reference

NEAR = 1e-5  # relative tolerance: rounding of float64 stays far below
TRIED = tuple(At(b, n) for b, n in ((2, 2), (2, 5), (3, 3), (3, 7), (2, 16), (2, 33)))
PROVE = 3.0  # seconds for a proof
WIDTH, EMBED = 8, 16
YOUNG = 100_000  # new objects between searches for reference cycles
FAULTS = {"holds": "PROVED", "internal error": "FAILED"}  # verdicts that nothing may have
FAMILIES = {"changes": changed, "lengths": faulty}

Lengths = Mapping[str, int]


@dataclass(frozen=True)
class Judged:
    """The verdict on one law of a changed program; ``false``: lengths at which the law fails."""

    program: FalseProgram
    law: str
    verdict: str
    false: tuple[Lengths, ...]
    conditions: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = f"{self.program.of.name}, {self.program.change}: {self.law} {self.verdict}"
        return f"{told}; false at {self.false[0]}; proved {'; '.join(self.conditions)}"


# --- torch as the judge


class Draws:
    """The inputs of a call at a point."""

    def __init__(self, at: At) -> None:
        self.at = at

    def __call__(self, *shape: int, salt: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(salt)
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def given(self, f: Code) -> Code:
        """Return the code, called with arrays in the way that the point states."""
        return lambda *arrays: f(*map(self._own, arrays))

    def _own(self, x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        if self.at.how == "apart":
            return x.transpose(0, -1).contiguous().transpose(0, -1)
        return x.requires_grad_() if self.at.how == "gradients" else x

    def places(self, rows: int, tokens: int, salt: int) -> Tensor:
        generator = torch.Generator().manual_seed(salt)
        found = torch.randint(0, 50, (rows, tokens), generator=generator)
        if self.at.place:
            found[0, 0] = self.at.place
        return found


Sides = tuple[Tensor, Tensor]
Code = Callable[..., Tensor]
Said = Iterator[tuple[str, Sides, Lengths]]


def _first(t: int) -> int:
    """Return the number of tokens before the cut in the test of causality."""
    return t - 2 if t > 3 else t - 1


def _lengths(at: At, queries: int = 0) -> dict[str, int]:
    """Return the lengths of a call, by the letters in the line of a verdict."""
    b, t, h = at.rows, at.tokens, at.heads
    return {"B": b, "B′": b, "r": queries or t, "n": t, "H": h, "G": h, "n′": t}


def _cut(at: At) -> dict[str, int]:
    n = _first(at.tokens)
    return _lengths(at) | {"r": n, "n": n, "n′": at.tokens - n}


def _layer(code: Code, at: At) -> Said:
    draw = Draws(at)
    f, b, t, own = draw.given(code), at.rows, at.tokens, _lengths(at)
    x, order = draw(b, t, EMBED), torch.arange(t).roll(1)
    yield "permutation", (f(x[:, order]), f(x)[:, order]), own
    more = torch.cat((x, draw(b, t, EMBED, salt=1)))
    yield "rows-of-batch-apart", (f(more), torch.cat((f(more[:b]), f(more[b:])))), own


def _attention(code: Code, at: At) -> Said:
    draw = Draws(at)
    f, b, h, t, r = draw.given(code), at.rows, at.heads, at.tokens, at.queries or at.tokens
    if at.how == "one":  # there are as many keys as queries
        at, t = at._replace(tokens=r), r
    own = _lengths(at, r)
    q = draw(b, h, r, WIDTH)
    k, v = (q, q) if at.how == "one" else (draw(b, h, t, WIDTH, salt=s) for s in (1, 2))
    order, whole = torch.arange(t).roll(1), f(q, k, v)
    yield "order-of-keys", (f(q, k[:, :, order], v[:, :, order]), whole), own
    same = v[:, :1, :1].expand_as(v)  # one value for all heads, as in the law
    yield "rows-sum-to-one", (f(q, k, same), same[:, :, :1].expand_as(q)), own
    twice = [torch.cat((x, x.flip(0) + 1)) for x in (q, k, v)]
    rows = [f(*(x[part] for x in twice)) for part in (slice(b), slice(b, None))]
    yield "rows-of-batch-apart", (f(*twice), torch.cat(rows)), own
    if r == t:
        moved = [x[:, :, order] for x in (q, k, v)]
        moved = [moved[0]] * 3 if at.how == "one" else moved
        yield "permutation", (f(*moved), whole[:, :, order]), own
        n = _first(t)
        yield "causal", (whole[:, :, :n], f(*(x[:, :, :n] for x in (q, k, v)))), _cut(at)


def _channels(f: Code, heads: int) -> Tensor:
    """Return where each channel moved; for the law of composition their order is restored."""
    units = torch.eye(WIDTH, dtype=torch.float64).expand(1, heads, WIDTH, WIDTH)
    found = f(units, torch.zeros(1, WIDTH, dtype=torch.int64))[0, 0].abs().argmax(-1)
    each = torch.arange(WIDTH)
    return found if torch.equal(found.sort()[0], each) else each


def _rotary(code: Code, at: At) -> Said:
    draw = Draws(at)
    f, b, h, t, own = draw.given(code), at.rows, at.heads, at.tokens, _lengths(at)
    x, y = (draw(b, h, t, WIDTH, salt=salt) for salt in range(2))
    m, n = draw.places(b, t, 1), draw.places(b, t, 2)

    def square(a: Tensor) -> Tensor:
        return (a * a).sum(-1)

    rotated = f(x, m)
    yield "relative", (f(x, m + 3) @ f(y, n + 3).mT, rotated @ f(y, n).mT), own
    yield (
        "norm",
        (square(rotated) * square(x[:, :1, :1]), square(x) * square(rotated[:, :1, :1])),
        own,
    )
    channels = _channels(f, h)

    def again(a: Tensor, places: Tensor) -> Tensor:
        return f(a, places)[..., channels]

    yield "composition", (again(again(x, m), n), again(again(x, m + n), 0 * m)), own
    yield "linear", (f(2 * x + y, m), 2 * rotated + f(y, m)), own
    heads = torch.arange(h).roll(1)
    yield "every-head-alike", (f(x[:, heads], m), rotated[:, heads]), own
    order = torch.arange(t).roll(1)
    yield "follows-its-ids", (f(x[:, :, order], m[:, order]), rotated[:, :, order]), own
    both, places = torch.cat((x, y)), torch.cat((m, n))
    yield "rows-of-batch-apart", (f(both, places), torch.cat((rotated, f(y, n)))), own


def _bias(f: Code, at: At) -> Said:
    for keys in (at.tokens, at.tokens + at.rows):
        found = f(at.tokens, keys).double()
        moved = found[..., 1:, 1:] - found[..., :-1, :-1]  # up to a number for each query
        own = _lengths(at) | {"n": keys}
        yield "offset-only", (moved, moved[..., :1].expand_as(moved)), own


CHECKS = {"layer": _layer, "attention": _attention, "rotary": _rotary, "bias": _bias}


def broken_at(f: Code, of: Reference, points: Sequence[At]) -> dict[str, list[Lengths]]:
    """Return lengths at which torch finds each law broken.  Raises what the code raises."""
    found: dict[str, list[Lengths]] = {}
    for at in points:
        with torch.set_grad_enabled(at.how == "gradients"):
            for law, (here, there), lengths in CHECKS[of.kind](f, at):
                if law not in of.laws:
                    continue
                if differ(here, there):
                    found.setdefault(law, []).append(lengths)
    return found


def differ(here: Tensor, there: Tensor) -> bool:
    """Whether two results differ by more than rounding."""
    near = NEAR * max(1.0, float(there.detach().abs().nan_to_num().max()))
    return here.shape != there.shape or not torch.allclose(here, there, NEAR, near, equal_nan=True)


# --- attempted proofs


def outside(text: str, lengths: Lengths) -> bool:
    """Whether a condition of a proof excludes these lengths.

    >>> outside("B, n ≥ 3", {"B": 4, "n": 2}), outside("n mod 7 ≠ 1", {"n": 8})
    (True, True)
    >>> outside("D = 8", {"n": 2})
    False
    """
    if text == "as many queries as keys":
        return lengths["r"] != lengths["n"]
    one = re.fullmatch(r"([^≥≤=≠<>]+) ([≥≤=≠<>]) ([^≥≤=≠<>]+)", text)
    if one is None:
        return False
    left, sign, right = one.groups()
    try:
        values = _values(left, lengths)
        (other,) = _values(right, lengths)
    except (NameError, SyntaxError, TypeError, ValueError):
        return False  # about a length that the law does not have
    return any(not _HOLDS[sign](value, other) for value in values)


def _values(text: str, lengths: Lengths) -> list[int]:
    """Evaluate an expression in lengths, or several with commas between."""
    told = re.sub(r"BitwiseFn_bitwise_and|FloorDiv", lambda one: one[0].lower(), text)
    for sign, python in (("·", "*"), ("^", "**"), (" mod ", "%"), ("′", "_")):
        told = told.replace(sign, python)
    known: dict[str, Any] = {letter.replace("′", "_"): n for letter, n in lengths.items()}
    found = eval(f"[{told}]", {"__builtins__": {}}, known | _CALLS)
    return list(found)


_CALLS: dict[str, Callable[[int, int], int]] = {
    "bitwisefn_bitwise_and": int.__and__,
    "floordiv": int.__floordiv__,
}
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    "≤": operator.le,
    "=": operator.eq,
    "≠": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def loaded(text: str, folder: Path, name: str) -> ModuleType:
    """Write a program to a file in this folder, and import it as a module."""
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def proofs_alone() -> Iterator[None]:
    """Attempt proofs without the costly search for witnesses."""

    def unproved(_: object, law: Any, graphs: object, why: str) -> Finding:
        del graphs
        return Finding(law.id, "traced", "undecided", why)

    with (
        patch.object(proofs, "witness_of", lambda *_, **__: None),
        patch.object(proofs.Proofs, "_unproved", unproved),
    ):
        yield


def judged(
    program: FalseProgram, folder: Path, name: str, most: int = 0, seconds: float = PROVE
) -> list[Judged] | str:
    """Return verdicts on (at most ``most``) laws that torch finds false, or why there are none."""
    of = program.of
    try:
        f = getattr(loaded(program.text, folder, name), of.name)
        with one_thread():
            false = broken_at(f, of, (*TRIED, *program.at))
    except Exception as error:  # noqa: BLE001 (a change may be meaningless)
        return f"no program: {type(error).__name__}"
    if not false:
        return "not found false"
    declared = parse(of.declared) if of.declared else None
    try:
        fresh = getattr(loaded(program.text, folder, f"{name}_again"), of.name)
        subject = adapted_as(fresh, of.call, kind=of.kind, declared=declared, name=of.name)
    except Exception as error:  # noqa: BLE001 (the change may have another call)
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


def _judged_quickly(program: FalseProgram, folder: Path, name: str) -> list[Judged] | str:
    """Judge a program without witnesses; if a law is proved, judge again with all checks."""
    with proofs_alone():
        said = judged(program, folder, name)
    if isinstance(said, str) or not any(one.verdict == "holds" for one in said):
        return said
    return judged(program, folder, f"{name}_once_more")


def main() -> int:
    """Print how many programs were made, were false, and were nevertheless proved."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.false_programs", description=__doc__
    )
    parser.add_argument("--count", type=int, default=3000, help="number of false programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, default="changes")
    parser.add_argument("--into", type=Path, help="a file in which results are stored and reused")
    asked = parser.parse_args()
    into = asked.into or Path(os.devnull)  # results depend on the version of attnproof
    known = dict(map(json.loads, into.read_text().splitlines())) if into.is_file() else {}
    counts: Counter[str] = Counter()
    laws: Counter[str] = Counter()
    gc.freeze()  # the million objects of the libraries need not be searched
    gc.set_threshold(YOUNG)
    begun, fresh = process_time(), 0
    with tempfile.TemporaryDirectory() as folder, into.open("a", encoding="utf-8") as kept:
        for k, program in enumerate(FAMILIES[asked.family](asked.seed)):
            if str(k) not in known:
                known[str(k)] = _record(_judged_quickly(program, Path(folder), f"program_{k}"))
                kept.write(json.dumps([str(k), known[str(k)]]) + "\n")
                kept.flush()
                fresh += isinstance(known[str(k)], list)
            said = known[str(k)]
            if isinstance(said, str):
                counts[said] += 1
                continue
            counts["false"] += 1
            laws.update(verdict for verdict, _ in said)
            for verdict, line in said:
                if verdict in FAULTS:
                    print(f"{FAULTS[verdict]} {line}\n{program.text}", flush=True)
            if counts["false"] % 50 == 0:
                spent = (process_time() - begun) / max(1, fresh)
                print(
                    f"{counts['false']} false programs, {spent:.2f} s of processor time each",
                    file=sys.stderr,
                    flush=True,
                )
            if counts["false"] >= asked.count:
                break
    for what, counted in (("programs", counts), ("laws of false programs", laws)):
        print(f"{what}: " + ", ".join(f"{n} {name}" for name, n in counted.most_common()))
    return int(any(laws[verdict] for verdict in FAULTS))


def _record(said: list[Judged] | str) -> str | list[tuple[str, str]]:
    """Return what is stored for a program: why it was not judged, or each verdict and its line."""
    return said if isinstance(said, str) else [(one.verdict, str(one)) for one in said]


if __name__ == "__main__":
    sys.exit(main())
