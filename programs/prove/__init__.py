"""Proofs about programs: graphs traced by torch.export are read as terms, and laws proved of them."""

from __future__ import annotations

from .proving import Traced, prove

__all__ = ["Traced", "prove"]
