"""The report of a run as one page: no script, nothing fetched, everything inside."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateNotFound
from markupsafe import Markup

from ..records import Results
from ..symbolic.latex import NOTATION
from . import view
from .figure import ratio_dot
from .fonts import MissingAsset, asset, face_css
from .formula import formula_html
from .values import conclusion, inputs

__all__ = ["ReportError", "render", "write_report"]


class ReportError(OSError):
    """The report could not be written; the text says where and what to do."""


def render(results: Results) -> str:
    """The page as text.  Raises :class:`MissingAsset` if a file of the package is missing."""
    environment = Environment(
        loader=PackageLoader("attnproof.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        math=formula_html,
        display=lambda latex: formula_html(latex, display=True),
        given=view.given_html,
        sizes=view.sizes_html,
        scientific=view.scientific,
        linked=view.linked,
        prose=view.prose,
        paragraphs=view.paragraphs,
        minus=view.minus,
        step=lambda latex: formula_html(latex, large=True),
        dot=ratio_dot,
    )
    environment.globals.update(
        signs=view.SIGNS, derivations=view.derivations, measured=view.measured, steps=view.steps,
        used_rules=view.used_rules, assumptions=view.assumptions, readings=view.readings,
        statuses=view.statuses, notation=NOTATION, inputs=inputs, conclusion=conclusion,
    )  # fmt: skip
    try:
        template = environment.get_template("page.html.j2")
    except TemplateNotFound as error:
        raise MissingAsset(
            f"the report needs its template {error.name}, which is not there; the installation "
            "is incomplete: install attnproof again"
        ) from error
    return template.render(
        results=results,
        counts=view.counts(results),
        subjects=view.subjects(results),
        style=Markup(face_css() + "\n" + asset("page.css").decode("utf-8")),
    )


def write_report(results: Results, directory: Path) -> Path:
    """Write ``index.html`` into the directory, which is made if need be, and return its path.

    A reader sees the old page or the new one, never half of it.  Raises :class:`ReportError`
    when the directory cannot be made or written to.
    """
    text = render(results)
    page = directory / "index.html"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        partial = directory / ".index.html.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(page)
    except OSError as error:
        raise ReportError(
            error.errno,
            f"wanted to write the report to {page}, but {error.strerror or error}; "
            "choose a folder you may write to with --html",
        ) from error
    return page
