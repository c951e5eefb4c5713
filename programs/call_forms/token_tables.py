"""Guess which tables of rotations, or encoding of offsets, a layer is given beside its tokens."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from ..calls.fitting import without_implied_roles
from ..calls.roles import SIZES
from ..calls.table_makers import sources
from ..calls.tables import code_named
from ..calls.tokens import OnTokens
from ..code import Code, common_prefix
from ..loading.names import Parameter, parameters
from ..loading.pretrained import sections_of
from ..loading.program import Program
from ..signatures.grammar import parse
from .parts import BOUND_NAMES

Part = tuple[str, str]  # an input beside the tokens, and the clause that makes it
ROWS = (
    *("1 n D", "n D", "B n D", "1 n D/2", "n D/2"),
    *("1 n 1 D", "n 1 D", "1 n 1 D/2", "n 1 D/2"),  # beside heads behind the tokens
)
PACKED_ROWS = ("(B n) D", "(B n) D/2")
IN_ONE = ("n D/2 cis", "1 n D/2 cis", "n D/2 2 cos_sin", "n D/2 angles")
OFFSETS = ("1 (2 n - 1) E", "(2 n - 1) 1 E", "(2 n - 1) E", "n 1 E")


def beside_tokens(code: Code, known: tuple[Parameter, ...], embed: int) -> Iterator[Part]:
    """Yield what may be passed beside the tokens: tables, nothing, or an encoding of offsets."""
    pair = next((one for one in known if one.role == "pair"), None)
    cos, sin = (next((one for one in known if one.role == r), None) for r in ("cos", "sin"))
    if pair is not None:
        yield from _tables(code, pair, embed)
    if cos is not None and sin is not None:
        two = f"{cos.name}: {{0}} cos, {sin.name}: {{0}} sin"
        yield from _in_two_tables(code, two, ("cos", "sin"), known)
    freqs = next((one for one in known if one.role == "freqs" and one.required), None)
    if freqs is not None:
        yield from _in_one_table(code, freqs, known)
    yield "", ""
    if pair is not None and pair.required:
        yield from _in_two_tables(code, f"{pair.name} = (cos: {{0}}, sin: {{0}})", (), known)
        yield from ((f"{pair.name}: {axes} offsets", "") for axes in OFFSETS)
        yield from _in_one_table(code, pair, known)


def is_bounds(one: Parameter) -> bool:
    """Whether a parameter says where sequences that are packed into one axis begin."""
    return one.required and bool(BOUND_NAMES.fullmatch(one.name))


def _in_two_tables(
    code: Code, given: str, needs: tuple[str, ...], known: tuple[Parameter, ...]
) -> Iterator[Part]:
    """Yield tables of cosines and of sines in the axes of ``given``, made by the file or here.

    The axes of the file's own tables are tried first.
    """
    width = OnTokens(code, parse("x: B n E -> x")).rotated
    beside = sources(replace(code, options=replace(code.options, width=width)))
    made = [one for one in beside if one.kind == "pair"]
    rows = PACKED_ROWS if any(map(is_bounds, known)) else ROWS
    for row in dict.fromkeys([*(one.axes.replace("m", "n") for one in made), *rows]):
        said = given.format(row)
        own = (one for one in made if one.suits(f"{said} -> 1"))
        yield from (
            (without_implied_roles(said), f"; {one.table_clause(needs, known)}") for one in own
        )
        yield without_implied_roles(said), ""


def _in_one_table(code: Code, freqs: Parameter, known: tuple[Parameter, ...]) -> Iterator[Part]:
    """Yield a single table for all pairs: made by code of the file, else here."""
    width = OnTokens(code, parse("x: B n E -> x")).rotated
    for made in sources(replace(code, options=replace(code.options, width=width))):
        if kind := made.holds:
            axes = made.axes.replace("m", "n")
            yield (
                without_implied_roles(f"{freqs.name}: {axes} {kind}"),
                f"; {made.table_clause((freqs.role,), known)}",
            )
    yield from ((f"{freqs.name}: {axes}", "") for axes in IN_ONE)


def _tables(code: Code, one: Parameter, embed: int) -> Iterator[tuple[str, str]]:
    """Yield the cos and sin of a layer, made by a rotary module of its file."""
    prefix = type(code.module).__name__
    named = [
        (name, thing)
        for name, thing in code.space.items()
        if name.endswith("RotaryEmbedding")
        and inspect.isclass(thing)
        and issubclass(thing, nn.Module)
    ]
    for name, _ in sorted(named, key=lambda pair: -common_prefix(pair[0], prefix)):
        try:
            made = code_named(code, name, SIZES["D"])
            axes = f"{len(sections_of(made.call))} 1 n" if sections_of(made.call) else "1 n"
            kind = getattr(code.module, "layer_type", None)
            more = made.options.arguments.get("layer_type")
            of_type = f", layer_type = {str(kind or more)!r}" if more else ""
            x, at = (parameter.name for parameter in parameters(made.call)[:2])
            call = parse(f"{x}: 1 n E, {at}: {axes} positions{of_type} -> 1")
            lengths = {"n": 7, "E": embed}
            arrays = {x: torch.zeros(1, 7, embed)}
            arrays[at] = torch.arange(7).expand(call.arrays[1].shape(lengths))
            cos, _ = Program(made.call, call, name).called(arrays, lengths)
        except Exception:  # noqa: BLE001 (other code of the file may make no such table)
            continue
        first = "".join(f"{size} " for size in cos.shape[:-3])
        wide = f"n {cos.shape[-1]}"
        given = str(call).partition(" -> ")[0]
        yield (
            f"{one.name} = (cos: {first}B {wide}, sin: {first}B {wide})",
            f"; cos, sin from {name}({given} -> {first}1 {wide}, {first}1 {wide})",
        )
