"""Single changes of a Python source that its tests should detect.

They imitate typical mistakes in a checker: a condition dropped or negated, a bound off by one, two
arguments exchanged, an assumption not passed on, a missing line of a table.  Messages, docstrings
and annotations are not changed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Mod: ast.Add,
}
CONFUSED = {
    "cos": "sin",
    "sin": "cos",
    "less": "less_equal",
    "less_equal": "less",
    "equal": "less_equal",
    "add": "mul",
    "mul": "add",
    "and": "or",
    "or": "and",
    "not": "indicator",
    "positive": "nonnegative",
    "nonnegative": "positive",
    "permutation": "injective",
    "injective": "permutation",
    "floor_divide": "remainder",
    "remainder": "floor_divide",
    "=": "!=",
    ">": ">=",
    ">=": ">",
    "space": "size",
    "exp": "log",
    "log": "exp",
    "natural": "real",
    "inverse": "named",
    "where": "maximum",
    "abs": "sqrt",
}
VARIADIC = {"add": 0, "mul": 0, "fresh": 1, "_equal": 2, "_with": 2, "_row": 1}
"""Variadic functions, with the number of their fixed arguments."""
SYMMETRIC = {
    "add",
    "mul",
    "min",
    "max",
    "same_polynomial",
    "need",
    "isinstance",
    "type",
    "zip",
    "fresh",
}
OPPOSITE = {"all": "any", "any": "all", "min": "max", "max": "min"}
LEFT_OUT = {
    "__repr__",
    "__str__",
    "__reduce__",
    "fresh_name",
    "told",
    "_short",
    "_opposite",
    "_is_negative",
    "_bounds",
}
"""Functions that only concern printed text."""
EMPTY = ast.Call(ast.Name("frozenset", ast.Load()), [], [])


@dataclass(frozen=True)
class Mutant:
    """One change: its place, and the text before and after."""

    file: Path
    function: str
    line: int
    before: str
    after: str
    number: int
    parent: Any
    field: str
    index: int | None
    replacement: ast.AST
    statement: ast.stmt

    @property
    def name(self) -> str:
        """The name of the change, which does not depend on line numbers."""
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.function}: {self.before} -> {self.after}{again}"

    def apply(self) -> None:
        """Apply the change to the tree from which it was made."""
        if self.index is None:
            setattr(self.parent, self.field, self.replacement)
        else:
            getattr(self.parent, self.field)[self.index] = self.replacement


def mutants(file: Path, tree: ast.Module, functions: frozenset[str]) -> Iterator[Mutant]:
    """Yield every single change of a parsed file, or of the named functions if there are any.

    >>> [m.name for m in mutants(Path("f.py"), ast.parse("def f(x): return x > 1"), frozenset())]
    ['f: x > 1 -> x >= 1', 'f: 1 -> 2', 'f: 1 -> 0']
    """
    seen = Counter[tuple[str, str, str]]()
    for at in tree.body:
        if isinstance(at, (ast.Import, ast.ImportFrom)) or _is_names(at):
            continue
        for place, node, changed in _changes(at, at, ""):
            function, parent, field, index = place
            if functions and function.split(".")[0] not in functions:
                continue
            before, after = _text(node), _text(changed)
            if before == after:
                continue
            seen[function, before, after] += 1
            line = getattr(node, "lineno", getattr(parent, "lineno", 0))
            yield Mutant(
                file,
                function,
                line,
                before,
                after,
                seen[function, before, after],
                tree if parent is None else parent,
                field,
                index,
                changed,
                at,
            )


Place = tuple[str, Any, str, int | None]
Changed = tuple[Place, ast.AST, ast.AST]


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())


def _is_names(at: ast.stmt) -> bool:
    """Whether a statement is ``__all__``, a type alias or a docstring."""
    if isinstance(at, ast.Expr) or (
        isinstance(at, ast.Assign) and isinstance(at.value, ast.Subscript)
    ):
        return True
    return isinstance(at, ast.Assign) and _text(at.targets[0]) == "__all__"


def _changes(at: ast.stmt, node: ast.AST, function: str) -> Iterator[Changed]:
    """Yield the changes of the descendants of a node."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        if node.name in LEFT_OUT:
            return
        function = f"{function}.{node.name}" if function else node.name
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "msg", "ctx", "bases"):
            continue
        parts: list[tuple[int | None, Any]] = [(None, value)]
        if isinstance(value, list):
            parts = list(enumerate(value))
        if isinstance(node, ast.ClassDef):
            parts = [(k, part) for k, part in parts if isinstance(part, ast.FunctionDef)]
        if isinstance(node, ast.Call) and called(node) == "need" and field == "args":
            parts = parts[:1]
        for index, part in parts:
            if not isinstance(part, ast.AST) or isinstance(part, (ast.JoinedStr, ast.Raise)):
                if isinstance(part, ast.Raise):
                    yield (function, node, field, index), part, ast.Pass()
                continue
            for changed in _instead(part, node):
                yield (function, node, field, index), part, ast.copy_location(changed, part)
            yield from _changes(at, part, function)


def called(call: ast.Call) -> str:
    """Return the name of the function or method that is called, if it has one."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _instead(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield replacements for a node."""
    for kind, change in _INSTEAD.items():
        if isinstance(node, kind):
            yield from change(node, parent)


def _without(nodes: list[Any], k: int) -> list[Any]:
    return [*nodes[:k], *nodes[k + 1 :]]


def _swapped(nodes: list[Any], k: int) -> list[Any]:
    return [*nodes[:k], nodes[k + 1], nodes[k], *nodes[k + 2 :]]


def _connective(node: ast.BoolOp, _: ast.AST) -> Iterator[ast.AST]:
    for k in range(len(node.values)):
        rest = _without(node.values, k)
        yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _comparison(node: ast.Compare, _: ast.AST) -> Iterator[ast.AST]:
    for k, op in enumerate(node.ops):
        ops = [*node.ops[:k], COMPARISONS[type(op)](), *node.ops[k + 1 :]]
        yield ast.Compare(node.left, ops, node.comparators)
    if len(node.ops) > 1:
        yield ast.Compare(node.left, node.ops[:-1], node.comparators[:-1])
        yield ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])


def _constant(node: ast.Constant, parent: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        if node.value or not isinstance(parent, ast.Subscript):  # of one argument [-1] is [0]
            yield ast.Constant(node.value - 1)
    elif isinstance(node.value, str) and not isinstance(parent, (ast.Expr, ast.Dict)):
        yield ast.Constant(CONFUSED.get(node.value, node.value))


def _unary(node: ast.UnaryOp, _: ast.AST) -> Iterator[ast.AST]:
    yield node.operand


def _binary(node: ast.BinOp, _: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node.op, (ast.BitOr, ast.BitAnd)):
        yield node.left
        yield node.right
    elif type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        yield node.left


def _call(node: ast.Call, _: ast.AST) -> Iterator[ast.AST]:
    name, args = called(node), node.args
    if name in OPPOSITE:
        yield ast.Call(ast.Name(OPPOSITE[name], ast.Load()), args, node.keywords)
    if isinstance(node.func, ast.Attribute) and name == "union":
        yield node.func.value
    if name == "frozenset" and args:
        yield EMPTY
    if name == "Proof":
        yield ast.Call(node.func, [*args[:4], EMPTY, *args[5:]], node.keywords)
    for k in range(VARIADIC.get(name, len(args)), len(args)):
        if len(args) > 1:
            yield ast.Call(node.func, _without(args, k), node.keywords)
    for k, keyword in enumerate(node.keywords):
        if keyword.arg == "strict" and _text(keyword.value) == "False":  # as it is without
            continue
        yield ast.Call(node.func, args, _without(node.keywords, k))
    if name not in SYMMETRIC:
        for k in range(len(args) - 1):
            if not any(isinstance(x, ast.Starred) for x in args[k : k + 2]):
                yield ast.Call(node.func, _swapped(args, k), node.keywords)


def _collection(node: Any, parent: ast.AST) -> Iterator[ast.AST]:
    words = all(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in node.elts)
    if words or isinstance(node, ast.Set):
        for k in range(len(node.elts)):
            yield _like(node, _without(node.elts, k))
    elif isinstance(node, ast.Tuple) and isinstance(parent, ast.Call) and called(parent) == "make":
        for k in range(len(node.elts) - 1):
            yield _like(node, _swapped(node.elts, k))
    elif isinstance(node, ast.Tuple) and isinstance(parent, ast.Return) and len(node.elts) == 2:
        yield _like(
            node, [node.elts[0], node.elts[1] if _text(node.elts[1]) == "NOTHING" else EMPTY]
        )


def _like(node: Any, elements: list[Any]) -> ast.AST:
    if isinstance(node, ast.Set):
        return ast.Set(elements) if elements else EMPTY
    return ast.List(elements) if isinstance(node, ast.List) else ast.Tuple(elements)


def _dict(node: ast.Dict, _: ast.AST) -> Iterator[ast.AST]:
    for k in range(len(node.keys)):
        yield ast.Dict(_without(node.keys, k), _without(node.values, k))


def _choice(node: ast.IfExp, _: ast.AST) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse


def _branch(node: ast.If, _: ast.AST) -> Iterator[ast.AST]:
    for value in (True, False):
        yield ast.If(ast.Constant(value), node.body, node.orelse)


def _filter(node: ast.comprehension, _: ast.AST) -> Iterator[ast.AST]:
    for k in range(len(node.ifs)):
        yield ast.comprehension(node.target, node.iter, _without(node.ifs, k), node.is_async)


def _slice(node: ast.Slice, _: ast.AST) -> Iterator[ast.AST]:
    if node.lower is not None:
        yield ast.Slice(None, node.upper, node.step)
    if node.upper is not None:
        yield ast.Slice(node.lower, None, node.step)


def _expression(node: ast.Expr, _: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node.value, ast.Constant):
        yield ast.Pass()


def _statement(_: ast.AST, __: ast.AST) -> Iterator[ast.AST]:
    yield ast.Pass()


_INSTEAD: dict[type[ast.AST], Any] = {
    ast.BoolOp: _connective,
    ast.Compare: _comparison,
    ast.Constant: _constant,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.Tuple: _collection,
    ast.List: _collection,
    ast.Set: _collection,
    ast.Dict: _dict,
    ast.IfExp: _choice,
    ast.If: _branch,
    ast.comprehension: _filter,
    ast.Slice: _slice,
    ast.Expr: _expression,
    ast.AugAssign: _statement,
    ast.Continue: _statement,
    ast.Break: _statement,
}
