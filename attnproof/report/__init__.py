"""The report: self-contained pages that a person reads, of the theorems and of each document."""

from .fonts import MissingAsset
from .page import render, render_documents, write_report
from .templating import ReportError

__all__ = ["MissingAsset", "ReportError", "render", "render_documents", "write_report"]
