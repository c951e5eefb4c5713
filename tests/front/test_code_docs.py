"""docs/code.md is run: what it declares is declared, what it writes down can be called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from attnproof.programs.declarations import parse


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "docs" / "code.md").read_text(encoding="utf-8")


def test_every_example_of_a_declaration_is_one(text: str) -> None:
    rows = re.findall(r"^\| (`\w+:`(?:, `\w+:`)*) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for names, examples in rows:
        for name in re.findall(r"`(\w+:)`", names):
            written = re.findall(r"`([^`]+)`", examples)
            assert written, names
            for example in written:
                parse(f"{name}{example}")
    with pytest.raises(ValueError, match="rope declares"):
        parse("rope:name=alibi")


def test_the_call_that_is_written_down_is_one(text: str) -> None:
    (block,) = re.findall(r"```python\n(from attnproof\.programs.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"my_rope": lambda x, _: x, "my_shift": lambda keys, _: keys}
    exec(block, names)
    x = torch.randn(2, 3, 4, 64)
    assert torch.equal(names["mine"].rotate(x, torch.arange(4)), x)
    assert torch.equal(names["mine"].shift(x, 2), x)


def test_the_links_lead_somewhere(text: str, root: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    for link in links:
        assert (root / "docs" / link).exists(), link
