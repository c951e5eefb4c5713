"""Bound variables that take one value after another: tables, and states of stacks of layers.

What was computed with one value is forgotten before the next, and only that; the states of one
stack are kept, so that a table of its first n states costs n layers and not n².
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

from .scalars import ONE
from .terms import Term, free, instantiate, make

__all__ = ["Recurrences"]

KEPT = 1 << 24
"""The entries of the states of one stack that are kept at once."""


class States:
    """The states of one stack from number ``first`` on."""

    __slots__ = ("first", "values")

    def __init__(self, start: Any) -> None:
        self.first, self.values = 0, [start]

    @property
    def last(self) -> int:
        """The number of the last state there is."""
        return self.first + len(self.values) - 1

    def drop(self) -> None:
        """Keep the last state alone."""
        self.first, self.values = self.last, self.values[-1:]


class Recurrences(ABC):
    """What an evaluator knows, by term, and which of it depends on a bound variable of now."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        self.known: dict[Term, Any] = {}
        self.states: dict[tuple[Term, Term], States] = {}
        self._moving: dict[Term, list[tuple[dict[Any, Any], Any]]] = {}

    @abstractmethod
    def __call__(self, term: Term) -> Any:
        """The value of a term."""

    @abstractmethod
    def lengths(self, term: Term) -> tuple[int, ...]:
        """The shape of a term."""

    def keep(self, table: dict[Any, Any], key: Any, value: Any, *terms: Term) -> Any:
        """Put a value that was computed from these terms into a table."""
        table[key] = value
        for variable, found in self._moving.items():
            if any(variable in free(term) for term in terms):
                found.append((table, key))
        return value

    def move(self, variable: Term, value: Any) -> None:
        """Give a bound variable its next value; what depends on the old one is forgotten."""
        for table, key in self._moving.get(variable, ()):
            table.pop(key, None)
        self._moving[variable] = []
        self.values[str(variable.data if variable.op == "index" else variable.data[0])] = value

    def slices(
        self, table: Term, places: Iterable[int], read: Callable[[Term], Any] | None = None
    ) -> list[Any]:
        """The slices of a table at some places of its first axis, in the order given."""
        read, body = read or self, table.args[1]
        at = make("index", (ONE,), f"place in {body.key.hex()}")
        row = instantiate(body, at)
        found = []
        for i in places:
            self.move(at, int(i))
            found.append(read(row))
        return found

    def state(self, stack: Term, depth: int) -> Any:
        """The state after so many layers; at and below 0 it is the start."""
        _, start, body = stack.args
        states = self.states.get((start, body))
        if states is None or states.first > max(depth, 0):
            states = States(self(start))
            self.keep(self.states, (start, body), states, start, body)
        at = make("index", (ONE,), f"layer of {body.key.hex()}")
        held = make("var", (), (f"state of {body.key.hex()}", "real"), stack.shape)
        layer = instantiate(body, at, held)
        room = max(1, KEPT // max(1, prod(self.lengths(stack))))
        while states.last < depth:
            self.move(at, states.last)
            self.move(held, states.values[-1])
            states.values.append(self(layer))
            if len(states.values) > room:
                states.drop()
        return states.values[max(depth, 0) - states.first]
