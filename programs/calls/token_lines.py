"""What the line of a map of tokens says: which array is mapped, and its masks, contexts, counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ..code import Code
from ..signatures.layout import labels
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from .masks import is_mask, masks_in, per_query
from .roles import TABLES, lengths_of, result_axes, result_names, role
from .token_axes import TOKENS, mapped, token_axis, with_one_length

ENCODED = {"encoding": "positions", "offsets": "offsets"}
MADE = tuple(ENCODED)


@dataclass(frozen=True)
class TokenLine:
    """A call of some code that maps tokens (B, T, E), read off its line alone.

    Raises :class:`SignatureError` if the signature is not such a call.
    """

    code: Code
    signature: Signature

    @cached_property
    def _read(self) -> tuple[Signature, str]:
        return with_one_length(self.signature)

    @property
    def line(self) -> Signature:
        """The call, with n for the mapped tokens."""
        return self._read[0]

    @property
    def context(self) -> str:
        """The letter of a context that the tokens read; "" if they read one another."""
        return self._read[1]

    @cached_property
    def whole(self) -> Axis:
        """The lengths that it takes: n, or (n n) for squares only."""
        return token_axis(self.signature)

    @property
    def only_length(self) -> int:
        """The only number of tokens that it takes; 0 if it takes several."""
        return 0 if self.whole.letters else self.whole.size({})

    @cached_property
    def tokens(self) -> Argument:
        """The array that is mapped."""
        for one in self.line.arrays:
            image = {"h", "w"} <= set(one.letters)
            tokens = "n" in one.letters and {"E", "D"} & set(one.letters)
            if (tokens or image) and not is_mask(one) and role(one) not in (*TABLES, *MADE):
                return one
        raise SignatureError(f"wanted tokens, such as x: B n E, in {self.signature}")

    @cached_property
    def feature(self) -> str:
        """The letter of its features."""
        letters = self.tokens.letters
        return "E" if "E" in letters else next(c for c in letters if c not in "Bnhw")

    @cached_property
    def repeated(self) -> tuple[str, ...]:
        """The letters of axes along which the tokens are repeated, such as that of windows."""
        if self.feature != "E":
            return ()
        return tuple(c for c in self.tokens.letters if c not in "BnhwE")

    @cached_property
    def masks(self) -> tuple[Argument, ...]:
        """The masks it takes, except those of a context."""
        ours = [one for one in self.line.arguments if not self._of_context(one)]
        return masks_in(replace(self.line, arguments=tuple(ours)))

    @cached_property
    def context_masks(self) -> tuple[Argument, ...]:
        """The masks of a context, which show all of it unless a law asks about them."""
        return tuple(one for one in self.line.arrays if self._of_context(one))

    @cached_property
    def contexts(self) -> tuple[Argument, ...]:
        """The contexts drawn here, if other values may replace them."""
        found = [one for one in self.line.arrays if mapped(one) and self.context in one.letters]
        alike = {self._features(one) for one in found}
        free = self.context and self.context not in dict(self.line.sizes)
        return tuple(found) if free and len(alike) == 1 and "" not in alike else ()

    def _features(self, one: Argument) -> str:
        """Return the label of the features of a context; "" if it has further axes."""
        rest = [c for c in labels(one.axes or ()) if c not in ("B", self.context)]
        return rest[0] if "B" in one.letters and len(rest) == 1 else ""

    def features_read(self, width: int) -> int:
        """Return the number of context features if a law may mask the context, else 0.

        ``width``: the features of a token.
        """
        if not self.contexts or "B" not in self.tokens.letters or not self.context_masks:
            return 0
        if not all("B" in one.letters for one in self.context_masks):
            return 0
        label = self._features(self.contexts[0])
        lengths = lengths_of(self.line, **{self.feature: width})
        return int(label) if label.isdigit() else lengths[label]

    def _of_context(self, one: Argument) -> bool:
        """Whether it is a mask of a context."""
        return is_mask(one) and self.context in one.letters

    @cached_property
    def pooled(self) -> bool:
        """Whether the rows that come back belong to learned queries rather than to tokens.

        Then every token is given all of them, joined along the features, or their weighted mean, so
        that their order does not matter.
        """
        axes = result_axes(self.line, result_names(self.line, ("out",))[0])
        return not {"n", "h", "w"} & set(labels(axes)) and len(axes) == len(self.tokens.axes or ())

    @cached_property
    def padding(self) -> tuple[Argument, ...]:
        """The masks that mark padding: those of keys alone, if there are any.

        Empty if tokens are repeated to reach a length that the code takes.
        """
        if self.whole != TOKENS:
            return ()
        alone = tuple(one for one in self.masks if not per_query(one))
        return alone or tuple(one for one in self.masks if "B" in one.letters)

    @cached_property
    def counted(self) -> tuple[Argument, ...]:
        """The inputs that count the tokens of each row that are not padding, if no mask does."""
        if self.whole != TOKENS or self.padding or self.context:
            return ()
        found = (one for one in self.line.arrays if role(one) == "lengths")
        return tuple(one for one in found if one.letters == ("B",))

    @property
    def packs(self) -> bool:
        """Whether sequences of any length may be packed, since nothing else depends on lengths."""
        counted = any("B" in one.lengths for one in self.line.arguments)
        beside = [one for one in self.line.arrays if one != self.tokens and role(one) != "bounds"]
        packed = any(role(one) == "bounds" for one in self.line.arrays)
        return packed and not counted and not any({"B", "n"} & {*one.letters} for one in beside)
