"""The report: pages that a person reads, of the theorems, of encodings and of each document."""

from .page import MissingAsset, ReportError
from .theorems import render, render_all, render_theorems, write_report

__all__ = ["MissingAsset", "ReportError", "render", "render_all", "render_theorems", "write_report"]
