"""Statements about traced code: letters are bound to the axes of a graph, and laws read on terms.

A graph can be cut where a single array, with one row per token, determines everything after it,
such as the array that a stack of layers hands from layer to layer.  The program is then a part
followed by the rest, and a law that both obey is a law of the whole.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from array_api_compat import array_namespace
from torch import Tensor, nn
from torch.fx import Node

from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.claim import all_positive, equal
from attnproof.symbolic.composition import Composition, NotComposed
from attnproof.symbolic.givens import Given, boolean, index_below, permutation, positions, real
from attnproof.symbolic.scalars import add, mul, num, size
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, make
from attnproof.theorems.laws import Formula, called, key_calls

from ..execution.response import leaves
from ..reading.applicability import channel_order, plain_arguments
from ..subjects import Attention, Rotary, Subject
from .calls import SHARED, Call
from .exporting import Exported
from .nodes import is_silent, name_of
from .operations import Unread
from .program import WAYS, Program, Way, array_of
from .token_blocks import block_parts, on_tokens

ROLES = {
    "B": "size",
    "A": "size",
    "n": "tokens",
    "r": "tokens",
    "m": "tokens",
    "H": "heads",
    "G": "heads",
}
TOKENS = [letter for letter, role in ROLES.items() if role == "tokens"]
PART_OF_BLOCK = re.compile(r"([nrm]?)([+-]?\d+)")  # n+1: blocks and a token; 3: a part of one
LIKE = {"A": "B", "r": "n", "m": "n"}  # another length of the same kind
Axes = Mapping[str, Term]


@dataclass(frozen=True)
class Graph:
    """A traced call: the call, what was exported, and its programs on terms.

    ``ways`` holds one program per way of reading the graph as a term (:data:`WAYS`).  ``tables``
    renames the tables of the graph where two calls have different tables of the same name.
    """

    call: Call
    exported: Exported
    ways: Mapping[Way, Program]
    tables: Mapping[str, str]

    @property
    def program(self) -> Program:
        """The program read as it stands."""
        return self.ways["program"]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs in all ways of reading."""
        return tuple(self.ways.values())

    @property
    def axes(self) -> list[tuple[str, int | str, int]]:
        """For each axis of each input: its letter, its length in the graph, and as traced."""
        inputs = zip(self.call.letters, self.exported.shapes, self.call.inputs, strict=True)
        return [
            axis
            for letters, lengths, x in inputs
            for axis in zip(letters.split(), lengths, x.shape, strict=True)
        ]

    @property
    def givens(self) -> dict[str, Given]:
        """The tables, under the names they have in a statement."""
        return {self.tables[name]: given for name, given in self.exported.tables.items()}

    def as_function(
        self, values: Mapping[str, Array], way: Way = "program", cuts: Cuts | None = None
    ) -> Any:
        """Return the program as a function of arrays, with its tables taken from these values.

        ``cuts`` records the values at the cuts of each call.
        """
        named = {name: values[told] for name, told in self.tables.items()}
        program = self.ways[way]

        def call(*inputs: Any) -> Array:
            given = list(map(as_array, inputs))
            if self.call.paired and len(given) < len(self.call.inputs):
                given.insert(1, program.arbitrary_like(given[0]))
            if cuts is None:
                return array_of(program(*given, named=named))
            kept = cuts.begin(given)
            return cuts.wrap(array_of(program(*given, named=named, kept=kept)))

        return call


def graphs_of(calls: list[tuple[Call, Exported]], *, by_value: bool = False) -> tuple[Graph, ...]:
    """Return the graphs of several calls; different tables of the same name are renamed.

    ``by_value``: tables that are not parameters and hold equal numbers are identified, whatever
    their names; the caller has to report that assumption.
    """
    known: dict[str, torch.Tensor] = {}
    found = []
    for call, exported in calls:
        names = {}
        for name, value in exported.values.items():
            told = f"w_{name}"  # a name that no law, constant or function uses
            if told in known and not _same_table(known[told], value):
                told = f"{call.name}_{told}"
            if by_value and told not in known:
                told = next(
                    (other for other, one in known.items() if _same_table(one, value)), told
                )
            names[name] = told
            known[told] = value
        ways = {way: Program(exported, call.name, way) for way in WAYS}
        found.append(Graph(call, exported, ways, names))
    return tuple(found)


def _same_table(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tables are equal; a parameter, which may be trained, equals only itself."""
    if isinstance(a, nn.Parameter) or isinstance(b, nn.Parameter):
        same = a.data_ptr() == b.data_ptr() and a.stride() == b.stride()  # no transpose
        return same and a.shape == b.shape and a.dtype == b.dtype
    return a.shape == b.shape and bool(torch.equal(a, b))


def bound_letters(graphs: tuple[Graph, ...]) -> dict[str, Term]:
    """Return the length of each letter: a size if it is symbolic in every graph, else a number.

    Two letters for which the graph has the same length share one size.
    """
    fixed: dict[str, int] = {}
    symbols: dict[str, set[str]] = {}
    for place, graph in enumerate(graphs):
        for letter, length, _ in graph.axes:
            if isinstance(length, int):
                fixed[letter] = length
            else:
                symbols.setdefault(letter, set()).add(f"{place}:{length}")
    found: dict[str, Term] = {letter: num(n) for letter, n in fixed.items()}
    for letter, own in symbols.items():
        if letter in fixed:
            continue
        same = next((o for o, theirs in symbols.items() if o in found and own & theirs), None)
        found[letter] = found[same] if same else size(letter, ROLES.get(letter, "size"))
    return found


def calls_by_name(calls: Mapping[str, Callable[..., Any]], subject: Subject) -> SimpleNamespace:
    """Return the calls of a program in the form that laws use, on terms or on tensors."""
    found: dict[str, Any] = dict(calls)
    if isinstance(subject, Rotary) and "rotate" in found:
        for name, key in (("in_order", False), ("key_in_order", True)):
            rotate = found.get("key", found["rotate"]) if key else found["rotate"]
            order = _order(subject, key)
            if order is not None:
                found[name] = lambda x, p, rotate=rotate, order=order: _ordered(rotate(x, p), order)
    if isinstance(subject, Attention) and "hide" in found:
        hide = found["hide"]
        found["alone"] = lambda x: hide(x, _all_true(x))
    return called(found, true_means=getattr(subject, "true_means", ""), **plain_arguments(subject))


def _all_true(x: Any) -> Any:
    """Return truth values (B, n) which say that all tokens of (B, n, E) count."""
    xp = array_namespace(x)
    return xp.broadcast_to(xp.arange(x.shape[1]) >= 0, x.shape[:2])


def reorders(subject: Subject) -> bool:
    """Whether channels are returned in another order than they were given in."""
    return isinstance(subject, Rotary) and any(_order(subject, key) for key in (False, True))


def _order(subject: Rotary, key: bool) -> list[int] | None:
    try:
        return channel_order(subject, key)
    except Exception:  # noqa: BLE001 (the code may raise anything, and does so in its law as well)
        return None


def _ordered(rotated: Any, order: list[int]) -> Any:
    """Return the channels in this order; terms cannot be indexed by a list of places."""
    parts = [rotated[..., place : place + 1] for place in order]
    return array_namespace(rotated).concat(parts, axis=-1)


def stated(
    law: Formula,
    graphs: Mapping[str, Graph],
    letters: Axes,
    subject: Subject,
    *,
    way: Way = "program",
) -> Statement:
    """Return the statement that a law makes about these programs, all read in this way.

    Raises :class:`Unread` if the programs cannot be read at the lengths the law needs.
    """
    own, givens = _givens(law, graphs, letters, subject)
    values = {name: given.named(name) for name, given in givens.items()}
    programs = {
        name: on_tokens(graph.call, graph.as_function(values, way))
        for name, graph in graphs.items()
    }
    calls = calls_by_name(programs, subject)
    try:
        pairs = law.equations(calls, **{name: values[name] for name in own})
        parts = [part for pair in pairs for part in block_parts(*pair, subject.multiple_of)]
        claims = {str(place or ""): equal(*pair) for place, pair in enumerate(parts)}
        if law.positive is not None:
            for name in [name for name in ("rotate", "key") if name in graphs]:
                above = key_calls(calls) if name == "key" else calls
                array = law.positive(above, **{told: values[told] for told in own})
                claims[f"{name} above 0"] = all_positive(array)
    except (ValueError, TypeError, IndexError) as error:
        raise Unread(" ".join(str(error).split())) from None
    for graph in graphs.values():
        givens |= graph.ways[way].notes.givens
    return Statement(givens, claims)


def _givens(
    law: Formula, graphs: Mapping[str, Graph], letters: Axes, subject: Subject
) -> tuple[list[str], dict[str, Given]]:
    """Return the names of a law's own givens, and all givens, with the tables of the graphs."""
    givens = {name: _given(told, letters, subject) for name, told in law.given.items()}
    own = list(givens)
    for graph in graphs.values():
        givens |= graph.givens
    return own, givens


def composed(law: Formula, graph: Graph, letters: Axes, subject: Subject) -> Composition | None:
    """Return the law of a program cut into parts; None if the program or the law cannot be cut.

    Raises :class:`Unread` or :class:`NotComposed` if it cannot be read in parts.
    """
    again = law.again
    nodes = cut_nodes(graph.exported) if again is not None else ()
    if again is None or not nodes:
        return None
    names, givens = _givens(law, {law.call: graph}, letters, subject)
    values = {name: given.named(name) for name, given in givens.items()}
    own, cuts = {name: values[name] for name in names}, Cuts(nodes)

    def sides(call: Any, given: Mapping[str, Array]) -> list[tuple[Term, Term]]:
        try:
            pairs = law.equations(calls_by_name({law.call: call}, subject), shown=False, **given)
        except (ValueError, TypeError, IndexError) as error:
            raise NotComposed(str(error)) from None
        return [(as_array(left).term, as_array(right).term) for left, right in pairs]

    sides(graph.as_function(values, "in parts", cuts), own)
    return Composition(
        sides,
        lambda outputs: again(*outputs, **own),
        own,
        tuple(cuts.inputs),
        cuts.parts,
        {**givens, **graph.ways["in parts"].notes.givens},
    )


def lengths_of(told: str, letters: Axes, subject: Subject) -> tuple[Term, ...]:
    """Return the axis lengths of a given such as ``"real B H n D"``."""
    kind, *wanted = told.split()
    axes = subject.axes if isinstance(subject, Rotary) else 0
    found = []
    for one in wanted:
        part = None if one in letters else PART_OF_BLOCK.fullmatch(one)
        letter, more = (one, 0) if part is None else (part[1], int(part[2]))
        if kind == "position" and letter in "AB" and SHARED in letters:
            found.append(letters[SHARED])
            continue
        if not letter:
            length = num(0)
        elif letter in letters:
            length = letters[letter]
        elif letter in LIKE and letters[LIKE[letter]].op == "size":
            length = size(letter, ROLES[letter])
        else:
            known = letters[LIKE[letter]]
            raise Unread(f"the graph fixed a length the law varies, {LIKE[letter]} = {known!r}")
        if letter in TOKENS:
            length = mul(num(subject.multiple_of), length)
        found.append(add(length, num(more)) if more else length)
    if kind in ("position", "shift") and axes:
        found.append(num(axes))
    return tuple(found)


def _given(told: str, letters: Axes, subject: Subject) -> Given:
    lengths = tuple(map(Array, lengths_of(told, letters, subject)))
    kind, *wanted = told.split()
    if kind == "permutation":
        if lengths[0].term == num(1):
            raise Unread(f"the graph fixed a length the law varies, {wanted[0]} = 1")
        return permutation(*lengths)
    if kind == "index":
        return index_below(*lengths)
    made = {
        "position": positions,
        "shift": positions,
        "truth": boolean,
        "hidden": boolean,
        "keep": boolean,
        "padding": boolean,
    }.get(kind, real)
    return made(*lengths)


def forget(graphs: Mapping[str, Graph]) -> None:
    """Make all programs of these graphs forget what they met while reading an earlier law."""
    for graph in graphs.values():
        for program in graph.programs:
            program.forget()


SHORTEST = 8  # operations of a part; smaller parts are proved no faster than whole layers


def cut_nodes(exported: Exported) -> tuple[Node, ...]:
    """Return the nodes, in order, at which a graph of one input is cut into parts.

    Each node has the first two axes of the input, batch and tokens.  Of the nodes up to it, later
    nodes read only this one, apart from values computed from lengths and stored numbers alone,
    which do not depend on the input.
    """
    inputs = [n for n in exported.nodes if exported.roles.get(n.name, ("",))[0] == "input"]
    if len(inputs) != 1 or len(exported.shapes[0]) < 2:
        return ()
    reading = _dependent_nodes(exported.nodes, inputs[0])
    place = {node: k for k, node in enumerate(exported.nodes)}
    last = dict.fromkeys(reading, 0)
    for node in (*reading, *(n for n in exported.nodes if n.op == "output")):
        for given in _inputs(node):
            if given in last:
                last[given] = place[node]
    found: list[Node] = []
    size, until = 0, 0  # operations since the last cut; last reader of earlier nodes
    rows = inputs[0].meta["val"].shape[:2]
    for node in reading:
        if until <= place[node] and size >= SHORTEST and _has_rows(node, rows):
            found.append(node)
            size = 0
        size += node.op == "call_function" and node.target is not operator.getitem
        until = max(until, last[node])
    return tuple(found if size >= SHORTEST else found[:-1])


def _dependent_nodes(nodes: Sequence[Node], given: Node) -> dict[Node, None]:
    """Return the nodes that are computed from the numbers of an input, in order."""
    found = {given: None}
    for node in nodes:
        if node.op != "call_function" or is_silent(node) or _is_of_shape(node):
            continue
        if any(one in found for one in _inputs(node)):
            found[node] = None
    return found


def _is_of_shape(node: Node) -> bool:
    """Whether a node uses the shape of its operands and not their numbers."""
    name, value = name_of(node), node.meta.get("val")
    numbers = isinstance(value, Tensor | list | tuple)
    return not numbers or name.startswith("aten.new_") or name.endswith("_like.default")


def _inputs(node: Node) -> list[Node]:
    """Return the nodes that are arguments of a node."""
    given = leaves([node.args, node.kwargs])
    return [one for one in given if isinstance(one, Node)]


def _has_rows(node: Node, rows: Sequence[object]) -> bool:
    value = node.meta.get("val")
    return (
        node.op == "call_function"
        and isinstance(value, Tensor)
        and value.is_floating_point()
        and [str(n) for n in value.shape[:2]] == [str(n) for n in rows]
    )


class Cuts:
    """The values at the cuts of a program in each call, each wrapped under a name of its own.

    A wrapped array enters the terms computed from it as a single argument, not as its summands.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.inputs: list[Term] = []
        self.calls: list[list[Term]] = []

    def begin(self, inputs: Sequence[Array]) -> dict[Node, Callable[[Any], Array]]:
        """Start recording a call; return the functions to apply to the values at the cuts."""
        self.inputs.append(inputs[0].term)
        self.calls.append([])
        return dict.fromkeys(self.nodes, self.wrap)

    def wrap(self, x: Any) -> Array:
        """Wrap the value at the next cut of this call under a name, the same for all parts."""
        if not isinstance(x, Array):
            raise Unread(f"a cut at {type(x).__name__}, which is not an array")
        found = make("named", (x.term,), ("part",), x.axes)
        self.calls[-1].append(found)
        return Array(found)

    @property
    def parts(self) -> tuple[tuple[Term, ...], ...]:
        """For each part, the term at its end in each call."""
        return tuple(zip(*self.calls, strict=True))
