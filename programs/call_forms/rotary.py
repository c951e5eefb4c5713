"""Call forms of rotary code: a table from which its call is guessed when none is given.

Each form is a line of the signature language with the roles of parameters in place of their names.
It is tried with lengths that all differ, so that a wrong order of axes cannot be hidden by
broadcasting, and is then treated like a given call: the result is a line that the user can correct
and pass back with ``--call``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..calls.fitting import expanded, without_implied_roles
from ..calls.roles import ROTATED
from ..calls.table_makers import plain_argument
from ..code import Code
from ..loading.names import OF_TOKENS, SEVERAL, Parameter, parameters
from ..signatures.signature import packed_as
from .parts import BOUND_NAMES

VECTORS = ("B H n D", "B n H D", "n B H D", "B n D", "n H D", "H n D", "n B D", "n D")
TOGETHER = {  # queries, keys and values, or keys and values, in one array
    "qkv": ("B n 3 H D", "3 B H n D", "B 3 H n D", "3 B n H D", "n B 3 H D", "B n (3 H D)"),
    "kv": ("B n 2 H D", "2 B H n D", "B 2 H n D", "2 B n H D", "n B 2 H D", "B n (2 H D)"),
}
PACKED = ("(B n) H D", "(B n) D")  # sequences one after another
ROWS = ("B n", "n", "B 1 n", "B n 1", "1 n", "n 1", "1 1 n", "1 n 1", "n 1 1", "n B", "n B 1")
COMMON_ROWS = ("B n", "n", "B 1 n", "1 n")
POSITION_AXES = ("B n", "n", "n B", "3 B n", "B n 3", "3 n", "n 3", "2 B n", "B n 2", "2 n", "n 2")
WIDTHS = (" D", " D/2")
CHOICES: dict[str, tuple[str, ...]] = {
    "<x>": VECTORS,
    "<cos>": tuple(row + width for width, row in product(WIDTHS, ROWS)),
    "<rows>": tuple(row + width for row, width in product(("m", "1 1 m", "1 m 1"), WIDTHS)),
    "<at>": POSITION_AXES,
    "<some>": POSITION_AXES[:3],
    "<each>": ("B n D",),
    "<coordinates>": POSITION_AXES[7:9],
    "<apart>": tuple(row + width for width, row in product(WIDTHS, ("3 B n", "3 n", "B 3 n"))),
    "<cis>": tuple(f"{row}{width} cis" for width, row in product((" D/2", " D"), ROWS)),
    "<angles>": tuple(f"{row}{width} angles" for width, row in product(WIDTHS, ROWS)),
    "<cos_sin>": (
        *(f"{row} D/2 2 cos_sin" for row in ROWS),
        *(f"2 {row}{width} cos_sin" for width, row in product(WIDTHS, COMMON_ROWS)),
        *(
            f"{row} {wide} {kind}"
            for wide, kind, row in product(("D", "(2 D)"), ("cos_sin", "sin_cos"), COMMON_ROWS)
        ),
    ),
    "<matrices>": tuple(f"{row} D/2 2 2 matrices" for row in ROWS),
}


@dataclass(frozen=True)
class Form:
    """A template of lines, one for each choice of axes.

    ``needs``: the roles of the parameters that it fills.  ``text``: the arguments beside the
    rotated arrays, in which {role} stands for the parameter of that role and <key> for one of the
    axes listed under ``CHOICES``.
    """

    needs: tuple[str, ...]
    text: str


FORMS = (
    Form(
        ("cos", "sin", "positions"),
        "{cos}: <rows> cos, {sin}: <rows> sin, {positions}: <some> positions",
    ),
    Form(
        ("cos", "sin", "positions"),
        "{cos}: <each> cos, {sin}: <each> sin, {positions}: <coordinates> positions",
    ),
    Form(("cos", "sin", "offset"), "{cos}: <rows> cos, {sin}: <rows> sin, {offset} = p"),
    Form(
        ("cos", "sin", "offset"),
        "{cos}: <rows> cos, {sin}: <rows> sin, {offset}: B positions",
    ),
    Form(("cos", "sin"), "{cos}: <cos> cos, {sin}: <cos> sin"),
    Form(("cos", "sin"), "{cos}: <apart> cos, {sin}: <apart> sin"),
    Form(("pair",), "{pair} = (cos: <cos>, sin: <cos>)"),
    Form(("pair",), "{pair}: <cos_sin>"),
    Form(("freqs",), "{freqs}: <cis>"),
    Form(("freqs",), "{freqs}: <angles>"),
    Form(("freqs",), "{freqs} = (cos: <cos>, sin: <cos>)"),
    Form(("freqs",), "{freqs}: <cos_sin>"),
    Form(("freqs",), "{freqs}: <matrices>"),
    Form(("positions",), "{positions}: <at> positions"),
    Form(("positions",), "{positions}: <some> coordinates"),
    Form(("axis",), "{axis}: <some> axis"),
    Form(("offset",), "{offset} = p"),
    Form(("offset",), "{offset}: B positions"),
    Form((), ""),
)
TABLE_ROLES = ("cos", "sin", "freqs", "pair")  # roles of parameters that take tables
# roles of parameters that determine positions
POSITION_ROLES = (*TABLE_ROLES, "positions", "axis", "offset")
# roles that a name may wrongly suggest for x
UNCERTAIN_ROLES = ("", "width", "embed", "length", "freqs")
LAYER = "layer_type"
AXIS = "AXIS"  # placeholder for the index of the token axis
EMBEDDING = re.compile(r"(\w+_)?emb(edding)?s?")
OF_AXES = re.compile(r"_[xyzhw]$")
SECTIONS = re.compile(r"(\w+_)?sections?")
SECTIONED = "(D/12, D/6, D/4)"  # pairs of each axis, all different


def lines(
    code: Code, hinted: str = "", *, tables: bool = False, counted: bool = False
) -> Iterator[tuple[Form, str]]:
    """Yield the lines that the names of the parameters allow, likely ones first.

    ``hinted``: the axes stated in the source, as "bhtd".  ``tables``: the code takes a table under
    any name, so that a parameter named like positions may hold angles.  ``counted``: a maximal
    number of tokens is set to the number of tokens of the call.

    >>> from ..loading.building import code_of
    >>> from ..code import Options
    >>> def rotate(x, positions): ...
    >>> next(lines(code_of(rotate, "", Options())))[1]
    'x: B H n D, positions: B n -> x'
    """
    known = parameters(code.call)
    known = with_table_role(known) if tables else known
    vectors = [one for one in known if one.role in ROTATED and (one.required or one.role == "key")]
    free = known and known[0].role in UNCERTAIN_ROLES and not known[0].is_number
    if not vectors and free and known[0].required:
        vectors = [known[0]]
    rest = [one for one in known if one not in vectors]
    by = names_by_role([one for one in rest if one.role not in ROTATED])
    plain = [
        (
            one,
            f"{one.name}: (B + 1) bounds"
            if BOUND_NAMES.fullmatch(one.name)
            else f"{one.name} = {SECTIONED}"
            if SECTIONS.fullmatch(one.name) and not one.is_number
            else AXIS
            if OF_TOKENS.fullmatch(one.name)
            else plain_argument(one, code, counted=counted),
        )
        for one in rest
        if one.role not in POSITION_ROLES
    ]
    more = [(one, told) for one, told in plain if told and (one.required or one.name == LAYER)]
    if not vectors or any(one.required and not told for one, told in plain):
        return
    wanted = {one.role for one in rest if one.required and one.role in POSITION_ROLES}
    for form in FORMS:
        if not set(form.needs) <= set(by):
            continue
        if "<angles>" in form.text and re.search("cis|complex", by["freqs"][0].lower()):
            continue  # its name says that it takes complex units, not angles
        if not {*wanted, *(set(TABLE_ROLES) & set(by))} <= set(form.needs):
            continue
        if not form.needs and {*POSITION_ROLES} & {*by} - {"offset"}:
            continue  # some parameter gives the positions; an offset alone may not suffice
        if form.needs == ("offset",) and "positions" in by:
            continue
        yield from ((form, line) for line in _in_orders(code, form, vectors[:3], by, more, hinted))


def names_by_role(known: Sequence[Parameter]) -> dict[str, list[str]]:
    """Return the parameter of each role; several if they are named as those of several axes."""
    by: dict[str, list[str]] = {}
    for one in known:
        by.setdefault(one.role, []).append(one.name)
    several = {
        role: [n for n in names if SEVERAL.fullmatch(n.lower())] for role, names in by.items()
    }
    several["axis"] = by.get("axis", [])
    return {
        role: several[role] if len(several[role]) > 1 else names[-1:] for role, names in by.items()
    }


def _in_orders(
    code: Code,
    form: Form,
    vectors: Sequence[Parameter],
    by: Mapping[str, list[str]],
    more: Sequence[tuple[Parameter, str]],
    hinted: str,
) -> Iterator[str]:
    """Yield the lines of a form in each order of axes, beginning with that of the source."""
    first = hinted.upper().replace("T", "n")
    orders = sorted(VECTORS, key=lambda x: x.replace(" ", "") != first)
    text = form.text
    if together := _together(code, vectors[0].name):
        orders, vectors = list(TOGETHER[together]), vectors[:1]
    if any(" bounds" in told for _, told in more):
        orders, text = list(PACKED), text.replace("<cos>", "<rows>")
    for order, beside in product(orders, expanded(text, CHOICES)):
        if "B" not in order and re.search(r"\bB\b", beside):
            continue
        for keys in ("G", "H") if len(vectors) > 1 and "H" in order else ("H",):
            said = [
                f"{one.name}: {order.replace('H', keys) if one.role == 'key' else order}"
                + ("" if one.role in ROTATED or together else " tokens")
                for one in vectors
            ]
            at = str(order.split().index("n")) if " n" in f" {order}".replace("(B n)", "") else "0"
            own = (told.replace(AXIS, f"{one.name} = {at}") for one, told in more)
            given = filter(None, [without_implied_roles(_with_names(beside, by)), *own])
            yield f"{', '.join([*said, *given])} -> {', '.join(v.name for v in vectors)}"


def _together(code: Code, name: str) -> str:
    """Return the kind of packed array that a vector is, or ""; ``kv`` is one if it is split."""
    kind = packed_as(name)
    return kind if kind == "qkv" or re.search(r"unbind|\bk\w*, v\w* = ", code.text) else ""


def _with_names(beside: str, by: Mapping[str, list[str]]) -> str:
    """Return the arguments with names for roles; each of several tables covers part of a vector.

    >>> _with_names("{freqs}: n D/2 cis", {"freqs": ["freqs_x", "freqs_y"]})
    'freqs_x: n D/4 cis, freqs_y: n D/4 cis'
    """
    found = []
    for part in re.split(r", (?=\{)", beside) if beside else []:
        names = by[re.findall(r"\{(\w+)\}", part)[0]]
        parts = len(names) if len(names) > 1 and all(map(OF_AXES.search, names)) else 1
        width = re.compile(r"\bD(?:/(\d))?\b")
        told = width.sub(lambda s, n=parts: f"D/{n * int(s[1] or 1)}", part) if parts > 1 else part
        found += [re.sub(r"\{\w+\}", name, told, count=1) for name in names]
    return ", ".join(found)


def with_table_role(known: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Return the parameters; if none is named like a table, one is taken for one.

    It is ``positions``, or an embedding beside what is rotated.
    """
    if set(TABLE_ROLES) & {one.role for one in known}:
        return known
    found = [one for one in known if one.role == "positions"] or [
        one for one in known[1:] if one.role == "tokens" and EMBEDDING.fullmatch(one.name)
    ]
    return tuple(replace(one, role="freqs") if one in found else one for one in known)
