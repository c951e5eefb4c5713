"""A graph that was read, compared with its code at the sizes of the trace and at others."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.symbolic.givens import positions, real

from .agreement import disagreement
from .calls import Call
from .operations import Unread
from .stating import Axes, Graph

__all__ = ["wrong_reading"]


def wrong_reading(graph: Graph, axes: Axes) -> str:
    """What is wrong with the reading of a graph, at the sizes of the trace and at others."""
    names = [f"input_{k}" for k in range(len(graph.call.inputs))]
    letters = [told.split() for told in graph.call.letters]
    try:
        inputs = [
            (real if x.is_floating_point() else positions)(*(axes[c] for c in own)).named(name)
            for name, own, x in zip(names, letters, graph.call.inputs, strict=True)
        ]
        values = {told: given.named(told) for told, given in graph.givens.items()}
        term = graph.on(values)(*inputs)
    except (Unread, ValueError) as error:
        return str(error)
    tables = {graph.tables[name]: value for name, value in graph.exported.values.items()}
    for tried in (graph.call.inputs, _of_other_sizes(graph.call, axes)):
        sizes = {
            length.data[0]: n
            for own, x in zip(letters, tried, strict=True)
            for length, n in zip((axes[c] for c in own), x.shape, strict=True)
            if length.op == "size"
        }  # fmt: skip
        try:
            with torch.no_grad():
                wrong = disagreement(
                    graph.call.code, term, names, tried, tables, graph.exported.operations,
                    sizes, graph.program.notes,
                )  # fmt: skip
        except Exception as error:  # noqa: BLE001 (no agreement was shown, whatever happened)
            told = " ".join(str(error).split())
            return f"it could not be compared with the code: {type(error).__name__}: {told}"
        if wrong:
            return wrong
    return ""


def _of_other_sizes(call: Call, axes: Axes) -> tuple[Tensor, ...]:
    """Inputs like those of a call, every symbolic axis one longer."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for told, x in zip(call.letters, call.inputs, strict=True):
        shape = [n + (axes[letter].op == "size")
                 for letter, n in zip(told.split(), x.shape, strict=True)]  # fmt: skip
        if x.is_floating_point():
            found.append(torch.randn(shape, generator=generator, dtype=x.dtype))
        else:
            found.append(torch.randint(0, 9, shape, generator=generator, dtype=x.dtype))
    return tuple(found)
