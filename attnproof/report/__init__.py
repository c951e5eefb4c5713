"""The report: self-contained pages that a person reads, of the theorems and of each document."""

from .fonts import MissingAsset
from .page import ReportError, render, render_documents, write_report

__all__ = ["MissingAsset", "ReportError", "render", "render_documents", "write_report"]
