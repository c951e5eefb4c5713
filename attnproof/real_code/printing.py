"""What code prints: it is handed on, and how many lines there are, and the first, is kept."""

from __future__ import annotations

import io
import os

from .plain import one_line

FIRST = 80  # characters of the first line that are shown


class Counting(io.TextIOWrapper):
    """A stream of text that counts the lines that are written to it; empty ones count for none."""

    lines = 0
    first = ""
    begun = ""  # the start of the line that has no end yet

    def write(self, text: str) -> int:
        """Hand the text on, and count its lines."""
        *ended, begun = (self.begun + text).split("\n")
        self.begun = begun[: 2 * FIRST]
        told = [line for line in ended if line.strip()]
        self.lines += len(told)
        if told and not self.first:
            self.first = one_line(told[0], FIRST)
        return super().write(text)

    def told(self) -> dict[str, int | str]:
        """How many lines there are, and the first of them; one without an end is a line too."""
        more = self.begun.strip()
        return {"lines": self.lines + bool(more), "first": self.first or one_line(more, FIRST)}


def counting(number: int) -> Counting:
    """What is written to a descriptor, line by line, for the process may be killed any time."""
    stream = os.fdopen(os.dup(number), "wb")
    return Counting(stream, encoding="utf-8", errors="replace", line_buffering=True)
