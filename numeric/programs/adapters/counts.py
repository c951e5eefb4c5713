"""Code that is called with counts of queries and keys: biases and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .code import Code, DoesNotFit
from .roles import Parameter, parameters

__all__ = ["Counts", "H", "S", "T", "called_with", "counts_of", "ways"]

H, T, S = 4, 5, 7
WORDS = {"length": "T", "keys": "S", "heads": "H"}


@dataclass(frozen=True)
class Counts:
    """Which parameter is given which count: T queries, S keys, H heads; ``square``: T alone."""

    names: tuple[tuple[str, str], ...]
    square: bool

    @property
    def told(self) -> str:
        """The arguments, as letters; of square code there is one count."""
        return ", ".join(letter for _, letter in self.names)


def counts_of(known: tuple[Parameter, ...]) -> list[Parameter]:
    """The parameters that are counts: the required ones, and counts with a default of None."""
    return [one for one in known if one.required or (one.role in ("length", "keys")
            and one.default is None)]  # fmt: skip


def ways(code: Code) -> Iterator[Counts]:
    """Assignments of T, S and H to the parameters, those that the names say first."""
    known = [one for one in counts_of(parameters(code.call))
             if one.name not in code.options.arguments
             and one.role not in ("device", "dtype")]  # fmt: skip
    named = [(one.name, WORDS.get(one.role, "")) for one in known]
    if any(one.role in ("tokens", "mask", "window", "width", "embed", "value") for one in known):
        named = [(n, letter or _other(one)) for (n, letter), one in zip(named, known, strict=True)]
    letters = [letter for _, letter in named]
    if letters.count("T") == 2:
        second = len(letters) - 1 - letters[::-1].index("T")
        named[second] = (named[second][0], "S")
    if all(letter for _, letter in named) and named:
        yield _square(tuple(named))
    names = [one.name for one in known]
    for guess in {1: ["T"], 2: ["TS", "HT", "TH"], 3: ["HTS", "TSH"]}.get(len(names), []):
        yield _square(tuple(zip(names, guess, strict=True)))


def _other(one: Parameter) -> str:
    letters = {"tokens": "x", "value": "x", "mask": "m", "window": "w", "width": "d", "embed": "d"}
    return letters.get(one.role, "")


def _square(names: tuple[tuple[str, str], ...]) -> Counts:
    letters = {letter for _, letter in names}
    return Counts(names, "S" not in letters and "m" not in letters)


def called_with(code: Code, how: Counts, heads: int) -> Callable[[int, int], Any]:
    """(T, S) -> what the code gives; square code is called with S alone."""
    fixed = {k: v for k, v in code.options.arguments.items()
             if k in {one.name for one in parameters(code.call)}}  # fmt: skip

    def call(queries: int, keys: int) -> Any:
        values: dict[str, Any] = {
            "T": keys if how.square else queries, "S": keys, "H": heads, "w": 3, "d": 8,
            "S - T": keys - queries,
            "x": torch.zeros(2, keys if how.square else queries, 8), "m": torch.ones(1, keys),
        }  # fmt: skip
        given = {name: values[letter] for name, letter in how.names}
        for one in parameters(code.call):
            if one.required and one.name not in given and one.name not in fixed:
                if one.role not in ("device", "dtype"):
                    raise DoesNotFit(f"it must be given {one.name!r}, whose meaning is not known; "
                                     f"give arguments={{{one.name!r}: ..}}")
                given[one.name] = torch.device("cpu") if one.role == "device" else torch.float32
        return code.call(**given, **fixed)

    return call


def rows_of(value: Tensor, queries: int) -> Tensor:
    """The last rows, of code that is called with one count.

    They are picked and not cut off: a cut asks whether it leaves any row out, so that its graph
    would be one of fewer queries than keys alone.
    """
    rows = value.shape[-2]
    return value.index_select(-2, torch.arange(rows - queries, rows, device=value.device))
