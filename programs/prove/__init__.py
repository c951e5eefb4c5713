"""Prove laws of programs: graphs traced by torch.export are read as terms."""

from __future__ import annotations

from .proving import Traced, parts_of, prove

__all__ = ["Traced", "parts_of", "prove"]
