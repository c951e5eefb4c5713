"""The benchmarks' tables become Markdown with nothing lost, and say where they were made."""

from __future__ import annotations

import sys

import pytest
from rich.table import Table

from benchmarks.__main__ import main
from benchmarks.markdown import page, written


def _table() -> Table:
    table = Table("way", "forwards", title="Cost")
    table.add_row("direct", "2.0")
    table.add_row("a|b", "3.1")
    return table


def test_a_table_in_markdown_has_every_cell() -> None:
    assert written(_table()).splitlines() == [
        "## Cost",
        "",
        "| way | forwards |",
        "| --- | --- |",
        "| direct | 2.0 |",
        "| a\\|b | 3.1 |",
    ]


def test_a_page_says_how_where_and_when_it_was_made() -> None:
    text = page("Benchmarks", "python -m benchmarks peers", [_table()])
    assert text.startswith("# Benchmarks\n\nMade by `python -m benchmarks peers` on 20")
    assert "processors, torch 2." in text
    assert text.endswith("| a\\|b | 3.1 |\n")


def test_an_unknown_table_is_refused_with_the_names_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "pears"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "pears: there are start-up, catalogue, gate, sympy" in capsys.readouterr().err
