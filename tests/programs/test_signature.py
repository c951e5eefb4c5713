"""The language of calls: what is read is what is written, and what is wrong is told."""

from __future__ import annotations

import pytest
import torch

from attnproof.programs.grammar import parse
from attnproof.programs.layout import laid_out, read_back
from attnproof.programs.signature import SignatureError
from attnproof.programs.subject import kind_of

SAME = [
    "q: B H n D, k: B G n D, cos: n D, sin: n D -> q, k",
    "x: B n E, mask: B n keep -> B n E",
    'x: B n (H D), unsqueeze_dim = 1, order = "bhtd" -> out: B n (H D), _',
    "k: B (n + m) D, seq_len = n, f: (2 n + 1) D/2 cis -> k",
    "x: B C (h w), p: 2 n positions -> {out: B C (h w), weights: B H n n}",
    "x: n 1 D, rope = (cos: 1 n D/2, sin: 1 n D/2) -> x",
    "q_len = r, k_len = n -> H r n add",
    "-> n D",
    "x: B n D -> x; built with size = n; keys with inverse = True",
    "x: B (4 n) E, pos_emb: 1 (2 n - 1) E offsets, pos: B n E encoding -> B 3 E",
]


@pytest.mark.parametrize("text", SAME)
def test_what_is_written_is_what_was_read(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(text.replace(" ", "  ").replace("-> ", "->")) == parse(text)


def test_lengths_are_sums_and_products() -> None:
    found = parse("x: (H D) (n + m) D/2 (n n + n)/2 3 -> x").arrays[0]
    assert found.shape({"H": 2, "D": 8, "n": 5, "m": 1}) == (16, 6, 4, 15, 3)
    assert found.letters == ("H", "D", "n", "m")
    with pytest.raises(SignatureError, match="a whole number for the axis D/2, got 5/2 at D = 5"):
        found.shape({"H": 2, "D": 5, "n": 5, "m": 1})


WRONG = {
    "x: B n": "without an arrow",
    "x: B n ->": "without a result",
    "x: B n E -> _": "at least one array that is returned",
    "x B n -> x": "wanted NAME: AXES, or NAME = VALUE, got 'x B n'",
    "x: B tokens n -> x": "'tokens' before one",
    "x: B foo -> x": "behind them one of query, key.*; got 'foo'",
    "x: B (n D -> x": "a parenthesis for each one that is opened",
    "x: B (n D)) -> x": "a parenthesis for each one that is opened",
    "x: B () -> x": r"wanted a letter or a number, got \)",
    "x: B n/0 -> x": "a number above 0 behind /, got 0",
    "x: B*n -> x": r"such as B n \(H D\), got '\*n'",
    "x: n, x: B -> x": "each parameter once, got 'x' twice",
    "x: n,, y: n -> x": "two commas with nothing between",
    "x: n, order = bhtd -> x": "got 'bhtd'",
    "x: n -> {B n}": "a key for each value",
    "x: B n D -> x; keys with flag: B n": "NAME = VALUE for keys, got an array flag",
    "x: B n D -> x; keys flag = True": "keys with NAME = VALUE; got 'keys flag = True'",
}


@pytest.mark.parametrize("text", WRONG)
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
