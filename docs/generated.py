"""The pages of the site that are written from the code: laws, errata, public names.

``conf.py`` calls :func:`write` before the pages are read.  The report and the cards of encodings,
which take minutes, are made by ``make docs`` where they are not there yet; see the Makefile.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from inspect import cleandoc, isclass, isfunction
from itertools import groupby
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUT = DOCS / "_generated"
RESULTS = OUT / "results.json"

# Pages outside of docs/ that the site has too, and what they are called there.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "_generated/contributing.md",
    "CHANGELOG.md": "_generated/changelog.md",
    "symbolic/README.md": "_generated/kernel.md",
}
KINDS = ("rotary", "attention", "bias", "additive", "mask", "layer")
MENDED = ("false as written", "true under a stated correction")
GROUPS = {  # the modules of public names, by what they are for
    "Encodings": (
        "encoding.base",
        "encoding.declarations",
        "encoding.law",
        "cards.registry",
        "answers.cards",
    ),
    "Statements and theorems": (
        "symbolic.statement",
        "symbolic.claim",
        "symbolic.prove",
        "theorem_runs.catalogue",
        "numeric.check",
    ),
    "Givens": ("symbolic.givens",),
    "Arrays and definitions": (
        "symbolic.array",
        "symbolic.definition",
        "theorems.definitions.attention",
        "theorems.definitions.positions",
        "theorems.definitions.rotary",
    ),
    "Programs": ("programs.loading.program",),
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]*)(#[^)]*)?\)")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |"
        for line in lines
    )


def linked(text: str, here: Path) -> str:
    """A page whose links out of docs/ lead to pages of the site, or are names of files.

    ``here`` is the folder that the links of the text start from; the result stands in docs/.
    """

    def changed(link: re.Match[str]) -> str:
        words, place, part = link[1], link[2], link[3] or ""
        if not place:
            return link[0]
        path = (here / place).resolve()
        if path.is_relative_to(DOCS) and path.is_file():
            return f"[{words}](/{path.relative_to(DOCS)}{part})"
        inside = str(path.relative_to(ROOT))
        if inside in OUTSIDE:
            return f"[{words}](/{OUTSIDE[inside]}{part})"
        name = f"`{inside}`"
        return name if inside.endswith(words.strip("`")) else f"{words} ({name})"

    return _LINK.sub(changed, text)


def laws_of_code() -> str:
    """Every law of code, by the kind of code it is about, with its formula."""
    from attnproof.theorems.laws import laws_of

    parts = [
        "# Laws of code",
        (
            "The laws that `attnproof check` checks, by the kind of code; `attnproof list "
            "--code-laws` prints the same list. Each law is stated once, in `theorems/laws`, and "
            "every method reads it."
        ),
    ]
    for kind in KINDS:
        rows = [(f"`{law.id}`", law.says) for law in laws_of(kind)]
        parts += [f"## {kind.capitalize()}", table(("law", "says"), rows)]
    return "\n\n".join(parts) + "\n"


def laws_of_encodings() -> str:
    """Every law of encodings, with an encoding that obeys it and one that breaks it."""
    from attnproof.laws import LAWS

    parts = [
        "# Laws of encodings",
        (
            "The laws that a card decides. Each is a function of an encoding in `attnproof/laws`, "
            "with a negative control that must be refused. "
            f"{_beside('cards', 'The cards of encodings')}"
        ),
    ]
    for group, laws in groupby(LAWS, lambda law: law.group):
        parts.append(f"## {group[0].upper()}{group[1:]}")
        for law in laws:
            obeyed = f"Obeyed by `{law.example}`" if law.example else "No encoding is known to obey"
            broken = f"; broken by `{law.breaks}`" if law.breaks else ""
            parts += [f"### {law.title}", f"`{law.id}`. {obeyed}{broken}.", _plain(law.words)]
    return "\n\n".join(parts) + "\n"


def errata(results: Path = RESULTS) -> str:
    """The claims of each document that do not hold as they are written, from a run's record."""
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    parts = [
        "# Errata of five documents",
        (
            "The claims of the documents that do not hold as printed, with their corrections. Each "
            "verdict follows from proofs and refutations of the run that made this page; "
            f"[Claims](/claims.md) says how. {_beside('report', 'All proofs and claims')}"
        ),
    ]
    for document in found["documents"]:
        claims = [
            one
            for one in found["claims"]
            if one["document"] == document["id"] and one["verdict"] in MENDED
        ]
        rows = [
            (f"`{c['id']}`", c["place"], c["says"], c["verdict"], c["correction"] or c["mends"])
            for c in claims
        ]
        parts += [
            f"## {document['id']}: {document['title']}",
            table(("claim", "place", "what is printed", "verdict", "what is right"), rows),
        ]
    return "\n\n".join(parts) + "\n"


def public_names() -> dict[str, str]:
    """The public names of attnproof with the module in which each stands."""
    stub = ast.parse((ROOT / "attnproof/__init__.pyi").read_text(encoding="utf-8"))
    return {
        name.name: node.module or ""
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


def reference() -> str:
    """The public names, with signatures and docstrings, for autodoc to fill in."""
    homes = public_names()
    known = [module for modules in GROUPS.values() for module in modules]
    more = {"Others": sorted({home for home in homes.values() if home not in known})}
    parts = ["# Python", "Everything that `import attnproof` offers."]
    for title, modules in (GROUPS | more).items():
        names = [name for module in modules for name, home in homes.items() if home == module]
        if names:
            parts.append(f"## {title}")
        parts += [_documented("attnproof", name) for name in names]
    parts += ["## In tests", "What `attnproof.testing` offers."]
    testing = import_module("attnproof.testing")
    parts += [_documented("attnproof.testing", name) for name in testing.__all__]
    return "\n\n".join(parts) + "\n"


def _beside(folder: str, words: str) -> str:
    """A link to pages that are no part of the site and stand beside it, where they were made."""
    made = (OUT / "extra" / folder / "index.html").exists()
    return f'<a href="../{folder}/index.html">{words}</a> stand beside this site.' if made else ""


def _documented(module: str, name: str) -> str:
    value = getattr(import_module(module), name)
    kind = "class" if isclass(value) else "function" if isfunction(value) else "data"
    return f"```{{eval-rst}}\n.. auto{kind}:: {module}.{name}\n```"


def _plain(text: str) -> str:
    """A docstring as Markdown: code is in one pair of backticks."""
    return cleandoc(text).replace("``", "`")


def outside(name: str) -> str:
    """A page outside of docs/ as a page of the site."""
    return linked((ROOT / name).read_text(encoding="utf-8"), (ROOT / name).parent)


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    made = {Path(place).name: outside(name) for name, place in OUTSIDE.items() if "/" in place}
    made |= {
        "laws-of-code.md": laws_of_code(),
        "laws-of-encodings.md": laws_of_encodings(),
        "reference.md": reference(),
    }
    return made


def write() -> None:
    """Write all pages, those that did not change excepted."""
    made = pages() | ({"errata.md": errata()} if RESULTS.exists() else {})
    OUT.mkdir(exist_ok=True)
    for name, text in made.items():
        file = OUT / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
