"""The numbers in the source of some code, at which it may change its behaviour.

Tracing may take a branch without recording a guard (``isinstance(n, int) and n > 600``, a table
under the key ``"777"``); its number then is in the code, in the code's state, or in a global that
it names.
"""

from __future__ import annotations

import dis
import pickle
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import combinations
from math import isqrt
from types import CodeType, FunctionType, GeneratorType
from typing import Any

from .reach import CONTAINERS, DIGITS, FOREIGN, MAX_CHARACTERS, codes_in, is_foreign, reached

LARGEST_FLOAT = 1e9  # that may be a length
MAX_SUMMANDS = 8  # numbers whose pairwise sums are taken
BOUNDING = frozenset((
    "min", "max", "clamp", "clamp_", "clamp_min", "clamp_max", "clip", "minimum", "maximum",
    "where", "lt", "le", "gt", "ge", "eq", "ne", "less", "greater", "arange", "range",
))  # fmt: skip
CALLS = ("PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "BUILD_TUPLE", "BUILD_LIST")
DEVICE_TYPES = frozenset(("cuda", "cpu", "mps", "xpu"))
DEVICE_FLAGS = frozenset(("is_cuda", "is_cpu", "is_mps", "is_xpu"))


def related_numbers(numbers: Sequence[int], bound: int) -> list[int]:
    """Return numbers related to these, up to a bound.

    Those are the square root, a third, a half and the double of each, with their neighbours, and
    sums of two.

    >>> related_numbers([7, 20], 100)
    [2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 27, 30, 39, 40, 41]
    """
    found: set[int] = set()
    for number in map(abs, numbers):
        for near in (isqrt(number), number // 3, number // 2, 2 * number):
            found |= {near - 1, near, near + 1}
    summands = [n for n in numbers if n > 1][:MAX_SUMMANDS]
    found |= {a + b for a, b in combinations(summands, 2)} | {a + a // 2 for a in summands}
    return sorted(n for n in found if 1 < n <= bound)


def numbers_in(roots: Iterable[Any]) -> list[int]:
    """Return the integers in the code of some functions and modules, and in what these hold.

    Those written in texts count, and the lengths of texts.

    >>> numbers_in([eval('lambda x: x if x.shape[0] > 601 else x["777"]', {"__name__": "model"})])
    [0, 601, 777, 3]
    """
    return numbers_of(constants_in(roots))


def numbers_of(constants: Iterable[float]) -> list[int]:
    """Return the integers among some constants, and the others truncated: n > 64.5 is n > 64."""
    return list(dict.fromkeys(int(n) for n in constants if n == n and abs(n) < 1 << 40))


def lengths_in(
    roots: Iterable[Any], *, texts: bool = True, ran: Collection[CodeType] | None = None
) -> list[int]:
    """Return the numbers in some code that may be lengths; ``texts`` and ``ran`` as below.

    A float may be one only if it is compared, or passed on where something is bounded: not if it is
    an operand, as in ``10000.0 ** x``, an argument of a logarithm, or a stored base, nor if it is
    so large that it stands for infinity.

    >>> source = "lambda x: 10000.0 ** x if x.shape[0] < 8192.0 else x[:4096]"
    >>> [n for n in lengths_in([eval(source, {"__name__": "model"})]) if n > 100]
    [8192, 4096]
    """
    roots = list(roots)
    codes = {code for one in functions_in(roots, ran=ran) for code in codes_in(one.__code__)}
    passed = {n for code in codes for n in _passed_floats(code)}
    found = constants_in(roots, texts=texts, ran=ran)
    return numbers_of(
        n for n in found if isinstance(n, int) or (n in passed and abs(n) < LARGEST_FLOAT)
    )


def _passed_floats(code: CodeType) -> Iterator[float]:
    """Yield the floats in some code that are compared, or passed on where something is bounded."""
    consumers = ["COMPARE_OP", *(CALLS if BOUNDING & {*code.co_names} else ())]
    instructions = [*dis.get_instructions(code)]
    for place, one in enumerate(instructions):
        if one.opname == "LOAD_CONST" and isinstance(one.argval, float):
            above = 1  # values on the stack from this one on
            for later in instructions[place + 1 :]:
                effect = dis.stack_effect(later.opcode, later.arg)
                if effect < 0 and above + effect - 1 < 1:
                    if later.opname in consumers:
                        yield one.argval
                    break
                above += effect


def constants_in(
    roots: Iterable[Any], *, texts: bool = True, ran: Collection[CodeType] | None = None
) -> list[float]:
    """Return the numbers in the code of some functions and modules, and in what these hold.

    Numbers in the functions themselves come before those in what they call and hold; the lengths of
    containers and texts come last.  ``ran``: the code objects that ran, if known.
    """
    found: dict[float, None] = {}
    counts: dict[float, None] = {}
    for one in reached(roots, ran):
        if isinstance(one, int | float):
            found[one] = None
        elif isinstance(one, str | bytes) and texts:
            text = one[:MAX_CHARACTERS] if isinstance(one, str) else ""
            found |= dict.fromkeys(map(int, DIGITS.findall(text)))
            counts |= dict.fromkeys([len(one)] if len(one) < MAX_CHARACTERS else [])
        elif isinstance(one, CONTAINERS):
            counts[len(one)] = None
    return list(found | counts)


def asks_device(roots: Iterable[Any]) -> bool:
    """Whether the code of some functions and modules checks the device on which it runs.

    >>> asks_device([eval('lambda x: x if x.is_cuda else -x', {"__name__": "model"})])
    True
    """
    for one in reached(roots):
        for code in codes_in(one.__code__) if isinstance(one, FunctionType) else ():
            kinds = "type" in code.co_names and DEVICE_TYPES & {
                c for c in code.co_consts if isinstance(c, str)
            }
            if not is_foreign(one) and (kinds or DEVICE_FLAGS & {*code.co_names}):
                return True
    return False


def names_in(roots: Iterable[Any]) -> set[str]:
    """The names that the code of some functions and modules looks up, but those of libraries.

    >>> sorted(names_in([eval('lambda x: x.to(torch.int8)', {"__name__": "model"})]))
    ['int8', 'to', 'torch']
    """
    own = (one for one in reached(roots) if isinstance(one, FunctionType) and not is_foreign(one))
    return {name for one in own for code in codes_in(one.__code__) for name in code.co_names}


def functions_in(
    roots: Iterable[Any], *, ran: Collection[CodeType] | None = None
) -> list[FunctionType]:
    """Return the functions among some functions and modules and what these hold.

    ``ran``: the code objects that ran, if known.
    """
    return [one for one in reached(roots, ran) if isinstance(one, FunctionType)]


def state_of(roots: Iterable[Any]) -> list[Any]:
    """Return what functions and modules hold that calls may change.

    That is numbers and texts, those of small arrays too, the sizes of containers, and how far an
    iterator got.

    >>> code = eval("lambda: kept.append(1)", {"kept": [], "__name__": "model"})
    >>> before, _ = state_of([code]), code()
    >>> before == state_of([code])
    False
    """
    return [told for one in reached(roots) for told in _state(one)]


def _state(one: Any) -> Iterator[Any]:
    if isinstance(one, int | float | str | bytes):
        yield one
    elif isinstance(one, CONTAINERS):
        yield len(one)
    elif isinstance(one, Iterator):
        yield _progress(one)


def _progress(one: Iterator[Any]) -> str | bytes:
    """Return how far an iterator got: what a generator holds, or the pickle of another."""
    if isinstance(one, GeneratorType):
        return repr(one.gi_frame.f_locals) if one.gi_frame else ""
    with warnings.catch_warnings(), suppress(Exception):  # of an iterator without a pickle
        warnings.simplefilter("ignore")  # Python 3.12 warns that iterators will have none
        return pickle.dumps(one)
    return ""


def cached_functions(roots: Iterable[Any]) -> list[FunctionType]:
    """Return the functions among these whose results ``functools`` keeps."""
    every = [*reached(roots)]
    kept = [one.__wrapped__ for one in every if isinstance(one, type(_cached))]
    kept += [one.func for one in every if isinstance(one, cached_property)]
    return [one for one in kept if isinstance(one, FunctionType)]


@lru_cache(maxsize=1)
def _cached() -> None:
    """Provide the type of cached functions, which has no public name."""


def is_own(names: Mapping[str, Any]) -> bool:
    """Whether global names belong to a module of the user."""
    return str(names.get("__name__", "")).split(".")[0] not in FOREIGN


def is_standard(names: Mapping[str, Any]) -> bool:
    """Whether global names belong to a module of the standard library."""
    name = str(names.get("__name__", "")).split(".")[0]
    return name in sys.stdlib_module_names and name != "__main__"
