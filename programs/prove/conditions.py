"""State the conditions of a proof in words: on lengths, on values, on how the code is called.

All conditions of a proof stand on the line of its verdict.  One of them bounds the positions and
lengths for which integers of a graph stay within their dtype: numbers in terms are unbounded, and
int64 wraps around at 2⁶³.  Code that counts positions in units of 2⁻⁴⁰ wraps from position 2²³ on,
and what is proved of it holds below.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import Node

from attnproof.documents.verdict_line import Condition
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.terms import Term
from attnproof.theorems.laws import Formula

from ..execution.response import leaves
from ..finding import involves_gradients
from ..loading.source_numbers import asks_device
from ..subjects import Pair, Subject
from .calls import Call
from .exporting import Exported
from .guards import Binding, satisfiable
from .least_lengths import Bounds, from_one, quotients_of
from .nodes import nodes_of
from .operations import Unread
from .paired_runs import Gate
from .printed_lengths import letter_equations, printed_conditions, printed_ranges
from .statements import LIKE, TOKENS, Axes, Graph, reorders
from .token_blocks import WITHIN

# The calls a graph covers.  Code that counts its calls, keeps state between them, or asks how it is
# called may run another graph elsewhere; the probes of state look for that.  Nothing is traced
# under autocast, which code can query.
ONE_CALL = Condition("every float32 call in evaluation without autocast runs this graph", "where")
# A graph says nothing about derivatives: detached values are in it like others.
ON_CPU = Condition("calls run on the CPU (the code checks the device)", "where")
BY_VALUE = Condition("this covers values, not gradients", "where")
ORDERED = ("composition", "identity-at-zero")  # laws that rotate a result again
IN_ORDER = Condition("channels are returned in the order of the input", "where")
NO_NAN = "the code gives no NaN"
SHORT = 60  # characters of a formula that fits in the line


OF_ALL = {
    "≠ 0": "no denominator is 0",
    "≥ 0": "no root of a negative number is taken",
    "> 0": "every logarithm is of a positive number",
}


def defined(told: str, short: int = SHORT) -> Condition:
    """State that a number is nonzero or nonnegative; if it is long, that all such numbers are."""
    return Condition(told if len(told) <= short else OF_ALL.get(told[-3:], told), "if")


@dataclass
class Conditions:
    """The wording of conditions on the calls of a subject, by the letters of their lengths."""

    subject: Subject
    letters: Axes
    asking: dict[int, tuple[Call, bool]] = field(default_factory=dict)  # keeps each call alive

    def guards(self, graphs: Sequence[Graph]) -> tuple[str, ...]:
        """Return the ranges of the lengths of the calls, and what is fixed in them."""
        own = [(g.exported.ranges, [self._own(g)]) for g in graphs]
        settings = (c.text for g in graphs for c in g.call.where)
        ranges = map(self.lettered, printed_ranges(own))
        equations = map(self.lettered, letter_equations(self.letters))
        return tuple(dict.fromkeys((*settings, *ranges, *self._fixed(graphs), *equations)))

    def _own(self, graph: Graph) -> Binding:
        """Return the letters of a call for the lengths of its graph."""
        return tuple(
            (length, self.letters[letter])
            for letter, length, _ in graph.axes
            if isinstance(length, str)
        )

    def _fixed(self, graphs: Iterable[Graph]) -> tuple[str, ...]:
        letters = dict.fromkeys(c for g in graphs for told in g.call.letters for c in told.split())
        for letter in getattr(self.subject, "single", ""):
            letters.pop(letter, None)  # the code has no such axis
        known = {c: number_of(self.letters[c]) for c in letters if c.isalpha()}
        given = self.subject.lengths_given
        others = (f"{c} = {n}" for c, n in given.items() if c not in self.letters)
        block = known.pop(WITHIN, None)
        told = (f"{self.lettered(c)} = {n}" for c, n in known.items() if n is not None)
        return (*told, *others, *([f"whole blocks of {block} tokens"] if block else []))

    def lettered(self, told: str) -> str:
        """Write lengths in the letters of the call: n keys, or tokens, and r queries.

        Another length of the same kind, such as the batch of a second call, is B′ beside B.  The
        lengths of code in blocks count blocks: 4·n is n tokens in blocks of 4, and n is n/4 blocks.
        """
        if isinstance(self.subject, Pair):  # whose calls are declared in these letters
            return told
        names = {more: f"{like}′" for more, like in LIKE.items() if more not in self.letters}
        if "r" not in self.letters:
            names["m"] = "n″"
        block = self.subject.multiple_of

        def name(found: re.Match[str]) -> str:
            times, letter = found.groups()
            own = names.get(letter, letter)
            if block == 1 or letter not in TOKENS:
                return f"{times or ''}{own}"
            if times and not told.startswith("^", found.end()):
                return own
            before, behind = told[: found.start(2)], told[found.end() :]
            alone = not before.endswith(("/", "^", "mod ")) and not behind.startswith("^")
            return f"{times or ''}{own}/{block}" if alone else f"{times or ''}({own}/{block})"

        return re.sub(rf"((?<![\w.^/·]){block}·)?\b([Anrm])\b", name, told)

    def at(self, lengths: Mapping[str, int]) -> str:
        """Return lengths by the letters of a call, as they are printed."""
        return ", ".join(f"{self.lettered(letter)} = {n}" for letter, n in lengths.items())

    def lengths(self, graphs: Mapping[str, Graph], bounds: Bounds) -> tuple[Condition, ...]:
        """Return the conditions on the lengths a law uses; raise ``Unread`` if none satisfy them.

        ``bounds``: lengths that the statement writes in terms of others.
        """
        rewritten = from_one(bounds)
        used = [
            (
                g.exported.conditions,
                g.exported.ranges,
                list(
                    dict.fromkeys(
                        tuple((symbol, rewritten(length)) for symbol, length in one)
                        for p in g.programs
                        for one in p.met
                    )
                ),
            )
            for g in graphs.values()
        ]
        for numerator, divisor, _ in quotients_of(graphs.values()):  # sizes are 1 or more
            least = sympy.Ge(sympy.Symbol("quotient", integer=True), divisor)
            used.append(((least,), {}, [(("quotient", rewritten(numerator)),)]))
        if not satisfiable(used):
            raise Unread("no lengths were found at which the law satisfies the guards")
        longest: dict[Term, int] = {}
        for g in graphs.values():
            for program in g.programs:
                for length, most in program.notes.longest.items():
                    told_length = rewritten(length)
                    longest[told_length] = min(most, longest.get(told_length, most))
        told = dict.fromkeys(printed_ranges([(r, met) for _, r, met in used], longest))
        told |= dict.fromkeys(t for c, r, met in used for t in printed_conditions(c, met, r))
        told |= dict.fromkeys(
            t
            for g, (_, _, met) in zip(graphs.values(), used, strict=False)
            for t in _always_equal(g, met)
        )
        told |= dict.fromkeys(letter_equations(self.letters) if "r" in self.letters else ())
        fixed = self._fixed(graphs.values())
        return tuple(Condition(t, "for") for t in (*map(self.lettered, told), *fixed))

    def assumed(
        self, law: Formula, graphs: Mapping[str, Graph], gates: Mapping[str, Gate]
    ) -> tuple[Condition, ...]:
        """Return what a proof assumes besides lengths: values, readings, and the calls covered."""
        kind = self.subject.kind
        by_value = kind == "pair" or involves_gradients(law.id, kind)
        said = (BY_VALUE,) if by_value else ()
        state = (name for g in graphs.values() for name in sorted(g.exported.state))
        left = dict.fromkeys(re.sub(r"^\d+_", "", name) for name in state)
        if left and kind == "pair":
            told = f"what the code leaves in {' and '.join(left)} for later calls is not compared"
            said = (*said, Condition(told, "where"))
        if law.limits:
            said = (*said, Condition(law.limits, "where"))
        if law.id in ORDERED and reorders(self.subject):
            said = (IN_ORDER,)
        return tuple(dict.fromkeys((*self.of_calls(graphs, gates), *said, ONE_CALL)))

    def _asks_device(self, graph: Graph) -> bool:
        """Whether the code of a graph asks for its device; looked up once for all laws."""
        known = self.asking.get(id(graph.call))
        if known is None:
            known = self.asking[id(graph.call)] = graph.call, asks_device(graph.call.roots)
        return known[1]

    def of_calls(
        self, graphs: Mapping[str, Graph], gates: Mapping[str, Gate]
    ) -> tuple[Condition, ...]:
        """Return what is assumed about a law's calls: how they are made, and how they were read."""
        told = [c for g in graphs.values() for c in (*g.call.where, *integer_widths(g.exported))]
        told += [ON_CPU for g in graphs.values() if self._asks_device(g)]
        told += [c for name in graphs for c in gates[name].where]
        raising = (gates[name].raises for name in graphs)
        told += [
            Condition(f"the code does not raise (it does at {self.at(lengths)})", "where")
            for lengths in raising
            if lengths
        ]
        told += [self._nan_condition(gates[name]) for name in graphs if gates[name].nan_at]
        return *told, *readings_of(graphs.values())

    def _nan_condition(self, gate: Gate) -> Condition:
        """State that the code gives numbers where it was seen to give NaN."""
        seen = "for zeros" if gate.nan_at_zeros else f"at {self.at(gate.nan_at or {})}"
        return Condition(f"{NO_NAN} (it does {seen})", "where")


def readings_of(graphs: Iterable[Graph]) -> tuple[Condition, ...]:
    """Return what was assumed in reading these graphs."""
    return tuple(
        dict.fromkeys(
            told for g in graphs for program in g.programs for told in program.notes.readings
        )
    )


def _always_equal(graph: Graph, met: Sequence[Binding]) -> tuple[str, ...]:
    """Return the letters of lengths that a law keeps equal in all its calls of a program."""
    names = {str(length): letter for letter, length, _ in graph.axes}
    each = [
        set(letter_equations({names[s]: t for s, t in binding if s in names})) for binding in met
    ]
    return tuple(sorted(set.intersection(*each))) if each else ()


LENGTH_LIMIT = 1 << 31  # positions and lengths below this are not worth a condition
# By operation: a bound on its result, from those on its operands and the one on lengths.
RULES: dict[str, Callable[[list[int], int], int]] = {
    "add": lambda given, _: sum(given),
    "sub": lambda given, _: sum(given),
    "rsub": lambda given, _: sum(given),
    "mul": lambda given, _: given[0] * given[1],
    "pow": lambda given, _: given[0] ** min(given[1], 64),
    "matmul": lambda given, most: given[0] * given[1] * most,
    "__lshift__": lambda given, _: given[0] << min(given[1], 64),
    "bitwise_left_shift": lambda given, _: given[0] << min(given[1], 64),
    "sum": lambda given, most: given[0] * most,
    "cumsum": lambda given, most: given[0] * most,
    "prod": lambda given, _: given[0] ** 64,
    "cumprod": lambda given, _: given[0] ** 64,
    "square": lambda given, _: given[0] ** 2,
    "remainder": lambda given, _: given[-1],
    "sym_size": lambda _, most: most,
    "sym_numel": lambda _, most: most**4,
}
CAN_BE_NEGATIVE = ("sub", "rsub", "neg")  # operations whose result may be negative
# Operations whose result may be as large as a literal argument; others only move their operands.
FILLS = (
    "arange",
    "where",
    "clamp",
    "clamp_min",
    "clamp_max",
    "maximum",
    "minimum",
    "masked_fill",
    "fill",
    "scalar_tensor",
    "full",
    "full_like",
    "new_full",
)
GATHERS = ("index", "index_select", "embedding", "gather")


def integer_widths(exported: Exported) -> tuple[Condition, ...]:
    """Return the condition that no integer wraps around; empty if none does up to the limit."""
    nodes = tuple(nodes_of(exported.nodes))
    wrong = _wraps(exported, nodes, LENGTH_LIMIT)
    if not wrong:
        return ()
    low = bisect_left(range(1, LENGTH_LIMIT), True, key=lambda n: bool(_wraps(exported, nodes, n)))
    if low < 2:
        return (Condition(f"no integer overflows in {wrong}", "if"),)
    return (Condition(f"positions and lengths stay below {low + 1}, where {wrong} overflows"),)


def _wraps(exported: Exported, nodes: Iterable[Node], most: int) -> str:
    """Return a dtype that may wrap around for positions and lengths up to ``most``, or ""."""
    sizes: dict[Node, int] = {}
    for node in nodes:
        value = node.meta.get("val")
        whole = isinstance(value, Tensor) and not value.is_floating_point()
        if not (whole or isinstance(value, int | torch.SymInt)) or _is_complex(value):
            continue
        dtype = value.dtype if isinstance(value, Tensor) else None
        sizes[node] = _size(exported, node, sizes, most, dtype)
        if dtype not in (None, torch.bool):
            limits = torch.iinfo(dtype)
            negative = limits.min == 0 and _name(node) in CAN_BE_NEGATIVE
            if sizes[node] > limits.max or negative:
                return str(dtype).removeprefix("torch.")
    return ""


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _name(node: Node) -> str:
    told = str(getattr(node.target, "__name__", node.target))
    return str(node.target if "." in told else told).removeprefix("aten.").split(".")[0]


def _size(exported: Exported, node: Node, sizes: dict[Node, int], most: int, dtype: Any) -> int:
    if dtype == torch.bool:
        return 1
    if node.op == "placeholder":
        return _placed(exported, node, most)
    if node.op != "call_function":
        return most
    name, args = _name(node), list(node.args)
    if name in GATHERS:
        args = args[:1]
    elif name in ("full", "full_like", "new_full"):
        args = args[-1:]
    numbers = name in RULES or name in FILLS
    given = [
        _of(one, sizes, dtype)
        for one in leaves([args, node.kwargs])
        if _counts(one, numbers=numbers)
    ]
    if name in RULES:
        return RULES[name](given + [0] * (2 - len(given)), most)
    return max(given, default=0)


def _placed(exported: Exported, node: Node, most: int) -> int:
    """Bound a placeholder: an input is a position; a stored tensor has its own largest entry."""
    stored = exported.stored.get(node.name)
    if stored is None or not stored.numel():
        return most
    return int(stored.abs().max())


def _of(given: Any, sizes: dict[Node, int], dtype: Any) -> int:
    """Bound an argument; an integer converted from reals may be as large as its dtype permits."""
    if not isinstance(given, Node):
        return abs(int(given))
    if given in sizes:
        return sizes[given]
    return torch.iinfo(dtype).max if dtype is not None else LENGTH_LIMIT


def _counts(given: Any, *, numbers: bool) -> bool:
    """Whether the value of an argument enters the result of an operation."""
    if isinstance(given, Node):
        return numbers or isinstance(given.meta.get("val"), Tensor)
    return numbers and isinstance(given, int | float) and not isinstance(given, bool)
