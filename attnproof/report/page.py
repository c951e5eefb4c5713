"""What all pages share: their addresses, templates, style and script, and how they are written."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateNotFound

from ..documents.document import SIGNS
from ..symbolic.latex import NOTATION
from ..theorem_runs.evidence_words import (
    derivation,
    derived_line,
    exact_lines,
    nearest,
    not_applied,
    place_of,
    policy_lines,
    sides_latex,
)
from . import view, words
from .drawing import ratio_bar
from .words import conclusion, formula_html, inputs

DEFINITIONS = "definitions.html"
GROWTHS = "scale.html"
ENCODINGS = "encodings"
"""Folder of the pages of encodings in a report that has theorems too."""


def slug(name: str) -> str:
    """Return a name as part of an address.

    >>> slug("a/b c-1")
    'a_b_c-1'
    """
    return re.sub(r"[^\w-]", "_", name)


def theorem_file(theorem: str) -> str:
    """Return the address of the page of a theorem."""
    return f"theorem/{slug(theorem)}.html"


def definition_place(name: str) -> str:
    """Return the address of a definition, among the others."""
    return f"{DEFINITIONS}#{slug(name)}"


def document_file(document: str) -> str:
    """Return the address of the page of a document."""
    return f"document-{slug(document)}.html"


def encoding_file(encoding: str) -> str:
    """Return the address of the page of an encoding, in the folder of its table."""
    return f"encoding-{slug(encoding)}.html"


LARGE = 480_000  # bytes of a page; a larger one is abridged


class ReportError(OSError):
    """The report could not be written; the text says where and what to do."""


def assets() -> dict[str, str]:
    """Return the files beside the pages, by name; they include everything that a page loads.

    Fonts are embedded in the style sheets, as some browsers load none from a folder.  The font for
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
    """Return the templates with what they may call; a page is passed what it is about."""
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
    """Fill a template; ``root`` leads from the page to the folder of the report.

    Raises :class:`MissingAsset` if the template is missing.
    """
    try:
        template = environment().get_template(name)
    except TemplateNotFound as error:
        raise MissingAsset(
            f"the report needs its template {error.name}, which is missing; the installation "
            "is incomplete: reinstall attnproof"
        ) from error
    return template.render(root=root, **more)


def written(pages: Mapping[str, str], folder: Path) -> Path:
    """Write pages, and the files beside them, by name; return the path of ``index.html``.

    Folders are created as needed.  A reader sees an old page or a new one, never half of it.
    Raises :class:`ReportError` if the folder cannot be created or written to.
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


MATH = "stix-two-math.woff2"

Face = tuple[str, str, int, str]
"""Family, style, weight, file."""

TEXT_FACES: tuple[Face, ...] = (
    ("STIX Two Text", "normal", 400, "stix-two-text.woff2"),
    ("STIX Two Text", "italic", 400, "stix-two-text-italic.woff2"),
    ("STIX Two Text", "normal", 600, "stix-two-text-semibold.woff2"),
)
MATH_FACES: tuple[Face, ...] = (("STIX Two Math", "normal", 400, MATH),)


class MissingAsset(RuntimeError):
    """A file of the report's package is missing."""


def asset(name: str) -> bytes:
    """Return a file of ``assets``.  Raises :class:`MissingAsset` with what to do."""
    place = files(__package__) / "assets" / name
    try:
        return place.read_bytes()
    except OSError as error:
        raise MissingAsset(
            f"the report needs {name}, and {place} cannot be read ({error.strerror}); the "
            "installation is incomplete: reinstall attnproof"
        ) from error


def face_css(faces: Iterable[Face]) -> str:
    """Return the @font-face rules, with the fonts embedded."""
    rules = []
    for family, style, weight, name in faces:
        data = b64encode(asset(name)).decode("ascii")
        rules.append(
            f'@font-face{{font-family:"{family}";font-style:{style};font-weight:{weight};'
            f'font-display:swap;src:url(data:font/woff2;base64,{data}) format("woff2");}}'
        )
    return "\n".join(rules)
