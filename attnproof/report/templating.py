"""What every page is made with: the templates, what they may call, and how files are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateNotFound
from markupsafe import Markup

from ..evidence_words import (
    derivation,
    derived_line,
    exact_lines,
    nearest,
    not_applied,
    policy_lines,
    sides_latex,
)
from ..symbolic.latex import NOTATION
from . import view, words
from .figure import ratio_dot
from .fonts import MissingAsset, asset, face_css
from .formula import formula_html
from .values import conclusion, inputs


class ReportError(OSError):
    """The report could not be written; the text says where and what to do."""


def environment(*sheets: str) -> Environment:
    """The templates, with what they may call; ``sheets`` are style sheets beside the page's own."""
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
        sentence=lambda text: text[:1].upper() + text[1:],
        slug=lambda word: word.replace(" ", "-"),
        step=lambda latex: formula_html(latex, large=True),
        dot=ratio_dot,
    )
    style = [face_css(), *(asset(name).decode("utf-8") for name in ("page.css", *sheets))]
    made.globals.update(
        signs=view.SIGNS, derivations=view.derivations, measured=view.measured, steps=view.steps,
        derivation=derivation, derived_line=derived_line, sides_latex=sides_latex,
        exact_lines=exact_lines,
        nearest=nearest, policy_lines=policy_lines,
        not_applied=not_applied, tally=view.tally, assumptions=view.assumptions,
        readings=view.readings, limits=view.limits, statuses=view.statuses, notation=NOTATION,
        inputs=inputs, conclusion=conclusion, style=Markup("\n".join(style)),
    )  # fmt: skip
    return made


def rendered(made: Environment, name: str, **more: object) -> str:
    """A template, filled.  Raises :class:`MissingAsset` if it is not there."""
    try:
        template = made.get_template(name)
    except TemplateNotFound as error:
        raise MissingAsset(
            f"the report needs its template {error.name}, which is not there; the installation "
            "is incomplete: install attnproof again"
        ) from error
    return template.render(**more)


def written(pages: Mapping[str, str], folder: Path) -> Path:
    """Write pages by the names of their files; the path of ``index.html``.

    The folder is made if need be.  A reader sees an old page or a new one, never half of it.
    Raises :class:`ReportError` when the folder cannot be made or written to.
    """
    first = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            partial = folder / f".{name}.partial"
            partial.write_text(text, encoding="utf-8")
            partial.replace(folder / name)
    except OSError as error:
        raise ReportError(
            error.errno,
            f"wanted to write the report to {first}, but {error.strerror or error}; "
            "choose a folder you may write to with --html",
        ) from error
    return first
