"""Record which blocks of code run and which values they meet: a proof covers those of the trace.

What runs only if gradients are wanted, or if a length is a plain number, is in no graph, nor is
what depends on a value that tracing does not have (``x.roll(x.requires_grad * (n // 70_000), 1)``).
A run beside the graph shows that code and graph agree there, and nothing about other lengths.
"""

from __future__ import annotations

import ast
import numbers
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import SymBool, SymFloat, SymInt, Tensor, float64

MARK = "attnproof: what is compared"  # a constant that stands for the recording function
REACHED, VALUE = -2, -3  # recorded for a block or a value, in place of a side
SHORT = 60  # most characters of a printed text
COPIES = ("contiguous", "clone", "detach")  # methods that return the same numbers
Place = tuple[Any, ...]  # file, start and end of a node, and the value if one is recorded
# Expressions whose value may differ from the one during tracing.
RECORDED_NODES = (ast.Call, ast.Attribute, ast.Subscript, ast.Compare, ast.Name, ast.JoinedStr)
PLACE_PARTS = 5  # the length of a place without its value
LENGTH = "a length, or what is made of lengths"
NUMBER = "a tensor of one number"  # while tracing, also what symbolic_lengths.py makes of a length
N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True, eq=False)
class TracedBlocks:
    """The blocks that ran during a trace, the values met there, and the lengths it covers.

    ``conditions`` are SymPy conditions on lengths, by their names in the graph.
    """

    places: frozenset[Place]
    conditions: tuple[Any, ...] = ()


PLAIN = frozenset((bool, int, float, str, bytes))


def value_key(value: Any) -> Any:
    """Return a key for a value; all values that are neither numbers nor texts share one.

    >>> value_key(7), value_key(None), value_key([7])
    (7, 'None', 'something')
    """
    if type(value) not in PLAIN:  # most are; to ask for its kind takes ten times as long
        if isinstance(value, SymInt | SymBool | SymFloat):
            return LENGTH
        if isinstance(value, Tensor) and not value.ndim and value.dtype == float64:
            return NUMBER
        if value is None or isinstance(value, type | complex):
            return str(value)
        if not isinstance(value, numbers.Real | str | bytes):
            return "something"
    return value if value == value else "nan"


def not_traced(ran: Collection[Place], traced: Collection[Place]) -> list[Place]:
    """Return the blocks and values of a run that the trace did not have.

    A place that held a length during tracing is in the graph, whatever its value, as is one that
    held a tensor in place of a float; a place that was not reached then belongs to a block.
    """
    reached = {one[:PLACE_PARTS] for one in traced if len(one) > PLACE_PARTS}
    lengths = {one[:PLACE_PARTS] for one in traced if one[PLACE_PARTS:] == (LENGTH,)}
    known = reached - lengths
    tensors = {one[:PLACE_PARTS] for one in traced if one[PLACE_PARTS:] == (NUMBER,)}
    return [
        one
        for one in ran
        if one not in traced
        and (len(one) == PLACE_PARTS or one[:PLACE_PARTS] in known)
        and not (one[:PLACE_PARTS] in tensors and isinstance(one[-1], float))
    ]


def recorded(site: int, place: int, node: ast.expr) -> ast.expr:
    """Return an expression passed through the recording function."""
    call = ast.Call(ast.Constant(MARK), [ast.Constant(site), ast.Constant(place), node], [])
    for one in (call, call.func, *call.args[:2]):
        ast.copy_location(one, node)
    return call


def shortened(text: str) -> str:
    """Return a text on one line, cut to ``SHORT`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= SHORT else text[: SHORT - 3] + "..."


class Blocks(ast.NodeTransformer):
    """Make each block record that it was reached: of a branch, a loop, a handler, a function.

    Inside ``try`` and ``with``, where errors may be caught, each statement is a block.  Values are
    recorded as well.  ``lines`` are those of the source; ``site`` numbers a place, given its text.
    """

    def __init__(self, lines: Sequence[str], site: Callable[[Place, str], int]) -> None:
        self.lines, self.site = lines, site
        self.whole: set[int] = set()  # by id: callees, owners of attributes, truth values of tests

    def _number(self, node: ast.stmt | ast.expr) -> int:
        last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        rows = [one.encode() for one in self.lines[node.lineno - 1 : last]]
        rows[-1] = rows[-1][:end]
        rows[0] = rows[0][node.col_offset :]
        text = b" ".join(rows).decode(errors="replace")
        return self.site((node.lineno, node.col_offset, last, end), shortened(text))

    def _reached(self, node: ast.expr) -> ast.expr:
        return (
            node if isinstance(node, ast.Constant) else recorded(self._number(node), REACHED, node)
        )

    def _statement(self, node: ast.stmt) -> ast.stmt:
        """Return a statement that records that this one is reached."""
        told = recorded(self._number(node), REACHED, ast.copy_location(ast.Constant(None), node))
        return ast.copy_location(ast.Expr(told), node)

    def _body(self, body: list[ast.stmt], *, each: bool) -> list[ast.stmt]:
        """Return a block with its first effective statement marked, or each of them."""
        found: list[ast.stmt] = []
        marked = False
        for one in body:
            if not _does_nothing(one) and (each or not marked):
                marked = True
                found.append(self._statement(one))
            found.append(one)
        return found

    def generic_visit(self, node: N) -> N:
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            self._decided(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                self._decided(test)
        super().generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef):
            return node
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                each = isinstance(node, ast.Try | ast.With | ast.AsyncWith)
                setattr(node, name, self._body(body, each=each))
        return node

    def _decided(self, test: ast.expr) -> None:
        """Record no value of which only the truth matters: what runs after it is a block."""
        test = _without_marks(test)
        self.whole.add(id(test))
        if isinstance(test, ast.BoolOp):
            for one in test.values:
                self._decided(one)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._decided(test.operand)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not _equal_up_to_copies(node.body, node.orelse):
            node.body, node.orelse = self._reached(node.body), self._reached(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        watched = [False, *map(_is_watched, node.values[1:])]
        self.generic_visit(node)
        tested = id(node) in self.whole
        for k, known in enumerate(watched[1:], 1):
            if not (tested and known):
                node.values[k] = self._reached(node.values[k])
        return node

    def _value(self, node: ast.expr) -> ast.AST:
        """Return an expression that records its value."""
        if isinstance(node, ast.Call | ast.Attribute) and not _is_mark(node):
            inner = _without_marks(node.func if isinstance(node, ast.Call) else node.value)
            if not isinstance(inner, ast.Call):
                self.whole.add(id(inner))
        read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not _is_mark(node)
        known = not read or id(node) in self.whole
        self.generic_visit(node)
        return node if known else recorded(self._number(node), VALUE, node)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, RECORDED_NODES):
            return self._value(node)
        found = super().visit(node)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            node.elt = self._reached(node.elt)
        elif isinstance(node, ast.DictComp):
            node.value = self._reached(node.value)
        return found

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave the pattern as it is."""
        if node.guard is not None:
            self._decided(node.guard)
            node.guard = self.visit(node.guard)
        node.body = self._body([self.visit(one) for one in node.body], each=False)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = self._reached(node.body)
        return node


def _does_nothing(node: ast.stmt) -> bool:
    """Whether a statement changes no number: it raises, declares, documents or copies an array."""
    if isinstance(node, ast.Raise | ast.Pass | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign) and all(
        _equal_up_to_copies(t, node.value) for t in node.targets
    )


def _equal_up_to_copies(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are equal up to copies."""
    return ast.unparse(_uncopied(a)) == ast.unparse(_uncopied(b))


def _is_watched(node: ast.expr) -> bool:
    """Whether a test only compares names, attributes and shapes, which is watched."""
    return all(
        _is_mark(one)
        if isinstance(one, ast.Call)
        else isinstance(one.value, ast.Attribute) and one.value.attr == "shape"
        for one in ast.walk(node)
        if isinstance(one, ast.Call | ast.Subscript)
    )


def _is_mark(node: ast.AST) -> bool:
    """Whether a node is a recording call."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Constant)


def _without_marks(node: ast.expr) -> ast.expr:
    """Return an expression without recording calls around it."""
    while isinstance(node, ast.Call) and _is_mark(node):
        node = node.args[2]
    return node


def _uncopied(node: ast.expr) -> ast.expr:
    """Return an expression without copying methods and recording calls around it."""
    while isinstance(node, ast.Call):
        if _is_mark(node):
            node = _without_marks(node)
        elif (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in COPIES
            and not (node.args or node.keywords)
        ):
            node = node.func.value
        else:
            break
    return node
