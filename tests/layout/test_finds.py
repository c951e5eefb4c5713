"""The pages of faults found in published libraries: each runs as it is printed.

The first block of a page is a script, with the fault and with the fix; then stands what it prints.
It is run where the library of that page is installed in the version that the page names, and all in
one process: what takes longest is to load the library.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.cases import each

PAGES = sorted(Path(__file__).parents[2].joinpath("docs", "finds").glob("*.md"))
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
ROUNDED = 2e-4  # of a number that is printed with four digits


def _first(text: str, language: str) -> str:
    """The first block of a language; those of the fix that follow are parts of files."""
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"wanted a block of {language}"
    return str(found[0])


def _named(text: str) -> dict[str, str]:
    """The libraries that a page names with a version, but torch."""
    found = re.findall(r"\b([a-z][a-z-]+) (\d+\.\d+\.\d+)\b", text)
    return {name: number for name, number in found if name != "torch"}


def printed_as(got: str, want: str) -> bool:
    """Whether two printed texts are one, up to the last digit of their numbers."""
    if _NUMBER.sub("#", got.strip()) != _NUMBER.sub("#", want.strip()):
        return False
    pairs = zip(_NUMBER.findall(got), _NUMBER.findall(want), strict=True)
    return all(abs(float(a) - float(b)) <= ROUNDED * max(1, abs(float(b))) for a, b in pairs)


@each(PAGES)
def test_a_find_is_as_it_is_printed_with_its_fix(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    needed = _named(text)
    assert needed, "wanted the library and the version that the page is of"
    for name, number in needed.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        if found != number:
            pytest.skip(f"the page is of {name} {number}, and {found} is installed")
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(_first(text, "python"), {"__name__": "__main__"})
    assert printed_as(out.getvalue(), _first(text, "text"))


def test_each_says_who_is_affected_and_what_upstream_has() -> None:
    assert PAGES
    for page in PAGES:
        text = page.read_text(encoding="utf-8").lower()
        assert "who is affected" in text, page.name
        assert "## upstream" in text, page.name
        assert "## fix" in text, page.name


def test_another_number_or_word_is_not_the_same() -> None:
    assert printed_as("step 0.39317\n", "step 0.39318")
    assert not printed_as("step 0.39317", "step 0.39583")
    assert not printed_as("True 0.1", "False 0.1")
