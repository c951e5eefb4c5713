"""What a call reaches beside its inputs: modules, trained parameters, arrays that it writes to.

torch.export lifts the arrays of modules only, and lets code write to buffers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec
from torch.fx import Node
from torch.overrides import TorchFunctionMode

from ..execution.response import leaves
from ..execution.state import HeldArray, held_arrays

NOT_A_BUFFER = "is mutated in the forward method"  # torch's own words


class NotTraced(Exception):
    """A call without a graph, for a reason of attnproof, which is the text."""

    def told(self, name: str) -> str:
        """Say which call has no graph, and who refuses it.

        >>> NotTraced("its graph takes an object").told("rotate")
        '`rotate` has no graph: its graph takes an object'
        """
        return f"`{name}` has no graph: {self}"


class Refused(NotTraced):
    """A call that torch.export refuses; the text is its reason, shortened."""

    def told(self, name: str) -> str:
        """Say which call torch.export refuses, and why."""
        return f"torch.export refuses `{name}`: {self}"


def versions_of(modules: Iterable[nn.Module]) -> list[tuple[HeldArray, int]]:
    """Return the arrays that these modules hold, each with its version."""
    held = held_arrays(*modules)
    return [(one, one.array._version) for one in held if not one.array.is_inference()]  # noqa: SLF001


def written_since(before: Sequence[tuple[HeldArray, int]]) -> list[HeldArray]:
    """Return the arrays written to since they had these versions.

    Raises ``NotTraced`` if one of them shares memory with another array.
    """
    written = [one for one, version in before if one.array._version != version]  # noqa: SLF001
    own = {storage_of(one.array): one for one in written}
    for other, _ in before:
        one = own.get(storage_of(other.array), other)
        if one.array is not other.array or one.name != other.name:
            raise NotTraced(f"the code writes to {one.name}, which shares memory with {other.name}")
    return written


def not_a_buffer(written: Sequence[HeldArray]) -> str:
    """Say what the code writes to, where torch.export lets it write to buffers only."""
    name = next((one.name for one in written if "[" in one.name), "an array elsewhere")
    return (
        f"wanted a buffer or an attribute of a module, got {name}, which the code writes to: "
        "give each such array a name of its own, by register_buffer"
    )


@contextmanager
def as_buffers(arrays: Sequence[HeldArray]) -> Iterator[None]:
    """Make arrays buffers meanwhile, without the gradients of what earlier runs wrote into them."""
    attributes = [one for one in arrays if vars(one.module).get(one.name) is one.array]
    for one in attributes:
        del vars(one.module)[one.name]
        one.module.register_buffer(one.name, one.array, persistent=False)
    buffers = [(one.module._buffers, one) for one in arrays]  # noqa: SLF001
    buffers = [(named, one) for named, one in buffers if named.get(one.name) is one.array]
    for named, one in buffers:
        named[one.name] = one.array.detach()
    try:
        yield
    finally:
        for named, one in buffers:
            named[one.name] = one.array
        for one in attributes:
            delattr(one.module, one.name)
            vars(one.module)[one.name] = one.array


def results_of(program: ExportedProgram) -> list[Node]:
    """Return the nodes that a program returns, without what it wrote into its inputs."""
    return [node for told, node in _outputs(program) if told.kind == OutputKind.USER_OUTPUT]


def _outputs(program: ExportedProgram) -> Iterator[tuple[OutputSpec, Node]]:
    """Return each output of a graph with what it is of the code."""
    given = next(node for node in program.graph.nodes if node.op == "output").args[0]
    return zip(program.graph_signature.output_specs, given, strict=True)


def own_name(target: Any) -> str:
    """Return the name that an array of a graph has in the code."""
    return str(target).removeprefix("used.0.").removeprefix("used.")


def written_by(program: ExportedProgram) -> dict[str, Node]:
    """Return what a program writes into each of its buffers.

    Raises ``NotTraced`` if it writes to anything else but its inputs.
    """
    written = {}
    for kept, node in _outputs(program):
        if kept.kind == OutputKind.BUFFER_MUTATION:
            written[str(kept.target)] = node
        elif kept.kind not in (OutputKind.USER_OUTPUT, OutputKind.USER_INPUT_MUTATION):
            told = f"the code writes to {own_name(kept.target)}"
            raise NotTraced(f"{told}: its result depends on earlier calls")
    return written


def storage_of(tensor: Tensor) -> int:
    """Return the address of a tensor's storage; 0 if it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def numbers_of_one(
    held: Iterable[Any], modules: Iterable[nn.Module], stored: Iterable[Tensor]
) -> Iterator[str]:
    """Yield that tensors of one number keep it which belong to no module and are in no graph.

    Tracing reads the number (``float(t)``) and leaves the tensor out.
    """
    known = {id(x) for m in modules for x in (*m.parameters(), *m.buffers())}
    lifted = {storage_of(x) for x in stored}
    for x in held:
        alone = isinstance(x, Tensor) and not (x.ndim or x.is_meta) and id(x) not in known
        if alone and storage_of(x) not in lifted:
            yield f"a tensor () that the code holds keeps its value, {x.item()!r}"


def modules_in(call: Any, depth: int = 3) -> list[nn.Module]:
    """Return the modules that a function reaches through its closure, its object or its partial."""
    if isinstance(call, nn.Module):
        return [call]
    if depth == 0:
        return []
    reached: list[Any] = []
    if isinstance(call, partial):
        reached += [call.func, *call.args, *call.keywords.values()]
    reached += [
        cell.cell_contents for cell in getattr(call, "__closure__", None) or () if _is_filled(cell)
    ]
    if getattr(call, "__self__", None) is not None:
        reached.append(call.__self__)
    if not callable(call) or hasattr(call, "__dict__"):
        reached += [v for v in vars(call).values() if isinstance(v, nn.Module)]
    found: dict[int, nn.Module] = {}
    for one in reached:
        for module in modules_in(one, depth - 1) if callable(one) else ():
            found[id(module)] = module
    return list(found.values())


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


class _Watching(TorchFunctionMode):
    """Record the storages of the parameters that any function of torch is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: set[int] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        for one in leaves([args, kwargs or {}]):
            if isinstance(one, Tensor) and one.requires_grad and one.is_leaf:
                self.storages.add(storage_of(one))
        return func(*args, **(kwargs or {}))


def storages_of_trained(call: Callable[..., Any], inputs: Sequence[Tensor]) -> set[int]:
    """Return the storages of the parameters that a call uses, up to where it raises, if it does.

    Parameters that code reaches without a module (in an object, a list, a global name) are
    constants to torch.export.  They may be trained like others, so what is proved has to hold for
    all their values.
    """
    watching = _Watching()
    try:
        with torch.no_grad(), watching:
            call(*(x.clone() for x in inputs))
    except Exception:  # noqa: BLE001 (torch.export reports what such code raises)
        pass
    return watching.storages - {0}
