"""The report: HTML pages on the theorems, on encodings and on each document."""

from .page import MissingAsset, ReportError
from .theorems import render, render_all, write_report

__all__ = ["MissingAsset", "ReportError", "render", "render_all", "write_report"]
