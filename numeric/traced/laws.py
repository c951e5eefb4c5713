"""Laws of code as array code: the same lines make a statement of a traced program, and run it.

A law is a function of the call (the program on terms, or the code itself on tensors) and of what
is given; it returns two arrays that should be equal.  ``given`` names what it needs, with axes in
letters: B rows of a batch, H heads, G key heads, n and r tokens, D features; the letters are bound
to the axes that the graph has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import is_truth

__all__ = ["TOKENS", "TRACED_LAWS", "VECTORS", "Sides", "TracedLaw", "called", "law"]

Sides = tuple[Any, Any]


@dataclass(frozen=True)
class TracedLaw:
    """A law of traced code: its id, the kind and the call it is about, and its two sides.

    ``call`` is the field of the subject that is traced.  ``given`` has for each name the kind and
    the axes: ``"real B H n D"``, ``"position B n"``, ``"permutation n"``, ``"real"``.
    """

    id: str
    kind: str
    call: str
    given: Mapping[str, str]
    sides: Callable[..., Sides]
    needs: Callable[[Any], str] = field(default=lambda _: "")

    @property
    def keys(self) -> bool:
        """Whether it looks at keys that may be turned by code of their own."""
        return self.id == "relative" and self.call == "turn"


TRACED_LAWS: list[TracedLaw] = []


def called(calls: Mapping[str, Callable[..., Any]], subject: Any) -> SimpleNamespace:
    """The calls by name, as laws use them: keys turned as queries where there is no other code.

    ``visible`` is a mask as 1 where a key is seen and 0 where not, whatever the code makes of it.
    """
    found = SimpleNamespace(**calls)
    if "turn" in calls and "key" not in calls:
        found.key = found.turn
    if "masked" in calls:
        found.visible = lambda x, y: _visible(calls["masked"](x, y), subject.true_means)
    return found


def _visible(mask: Any, true_means: str) -> Any:
    xp = array_namespace(mask)
    if not _is_truth(mask):
        return xp.exp(mask)
    seen = xp.where(mask, 1, 0)
    return 1 - seen if true_means == "hidden" else seen


def _is_truth(mask: Any) -> bool:
    return is_truth(mask.term) if isinstance(mask, Array) else "bool" in str(mask.dtype)


def law(
    id: str, kind: str, call: str, needs: Callable[[Any], str] = lambda _: "", **given: str  # noqa: A002
) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
    """Register a law: its id, the kind of code, the call that is traced, and what is given."""

    def wrap(sides: Callable[..., Sides]) -> Callable[..., Sides]:
        TRACED_LAWS.append(TracedLaw(id, kind, call, given, sides, needs))
        return sides

    return wrap


VECTORS, TOKENS = "real B H n D", "real B n E"
