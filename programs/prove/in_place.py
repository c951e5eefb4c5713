"""Replace in-place operations on arrays that nothing else holds by their out-of-place versions.

``torch.zeros_like(mask).masked_fill_(mask, -inf)`` is ``masked_fill`` of the same zeros, at any
lengths.  An array that may be a view of another, or is read again later, is left to torch, which
decomposes the whole graph to functionalise it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import _dispatch_has_kernel_for_dispatch_key
from torch._ops import OpOverload
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from .operations import READINGS

aten = torch.ops.aten
# Composite operations may return their own input; these ones return new arrays.
COMPOSITE = "CompositeImplicitAutograd"
RETURNS_NEW = (aten.matmul.default, aten.linear.default, aten.softmax.int)


def written_as_new(graph: Graph) -> bool:
    """Replace in-place operations on arrays that only they hold; return whether there was one.

    >>> from torch.export import export
    >>> class Adds(torch.nn.Module):
    ...     def forward(self, x):
    ...         return (2 * x).add_(1)
    >>> graph = export(Adds(), (torch.ones(3),)).graph
    >>> written_as_new(graph), [str(n.target) for n in graph.nodes if n.op == "call_function"]
    (True, ['aten.mul.Tensor', 'aten.add.Tensor'])
    """
    found = False
    for node in list(graph.nodes):
        new = _new(node)
        if new is not None and _is_alone(node) and _gives_alike(node, new):
            node.target, found = new, True
    return found


def _new(node: Node) -> OpOverload | None:
    """Return the out-of-place version of a node's operation, if it exists and has a reading."""
    target = node.target
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return None
    schema = target._schema  # noqa: SLF001 (torch has no public name for it)
    name = schema.name.removeprefix("aten::")
    written = [k for k, one in enumerate(schema.arguments) if one.is_write]
    if written != [0] or not name.endswith("_") or name.endswith("__"):
        return None
    new: Any = getattr(getattr(aten, name[:-1], None), target._overloadname, None)  # noqa: SLF001
    if not isinstance(new, OpOverload) or str(new) not in READINGS:
        return None
    taken = [(one.name, str(one.type)) for one in schema.arguments]
    same = taken == [(one.name, str(one.type)) for one in new._schema.arguments]  # noqa: SLF001
    return new if same else None


def _is_alone(node: Node) -> bool:
    """Whether a node alone holds the array it writes to, which is a view of no other."""
    written = node.args[0]
    if not isinstance(written, Node) or set(written.users) != {node}:
        return False
    target = written.target
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return False
    if target is aten.clone.default and written.kwargs:
        return False  # a copy in a memory format, which the code may make only if needed
    schema = target._schema  # noqa: SLF001
    if any(one.alias_info is not None for one in (*schema.arguments, *schema.returns)):
        return False
    if len(schema.returns) != 1:
        return False
    name = f"{schema.name}.{schema.overload_name}".removesuffix(".")
    return target in RETURNS_NEW or not _dispatch_has_kernel_for_dispatch_key(name, COMPOSITE)


def _gives_alike(node: Node, new: OpOverload) -> bool:
    """Whether the new operation returns the dtype and shape of what was written to."""
    value = node.meta.get("val")
    given: Any = [node.args, node.kwargs]
    if not isinstance(value, Tensor) or any("val" not in one.meta for one in _nodes(given)):
        return False
    args, kwargs = map_arg(given, lambda one: one.meta["val"])
    made = new(*args, **kwargs)
    return bool(made.dtype == value.dtype and list(made.shape) == list(value.shape))


def _nodes(given: Any) -> list[Node]:
    found: list[Node] = []
    map_arg(given, found.append)
    return found
