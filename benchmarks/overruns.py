"""What a limit is worth: statements, encodings and programs that take long, and when they end.

``python -m benchmarks.overruns --limit 2`` decides each under the limit and prints what it took, in
seconds of the thread, and the ratio.  Nothing is interrupted, so that one long step that asks for
no time shows here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from time import thread_time
from typing import Any, ClassVar

import torch
from array_api_compat import array_namespace
from rich.console import Console
from rich.table import Table

from attnproof import Encoding, EncodingLaw, natural, positive, real
from attnproof.encoding_table import cell
from attnproof.laws import LAWS
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, at_least, equal
from attnproof.symbolic.givens import Given, sizes
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.statement import Statement

(n,) = sizes("n")
LETTERS: dict[str, Given] = {name: real(n) for name in "abcdef"}
Case = tuple[str, str, Callable[[float], str]]


class Steep(Encoding):
    """A bias of degree 18 in the positions and the parameters."""

    given: ClassVar = {"first": real(), "second": real()}
    defaults: ClassVar = {"first": 1.0, "second": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        return (self.first * m - self.second * n) ** 18


class Nested(Encoding):
    """A bias of functions in functions."""

    given: ClassVar = {"slope": positive()}
    defaults: ClassVar = {"slope": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        xp, found = array_namespace(m), (m - n) * self.slope
        for k in range(8):
            found = xp.exp(-found * found) + xp.cos(found * (k + 1)) * xp.abs(found)
        return found


class Gated(Encoding):
    """A bias of many pieces."""

    given: ClassVar = {"slope": real()}
    defaults: ClassVar = {"slope": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        xp, found = array_namespace(m), 0 * m * n
        for k in range(12):
            found = found + xp.where(m - n > k, self.slope * (m - n - k) ** 3, self.slope + found)
        return found


class Added(Encoding):
    """A high power of a position in each channel, scaled."""

    given: ClassVar = {"slope": real(), "start": natural()}
    defaults: ClassVar = {"slope": 1.0, "start": 1}

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        channel = xp.arange(self.width)
        return (self.slope * p[:, None] + channel + self.start) ** 12


def _of_powers(degree: int, letters: int) -> Claim:
    """A power of a sum, and the same with its factors apart; not quite the same."""
    every = [LETTERS[name].named(name) for name in list(LETTERS)[:letters]]
    total: Array = sum(every[1:], every[0])
    return equal(total**degree, total ** (degree - 1) * total + every[0])


def _true_powers(degree: int, letters: int) -> Claim:
    every = [LETTERS[name].named(name) for name in list(LETTERS)[:letters]]
    total: Array = sum(every[1:], every[0])
    return equal(total**degree, total ** (degree // 2) * total ** (degree - degree // 2))


def _of_signs(degree: int) -> Claim:
    """The sign of a power of a sum of products."""
    a, b, c, d, e, f = (LETTERS[name].named(name) for name in LETTERS)
    total = (a + b) * (c + d) * (e + f)
    return at_least(total**degree + total ** (degree + 1) * (a - b), 0)


def _of_towers(height: int) -> Claim:
    """Roots and exponentials in one another, on both sides."""
    a, b = (LETTERS[name].named(name) for name in "ab")
    for _ in range(height):
        a, b = xp.exp(a * b) + a, xp.sqrt(xp.abs(a + b)) * b
    return equal(a * b, b * a + b)


def _of_inverses(count: int) -> Claim:
    """A sum of inverses of sums."""
    every = [LETTERS[name].named(name) for name in LETTERS]
    total = every[0]
    for k in range(count):
        total = total + every[k % 6] / (1 + every[(k + 1) % 6] ** 2 + every[(k + 2) % 6] * total)
    return equal(total * total, total**2 + every[0])


STATEMENTS: dict[str, Callable[[], Claim]] = {
    "(a + b)^60, and more": lambda: _of_powers(60, 2),
    "(a + .. + d)^14, and more": lambda: _of_powers(14, 4),
    "(a + .. + f)^9": lambda: _true_powers(9, 6),
    "(a + .. + f)^24": lambda: _true_powers(24, 6),
    "a sign of degree 12": lambda: _of_signs(4),
    "a sign of degree 30": lambda: _of_signs(10),
    "functions in functions": lambda: _of_towers(6),
    "inverses of sums": lambda: _of_inverses(6),
}
KINDS: tuple[type[Encoding], ...] = (Steep, Nested, Gated, Added)


def _long(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT
    for step in range(6):
        scores = scores + torch.tanh(scores * scores + step) * scores
    return scores.softmax(-1) @ v


def _decided(said: Statement, limit: float) -> str:
    return decide(said, effort=Effort(limit=limit, whole=limit)).verdict


def _celled(kind: type[Encoding], law: EncodingLaw, limit: float) -> str:
    return cell(kind, law, limit=limit).verdict


def _cases() -> Iterator[Case]:
    for words, claim in STATEMENTS.items():
        said = Statement(LETTERS, {"": claim()})
        yield "statement", words, partial(_decided, said)
    for kind in KINDS:
        for law in LAWS:
            yield kind.id(), law.id, partial(_celled, kind, law)
    code = adapted_as(_long, kind="attention")
    yield (
        "program",
        "every proof of its graph",
        lambda limit: " ".join(
            f"{one.law} {one.verdict} {one.seconds:.1f};"
            for one in prove(code, (), None, limit).findings
        ),
    )


def overruns(limit: float = 2.0, more: float = 1.0, only: str = "") -> Table:
    """Each case that took more than ``more`` times its limit, and the longest of each kind."""
    table = Table("kind", "what", "verdict", "limit s", "taken s", "ratio", title="Overruns")
    worst: dict[str, tuple[float, list[str]]] = {}
    for kind, what, run in _cases():
        if only and only not in f"{kind} {what}":
            continue
        start = thread_time()
        verdict = run(limit)
        taken = thread_time() - start
        row = [kind, what, verdict, f"{limit:g}", f"{taken:.2f}", f"{taken / limit:.2f}"]
        if taken > more * limit:
            table.add_row(*row)
        elif taken > worst.get(kind, (0.0, []))[0]:
            worst[kind] = (taken, row)
    table.add_section()
    for _, row in worst.values():
        table.add_row(*row)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overruns", description=__doc__)
    parser.add_argument("--limit", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--only", default="", metavar="WORDS", help="cases with these words")
    asked = parser.parse_args()
    Console(width=140).print(overruns(asked.limit, only=asked.only))


if __name__ == "__main__":
    main()
