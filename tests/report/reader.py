"""Pages as tests read them: every element, closed in order, and the text."""

from __future__ import annotations

import posixpath
import re
from html.parser import HTMLParser

from attnproof.report import render_all
from attnproof.theorem_runs.records import Results

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}


class Reader(HTMLParser):
    """Elements with their attributes, and the text of every element that has an id or class."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def theorem_pages(results: Results) -> dict[str, str]:
    """The page of each theorem, by the name of its file."""
    pages = render_all(results)
    return {name: page for name, page in pages.items() if name.startswith("theorem/")}


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def outside(page: str, root: str = "") -> list[str]:
    """What a page would run or fetch, beside the two style sheets and the script of the report."""
    ours = {"stylesheet": {f"{root}assets/report.css", f"{root}assets/math.css"}}
    found = []
    for tag, attributes in read(page).elements:
        if tag == "link" and attributes.get("href") in ours.get(attributes.get("rel") or "", ()):
            continue
        if tag == "script" and attributes == {"src": f"{root}assets/report.js", "defer": None}:
            continue
        if tag in ("script", "link", "iframe", "object", "embed", "base", "img", "style"):
            found.append(tag)
        found += [name for name in attributes if name.startswith("on")]
        for name in ("src", "srcset", "data", "xlink:href", "action", "ping"):
            if name in attributes:
                found.append(f"{name}={attributes[name]}")
        target = attributes.get("href") or ""
        if tag != "a" and target and not target.startswith(("#", "data:image/png;base64,")):
            found.append(f"href={target}")
    return found + re.findall(r"url\((?!#)[^)]*\)|@import", page)


def led_to(pages: dict[str, str]) -> int:
    """How many links there are between pages, each of which must lead to a page and a place."""
    places = {
        name: [a["id"] for _, a in read(page).elements if "id" in a] for name, page in pages.items()
    }
    count = 0
    for name, page in pages.items():
        assert len(places[name]) == len(set(places[name])), name
        reader = read(page)
        assert reader.open == [], name
        for tag, attributes in reader.elements:
            target = attributes.get("href") or ""
            if tag == "link" or not target or target.startswith(("http", "data:")):
                continue
            file, _, place = target.partition("#")
            whole = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), file)) if file else name
            )
            assert whole in pages, (name, tag, target)
            assert not place or place in places[whole], (name, tag, target)
            count += 1
    return count


def words(page: str) -> str:
    """The text of a page, with single spaces."""
    return " ".join("".join(read(page).text).split())
