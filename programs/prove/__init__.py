"""Programs that torch.export traced, read as terms: laws proved of the code itself."""

from __future__ import annotations

from .proving import Traced, prove

__all__ = ["Traced", "prove"]
