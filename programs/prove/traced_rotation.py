"""A traced rotation as a function of one vector, or a row of vectors, and its positions.

The graph of a call has axes for batch, heads and tokens.  A vector is repeated along them B, H and
T times; the tokens of a row use the token axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from attnproof.documents.verdict_line import Condition
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import positions, real
from attnproof.symbolic.scalars import number_of, size

from .calls import SHARED, CodeRaised
from .statements import Graph

COPIES = {"B": ("B", "size"), "H": ("H", "heads"), "n": ("T", "tokens")}


class Hook:
    """``rotate(x, p)`` of a graph with inputs ``B H n D`` and ``B n``, or ``n``: terms or NumPy.

    ``givens``: the parameters and tables of the code, left symbolic, and other givens of the term.

    Raises ``ValueError`` for a graph with other inputs, or of code that writes to its tables.
    """

    def __init__(self, graph: Graph, axes: int = 0) -> None:
        wanted = ("B H n D", "B n C" if axes else "B n")
        told = (graph.call.letters[0], graph.call.letters[-1])
        self.shared = told[1].startswith(SHARED)
        if (told[0], told[1].replace(SHARED, "B")) != wanted:
            raise ValueError(f"wanted a call of {', '.join(wanted)}; got {', '.join(told)}")
        if graph.exported.state:
            kept = ", ".join(sorted(graph.exported.state))
            raise ValueError(
                f"wanted code without state between calls; got code that writes to {kept}"
            )
        self.graph, self.axes = graph, axes
        self.lengths = dict(zip("BHnD", graph.exported.shapes[0], strict=True))
        own = (self.axes,) * bool(self.axes)
        values = {name: given.named(name) for name, given in graph.givens.items()}
        self.givens = graph.givens
        self(real(self.width).named("x"), positions(*own).named("a"), values)
        self.givens = graph.givens | graph.program.notes.givens  # later calls add their own

    @property
    def width(self) -> int:
        """The number of channels D."""
        found = self.lengths["D"]
        assert isinstance(found, int)  # features are never symbolic
        return found

    @property
    def values(self) -> dict[str, Any]:
        """The values of the givens in the code; functions of rows have none."""
        tables = {
            told: self.graph.exported.values[name].detach().double().numpy()
            for name, told in self.graph.tables.items()
        }
        numbers = self.graph.program.notes.constants
        return tables | {name: np.asarray(value) for name, value in numbers.items()}

    def __call__(self, x: Any, p: Any, values: Mapping[str, Any]) -> Any:
        """Rotate x (D,) at p (), or x (n, D) at p (n,); positions may have a coordinate axis."""
        if not isinstance(x, Array) and not isinstance(p, Array):
            return self._run(np.asarray(x), np.asarray(p), values)
        x, p = as_array(x), as_array(p)
        rows = x.axes[:-1]
        if len(rows) > 1:
            raise ValueError(f"wanted one vector or a row of them; got axes {x.axes}")
        p = xp.broadcast_to(p, (*rows, *p.axes[p.ndim - bool(self.axes) :]))
        alone = not rows or number_of(as_array(rows[0]).term) == 1
        if alone and rows:
            x, p = x[0], p[0]
        outside = (self._copies("B"), self._copies("H"))
        tokens = (self._copies("n"),) * alone
        rotated = self.graph.as_function({name: values[name] for name in self.graph.givens})(
            xp.broadcast_to(x, (*outside, *tokens, *x.axes)),
            xp.broadcast_to(p, (1 if self.shared else outside[0], *tokens, *p.axes)),
        )[0, 0]
        if not alone:
            return rotated
        return rotated[:1] if rows else rotated[0]

    def _copies(self, letter: str) -> Any:
        """Return the number of copies along an axis: symbolic, or what the graph fixed."""
        length = self.lengths[letter]
        return length if isinstance(length, int) else Array(size(*COPIES[letter]))

    def _run(self, x: Any, p: Any, values: Mapping[str, Any]) -> Any:
        """Run the code itself, with its own parameters."""
        own = self.values
        if any(name in values and not np.array_equal(values[name], own[name]) for name in own):
            raise ValueError(
                "wanted the parameters of the code; got others, with which it cannot be run"
            )
        like, places = self.graph.call.inputs[0], self.graph.call.inputs[-1]
        rows = x.shape[:-1]
        flat = x.reshape(-1, self.width)
        x = np.broadcast_to(flat, (*self._counts(), *flat.shape))
        p = np.broadcast_to(p, (*rows, *p.shape[p.ndim - bool(self.axes) :]))
        p = p.reshape(1, -1, *p.shape[len(rows) :])
        p = np.broadcast_to(p, (1 if self.shared else x.shape[0], *p.shape[1:]))
        given = torch.tensor(x, dtype=like.dtype), torch.tensor(p, dtype=places.dtype)
        try:
            with torch.no_grad():
                rotated = self.graph.call.alone(*given)
        except CodeRaised as error:
            raise error.__cause__ or error from None
        return rotated[0, 0].double().numpy().reshape(*rows, self.width)

    def _counts(self) -> tuple[int, ...]:
        return tuple(n if isinstance(n, int) else 2 for n in map(self.lengths.get, "BH"))


@dataclass(frozen=True)
class Hooks:
    """What traced code does to queries and keys; ``key`` is set if keys have their own graph.

    ``whole``: positions are integers.  ``least``: the least value of each length.  For the calls
    since ``forget``, ``conditions`` returns the conditions under which results hold for the code,
    and ``allows`` tells whether the graph is valid at given lengths.
    """

    rotate: Hook
    key: Hook | None
    whole: bool
    least: Mapping[str, int]
    forget: Callable[[], None]
    conditions: Callable[[], tuple[Condition, ...]]
    allows: Callable[[Mapping[str, int]], bool]

    @property
    def rounded(self) -> bool:
        """Whether a stored table is read as the function of which it holds rounded values."""
        hooks = (self.rotate, self.key) if self.key is not None else (self.rotate,)
        return any(
            angles.name in hook.graph.program.notes.givens
            for hook in hooks
            for angles in hook.graph.exported.angles.values()
        )
