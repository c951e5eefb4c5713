"""Selection of the line that fits: the code is called by each candidate, and the best is kept.

Shared by all tables of call forms.  A line is tried with lengths that all differ, so that a wrong
order of axes cannot be hidden by broadcasting; among the lines that fit, those of the highest
quality must give the same result.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor

from ..code import Ambiguous, Code, DoesNotFit
from ..execution.running import CodeFault, limited, seeded, uncompiled
from ..loading.names import parameters, role_of
from ..loading.program import Program
from ..signatures.grammar import parse
from ..signatures.signature import Signature
from .roles import bounds, describe_call_error, role

Way = TypeVar("Way")
PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # lengths, none of which divides another
MAX_ALTERNATIVES = 3  # alternative lines to keep
SECONDS = 5.0  # time limit for finding them
INTEGER_ROLES = ("positions", "axis", "ids", "documents", "index")
_ROLE_OF_ARRAY = re.compile(r"(\w+): ([^,()]+) (\w+)\b")


@dataclass(frozen=True)
class Fit(Generic[Way]):
    """A line that fits, and how well.

    ``way``: the object made from the line.  ``out``: its result for a fixed input, in standard
    axes, so that lines of the same meaning give the same result.  ``quality``: a tuple compared
    lexicographically; higher is better.
    """

    line: str
    way: Way
    out: Tensor
    quality: tuple[Any, ...]


def expanded(text: str, choices: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield a line for each combination of choices for its placeholders; the last varies fastest.

    >>> list(expanded("x: <x>, mask: <m> keep", {"<x>": ["B n E"], "<m>": ["B n", "n n"]}))
    ['x: B n E, mask: B n keep', 'x: B n E, mask: n n keep']
    """
    there = [one for one in choices if one in text]
    for chosen in product(*(choices[one] for one in there)):
        line = text
        for one, axes in zip(there, chosen, strict=True):
            line = line.replace(one, axes)
        yield line


def without_implied_roles(line: str) -> str:
    """Return the line without the roles of arrays that their names imply.

    >>> without_implied_roles("cos: n D cos, at: n positions -> cos")
    'cos: n D, at: n positions -> cos'
    """
    return _ROLE_OF_ARRAY.sub(lambda s: f"{s[1]}: {s[2]}" if role_of(s[1]) == s[3] else s[0], line)


def fitting(
    lines: Iterable[str], tried: Callable[[str], Fit[Way]], code: Code, failed: dict[str, str]
) -> list[Fit[Way]]:
    """Return the lines that fit.  ``failed[""]`` records why the first other one does not.

    ``tried`` may raise any exception if a line does not fit; faults of attnproof are raised again.
    """
    found = []
    numbers = numbers_of(code)
    for line in lines:
        try:
            require_numbers(line, numbers)
            found.append(tried(line))
        except DoesNotFit as error:
            failed.setdefault("", str(error))
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed.setdefault("", f"called as {line}, {describe_call_error(code, error)}")
    return found


def numbers_of(code: Code) -> frozenset[str]:
    """The names of the parameters that are annotated as numbers."""
    return frozenset(one.name for one in parameters(code.call) if one.is_number)


def require_numbers(line: str, numbers: frozenset[str]) -> None:
    """Refuse a line that passes an array for a number.  Raises ``DoesNotFit``.

    >>> require_numbers("x: B n E, dim = 1 -> x", frozenset({"dim"}))
    """
    whole = line if " -> " in line else f"{line} -> 1"  # the result may not be known yet
    for one in parse(whole).arrays if numbers else ():
        if one.axes and one.name in numbers:  # a scale has no axes
            raise DoesNotFit(f"{one.name} is annotated as a number, and the line passes an array")


def takes(
    call: Callable[..., Any],
    signature: Signature,
    code: Code,
    failed: dict[str, str],
    known: Mapping[str, int],
) -> bool:
    """Whether a call with lengths that all differ works and returns the shapes of the signature.

    ``known``: given lengths, such as that of a feature axis.
    """
    taken = {size for length in known.values() for size in (length, length // 2)}
    free = (n for n in PRIMES if n not in taken)
    named = [c for c in ("B", "H", "G", "n", "m", *signature.letters) if c not in known]
    lengths = {**dict(zip(dict.fromkeys(named), free, strict=False)), **known}
    packed = [one for one in signature.arrays if role(one) == "bounds"]
    if packed:  # tables need a row for each token, in case positions do not restart
        lengths["m"] = 1 + lengths["B"] * lengths["n"]
    try:
        arrays = {one.name: _ones(one.shape(lengths), role(one)) for one in signature.arrays}
        arrays |= {one.name: bounds(one, lengths, torch.ones(1)) for one in packed}
        found = Program(call, signature, code.name).run(arrays, lengths)
        wanted = [one.shape(lengths) for one in signature.array_results]
    except Exception as error:  # noqa: BLE001 (the code may raise anything)
        failed.setdefault("", f"called as {signature}, {describe_call_error(code, error)}")
        return False
    came = [tuple(one.shape) for one in found.values()]
    if came != wanted:
        told = f"wanted {_shapes(wanted)} back, got {_shapes(came)}"
        failed.setdefault("", f"called as {signature}, {told}")
        return False
    return True


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes)) or "nothing"


def _ones(shape: tuple[int, ...], kind: str) -> Tensor:
    if kind in ("keep", "hide"):
        return torch.full(shape, kind == "keep")
    kinds = {**dict.fromkeys(INTEGER_ROLES, torch.long), "cis": torch.complex64}
    return torch.ones(shape, dtype=kinds.get(kind, torch.float32))


class Alternatives(Sequence[str]):
    """The lines that fit less well than the chosen one and differ in meaning, found lazily.

    ``found``: those known already; ``rest`` searches for more, under a time limit, once they are
    needed, which is when a law is broken.
    """

    def __init__(self, found: Iterable[str], rest: Callable[[], Iterable[str]] = tuple) -> None:
        self._found, self._rest = tuple(found), rest

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The distinct lines, at most ``MAX_ALTERNATIVES``."""
        told = dict.fromkeys(self._found)
        with (
            contextlib.redirect_stdout(io.StringIO()),
            torch.random.fork_rng(devices=[]),
            torch.no_grad(),
            uncompiled(),
            contextlib.suppress(CodeFault),
            limited(SECONDS),
        ):
            seeded(0)
            for line in self._rest() if len(told) < MAX_ALTERNATIVES else ():
                told[line] = None
                if len(told) >= MAX_ALTERNATIVES:
                    break
        return tuple(told)[:MAX_ALTERNATIVES]

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return self.lines[place]


def alternatives(
    found: list[Fit[Way]], chosen: Fit[Way], rest: Callable[[], Iterable[Fit[Way]]] = tuple
) -> Alternatives:
    """Return the lines that fit less well than the chosen one and differ in meaning.

    They must have all its letters: called row by row, code that mixes rows would not show it, nor
    with equally many queries and keys would code that confuses the two.  ``rest``: yields further
    fits when they are needed.
    """
    return Alternatives(
        (one.line for one in found if _means_another(one, chosen)),
        lambda: (one.line for one in rest() if _means_another(one, chosen)),
    )


def _means_another(one: Fit[Way], chosen: Fit[Way]) -> bool:
    return not _same_result(one, chosen) and letters_of(chosen.line) <= letters_of(one.line)


def letters_of(line: str) -> set[str]:
    """Return the letters of the arguments, both arrays and lengths.

    >>> sorted(letters_of("x: B n E, queries = r -> x"))
    ['B', 'E', 'n', 'r']
    """
    call = parse(line)
    arrays = {c for one in call.arrays for c in one.letters}
    return arrays | {c for one in call.arguments for c in one.lengths}


def _same_result(one: Fit[Way], other: Fit[Way]) -> bool:
    """Whether two lines give the same result, and so have the same meaning."""
    return one.out.shape == other.out.shape and torch.allclose(
        one.out, other.out, atol=1e-3, equal_nan=True
    )


def best(found: list[Fit[Way]], name: str) -> Fit[Way]:
    """Return the first of the lines that fit best.

    Raises ``Ambiguous``, naming two lines, if the best ones give different results.
    """
    most = max(one.quality for one in found)
    found = [one for one in found if one.quality == most]
    first = found[0]
    for other in found[1:]:
        if not _same_result(first, other):
            raise Ambiguous(
                f"{name} can be called in two ways that differ in meaning: "
                f"--call '{first.line}', or --call '{other.line}'"
            )
    return first
