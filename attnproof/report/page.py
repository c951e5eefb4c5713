"""What every page shares: where it stands, templates, style, the one script, how it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateNotFound

from ..document import SIGNS
from ..evidence_words import (
    derivation,
    derived_line,
    exact_lines,
    nearest,
    not_applied,
    place_of,
    policy_lines,
    sides_latex,
)
from ..symbolic.latex import NOTATION
from . import view, words
from .drawing import ratio_bar
from .fonts import MATH_FACES, TEXT_FACES, MissingAsset, asset, face_css
from .formula import formula_html
from .words import conclusion, inputs

DEFINITIONS = "definitions.html"
GROWTHS = "scale.html"
ENCODINGS = "encodings"
"""The folder of the pages of encodings, where they stand beside theorems."""


def slug(name: str) -> str:
    """A name as part of an address.

    >>> slug("a/b c-1")
    'a_b_c-1'
    """
    return re.sub(r"[^\w-]", "_", name)


def theorem_file(theorem: str) -> str:
    """The page of a theorem."""
    return f"theorem/{slug(theorem)}.html"


def definition_place(name: str) -> str:
    """A definition, among the others."""
    return f"{DEFINITIONS}#{slug(name)}"


def document_file(document: str) -> str:
    """The page of a document."""
    return f"document-{slug(document)}.html"


def encoding_file(encoding: str) -> str:
    """The page of an encoding, in the folder of its table."""
    return f"encoding-{slug(encoding)}.html"


LARGE = 480_000  # bytes of a page; beyond that something is told in short


class ReportError(OSError):
    """The report could not be written; the text says where and what to do."""


def assets() -> dict[str, str]:
    """The files beside the pages, by name; everything that a page loads is among them.

    Fonts stand inside the style sheets: some browsers load none from a folder.  The one for
    formulas has a sheet of its own, so that a page without formulas need not wait for it.
    """
    sheets = [asset(name).decode("utf-8") for name in ("page.css", "encodings.css")]
    return {
        "assets/report.css": "\n".join([face_css(TEXT_FACES), *sheets]),
        "assets/math.css": face_css(MATH_FACES),
        "assets/report.js": asset("report.js").decode("utf-8"),
    }


@cache
def environment() -> Environment:
    """The templates, with what they may call; what a page is about, it is told by itself."""
    made = Environment(
        loader=PackageLoader("attnproof.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        math=formula_html,
        display=lambda latex: formula_html(latex, display=True),
        given=view.given_html,
        sizes=view.sizes_html,
        scientific=view.scientific,
        linked=words.linked,
        prose=words.prose,
        paragraphs=words.paragraphs,
        minus=words.minus,
        breakable=words.breakable,
        sentence=lambda text: text[:1].upper() + text[1:],
        slug=lambda word: word.replace(" ", "-"),
        step=lambda latex: formula_html(latex, large=True),
        bar=ratio_bar,
        subject=view.subject_title,
        theorem=theorem_file,
        place=definition_place,
        file=lambda page: document_file(page.document.id),
    )
    made.globals.update(
        signs=SIGNS,
        derivations=view.derivations,
        reasons=view.reasons,
        measured=view.measured,
        distributions=view.distributions,
        steps=view.steps,
        derivation=derivation,
        derived_line=derived_line,
        sides_latex=sides_latex,
        exact_lines=exact_lines,
        nearest=nearest,
        place_of=place_of,
        policy_lines=policy_lines,
        not_applied=not_applied,
        tally=view.tally,
        assumptions=view.assumptions,
        readings=view.readings,
        limits=view.limits,
        statuses=view.statuses,
        notation=NOTATION,
        inputs=inputs,
        conclusion=conclusion,
        definitions=DEFINITIONS,
    )
    return made


def rendered(name: str, root: str = "", **more: object) -> str:
    """A template, filled; ``root`` leads from the page to the folder of the report.

    Raises :class:`MissingAsset` if it is not there.
    """
    try:
        template = environment().get_template(name)
    except TemplateNotFound as error:
        raise MissingAsset(
            f"the report needs its template {error.name}, which is not there; the installation "
            "is incomplete: install attnproof again"
        ) from error
    return template.render(root=root, **more)


def written(pages: Mapping[str, str], folder: Path) -> Path:
    """Write pages, and the files beside them, by their names; the path of ``index.html``.

    Folders are made if need be.  A reader sees an old page or a new one, never half of it.
    Raises :class:`ReportError` when the folder cannot be made or written to.
    """
    first = folder / "index.html"
    try:
        for name, text in {**assets(), **pages}.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            partial = place.with_name(f".{place.name}.partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(place)
    except OSError as error:
        raise ReportError(
            error.errno,
            f"wanted to write the report to {first}, but {error.strerror or error}; "
            "choose a folder you may write to with --html",
        ) from error
    return first
