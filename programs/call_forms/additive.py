"""Call forms of additive encodings and tables: their lines, guessed when none is given.

As in ``counts.py``, names say what each parameter is given, and the axes of the result are read off
two calls; which axes tokens have is guessed from the source, and tried in several orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import torch

from ..calls.additive import LONGEST, additive, widths
from ..calls.fitting import Fit, without_implied_roles
from ..calls.roles import SIZES, describe_call_error, role
from ..code import Ambiguous, Code, DoesNotFit
from ..loading.names import CAPACITY, SIDES, Parameter, order_in, parameters
from ..signatures.grammar import parse
from ..signatures.signature import SignatureError
from ..subjects import Additive
from .counts import ARGUMENTS_BY_ROLE, GRIDS, IDS, TOKENS, built_clauses, first_fit, returned_axes

_ADDED = re.compile(
    r"(?:(?:1|B) )?n E|n (?:1|B) E|"
    r"(?:(?:1|B) )?(?:E n|\(2 n(?: - 1)?\) E|[2-9]\d* E|"
    r"E h w|(?:t )?h w E|\(h w\) E|\(h h\) E|h h E|E h h)"
)
IMAGES = ["B E n", "B E h w", "B 3 h w", "B h w E", "B t h w E"]
TABLE_LETTERS = {"rows": "B", "width": "E", "embed": "E", "length": "n", "keys": "n", "offset": "p"}


def fit_additive(code: Code) -> Additive:
    """Return an additive encoding by the line that fits.

    Raises ``DoesNotFit`` and ``Ambiguous``.
    """
    failed: list[str] = []
    lines: list[str] = []
    clauses = [f"; {one}" for one in built_clauses(code)] if not _tokens_or_lengths(code) else [""]
    for told, clause in product(_additive_lines(code), clauses):
        for width in widths(code):
            before = len(lines)
            try:
                for axes, back in returned_axes(code, told, clause, "E", {"E": width}):
                    if _ADDED.fullmatch(axes):
                        lines.append(f"{told} -> {back}{clause}".strip())
                    else:
                        failed.append(f"called with ({told}), it returned {axes}")
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed.append(f"called with ({told}): {describe_call_error(code, error)}")
            if len(lines) > before:
                break
    ids, real = ([one for one in lines if kind in one] for kind in (" ids", " coordinates"))
    plain = [one for one in lines if one not in (*ids, *real)]
    groups = [plain, ids, [] if any(map(_maps_tokens, plain)) else real]
    most = f" = {CAPACITY}"
    groups = [[x for x in g if (most in x) == there] for g in groups for there in (True, False)]
    try:
        found = first_fit(groups, _fit_additive_line, code, failed)
    except Ambiguous as error:
        if len({one.partition(" -> ")[0] for one in lines}) < len(lines):
            raise DoesNotFit(f"one call returns several tables: {error}") from None
        raise
    if found is not None:
        return found
    raise DoesNotFit(failed[0] if failed else "it takes no tokens, no positions and no length")


def _maps_tokens(line: str) -> bool:
    """Whether sequences of tokens go in and come back: then the input is not coordinates."""
    call = parse(line)
    first, back = call.arrays[:1], call.array_results
    return bool(first) and first[0].axes == back[0].axes and {"B", "n", "E"} == set(back[0].letters)


def _tokens_or_lengths(code: Code) -> list[Parameter]:
    """Return the parameters to fill: required ones and positions; if there are none, those of ids.

    A function that needs no tokens, positions or length is also given its first optional length.
    """
    known = parameters(code.call)
    needed = [one for one in known if one.required or one.role == "positions"]
    counting = {"tokens", "value", "query", "positions", "length", "keys"}
    if needed and code.module is None and not counting & {one.role for one in needed}:
        needed += [one for one in known if one.role == "length" and not one.required][:1]
    ids = [one for one in known if IDS.search(one.name)]
    return needed if any(one.required for one in needed) else ids or needed


def _additive_lines(code: Code) -> Iterator[str]:
    """Yield argument lists for code that adds or makes a table, guided by axes in the source."""
    hinted = order_in(code.text)[:1]
    orders = {"b": ["B n E"], "t": ["n B E", "B n E"]}.get(hinted, ["B n E", "n B E"])
    held = code.module.parameters() if code.module is not None else ()
    fixed = [one.shape[-2] for one in held if one.dim() > 1 and 2 < one.shape[-2] <= LONGEST]
    orders += ["n E", *IMAGES, *(f"B {n} E" for n in dict.fromkeys(fixed))]
    choices: list[list[str]] = []
    needed = _tokens_or_lengths(code)
    sides = next((pair for pair in SIDES if set(pair) <= {one.name for one in needed}), ())
    counting = ("positions", "length", *TOKENS)  # if one is a capacity, another gives the count
    counted = any(one.role in counting and not one.is_capacity for one in needed)
    for k, one in enumerate(needed):
        tokens = [f"{one.name}: {axes} tokens" for axes in orders]
        rows = ("n", "B n", "1 n", "B n 1", "n 1")
        places = [f"{one.name}: {axes} positions" for axes in rows]
        if one.name in sides:
            choices.append([f"{one.name} = {'hw'[sides.index(one.name)]}"])
        elif GRIDS.fullmatch(one.name) or (
            one.name == "size" and "tuple" in str(one.annotation).lower()
        ):
            choices.append([f"{one.name} = {sizes}" for sizes in ("(h, w)", "h")])
        elif IDS.search(one.name):
            choices.append([f"{one.name}: B n ids"])
        elif one.role in ("tokens", "value", "query"):
            ids = [f"{one.name}: {axes} ids" for axes in ("B n", "n B")]
            times = [f"{one.name}: {axes} coordinates" for axes in ("n", "B n", "n 1")]
            wide = all(x is one or x.role in ("embed", "width") for x in needed)
            ids *= len(needed) == 1  # code that is told a number of features takes no ids
            choices.append([*tokens, *ids, *times] if wide else tokens)
        elif one.role == "positions":
            choices.append(places)
        elif one.role in ("mask", "padding"):
            choices.append([f"{one.name}: B n {kind}" for kind in ("keep", "hide")])
        elif one.role in TABLE_LETTERS:
            most = [str(CAPACITY)] if one.is_capacity and counted else []
            choices.append([f"{one.name} = {told}" for told in (*most, TABLE_LETTERS[one.role])])
        elif one.role in ARGUMENTS_BY_ROLE:
            choices.append([f"{one.name}{ARGUMENTS_BY_ROLE[one.role]}"])
        elif k == 0:
            choices.append(tokens)
        else:
            raise DoesNotFit(f"it needs {one.name!r}, and its name does not say what that is")
    for chosen in product(*choices):
        yield without_implied_roles(", ".join(chosen))


def _require_rows(code: Code, subject: Additive) -> None:
    """Refuse a line that fits only if tokens are fewer than features: its axes are swapped."""
    sides = {subject.width, *(n for n in code.built.values() if type(n) is int and n == SIZES["E"])}
    wide = max(subject.width, *sides, *widths(code)) + 3
    for rows, tokens in ((1, wide), (wide, 3)):
        try:
            subject.added(torch.zeros(rows, tokens, subject.width))
        except SignatureError as error:
            if rows > 1 or subject.most in sides:
                raise DoesNotFit(f"with {rows} rows of {tokens} tokens, {error}") from None
        except Exception:  # noqa: BLE001 (the table may be shorter)
            pass


def _fit_additive_line(code: Code, line: str) -> Fit[Additive]:
    """Fit a line as an additive encoding; best if each token, or place of a grid, has its own row.

    Code that takes an image accepts its axes in any order, but a table that does not change along
    an axis was read along the axis of channels.
    """
    subject = additive(code, parse(line), guessed=True)
    _require_rows(code, subject)
    made = subject.added(torch.zeros(3, 5, subject.width))
    if not bool(made.any()):
        raise DoesNotFit(f"called as {line}, it adds nothing")
    if torch.equal(made[:, 0], 0 * made[:, 0]) and torch.equal(made[:, 2], 2 * made[:, 1]):
        raise DoesNotFit(
            f"called as {line}, it returns angles, position times frequency, of which "
            f"other code takes cosines and sines, not a table that is added"
        )
    alike = torch.equal(made[0], made[1])
    apart = bool((made[:, 1:] != made[:, :1]).any()) and alike
    guessed = ": n B E" in line and order_in(code.text)[:1] != "t"  # else it is a fault of the code
    if guessed and not alike and torch.equal(made, made[:, :1].expand_as(made)):
        raise DoesNotFit(
            f"called as {line}, positions differ between rows of the batch and not between "
            "tokens: tokens lie along another axis"
        )
    if not apart and any(role(one) == "ids" for one in parse(line).arrays):
        raise DoesNotFit(
            f"called as {line}, it returns the same row for an id at every position: it "
            f"embeds tokens, not positions"
        )
    any_grid = "w" in parse(line).letters  # which says more than a square
    return Fit(str(parse(line)), subject, made, (apart, _along_every_side(subject), any_grid))


def _along_every_side(subject: Additive) -> bool:
    """Whether the table of a grid changes with each step along each of its axes."""
    if subject.grid is None:
        return True
    try:
        table = subject.grid((3,) * subject.axes)
    except Exception:  # noqa: BLE001 (a grid may have to be of other sizes)
        return True
    return all(bool((table.diff(dim=k) != 0).any()) for k in range(subject.axes))
