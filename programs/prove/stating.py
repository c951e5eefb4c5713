"""Statements of traced code: letters bound to the axes of a graph, laws read on terms.

A graph can be cut where one array of all tokens is what everything after it is computed from, as
that which a stack of layers hands from layer to layer.  There the program is a part and what comes
after it, and a law of both is one of the whole.
"""

from __future__ import annotations

import operator
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
from attnproof.symbolic.scalars import num, size
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, make
from attnproof.theorems.laws import Formula, called, of_keys

from ..identify.applicability import channel_order, plain_of
from ..response import leaves
from ..subjects import Attention, Rotary, Subject
from .calls import SHARED, Call
from .exporting import Exported
from .nodes import is_silent, name_of
from .operations import Unread
from .program import WAYS, Program, Way, array_of

ROLES = {
    "B": "size",
    "A": "size",
    "n": "tokens",
    "r": "tokens",
    "m": "tokens",
    "H": "heads",
    "G": "heads",
}
LIKE = {"A": "B", "r": "n", "m": "n"}  # another one of its kind
Axes = Mapping[str, Term]


@dataclass(frozen=True)
class Graph:
    """A traced call: the call, what was exported, and its program on terms.

    ``ways`` are those in which it is read as a term: as it stands, with maps of one row folded, and
    with small stored tables as the numbers that they hold.  ``tables`` renames its tables where two
    calls have different ones of one name.
    """

    call: Call
    exported: Exported
    ways: Mapping[Way, Program]
    tables: Mapping[str, str]

    @property
    def program(self) -> Program:
        """The program as it stands."""
        return self.ways["program"]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The program in each of its ways."""
        return tuple(self.ways.values())

    @property
    def axes(self) -> list[tuple[str, int | str, int]]:
        """Of each axis of each input its letter, its length in the graph, and in the trace."""
        inputs = zip(self.call.letters, self.exported.shapes, self.call.inputs, strict=True)
        return [
            axis
            for letters, lengths, x in inputs
            for axis in zip(letters.split(), lengths, x.shape, strict=True)
        ]

    @property
    def givens(self) -> dict[str, Given]:
        """The tables under the names they have in a statement."""
        return {self.tables[name]: given for name, given in self.exported.tables.items()}

    def on(
        self, values: Mapping[str, Array], way: Way = "program", cuts: Cuts | None = None
    ) -> Any:
        """The program as a function of arrays, with its tables among these values.

        ``cuts`` are told of each call.
        """
        named = {name: values[told] for name, told in self.tables.items()}
        program = self.ways[way]

        def call(*inputs: Any) -> Array:
            given = list(map(as_array, inputs))
            if self.call.beside and len(given) < len(self.call.inputs):
                given.insert(1, program.anything_like(given[0]))
            if cuts is None:
                return array_of(program(*given, named=named))
            kept = cuts.begin(given)
            return cuts.fold(array_of(program(*given, named=named, kept=kept)))

        return call


def named_apart(calls: list[tuple[Call, Exported]], *, by_value: bool = False) -> tuple[Graph, ...]:
    """The graphs of several calls; tables of one name that differ get a name of their own.

    ``by_value``: tables that are not parameters and hold the same numbers are one, whatever they
    are called; who asks for that says so.
    """
    known: dict[str, torch.Tensor] = {}
    found = []
    for call, exported in calls:
        names = {}
        for name, value in exported.values.items():
            told = f"w_{name}"  # a name that no law, constant or function has
            if told in known and not _alike(known[told], value):
                told = f"{call.name}_{told}"
            if by_value and told not in known:
                told = next((other for other, one in known.items() if _alike(one, value)), told)
            names[name] = told
            known[told] = value
        ways = {way: Program(exported, call.name, way) for way in WAYS}
        found.append(Graph(call, exported, ways, names))
    return tuple(found)


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tables are one: of parameters, which may be trained apart, only the same one."""
    if isinstance(a, nn.Parameter) or isinstance(b, nn.Parameter):
        same = a.data_ptr() == b.data_ptr() and a.stride() == b.stride()  # a matrix is no transpose
        return same and a.shape == b.shape and a.dtype == b.dtype
    return a.shape == b.shape and bool(torch.equal(a, b))


def bound_letters(graphs: tuple[Graph, ...]) -> dict[str, Term]:
    """The length of each letter: a size where it is symbolic in every graph, a number elsewhere.

    Two letters that the graph holds for one length are one size.
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
    """The calls of some code as laws use them, on terms or on tensors."""
    found: dict[str, Any] = dict(calls)
    if isinstance(subject, Rotary) and "rotate" in found:
        for name, key in (("in_order", False), ("key_in_order", True)):
            rotate = found.get("key", found["rotate"]) if key else found["rotate"]
            order = _order(subject, key)
            if order is not None:
                found[name] = lambda x, p, rotate=rotate, order=order: _ordered(rotate(x, p), order)
    if isinstance(subject, Attention) and "hide" in found:
        hide = found["hide"]
        found["alone"] = lambda x: hide(x, _all_count(x))
    return called(found, true_means=getattr(subject, "true_means", ""), **plain_of(subject))


def _all_count(x: Any) -> Any:
    """Truth values (B, n) that say of tokens (B, n, E) that all count."""
    xp = array_namespace(x)
    return xp.broadcast_to(xp.arange(x.shape[1]) >= 0, x.shape[:2])


def reorders(subject: Subject) -> bool:
    """Whether channels come back in another order than that in which they went in."""
    return isinstance(subject, Rotary) and any(_order(subject, key) for key in (False, True))


def _order(subject: Rotary, key: bool) -> list[int] | None:
    try:
        return channel_order(subject, key)
    except Exception:  # noqa: BLE001 (the code may raise anything, and does so in its law as well)
        return None


def _ordered(rotated: Any, order: list[int]) -> Any:
    """The channels in this order: a term has no list of places."""
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
    """The statement a law makes of these programs, each read in this way.

    Raises :class:`Unread` where the programs cannot be read at the lengths the law needs.
    """
    own, givens = _givens(law, graphs, letters, subject)
    values = {name: given.named(name) for name, given in givens.items()}
    programs = {name: graph.on(values, way) for name, graph in graphs.items()}
    calls = calls_by_name(programs, subject)
    try:
        pairs = _pairs(law, calls, {name: values[name] for name in own})
        claims = {str(place or ""): equal(*pair) for place, pair in enumerate(pairs)}
        if law.positive is not None:
            for name in [name for name in ("rotate", "key") if name in graphs]:
                above = of_keys(calls) if name == "key" else calls
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
    """The names of what a law is given, and all givens: the tables of the graphs too."""
    axes = subject.axes if isinstance(subject, Rotary) else 0
    givens = {name: _given(told, letters, axes) for name, told in law.given.items()}
    own = list(givens)
    for graph in graphs.values():
        givens |= graph.givens
    return own, givens


def _pairs(law: Formula, calls: Any, given: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The equations of a law, of these calls."""
    left, right = law.equations(calls, **given)
    return list(zip(left, right, strict=True)) if isinstance(left, list) else [(left, right)]


def composed(law: Formula, graph: Graph, letters: Axes, subject: Subject) -> Composition | None:
    """The law of a program that is cut into parts; None where it is not cut, or the law is not.

    Raises :class:`Unread` or :class:`NotComposed` where it cannot be read in parts.
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
            pairs = _pairs(law, calls_by_name({law.call: call}, subject), given)
        except (ValueError, TypeError, IndexError) as error:
            raise NotComposed(str(error)) from None
        return [(as_array(left).term, as_array(right).term) for left, right in pairs]

    sides(graph.on(values, "in parts", cuts), own)
    return Composition(
        sides,
        lambda outputs: again(*outputs, **own),
        own,
        tuple(cuts.taken),
        cuts.parts,
        {**givens, **graph.ways["in parts"].notes.givens},
    )


def lengths_of(told: str, letters: Axes, axes: int) -> tuple[Term, ...]:
    """The axis lengths of a given such as ``"real B H n D"``."""
    kind, *wanted = told.split()
    found = []
    for letter in wanted:
        if kind == "position" and letter in "AB" and SHARED in letters:
            found.append(letters[SHARED])
        elif letter in letters:
            found.append(letters[letter])
        elif letter in LIKE and letters[LIKE[letter]].op == "size":
            found.append(size(letter, ROLES[letter]))
        else:
            known = letters[LIKE[letter]]
            raise Unread(f"the graph fixed a length the law varies, {LIKE[letter]} = {known!r}")
    if kind in ("position", "shift") and axes:
        found.append(num(axes))
    return tuple(found)


def _given(told: str, letters: Axes, axes: int) -> Given:
    lengths = tuple(map(Array, lengths_of(told, letters, axes)))
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
    """Forget in all readings of these graphs what an earlier law met."""
    for graph in graphs.values():
        for program in graph.programs:
            program.forget()


SHORTEST = 8  # operations of a part: cut finer, parts are no sooner proved than whole layers


def cut_nodes(exported: Exported) -> tuple[Node, ...]:
    """The nodes of a graph of one input at which it is cut into parts, in their order.

    Each has the first two axes of the input, rows of the batch and tokens.  It is the only one of
    those before it and itself that later ones read, but for what is made of lengths and of stored
    numbers: that is the same whatever is given.
    """
    inputs = [n for n in exported.nodes if exported.roles.get(n.name, ("",))[0] == "input"]
    if len(inputs) != 1 or len(exported.shapes[0]) < 2:
        return ()
    reading = _reading(exported.nodes, inputs[0])
    place = {node: k for k, node in enumerate(exported.nodes)}
    last = dict.fromkeys(reading, 0)
    for node in (*reading, *(n for n in exported.nodes if n.op == "output")):
        for given in _inputs(node):
            if given in last:
                last[given] = place[node]
    found: list[Node] = []
    size, until = 0, 0  # operations since the last cut; how far what came before is read
    rows = inputs[0].meta["val"].shape[:2]
    for node in reading:
        if until <= place[node] and size >= SHORTEST and _has(node, rows):
            found.append(node)
            size = 0
        size += node.op == "call_function" and node.target is not operator.getitem
        until = max(until, last[node])
    return tuple(found if size >= SHORTEST else found[:-1])


def _reading(nodes: Sequence[Node], given: Node) -> dict[Node, None]:
    """The nodes that are computed from the numbers of an input, in their order."""
    found = {given: None}
    for node in nodes:
        if node.op != "call_function" or is_silent(node) or _is_of_shape(node):
            continue
        if any(one in found for one in _inputs(node)):
            found[node] = None
    return found


def _is_of_shape(node: Node) -> bool:
    """Whether a node asks for the shape of what it is given, and not for its numbers."""
    name, value = name_of(node), node.meta.get("val")
    numbers = isinstance(value, Tensor | list | tuple)
    return not numbers or name.startswith("aten.new_") or name.endswith("_like.default")


def _inputs(node: Node) -> list[Node]:
    """The nodes that a node is given."""
    given = leaves([node.args, node.kwargs])
    return [one for one in given if isinstance(one, Node)]


def _has(node: Node, rows: Sequence[object]) -> bool:
    value = node.meta.get("val")
    return (
        node.op == "call_function"
        and isinstance(value, Tensor)
        and value.is_floating_point()
        and [str(n) for n in value.shape[:2]] == [str(n) for n in rows]
    )


class Cuts:
    """What is at the cuts of a program at each call: each array folded, under a name of its own.

    Folded it is one argument of what is made of it, and not its summands.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.taken: list[Term] = []
        self.calls: list[list[Term]] = []

    def begin(self, inputs: Sequence[Array]) -> dict[Node, Callable[[Any], Array]]:
        """What becomes of the values at the cuts, of a call that begins."""
        self.taken.append(inputs[0].term)
        self.calls.append([])
        return dict.fromkeys(self.nodes, self.fold)

    def fold(self, x: Any) -> Array:
        """The array under a name, the same for all parts, at the next cut of this call."""
        if not isinstance(x, Array):
            raise Unread(f"a cut at {type(x).__name__}, which is no array")
        found = make("named", (x.term,), ("part",), x.axes)
        self.calls[-1].append(found)
        return Array(found)

    @property
    def parts(self) -> tuple[tuple[Term, ...], ...]:
        """Of each part what each call gives there."""
        return tuple(zip(*self.calls, strict=True))
