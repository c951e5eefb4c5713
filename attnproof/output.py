"""Writing what a run found: the record as JSON, the report as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .records import Results


def write_json(results: BaseModel, file: Path) -> Path:
    """The record as JSON; a reader sees the old file or the new one, never half of it."""
    if file.exists() and not file.is_file():  # a pipe, or a device: it is not to be replaced
        file.write_text(results.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return file
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(results.model_dump_json(indent=1) + "\n", encoding="utf-8")
    partial.replace(file)
    return file


def write_html(results: Results, directory: Path) -> Path:
    """The report; the page's libraries are loaded only when one is written."""
    from .report import write_report

    return write_report(results, directory)
