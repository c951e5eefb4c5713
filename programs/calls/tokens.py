"""Maps of tokens with a given call: attention with its own projections, and layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.parameter import UninitializedParameter

from ..code import Code
from ..execution.calling import modules_of
from ..execution.draw import normal
from ..loading.names import role_of, sizes_of
from ..loading.program import Program
from ..signatures.layout import labels, laid_out, read_back
from ..signatures.signature import Argument, SignatureError
from .attention import optional_masks
from .masks import (
    SLOTS,
    all_visible_mask,
    call_in_batches,
    is_mask,
    is_of_slots,
    is_square,
    mask_argument,
    per_query,
    row_by_row,
    with_letter,
)
from .roles import (
    PLACES,
    SIZES,
    TABLES,
    bounds_at,
    document_numbers,
    lengths_of,
    result_axes,
    result_names,
    role,
)
from .rotary_calls import Rotating, ways_of
from .supplied_inputs import constant, plain_input, spread
from .token_lines import MADE, TOKENS, TokenLine, blocks_of, encoding, mapped, repetitions

SUPPLIED = ("bounds", "documents", "index", "lengths")  # made here, see plain_input


@dataclass(frozen=True)
class OnTokens(TokenLine):
    """A map of tokens (B, n, E), with ``past`` tokens before those of the call."""

    options: Mapping[str, Any] = field(default_factory=dict)
    least: float | None = None  # the number that hides a key, if not the lowest
    shared: bool = False  # repeated tokens are passed as one tensor, without a copy
    full: bool = False  # optional masks are given, and show every key
    continues: bool = False  # earlier tokens are in the code's cache, and are seen
    apart: bool = False  # rows of a repeated axis are joined along the features

    @cached_property
    def program(self) -> Program:
        """The program that is called."""
        more = tuple(Argument(name, value=value) for name, value in self.options.items())
        line = replace(self.line, arguments=(*self.line.arguments, *more))
        return Program(self.code.call, line, self.code.name)

    @cached_property
    def copies(self) -> int:
        """The number of rows of the code that are joined along the features of one."""
        lengths = lengths_of(self.line)
        return prod(lengths[c] for c in self.repeated) if self.apart else 1

    def counts(self, width: int) -> bool:
        """Whether the number of tokens it is given changes the output of the first tokens."""
        x = normal(2, 6, width, seed=12)
        keep = torch.arange(6) < torch.tensor([[4], [6]])
        plain, under = self(x), self(x, keep)
        return not torch.allclose(plain[0, :4], under[0, :4], rtol=1e-3, atol=1e-4)

    @cached_property
    def spare(self) -> set[str]:
        """The masks that may be left out."""
        masks = tuple(one for one in self.line.arrays if is_mask(one))
        return set() if self.full else optional_masks(self.code, masks)

    @cached_property
    def rotating(self) -> Rotating | None:
        """Positions, and tables made of them.

        Of tables made here, those under which shifting all positions changes nothing are preferred.
        """
        if not any(role(one) in (*TABLES, *PLACES) for one in self.line.arrays):
            return None
        ways = ways_of(self.code, self.line, self.rotated)
        return next(filter(self._relative, ways if len(ways) > 1 else ()), ways[0])

    @property
    def absolute(self) -> bool:
        """Whether it is given positions, and shifting all of them changes its output."""
        placed = any(role(one) in PLACES for one in self.line.arrays)
        return placed and self.rotating is not None and not self._relative(self.rotating)

    def _relative(self, way: Rotating) -> bool:
        """Whether, with these tables, shifting all positions changes nothing."""
        on = OnTokens(self.code.again(), self.signature, self.options)
        vars(on)["rotating"] = way
        for width in widths_of_tokens(self.code):
            x = normal(1, 6, width, seed=8)
            try:
                here, there = (on.run(x, past=past)[0] for past in (0, 5))
            except Exception:  # noqa: BLE001 (with another width the code may raise anything)
                continue
            return torch.allclose(here, there, rtol=1e-3, atol=1e-4)
        return False

    @cached_property
    def rotated(self) -> int:
        """The number of rotated channels of a head: as given, else from its parts."""
        parts = modules_of(self.code)
        widths = (n for kind in ("rotated", "width") for one in parts for n in sizes_of(one, kind))
        return self.code.options.width or next(widths, SIZES["D"])

    def __call__(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Map tokens; those marked in ``keep`` (B, n) count, the others are padding."""
        telling_rows = (*self.padding, *self.counted)
        apart = keep is not None and not any("B" in one.letters for one in telling_rows)
        if keep is not None and self.counted and not bool(keep.all(1).any()):
            # beside a full row, as code may cut its mask to the longest row
            whole = torch.ones_like(keep[:1])
            return self(torch.cat((x, x[:1])), torch.cat((keep, whole)))[:-1]
        if apart and keep is not None and "B" in self.tokens.letters and x.shape[0] > 1:

            def beside(row: int, some: slice) -> Tensor:
                return self.run(x[some], keep[row : row + 1].expand(len(x[some]), -1))[0]

            return call_in_batches(x.shape[0], beside)
        if "B" not in self.tokens.letters and x.shape[0] > 1:
            return row_by_row(self, x, keep)
        return self.run(x, keep)[0]

    def reading(self, x: Tensor, context: Tensor, seen: Tensor) -> Tensor:
        """Map tokens that read a context (B, n, F), visible where ``seen`` (B, n) is True."""
        return self.run(x, read=(context, seen))[0]

    def documents(self, x: Tensor, ids: Tensor) -> Tensor:
        """Map packed tokens (B, n, E) of documents that begin where ids are 0."""
        marked = [one for one in self.line.arrays if role(one) == "documents"]
        if marked:
            if x.shape[0] > 1 and not all("B" in one.letters for one in marked):
                rows = range(x.shape[0])
                return torch.cat([self.documents(x[k : k + 1], ids[k : k + 1]) for k in rows])
            lengths = lengths_of(self.line, B=x.shape[0], n=x.shape[1])
            numbers = {one.name: document_numbers(one, ids, lengths) for one in marked}
            return self.run(x, supplied=numbers)[0]
        told = {one.name: bounds_at(ids) for one in self.line.arrays if role(one) == "bounds"}
        return self.run(x.reshape(1, -1, x.shape[-1]), supplied=told)[0].reshape(x.shape)

    def run(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        past: int = 0,
        supplied: Mapping[str, Any] | None = None,
        read: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the output (B, n, E), and all results by name.

        ``supplied``: inputs that are not made here, such as the state of a step.
        """
        arrays, lengths = self.given(x, keep, past, supplied, read)
        found = self.program.run(arrays, lengths)
        back = result_names(self.line, ("out",))[0]
        axes, out = result_axes(self.line, back), found[back]
        here = tuple(labels(axes)[:-1]) if self.pooled else self._here(lengths)
        if len({"h", "w"} & set(here)) == 2 and len({"h", "w"} & set(labels(axes))) == 1:
            raise SignatureError(f"wanted both axes of the grid back, got {self.signature}")
        beside = tuple(c for c in labels(axes) if c in self.repeated and c not in here)
        rest = (c for c in reversed(labels(axes)) if c not in (*here, *beside))
        last = next(rest, self.feature)
        if last != self.feature and labels(axes[-1:]) == (last,) and out.ndim:
            lengths[last] = out.shape[-1]
        out = read_back(out, axes, (*beside, *here, last), lengths)
        if self.apart and beside:
            out = out.movedim(tuple(range(len(beside))), tuple(range(-1 - len(beside), -1)))
            out = out.flatten(-1 - len(beside))
        for _ in beside if not self.apart else ():  # the code may treat one row as it does no other
            out = _weighted_mean(out)
        if out.numel() % (x.shape[0] * out.shape[-1]):
            raise SignatureError(f"wanted rows B in what is returned, got {self.signature}")
        out = out.reshape(x.shape[0], -1, out.shape[-1])
        if out.shape[1] < x.shape[1] and not self.pooled:
            raise SignatureError(
                f"wanted one token back for each input token, got {self.signature}"
            )
        if self.pooled:
            rows = out.flatten(1) if self.apart else _weighted_mean(out.transpose(0, 1))
            out = rows[:, None].expand(-1, x.shape[1], -1)
        return out[:, : x.shape[1]], found

    def _here(self, lengths: Mapping[str, int]) -> tuple[str, ...]:
        """Return the letters of rows and tokens."""
        return ("B", "h", "w") if "h" in lengths and "w" in lengths else ("B", "n")

    def given(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        past: int = 0,
        supplied: Mapping[str, Any] | None = None,
        beside: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the inputs of the code, and every length.

        Masks of tokens and of their context are given together, as code may multiply the two.
        """
        if self.whole != TOKENS:
            x = self._as_many(x)
        rows, count, width = x.shape
        width //= self.copies
        lengths = lengths_of(self.line, B=rows, n=count, r=count, p=past, **{self.feature: width})
        if {"h", "w"} <= set(self.tokens.letters):
            high, wide = self.sides(int(count))
            traced = torch.compiler.is_compiling() or torch.compiler.is_exporting()
            if high == 1 and count > 1 and traced:
                raise SignatureError(
                    f"{count} tokens are an image of one row, and what holds of it may not hold "
                    "of others"
                )
            lengths |= {"h": high, "w": wide}
            x = x.reshape(rows, high, wide, -1)
        if beside is not None:
            lengths[self.context] = beside[0].shape[1]
        own = self.repeated if self.apart else ()
        here = (*self._here(lengths), *own, self.feature)
        x = x.reshape(*x.shape[:-1], *(lengths[c] for c in own), width) if own else x
        about = keep is not None or beside is not None  # a call about masks
        arrays: dict[str, Any] = {**(supplied or {}), **self._beside(beside, about, lengths, x)}
        for one in self.line.arrays:
            if self._of_context(one) or one.name in arrays:
                continue
            if role(one) in MADE:
                arrays[one.name] = encoding(one, self.feature, past, lengths, x)
            elif is_mask(one):
                asked = is_square(one) or self.full or (about and one in self.padding)
                if one.name in self.spare and not asked:
                    continue
                arrays[one.name] = self._mask(one, keep, lengths, x)
            elif one != self.tokens and role(one) not in (*TABLES, *PLACES):
                arrays[one.name] = self._other(one, here, lengths, x, keep)
        arrays[self.tokens.name] = laid_out(x, here, self.tokens.axes or (), lengths)
        if self.rotating is not None:
            lengths |= {"D": self.rotating.width} if self.feature != "D" else {}
            arrays |= self.rotating.running(past, lengths, x)
        return arrays, lengths

    def _as_many(self, x: Tensor) -> Tensor:
        """Extend tokens to a length that the code takes: with zeros if it is fixed, else copies."""
        if self.whole.letters:
            count = x.shape[1]
            known = int(count) if blocks_of(self.signature) else count  # an image has sides
            if isinstance(known, torch.SymInt):
                if self.multiple_of > 1 and statically_known_true(known % self.multiple_of == 0):
                    return x
                raise SignatureError(f"proofs are about n tokens, and this code takes {self.whole}")
            return x.repeat(1, repetitions(self.whole, known), 1)
        behind = self.only_length - x.shape[1]
        if behind == 0:
            return x
        if behind < 0:
            raise SignatureError(
                f"wanted at most {self.whole} tokens, the only length that the code takes, "
                f"got {x.shape[1]}"
            )
        return torch.cat((x, x.new_zeros(x.shape[0], behind, x.shape[2])), 1)

    def _other(
        self,
        one: Argument,
        here: tuple[str, ...],
        lengths: Mapping[str, int],
        x: Tensor,
        keep: Tensor | None,
    ) -> Tensor:
        """Return the same tokens again, or a context of another length, drawn here and fixed."""
        alike = set(one.letters) == set(self.tokens.letters)
        if role(one) == "constant":
            return constant(one, self.feature, lengths, x)
        if keep is not None and one in self.counted:
            return counts_of(keep, one)
        plain = plain_input(one, lengths, x) if role(one) in SUPPLIED else None
        if plain is not None:
            return plain
        if mapped(one) and alike:
            return laid_out(x if self.shared else x.clone(), here, one.axes or (), lengths)
        of = self.context or self.feature
        if mapped(one) and of in one.letters:
            return spread(one.shape({**lengths, "B": 1}), x).expand(one.shape(lengths))
        raise SignatureError(
            f"wanted what {one.name} is: write one of tokens, positions, encoding, keep, hide, "
            f"add, constant behind its axes, in {self.signature}"
        )

    def _mask(
        self, one: Argument, keep: Tensor | None, lengths: Mapping[str, int], x: Tensor
    ) -> Tensor:
        rows, count, past = x.shape[0], lengths["n"], lengths["p"]
        keys = lengths[SLOTS] if is_of_slots(one) else count + past
        if keys < count + past:
            raise SignatureError(
                f"wanted at most {keys} tokens, as wide as {one.name} is, got {count + past}"
            )
        seen = torch.ones(rows, 1, keys, dtype=torch.bool, device=x.device)
        if keep is not None and one in self.padding:
            seen = keep[:, None]
            if is_of_slots(one):
                unused = seen.new_ones(rows, 1, keys - past - count)
                seen = torch.cat((seen.new_ones(rows, 1, past), seen, unused), -1)
        if per_query(one):
            seen = seen.expand(-1, count, -1)
        if is_square(one):
            late = (
                torch.arange(keys, device=x.device)
                > past + torch.arange(count, device=x.device)[:, None]
            )
            seen = seen & ~late
        if is_of_slots(one) and not self.continues:
            seen = seen & (torch.arange(keys, device=x.device) >= past)
        return mask_argument(seen, one, lengths, x, self._lowest(x))

    def _beside(
        self, told: tuple[Tensor, Tensor] | None, about: bool, lengths: Mapping[str, int], x: Tensor
    ) -> dict[str, Tensor]:
        """Return a given context and its masks; for a drawn context, masks that show all of it.

        ``about``: masks that may be left out are included.
        """
        if told is None:
            asked = [one for one in self.context_masks if about or one.name not in self.spare]
            return {one.name: all_visible_mask(one, lengths, x) for one in asked}
        context, seen = told
        found = {
            one.name: laid_out(
                context, ("B", self.context, self._features(one)), one.axes or (), lengths
            )
            for one in self.contexts
        }
        masks = self.context_masks
        return found | {one.name: self._of_seen(one, seen, lengths, x) for one in masks}

    def _of_seen(
        self, one: Argument, seen: Tensor, lengths: Mapping[str, int], x: Tensor
    ) -> Tensor:
        axes = tuple(
            with_letter(with_letter(a, "n", "r"), self.context, "n") for a in one.axes or ()
        )
        told = replace(one, axes=axes)
        shown = seen[:, None].expand(-1, lengths["n"] if per_query(told) else 1, -1)
        return mask_argument(shown, told, lengths, x, self._lowest(x))

    def _lowest(self, x: Tensor) -> float:
        """Return the number that hides a key, finite also if softmax is taken in float32."""
        if self.least is not None:
            return self.least
        return max(torch.finfo(dtype).min for dtype in (x.dtype, torch.float32))


def _weighted_mean(x: Tensor) -> Tensor:
    """Return the mean along the first axis, with weights that all differ."""
    many = torch.arange(1, x.shape[0] + 1, dtype=x.dtype, device=x.device)
    mean: Tensor = torch.tensordot(many / many.sum(), x, 1)
    return mean


def counts_of(keep: Tensor, one: Argument) -> Tensor:
    """Return how many leading tokens of each row count.  Raises :class:`SignatureError`."""
    many = keep.sum(1)
    if not bool((keep == (torch.arange(keep.shape[1], device=keep.device) < many[:, None])).all()):
        raise SignatureError(f"wanted padding behind the tokens, as {one} can mark no other")
    return many


def widths_of_tokens(code: Code) -> list[int]:
    """Return token widths to try: the given one, those of the object, those of its parts."""
    told = code.options.embed or code.options.width
    if told:
        return [told]
    parts: list[Any] = modules_of(code) or [code.call]
    given = [x for name, x in code.built.items() if role_of(name) == "embed" and type(x) is int]
    linear = [m.in_features for m in parts if isinstance(m, nn.Linear) and m.in_features]
    known = [n for part in parts for r in ("embed", "width") for n in sizes_of(part, r)]
    held = code.module.parameters() if code.module else ()
    held = (p for p in held if not isinstance(p, UninitializedParameter))
    shapes = [p.shape[-1] for p in held if p.dim() and p.shape[-1]]
    first = given if len(given) == 1 else linear[:1]
    return list(dict.fromkeys([*first, *linear[:1], *known, *shapes[:2], SIZES["E"], 8, 32, 64]))
