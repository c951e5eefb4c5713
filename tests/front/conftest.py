"""Small theorem files, and numbers that are set instead of measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from attnproof.numeric.results import MeasuredEvidence
from attnproof.symbolic.statement import Statement
from tests.front.outputs import MEASURED, WriteDemonstration, WriteTheorem

WriteLedger = Callable[..., Path]

TRUE = '''"""Addition commutes."""

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("Addition commutes", given={"x": real(n), "y": real(n)}, sources=("any textbook",))
def statement(x: Array, y: Array) -> Claim:
    """The order of two summands does not matter."""
    return equal(x + y, y + x)


@statement.negative_control("the sum is a difference")
def difference(x: Array, y: Array) -> Claim:
    return equal(x - y, y - x)
'''

MISMATCHED = TRUE.replace('(n,) = sizes("n"', 'n, m = sizes("n m"').replace(
    '"y": real(n)', '"y": real(m)'
)


@pytest.fixture(autouse=True)
def lengths(fewer_lengths: None) -> None:
    """What commands and answers say of code is not about lengths; where it is, this is replaced."""


@pytest.fixture
def longer(lengths: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its numbers code is run with more work, in tests about that."""
    del lengths
    inputs = import_module("attnproof.real_code.longer_inputs")
    monkeypatch.setattr(inputs, "MAX_WORK", 13 * inputs.MAX_WORK)


@pytest.fixture
def true_theorem() -> str:
    """The text of a file with a small theorem."""
    return TRUE


@pytest.fixture
def mismatched() -> str:
    """The text of a file whose statement adds axes of different lengths."""
    return MISMATCHED


@pytest.fixture
def write_theorem(tmp_path: Path) -> WriteTheorem:
    """Writes a theorem file into ``mine/`` and gives its path."""

    def write(name: str, text: str = TRUE, subject: str = "mine") -> Path:
        folder = tmp_path / subject
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


DOCUMENT = """
[document]
id = "900"
title = "Notes on addition"
kind = "notes"
"""

CLAIM = """
[[claim]]
id = "Z1"
place = "page 1"
origin = "document"
kind = "theorem"
says = "Addition of numbers commutes."
printed = ["addition-commutes"]
expected = "true as written"
"""

DEMONSTRATION = '''"""Two and two."""

from attnproof.numeric.demonstration import Row, demonstration


@demonstration("Two and two", claims=("Z1",), remark="By hand.")
def two_and_two() -> list[Row]:
    """The sum, computed again."""
    return [Row("the sum", 2 + 2, printed=4), Row("the product", 2 * 2)]
'''


@pytest.fixture
def write_ledger(tmp_path: Path) -> WriteLedger:
    """Writes ``claims/900.toml`` with these claims and gives its path."""

    def write(*claims: str, document: str = DOCUMENT, name: str = "900") -> Path:
        path = tmp_path / "claims" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join((document, *(claims or (CLAIM,)))), encoding="utf-8")
        return path

    return write


@pytest.fixture
def write_demonstration(tmp_path: Path) -> WriteDemonstration:
    """Writes ``demonstrations/two_and_two.py``, with a text replaced by another."""

    def write(old: str = "", new: str = "", name: str = "two_and_two") -> Path:
        path = tmp_path / "demonstrations" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(DEMONSTRATION.replace(old, new) if old else DEMONSTRATION, "utf-8")
        return path

    return write


@dataclass(frozen=True)
class House:
    """A folder in which a test writes theorems, demonstrations, and the ledger of a document."""

    theorem: WriteTheorem
    demonstration: WriteDemonstration
    ledger: WriteLedger
    claim: str = CLAIM


@pytest.fixture
def house(
    write_theorem: WriteTheorem, write_demonstration: WriteDemonstration, write_ledger: WriteLedger
) -> House:
    return House(write_theorem, write_demonstration, write_ledger)


class FakeReadingError(RuntimeError):
    """A reading failed after some others had been measured."""

    measurements = (MEASURED,)


class Numbers:
    """Stands in for ``numeric.check``: holds what it is told to, and remembers its arguments."""

    def __init__(self) -> None:
        self.true = self.false = MEASURED
        self.false = replace(MEASURED, error=1.0, status="violated")
        self.asked: list[dict[str, Any]] = []
        self.raises: Exception | None = None

    def measure(self, statement: Statement, **options: Any) -> list[MeasuredEvidence]:
        """The negative control of a test's theorem is the statement with a minus sign in it."""
        self.asked.append(options)
        if self.raises is not None:
            raise self.raises
        return [self.false if "-" in repr(statement.claims[""].left) else self.true]


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> Numbers:
    """Numbers without torch: what the numeric side would have found, as a test sets it."""
    fake, module = Numbers(), ModuleType("attnproof.numeric.check")
    module.measure = fake.measure  # type: ignore[attr-defined]
    module.ReadingError = FakeReadingError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "attnproof.numeric.check", module)
    exact = ModuleType("attnproof.numeric.residues.exact")
    exact.exact = lambda *_, **__: []  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "attnproof.numeric.residues.exact", exact)
    return fake
