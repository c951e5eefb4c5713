"""The document on public bugs is what its generator writes."""

from __future__ import annotations

from pathlib import Path

import torch

from .corpus import all_bugs, all_controls
from .table import markdown


def test_the_document_is_what_is_found(root: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        written = markdown()
    finally:
        torch.set_num_threads(before)
    assert (root / "docs" / "bugs.md").read_text() == written
    ids = [one.id for one in all_bugs()] + [one.id for one in all_controls()]
    assert all(f"| {number} |" in written for number in ids)
    assert "not caught" not in written
