"""Numbers that stand in the source of some code: where it may change what it does.

Of a branch that is taken while tracing without a word (``isinstance(n, int) and n > 600``, a table
under the key ``"777"``) its number stands in the code, in what the code keeps, or in a global that
it names.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import isqrt
from types import CodeType, FunctionType
from typing import Any

from .reach import CONTAINERS, DIGITS, FOREIGN, TEXT, codes_in, is_foreign, reached

SUMMED = 8  # numbers of which any two are added
KINDS = frozenset(("cuda", "cpu", "mps", "xpu"))
DEVICES = frozenset(("is_cuda", "is_cpu", "is_mps", "is_xpu"))  # attributes that tell one


def derived(numbers: Sequence[int], most: int) -> list[int]:
    """What has a number for its square, double, third or half, and sums of two, up to a bound.

    >>> derived([7, 20], 100)
    [2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 27, 30, 39, 40, 41]
    """
    found: set[int] = set()
    for number in map(abs, numbers):
        for near in (isqrt(number), number // 3, number // 2, 2 * number):
            found |= {near - 1, near, near + 1}
    named = [n for n in numbers if n > 1][:SUMMED]
    found |= {a + b for a, b in combinations(named, 2)} | {a + a // 2 for a in named}
    return sorted(n for n in found if 1 < n <= most)


def numbers_in(
    roots: Iterable[Any], *, texts: bool = True, ran: Collection[CodeType] | None = None
) -> list[int]:
    """The whole numbers in the code of some functions and modules, and in what these hold.

    ``texts``: those that are written in texts as well, and how long these are.  ``ran``: the codes
    that ran, if that is known.

    >>> numbers_in([eval('lambda x: x if x.shape[0] > 601 else x["777"]', {"__name__": "model"})])
    [0, 601, 777, 3]
    """
    return numbers_of(constants_in(roots, texts=texts, ran=ran))


def numbers_of(constants: Iterable[float]) -> list[int]:
    """The whole numbers among some constants, and those below the others: n > 64.5 is n > 64."""
    return list(dict.fromkeys(int(n) for n in constants if n == n and abs(n) < 1 << 40))


def constants_in(
    roots: Iterable[Any], *, texts: bool = True, ran: Collection[CodeType] | None = None
) -> list[float]:
    """The numbers in the code of some functions and modules, and in what these hold.

    Those of the functions themselves come before those of what they call and hold; how many
    entries a list or a text has comes last.  ``ran``: the codes that ran, if that is known.
    """
    found: dict[float, None] = {}
    counts: dict[float, None] = {}
    for one in reached(roots, ran):
        if isinstance(one, int | float):
            found[one] = None
        elif isinstance(one, str | bytes) and texts:
            text = one[:TEXT] if isinstance(one, str) else ""
            found |= dict.fromkeys(map(int, DIGITS.findall(text)))
            counts |= dict.fromkeys([len(one)] if len(one) < TEXT else [])
        elif isinstance(one, CONTAINERS):
            counts[len(one)] = None
    return list(found | counts)


def asks_device(roots: Iterable[Any]) -> bool:
    """Whether the code of some functions and modules asks on which device it runs.

    >>> asks_device([eval('lambda x: x if x.is_cuda else -x', {"__name__": "model"})])
    True
    """
    for one in reached(roots):
        for code in codes_in(one.__code__) if isinstance(one, FunctionType) else ():
            kinds = "type" in code.co_names and KINDS & {
                c for c in code.co_consts if isinstance(c, str)
            }
            if not is_foreign(one) and (kinds or DEVICES & {*code.co_names}):
                return True
    return False


def functions_in(
    roots: Iterable[Any], *, ran: Collection[CodeType] | None = None
) -> list[FunctionType]:
    """The functions among some functions and modules and what these hold.

    ``ran``: the codes that ran, if that is known.
    """
    return [one for one in reached(roots, ran) if isinstance(one, FunctionType)]


def state_of(roots: Iterable[Any]) -> list[Any]:
    """The numbers and texts in some functions and modules and what these hold, and their counts.

    >>> code = eval("lambda: kept.append(1)", {"kept": [], "__name__": "model"})
    >>> before, _ = state_of([code]), code()
    >>> before == state_of([code])
    False
    """
    return [
        one if isinstance(one, int | float | str | bytes) else len(one)
        for one in reached(roots)
        if isinstance(one, (int, float, str, bytes, *CONTAINERS))
    ]


def kept_in(roots: Iterable[Any]) -> list[FunctionType]:
    """The functions among these of which ``functools.lru_cache`` keeps what they gave."""
    kept = (one for one in reached(roots) if isinstance(one, type(_kept)))
    return [one.__wrapped__ for one in kept if isinstance(one.__wrapped__, FunctionType)]


@lru_cache(maxsize=1)
def _kept() -> None:
    """Something that is kept: its type has no public name."""


def is_own(names: Mapping[str, Any]) -> bool:
    """Whether global names are those of a module of the user's."""
    return str(names.get("__name__", "")).split(".")[0] not in FOREIGN


def is_standard(names: Mapping[str, Any]) -> bool:
    """Whether global names are those of a module of the standard library."""
    name = str(names.get("__name__", "")).split(".")[0]
    return name in sys.stdlib_module_names and name != "__main__"
