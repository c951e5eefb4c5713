"""What caches imply for the line of a call: its rows, its masks, and how it is called in steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from ..calls.masks import is_mask, is_of_slots
from ..calls.roles import role
from ..calls.steps import steps_of
from ..calls.token_lines import with_one_length
from ..calls.tokens import OnTokens
from ..code import Code
from ..execution.draw import normal
from ..execution.state import arrays_of
from ..loading.names import Parameter
from ..loading.reach import is_foreign
from ..signatures.grammar import parse
from ..signatures.signature import Signature
from .parts import CACHE_HALF_NAMES, CACHE_NAMES

KEYS = parse("x: (n + p) -> x").arrays[0].axes[0]  # type: ignore[index]
STATES = (" = DynamicCache()", "", " = {}")
CACHED = ("1 1 n {0}", "1 n {0}", "n {0}")  # masks as wide as a cache, whose rows are all written
MIN_TOKENS = 6  # a fixed number of tokens is larger
IGNORED = 4  # bounds the results of a step beside its output and its state


def _caches(code: Code) -> list[torch.Size]:
    """Return the shapes of what a module holds that may be caches: rows, heads, places, channels.

    Heads may also be behind the places, or lacking.
    """
    held = arrays_of(code.module) if code.module is not None else ()
    return [x.shape for x in held if x.dim() in (3, 4)]


def rows_of_caches(code: Code) -> list[str]:
    """Return lines for as many rows as caches have, for code that reads all of their rows."""
    return [f"{rows} n E" for rows in dict.fromkeys(shape[0] for shape in _caches(code))]


def slots_of_caches(code: Code) -> list[int]:
    """Return how many places caches may have."""
    return list(dict.fromkeys(n for shape in _caches(code) for n in shape[1:-1] if n > MIN_TOKENS))


def hides_later_tokens(code: Code, line: str, embed: int) -> bool:
    """Whether a call is causal: a token changes no earlier output, but changes the last one."""
    call = OnTokens(code.again(), parse(line))
    x = normal(3, 5, embed, seed=2)
    late, early = x.clone(), x.clone()
    late[:, -1] += 1.0
    early[:, 0] += 1.0
    try:
        plain = call(x)
        return torch.equal(plain[:, :-1], call(late)[:, :-1]) and not torch.equal(
            plain[:, -1], call(early)[:, -1]
        )
    except Exception:  # noqa: BLE001 (the code may not take such a mask)
        return False


def stepped(code: Code, line: str, known: tuple[Parameter, ...], embed: int) -> str:
    """Return the line with a call in steps, if the code takes, or keeps, that of earlier steps."""
    cache = next((one.name for one in known if one.name in CACHE_NAMES), "")
    halves = [
        one.name for one in known if CACHE_HALF_NAMES.fullmatch(one.name) and one.default is None
    ]
    if not cache and len(halves) != 2:
        return with_own_state(code, line, embed, known) or line
    whole, _, made = line.partition("; ")
    before, _, back = whole.replace(f", {cache} = None", "").partition(" -> ")
    call = parse(whole)
    before = _with_earlier_keys(before, call)
    spare = next((one.name for one in known if one.role == "mask"), "")
    if made and spare and call.named(spare) is None and hides_later_tokens(code, line, embed):
        # a kernel that is causal without a mask ignores earlier tokens: it is given a mask
        before = before.replace(f", {spare} = None", "") + f", {spare}: B 1 n (n + p) add"
    if any(one.name == "use_cache" for one in known):
        before += ", use_cache = True"
    states = (*_own_states(code, cache, known), *STATES) if cache else ("",)
    for start, rest in product(states, _results(cache, halves)):
        step = f"{before}, {cache or ', '.join(halves)}{start}"
        trial = f"{line}; step: {step} -> {', '.join([back.partition(',')[0], *rest])}"
        with suppress(Exception):  # it cannot be fed in pieces this way
            if _leaves_state(OnTokens(code.again(), parse(trial)), embed):
                return trial
    return line


def _own_states(code: Code, cache: str, known: tuple[Parameter, ...]) -> Iterator[str]:
    """Yield that a step begins with an object of a class of the file that annotates the cache."""
    kind = next(one.annotation for one in known if one.name == cache)
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    for word in re.findall(r"\w+", text):
        if isinstance(held := code.space.get(word), type) and not is_foreign(held):
            yield f" = {word}()"


def _results(cache: str, halves: list[str]) -> Iterator[list[str]]:
    """Yield what a step may return behind its output: ignored results, then what carries state.

    A cache may be written in place; its halves, keys and values, come back.
    """
    for ignored in range(IGNORED if cache else 2):
        if not cache:
            yield ["_"] * ignored + halves
            continue
        if ignored:
            yield ["_"] * (ignored - 1) + [cache]
        yield ["_"] * ignored


def _with_earlier_keys(given: str, call: Signature) -> str:
    """Return what a step is given, with masks of the keys of earlier steps as well.

    A mask as wide as a cache has them already.
    """
    wide = {one.name for one in with_one_length(call)[0].arrays if is_of_slots(one)}
    for mask in (one for one in call.arrays if is_mask(one) and one.name not in wide):
        longer = replace(mask, axes=(*(mask.axes or ())[:-1], KEYS))
        given = given.replace(str(mask), str(longer))
    return given


def with_own_state(code: Code, line: str, embed: int, known: tuple[Parameter, ...] = ()) -> str:
    """Return the line with a call in steps, if a module keeps the state of earlier steps itself.

    It must be told where its tokens start, by default at 0, and a step must read the tokens of an
    earlier one.  Else the result is "".
    """
    whole = line.partition("; ")[0]
    call = parse(whole)
    placed = any("p" in one.lengths or role(one) == "positions" for one in call.arguments)
    starts = (one for one in known if one.role == "offset" and one.default == 0)
    start = next((one.name for one in starts if call.named(one.name) is None), "")
    if code.module is None or not (placed or start):
        return ""
    given, _, back = whole.partition(" -> ")
    given += "" if placed else f", {start} = p"
    trial = f"{line}; step: {_with_earlier_keys(given, call)} -> {back}"
    with suppress(Exception):  # the code may take no further tokens
        if _reads_earlier(OnTokens(code.again(), parse(trial)), embed):
            return trial
    return ""


def _leaves_state(on: OnTokens, embed: int) -> bool:
    """Whether two steps can be taken, and the first leaves something in every state."""
    _, (left, _) = steps_of(on, embed)(_chunk(embed)[:, :3].contiguous(), None)
    assert isinstance(left, Mapping)  # the line names its states
    return all(value is not None and value != {} and value != [] for value in left.values())


def _reads_earlier(on: OnTokens, embed: int) -> bool:
    """Whether a step reads the tokens of an earlier step, which the code keeps itself."""
    step, x = steps_of(on, embed), _chunk(embed)
    one, other = (
        step(x[:, 3:], step(first, None)[1])[0] for first in (x[:, :3], x[:, :3].flip(-1))
    )
    return not torch.allclose(one, other, rtol=1e-3, atol=1e-4)


def _chunk(embed: int) -> Tensor:
    """Return five tokens of two rows."""
    return normal(2, 5, embed, seed=5)
