"""Compare a term with its code, at the sizes of the trace and at others.

A single operation may be read wrongly, so the term is evaluated at random inputs, with the
parameters of the code and with others, and compared with the code.  Code may also test whether
gradients are wanted, or how its input lies in memory, and the graph covers one branch only; and
parameters may be ones and zeros, for which wrong readings can agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.export.graph_signature import OutputKind
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from attnproof.symbolic.array import Array
from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.givens import boolean, positions, real
from attnproof.symbolic.terms import Term

from ...numeric.torch_reading import TorchReading
from ..subjects import lengths_in
from .call_variants import in_other_layout, random_contents
from .calls import Call
from .exporting import WRITES_NOTHING
from .guards import satisfied
from .operations import Notes, Unread
from .operations.reading import NARROW
from .program import stored_base
from .statements import Axes, Graph

COPY = torch.ops.aten.clone.default
REPEATS = 4  # how often a call is repeated
CHANGES = "a later call of the code returns another result for the same input"
REPEAT_TOLERANCE = 1e-4  # tolerance: the same numbers may be summed in another order


def wrong_reading(graph: Graph, axes: Axes) -> str:
    """Return what is wrong with the reading of a graph, at the traced and other sizes, or "".

    What earlier calls left is random numbers, for the code as for its term.
    """
    with random_contents(graph.exported.written):
        return _wrong_reading(graph, axes)


def _wrong_reading(graph: Graph, axes: Axes) -> str:
    names = [f"input_{k}" for k in range(len(graph.call.inputs))]
    letters = [told.split() for told in graph.call.letters]
    try:
        inputs = [
            kind_of_given(x)(*(axes[c] for c in own)).named(name)
            for name, own, x in zip(names, letters, graph.call.inputs, strict=True)
        ]
        values = {told: given.named(told) for told, given in graph.givens.items()}
        term = graph.as_function(values)(*inputs)
    except (Unread, ValueError) as error:
        return str(error)
    code, others = graph.call.code, _of_other_sizes(graph, axes)
    own = graph.exported.values
    plain = [(code, graph.call.inputs, own), (code, others, own)]
    drawn = _random_tables(graph)
    if result_changed(code, others, result_of(code, others)):
        return CHANGES
    for call, tried, tables in [*plain, (result_function(graph, drawn), graph.call.inputs, drawn)]:
        try:
            with torch.no_grad():
                wrong = _wrong(graph, axes, term, call, tried, tables)
        except Exception as error:  # noqa: BLE001 (agreement was not shown, whatever the reason)
            told = " ".join(str(error).split())
            return f"it could not be compared with the code: {type(error).__name__}: {told}"
        if wrong:
            return wrong
    crossed = [(code, inputs) for inputs in _of_crossed_sizes(graph, axes)]
    for call, tried in (
        (_with_gradients(code), tuple(map(in_other_layout, others))),
        (_with_gradients(code, trained=True), others),
        *crossed,
    ):
        try:
            with torch.no_grad():
                wrong = _wrong(graph, axes, term, call, tried, own)
        except Exception:  # noqa: BLE001 (code may reject such a layout, or such short inputs)
            continue
        if wrong:
            return wrong
    return ""


def kind_of_given(x: Tensor) -> Callable[..., Any]:
    """Return the given for an input: arbitrary truth values, integers or real numbers."""
    if x.dtype == torch.bool:
        return boolean
    return real if x.is_floating_point() else positions


def result_of(code: Callable[..., Tensor], inputs: Sequence[Tensor]) -> Tensor | None:
    """Return the result of some code, or None if it raises; torch.export reports such errors."""
    try:
        with torch.no_grad():
            return code(*(x.clone() for x in inputs)).detach().double().clone()
    except Exception:  # noqa: BLE001 (code may raise anything)
        return None


def result_changed(
    code: Callable[..., Tensor], inputs: Sequence[Tensor], before: Tensor | None
) -> bool:
    """Whether one of several calls gives another result than an earlier call.

    A graph covers a single call, not state that the code keeps in Python between calls.
    """
    for _ in range(REPEATS):
        now = result_of(code, inputs)
        if before is None or now is None:
            return now is not before
        if now.shape != before.shape or not torch.allclose(
            now, before, REPEAT_TOLERANCE, REPEAT_TOLERANCE, equal_nan=True
        ):
            return True
    return False


def _wrong(
    graph: Graph,
    axes: Axes,
    term: Array,
    call: Callable[..., Tensor],
    inputs: tuple[Tensor, ...],
    values: Mapping[str, Tensor],
) -> str:
    """Return what is wrong with the term at these inputs, with these numbers in the tables."""
    sizes = {
        length.data[0]: n
        for told, x in zip(graph.call.letters, inputs, strict=True)
        for length, n in zip((axes[c] for c in told.split()), x.shape, strict=True)
        if length.op == "size"
    }
    tables = {graph.tables[name]: value for name, value in values.items()}
    notes = graph.program.notes
    for (numerator, divisor), part in notes.quotients.items():
        sizes[part.data[0]] = length_value(numerator, sizes) // divisor
    tables |= {name: values[table] for name, table in notes.states.items()}
    kept = {id(graph.exported.values[name]): value for name, value in values.items()}
    rows = {told: (kept.get(id(table), table), axis) for told, (table, axis) in notes.rows.items()}
    names = [f"input_{k}" for k in range(len(inputs))]
    return disagreement(
        call,
        term,
        names,
        inputs,
        tables,
        graph.exported.operations,
        sizes,
        replace(notes, rows=rows),
    )


def _random_tables(graph: Graph) -> dict[str, Tensor]:
    """Return other numbers for the tables in the term, which reveal what ones and zeros hide.

    Those of a matrix are smaller the wider it is, and all have the signs of the numbers they
    replace, so that no exponential of a product overflows.
    """
    generator, recognises = torch.Generator().manual_seed(2), graph.program.notes.recognises
    found: dict[str, Tensor] = {}  # tables that share a name in the statement share numbers
    for name, value in graph.exported.values.items():
        known = name in graph.exported.angles or (recognises and stored_base(value) is not None)
        if value.is_floating_point() and not known:
            sizes = (torch.rand(value.shape, generator=generator) + 0.5) / _width(value)
            drawn = torch.where(value < 0, -sizes, sizes)
            found.setdefault(graph.tables[name], drawn.to(value.dtype))
        else:
            found.setdefault(graph.tables[name], value)
    return {name: found[graph.tables[name]] for name in graph.exported.values}


def _width(table: Tensor) -> float:
    return math.sqrt(table.shape[-1]) if table.dim() > 1 and table.shape[-1] else 1.0


def result_function(
    graph: Graph, tables: Mapping[str, Tensor], *, often: bool = False
) -> Callable[..., Tensor]:
    """Return the graph as a function, with these numbers in its tables; ``often`` as below."""
    every, place = all_results_function(graph, tables, often=often), graph.exported.place or 0
    return lambda *inputs: every(*graph.exported.in_graph_order(inputs))[place]


def all_results_function(
    graph: Graph, tables: Mapping[str, Tensor], *, often: bool = False
) -> Callable[..., tuple[Tensor, ...]]:
    """Return a function for all outputs of the graph; it takes inputs in the graph's order.

    ``often``: it is called so often that leaving out copies saves time.
    """
    program, roles = graph.exported.program, graph.exported.roles
    stored: Mapping[str, Tensor] = program.state_dict | program.constants
    told = [(roles[spec.arg.name], spec) for spec in program.graph_signature.input_specs]

    def stored_value(kind: str, name: Any, spec: Any) -> Tensor | None:
        match kind:
            case "input":
                return None
            case "table":
                return tables[name]
            case "pair":
                return torch.complex(*(tables[part] for part in name))
        return stored[str(spec.target)]

    fixed = [stored_value(kind, name, spec) for (kind, name), spec in told]
    kinds = [kept.kind for kept in program.graph_signature.output_specs]
    call = without_copies(program.graph_module) if often else program.graph_module

    def run(*inputs: Tensor) -> tuple[Tensor, ...]:
        given = iter(x.clone() for x in inputs)
        found = call(*(next(given) if one is None else one for one in fixed))
        return tuple(
            x for x, kind in zip(found, kinds, strict=True) if kind == OutputKind.USER_OUTPUT
        )

    return run


def without_copies(module: GraphModule) -> Callable[..., Sequence[Tensor]]:
    """Return a graph without its copies of arrays, as nothing in it writes to one.

    A trace from lengths of 1 on copies the arguments of many operations.  Operations that refuse
    the layout of what is not copied raise; the graph is then run as it is, here and from then on.
    The results are copied, since code may write to arrays that are stored in the graph.
    """
    targets = [node.target for node in module.graph.nodes if node.op == "call_function"]
    schemas = [getattr(one, "_schema", None) for one in targets if one not in WRITES_NOTHING]
    if COPY not in targets or any(one.is_mutable for one in schemas if one is not None):
        return module
    lean, known = FxGraph(), dict[Node, Node]()
    for node in module.graph.nodes:
        if node.op == "output":
            lean.output(map_arg(node.args[0], known.__getitem__))
        else:
            copied = node.target is COPY
            known[node] = known[node.args[0]] if copied else lean.node_copy(node, known.__getitem__)
    calls = [GraphModule(module, lean)]

    def call(*inputs: Any) -> Sequence[Tensor]:
        for one in calls:
            with suppress(Exception):
                return [x.clone() for x in one(*inputs)]
        found: Sequence[Tensor] = module(*inputs)
        calls.clear()
        return found

    return call


def _with_gradients(code: Callable[..., Tensor], *, trained: bool = False) -> Callable[..., Tensor]:
    """Return the code with gradients enabled; ``trained``: its inputs require them too."""

    def run(*inputs: Tensor) -> Tensor:
        with torch.enable_grad():
            given = (
                x.clone().requires_grad_() * 1 if trained and x.is_floating_point() else x
                for x in inputs
            )
            return code(*given).detach()

    return run


def _of_other_sizes(graph: Graph, axes: Axes) -> tuple[Tensor, ...]:
    """Return inputs like those of a call, each symbolic axis longer by a different amount.

    If the code rejects more, or the graph is not the code there, they are shorter.
    """
    call = graph.call
    sizes = _symbolic(call, axes).items()
    longer = {length: n + place for place, (length, n) in enumerate(sizes, start=1)}
    shorter = {length: max(2, n - place) for place, (length, n) in enumerate(sizes, start=1)}
    tried = [_shapes(call, axes, other) for other in (shorter, longer)]
    found: tuple[Tensor, ...] = ()
    for shapes in [one for one in tried if _is_valid(graph, one)] or tried:
        generator = torch.Generator().manual_seed(1)
        inputs = _inputs(call, shapes, generator)
        if not found or result_of(call.code, inputs) is not None:
            found = inputs
    return found


def _is_valid(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether inputs of these shapes satisfy the conditions of a graph."""
    known = {
        length: n
        for shape, own in zip(graph.exported.shapes, shapes, strict=True)
        for length, n in zip(shape, own, strict=True)
        if isinstance(length, str)
    }
    return satisfied(graph.exported.conditions, known)


def _of_crossed_sizes(graph: Graph, axes: Axes) -> Iterator[tuple[Tensor, ...]]:
    """Yield inputs with lengths in various orders: more queries than keys, fewer, equally many."""
    call, generator = graph.call, torch.Generator().manual_seed(3)
    free = _symbolic(call, axes)
    count = len(free)
    orders = [
        [2] * count,
        [4] * count,
        [2 + k for k in range(count)],
        [2 + 3 * k for k in range(count)][::-1],
        [5 - k % 2 * 2 for k in range(count)],
        [3 + k % 2 * 4 for k in range(count)],
    ]
    for sizes in orders:
        shapes = _shapes(call, axes, dict(zip(free, sizes, strict=True)))
        if _is_valid(graph, shapes):
            yield _inputs(call, shapes, generator)


def _symbolic(call: Call, axes: Axes) -> dict[Term, int]:
    """Return the symbolic lengths of a call, with the number each has in the trace."""
    lengths = lengths_in(call.letters, call.inputs)
    return {axes[letter]: n for letter, n in lengths.items() if axes[letter].op == "size"}


def _shapes(call: Call, axes: Axes, at: Mapping[Term, int]) -> list[tuple[int, ...]]:
    """Return the shapes of a call's inputs with these lengths; other lengths are unchanged."""
    return [
        tuple(at.get(axes[letter], n) for letter, n in zip(told.split(), x.shape, strict=True))
        for told, x in zip(call.letters, call.inputs, strict=True)
    ]


def _inputs(
    call: Call, shapes: Sequence[tuple[int, ...]], generator: torch.Generator
) -> tuple[Tensor, ...]:
    found = []
    for shape, x in zip(shapes, call.inputs, strict=True):
        if x.is_floating_point() or x.is_complex():
            found.append(torch.randn(shape, generator=generator, dtype=x.dtype))
        else:
            most = 2 if x.dtype == torch.bool else 9
            drawn = torch.randint(0, most, shape, generator=generator, dtype=x.dtype)
            if call.masked:  # in the first row of the batch every query sees a key
                drawn[:1, ..., :1] = True
            found.append(drawn)
    return tuple(found)


INTEGERS = (*NARROW, torch.int32, torch.int64, torch.uint32, torch.uint64)
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(torch, name) for name in ("erf", "trunc", "floor", "ceil", "round")},
    **{name: getattr(torch.nn.functional, name) for name in ("softplus", "mish", "hardswish")},
    **{f"trunc_{str(d).removeprefix('torch.')}": partial(Tensor.to, dtype=d) for d in INTEGERS},
}
# Code may compute in float32 internally, tables included; the term is evaluated in float64.  A
# wrong reading of an operation is off by the magnitude of the numbers.
ROUNDING = 2.0**-23
EXTRA_OPERATIONS = 16  # operations allowed beyond those of the graph: short code has angles too


def disagreement(
    code: Callable[..., Tensor],
    term: Array,
    names: Sequence[str],
    inputs: Sequence[Tensor],
    tables: Mapping[str, Tensor],
    operations: int,
    sizes: Mapping[str, int],
    notes: Notes,
) -> str:
    """Return what is wrong with the reading, or "" if it agrees with the code.

    The allowance covers angles of the code that are off by a rounding of their own size.
    """
    values: dict[str, object] = {
        name: x.double() if x.is_floating_point() else x
        for name, x in zip(names, inputs, strict=True)
    }
    values |= {
        name: tensor if tensor.dtype == torch.bool else tensor.double()
        for name, tensor in tables.items()
    }
    values |= FUNCTIONS
    values |= notes.of_rows
    values |= notes.constants
    values |= {name: _rows(table, axis) for name, (table, axis) in notes.rows.items()}
    reading = TorchReading(sizes, values, torch.float64, torch.device("cpu"))
    for name, zeros in notes.unwritten.items():
        reading.values[name] = torch.as_tensor(reading(zeros.term))
    want = code(*inputs).detach().double()
    got = reading(term.term)
    shape = tuple(length_value(n, dict(sizes)) for n in term.axes)
    if shape != tuple(want.shape):
        return f"the term has shape {shape} and the code gives {tuple(want.shape)}"
    got = torch.as_tensor(got, dtype=torch.float64).expand(shape)
    both = got.isfinite() & want.isfinite()
    notes.undefined.append(bool((got.isnan() & want.isfinite()).any()))
    if want.numel() and not bool((both | want.isneginf()).any()):
        return "the code returns no finite number at random inputs"
    gap = (got - want).abs()
    # The fill value of a mask may be far larger, and is the same on both sides.
    differ = both & (gap > ROUNDING * want.abs())
    largest = float(want[differ].abs().max()) if bool(differ.any()) else 0.0
    allowed = ROUNDING * (EXTRA_OPERATIONS + operations) * 64 * max(1.0, largest)
    gap = gap[differ]
    worst = float(gap.max()) if gap.numel() else 0.0
    # Where the term is not finite it divides by 0, which the conditions of every verdict exclude.
    if bool((got.isfinite() & ~want.isfinite()).any()):
        return "the term and the code are not finite at different entries"
    if worst > allowed:
        return (
            f"the term and the code differ by {worst:.2g} at random inputs, where rounding "
            f"explains {allowed:.2g}"
        )
    return ""


def _rows(table: Tensor, axes: int | tuple[int, ...]) -> Callable[..., Tensor]:
    """Return the rows of a table along one or more axes as a function of their indices."""
    along = (axes,) if isinstance(axes, int) else axes
    rows = table.detach().double().movedim(along, tuple(range(len(along))))
    return lambda *places: rows[tuple(torch.as_tensor(place).long() for place in places)]
