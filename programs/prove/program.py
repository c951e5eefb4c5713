"""A traced graph as a function on terms: called with symbolic arrays, it returns its output's term.

Layer norms and linear maps give large terms, and laws about the order of tokens do not depend on
what they compute.  Row-wise maps can therefore be read as uninterpreted functions.

Terms denote real numbers and truth values only.  In code, 0.5 written into an integer tensor
becomes 0, 2 written into a boolean tensor becomes True, and 8- and 16-bit integers wrap around.
The inputs that are tried may reveal none of this, so it is checked on the dtypes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.export.graph_signature import OutputKind
from torch.fx import Graph, Node

from attnproof.documents.verdict_line import Condition
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import Given, real
from attnproof.symbolic.scalars import is_truth, num, number_of, size
from attnproof.symbolic.terms import Term, free

from ..execution.response import leaves
from .angles import FORMATS, geometric_base
from .exporting import Exported
from .guards import Binding
from .nodes import arguments, inner_graph, is_silent, masking_nodes, name_of
from .operations import READINGS, Notes, Pair, Unread, noted
from .operations.lookups import powers
from .operations.reading import KINDS, NARROW, assume, notes, numeric, standing
from .reached_arrays import results_of

Way = Literal["program", "folded", "in parts", "valued"]
WAYS: tuple[Way, ...] = get_args(Way)


class Program:
    """A traced function on terms.

    Called with one array per input, it returns the output: the same graph, read with other names
    and other lengths.  ``givens`` are the parameters and tables that are left symbolic: what is
    proved holds for all their values.  ``notes`` records what was assumed in reading the graph,
    ``met`` the lengths it was called with.

    The way "folded" reads linear maps, norms and activations as uninterpreted functions of a row:
    what holds for all functions holds for these, and the terms stay small.  "in parts" reads them
    as functions of the row and of their tables, shared by all layers.  "valued" reads small stored
    tables as the numbers they hold.

    Raises :class:`Unread` if an operation has no reading, and ``ValueError`` for shapes that the
    guards of the graph exclude.
    """

    def __init__(self, exported: Exported, name: str, way: Way) -> None:
        self.exported, self.way = exported, way
        self.masking = masking_nodes(exported.nodes, masks=name == "masked")
        self.notes = Notes(prefix=f"{name}_")
        self.met: dict[Binding, None] = {}

    def __call__(
        self,
        *inputs: Array,
        named: Mapping[str, Array],
        kept: Mapping[Node, Callable[[Any], Array]] = MappingProxyType({}),
    ) -> Any:
        """Return the output for these inputs, with parameters and tables taken from ``named``.

        ``kept``: functions to apply to the values of some nodes before other nodes read them.
        """
        self._require(inputs)
        given = iter(self.exported.in_graph_order(inputs))
        known: dict[Node, Any] = {}
        self.notes.filled = False
        self.notes.ends.clear()
        self.notes.unseen.clear()
        with noted(self.notes):
            for node in self.exported.nodes:
                self.notes.masking = node in self.masking
                if node.op == "placeholder":
                    known[node] = self._placed(node, given, named)
                elif node.op == "call_function" and not is_silent(node):
                    known[node] = self._computed(node, known)
                elif node.op == "get_attr":
                    known[node] = partial(self._inside, inner_graph(node))
                elif node.op == "output":
                    return self._output(known)
                if node in kept:
                    known[node] = kept[node](known[node])
        raise Unread("a graph without an output")

    def arbitrary_like(self, x: Array) -> Array:
        """Return an arbitrary array shaped like ``x``, under a new name at every call.

        If the graph has another number of heads for its second input, so has the array.
        """
        name = f"{self.notes.prefix}beside_{len(self.notes.givens)}"
        own, other = self.exported.shapes[:2]
        lengths = [
            n if here == there else num(there) if isinstance(there, int) else size("G", "heads")
            for n, here, there in zip(x.axes, own, other, strict=True)
        ]
        given = real(*map(as_array, lengths), says="any numbers that are rotated in the same call")
        self.notes.givens[name] = given
        found: Array = given.named(name)
        return found

    def _left_by_earlier_calls(self, table: str) -> Array:
        """Return any numbers for a table that the code writes to, others in each call."""
        name = f"{self.notes.prefix}{table}_{len(self.notes.givens)}"
        given = self.exported.tables[table]
        self.notes.givens[name], self.notes.states[name] = given, table
        found: Array = given.named(name)
        return found

    def forget(self) -> None:
        """Forget the lengths of earlier calls, and the assumptions made in reading them."""
        self.met.clear()
        self.notes.readings.clear()
        self.notes.longest.clear()
        self.notes.quotients.clear()

    def _placed(self, node: Node, given: Any, named: Mapping[str, Array]) -> Any:
        kind, value = self.exported.roles[node.name]
        if kind == "input":
            return next(given)
        if kind == "constant":
            return value
        if kind == "pattern":
            return value.placed(node.name, self.notes)
        if kind == "pair":
            return Pair(*(self._table(one, named) for one in value))
        if self.way == "valued" and value in self.exported.small:
            return self.exported.small[value].placed(node.name, self.notes)
        if value in self.exported.state:
            return self._left_by_earlier_calls(value)
        return self._table(value, named)

    def _table(self, table: str, named: Mapping[str, Array]) -> Array:
        """Return a stored table, any numbers.  Raises :class:`Unread` if it is not finite."""
        numbers = self.exported.values[table]
        if numbers.is_floating_point() and not bool(numbers.isfinite().all()):
            raise Unread(f"a stored table, {table}, that is not finite everywhere")
        base = stored_base(numbers) if self.notes.recognises else None
        if base is not None:
            count = len(numbers)
            assume(f"{table} is {base}^(−i/{count}) up to rounding, and keeps its values")
            return powers(base, count)
        self.notes.stored[named[table].term] = (table, numbers)
        if table in self.exported.angles:
            self.notes.angles[named[table].term] = self.exported.angles[table]
        return named[table]

    def _inside(self, graph: Graph, *values: Any) -> Any:
        """Evaluate a subgraph on these values."""
        taken = [node for node in graph.nodes if node.op == "placeholder"]
        known: dict[Node, Any] = dict(zip(taken, values, strict=True))
        for node in graph.nodes:
            if node.op == "call_function":
                known[node] = self._computed(node, known)
            elif node.op == "output":
                return _value(node.args[0], known)
        raise Unread("a graph without an output")

    def _computed(self, node: Node, known: dict[Node, Any]) -> Any:
        args = [_value(a, known) for a in arguments(node)]
        if node.target is operator.getitem:
            found = args[0][args[1]]
            if found is None:
                raise Unread(f"output {args[1]} of {name_of(node.args[0])}")  # type: ignore[arg-type]
            return found
        keywords = {k: _value(a, known) for k, a in node.kwargs.items()}
        name = name_of(node)
        if name not in READINGS:
            raise Unread(name)
        if name in CASTS:
            source = node.args[0]
            told = source.meta.get("val") if isinstance(source, Node) else None
            keywords = {
                "dtype": keywords.get("dtype")
                or next((a for a in args[1:] if isinstance(a, torch.dtype)), None),
                "source": getattr(told, "dtype", None),
            }
            args = args[:1]
        if name in SPLITS:
            keywords["parts"] = len(node.meta["val"])
        try:
            if self.way in ("folded", "in parts") and not keywords:
                found = folded(name, args, of_tables=self.way == "in parts")
                if found is not None:
                    return in_its_dtype(node, name, found)
            named = {key: value for key, value in keywords.items() if key not in LAYOUT}

            def read(*given: Any) -> Any:
                return in_its_dtype(node, name, READINGS[name](*given, **named))

            made = read(*args)
            if isinstance(made, Array) and (KINDS[name] == "entrywise" or name in CASTS):
                _record_remake(made, read, args)
            return made
        except Unread as error:
            raise Unread(f"{name}: {error}") from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Unread(f"{name}: {' '.join(str(error).split())}") from None

    def _output(self, known: dict[Node, Any]) -> Any:
        """Return what the code returns; the graph also outputs what it wrote into its inputs."""
        program = self.exported.program
        kinds = [kept.kind for kept in program.graph_signature.output_specs]
        if OutputKind.USER_INPUT_MUTATION in kinds:
            told = Condition("inputs are copied before they are written into", "where")
            self.notes.readings[told] = None
        results = results_of(program)
        if self.exported.place is not None:
            results = [results[self.exported.place]]
        found = [_value(one, known) for one in results]
        self._assume_finite(found)
        return found[0] if len(found) == 1 else found

    def _assume_finite(self, results: Sequence[Any]) -> None:
        """Note that numbers of earlier calls are finite, if results are computed from them."""
        arrays = [one for one in results if isinstance(one, Array)]
        named = {v.data[0] for one in arrays for v in free(one.term) if v.op == "var"}
        named |= self.notes.unseen  # 0 times infinity is NaN
        for name, table in self.notes.states.items():
            if name in named:
                assume(f"what earlier calls left in {table} is finite")
        if any(name.startswith(f"{self.notes.prefix}memory_") for name in self.notes.unseen):
            assume("memory that is not written to holds finite numbers")

    def _require(self, inputs: tuple[Array, ...]) -> None:
        """Check that the shapes are those the graph was traced for, up to the names of lengths."""
        bound: dict[str, Term] = {}
        for place, (array, shape) in enumerate(zip(inputs, self.exported.shapes, strict=True), 1):
            for axis, (length, wanted) in enumerate(zip(array.axes, shape, strict=True), 1):
                known = num(wanted) if isinstance(wanted, int) else bound.setdefault(wanted, length)
                if length is not known:
                    raise ValueError(
                        f"the graph was traced with {known!r} in axis {axis} of input {place}, "
                        f"where the law has {length!r}"
                    )
        self.met[tuple(bound.items())] = None


def _record_remake(found: Array, read: Callable[..., Any], args: Sequence[Any]) -> None:
    """Record how to remake an array at other lengths, if all its arguments can be remade there."""
    patterns = notes().patterns
    arrays = [a for a in args if isinstance(a, Array) and a.ndim]
    if not arrays or not all(a.term in patterns for a in arrays):
        return

    def remade(shape: tuple[Any, ...]) -> Array:
        def own(a: Any) -> Any:
            if not isinstance(a, Array) or not a.ndim:
                return a
            last = shape[-a.ndim :]
            alone = [number_of(n) == 1 for n in a.axes]  # broadcast along that axis
            return patterns[a.term](tuple(1 if k else n for k, n in zip(alone, last, strict=True)))

        made: Array = read(*map(own, args))
        return made

    patterns[found.term] = remade


LAYOUT = ("memory_format", "device", "layout", "pin_memory", "non_blocking", "implicit")


def _value(a: Any, known: dict[Node, Any]) -> Any:
    if isinstance(a, Node):
        if a not in known:
            raise Unread(f"a comparison of lengths, {name_of(a)}, whose value is used")
        return known[a]
    if isinstance(a, list | tuple):
        return [_value(part, known) for part in a]
    return a


ROUNDINGS = 2  # in a power: of the exponent and of the result


def stored_base(numbers: Tensor) -> int | None:
    """Return N if a stored row is N^(−j/L) up to rounding in its format, and is no parameter."""
    if isinstance(numbers, nn.Parameter) or numbers.ndim != 1 or numbers.dtype not in FORMATS:
        return None
    return geometric_base(numbers.tolist(), ROUNDINGS * torch.finfo(numbers.dtype).eps)


def array_of(value: Any) -> Array:
    """Return an output as an array of real numbers."""
    if isinstance(value, Pair):
        raise Unread("complex numbers as output")
    return as_array(value)


ROWS = ("aten.linear.default", "aten.layer_norm.default", "aten.rms_norm.default")
ENTRIES = tuple(
    f"aten.{name}.default"
    for name in (
        "silu",
        "relu",
        "sigmoid",
        "tanh",
        "softplus",
        "mish",
        "elu",
        "leaky_relu",
        "hardswish",
        "erf",
    )
)


# Activations that map −∞ to a number; others may give NaN, which no function on reals returns.
AT_INFINITY = tuple(
    f"aten.{name}.default" for name in ("relu", "sigmoid", "tanh", "softplus", "erf")
)
SMALLEST_NORMAL = 2.0**-126  # the least normal number of float32, below which an epsilon may be 0


def folded(operation: str, args: Sequence[Any], *, of_tables: bool = False) -> Array | None:
    """Return the operation as an uninterpreted function of a row or of a number, or None.

    A map of a row qualifies only if all arguments but the first are stored: weights computed from
    inputs cannot be part of a function.  ``of_tables``: the function takes the stored arguments
    too.
    """
    if operation in ROWS and args and all(map(_is_stored, args[1:])):
        return _of_row(operation, args, of_tables=of_tables)
    if operation in ENTRIES and not any(isinstance(a, Array) for a in args[1:]):
        return _of_entries(operation, args)
    return None


def _is_stored(argument: Any) -> bool:
    """Whether an argument is a stored table, or is computed from numbers and such tables alone.

    An argument that contains a length is a different weight for each batch, hence a different
    function.
    """
    if isinstance(argument, list | tuple):
        return all(map(_is_stored, argument))
    if not isinstance(argument, Array):
        return True
    tables = set(notes().stored)
    return all(v in tables for v in free(argument.term))


def _of_row(operation: str, args: Sequence[Any], *, of_tables: bool) -> Array | None:
    """Return one function per operation, tables and settings, the same in every graph.

    ``of_tables``: one function per operation, settings and shapes of its tables.
    """
    x = numeric(args[0])
    if not x.term.finite:
        return None
    if operation == "aten.linear.default":
        out: tuple[Any, ...] | None = (args[1].axes[0],)
    elif len(args[1]) == 1:  # a norm over one axis
        out = None
    else:
        return None
    least = _epsilon(operation, args)
    if least < 0:
        return None
    if least < SMALLEST_NORMAL:
        assume("no denominator is 0", "if")
    tables = [a for a in args[1:] if isinstance(a, Array)] if of_tables else []
    core = (1, *(a.ndim for a in tables))
    given = Given("function", core=core, out=out, says="any function of a row")
    told = repr([_table_key(a, shape=of_tables) if isinstance(a, Array) else a for a in args[1:]])
    name = f"any_{operation.split('.')[1]}_{sha256(told.encode()).hexdigest()[:12]}"
    found: Array = standing(name, given)(x, *tables)
    return found


def _epsilon(operation: str, args: Sequence[Any]) -> float:
    """Return the epsilon given to a norm, which keeps it from dividing by 0; 1 if none is given."""
    place = {"aten.layer_norm.default": 4, "aten.rms_norm.default": 3}.get(operation)
    found = args[place] if place is not None and len(args) > place else None
    return found if isinstance(found, int | float) else 1.0


def _table_key(table: Array, *, shape: bool) -> object:
    return [length.key for length in table.axes] if shape else table.term.key


def _of_entries(operation: str, args: Sequence[Any]) -> Array | None:
    """Return one function per operation and settings: leaky_relu of 0.1 is not that of 0.2."""
    x = numeric(args[0])
    if not x.term.finite and (operation not in AT_INFINITY or len(args) > 1):
        return None
    told = "".join(f"_{setting!r}" for setting in args[1:])
    settings = told.translate(str.maketrans("-+.", "mp_"))  # 1e-16 and 1e+16 are two names
    name = f"any_{operation.split('.')[1]}{settings}"
    given = Given("function", core=(0,), out=(), says="any function of a number")
    found: Array = standing(name, given)(x)
    return found


CHOICES = ("aten.where.self", "aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
SPLITS = ("aten.split.Tensor", "aten.split.default", "aten.chunk.default")
# Readings of conversions handle the change of dtype themselves.
CASTS = ("aten._to_copy.default", "aten.to.dtype", "aten.to.device", "aten.to.dtype_layout")
PLACES = (
    "aten.index.Tensor",
    "aten.index_select.default",
    "aten.embedding.default",
    "aten.gather.default",
)


def in_its_dtype(node: Node, name: str, found: Any) -> Any:
    """Return a value that was read, if it is the same in the dtype of its node.

    Raises :class:`Unread` if numbers would be truncated or wrap around.
    """
    dtype = _dtype(node)
    if dtype is None or not isinstance(found, Array):
        return found
    moves = KINDS[name] == "moves"  # which works in any dtype
    if dtype == torch.bool:
        if not is_truth(found.term) and not (moves or name in CHOICES):
            raise Unread("numbers as truth values")
        return found if is_truth(found.term) else ~(found == as_array(0))
    if dtype in NARROW and not moves:
        raise Unread(f"integers of {dtype}, which wrap around")
    if _is_whole(dtype) and name not in CASTS:
        for told in _inexact_operands(node, name, dtype):
            raise Unread(f"{told} as {dtype}")
    short = dtype.is_floating_point and dtype.itemsize < 4
    if short and not moves and any(_dtype(one) == dtype for one in node.all_input_nodes):
        told = str(dtype).removeprefix("torch.")
        if not any(f" {told} is read" in known.text for known in notes().readings):
            assume(f"what is computed in {told} is read without its rounding")
    return numeric(found)


def _inexact_operands(node: Node, name: str, dtype: torch.dtype) -> Iterator[str]:
    """Describe operands of an integer operation that may not be integers, or may need more bits."""
    shape_alone = name.startswith("aten.new_") or name.endswith("_like.default")
    for given in leaves([node.args, node.kwargs]):
        own = _dtype(given) if isinstance(given, Node) and not shape_alone else None
        wider = dtype in NARROW and own not in (None, dtype, torch.bool) and name not in PLACES
        if isinstance(given, float) and not given.is_integer():
            yield repr(given)
        elif own is not None and (own.is_floating_point or wider):
            yield f"numbers of {own}"


def _dtype(node: Any) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, Tensor) else None


def _is_whole(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex
