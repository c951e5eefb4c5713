"""Numbers that stand in the source of some code: where it may change what it does.

Of a branch that is taken while tracing without a word (``isinstance(n, int) and n > 600``, a table
under the key ``"777"``) its number stands in the code, in what the code keeps, or in a global that
it names.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, combinations, islice
from math import isqrt
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

LIBRARIES = {"torch", "numpy", "sympy", "mpmath", "array_api_compat", "attnproof"}
FOREIGN = (LIBRARIES | sys.stdlib_module_names) - {"__main__"}
OURS = "attnproof"  # what it says of some code, such as its signature, is none of the code's
OBJECTS = 4000  # that are looked into
ENTRIES = 500  # of a container
DIGITS = re.compile(r"\d{1,9}")
TEXT = 200  # characters of a text that are read
SUMMED = 8  # numbers of which any two are added
KINDS = frozenset(("cuda", "cpu", "mps", "xpu"))
DEVICES = frozenset(("is_cuda", "is_cpu", "is_mps", "is_xpu"))  # attributes that tell one
NAMES = ("__module__", "__qualname__", "__doc__")  # what says of a class where it stands
CONTAINERS = (list, set, dict, deque)  # whose lengths code may ask for


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


def numbers_in(roots: Iterable[Any], *, texts: bool = True) -> list[int]:
    """The whole numbers in the code of some functions and modules, and in what these hold.

    ``texts``: those that are written in texts as well, and how long these are.

    >>> numbers_in([eval('lambda x: x if x.shape[0] > 601 else x["777"]', {"__name__": "model"})])
    [0, 601, 777, 3]
    """
    return numbers_of(constants_in(roots, texts=texts))


def numbers_of(constants: Iterable[float]) -> list[int]:
    """The whole numbers among some constants, and those below the others: n > 64.5 is n > 64."""
    return list(dict.fromkeys(int(n) for n in constants if n == n and abs(n) < 1 << 40))


def constants_in(roots: Iterable[Any], *, texts: bool = True) -> list[float]:
    """The numbers in the code of some functions and modules, and in what these hold.

    Those of the functions themselves come before those of what they call and hold; how many
    entries a list or a text has comes last.
    """
    found: dict[float, None] = {}
    counts: dict[float, None] = {}
    for one in _reached(roots):
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
    for one in _reached(roots):
        for code in _codes(one.__code__) if isinstance(one, FunctionType) else ():
            kinds = "type" in code.co_names and KINDS & {
                c for c in code.co_consts if isinstance(c, str)
            }
            if not _is_foreign(one) and (kinds or DEVICES & {*code.co_names}):
                return True
    return False


def functions_in(roots: Iterable[Any]) -> list[FunctionType]:
    """The functions among some functions and modules and what these hold."""
    return [one for one in _reached(roots) if isinstance(one, FunctionType)]


def state_of(roots: Iterable[Any]) -> list[Any]:
    """The numbers and texts in some functions and modules and what these hold, and their counts.

    >>> code = eval("lambda: kept.append(1)", {"kept": [], "__name__": "model"})
    >>> before, _ = state_of([code]), code()
    >>> before == state_of([code])
    False
    """
    return [
        one if isinstance(one, int | float | str | bytes) else len(one)
        for one in _reached(roots)
        if isinstance(one, int | float | str | bytes | list | set | dict | deque)
    ]


def kept_in(roots: Iterable[Any]) -> list[FunctionType]:
    """The functions among these of which ``functools.lru_cache`` keeps what they gave."""
    kept = (one for one in _reached(roots) if isinstance(one, type(_kept)))
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


def _reached(roots: Iterable[Any]) -> Iterator[Any]:
    """Numbers and texts in some functions and modules and what these hold; and the holders."""
    seen: set[int] = set()
    waiting = deque(roots)
    while waiting and len(seen) < OBJECTS:
        one = waiting.popleft()
        if isinstance(one, bool) or one is None:
            continue
        if isinstance(one, int | float | str | bytes):
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting.extend(_parts(one))


def _parts(one: Any) -> Iterator[Any]:
    if isinstance(one, Tensor):
        yield from one.shape
        if one.numel() <= 64 and not one.is_complex() and one.device.type == "cpu":
            yield from one.detach().flatten().tolist()
    elif isinstance(one, (Mapping, tuple, frozenset, range, *CONTAINERS)):
        try:
            yield from [*_of_container(one)]
        except Exception:  # noqa: BLE001 (one that stands for what is not there yet)
            yield from _held_by(one)
    elif isinstance(one, FunctionType):
        yield from _of_function(one)
    elif isinstance(one, type):
        yield from _of_class(one)
    elif isinstance(one, partial | MethodType):
        yield from (
            (one.func, one.args, one.keywords)
            if isinstance(one, partial)
            else (one.__func__, one.__self__)
        )
    elif not isinstance(one, ModuleType):
        yield type(one)
        yield from _held_by(one)


def _held_by(one: Any) -> Iterator[Any]:
    """What an object has; of those that are ours only what is the user's."""
    held = [
        *(_attribute(one, "__dict__") or {}).values(),
        *(
            _attribute(one, name)
            for own in type(one).__mro__
            for name in vars(own).get("__slots__", ())
        ),
    ]
    if not type(one).__module__.startswith(OURS):
        yield from held
    elif not type(one).__module__.endswith(".signature"):
        yield from (value for value in held if not isinstance(value, int | float | str))


def _attribute(one: Any, name: str) -> Any:
    try:
        return getattr(one, name, None)
    except Exception:  # noqa: BLE001 (code of others may raise anything)
        return None


def _of_container(one: Any) -> Iterator[Any]:
    if isinstance(one, range):
        yield from (one.start, one.stop, one.step)
    elif not isinstance(one, Mapping):
        yield from islice(one, ENTRIES)
    elif "__builtins__" not in one and "__name__" not in one:
        yield from chain.from_iterable(islice(one.items(), ENTRIES))


def _is_foreign(one: Any) -> bool:
    return str(getattr(one, "__module__", "")).split(".")[0] in FOREIGN


def _of_function(one: FunctionType) -> Iterator[Any]:
    ours = str(getattr(one, "__module__", "")).startswith(OURS)
    for cell in one.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        if not (ours and isinstance(held, str)):  # a name or a place, which may have digits
            yield held
    if _is_foreign(one):
        return
    yield from (one.__defaults__, one.__kwdefaults__, vars(one))
    for code in _codes(one.__code__):
        yield from (const for const in code.co_consts if not isinstance(const, CodeType))
        for name in code.co_names:
            named = one.__globals__.get(name)
            if isinstance(named, ModuleType) and named.__name__.split(".")[0] not in FOREIGN:
                yield from (vars(named).get(other) for other in code.co_names)
            elif not isinstance(named, ModuleType):
                yield named


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _of_class(one: type) -> Iterator[Any]:
    for own in one.__mro__:
        if _is_foreign(own) or own is nn.Module:
            continue
        for name, value in vars(own).items():
            if name in NAMES:
                continue
            inner: Callable[..., Any] | None = getattr(value, "__func__", None)
            yield inner or getattr(value, "fget", None) or value
