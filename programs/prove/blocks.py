"""Which blocks of some code run: a proof is of those that ran while it was traced, of no other.

What runs only with gradients wanted, or where a length is a plain number, is in no graph.  A run
beside the graph shows that it gave the same there, and of other lengths it shows nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

MARK = "attnproof: what is compared"  # a constant that stands for the function that writes it down
REACHED = -2  # what is written down of a block, in place of a side
SHORT = 60  # characters of a text that is printed
COPIES = ("contiguous", "clone", "detach")  # the same numbers
Place = tuple[str, int, int]
N = TypeVar("N", bound=ast.AST)


def put(site: int, place: int, node: ast.expr) -> ast.expr:
    """An expression, put through the function that writes it down."""
    call = ast.Call(ast.Constant(MARK), [ast.Constant(site), ast.Constant(place), node], [])
    for one in (call, call.func, *call.args[:2]):
        ast.copy_location(one, node)
    return call


def shortened(text: str) -> str:
    """A text in one line that is not long."""
    text = " ".join(text.split())
    return text if len(text) <= SHORT else text[: SHORT - 3] + "..."


class Blocks(ast.NodeTransformer):
    """Has each block write down that it was reached: of a branch, a loop, a handler, a function.

    Where errors may be caught each statement is one.  ``lines``: of the source; ``site`` numbers a
    place, with its text.
    """

    def __init__(self, lines: Sequence[str], site: Callable[[tuple[int, int], str], int]) -> None:
        self.lines, self.site = lines, site
        self.asked: set[int] = set()  # the tests, by id: what they ask is seen where they turn

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
        """That a statement is reached, as one before it."""
        told = put(self._number(node), REACHED, ast.copy_location(ast.Constant(None), node))
        return ast.copy_location(ast.Expr(told), node)

    def _body(self, body: list[ast.stmt], *, each: bool) -> list[ast.stmt]:
        """A block: its first statement that does something is marked, or each."""
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
    """Whether a statement changes no number: it raises, or says something, or copies an array."""
    if isinstance(node, ast.Raise | ast.Pass | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign) and all(_is_one(t, node.value) for t in node.targets)


def _is_one(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are one but for copies: then it is the same which is taken."""
    return ast.unparse(_uncopied(a)) == ast.unparse(_uncopied(b))


def _uncopied(node: ast.expr) -> ast.expr:
    """What an expression copies, and what is marked there as it was."""
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
