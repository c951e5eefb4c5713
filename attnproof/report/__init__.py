"""The report: one self-contained page that a person reads."""

from .fonts import MissingAsset
from .page import ReportError, render, write_report

__all__ = ["MissingAsset", "ReportError", "render", "write_report"]
