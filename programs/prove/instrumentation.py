"""Compile functions again so that a watch sees what they compare while they run.

A branch on a length is a guard of the graph if it is traced.  One that is reached only where
lengths are plain numbers, gradients are wanted or nothing is compiled leaves nothing in the graph.
So the functions that a call runs are compiled again, with each side of a comparison passed through
a function that records it and returns it.  During a watched call the functions have the new code,
which computes what the original does; the code compared with the graph is the original.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType, FunctionType
from typing import Any

from ..loading.reach import codes_in
from .blocks import MARK, Blocks, Place, recorded, shortened
from .comparison_monitor import CAUGHT, KIND_ATTRIBUTES, TRY, ComparisonMonitor, Site
from .environment import SETTINGS
from .executed_code import TRACING_QUERIES, functions_in_memory

SIGNS: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
DIVISIONS = {ast.FloorDiv, ast.Mod, ast.RShift, ast.Div}
# Functions that return the numbers in a tensor, or a truth value about them.
TENSOR_TO_NUMBER = ("item", "equal", "allclose", "is_nonzero")
# Methods that remove or move what is kept, so that the next call finds something else.
CONSUMING_METHODS = (
    *("pop", "popleft", "popitem", "rotate", "reverse"),
    *("send", "get_nowait", "read", "readline", "readlines"),
)
# Functions whose answer differs under tracing, where a length is not an int, or for tensors.
KIND_QUERIES = (
    *("isinstance", "type", "str", "repr", "format", "hash", "hasattr", "getattr", "vars", "dir"),
)
# Queries of arrays and of torch are recorded, except these, which are fixed for a graph.
FIXED_QUERIES = frozenset(
    (
        *("is_floating_point", "is_complex", "is_signed", "is_tensor", "is_scripting"),
        *("is_cuda", "is_cpu", "is_mps", "is_xpu", "is_meta"),
        *("is_autocast_enabled", "is_autocast_cpu_enabled"),
        *SETTINGS,
        *TRACING_QUERIES,
    )
)
ASSERTIONS = ("_check", "_assert")  # functions of torch that raise or return None


MAX_SEARCHES = 4  # of memory for functions with the same code


class _Marking(ast.NodeTransformer):
    """Pass each side of a comparison through a function that records it."""

    def __init__(self, sites: list[Site]) -> None:
        self.sites = sites
        self.called: set[int] = set()  # functions, by id
        self.discarded: set[int] = set()  # expressions that are statements, by id

    def _site(
        self, node: ast.AST, sign: str, targets: tuple[Any, ...] = (), *, whole: bool = False
    ) -> int:
        self.sites.append(Site(sign, shortened(ast.unparse(node)), targets, whole))
        return len(self.sites) - 1

    def _marked(
        self, node: ast.AST, sign: str, *sides: tuple[ast.AST, str], whole: bool = False
    ) -> ast.AST:
        """Return a node whose sides, each the attribute of one of its parts, are recorded."""
        site = self._site(node, sign, whole=whole)
        self.generic_visit(node)
        for k, (part, name) in enumerate(sides):
            setattr(part, name, recorded(site, k, getattr(part, name)))
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        signs = [SIGNS.get(type(op), "") for op in node.ops]
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and not any(
            isinstance(one, ast.Constant) for one in (node.left, *node.comparators)
        ):
            # arrays themselves, unlike attributes, may be identical in some runs only
            attributes = (isinstance(one, ast.Attribute) for one in (node.left, *node.comparators))
            signs = ["is"] * (len(signs) == 1 and any(attributes))
        if not signs or not all(signs):
            return self.generic_visit(node)
        first, *_ = [self._site(node, sign) for sign in signs]
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        node.left, *node.comparators = (recorded(first, k, one) for k, one in enumerate(sides))
        return node

    def _recorded_test(self, node: ast.expr) -> ast.expr:
        """Return a test that records its value, unless it is a comparison itself."""
        if isinstance(node, ast.Compare | ast.BoolOp | ast.Constant | ast.UnaryOp):
            return self.visit(node)  # type: ignore[no-any-return]
        site = self._site(node, "if")
        return recorded(site, -1, self.visit(node))

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            return super().visit(node)
        asked, node.test = self._recorded_test(node.test), ast.Constant(None)
        self.generic_visit(node)
        node.test = asked
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        asked, node.ifs = [self._recorded_test(one) for one in node.ifs], []
        self.generic_visit(node)
        node.ifs = asked
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        kept = isinstance(node.iter, ast.Name | ast.Attribute)
        site = self._site(node.iter, "taken") if kept else 0
        self.generic_visit(node)
        node.iter = recorded(site, -1, node.iter) if kept else node.iter
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        node.values = [self._recorded_test(one) for one in node.values]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            node.operand = self._recorded_test(node.operand)
            return node
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if type(node.op) not in DIVISIONS:
            return self.generic_visit(node)
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return self._marked(node, "kind", (node, "right"))
        whole = isinstance(node.op, ast.FloorDiv | ast.Mod)
        return self._marked(node, "//", (node, "left"), (node, "right"), whole=whole)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Slice):
            return self._recorded_slice(node, node.slice)
        plain = isinstance(node.slice, ast.Constant | ast.Tuple)
        if not isinstance(node.ctx, ast.Load) or plain:
            return self.generic_visit(node)
        return self._marked(node, "item", (node, "value"), (node, "slice"))

    def _recorded_slice(self, node: ast.Subscript, cut: ast.Slice) -> ast.AST:
        """Return a slice that records where it starts and ends, if that is computed."""
        computed = [one for one in (cut.lower, cut.upper) if one is not None and _names(one)]
        if not computed or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        site = self._site(node, "slice")
        self.generic_visit(node)
        node.value = recorded(site, 0, node.value)
        cut.lower, cut.upper = (
            recorded(site, 1, one) if one is not None else None for one in (cut.lower, cut.upper)
        )
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        plain = node.args and not any(isinstance(one, ast.Starred) for one in node.args)
        attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        self.called.add(id(node.func))
        if attribute in TENSOR_TO_NUMBER or name in TENSOR_TO_NUMBER:
            site = self._site(node, "bool")
            return recorded(site, -1, self.generic_visit(node))  # type: ignore[arg-type]
        if name == "bool" and len(node.args) == 1:
            node.args = [self._recorded_test(node.args[0])]
            return node
        asks = name in KIND_QUERIES and (name != "getattr" or len(node.args) > 2)
        if attribute.strip("_") in ("str", "repr", "hash"):
            return self._marked(node, "kind", (node.func, "value"))
        if plain and (asks or attribute == "format"):
            site = self._site(node, "kind")
            self.generic_visit(node)
            asked = node.args[: 1 + (name == "isinstance")] if asks else node.args
            node.args[: len(asked)] = [recorded(site, 0, one) for one in asked]
            return node
        if name == "next" and plain:
            site = self._site(node, "taken")
            node.args[0] = recorded(site, -1, self.visit(node.args[0]))
            return node
        if attribute in CONSUMING_METHODS or (attribute == "get" and not node.args):
            return self._marked(node, "taken", (node.func, "value"))
        get = attribute in ("get", "setdefault")
        if not plain or not (get or name in ("min", "max", "range")):
            return self._recorded_query(node, node.func)
        if get:
            site = self._site(node, "get")
            self.generic_visit(node)
            assert isinstance(node.func, ast.Attribute)
            node.func.value = recorded(site, 0, node.func.value)
            node.args[0] = recorded(site, 1, node.args[0])
        elif name == "range" and len(node.args) == 1:
            site = self._site(node, "range")
            self.generic_visit(node)
            node.args[0] = recorded(site, -1, node.args[0])
        else:
            first, *_ = [self._site(node, "min") for _ in node.args]
            self.generic_visit(node)
            node.args = [recorded(first, k, one) for k, one in enumerate(node.args)]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.discarded.add(id(node.value))  # such an answer decides nothing
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if id(node) in self.called or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        if node.attr not in KIND_ATTRIBUTES:
            return self._recorded_query(node, node)
        return self._marked(node, "kind", (node, "value"))

    def _recorded_query(self, node: ast.expr, asked: ast.expr) -> ast.AST:
        """Return a query of an array or of torch that records its answer."""
        name = asked.attr if isinstance(asked, ast.Attribute) else getattr(asked, "id", "")
        known = not isinstance(asked, ast.Name | ast.Attribute) or hasattr(builtins, name)
        fixed = name in FIXED_QUERIES or name.startswith(ASSERTIONS)
        if known or fixed or id(node) in self.discarded:
            return self.generic_visit(node)
        site = self._site(node, "asks")
        self.generic_visit(node)
        if isinstance(asked, ast.Attribute):
            asked.value = recorded(site, 0, asked.value)
        elif isinstance(node, ast.Call):
            node.func = recorded(site, 0, asked)
        return recorded(site, -1, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        site = self._site(ast.JoinedStr([node]), "kind")
        self.generic_visit(node)
        node.value = recorded(site, 0, node.value)
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        if not node.handlers:
            return self.generic_visit(node)
        kinds = [one.type for one in node.handlers if one.type is not None]
        told = " or ".join(ast.unparse(one) for one in kinds)
        site = self._site(ast.Name(f"except {told}" if told else "except"), "try")
        self.generic_visit(node)
        for body, came in ((node.body, TRY), *((one.body, CAUGHT) for one in node.handlers)):
            mark = ast.Expr(recorded(site, came, ast.copy_location(ast.Constant(None), body[0])))
            body.insert(0, ast.copy_location(mark, body[0]))
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        values = (one for case in node.cases for one in ast.walk(case.pattern))
        targets = tuple(
            one.value.value
            for one in values
            if isinstance(one, ast.MatchValue) and isinstance(one.value, ast.Constant)
        )
        told = ast.Name(ast.unparse(node.subject))
        site = self._site(told, "case", targets) if targets else None
        kinds = any(isinstance(one, ast.MatchClass) for c in node.cases for one in ast.walk(c))
        of_kind = self._site(ast.Name(f"match {told.id}"), "kind") if kinds else None
        self.generic_visit(node)
        if of_kind is not None:
            node.subject = recorded(of_kind, 0, node.subject)
        if site is not None:
            node.subject = recorded(site, 0, node.subject)
        return node


def _names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) for one in ast.walk(node))


Key = tuple[str, int, tuple[str, ...], tuple[str, ...]]


def _key(code: CodeType) -> Key:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_qualname, code.co_firstlineno, code.co_varnames[:count], code.co_freevars


def _with(code: CodeType, write: Callable[..., Any]) -> CodeType:
    """Return a code object with the function in place of its mark."""
    return code.replace(
        co_consts=tuple(
            _with(c, write) if isinstance(c, CodeType) else write if _is_mark(c) else c
            for c in code.co_consts
        )
    )


def _is_mark(const: Any) -> bool:
    return isinstance(const, str) and const == MARK


@dataclass(frozen=True)
class _Statement:
    """The first and the last line of a statement, and the statements of a class."""

    first: int
    last: int
    is_future: bool
    inner: tuple[_Statement, ...] = ()


@lru_cache(maxsize=64)
def _statements(text: str) -> tuple[_Statement, ...]:
    """Return the statements of a source file; none if its syntax is wrong."""
    with suppress(SyntaxError):
        return tuple(map(_statement, ast.parse(text).body))
    return ()


def _statement(node: ast.stmt) -> _Statement:
    decorators = getattr(node, "decorator_list", ())
    first = min([node.lineno, *(one.lineno for one in decorators)])
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    inner = tuple(map(_statement, node.body)) if isinstance(node, ast.ClassDef) else ()
    return _Statement(first, node.end_lineno or node.lineno, future, inner)


def _kept(some: Iterable[_Statement], wanted: Collection[int]) -> Iterator[range]:
    """Yield the lines of the statements that contain one of these lines, and heads of classes."""
    for one in some:
        whole = range(one.first, one.last + 1)
        if not one.is_future and not any(line in whole for line in wanted):
            continue
        if one.inner:
            yield range(one.first, one.inner[0].first)
            yield from _kept(one.inner, wanted)
        else:
            yield whole


@dataclass
class _Source:
    """A source file that contains functions."""

    name: str
    names: Mapping[str, Any]

    @cached_property
    def lines(self) -> list[str]:
        return linecache.getlines(self.name, dict(self.names))

    def parsed(self, wanted: Collection[int]) -> list[ast.stmt]:
        """Return the statements that contain these lines; to parse a long file takes its time."""
        whole = "".join(self.lines)
        kept = {line for lines in _kept(_statements(whole), wanted) for line in lines}
        text = (one if k in kept else "\n" for k, one in enumerate(self.lines, start=1))
        with suppress(SyntaxError):  # statements share a line, or nothing of a class is left
            return ast.parse("".join(text)).body
        return ast.parse(whole).body

    def recompiled(
        self, codes: Collection[CodeType], watch: ComparisonMonitor
    ) -> dict[Key, CodeType]:
        """Compile these codes again, with blocks marked, and comparisons too if they count."""
        told = self.parsed({code.co_firstlineno for code in codes})

        def site(place: Place, text: str) -> int:
            watch.sites.append(Site("block", text, (self.name, *place)))
            return len(watch.sites) - 1

        told = [_Marking(watch.sites).visit(one) for one in told] if watch.compared else told
        tree = ast.Module([Blocks(self.lines, site).visit(one) for one in told], [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = compile(ast.fix_missing_locations(tree), self.name, "exec", dont_inherit=True)
        found: dict[Key, CodeType] = {}
        twice = Counter(_key(code) for code in codes_in(made))
        for code in codes_in(made):
            if twice[_key(code)] == 1:
                found[_key(code)] = _with(code, watch.write)
        return found


def instrument(functions: Iterable[FunctionType], watch: ComparisonMonitor) -> None:
    """Make a watch see what these functions compare, if their source files are found.

    Functions with the same code record it at the same sites, those made in a watched run too.
    """
    functions = [*functions]
    files: dict[str, list[FunctionType]] = {}
    for one in functions:
        if one.__code__ not in watch.again:
            files.setdefault(one.__code__.co_filename, []).append(one)
    for name, group in files.items():
        codes = [one.__code__ for one in group]
        made = _Source(name, group[0].__globals__).recompiled(codes, watch)
        every = (inner for code in codes if _key(code) in made for inner in codes_in(code))
        watch.again |= {code: made[_key(code)] for code in every if _key(code) in made}
    for one in functions:
        watch.add(one)


def instrument_unwatched(watch: ComparisonMonitor) -> bool:
    """Make a watch see functions that ran as they are; return whether some were found.

    A factory that keeps what it makes hides it from a search by name.
    """
    count = len(watch.functions)
    wanted = [one for one in watch.unwatched if watch.sought[one] < MAX_SEARCHES]
    watch.sought.update(wanted)
    found = functions_in_memory(wanted)
    instrument(found, watch)
    for one in found:
        if one.__code__ in watch.again:
            watch.unwatched.pop(one.__code__, None)  # noted again if it still runs as it is
    return len(watch.functions) > count
