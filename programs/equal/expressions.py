"""Expressions for an argument or a weight in terms of the arrays of the other program.

    wq = q_proj.weight[0:16].T
    k = cat(k1, k2, dim=2)
    K, V: joined of 2 shards along n

Names may contain dots; the language has ``cat``, indices and slices, lists of indices, ``.T`` (of a
matrix), ``.mT``, sums, products and quotients.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import EllipsisType
from typing import Any

import torch
from torch import nn

from ..signatures.grammar import at_commas
from ..signatures.signature import SignatureError

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_JOINED = re.compile(
    r"(?P<names>[\w.,\s]+):\s*joined\s+of\s+(?:(?P<count>\d+)\s+shards|(?P<parts>[\w.,\s]+?))"
    r"\s+along\s+(?P<axis>\w+)"
)
SYNTAX = "NAME = EXPRESSION, such as wq = q_proj.weight[0:16].T, with commas between"
OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.MatMult: lambda a, b: a @ b,
    ast.USub: lambda a: -a,
}


@dataclass(frozen=True)
class Expression:
    """An expression as written, and the names in it."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Evaluate the expression on these arrays."""
        return _value(self.tree, self.names, values)


def itself(name: str) -> Expression:
    """Return the array of a name, which need not be one that can be written, such as 0.weight."""
    return Expression(name, ast.Name("_0"), (name,))


def expressions(text: str) -> dict[str, Expression]:
    """Parse definitions; return expressions by name.  Raises :class:`SignatureError`.

    >>> made = expressions("wq = qkv.weight[:2].T, wo = o.weight")
    >>> made["wq"].names, made["wq"].evaluate({"qkv.weight": torch.ones(6, 3)}).shape
    (('qkv.weight',), torch.Size([3, 2]))
    """
    found = {}
    for part in filter(None, at_commas(text)[0]):
        name, equals, told = (side.strip() for side in part.partition("="))
        if not equals or not _NAME.fullmatch(name) or not told:
            raise SignatureError(f"wanted {SYNTAX}; got {part.strip()!r}")
        if name in found:
            raise SignatureError(f"wanted one expression for {name}, got two: {text!r}")
        found[name] = _parse(told)
    return found


def _parse(told: str) -> Expression:
    names: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        if match[0] in ("T", "mT") and told[match.start() - 1 : match.start()] == ".":
            return match[0]  # a transpose, not a name
        name, tail = match[0], ""
        while (ending := name.rpartition("."))[2] in ("T", "mT"):
            name, tail = ending[0], f".{ending[2]}{tail}"
        if name in ("cat", "dim"):
            return match[0]
        return names.setdefault(name, f"_{len(names)}") + tail

    text = _NAME.sub(placeholder, told)
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise SignatureError(f"wanted {SYNTAX}; got {told!r}") from None
    if not names:
        raise SignatureError(f"wanted a name of the other program in {told!r}, got none")
    return Expression(told, tree, tuple(names))


def _value(tree: ast.AST, names: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    def evaluate(part: ast.AST | None) -> Any:
        return None if part is None else _value(part, names, values)

    match tree:
        case ast.Name(id=name) if name.startswith("_"):
            return values[names[int(name[1:])]]
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Attribute(value=part_of, attr="T" | "mT"):
            return evaluate(part_of).mT
        case ast.UnaryOp(op=ast.USub(), operand=part):
            return -evaluate(part)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in OPERATIONS:
            return OPERATIONS[type(operation)](evaluate(left), evaluate(right))
        case ast.Subscript(value=part_of, slice=place):
            return evaluate(part_of)[evaluate(place)]
        case ast.Slice() | ast.Tuple() | ast.List() | ast.Constant(value=EllipsisType()):
            return _place(tree, evaluate)
        case ast.Call(func=ast.Name(id="cat"), args=parts, keywords=more):
            dim = next((evaluate(k.value) for k in more if k.arg == "dim"), 0)
            return torch.cat([evaluate(part) for part in parts], dim)
    raise SignatureError(f"wanted {SYNTAX}; got {ast.unparse(tree)!r}, which cannot be evaluated")


def _place(tree: ast.AST, evaluate: Callable[[ast.AST | None], Any]) -> Any:
    """Return the value of an index expression."""
    match tree:
        case ast.Slice(lower=low, upper=high, step=step):
            return slice(evaluate(low), evaluate(high), evaluate(step))
        case ast.Tuple(elts=parts):
            return tuple(evaluate(part) for part in parts)
        case ast.List(elts=parts):
            return [evaluate(part) for part in parts]
    return ...


def joined(text: str, known: Collection[str]) -> tuple[dict[str, tuple[str, ...]], str] | None:
    """Return the parts that each name is joined from, and the letter of the axis; else None.

    ``known``: the names of the available arrays, among which shards are searched for.
    Raises :class:`SignatureError`.

    >>> joined("K, V: joined of 2 shards along n", ["q", "K1", "K2", "V1", "V2"])
    ({'K': ('K1', 'K2'), 'V': ('V1', 'V2')}, 'n')
    >>> joined("k: joined of old, new along n", ["old", "new"])
    ({'k': ('old', 'new')}, 'n')
    """
    told = _JOINED.fullmatch(text.strip())
    if told is None:
        return None
    names = [name.strip() for name in told["names"].split(",")]
    if told["parts"]:
        parts = tuple(part.strip() for part in told["parts"].split(","))
        if len(names) > 1:
            raise SignatureError(f"wanted one name before its parts, got {told['names']!r}")
        _require_known(parts, known)
        return {names[0]: parts}, told["axis"]
    found = {}
    for name in names:
        ways = [
            tuple(f"{name}{between}{k}" for k in range(first, first + int(told["count"])))
            for between in ("", "_")
            for first in (0, 1)
        ]
        own = next((way for way in ways if set(way) <= set(known)), None)
        if own is None:
            raise SignatureError(
                f"wanted {told['count']} shards of {name}, such as {', '.join(ways[1])}; got "
                f"{', '.join(known)}; write them as {name}: joined of A, B along {told['axis']}"
            )
        found[name] = own
    return found, told["axis"]


def _require_known(names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=2) or list(known)
            raise SignatureError(f"there is no array {name!r}; nearest: {', '.join(near)}")


WEIGHT_PATTERNS = {
    "wq": r"(q_proj|wq|to_q|query|q_lin|q)\.weight",
    "wk": r"(k_proj|wk|to_k|key|k_lin|k)\.weight",
    "wv": r"(v_proj|wv|to_v|value|v_lin|v)\.weight",
    "wo": r"(o_proj|out_proj|wo|to_out(\.0)?|dense|out_lin|c_proj|out|proj|o)\.weight",
    "bq": r"(q_proj|wq|to_q|query|q_lin|q)\.bias",
    "bk": r"(k_proj|wk|to_k|key|k_lin|k)\.bias",
    "bv": r"(v_proj|wv|to_v|value|v_lin|v)\.bias",
    "bo": r"(o_proj|out_proj|wo|to_out(\.0)?|dense|out_lin|c_proj|out|proj|o)\.bias",
    "nq": r"(q_norm|query_norm|q_layernorm|query_layernorm)\.weight",
    "nk": r"(k_norm|key_norm|k_layernorm|key_layernorm)\.weight",
    "sink": r"sinks?",
    "table": r"rel(ative)?_(attention|pos(ition)?)_(bias|table|embedding)(_table)?(\.weight)?",
}
FUSED_PATTERN = re.compile(
    r"(qkv_proj|qkv|c_attn|query_key_value|in_proj|Wqkv|W_pack|to_qkv)[._](weight|bias)"
)


def weights_of(
    module: nn.Module, heads: int | None = None, groups: int | None = None
) -> dict[str, Expression]:
    """Identify the weights of a layer among the parameters of a module, by name.

    ``heads``, ``groups``: numbers of heads of queries, and of keys and values.  Fused weights are
    cut into consecutive blocks of queries, keys and values.
    """
    known = dict(module.named_parameters())
    found: dict[str, str] = {}
    for weight, pattern in WEIGHT_PATTERNS.items():
        hits = [name for name in known if re.fullmatch(rf"(.+\.)?{pattern}", name)]
        if len(hits) == 1:
            found[weight] = hits[0]
    fused = [name for name in known if FUSED_PATTERN.fullmatch(name)]
    for name in fused:
        rows = known[name].shape[0]
        queries, keys = heads or 1, groups or heads or 1
        width = rows // (queries + 2 * keys)
        cuts = [0, queries * width, (queries + keys) * width, rows]
        letter = "w" if name.endswith("weight") else "b"
        found |= {f"{letter}{c}": f"{name}[{cuts[k]}:{cuts[k + 1]}]" for k, c in enumerate("qkv")}
    return {name: expressions(f"{name} = {told}")[name] for name, told in found.items()}
