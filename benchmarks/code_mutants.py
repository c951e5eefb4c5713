"""Single changes of array code, from which false statements and false encodings are made.

A mutant is the text of a file with one edit of its syntax tree.  The edits imitate typical mistakes
in array code: another axis, index, sign, constant, operand, function or relation, a missing
permutation, a hypothesis dropped or weakened, a given of a more general kind.  Whether a mutant is
false is judged elsewhere; most are false, some are true, and some are meaningless.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise

from benchmarks.mutations import called

OTHER_FUNCTIONS = {
    "cos": ("sin",),
    "sin": ("cos",),
    "exp": ("tanh",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "abs": ("square",),
    "sqrt": ("abs",),
    "sum": ("mean",),
    "mean": ("sum",),
    "zeros": ("ones",),
    "ones": ("zeros",),
    "greater": ("at_least",),
    "at_least": ("greater",),
    "all_positive": ("all_negative",),
    "equal": ("greater",),
    "differ": ("equal",),
    "softmax": ("column_softmax",),
    "floor": ("ceil",),
    "log": ("exp",),
    "tanh": ("sin",),
}
WEAKER_GIVENS = {
    "orthogonal": "real",
    "permutation": "index_map",
    "injection": "index_map",
    "positive": "real",
    "nonnegative": "real",
}
HYPOTHESES = {"greater", "at_least", "differ", "all_positive", "equal", "for_all"}
OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}


@dataclass(frozen=True)
class Mutant:
    """One edit of a file: its kind, its place, and the text before and after."""

    kind: str
    line: int
    before: str
    after: str
    original: str
    statement: int
    place: int

    def __str__(self) -> str:
        return f"line {self.line}, {self.kind}: {self.before}  ->  {self.after}"

    @property
    def source(self) -> str:
        """The text of the file after the edit."""
        tree = ast.parse(self.original)
        changed = tree.body[self.statement]
        target = next(n for k, n in enumerate(ast.walk(changed)) if k == self.place)
        _replace(changed, target, ast.parse(self.after, mode="eval").body)
        return ast.unparse(tree)


Edit = tuple[str, ast.expr]


def mutants(source: str) -> Iterator[Mutant]:
    """Yield all mutants of a file.

    >>> [str(m) for m in mutants("y = x + 1")][0]
    'line 1, operator: x + 1  ->  x - 1'
    """
    tree = ast.parse(source)
    for k, statement in enumerate(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        names, unread = _names_in_scope(statement), _annotations(statement)
        for place, node in enumerate(ast.walk(statement)):
            if not isinstance(node, ast.expr):
                continue
            if node in unread:
                continue
            before = ""
            for kind, new in _edits(node, names.get(node, [])):
                before = before or ast.unparse(node)
                yield Mutant(kind, node.lineno, before, ast.unparse(new), source, k, place)


def _replace(root: ast.AST, target: ast.AST, new: ast.expr) -> None:
    """Replace ``target`` by ``new``."""
    for parent in ast.walk(root):
        for name, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is target for item in value):
                setattr(parent, name, [new if item is target else item for item in value])


def _annotations(statement: ast.stmt) -> set[ast.AST]:
    """Return the nodes of annotations, which are not changed."""
    roots = [
        getattr(node, name, None)
        for node in ast.walk(statement)
        for name in ("annotation", "returns")
    ]
    return {node for root in roots if root is not None for node in ast.walk(root)}


def _names_in_scope(statement: ast.stmt) -> dict[ast.AST, list[str]]:
    """Map each node in a function to the parameters in scope, which may be exchanged."""
    found: dict[ast.AST, list[str]] = {}
    for outer in ast.walk(statement):
        if isinstance(outer, ast.FunctionDef | ast.Lambda):
            own = [a.arg for a in outer.args.args if a.arg != "self"]
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            for inner in (node for part in body for node in ast.walk(part)):
                found[inner] = [*found.get(inner, []), *own]
    return found


@singledispatch
def _edits(node: ast.AST, names: list[str]) -> Iterator[Edit]:
    """Yield the single edits of one expression, each with its kind."""
    del node, names
    yield from ()


@_edits.register
def _(node: ast.UnaryOp, _: list[str]) -> Iterator[Edit]:
    if isinstance(node.op, ast.USub):
        yield "sign", node.operand


@_edits.register
def _(node: ast.Compare, _: list[str]) -> Iterator[Edit]:
    for other in COMPARISONS.get(type(node.ops[0]), ()):
        yield "comparison", ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)


@_edits.register
def _(node: ast.Attribute, _: list[str]) -> Iterator[Edit]:
    if node.attr in ("mT", "T"):
        yield "transpose", node.value


@_edits.register
def _(node: ast.Name, names: list[str]) -> Iterator[Edit]:
    if isinstance(node.ctx, ast.Load) and node.id in names:
        yield from (("operand", ast.Name(n, ast.Load())) for n in names if n != node.id)


@_edits.register
def _(node: ast.List, _: list[str]) -> Iterator[Edit]:
    for k, item in enumerate(node.elts):
        if isinstance(node.ctx, ast.Load) and _is_hypothesis(item):
            yield "hypothesis", ast.List([*node.elts[:k], *node.elts[k + 1 :]], ast.Load())


def _is_hypothesis(item: ast.expr) -> bool:
    if isinstance(item, ast.Tuple):
        return True
    name = item.func if isinstance(item, ast.Call) else None
    return isinstance(name, ast.Name) and name.id in HYPOTHESES


@_edits.register
def _(node: ast.BinOp, _: list[str]) -> Iterator[Edit]:
    for other in OPERATORS.get(type(node.op), ()):
        yield "operator", ast.BinOp(node.left, other(), node.right)
    if isinstance(node.op, ast.MatMult | ast.Sub | ast.Div):
        yield "operands exchanged", ast.BinOp(node.right, node.op, node.left)
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.MatMult):
        yield "operand dropped", node.left
        yield "operand dropped", node.right


@_edits.register
def _(node: ast.Constant, _: list[str]) -> Iterator[Edit]:
    value = node.value
    if type(value) not in (int, float):
        return
    assert isinstance(value, int | float)
    others: tuple[int | float, ...]
    if isinstance(value, int):
        others = (value + 1, value - 1) if value else (1, -1, 2)
    else:
        others = (-value, float(Fraction(value) / 2))
    for other in others:
        sign = ast.UnaryOp(ast.USub(), ast.Constant(-other)) if other < 0 else ast.Constant(other)
        yield "constant", sign


@_edits.register
def _(node: ast.Subscript, _: list[str]) -> Iterator[Edit]:
    if not isinstance(node.ctx, ast.Load):
        return
    if isinstance(node.slice, ast.Name):
        yield "index dropped", node.value
        call = ast.Call(ast.Name("inverse", ast.Load()), [node.slice], [])
        yield "inverse", ast.Subscript(node.value, call, ast.Load())
    if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        first, second = node.slice.elts
        swapped = ast.Tuple([second, first], ast.Load())
        yield "index", ast.Subscript(node.value, swapped, ast.Load())
    if isinstance(node.slice, ast.Slice):
        start, stop, step = node.slice.lower, node.slice.upper, node.slice.step
        one = ast.Constant(1)
        if step is None:
            later = one if start is None else ast.BinOp(start, ast.Add(), one)
            yield "slice", ast.Subscript(node.value, ast.Slice(later, stop), ast.Load())
        if start is not None and stop is None:
            yield "slice", ast.Subscript(node.value, ast.Slice(None, start), ast.Load())
        if stop is not None:
            yield "slice", ast.Subscript(node.value, ast.Slice(start, None, step), ast.Load())


@_edits.register
def _(node: ast.Call, _: list[str]) -> Iterator[Edit]:
    name = called(node)
    for other in OTHER_FUNCTIONS.get(name, ()):
        func = copy.copy(node.func)
        setattr(func, "id" if isinstance(func, ast.Name) else "attr", other)
        kind = "relation" if name in HYPOTHESES else "function"
        yield kind, ast.Call(func, node.args, node.keywords)
    if name in WEAKER_GIVENS and isinstance(node.func, ast.Name):
        yield "given", _weaker(node, name)
    if name in ("cos", "sin", "exp", "maximum", "sqrt", "tanh", "inverse") and len(node.args) == 1:
        yield "function dropped", node.args[0]
    arrays = [k for k, a in enumerate(node.args) if isinstance(a, ast.Name)]
    for i, j in pairwise(arrays):
        args = list(node.args)
        args[i], args[j] = args[j], args[i]
        yield "arguments exchanged", ast.Call(node.func, args, node.keywords)
    kept = [k for k in node.keywords if k.arg not in ("axis", "keepdims")]
    if name in ("sum", "mean") and len(kept) < len(node.keywords):
        yield "axis", ast.Call(node.func, node.args, kept)


def _weaker(node: ast.Call, name: str) -> ast.Call:
    """Return the call of a more general kind of given with the same shape."""
    args = list(node.args)
    if name in ("orthogonal", "permutation"):
        args *= 2
    return ast.Call(ast.Name(WEAKER_GIVENS[name], ast.Load()), args, node.keywords)
