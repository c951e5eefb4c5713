"""Attention on queries, keys and values, called by a given signature."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from ..code import Code
from ..loading.names import Parameter, parameters
from ..loading.program import Program
from ..signatures.layout import laid_out_together, read_back
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from ..subjects import Attention
from .masks import (
    call_in_batches,
    forms_of,
    is_query_mask,
    mask_argument,
    masks_in,
    per_query,
    query_mask_argument,
    row_by_row,
    with_query_letter,
)
from .roles import (
    HIDING,
    PLACES,
    SIZES,
    TABLES,
    bounds,
    bounds_at,
    built_at,
    document_numbers,
    lengths_of,
    result_axes,
    result_names,
    role,
    shared_fields,
)
from .rotary_calls import Rotating, ways_of
from .supplied_inputs import constant, constants, contents_of, words_of_constant
from .tables import uncompiled_with_others


@dataclass(frozen=True)
class OnHeads:
    """A call on q (B, H, r, D), k and v (B, G, n, D), and a boolean or additive mask (B, 1, r, n).

    Raises :class:`SignatureError` if the signature does not describe such a call.
    """

    code: Code
    signature: Signature
    least: float = float("-inf")  # the number that hides a key
    full: bool = False  # optional masks are passed too, and show every key
    heads: tuple[int, int] = (1, 1)  # query heads, key heads
    way: Rotating | None = None  # positions, and tables made of them
    past: int = 0  # the position of the first token

    @cached_property
    def program(self) -> Program:
        """The code with its signature, as a callable program."""
        return Program(self.code.call, self.signature, self.code.name)

    @cached_property
    def query_key_value(self) -> tuple[Argument, Argument, Argument]:
        """The arguments for queries, keys and values."""
        by = {role(one): one for one in self.signature.arrays}
        missing = [name for name in ("query", "key", "value") if name not in by]
        if missing:
            raise SignatureError(f"wanted a {missing[0]}, got {self.signature}")
        q, k, v = by["query"], by["key"], by["value"]
        for one, letters in ((q, "rn"), (k, "n"), (v, "n")):
            if not set(letters) & set(one.letters):
                raise SignatureError(
                    f"wanted queries of length r and keys and values of length n, or n for all "
                    f"three, got {self.signature}"
                )
        return q, k, v

    @property
    def square(self) -> bool:
        """Whether the signature has one length for queries and keys."""
        return "r" not in self.query_key_value[0].letters

    def with_tables(self, width: int) -> OnHeads:
        """Return the call with positions and tables; those that make it relative are preferred.

        Queries of their own number have no place among the keys that a table could say.
        """
        placed = [one for one in self.signature.arrays if role(one) in (*TABLES, *PLACES)]
        if not placed:
            return self
        if any("r" in one.letters for one in (self.query_key_value[0], *placed)):
            raise SignatureError(
                f"wanted one length n for queries, keys and {placed[0].name}, got {self.signature}"
            )
        ways = [replace(self, way=one) for one in ways_of(self.code, self.signature, width)]
        return next((one for one in ways[:-1] if one.relative(width)), ways[-1])

    def relative(self, width: int) -> bool:
        """Whether shifting all positions changes nothing."""
        generator = torch.Generator().manual_seed(8)
        q, k, v = (
            torch.randn(1, h, 6, width, generator=generator) for h in (*self.heads, self.heads[1])
        )
        here, there = (replace(self, past=past).attend(q, k, v) for past in (0, 5))
        return torch.allclose(here, there, rtol=1e-3, atol=1e-4)

    @cached_property
    def masks(self) -> tuple[Argument, ...]:
        """The masks of keys; the laws are about the first."""
        return masks_in(self.signature)

    @cached_property
    def query_masks(self) -> tuple[Argument, ...]:
        """The masks of queries."""
        return tuple(filter(is_query_mask, self.signature.arrays))

    @cached_property
    def left_out(self) -> set[str]:
        """The names of the masks that are left out of a call unless one is given."""
        return set() if self.full else optional_masks(self.code, (*self.masks, *self.query_masks))

    @property
    def shared(self) -> bool:
        """Whether keys have no head axis and are shared by all query heads."""
        q, k, _ = (one.letters for one in self.query_key_value)
        return "H" in q and not {"G", "H"} & set(k)

    @property
    def groups(self) -> str:
        """The letter of the head axis of keys."""
        return "G" if "G" in self.query_key_value[1].letters or self.shared else "H"

    @cached_property
    def returned_weights(self) -> tuple[str, tuple[Axis, ...]] | None:
        """The name and the axes of the attention weights, if the code returns them."""
        output = self.output_name
        for name, one in self.signature.named_results:
            axes = with_query_letter(one.axes or ())
            letters = {c for axis in axes for c in axis.letters}
            if name != output and {"r", "n"} <= letters and "D" not in letters:
                return name, axes
        return None

    @property
    def returns_weights_per_head(self) -> bool:
        """Whether the code returns the weights of each head, not only their mean."""
        if self.returned_weights is None:
            return False
        letters = {c for axis in self.returned_weights[1] for c in axis.letters}
        return "H" in letters or "H" not in self.query_key_value[0].letters

    @cached_property
    def output_name(self) -> str:
        """The name of the output: the one named ``out``, else the first result with channels."""
        told = result_names(self.signature, ("out",))[0]
        wide = [name for name, one in self.signature.named_results if "D" in one.letters]
        return wide[0] if told != "out" and wide else told

    @property
    def takes_packed(self) -> bool:
        """Whether the call takes packed sequences of any lengths, given by bounds alone."""
        counted = any("B" in one.lengths for one in self.signature.arguments)
        packed = any(role(one) == "bounds" for one in self.signature.arrays)
        numbered = any(role(one) == "documents" for one in self.signature.arrays)
        if numbered:
            alone = (
                self.square and self.way is None and {m.name for m in self.masks} <= self.left_out
            )
            return alone and not packed
        return packed and not counted and not self.masks and "H" in self.query_key_value[0].letters

    def documents(self, x: Tensor, ids: Tensor) -> Tensor:
        """Attend within packed documents: tokens (B, n, H·D) serve as queries, keys and values.

        A document begins wherever ``ids`` is 0.
        """
        heads, groups = self.heads
        marked = [one for one in self.signature.arrays if role(one) == "documents"]
        rows = x.shape[0] if marked else 1
        if rows > 1 and not all("B" in one.letters for one in marked):
            each = (self.documents(x[k : k + 1], ids[k : k + 1]) for k in range(rows))
            return torch.cat(tuple(each))
        q = x.reshape(rows, -1, heads, x.shape[-1] // heads).transpose(1, 2)
        arrays, lengths = self.arguments(q, q[:, :groups].flip(-1), q[:, :groups])
        told = {one.name: bounds_at(ids) for one in self.signature.arrays if role(one) == "bounds"}
        told |= {one.name: document_numbers(one, ids, lengths) for one in marked}
        out = self._output(self.program.run({**arrays, **told}, lengths), lengths)
        return out.transpose(1, 2).reshape(x.shape)

    def _output(self, found: Mapping[str, Any], lengths: Mapping[str, int]) -> Tensor:
        """Return the output (B, H, r, D) among the results of a call."""
        there = ("B", "H", "n" if self.square else "r", "D")
        axes = result_axes(self.signature, self.output_name)
        return read_back(found[self.output_name], axes, there, lengths)

    def call(
        self,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        seen: Tensor | None = None,
        counts: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Return ``out`` (B, H, r, D), and ``weights`` (B, H, r, n) if the code returns them."""
        if self.square and a.shape[2] != b.shape[2]:
            return self._among(a, b, c, seen)
        arrays, lengths = self.arguments(a, b, c, seen, counts)
        found = self.program.run(arrays, lengths)
        told = {"out": self._output(found, lengths)}
        if self.returned_weights is not None:
            name, axes = self.returned_weights
            told["weights"] = read_back(found[name], axes, ("B", "H", "r", "n"), lengths)
        return told

    def arguments(
        self,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        seen: Tensor | None = None,
        counts: Tensor | None = None,
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the arguments of the call and the length of every letter.

        A mask of queries is passed together with one of keys, as code may multiply the two.
        """
        rows, heads, queries, width = a.shape
        keys = b.shape[2]
        lengths = lengths_of(
            self.signature,
            B=rows,
            H=heads,
            r=queries,
            n=keys,
            D=width,
            **({"G": b.shape[1]} if self.groups == "G" else {}),
        )
        q, k, v = self.query_key_value
        there = ("B", self.groups, "n", "D")
        here = ("B", "H", "n" if self.square else "r", "D")
        given = [(a, here, q.axes or ()), (b, there, k.axes or ()), (c, there, v.axes or ())]
        made = laid_out_together(given, lengths)
        arrays: dict[str, Any] = {one.name: x for one, x in zip((q, k, v), made, strict=True)}
        for n, one in enumerate(self.masks):
            beside = counts is not None and not per_query(one)
            if (n or seen is None) and one.name in self.left_out and not beside:
                continue
            which = (
                (seen if seen.shape[1] > 1 else seen[:, 0])
                if seen is not None and not n
                else torch.ones(rows, queries, keys, dtype=torch.bool, device=a.device)
            )
            arrays[one.name] = mask_argument(which, one, lengths, a, self.least)
        for one in self.query_masks:
            if seen is None and counts is None and one.name in self.left_out:
                continue
            every = torch.ones(rows, queries, dtype=torch.bool, device=a.device)
            which = every if counts is None else counts
            arrays[one.name] = query_mask_argument(which, one, lengths, a, self.least)
        if self.way is not None:
            arrays |= self.way.running(self.past, lengths, a)
        for one in self.signature.arrays:
            if one.name in arrays or one in self.masks or one in self.query_masks:
                continue
            if role(one) == "bounds":
                arrays[one.name] = bounds(one, lengths, a)
                continue
            if role(one) == "documents":
                arrays[one.name] = torch.zeros(
                    one.shape(lengths), dtype=torch.long, device=a.device
                )
                continue
            if role(one) == "constant":
                arrays[one.name] = constant(one, "HGD", lengths, a)
                continue
            if role(one) != "scale" or {"r", "n"} & set(one.letters):
                raise SignatureError(
                    f"wanted what {one.name} is: write one of keep, hide, add, scale, positions, "
                    f"constant, or what a table holds, behind its axes, in {self.signature}"
                )
            arrays[one.name] = (
                torch.full(one.shape(lengths), width**-0.5).to(a) if one.axes else width**-0.5
            )
        return arrays, lengths

    def _among(self, a: Tensor, b: Tensor, c: Tensor, seen: Tensor | None) -> dict[str, Tensor]:
        """Call code with one length on fewer queries than keys: they are put last, after zeros."""
        rows, heads, queries, width = a.shape
        keys = b.shape[2]
        if queries > keys:
            raise SignatureError(
                f"wanted at most as many queries as keys, for code with one length, got {queries} "
                f"queries and {keys} keys"
            )
        more = keys - queries
        longer = torch.cat((a.new_zeros(rows, heads, more, width), a), 2)
        if seen is not None:
            first = seen[:, :, :1].expand(-1, -1, more, -1)
            if any(map(per_query, self.masks[:1])):  # the zeros see every key
                full = seen.dtype == torch.bool
                first = torch.ones_like(first) if full else torch.zeros_like(first)
            seen = torch.cat((first, seen), 2)
        return {name: x[:, :, more:] for name, x in self.call(longer, b, c, seen).items()}

    def counting(self, a: Tensor, b: Tensor, c: Tensor, counts: Tensor) -> Tensor:
        """Return the output under a mask of queries (B, n)."""
        return self.attend(a, b, c, None, counts)

    def attend(
        self,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        seen: Tensor | None = None,
        counts: Tensor | None = None,
    ) -> Tensor:
        """Return the output; code without a batch or head axis is called once per row or head."""
        if self.shared and b.shape[1] > 1:
            parts = zip(*(x.chunk(b.shape[1], 1) for x in (a, b, c)), strict=True)
            return torch.cat([self.attend(q, k, v, seen, counts) for q, k, v in parts], 1)
        if "H" not in self.query_key_value[0].letters and a.shape[1] > 1:
            each = a.shape[1] // b.shape[1]
            return torch.cat(
                [
                    self.attend(a[:, h : h + 1], b[:, g : g + 1], c[:, g : g + 1], seen, counts)
                    for h in range(a.shape[1])
                    for g in [h // each]
                ],
                1,
            )
        return self._by_rows("out", a, b, c, seen, counts)

    def weights(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the attention weights."""
        return self._by_rows("weights", a, b, b.clone(), None, None)

    def _by_rows(self, name: str, *given: Tensor | None) -> Tensor:
        """Return one result of the call; code without a batch axis is called once per row.

        If only a mask lacks the batch axis, each call passes the mask of one row together with
        several rows of the batch, and the result is read in that row.
        """
        first, seen, counts = given[0], given[3], given[4]
        assert first is not None
        alike = seen is None or seen.shape[0] == 1 or "B" in self.masks[0].letters
        alike &= counts is None or all("B" in one.letters for one in self.query_masks)
        rows = first.shape[0]
        if ("B" in self.query_key_value[0].letters and alike) or rows == 1:
            return self.call(*given)[name]  # type: ignore[arg-type]
        if "B" in self.query_key_value[0].letters:

            def beside(row: int, some: slice) -> Tensor:
                three = (x if x is None else x[some] for x in given[:3])
                masks = (x if x is None or x.shape[0] == 1 else x[row : row + 1] for x in given[3:])
                return self.call(*three, *masks)[name]  # type: ignore[arg-type]

            return call_in_batches(rows, beside)
        return row_by_row(lambda *one: self.call(*one)[name], first, *given[1:])


def on_heads(code: Code, signature: Signature, *, guessed: bool = False) -> Attention:
    """Return attention on queries, keys and values.  Raises :class:`SignatureError`."""
    on = OnHeads(code, signature)
    q, k, _ = on.query_key_value
    heads = (code.options.heads or SIZES["H"]) if "H" in q.letters else 1
    many = (code.options.groups or SIZES["G"]) if "G" in k.letters else 1 if on.shared else heads
    width = code.options.width or code.options.likely.get("width", 0) or SIZES["D"]
    queries = SIZES["n"] if on.square else SIZES["r"]
    code = built_at(code, signature, H=heads, G=many, D=width, E=heads * width)
    on = OnHeads(code, signature, heads=(heads, many)).with_tables(width)
    given = (
        torch.randn(1, heads, queries, width),
        torch.randn(1, many, SIZES["n"], width),
        torch.randn(1, many, SIZES["n"], width),
    )
    try:
        on.call(*given)
    except Exception:
        if not on.left_out:
            raise
        on = replace(on, full=True)
        on.call(*given)
    mask = on.masks[0] if on.masks else None
    masks = (*on.masks, *on.query_masks)
    spared = on.left_out - {one.name for one in on.query_masks}  # these go with a mask of keys
    beside = other_masks(code, [one.name for one in on.masks[:1]], masks, spared) if mask else []
    by_head = mask is not None and "H" in mask.letters and heads > 1 and not on.shared
    beside += [f"{mask.name} is the same for every head"] if mask and by_head else []
    told = ["it takes one length: fewer queries are put in the last places"] if on.square else []
    told += [contents_of(one) for one in signature.arrays if role(one) in ("bounds", "documents")]
    told += [words_of_constant(one) for one in constants(signature)]
    told += [f"{one.name} count from 0" for one in signature.arrays if role(one) in PLACES]
    if on.way is not None and signature.source is None and on.way.table_words:
        told.append(f"with {on.way.table_words}")
    code = uncompiled_with_others(code, signature, SIZES["D"])
    return Attention(
        **shared_fields(
            code, signature, partial(on_heads, guessed=guessed), "; ".join(told), guessed
        ),
        documents=on.documents if on.takes_packed else None,
        embed=heads * width if on.takes_packed else 0,
        attend=on.attend,
        counting=on.counting if on.query_masks else None,
        heads=heads,
        groups=many,
        width=width,
        dropout=dropout_of(code.module),
        masks=forms_of(mask) if mask is not None else (),
        by_key=mask is not None and not per_query(mask),
        by_head=by_head,
        weights=on.weights if on.returns_weights_per_head else None,
        given={
            **default_masks(code, masks, on.left_out),
            **({"padding": "; ".join(beside)} if beside else {}),
        },
        true_hides=mask is not None and role(mask) in HIDING,
        positional=on.way is not None,
    )


def optional_masks(code: Code, masks: tuple[Argument, ...]) -> set[str]:
    """The names of optional masks: those with a default and no ``assert`` that demands them."""
    spared = {one.name for one in parameters(code.call) if not one.required}
    names = spared.intersection(one.name for one in masks)
    return {name for name in names if not re.search(rf"\bassert {name}\b", code.text)}


def default_masks(
    code: Code, masks: tuple[Argument, ...], spare: AbstractSet[str]
) -> dict[str, str]:
    """Describe what the code is given for its masks if the law sets none.

    Keys: "full mask" if masks are passed that show every key, with "left out" naming those that are
    not passed; "no mask" if none is passed.
    """
    handed = {one.name: contents_of(one) for one in masks if one.name not in spare}
    taken = [one for one in parameters(code.call) if takes_mask(one) and one.name not in handed]
    left = [one for one in taken if one.name not in code.options.arguments]
    left.sort(key=lambda one: one.role != "mask")
    if not handed:
        return {"no mask": left[0].name} if left else {}
    others = {"left out": " and ".join(one.name for one in left)} if left else {}
    return {"full mask": "; ".join(handed.values()), **others}


def other_masks(
    code: Code, own: Sequence[str], masks: tuple[Argument, ...], spare: AbstractSet[str]
) -> list[str]:
    """Describe in clauses which masks are passed or omitted beside the ones that a law sets."""
    shown = {one.name: contents_of(one) for one in masks if one.name not in {*own, *spare}}
    taken = {one.name for one in parameters(code.call) if takes_mask(one)}
    told = [*shown.values()]
    if taken - {*own, *shown, *code.options.arguments}:
        told.append(f"no mask other than {' and '.join(dict.fromkeys((*own, *shown)))} is passed")
    return told


def takes_mask(one: Parameter) -> bool:
    """Whether a parameter is named like a mask and is not a flag, number or string.

    >>> [takes_mask(Parameter(name, "", True)) for name in ("kv_mask", "attn_bias", "x")]
    [True, True, False]
    """
    flag = isinstance(one.default, bool | int | float | str) or one.role == "causal"
    named = one.role in ("mask", "padding") or re.search("mask|attn_bias|attention_bias", one.name)
    return bool(named) and not flag


def dropout_of(module: nn.Module | None) -> float:
    """The largest dropout probability among the submodules of a module."""
    parts = module.modules() if module is not None else ()
    found = [m.p if isinstance(m, nn.Dropout) else getattr(m, "dropout", 0.0) for m in parts]
    return max((float(p) for p in found if isinstance(p, int | float)), default=0.0)
