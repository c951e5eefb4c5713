"""Record which blocks of code run: a proof is about the blocks that ran during tracing alone.

What runs only if gradients are wanted, or if a length is a plain number, is in no graph.  A run
beside the graph shows that code and graph agree there, and shows nothing about other lengths.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

MARK = "attnproof: what is compared"  # a constant that stands for the recording function
REACHED = -2  # recorded for a block, in place of a side
SHORT = 60  # most characters of a printed text
COPIES = ("contiguous", "clone", "detach")  # methods that return the same numbers
Place = tuple[str, int, int]
N = TypeVar("N", bound=ast.AST)


def put(site: int, place: int, node: ast.expr) -> ast.expr:
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

    Inside ``try`` and ``with``, where errors may be caught, each statement is a block.  ``lines``
    are those of the source; ``site`` numbers a place, given its text.
    """

    def __init__(self, lines: Sequence[str], site: Callable[[tuple[int, int], str], int]) -> None:
        self.lines, self.site = lines, site
        self.asked: set[int] = set()  # tests, by id: their outcomes are watched elsewhere

    def _number(self, node: ast.stmt | ast.expr) -> int:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        rows = [one.encode() for one in self.lines[first : last + 1]]
        rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        text = b" ".join(rows).decode(errors="replace")
        return self.site((node.lineno, node.col_offset), shortened(text))

    def _reached(self, node: ast.expr) -> ast.expr:
        return node if isinstance(node, ast.Constant) else put(self._number(node), REACHED, node)

    def _statement(self, node: ast.stmt) -> ast.stmt:
        """Return a statement that records that this one is reached."""
        told = put(self._number(node), REACHED, ast.copy_location(ast.Constant(None), node))
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
            self.asked.update(map(id, ast.walk(node.test)))
        super().generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef):
            return node
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                each = isinstance(node, ast.Try | ast.With | ast.AsyncWith)
                setattr(node, name, self._body(body, each=each))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not _is_one(node.body, node.orelse):
            node.body, node.orelse = self._reached(node.body), self._reached(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if id(node) not in self.asked:
            node.values[1:] = map(self._reached, node.values[1:])
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
    return isinstance(node, ast.Assign) and all(_is_one(t, node.value) for t in node.targets)


def _is_one(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are equal up to copies."""
    return ast.unparse(_uncopied(a)) == ast.unparse(_uncopied(b))


def _uncopied(node: ast.expr) -> ast.expr:
    """Return an expression without copying methods and recording calls around it."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Constant):
            node = node.args[2]
        elif (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in COPIES
            and not (node.args or node.keywords)
        ):
            node = node.func.value
        else:
            break
    return node
