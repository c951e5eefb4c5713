"""The report of a run: one page of theorems, and one for each document; nothing is fetched."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateNotFound
from markupsafe import Markup

from ..records import Results
from ..symbolic.latex import NOTATION
from . import documents, view, words
from .figure import ratio_dot
from .fonts import MissingAsset, asset, face_css
from .formula import formula_html
from .values import conclusion, inputs

__all__ = ["ReportError", "render", "render_documents", "write_report"]


class ReportError(OSError):
    """The report could not be written; the text says where and what to do."""


def _environment(results: Results) -> Environment:
    """The templates, with what they may call, and what every page of a run knows."""
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
        linked=words.linked,
        prose=words.prose,
        paragraphs=words.paragraphs,
        minus=words.minus,
        slug=lambda word: word.replace(" ", "-"),
        file=lambda page: documents.file_name(page.document),
        step=lambda latex: formula_html(latex, large=True),
        dot=ratio_dot,
    )
    pages = list(documents.pages(results))
    environment.globals.update(
        signs=view.SIGNS, derivations=view.derivations, measured=view.measured, steps=view.steps,
        tally=view.tally, assumptions=view.assumptions, readings=view.readings,
        statuses=view.statuses, notation=NOTATION, inputs=inputs, conclusion=conclusion,
        mends=documents.MENDS, results=results, pages=pages,
        homes={e.claim.id: documents.file_name(p.document) for p in pages for e in p.entries},
        style=Markup(face_css() + "\n" + asset("page.css").decode("utf-8")),
    )  # fmt: skip
    return environment


def _rendered(environment: Environment, name: str, **more: object) -> str:
    try:
        template = environment.get_template(name)
    except TemplateNotFound as error:
        raise MissingAsset(
            f"the report needs its template {error.name}, which is not there; the installation "
            "is incomplete: install attnproof again"
        ) from error
    return template.render(**more)


def render(results: Results) -> str:
    """The first page.  Raises :class:`MissingAsset` if a file of the package is missing."""
    return _first(_environment(results), results)


def _first(environment: Environment, results: Results) -> str:
    return _rendered(
        environment,
        "index.html.j2",
        counts=view.counts(results),
        subjects=view.subjects(results),
        ledger=documents.ledger(list(documents.pages(results))),
    )


def render_documents(results: Results) -> dict[str, str]:
    """The page of each document, by the name of its file."""
    return _of_documents(_environment(results), results)


def _of_documents(environment: Environment, results: Results) -> dict[str, str]:
    return {
        documents.file_name(page.document): _rendered(environment, "document.html.j2", page=page)
        for page in documents.pages(results)
    }


def write_report(results: Results, directory: Path) -> Path:
    """Write ``index.html`` and the pages of the documents, and return the path of the first.

    The directory is made if need be.  A reader sees an old page or a new one, never half of it.
    Raises :class:`ReportError` when the directory cannot be made or written to.
    """
    environment = _environment(results)
    pages = {**_of_documents(environment, results), "index.html": _first(environment, results)}
    first = directory / "index.html"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            partial = directory / f".{name}.partial"
            partial.write_text(text, encoding="utf-8")
            partial.replace(directory / name)
    except OSError as error:
        raise ReportError(
            error.errno,
            f"wanted to write the report to {first}, but {error.strerror or error}; "
            "choose a folder you may write to with --html",
        ) from error
    return first
