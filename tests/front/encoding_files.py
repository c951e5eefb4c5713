"""Files with encodings, as tests write them."""

from __future__ import annotations

from pathlib import Path

# Scores fall with the distance: even and relative are proved, the envelope under a hypothesis.
SMALL = '''"""A small encoding."""

from attnproof import Encoding, at_least, hypothesis, real


class Nearer(Encoding):
    """slope·(m − n)² is added to the score."""

    title = "nearer"
    source = ("a test, https://example.org/nearer",)
    given = {"slope": real()}
    defaults = {"slope": -0.5}

    def bias(self, m, n):
        return self.slope * (m - n) ** 2

    @hypothesis("the slope is at most 0")
    def slope_not_positive(self):
        return [at_least(-self.slope, 0)]
'''

# The same with one line that is wrong in each of three ways.
RAISES = SMALL.replace("return self.slope *", "return 1 // 0 * self.slope *")
NOT_EVEN = SMALL.replace("(m - n) ** 2", "(m - n)")
NOT_MADE = SMALL.replace(
    "    def bias", "    def __init__(self):\n        raise SystemExit('no')\n\n    def bias"
)

# What is asked of it where all laws would take long.
LAWS = ["relative", "even", "odd", "falls-with-distance"]


def write(folder: Path, text: str = SMALL, name: str = "nearer") -> Path:
    """Write NAME.py and give its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path
