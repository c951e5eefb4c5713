"""``attnproof equal`` and ``attnproof classes``: what they print, write, and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnproof.cli import main
from attnproof.real_code.equal_records import ClassesRecord, EqualRecord
from attnproof.testing import NotEqual, assert_equal, check_equal
from tests.front.outputs import Output, conforms
from tests.front.planted import planted

CODE = """
import torch


def once(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def again(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def wrong(q, k, v):
    scores = q @ k.transpose(-1, -2) / 2.0
    return torch.softmax(scores, -1) @ v


def first(x):
    return x.topk(1, dim=-1).values


def sorted_first(x):
    return x.sort(dim=-1, descending=True).values[..., :1]


def many(a1, a2, a3, a4, a5):
    return a1 @ a2 + a3


def loud(x):
    raise RuntimeError("no such kernel")
"""
LINE = "q: B H r 8, k: B H n 8, v: B H n 8 -> B H r 8"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A file of attention code."""
    file = tmp_path / "code.py"
    file.write_text(CODE, encoding="utf-8")
    return file


def test_a_proof_is_printed_with_its_conditions_and_written(code: Path, capsys: Output) -> None:
    file = code.parent / "found.json"
    assert main(["equal", f"{code}::once", f"{code}::again", "--json", str(file)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "✓ proved: the same function" in told
    assert "steps, where this covers values, not gradients" in told
    text = file.read_text(encoding="utf-8")
    conforms(text, "--equal")
    record = EqualRecord.model_validate_json(text)
    assert record.verdict == "proved"
    assert record.line in told.replace(
        "✓ proved: the same function, for all inputs and all lengths that satisfy its conditions ",
        "proved, ",
    )


def test_a_counterexample_says_where_the_two_part_and_how_to_see_it(
    code: Path, capsys: Output
) -> None:
    asked = ["equal", f"{code}::once", f"{code}::wrong", "--call", LINE, "--seed", "3"]
    assert main(asked) == 1
    told = capsys.readouterr().out
    assert "✗ counterexample" in told
    assert "code.py:14: scores = q @ k.transpose(-1, -2) / 2.0" in " ".join(told.split())
    again = told.split("again: attnproof ", 1)[1].splitlines()[0]
    assert "--seed 3" in again
    assert LINE in again


def test_where_nothing_differs_only_the_steps_are_said_to(code: Path, capsys: Output) -> None:
    line = "x: B n E -> B n F"
    assert main(["equal", f"{code}::first", f"{code}::sorted_first", "--call", line]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "≈ measured: the same function" in told
    assert "their steps differ from here: first topk at" in told
    assert "they differ" not in told


def test_a_specification_is_taken_and_strict_wants_a_proof(code: Path, capsys: Output) -> None:
    assert main(["equal", f"{code}::once", "attention:", "--strict"]) == 0
    assert main(["equal", f"{code}::once", "attention:softcap=50"]) == 1
    assert "attention:softcap=50" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["::once", "::none"], "there is no 'none'"),
        (["::many", "::once"], "cannot be guessed"),
        (["::once", "::loud"], "no such kernel"),
        (["::once", "attention:casual"], "nearest: causal"),
        (["::once", "atention:causal"], "no specification 'atention'; nearest: attention"),
        (["::once", "::again", "--call", "q B"], "wanted"),
        (["::once", "::again", "--call", LINE, "--call", LINE, "--call", LINE], "got it 3 times"),
        (["::once", "::again", "--where", "k = keys"], "keys"),
        (["::once", "::again", "--weights", "w = a.b"], "not a weight"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    asked: list[str], told: str, code: Path, capsys: Output
) -> None:
    words = [f"{code}{word}" if word.startswith("::") else word for word in asked]
    if "::loud" in asked[1]:
        words += ["--call", "q: B n E, k: B n E, v: B n E -> q", "--call", "x: B n E -> B n E"]
    assert main(["equal", *words]) == 2
    assert told in capsys.readouterr().err


def test_many_are_put_into_classes(code: Path, capsys: Output) -> None:
    file = code.parent / "classes.json"
    names = [f"{code}::{name}" for name in ("once", "wrong", "again")]
    assert main(["classes", *names, "--json", str(file)]) == 1
    assert "3 programs in 2 classes" in capsys.readouterr().out
    record = ClassesRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert [each.first for each in record.classes] == [names[0], names[1]]
    assert [one.target for one in record.classes[0].others] == [names[2]]
    assert json.loads(file.read_text(encoding="utf-8"))["apart"][0]["counterexample"]


def test_a_specification_is_the_first_of_its_class(code: Path, capsys: Output) -> None:
    names = [f"{code}::{name}" for name in ("once", "wrong")]
    assert main(["classes", *names, "attention:", "attention:scale=2"]) == 1
    said = capsys.readouterr().out
    assert "4 programs in 3 classes" in said
    assert f"1 attention: ✓ {names[0]}: proved" in " ".join(said.split())
    assert "second div at" in said  # the first step that the other lacks
    assert main(["classes", *names, "attention:scael=2"]) == 2
    assert "nearest: scale" in capsys.readouterr().err


def test_code_that_fails_is_a_class_of_its_own(code: Path, capsys: Output) -> None:
    text = code.read_text(encoding="utf-8")
    code.write_text(
        f"{text}\n\ndef lost(q, k, v):\n    raise KeyError('heads')\n", encoding="utf-8"
    )
    assert main(["classes", f"{code}::once", f"{code}::lost", f"{code}::again"]) == 1
    said = capsys.readouterr().out
    assert "3 programs in 2 classes" in said
    assert "KeyError" in said


def test_an_error_of_ours_is_not_a_difference_of_the_programs(
    code: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    deciding = "attnproof.programs.equal.deciding"
    monkeypatch.setattr(f"{deciding}.pair_programs", planted("programs/equal/pair.py"))
    file = code.parent / "classes.json"
    names = [f"{code}::once", f"{code}::again"]
    assert main(["classes", *names, "--json", str(file)]) == 2
    said = capsys.readouterr()
    assert "internal error of attnproof: KeyError: 'planted'" in " ".join(said.out.split())
    assert "1 internal error; its traceback is in" in " ".join(said.err.split())
    (pair,) = ClassesRecord.read(json.loads(file.read_text(encoding="utf-8"))).apart
    assert "planted" in pair.traceback


def test_in_ones_own_tests_it_is_an_assertion() -> None:
    def doubled(x: object) -> object:
        return x + x  # type: ignore[operator]

    line = "x: B n E -> B n E"
    assert assert_equal(doubled, lambda x: 2 * x, line, strict=True).verdict == "proved"
    assert check_equal(doubled, lambda x: 3 * x, line).verdict == "counterexample"
    with pytest.raises(NotEqual, match="counterexample") as failed:
        assert_equal(doubled, lambda x: 3 * x, line)
    assert failed.value.record.counterexample is not None
