"""The site, without building it: every page is reached from the index, and pages can be written.

That links lead somewhere, and that the blocks of pages run, is held by tests/front/test_readme.py.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

import attnproof
from attnproof.laws import LAWS
from attnproof.testing import __all__ as in_tests
from attnproof.theorems.laws import LAWS as CODE_LAWS

_TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def generated(root: Path) -> ModuleType:
    """docs/generated.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("generated", root / "docs" / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(page: Path) -> set[Path]:
    """The pages that the tables of contents of a page name, without their suffix."""
    trees = _TREE.findall(page.read_text(encoding="utf-8"))
    lines = [line for tree in trees for line in tree.splitlines() if line]
    names = [line for line in lines if not line.startswith(":")]
    found: set[Path] = set()
    for name in names:
        if "*" in name:
            found |= {path.with_suffix("") for path in page.parent.glob(f"{name}.md")}
        elif re.fullmatch(r"[\w/-]+", name):
            found.add(page.parent / name)
    return found


def reached(index: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = {index.with_suffix("")}
    while waiting:
        page = waiting.pop()
        found.add(page)
        file = page.with_suffix(".md")
        if file.exists():
            waiting |= entries(file) - found
    return found


def written_by_hand(docs: Path) -> set[Path]:
    built = {"_build", "_generated"}
    return {
        path.with_suffix("")
        for path in docs.rglob("*.md")
        if built.isdisjoint(path.relative_to(docs).parts)
    }


def test_every_page_is_reached_and_every_entry_is_a_page(root: Path, generated: ModuleType) -> None:
    docs = root / "docs"
    made = {docs / "_generated" / name for name in (*generated.pages(), "errata.md")}
    pages = written_by_hand(docs) | {path.with_suffix("") for path in made}
    assert reached(docs / "index.md") == pages


def test_groups_of_public_names_are_modules_that_have_some(generated: ModuleType) -> None:
    grouped = {module for modules in generated.GROUPS.values() for module in modules}
    assert grouped <= set(generated.public_names().values())


def test_a_page_that_is_not_reached_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name in ("a", "b", "more/c", "more/d"):
        (tmp_path / f"{name}.md").write_text("# Title\n", encoding="utf-8")
    index = tmp_path / "index.md"
    index.write_text("```{toctree}\n:caption: One two\n\na\n```\n", encoding="utf-8")
    (tmp_path / "a.md").write_text("```{toctree}\n:glob:\n\nmore/*\n```\n", encoding="utf-8")
    assert written_by_hand(tmp_path) - reached(index) == {tmp_path / "b"}


def broken_tables(text: str) -> Iterator[str]:
    """The lines that were meant as rows, and are not shown, or lose cells."""
    parser, lines = MarkdownIt("commonmark").enable("table"), text.splitlines()
    for token in parser.parse(text):
        if token.map is None:
            continue
        first, *rows = lines[slice(*token.map)]
        if token.type == "paragraph_open" and first.startswith("|"):
            yield first
        elif token.type == "table_open":
            yield from (
                row for row in rows[1:] if "<table>" not in parser.render(f"{row}\n{rows[0]}")
            )


def test_every_table_is_shown_as_one(root: Path) -> None:
    pages = [root / f"{path}.md" for path in written_by_hand(root / "docs")]
    broken = {
        f"{page.name}: {row}"
        for page in (*pages, *root.glob("*.md"))
        for row in broken_tables(page.read_text(encoding="utf-8"))
    }
    assert broken == set()


def test_a_table_that_is_not_shown_and_a_row_that_loses_cells_are_noticed() -> None:
    good = "| a | b |\n| --- | --- |\n| `x\\|y` | 1 |\n"
    assert list(broken_tables(good)) == []
    assert list(broken_tables(good.replace(" --- |\n", "\n"))) == ["| a | b |"]
    assert list(broken_tables(good.replace("\\|", "|"))) == ["| `x|y` | 1 |"]


def test_the_pages_of_laws_have_every_law(generated: ModuleType) -> None:
    code, encodings = generated.laws_of_code(), generated.laws_of_encodings()
    assert [law.id for law in CODE_LAWS if f"| `{law.id}` |" not in code] == []
    assert [law.id for law in LAWS if f"`{law.id}`." not in encodings] == []


def test_the_reference_has_every_public_name(generated: ModuleType) -> None:
    page = generated.reference()
    names = [f"attnproof.{name}" for name in attnproof._HOME]
    names += [f"attnproof.testing.{name}" for name in in_tests]
    assert [name for name in names if page.count(f":: {name}\n") != 1] == []


def test_links_out_of_the_pages_are_names_and_others_stay(
    root: Path, generated: ModuleType
) -> None:
    text = (
        "[a page](code.md#laws), [aten.py](../programs/aten.py), [the table](../programs/aten.py), "
        "[it](../README.md), ![one](report.png), [a site](https://example.org), [here](#part)"
    )
    assert generated.linked(text, root / "docs") == (
        "[a page](/code.md#laws), `programs/aten.py`, the table (`programs/aten.py`), "
        "[it](/index.md), ![one](report.png), [a site](https://example.org), [here](#part)"
    )


def test_errata_are_the_claims_that_do_not_hold(tmp_path: Path, generated: ModuleType) -> None:
    def claim(name: str, verdict: str) -> dict[str, str]:
        told = {"id": name, "document": "000", "place": "first", "says": f"{name} is so."}
        return {**told, "verdict": verdict, "correction": f"{name} is other.", "mends": ""}

    claims = [claim("B1", "false as written"), claim("B2", "true as written")]
    record = {"documents": [{"id": "000", "title": "A post"}], "claims": claims}
    file = tmp_path / "results.json"
    file.write_text(json.dumps(record), encoding="utf-8")
    page = generated.errata(file)
    assert "| `B1` | first | B1 is so. | false as written | B1 is other. |" in page
    assert "B2" not in page
