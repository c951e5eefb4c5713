"""Trace code by torch.export with symbolic lengths: its graph, guards, parameters and tables."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from io import StringIO
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _dispatch_get_registrations_for_dispatch_key
from torch.export import Dim, ExportedProgram, default_decompositions, export
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.fx import config as graphs

from attnproof.symbolic.faults import raised_by_attnproof
from attnproof.symbolic.givens import Given

from ..loading.reach import has_compiled
from ..loading.source_numbers import functions_in, is_own
from .angles import Angles, angles_of
from .blocks import TracedBlocks
from .comparison_monitor import ComparisonMonitor
from .executed_code import Executed, functions_of
from .guards import conditions_of, fails_only_at_one, from_one_or_two, is_cut_short
from .in_place import written_as_new
from .instrumentation import instrument
from .nodes import is_silent, live, nodes_of, unread_of
from .reached_arrays import (
    NOT_A_BUFFER,
    NotTraced,
    Refused,
    as_buffers,
    modules_in,
    not_a_buffer,
    own_name,
    results_of,
    storage_of,
    storages_of_trained,
    versions_of,
    written_by,
    written_since,
)
from .stored_tensors import enter_parts, holder_of, state_role, table_role
from .symbolic_lengths import Compared, LengthFunctions, UnitLengths, takes_extremes
from .tables import Pattern, small_of

aten = torch.ops.aten
# Not decomposed: their decompositions merge axes, or choose a kernel.
NOT_DECOMPOSED = (
    "chunk complex constant_pad_nd cumsum einsum elu flatten.using_ints flip gelu hardswish "
    "index_select layer_norm leaky_relu linear log_sigmoid log_softmax.int logaddexp "
    "logcumsumexp logsumexp masked_fill.Scalar matmul mish outer polar repeat "
    "repeat_interleave.self_int rms_norm roll rsub.Scalar rsub.Tensor "
    "scaled_dot_product_attention select_scatter sigmoid silu slice_scatter softmax.int "
    "softplus split.Tensor split_with_sizes tril triu unbind.int"
)
WRITES_NOTHING = (aten.detach_.default,)  # in place; part of every torch.tensor(2.0)


class _Called(nn.Module):
    """A function as a module; the modules it uses are registered, so that they are lifted."""

    def __init__(self, call: Callable[..., Any], modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.used = nn.ModuleList(modules)
        # In a list, since a module should be registered only once, among those used.
        self.calls = [call]

    def forward(self, *inputs: Tensor) -> Any:
        return self.calls[0](*inputs)


def in_order(inputs: Sequence[Any], place: int | None) -> tuple[Any, ...]:
    """Move the input of the result at ``place`` to the front; the same call moves it back."""
    return (inputs[1], inputs[0], *inputs[2:]) if place == 1 else tuple(inputs)


def _is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


@dataclass(frozen=True)
class Exported:
    """A graph: its nodes, the shapes of its inputs, its guards, and the roles of its tensors.

    ``shapes`` has an integer or the name of a length for each axis of each input.  ``tables`` maps
    names of parameters and buffers that are left symbolic to givens.  ``small`` has those of them
    that may be written out as stored, with the conditions for that.  ``conditions`` are those of
    the branches on lengths that were taken, as SymPy expressions.

    ``wider``: ranges of lengths for which more was proved than the program says.  ``blocks``:
    what ran during each trace, if known.

    ``place``: of a call with two results, the one this graph computes, whose own input comes first;
    None if there is one result.  ``state``: the names of the tables that the code writes to.
    """

    program: ExportedProgram
    nodes: tuple[Node, ...]
    shapes: tuple[tuple[int | str, ...], ...]
    tables: dict[str, Given]
    values: dict[str, Tensor]
    roles: dict[str, tuple[str, Any]]
    conditions: tuple[Any, ...] = ()
    place: int | None = None
    small: dict[str, Pattern] = field(default_factory=dict)
    wider: Mapping[str, Any] = field(default_factory=dict)
    blocks: tuple[TracedBlocks, ...] | None = None
    state: frozenset[str] = frozenset()

    def in_graph_order(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the inputs of the call in the order of the graph, or vice versa."""
        return in_order(inputs, self.place)

    @cached_property
    def angles(self) -> dict[str, Angles]:
        """The tables that hold cosines and sines of positions, by name."""
        return angles_of({name: x for name, x in self.values.items() if name not in self.state})

    @cached_property
    def coarse(self) -> float:
        """The sum of the relative roundings of its arrays in formats coarser than float32."""
        held = [node.meta.get("val") for node in self.program.graph.nodes]
        found = (torch.finfo(x.dtype).eps for x in held if _is_float(x))
        return sum(eps for eps in found if eps > torch.finfo(torch.float32).eps)

    @property
    def stored(self) -> dict[str, Tensor]:
        """The tensors stored in the graph, by the names of their placeholders."""
        known = self.program.state_dict | self.program.constants
        return {
            spec.arg.name: known[str(spec.target)]
            for spec in self.program.graph_signature.input_specs
            if spec.kind != InputKind.USER_INPUT
        }

    @property
    def written(self) -> list[Tensor]:
        """The arrays that the code writes to, in its own memory."""
        return [self.values[name] for name in sorted(self.state)]

    @property
    def operations(self) -> int:
        """The number of operations in the graph."""
        return sum(node.op == "call_function" for node in self.nodes)

    @property
    def ranges(self) -> dict[str, Any]:
        """The ranges of the lengths, by name."""
        return {str(s): r for s, r in self.program.range_constraints.items()} | {**self.wider}


@dataclass(frozen=True)
class Trace:
    """An exported program, the storages that are trained, and constants written in the code.

    ``from_one``: symbolic lengths are 1 or more, instead of 2 or more.  ``blocks``: blocks of the
    code that ran.
    """

    program: ExportedProgram
    trained: frozenset[int]
    literals: frozenset[str]
    from_one: bool = False
    blocks: TracedBlocks | None = None


def traced(
    call: Callable[..., Any],
    inputs: Sequence[Tensor],
    lengths: Sequence[Sequence[bool]],
    modules: Sequence[nn.Module] = (),
    *,
    from_one: bool = False,
) -> Trace:
    """Return the trace of a call on inputs like these, for :func:`read`.  Raises ``NotTraced``.

    ``lengths`` tells for each axis of each input whether its length is to be symbolic, if the code
    allows that.  A symbolic length is 2 or more; with ``from_one`` it is 1 or more if only
    comparisons of single lengths can tell a length of 1.
    """
    found = _with_functions(call, inputs, lengths, modules, from_one=from_one)
    if not unread_of(tuple(found.program.graph.nodes)) and takes_extremes(found.program):
        with suppress(NotTraced, Refused), Compared():
            return _with_functions(call, inputs, lengths, modules, from_one=from_one)
    return found


def _with_functions(
    call: Callable[..., Any],
    inputs: Sequence[Tensor],
    lengths: Sequence[Sequence[bool]],
    modules: Sequence[nn.Module],
    *,
    from_one: bool,
) -> Trace:
    """Return a trace in which functions of the module math keep lengths symbolic, if it is read."""
    near = functions_in((call, *modules_in(call), *modules))
    functions = LengthFunctions(one.__globals__ for one in near if is_own(one.__globals__))
    trace = partial(_traced_from, call, inputs, lengths, modules, from_one=from_one)
    try:
        with functions.symbolic():
            found = trace()
    except (NotTraced, Refused):
        if not functions.used:
            raise
    else:
        if not functions.used or (_is_read(found.program) and not functions.decide(found.program)):
            return found
    return trace()


def _traced_from(
    call: Callable[..., Any],
    inputs: Sequence[Tensor],
    lengths: Sequence[Sequence[bool]],
    modules: Sequence[nn.Module],
    *,
    from_one: bool,
) -> Trace:
    """Return a trace from lengths of 1 on, if the code allows that, else from 2 on."""
    if from_one:
        follower = UnitLengths()
        follower.inspect(call, inputs)
        if not follower.reasons:
            with suppress(NotTraced):
                return _traced(call, inputs, lengths, modules, follower)
    return _traced(call, inputs, lengths, modules, None)


def _traced(
    call: Callable[..., Any],
    inputs: Sequence[Tensor],
    lengths: Sequence[Sequence[bool]],
    modules: Sequence[nn.Module],
    follower: UnitLengths | None,
) -> Trace:
    """Return a trace, following the call if its lengths are to be 1 or more.

    What the code compiles itself is traced as it is written, if that is possible: flex_attention
    can be traced only while torch may compile.
    """
    found = {id(m): m for m in (*modules, *modules_in(call))}
    refused: list[NotTraced] = []
    for stance in ("force_eager", "default") if has_compiled((call, *modules)) else ("default",):
        try:
            with torch.compiler.set_stance(stance):
                return _trace_of(call, inputs, lengths, found, follower)
        except NotTraced as error:
            refused.append(error)
    raise refused[0]


def _trace_of(
    call: Callable[..., Any],
    inputs: Sequence[Tensor],
    lengths: Sequence[Sequence[bool]],
    found: Mapping[int, nn.Module],
    follower: UnitLengths | None,
) -> Trace:
    wrapped = _Called(call if follower is None else follower.of(call), list(found.values()))
    dynamic = tuple(
        {k: Dim.AUTO for k, free in enumerate(axes) if free} or None for axes in lengths
    )
    before = versions_of(found.values())
    watch, known = _blocks_of(call, inputs, found.values())
    written = written_since(before)
    try:
        with (
            _tracing(),
            as_buffers(written),
            nullcontext() if follower is None else follower.lengths(),
        ):
            with watch.run({}, "traced"):
                program = export(
                    wrapped,
                    tuple(inputs),
                    strict=False,
                    dynamic_shapes=(dynamic,) if dynamic else (),
                )
            literals = _literals(program)
            if written_as_new(program.graph):
                program.graph_module.recompile()
            nodes = list(nodes_of(tuple(program.graph.nodes)))
            if follower is not None and (told := follower.inspect_graph(nodes, WRITES_NOTHING)):
                raise NotTraced(told)
            if not _is_read(program):
                program = _decomposed(program)
        if follower is not None and (
            any(map(fails_only_at_one, conditions_of(program))) or is_cut_short(program)
        ):
            raise NotTraced(
                "a condition on several lengths, or a slice that may end early, tells a length of 1"
            )
    except NotTraced:
        raise
    except Exception as error:  # noqa: BLE001 (export passes on errors of the code)
        if NOT_A_BUFFER in str(error):
            raise Refused(not_a_buffer(written)) from None
        if raised_by_attnproof(error):  # by what adapts the code to a call
            raise NotTraced(_short(error)) from None
        raise Refused(f"{type(error).__name__}: {_short(error)}") from None
    trained = frozenset(storages_of_trained(call, inputs))
    blocks = TracedBlocks(frozenset(watch.blocks)) if known else None
    return Trace(program, trained, literals, follower is not None, blocks)


def _blocks_of(
    call: Callable[..., Any], inputs: Sequence[Tensor], modules: Iterable[nn.Module]
) -> tuple[ComparisonMonitor, bool]:
    """Return a watch that records which blocks of a call are reached, and whether it can.

    It cannot if torch compiles functions itself, as flex_attention does: they must stay as written.
    """
    ran, watch = Executed(is_own), ComparisonMonitor(compared=False)
    with torch.no_grad(), suppress(Exception):  # tracing reports its errors
        ran.recording(call)(*(x.clone() for x in inputs))
    if ran.is_compiled:
        return watch, False
    near = functions_in((call, *modules), ran=ran.codes)
    own = [one for one in near if is_own(one.__globals__) and one.__code__ not in ran.codes]
    instrument((*functions_of(ran.codes, near), *own), watch)
    return watch, True


@contextmanager
def _tracing() -> Iterator[None]:
    """Trace quietly, with layers as they are written and no fast paths.

    The cache of fake tensors is off: with symbolic lengths it takes more time than it saves.  Nor
    are stack traces recorded for each operation.
    """
    import torch._dynamo.config as tracing  # slow to import, and export loads it anyway

    logger, fast = logging.getLogger("torch"), torch.backends.mha.get_fastpath_enabled()
    level, unnoted = logger.level, getattr(graphs, "do_not_emit_stack_traces", False)
    uncached = tracing.patch(fake_tensor_cache_enabled=False)
    quiet = redirect_stderr(StringIO())  # torch prints the graphs that it gives up
    try:
        with warnings.catch_warnings(), uncached, quiet, torch.no_grad():
            warnings.simplefilter("ignore")
            logger.setLevel(logging.CRITICAL)
            torch.backends.mha.set_fastpath_enabled(False)
            graphs.do_not_emit_stack_traces = True
            yield
    finally:
        graphs.do_not_emit_stack_traces = unnoted
        torch.backends.mha.set_fastpath_enabled(fast)
        logger.setLevel(level)


def _is_read(program: ExportedProgram) -> bool:
    """Whether every operation has a reading as it stands, and none writes to its inputs."""
    nodes = [node for node in nodes_of(tuple(program.graph.nodes)) if not is_silent(node)]
    return not unread_of(nodes) and not any(
        node.is_impure(impure_random=False)
        for node in nodes
        if node.op == "call_function" and node.target not in WRITES_NOTHING
    )


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    """Return the program in fewer kinds of operations, none of which writes; traces it again."""
    registered = _dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    found: ExportedProgram = program.run_decompositions(_decompositions(len(registered)))
    return found


@lru_cache(maxsize=1)
def _decompositions(_registered: int) -> dict[Any, Any]:
    """Return the decompositions to apply; computed again if code registers operations."""
    table: Any = default_decompositions()
    for operation in NOT_DECOMPOSED.split():
        name, _, overload = operation.partition(".")
        table.pop(getattr(getattr(aten, name), overload or "default"), None)
    return dict(table.items())


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()).partition(" While executing %")[0]  # a node of the graph
    return text if len(text) < 300 else text[:297] + "..."


def _literals(program: ExportedProgram) -> frozenset[str]:
    """Return the constants written in the code, such as torch.tensor([1, 2]), made in each call."""
    lifted = (aten.lift_fresh_copy.default, aten.lift_fresh.default, aten.lift.default)
    return frozenset(
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder"
        and node.users
        and all(user.target in lifted for user in node.users)
    )


def read(trace: Trace, place: int | None = None) -> Exported:
    """Return the graph of a trace; of a call with two results, that of the result at ``place``."""
    program = trace.program
    shapes: list[tuple[int | str, ...]] = []
    tables: dict[str, Given] = {}
    values: dict[str, Tensor] = {}
    roles: dict[str, tuple[str, Any]] = {}
    small: dict[str, Pattern] = {}
    placed = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    written, state = written_by(program), set[str]()
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind == InputKind.USER_INPUT:
            roles[name] = ("input", None)
            shapes.append(tuple(_length(n) for n in placed[name].meta["val"].shape))
            continue
        target = own_name(spec.target)
        value = (
            program.state_dict
            if spec.kind == InputKind.PARAMETER or spec.persistent
            else program.constants
        )[str(spec.target)]
        if not isinstance(value, Tensor):
            raise NotTraced(f"its graph takes an object, of class {type(value).__name__}")
        if spec.kind == InputKind.CONSTANT_TENSOR and storage_of(value) in trace.trained:
            value = nn.Parameter(value, requires_grad=False)
        held = "" if name in trace.literals else holder_of(target, value, spec.kind)
        given: Given | None
        if value.is_complex() and not isinstance(value, nn.Parameter):
            roles[name] = ("pair", enter_parts(target, value, tables, values))
            continue
        if str(spec.target) in written:
            roles[name], given = state_role(target, value, written[str(spec.target)], tables)
            state.add(roles[name][1])
        else:
            roles[name], given = table_role(target, value, tables, held)
        if given is not None:
            tables[roles[name][1]] = given
            values[roles[name][1]] = value
            own = spec.persistent or str(spec.target) in written
            pattern = None if own else small_of(value, held)
            if pattern is not None:
                small[roles[name][1]] = pattern
    only = tuple(results_of(program)) if written else ()
    only = only if place is None else (results_of(program)[place],)
    conditions, wider = conditions_of(program), dict[str, Any]()
    if trace.from_one:
        conditions, wider = from_one_or_two(conditions, program.range_constraints)
    found = Exported(
        program,
        live(program.graph, only),
        tuple(shapes),
        tables,
        values,
        roles,
        conditions,
        place,
        small,
        wider,
        None if trace.blocks is None else (trace.blocks,),
        frozenset(state),
    )
    return replace(found, shapes=found.in_graph_order(shapes))


def _length(n: Any) -> int | str:
    if isinstance(n, int):
        return n
    if str(n).isdigit():
        return int(str(n))
    if not str(n).isidentifier():
        raise NotTraced(
            f"the code accepts only lengths that depend on one another; one of them is {n}"
        )
    return str(n)
