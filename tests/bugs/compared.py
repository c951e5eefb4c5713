"""Two texts with the same words, and numbers that agree to two digits.

Another processor adds in another order, and the third digit of what was measured is another one.
"""

from __future__ import annotations

import math
import re
from itertools import zip_longest

__all__ = ["differences"]

# Not the digits of a name such as P01, nor the hyphen of a word.
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
NOTHING = 1e-9  # where the sum is 0 on one processor and a rounding on another


def differences(found: str, wanted: str) -> list[str]:
    """The lines that differ in a word, in a count, or in the first two digits of a number."""
    lines = zip_longest(found.splitlines(), wanted.splitlines(), fillvalue="")
    return [f"found:  {a}\nwanted: {b}" for a, b in lines if not _alike(a, b)]


def _alike(here: str, there: str) -> bool:
    numbers = list(zip_longest(NUMBER.findall(here), NUMBER.findall(there), fillvalue="nan"))
    return NUMBER.split(here) == NUMBER.split(there) and all(_near(a, b) for a, b in numbers)


def _near(here: str, there: str) -> bool:
    """Whether they are one number; of two counts, such as positions and ids, every digit."""
    a, b = float(here), float(there)
    if a == b or not (_measured(here) or _measured(there)):
        return a == b
    if 0 in (a, b):
        return abs(a - b) < NOTHING
    unit = 10.0 ** (math.floor(math.log10(max(abs(a), abs(b)))) - 1)
    return abs(a - b) <= unit * (1 + 1e-9)


def _measured(number: str) -> bool:
    """Counts are written without a point; a measured 3 is compared with a 3.01 all the same."""
    return "." in number or "e" in number
