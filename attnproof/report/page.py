"""The report of a run: one page of theorems, and one for each document; nothing is fetched."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment

from ..records import Results
from ..terminal import compared
from . import documents, templating, view
from .templating import rendered, written


def _environment(results: Results) -> Environment:
    """The templates, with what every page of a run knows."""
    environment = templating.environment()
    environment.filters["file"] = lambda page: documents.file_name(page.document)
    pages = list(documents.pages(results))
    environment.globals.update(
        mends=documents.MENDS, results=results, pages=pages,
        homes={e.claim.id: documents.file_name(p.document) for p in pages for e in p.entries},
    )  # fmt: skip
    return environment


def render(results: Results) -> str:
    """The first page.  Raises :class:`MissingAsset` if a file of the package is missing."""
    return _first(_environment(results), results)


def _first(environment: Environment, results: Results) -> str:
    return rendered(
        environment,
        "index.html.j2",
        counts=view.counts(results),
        compared=compared(results),
        subjects=view.subjects(results),
        ledger=documents.ledger(list(documents.pages(results))),
    )


def render_documents(results: Results) -> dict[str, str]:
    """The page of each document, by the name of its file."""
    return _of_documents(_environment(results), results)


def _of_documents(environment: Environment, results: Results) -> dict[str, str]:
    return {
        documents.file_name(page.document): rendered(environment, "document.html.j2", page=page)
        for page in documents.pages(results)
    }


def write_report(results: Results, directory: Path) -> Path:
    """Write ``index.html`` and the pages of the documents, and return the path of the first.

    Raises :class:`ReportError` when the directory cannot be made or written to.
    """
    environment = _environment(results)
    pages = {**_of_documents(environment, results), "index.html": _first(environment, results)}
    return written(pages, directory)
