"""The code of an implementation as it is called: what it refuses, and how many queries it is given.

A kernel that is given whole blocks of queries was measured to sum over keys in fewer roundings
than one that may be left with a query alone, so its calls are counted before its bound is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from .attention_bound import AttentionBound
from .implementations import DoesNotFit, Implementation
from .profile import FULL_BLOCK
from .walk import Replacement

__all__ = ["Calls"]


@dataclass
class Calls:
    """An implementation in one reading, with the numbers of queries of all calls so far."""

    implementation: Implementation
    queries: dict[str, set[int]] = field(default_factory=dict)

    @property
    def replaced(self) -> Mapping[str, Replacement]:
        """The implementation's code; what it refuses is told, and stops nothing else.

        PyTorch raises ``RuntimeError`` for a kernel that is not there or memory that is spent,
        and for arrays that do not fit together alike.  So every one is told with its text, and
        that the implementations of this package raise none at small sizes is a test.
        """
        return {
            name: replace(replaced, compute=self._guarded(name, replaced.compute))
            for name, replaced in self.implementation.replaced.items()
        }

    def _guarded(self, name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            first = args[0]
            many = first.shape[-2] if isinstance(first, Tensor) and first.ndim > 1 else 0
            self.queries.setdefault(name, set()).add(many)
            try:
                return compute(*args)
            except RuntimeError as error:
                text = f"{self.implementation.name} raised {type(error).__name__}: {error}"
                raise DoesNotFit(text) from error

        return call

    def bounded(self) -> Implementation:
        """The implementation with its bounds for calls as they were.

        Where every call of a definition was given whole blocks of queries, they are for such.
        """
        return replace(self.implementation, bounds={
            name: self._bounded(bound, self.queries.get(name, {0}))
            for name, bound in self.implementation.bounds.items()
        })  # fmt: skip

    def _bounded(self, bound: Replacement, given: set[int]) -> Replacement:
        compute = bound.compute
        whole = all(many > 0 and many % FULL_BLOCK == 0 for many in given)
        if not (whole and isinstance(compute, AttentionBound) and compute.kernel):
            return bound
        return replace(bound, compute=replace(compute, queries=FULL_BLOCK))
