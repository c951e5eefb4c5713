"""What stands beside code in its file: tables it is given, and functions that take its table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from .building import code_of
from .code import Code, DoesNotFit
from .roles import parameters
from .tables import Table, table_of

__all__ = ["APPLIES", "MAKES", "appliers", "named", "tables_beside"]

MAKES = re.compile(r"rotary|rope|freqs|cos_?sin|sin_?cos|precompute|angles|inv_freq|cis",
                   re.IGNORECASE)  # fmt: skip
APPLIES = re.compile(r"apply|rotate_|rope|rotary|rot_emb", re.IGNORECASE)


def tables_beside(code: Code, width: int) -> Iterator[Table]:
    """Tables that stand in the same file, or that were named in the options."""
    if code.options.table is not None:
        yield table_of(code_of(code.options.table, "", replace(code.options, table=None)), width)
        return
    for name, thing in named(code.space, MAKES, code.name):
        bare = replace(code.options, arguments={}, settings={}, width=width)
        if APPLIES.match(name) and not inspect.isclass(thing):
            continue
        try:
            yield table_of(code_of(thing, name, bare), width)
        except Exception:  # noqa: BLE001 (whatever stands beside may not be a table)
            continue


def appliers(space: Mapping[str, Any], made: Table, table: Code) -> Iterator[tuple[str, Any]]:
    """Functions of the file that take a table of this form, those for this table first.

    A config that says ``rope_interleave`` chooses the function that does.
    """
    wanted = {"pair": ({"cos", "sin"}, {"pair"}, {"freqs"}), "complex": ({"freqs"}, {"pair"}),
              "one": ({"freqs"}, {"pair"}, {"cos", "sin"})}[made.form]  # fmt: skip
    vision = "vision" in table.name.lower()
    woven = bool(getattr(getattr(table.call, "config", None), "rope_interleave", False))

    def rank(pair: tuple[str, Any]) -> tuple[bool, bool, bool, int]:
        many = bool(re.search("multi|2d|vision|axial", pair[0]))
        weaves = "interleave" in pair[0]
        seen = "vision" in pair[0]
        return (seen != vision, many != made.many, weaves != woven, len(pair[0]))

    for roles in wanted:
        for name, thing in sorted(named(space, APPLIES, table.name), key=rank):
            if inspect.isclass(thing):
                continue
            try:
                if roles <= {one.role for one in parameters(thing)}:
                    yield name, thing
            except DoesNotFit:
                continue


def named(space: Mapping[str, Any], pattern: re.Pattern[str], but: str) -> list[tuple[str, Any]]:
    """Functions and modules of a file, but one, whose names match."""
    return [
        (name, thing) for name, thing in space.items()
        if pattern.search(name) and name != but and not isinstance(thing, nn.Module)
        and (inspect.isfunction(thing) or hasattr(thing, "cache_parameters")
             or (inspect.isclass(thing) and issubclass(thing, nn.Module)))
        and getattr(thing, "__module__", "").split(".")[0] != "torch"
    ]  # fmt: skip
