"""Laws of code as array code: the same lines make a statement of a traced program, and run it.

A law is a function of the call (the program on terms, or the code itself on tensors) and of what
is given; it returns two arrays that should be equal, or two lists of arrays.  ``given`` names what
it needs, with axes in letters: B rows of a batch, H heads, G key heads, n and r tokens, D features;
the letters are bound to the axes that the graph has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import is_truth

__all__ = [
    "TOKENS", "TRACED_LAWS", "VECTORS", "Sides", "TracedLaw", "called", "each_alone", "law",
]  # fmt: skip

Sides = tuple[Any, Any]


@dataclass(frozen=True)
class TracedLaw:
    """A law of traced code: its id, the kind and the call it is about, and its two sides.

    ``positive``: an array whose entries are all above 0, where an equation of zeros would say
    nothing.
    ``call`` is the field of the subject that is traced.  ``given`` has for each name the kind and
    the axes: ``"real B H n D"``, ``"position B n"``, ``"permutation n"``, ``"real"``.  ``shown`` is
    what a witness breaks, where that is another thing than the law.
    """

    id: str
    kind: str
    call: str
    given: Mapping[str, str]
    sides: Callable[..., Sides]
    needs: Callable[[Any], str] = field(default=lambda _: "")
    shown: Callable[..., Sides] | None = None
    positive: Callable[..., Any] | None = None

    @property
    def turns(self) -> bool:
        """Whether it speaks of queries and of keys, which may be turned by code of their own."""
        return self.call == "turn"

    def equations(self, calls: SimpleNamespace, *, shown: bool = False, **values: Any) -> Sides:
        """Its two sides, or two lists of them: of keys too where other code turns them.

        ``shown``: what a witness has to break, which may be less than the law.
        """
        sides = self.shown if shown and self.shown is not None else self.sides
        found = [sides(calls, **values)]
        if self.turns and self.id != "relative" and calls.key is not calls.turn:
            found.append(sides(SimpleNamespace(turn=calls.key), **values))
        if len(found) == 1:
            return found[0]
        left, right = ([part for both in found for part in _listed(both[side])] for side in (0, 1))
        return left, right


def _listed(side: Any) -> list[Any]:
    return side if isinstance(side, list) else [side]


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
    id: str, kind: str, call: str, needs: Callable[[Any], str] = lambda _: "",  # noqa: A002
    shown: Callable[..., Sides] | None = None, positive: Callable[..., Any] | None = None,
    **given: str,
) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
    """Register a law: its id, the kind of code, the call that is traced, and what is given."""

    def wrap(sides: Callable[..., Sides]) -> Callable[..., Sides]:
        TRACED_LAWS.append(TracedLaw(id, kind, call, given, sides, needs, shown, positive))
        return sides

    return wrap


def each_alone(
    call: Callable[..., Any], first: Sequence[Any], second: Sequence[Any],
    axes: Sequence[int] = (0, 0, 0),
) -> Sides:  # fmt: skip
    """Two parts put together along an axis give what each gives: rows of a batch, or tokens.

    ``axes`` has the axis of each input; of the result it is that of the first.
    """
    xp, axis = array_namespace(first[0]), axes[0]
    pairs = zip(first, second, axes, strict=False)
    both = call(*(xp.concat((a, b), axis=k) for a, b, k in pairs))
    before, cut = (slice(None),) * axis, first[0].shape[axis]
    return ([both[(*before, slice(None, cut))], both[(*before, slice(cut, None))]],
            [call(*first), call(*second)])  # fmt: skip


VECTORS, TOKENS = "real B H n D", "real B n E"
