"""What a law of code is: its words, and a formula for each call that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import is_truth

from .inputs import Inputs

Sides = tuple[Any, Any]
VECTORS, TOKENS = "real B H n D", "real B n E"
QUERIES, KEYS = "real B H r D", "real B G n D"


@dataclass(frozen=True)
class Formula:
    """A law as an equation of one call: ``sides`` of the calls and of what is given.

    The calls are the program on terms, on residues, or the code itself on tensors.  ``sides``
    gives two arrays that should be equal, or two lists of them; ``names`` says in words what the
    two sides of each equation are.

    ``given`` has for each name the kind and the axes: ``"real B H n D"``, ``"position B n"``,
    ``"permutation n"``, ``"real"``, ``"shift"`` (one for all), ``"step"`` (a plain number),
    ``"place B n"`` (a position of one axis), ``"truth B r n"`` and ``"hidden B r n"`` (any truth
    values, True for what counts, or for what does not), ``"keep B n"`` and ``"padding B n"`` (truth
    values, True for what counts; of padding it comes first), ``"index r"`` (one of so many places).
    Letters: A and B rows of a batch, H heads, G key heads, n, r and m tokens, c tokens that fill a
    cache, D features of a head, E features of a token, F those of all heads, or of a token of a
    context.

    ``positive``: an array whose entries are all above 0, where an equation of zeros would say
    nothing.  ``shown``: what a witness breaks, where that is another thing than the law.
    ``sizes``: other lengths at which the equation shows faults that it hides at most lengths.
    ``of_sizes``: the sides are made of lengths alone, whatever is given.
    ``inputs``: those at which it is measured, where the ones of its call do not do.
    ``unsaid``: what the sentence says and the formula does not, or says at these lengths alone: no
    proof of the formula is one of the law.
    ``limits``: a clause under which a proof of the formula is one of the law, as far as it says it.
    ``others``: further calls that it is about, without which it says nothing.
    ``floats``: no other method reads it: it speaks of what floating point leaves, of what is 0, of
    gradients or training, or of so little of its law that only beside others it says something.
    ``again``: how the law passes on to what is called on the outputs, as the layer after a layer.
    Of what its calls gave, in their order, and of what is given it makes what is given next, such
    that the law then takes just these outputs; a law without it says nothing of a composition.
    """

    id: str
    kind: str
    call: str
    given: Mapping[str, str]
    sides: Callable[..., Sides]
    names: Sequence[tuple[str, str]] = ()
    shown: Callable[..., Sides] | None = None
    positive: Callable[..., Any] | None = None
    sizes: Sequence[Mapping[str, int]] = ()
    of_sizes: bool = False
    unsaid: str = ""
    inputs: Sequence[Inputs] = ()
    floats: bool = False
    others: Sequence[str] = ()
    again: Callable[..., Mapping[str, Any]] | None = None
    limits: str = ""

    @property
    def rotates(self) -> bool:
        """Whether it speaks of queries and of keys, which may be rotated by code of their own."""
        return self.call == "rotate"

    def equations(self, calls: SimpleNamespace, *, shown: bool = False, **values: Any) -> Sides:
        """Its two sides, or two lists of them: of keys too where other code rotates them."""
        sides = self.shown if shown and self.shown is not None else self.sides
        found = [sides(calls, **values)]
        if self.rotates and self.id != "relative" and calls.key is not calls.rotate:
            found.append(sides(of_keys(calls), **values))
        if len(found) == 1:
            return found[0]
        left, right = ([part for both in found for part in _listed(both[side])] for side in (0, 1))
        return left, right


@dataclass(frozen=True)
class Law:
    """A law of code: ``says`` is a sentence, ``about`` the kinds of code it is asked of.

    ``group``: structure (theorems of the encoding), declared (it is what it is said to be), state
    (nothing an earlier call, another row or another path did matters), precision (what floating
    point leaves of it), masks.
    ``always``: code that breaks it is wrong whatever it is meant to be.  The others are asked where
    the declaration or what the code can do makes them apply; each finding says.
    ``formulas``: one for each call it is about; none where it is measured only.
    """

    id: str
    kinds: str
    group: str
    says: str
    always: bool = True
    formulas: list[Formula] = field(default_factory=list, compare=False)

    @property
    def about(self) -> tuple[str, ...]:
        """The kinds of code it is asked of."""
        return tuple(self.kinds.split())

    def of(
        self,
        kind: str,
        call: str,
        *,
        names: Sequence[tuple[str, str]] = (),
        shown: Callable[..., Sides] | None = None,
        positive: Callable[..., Any] | None = None,
        sizes: Sequence[Mapping[str, int]] = (),
        of_sizes: bool = False,
        unsaid: str = "",
        inputs: Sequence[Inputs] = (),
        floats: bool = False,
        again: Callable[..., Mapping[str, Any]] | None = None,
        limits: str = "",
        others: Sequence[str] = (),
        **given: str,
    ) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
        """Add a formula: the kind of code, the call, and what is given beside it."""
        if kind not in self.about:
            raise ValueError(f"{self.id} is a law of {self.kinds}, not of {kind} code")

        def wrap(sides: Callable[..., Sides]) -> Callable[..., Sides]:
            self.formulas.append(
                Formula(
                    self.id,
                    kind,
                    call,
                    given,
                    sides,
                    names,
                    shown,
                    positive,
                    sizes,
                    of_sizes,
                    unsaid,
                    inputs,
                    floats,
                    others=others,
                    again=again,
                    limits=limits,
                )
            )
            return sides

        return wrap


def _listed(side: Any) -> list[Any]:
    return side if isinstance(side, list) else [side]


def of_keys(calls: SimpleNamespace) -> SimpleNamespace:
    """The same calls, with keys in the place of queries."""
    return SimpleNamespace(**{**vars(calls), "rotate": calls.key, "in_order": calls.key_in_order})


def called(calls: Mapping[str, Any], *, true_means: str = "", **known: Any) -> SimpleNamespace:
    """The calls by name, as laws use them: keys rotated as queries where there is no other code.

    ``in_order`` rotates with the channels in the order in which they went in: it is ``rotate``,
    where nothing else is given.  ``visible`` is a mask as 1 where a key is seen and 0 where not,
    whatever the code makes of it.  ``known`` are plain numbers of the code, as ``first``, its first
    position, and ``shared``: positions are (1, T), those of all rows, or the same in each row.
    """
    found = SimpleNamespace(**{"first": 0, "causal": False, "shared": False, **known}, **calls)
    if "rotate" in calls:
        found.key = calls.get("key", found.rotate)
        found.in_order = calls.get("in_order", found.rotate)
        found.key_in_order = calls.get("key_in_order", found.key)
    if "masked" in calls:
        found.visible = lambda x, y: _visible(calls["masked"](x, y), true_means)
    return found


def _visible(mask: Any, true_means: str) -> Any:
    xp = array_namespace(mask)
    if not _is_truth(mask):
        return xp.exp(mask)
    seen = xp.where(mask, 1, 0)
    return 1 - seen if true_means == "hidden" else seen


def _is_truth(mask: Any) -> bool:
    return is_truth(mask.term) if isinstance(mask, Array) else "bool" in str(mask.dtype)
