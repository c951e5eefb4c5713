"""Hypotheses that several statements share."""

from __future__ import annotations

from typing import Any

__all__ = ["nothing"]


def nothing() -> list[Any]:
    """No hypothesis: for a twin that drops those of its theorem."""
    return []
