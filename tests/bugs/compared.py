"""Two texts with the same words, and numbers that agree to two digits.

Another processor adds in another order, and the third digit of what was measured is another one.
What rounding explains follows from that order: it may be twice as much, or half.
"""

from __future__ import annotations

import math
import re
from itertools import zip_longest

# Not the digits of a name such as P01, nor the hyphen of a word.
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
EXPLAINED = "rounding explains "
NOTHING = 1e-9  # where the sum is 0 on one processor and a rounding on another


def differences(found: str, wanted: str) -> list[str]:
    """The lines that differ in a word, in a count, or in the first two digits of a number."""
    lines = zip_longest(found.splitlines(), wanted.splitlines(), fillvalue="")
    return [f"found:  {a}\nwanted: {b}" for a, b in lines if not _alike(a, b)]


def _alike(here: str, there: str) -> bool:
    if NUMBER.split(here) != NUMBER.split(there):
        return False
    return all(
        (_of_one_size if here[: a.start()].endswith(EXPLAINED) else _near)(a[0], b[0])
        for a, b in zip(NUMBER.finditer(here), NUMBER.finditer(there), strict=True)
    )


def _of_one_size(here: str, there: str) -> bool:
    low, high = sorted((float(here), float(there)))
    return 0 <= high <= 2 * low


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
