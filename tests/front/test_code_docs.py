"""docs/code.md and signatures.md are run: declarations, calls, signatures, and what is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from attnproof.cli import main
from attnproof.programs.declarations import parse
from attnproof.programs.signatures.grammar import parse as signature
from attnproof.programs.signatures.signature import KINDS, SignatureError
from attnproof.real_code.records import CodesRecord
from attnproof.real_code.running import counting
from tests.front.code_files import CODE, write_code


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


@pytest.mark.parametrize("page", ["code.md", "signatures.md"])
def test_the_links_lead_somewhere(page: str, root: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (root / "docs" / page).read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (root / "docs" / link).exists(), link


@pytest.fixture(scope="module")
def sections(root: Path) -> dict[str, list[str]]:
    """What the first column of each table of docs/signatures.md writes, by section."""
    page = (root / "docs" / "signatures.md").read_text(encoding="utf-8")
    rows = {
        part.partition("\n")[0]: re.findall(r"^\| (`.*?`) \|", part, re.MULTILINE)
        for part in page.split("\n## ")[1:]
    }
    return {
        name: [one for row in found for one in re.findall("`(.*?)`", row)]
        for name, found in rows.items()
        if found
    }


def test_the_page_of_signatures_lists_every_kind(sections: dict[str, list[str]]) -> None:
    assert sections["Kinds"] == sorted(KINDS, key=sections["Kinds"].index)


def test_every_part_of_a_signature_that_is_written_down_is_one(
    sections: dict[str, list[str]],
) -> None:
    letters = [one for one in sections["Axes"] if ":" not in one and "=" not in one]
    assert signature(f"x: {' '.join(letters)} -> x").letters == tuple(letters)
    for one in sections["Axes"]:
        if one not in letters:
            signature(one if "->" in one else f"{one}, y: B n -> y")
    for one in sections["Arguments that are not arrays"]:
        signature(f"{one}, q: B H r D, k: B H n D -> q")
    for one in sections["Results"]:
        signature(f"q: B H n D, k: B H n D {one}")
    for one in sections["More than one call"]:
        signature(f"q: B H n D, cos: n D, sin: n D -> q, cos, sin; {one}")
    with pytest.raises(SignatureError):
        signature("q: B H n D -> q; given size = n")


ALWAYS = CODE.replace('"LATE" in os.environ', "True").replace('print("the file is read")', "")
LAYERS = """
def rope_doubled(x):
    return torch.cat((x, x), -1)
"""
TROUBLE = (
    ("prints", "rope_prints", 0, "it printed"),
    ("changes its inputs", "rope_mutates", 1, "input 1 of rotate is changed by the call"),
    ("returns NaN or infinity", "rope_nan", 1, "is not a finite number"),
    ("is not callable", "number", 2, "cannot be run"),
    ("is not callable", "rope_doubled", 2, " back, got "),
    ("never ends", "rope_exits", 2, "was stopped"),
)


@pytest.mark.parametrize(("begins", "name", "code", "told"), TROUBLE)
def test_trouble_is_told_as_it_is_written(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    begins: str,
    name: str,
    code: int,
    told: str,
) -> None:
    text = (root / "docs" / "code.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {begins}.*$", text, re.MULTILINE)
    assert row.endswith(f"| {code} |" if code else "| as without |")
    target = f"{write_code(tmp_path, ALWAYS + LAYERS)}::{name}"
    assert main(["check", target, "--law", "norm", "--law", "no-mutation"]) == code
    assert told in " ".join(capsys.readouterr().out.split())


def test_what_code_prints_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{write_code(tmp_path, ALWAYS)}::rope_prints"
    out = tmp_path / "found.json"
    asked = ["--law", "norm", "--json", str(out)]
    assert main(["check", target, *asked]) == 0
    (one,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    assert one.printed > 1
    assert one.first_printed == ("a line of the code " * 3).strip()
    shown = capsys.readouterr().out
    assert shown.count("a line of the code a line") == 1
    assert f"it printed {one.printed} lines while it was checked; the first: a line" in shown
    assert main(["check", target.replace("rope_prints", "rope"), *asked]) == 0
    assert "it printed" not in capsys.readouterr().out


def test_lines_are_counted_however_they_are_written(tmp_path: Path) -> None:
    with (tmp_path / "said").open("w", encoding="utf-8") as file:
        said = counting(file.fileno())
        for text in ("\n", "on", "e\ntwo\n \n", "three"):
            said.write(text)
        assert said.told() == {"lines": 3, "first": "one"}
        said.close()
    assert (tmp_path / "said").read_text(encoding="utf-8") == "\none\ntwo\n \nthree"
