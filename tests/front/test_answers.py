"""``check``, ``identify`` and ``equal`` in Python: the records of the commands, shown as there."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import attnproof
from attnproof import function, index_below, real, sizes
from attnproof.answers.programs import CheckedCode, ComparedPrograms, IdentifiedCode
from attnproof.programs.execution.running import CodeFault, limited
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subjects import Layer
from attnproof.real_code.asserting import check_code
from attnproof.real_code.equal_records import EqualRecord
from attnproof.real_code.records import CodeRecord
from attnproof.symbolic.claim import Claim
from tests.cases import each
from tests.front.code_files import Methods, set_methods
from tests.front.outputs import balanced, conforms, python

(n,) = sizes("n")
X = real(n).named("X")
check: Any = attnproof.check  # called as no type checker would let it be
equal: Any = attnproof.equal
CALL = "x: B H n D, positions: n -> x"
BIAS = """
import torch


def bias(n):
    i = torch.arange(n)
    return -0.5 * (i[:, None] - i[None, :]).abs()[None]


def twice(x):
    return 2 * x
"""


def rope(x: Tensor, positions: Tensor) -> Tensor:
    """Half-split."""
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    a = positions[:, None] * frequencies
    u, v = x.chunk(2, -1)
    return torch.cat((u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()), -1)


def stretched(x: Tensor, positions: Tensor) -> Tensor:
    """Rotated vectors are the longer the further along they stand."""
    return rope(x, positions) * (1 + positions[:, None])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(BIAS, encoding="utf-8")
    return path


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> Methods:
    return set_methods(monkeypatch)


def test_code_at_hand_is_checked_and_its_record_shows_itself() -> None:
    good, bad = (attnproof.check(f, "rotary", ["norm"], call=CALL) for f in (rope, stretched))
    assert isinstance(good, CheckedCode)
    assert good.ok
    assert not bad.ok
    assert [law.law for law in bad.broken] == ["norm"]
    assert str(good).startswith("rope  rotary\n")
    assert "✗ norm" in str(bad)
    assert "✗ norm" in bad._repr_html_()
    for found in (good, bad):
        balanced(found._repr_html_())
        record = CodeRecord.model_validate_json(found.to_json())
        assert record.model_dump() == found.model_dump()
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(bad)


def test_what_kind_of_code_it_is_is_told_from_its_signature() -> None:
    found = attnproof.check(rope, laws=["norm"], call=CALL)
    assert found.kind == "rotary"
    assert [law.law for law in found.laws] == ["norm"]
    assert "attnproof.check(" in found.law("norm").again


def test_a_target_is_run_as_the_command_runs_it(file: Path) -> None:
    found = attnproof.identify(f"{file}::bias", "bias")
    assert isinstance(found, IdentifiedCode)
    assert found.identity is not None
    assert "slopes" in found.identity.sentence
    assert "slopes" in str(found)
    assert "slopes" in found._repr_html_()
    at_hand = attnproof.identify(_bias(), "bias")
    assert at_hand.identity == found.identity
    gone = attnproof.check(f"{file}::nothing")
    assert "nothing" in gone.why
    assert "cannot be run" in str(gone)


def _bias() -> Any:
    table: dict[str, Any] = {}
    exec(compile(BIAS, "<stdin>", "exec"), table)
    return table["bias"]


SLOPES = """
import torch


class Slopes(torch.nn.Module):
    def __init__(self, seed, kind="bias"):
        super().__init__()
        self.slope = seed / 10

    def forward(self, n):
        i = torch.arange(n)
        return -self.slope * (i[:, None] - i[None, :]).abs()[None]
"""


def test_settings_may_be_called_as_options_are(tmp_path: Path) -> None:
    path = tmp_path / "slopes.py"
    path.write_text(SLOPES, encoding="utf-8")
    table: dict[str, Any] = {}
    exec(compile(SLOPES, "<stdin>", "exec"), table)
    for code in (f"{path}::Slopes", table["Slopes"]):
        found = attnproof.identify(code, "bias", settings={"seed": 5, "kind": "x"})
        assert found.identity is not None
        assert "(0.5)" in found.identity.sentence


def test_two_programs_are_compared(file: Path) -> None:
    same = attnproof.equal(lambda x: x + x, f"{file}::twice", "x: B n E -> B n E")
    assert isinstance(same, ComparedPrograms)
    assert same.verdict == "proved"
    assert "✓ proved: the same function" in str(same)
    other = attnproof.equal(lambda x: x * x, lambda x: 2 * x, "x: B n E -> B n E")
    assert other.verdict == "counterexample"
    assert "different functions" in other._repr_html_()
    balanced(other._repr_html_())
    record = EqualRecord.model_validate_json(other.to_json())
    assert record.model_dump() == other.model_dump()
    conforms(other.to_json(), "--equal")


def test_two_arrays_are_a_conclusion() -> None:
    assert isinstance(attnproof.equal(X + X, 2 * X), Claim)
    assert isinstance(attnproof.equal(X[0], 3), Claim)
    assert attnproof.equal(left=X, right=X) == attnproof.equal(X, X)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "an array and a program": (lambda: equal(X, rope), TypeError, "got Array and function"),
    "a program and a number": (lambda: equal("rope.py::f", 3), TypeError, "compares two programs"),
    "functions of a statement": (
        lambda: equal(function(0).named("f"), function(0).named("g")),
        TypeError,
        "say that two are equal at all values: for_all",
    ),
    "givens": (lambda: equal(real(n), real(n)), TypeError, "until it has a name"),
    "a given and an array": (lambda: equal(index_below(n), X), TypeError, "until it has a name"),
    "an option of programs": (lambda: equal(X, X, seed=1), TypeError, "equal(left, right)"),
    "a target that is not there": (lambda: equal("nowhere.py::f", rope), ValueError, "nowhere.py"),
    "no code": (lambda: check(3), NoAdapter, "an object of type int cannot be called"),
    "no kind": (lambda: check("a.py::f", "spinning"), ValueError, "a kind of code"),
    "no law": (lambda: check("a.py::f", laws=["nrm"]), ValueError, "nearest: norm"),
    "no law at hand": (lambda: check(rope, laws=["nrm"]), ValueError, "nearest: norm"),
    "no dtype": (lambda: check("a.py::f", dtype="int8"), ValueError, "a dtype"),
    "no device": (lambda: check("a.py::f", device="abacus"), ValueError, "a device"),
    "no seed": (lambda: check("a.py::f", seed=-1), ValueError, "a seed"),
    "no call": (lambda: check("a.py::f", call="x -> ("), ValueError, ""),
    "no declaration": (lambda: check("a.py::f", declared="rop:base=3"), ValueError, "rop"),
}


@each(REFUSED)
def test_what_cannot_be_asked_is_refused(name: str) -> None:
    ask, error, says = REFUSED[name]
    with pytest.raises(error) as caught:
        ask()
    assert says in str(caught.value)


SESSION = '''
import torch
import attnproof
from attnproof import Encoding, at_least, equal, hypothesis, real, sizes
(n,) = sizes("n")
p = attnproof.prove(lambda X: equal(X + X, 2 * X), X=real(n))
print(p.verdict, p.certificate().replay().verdict, len(p.sympy()))
def bias(n):
    i = torch.arange(n)
    return -0.5 * (i[:, None] - i[None, :]).abs()[None]

print(attnproof.identify(bias, "bias").identity.sentence.partition(",")[0])
print(attnproof.equal(lambda x: x + x, lambda x: 2 * x, "x: B n E -> B n E").verdict)
class Falling(Encoding):
    """Falls with the square."""
    given = {"strength": real()}
    def bias(self, m, n):
        return -self.strength * (m - n) ** 2
    @hypothesis("the strength is at least 0")
    def strength_not_negative(self):
        return [at_least(self.strength, 0)]

card = attnproof.card(Falling, ["relative"])
print(card.cell("relative").verdict, "Falls" in str(card), "Falls" in card._repr_html_())
print(attnproof.card(Falling(strength=2.0), ["relative"]).cell("relative").verdict)
'''


def test_what_is_typed_into_a_session_is_answered(root: Path) -> None:
    """Nothing of it stands in a file: neither functions nor classes."""
    done = python("-i", "-q", input=SESSION, cwd=root, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.splitlines() == [
        "proved proved 1",
        "bias",
        "proved",
        "proved True True",
        "proved",
    ]


def hangs(x: Tensor) -> Tensor:
    """It comes to no end where there are more than eleven tokens, or rows."""
    while max(x.shape[:2]) > 11:
        pass
    return x.softmax(-1)


def test_code_at_hand_that_comes_to_no_end_is_ended() -> None:
    laws = ("finite", "stateless")
    more: dict[str, Any] = {"call": "x: B n E -> B n E", "methods": ("measured",), "limit": 1.0}
    record = check_code("layer", hangs, laws, **more)
    assert record.law("finite").verdict == "undecided"
    assert record.law("finite").why == "it had not ended after 1 s"
    assert record.law("stateless").verdict == "measured"  # what ends is told all the same
    quick = check_code("layer", lambda x: x.softmax(-1), laws, **more)
    assert {law.verdict for law in quick.laws} == {"measured"}


def test_a_method_by_which_no_law_ends_is_given_up() -> None:
    ready: list[bool] = []

    def never(x: Tensor) -> Tensor:
        while ready:
            pass
        return x

    subject = Layer(name="never", call=never, embed=4)
    ready.append(True)
    record = attnproof.check(subject, "layer", limit=0.1)
    told = {one.method: one.why for one in record.methods}
    assert told["measured"] == told["traced"] == "it had not ended after 0.1 s"
    assert {law.verdict for law in record.laws} <= {"undecided", "not asked"}


SLOW = """import time
end = time.process_time() + 1
while time.process_time() < end:
    pass
whole = 1
"""


def test_a_library_that_is_being_loaded_is_not_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.syspath_prepend(str(tmp_path))

    def loads() -> None:
        with limited(0.2):
            import_module("slow")
            while True:
                pass

    with pytest.raises(CodeFault, match=r"did not finish within 0\.2 s"):
        loads()
    assert sys.modules.pop("slow").whole == 1
