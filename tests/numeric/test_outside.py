"""Files of users that are imported: their text as it is now."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from attnproof.numeric.file_imports import imported


def test_a_file_that_was_changed_within_a_second_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    for text in ("x + y", "x - y"):  # of one length, at one time: what is stored would be taken
        path.write_text(f"told = {text!r}\n", encoding="utf-8")
        os.utime(path, (10**9, 10**9))
        assert imported(path, "p_").told == text


def test_what_is_no_python_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("told = 1\n", encoding="utf-8")
    with pytest.raises(ImportError, match=r"mine\.txt is not a Python file"):
        imported(path, "p_")
