"""The language of calls, and code with its call beside it; numbers and tables that lines tell."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnproof
from attnproof.cli import main
from attnproof.programs.calls.spelling import in_letters
from attnproof.programs.execution.draw import Draw
from attnproof.programs.identified_mask import with_mask
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.layout import laid_out, read_back
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import kind_of, subject_of
from attnproof.real_code.records import CodesRecord
from attnproof.testing import (
    CodeBreaksLaw,
    assert_attention,
    assert_rotary,
    check_attention,
    check_rotary,
)
from tests.cases import each

SAME = [
    "q: B H n D, k: B G n D, cos: n D, sin: n D -> q, k",
    "x: B n E, mask: B n keep -> B n E",
    'x: B n (H D), unsqueeze_dim = 1, order = "bhtd" -> out: B n (H D), _',
    "k: B (n + m) D, seq_len = n, f: (2 n + 1) D/2 cis -> k",
    "x: B C (h w), p: 2 n positions -> {out: B C (h w), weights: B H n n}",
    "x: n 1 D, rope = (cos: 1 n D/2, sin: 1 n D/2) -> x",
    "x: B n E, tables = ((sin: n D, cos: n D), decay: H n n constant) -> B n E",
    "q_len = r, k_len = n -> H r n add",
    "-> n D",
    "x: B n D -> x; built with size = n; keys with inverse = True",
    "x: B (4 n) E, pos_emb: 1 (2 n - 1) E offsets, pos: B n E encoding -> B 3 E",
    "x: B n E, biases = [], kept = {}, λ = 0.1 -> B n E",
    "q: B H n D, k: B G n D, m = namespace(groups = H/G, past = (n - r)/G, s: H constant) -> q",
]


@each(SAME)
def test_what_is_written_is_what_was_read(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(text.replace(" ", "  ").replace("-> ", "->")) == parse(text)


def test_a_namespace_has_the_attributes_of_the_call() -> None:
    line = "q: B H n D, m = namespace(groups = H/G, kept = [], s: G constant) -> q"

    def told(q: Tensor, m: Any) -> Any:
        m.kept.append(1)
        return q * m.groups + len(m.kept) + m.s.sum()

    arrays = {"q": torch.ones(1, 6, 2, 1), "s": torch.ones(3)}
    called = attnproof.Program(told, line)
    assert called.signature.arguments[1].lengths == ("H", "G")
    for _ in range(2):  # each call is given a list of its own
        (found,) = called.run(arrays, {"B": 1, "H": 6, "G": 3, "n": 2, "D": 1}).values()
        assert torch.equal(found, torch.full((1, 6, 2, 1), 6.0))
    with pytest.raises(SignatureError, match="whole number for the axis H/G, got 6/4"):
        called.run(arrays, {"B": 1, "H": 6, "G": 4, "n": 2, "D": 1})
    for state in ("DynamicCache()", ""):
        with pytest.raises(SignatureError, match="wanted NAME: AXES, or NAME = VALUE, got"):
            parse(line.replace("[]", state).replace("kept = ,", "kept,"))
    with pytest.raises(SignatureError, match="a number above 0 after /, got G"):
        parse("q: B H/G n D -> q")


def test_each_call_is_given_a_list_of_its_own() -> None:
    biases = parse("x: B n E, biases = [] -> x").arguments[1]
    biases.at({}).append(1)
    assert biases.at({}) == []


def test_lengths_are_sums_and_products() -> None:
    found = parse("x: (H D) (n + m) D/2 (n n + n)/2 3 -> x").arrays[0]
    assert found.shape({"H": 2, "D": 8, "n": 5, "m": 1}) == (16, 6, 4, 15, 3)
    assert found.letters == ("H", "D", "n", "m")
    with pytest.raises(SignatureError, match="a whole number for the axis D/2, got 5/2 at D = 5"):
        found.shape({"H": 2, "D": 5, "n": 5, "m": 1})


WRONG = {
    "x: B n": "without an arrow",
    "x: B n ->": "without a result",
    "x: B n E -> _": "at least one array in the result",
    "xq: B n D, xk: B n D -> q, xk": "name of an array before the arrow, such as xq, xk; got 'q'",
    "x B n -> x": "wanted NAME: AXES, or NAME = VALUE, got 'x B n'",
    "x: B tokens n -> x": "'tokens' before an axis",
    "x: B foo -> x": "after them one of query, key.*; got 'foo'",
    "x: B (n D -> x": "a closing parenthesis for each opening one",
    "x: B (n D)) -> x": "a closing parenthesis for each opening one",
    "x: B () -> x": r"wanted a letter or a number, got \)",
    "x: B n/0 -> x": "a number above 0 after /, got 0",
    "x: B*n -> x": r"such as B n \(H D\), got '\*n'",
    "x: n, x: B -> x": "each parameter once, got 'x' twice",
    "x: n,, y: n -> x": "two commas with nothing between",
    "x: n, order = bhtd -> x": "got 'bhtd'",
    "x: n -> {B n}": "a key for each value",
    "x: B n D -> x; keys with flag: B n": "NAME = VALUE for keys, got an array flag",
    "x: B n D -> x; keys flag = True": "keys with NAME = VALUE; got 'keys flag = True'",
}


@each(WRONG)
def test_what_cannot_be_read_is_told(text: str) -> None:
    with pytest.raises(SignatureError, match=WRONG[text]):
        parse(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SAME[0], "rotary"),
        ("x: B n H D, positions: n -> x", "rotary"),
        ("q: B H r D, k: B H n D, v: B H n D -> B H r D", "attention"),
        (SAME[1], "attention"),
        ("x: B n E -> B n E", "layer"),
        ("x: B n E, positions: n -> B n E", "layer"),
        ("n = n -> H n n", "bias"),
        ("n = n -> n n keep", "mask"),
    ],
)
def test_a_signature_says_what_kind_of_code_it_calls(text: str, kind: str) -> None:
    assert kind_of(parse(text)) == kind


LENGTHS = {"B": 2, "H": 3, "n": 5, "D": 4}
AXES = ["B H n D", "n B (H D)", "(B H) n D", "B n 1 H D", "D n H B", "(n H) (D B)"]


@pytest.mark.parametrize("axes", AXES)
def test_arrays_go_to_the_axes_of_a_call_and_come_back(axes: str) -> None:
    here = tuple(LENGTHS)
    told = parse(f"x: {axes} -> x").arrays[0]
    x = torch.arange(120.0).reshape(2, 3, 5, 4)
    there = laid_out(x, here, told.axes or (), LENGTHS)
    assert there.shape == told.shape(LENGTHS)
    assert torch.equal(read_back(there, told.axes or (), here, LENGTHS), x)


def test_the_first_letter_of_an_axis_is_the_slower() -> None:
    axes = parse("x: (H D) -> x").arrays[0].axes or ()
    x = torch.arange(6).reshape(2, 3)
    assert laid_out(x, ("H", "D"), axes, {}).tolist() == [0, 1, 2, 3, 4, 5]
    assert laid_out(x, ("D", "H"), axes, {}).tolist() == [0, 3, 1, 4, 2, 5]


def test_what_has_another_shape_than_was_told_is_refused() -> None:
    axes = parse("x: B n (H D) -> x").arrays[0].axes or ()
    with pytest.raises(SignatureError, match=r"wanted \(2, 5, 12\) back, which is B n \(H D\)"):
        read_back(torch.zeros(2, 12, 5), axes, ("B", "H", "n", "D"), LENGTHS)
    with pytest.raises(SignatureError, match="wanted an axis B, of length 2, got n D"):
        laid_out(
            torch.zeros(2, 5, 4),
            ("B", "n", "D"),
            parse("x: n D -> x").arrays[0].axes or (),
            LENGTHS,
        )


# a number in a line is the one with which code is called


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of 8 features, of queries of 6 heads and keys of 3, or of as many."""
    assert q.shape[-1] == 8
    if q.dim() == 4 and q.shape[1] != k.shape[1]:
        assert (q.shape[1], k.shape[1]) == (6, 3)
        k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    return (q @ k.mT / 8**0.5).softmax(-1) @ v


def test_numbers_of_three_axes_are_heads_and_features() -> None:
    subject: Any = subject_of(attend, "q: 2 r 8, k: 2 n 8, v: 2 n 8 -> 2 r 8")
    assert (subject.heads, subject.width) == (2, 8)
    with pytest.raises(SignatureError, match="it raised AssertionError: assert 16 == 8"):
        subject_of(attend, "q: 2 r 16, k: 2 n 16, v: 2 n 16 -> 2 r 16")


def test_keys_of_another_number_of_heads_have_groups() -> None:
    subject: Any = subject_of(attend, "q: B 6 r 8, k: B 3 n 8, v: B 3 n 8 -> B 6 r 8")
    assert (subject.heads, subject.groups, subject.width) == (6, 3, 8)


def test_a_number_of_no_heads_stays_a_number() -> None:
    for line in ("q: B 6 r 8, k: B 3 n 8, v: B 2 n 8 -> B 6 r 8", "q: B 6 r 8 -> B 4 r n"):
        call, sizes = in_letters(parse(line))
        assert sizes["heads"] == 6
        assert str(call).count(" 2 " if "v:" in line else " 4 ") == 1


class ChosenByQueries(nn.Module):
    """A bias that each query, of 8 features, draws from a table of offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(65, 8))

    def forward(self, r: int, n: int, query: Tensor) -> Tensor:
        at = torch.arange(n) - torch.arange(n - r, n)[:, None]
        return (query[..., None, :] * self.table[at.clamp(-32, 32) + 32]).sum(-1)


def test_features_of_what_a_bias_is_given_are_as_many_as_told() -> None:
    subject: Any = subject_of(ChosenByQueries, "r = r, n = n, query: 2 r 8 -> 2 r n", kind="bias")
    assert subject.heads == 2
    with pytest.raises(SignatureError, match=r"tensor a \(9\) must match"):
        subject_of(ChosenByQueries, "r = r, n = n, query: 2 r 9 -> 2 r n", kind="bias")


class KeysAndValuesInOne(nn.Module):
    """Attention whose first argument is a context of twice the features."""

    def __init__(self, mixed: int = 0) -> None:
        super().__init__()
        self.mixed = mixed

    def forward(self, key_value: Tensor, query: Tensor) -> Tensor:
        k, v = key_value.chunk(2, -1)
        q = query + self.mixed * query[:1]
        out: Tensor = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        return out


def _rows_apart(mixed: int) -> str:
    line = "key_value: B n 32 tokens, query: B r 16 -> B r 16"
    subject: Any = subject_of(KeysAndValuesInOne, line, kind="attention", settings={"mixed": mixed})
    assert subject.embed == 16
    (seen,) = examine(subject, (Draw(),), ("rows-of-batch-apart",))
    return seen.verdict


def test_features_are_those_of_queries_where_a_context_has_others() -> None:
    assert _rows_apart(0) == "holds"
    assert _rows_apart(1) == "broken"


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    angle = positions[..., None] * 0.5 ** torch.arange(6)
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def test_a_number_of_three_axes_beside_positions_is_that_of_heads() -> None:
    subject: Any = subject_of(rotated, "x: 2 n 12, positions: n positions -> x")
    assert (subject.heads, subject.width) == (2, 12)


def of_three(x: Tensor) -> Tensor:
    assert x.shape[0] == 3
    return x * x.shape[-1]


def test_a_number_before_tokens_alone_is_that_of_rows_side_by_side() -> None:
    subject: Any = subject_of(of_three, "x: 3 n 12 -> 3 n 12")
    x = torch.randn(2, 4, 36)
    assert subject.embed == 36
    assert torch.allclose(subject.call(x), 12 * x)
    with pytest.raises(SignatureError, match="AssertionError"):
        subject_of(of_three, "x: 2 n 12 -> 2 n 12")


def causal_and_reversed(x: Tensor) -> Tensor:
    """The first row is a mean of earlier tokens, the second one of later tokens."""
    first, second = x
    sums = torch.stack((first.cumsum(0), second.flip(0).cumsum(0).flip(0)))
    return sums / (1 + torch.arange(x.shape[1]))[:, None]


def causal_twice(x: Tensor) -> Tensor:
    return x.cumsum(1) / (1 + torch.arange(x.shape[1]))[:, None]


def faults_that_cancel(x: Tensor) -> Tensor:
    """Later tokens reach both rows: not their mean with weights 1/3 and 2/3."""
    later = x[0].mean(0, keepdim=True)
    return causal_twice(x) + torch.stack((2 * later, -later))


def fault_between_rows(x: Tensor) -> Tensor:
    """Later tokens reach the first row where the rows have different tokens."""
    later = x.mean(1, keepdim=True)
    return causal_twice(x) + torch.stack((later[0] - later[1], 0 * later[0]))


def test_every_row_of_a_fixed_number_is_looked_at() -> None:
    faults = (causal_and_reversed, faults_that_cancel, fault_between_rows)
    for code, verdict in ((causal_twice, "holds"), *((one, "broken") for one in faults)):
        subject = with_mask(subject_of(code, "x: 2 n E -> 2 n E", "layer"), "attention:causal=true")
        (seen,) = examine(subject, (Draw(),), ("causal",))
        assert seen.verdict == verdict
        found = {one.verdict for one in prove(subject, ("causal",)).findings}
        assert ("holds" in found) == (verdict == "holds")


def means(x: Tensor) -> Tensor:
    return torch.linspace(-1, 1, 3)[:, None] * x.mean(1, keepdim=True)


def means_and_ends(x: Tensor) -> Tensor:
    """The order of tokens changes both of the first rows: not their mean with weights 1 and 2."""
    ends = x[:, :1] - x[:, -1:]
    return means(x) + torch.cat((2 * ends, -ends, 0 * ends), 1)


def test_every_row_that_comes_back_is_looked_at() -> None:
    for code in (means, means_and_ends):
        subject = subject_of(code, "x: B n E -> B 3 E", "layer")
        (seen,) = examine(subject, (Draw(),), ("permutation",))
        assert (seen.verdict == "holds") == (code is means)
    assert subject_of(means, "x: B n E -> B 3 E", "attention").embed == 16  # type: ignore[attr-defined]


def test_few_features_are_features() -> None:
    assert subject_of(lambda x: 2 * x, "x: B n 3 -> B n 3", name="f").embed == 3  # type: ignore[attr-defined]
    made: Any = subject_of(
        lambda places: torch.stack((places.sin(), places.cos()), -1), "places: n positions -> n 2"
    )
    assert made.width == 2
    call, sizes = in_letters(parse("x: B n 3, y: 1 n 1 -> x"))
    assert (str(call), sizes) == ("x: B n E, y: 1 n 1 -> x", {"embed": 3})


# tables of a width that the code does not take are told, where broadcasting lets them pass


def rotate_half(x: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((-v, u), -1)


def of_channels(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As many channels are rotated as the tables have columns."""
    rotated, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    return torch.cat((rotated * cos + rotate_half(rotated) * sin, rest), -1)


def of_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Of wider tables the first columns are taken, one for each pair."""
    half = x.shape[-1] // 2
    cos, sin = cos[..., :half], sin[..., :half]
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)


def of_neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Of wider tables every other column is taken."""
    step = 2 if cos.shape[-1] == x.shape[-1] else 1
    cos, sin = cos[..., ::step], sin[..., ::step]
    u, v = x[..., ::2], x[..., 1::2]
    return torch.stack((u * cos - v * sin, u * sin + v * cos), -1).flatten(-2)


def stretching(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A fault: half of the channels rotate, and lengths change, whatever the tables are."""
    half = x.shape[-1] // 2
    u, v = x[..., :half], x[..., half:]
    return torch.cat((u * cos[..., :half] + 2 * u * sin[..., :half], v), -1)


LINE = "x: B H n D, cos: n {0}, sin: n {0} -> x"
WHOLE, HALF = LINE.format("D"), LINE.format("D/2")


def test_halves_that_are_taken_for_whole_tables_are_told() -> None:
    told = subject_of(of_channels, HALF)
    assert "4 of 8 channels rotate, as many as the tables have numbers" in told.adapted
    assert "with D in place of D/2, 8 rotate" in told.adapted
    assert "channels rotate, as many" not in subject_of(of_channels, WHOLE).adapted


@pytest.mark.parametrize(
    ("code", "words"), [(of_pairs, "the first half"), (of_neighbours, "every other number")]
)
def test_columns_that_are_not_read_are_told(code: object, words: str) -> None:
    told = subject_of(code, WHOLE)
    for name in ("cos", "sin"):
        assert re.search(rf"only {words}[^;]* of each row of {name} is read", told.adapted)
    assert any("is read: if the code takes one number" in one for one in told.conditions)
    assert "is read: if the code takes one number" not in subject_of(code, HALF).adapted


def test_of_a_fault_that_no_width_mends_nothing_is_told() -> None:
    assert "channels rotate, as many" not in subject_of(stretching, HALF).adapted


# a `Program`: code with its signature beside it, wherever code is taken


CALL = "x: B n H D, first: n 1 D/2 cos, second: n 1 D/2 sin -> x"
FILE = f'''
import torch
import attnproof

@attnproof.program("{CALL}")
def told(x, first, second):
    """Nothing in its names says how it is called."""
    u, v = x.chunk(2, -1)
    return torch.cat((u * first - v * second, u * second + v * first), -1)
'''


def plain(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((u * first - v * second, u * second + v * first), -1)


@attnproof.program(CALL)
def told(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """It rotates."""
    return plain(x, first, second)


@attnproof.program(CALL)
def wrong(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return plain(x, first, -first + second)


def test_it_is_called_as_it_was() -> None:
    given = torch.randn(2, 3, 4, 8), torch.ones(3, 1, 4), torch.zeros(3, 1, 4)
    assert torch.equal(told(*given), plain(*given))
    assert torch.equal(told(given[0], second=given[2], first=given[1]), plain(*given))
    assert list(inspect.signature(told).parameters) == ["x", "first", "second"]
    assert (told.name, told.__doc__) == ("told", "It rotates.")


def test_checks_and_assertions_take_it() -> None:
    record = check_rotary(told, ["norm", "relative"], methods=["measured"])
    assert [law.verdict for law in record.laws] == ["measured"] * 2
    assert "first: n 1 D/2 cos" in record.adapted
    assert record.file == __file__
    assert record.law("norm").again.startswith(f"attnproof check {__file__}::told ")
    with pytest.raises(CodeBreaksLaw, match="norm"):
        assert_rotary(wrong, ["norm"], methods=["measured"])
    with pytest.raises(SignatureError):
        check_rotary(told, ["norm"], call="x: B n H D, third: n 1 D/2 sin -> x")


def test_a_module_is_one_too() -> None:
    class Doubled(nn.Module):
        def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
            return torch.softmax(a @ b.mT / a.shape[-1] ** 0.5, -1) @ c

    call = "a: B H r D query, b: B H n D key, c: B H n D value -> B H r D"
    for code in (Doubled(), Doubled):
        assert_attention(attnproof.Program(code, call), ["order-of-keys"], methods=["measured"])
    record = check_attention(
        attnproof.Program(Doubled(), call), ["order-of-keys"], methods=["measured"]
    )
    assert record.name == "Doubled"


def test_the_command_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "rope.py", tmp_path / "found.json"
    file.write_text(FILE, encoding="utf-8")
    assert main(["check", f"{file}::told", "--law", "norm", "--json", str(out)]) == 0
    (one,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    assert (one.kind, one.file) == ("rotary", str(file))
    assert "first: n 1 D/2 cos" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("call", ["x: B n H D -> ", "y: B n H D, first: n 1 D/2 cos -> y"])
def test_what_cannot_be_one_is_refused_where_it_is_written(call: str) -> None:
    with pytest.raises(SignatureError):
        attnproof.Program(plain, call)


def test_the_package_stays_light(root: Path) -> None:
    code = "import sys, attnproof; dir(attnproof); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
