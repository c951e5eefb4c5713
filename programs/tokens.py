"""Attention on queries, keys and values, and maps of tokens, whose call is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..numeric.programs.adapters.code import Code
from ..numeric.programs.adapters.roles import sizes_of
from ..numeric.programs.adapters.tokens import dropout_of
from ..numeric.programs.subjects import Additive, Attention, Layer
from .layout import laid_out, read_back
from .program import Program
from .roles import MASKS, SIZES, TABLES, common, lengths_of, raised, result_axes, returned, role
from .signature import Argument, Axis, Signature, SignatureError

__all__ = ["additive", "attention", "layer"]


def attention(code: Code, signature: Signature) -> Attention:
    """Attention on queries, keys and values, or on tokens.  Raises :class:`SignatureError`."""
    if {"query", "key", "value"} <= {role(one) for one in signature.arrays}:
        return _on_heads(code, signature)
    return _on_tokens(code, signature)


def _on_heads(code: Code, signature: Signature) -> Attention:
    by = {role(one): one for one in signature.arrays}
    q, k, v = by["query"], by["key"], by["value"]
    if "r" not in q.letters or "n" not in k.letters:
        raise SignatureError(
            f"wanted queries of length r and keys and values of length n, got {signature}; code "
            "for one length only cannot be called with fewer queries than keys, and is not checked"
        )
    mask = next((one for one in signature.arrays if role(one) in MASKS), None)
    if mask is None and "mask" in by:
        raise SignatureError(
            f"wanted what True means in {by['mask'].name}: keep or hide, or add for "
            "numbers that are added to the scores"
        )
    groups = "G" if "G" in k.letters else "H"
    program = Program(code.call, signature, code.name)
    back = returned(signature, ("out",))[0]
    shown = next(
        (
            one
            for one in signature.results
            if one.axes is not None and {"r", "n"} <= set(one.letters) and "D" not in one.letters
        ),
        None,
    )

    def call(a: Tensor, b: Tensor, c: Tensor, seen: Tensor | None) -> dict[str, Tensor]:
        rows, heads, queries, width = a.shape
        lengths = lengths_of(
            signature, B=rows, H=heads, G=b.shape[1], r=queries, n=b.shape[2], D=width
        )
        there = ("B", groups, "n", "D")
        arrays: dict[str, Any] = {
            q.name: laid_out(a, ("B", "H", "r", "D"), q.axes or (), lengths),
            k.name: laid_out(b, there, k.axes or (), lengths),
            v.name: laid_out(c, there, v.axes or (), lengths),
        }
        if mask is not None:
            full = torch.ones(rows, 1, queries, b.shape[2], dtype=torch.bool, device=a.device)
            arrays[mask.name] = _as_mask(full if seen is None else seen, mask, lengths, a.dtype)
        found = program.run(arrays, lengths)
        axes = result_axes(signature, back)
        told = {"out": read_back(found[back], axes, ("B", "H", "r", "D"), lengths)}
        if shown is not None and shown.name in found:
            told["weights"] = read_back(
                found[shown.name], shown.axes or (), ("B", "H", "r", "n"), lengths
            )
        return told

    def attend(a: Tensor, b: Tensor, c: Tensor, seen: Tensor | None = None) -> Tensor:
        return _by_rows(lambda *xs: call(*xs)["out"], "B" in q.letters, a, b, c, seen)

    def weights(a: Tensor, b: Tensor) -> Tensor:
        return _by_rows(lambda *xs: call(*xs)["weights"], "B" in q.letters, a, b, b.clone(), None)

    heads = SIZES["H"] if "H" in q.letters else 1
    many = SIZES["G"] if "G" in k.letters else heads
    width = code.options.width or code.options.likely.get("width", 0) or SIZES["D"]
    attend(
        torch.randn(1, heads, 5, width),
        torch.randn(1, many, 7, width),
        torch.randn(1, many, 7, width),
    )
    kinds = {"keep": "bool", "hide": "bool", "add": "float"}
    return Attention(
        **common(code, signature, _on_heads),
        attend=attend,
        heads=heads,
        groups=many,
        width=width,
        dropout=dropout_of(code.module),
        masks=(kinds[role(mask)],) if mask is not None else (),
        weights=weights if shown is not None and shown.name else None,
        given={"full mask": mask.name} if mask is not None else {},
        true_hides=mask is not None and role(mask) == "hide",
    )


def _by_rows(call: Callable[..., Tensor], together: bool, *given: Tensor | None) -> Tensor:
    """The call; row by row, for code that knows no batch."""
    first = given[0]
    assert first is not None
    if together or first.shape[0] == 1:
        return call(*given)
    return torch.cat(
        [
            call(*(x if x is None or x.shape[0] == 1 else x[b : b + 1] for x in given))
            for b in range(first.shape[0])
        ]
    )


def _as_mask(
    seen: Tensor, mask: Argument, lengths: Mapping[str, int], dtype: torch.dtype
) -> Tensor:
    """A mask (B, 1, r, n), True where a key is seen or numbers to add, as the call wants it."""
    kind = role(mask)
    if seen.dtype == torch.bool and kind == "add":
        seen = torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, float("-inf"))
    elif kind == "hide":
        seen = ~seen
    x, here = seen[:, 0], ("B", "r", "n")
    if "B" not in mask.letters:
        return laid_out(x[0], ("r", "n"), mask.axes or (), lengths)
    if x.shape[0] != lengths["B"]:
        x = x.expand(lengths["B"], *x.shape[1:])
    return laid_out(x, here, mask.axes or (), lengths)


def _tokens(signature: Signature) -> Argument:
    found = [
        one
        for one in signature.arrays
        if "n" in one.letters
        and {"E", "D"} & set(one.letters)
        and role(one) not in (*MASKS, *TABLES)
    ]
    if not found:
        raise SignatureError(f"wanted tokens, such as x: B n E, in {signature}")
    return found[0]


@dataclass(frozen=True)
class _OnTokens:
    """A map of tokens (B, T, E)."""

    code: Code
    signature: Signature

    @property
    def tokens(self) -> Argument:
        """What is mapped."""
        return _tokens(self.signature)

    @property
    def feature(self) -> str:
        """The letter of its features."""
        return "E" if "E" in self.tokens.letters else "D"

    @property
    def masks(self) -> tuple[Argument, ...]:
        """The masks it takes."""
        return tuple(one for one in self.signature.arrays if role(one) in MASKS)

    def call(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """What it makes of tokens, of which those count that are kept (B, T)."""
        if "B" not in self.tokens.letters and x.shape[0] > 1:
            return torch.cat(
                [
                    self.call(x[b : b + 1], None if keep is None else keep[b : b + 1])
                    for b in range(x.shape[0])
                ]
            )
        rows, count, width = x.shape
        lengths = lengths_of(self.signature, B=rows, n=count, r=count, **{self.feature: width})
        here = ("B", "n", self.feature)
        arrays: dict[str, Any] = {}
        for one in self.signature.arrays:
            if one == self.tokens:
                arrays[one.name] = laid_out(x, here, one.axes or (), lengths)
            elif one in self.masks:
                arrays[one.name] = self._mask(one, keep, lengths, x)
            elif role(one) == "positions":
                at = torch.arange(count, device=x.device)
                arrays[one.name] = laid_out(at, ("n",), one.axes or (), lengths)
            elif role(one) in ("tokens", "query", "key", "value"):
                arrays[one.name] = laid_out(x.clone(), here, one.axes or (), lengths)
            else:
                raise SignatureError(
                    f"wanted what {one.name} is: write one of positions, keep, hide, "
                    f"add behind its axes, in {self.signature}"
                )
        program = Program(self.code.call, self.signature, self.code.name)
        back = returned(self.signature, ("out",))[0]
        axes = result_axes(self.signature, back)
        return read_back(program.run(arrays, lengths)[back], axes, here, lengths)

    def _mask(
        self, one: Argument, keep: Tensor | None, lengths: Mapping[str, int], x: Tensor
    ) -> Tensor:
        rows, count, _ = x.shape
        seen = torch.ones(rows, count, dtype=torch.bool, device=x.device) if keep is None else keep
        square = [str(a) for a in one.axes or ()].count("n") > 1 or "r" in one.letters
        if square:
            past = torch.ones(count, count, dtype=torch.bool, device=x.device).tril()
            seen = seen[:, None, :] & past
            axes = tuple(
                Axis(((a.terms[0][0], ("r",)),))
                if str(a) == "n" and str(a) in [str(b) for b in (one.axes or ())[k + 1 :]]
                else a
                for k, a in enumerate(one.axes or ())
            )
            return _as_mask(seen[:, None], replace(one, axes=axes), lengths, x.dtype)
        if role(one) == "add":
            seen = torch.zeros_like(seen, dtype=x.dtype).masked_fill(~seen, float("-inf"))
        elif role(one) == "hide":
            seen = ~seen
        if "B" not in one.letters:
            seen = seen[:1]
        return laid_out(seen, ("B", "n"), one.axes or (), lengths)


def _on_tokens(code: Code, signature: Signature) -> Attention:
    on = _OnTokens(code, signature)
    width = _width(code, on)
    padding = [one for one in on.masks if [str(a) for a in one.axes or ()].count("n") == 1]
    causal = [one for one in on.masks if one not in padding]
    return Attention(
        **common(code, signature, _on_tokens, "with a causal mask made here" if causal else ""),
        layer=on.call,
        hide=on.call if padding else None,
        true_hides=any(role(one) == "hide" for one in padding),
        embed=width,
        dropout=dropout_of(code.module),
        given={
            **({"mask": "a causal mask made here"} if causal else {}),
            **({"full mask": padding[0].name} if padding else {}),
        },
    )


def layer(code: Code, signature: Signature) -> Layer:
    """Any map of tokens.  Raises :class:`SignatureError`."""
    on = _OnTokens(code, signature)
    return Layer(
        **common(code, signature, layer),
        call=on.call,
        embed=_width(code, on),
    )


def additive(code: Code, signature: Signature) -> Additive:
    """What adds a table of positions to tokens.  Raises :class:`SignatureError`."""
    on = _OnTokens(code, signature)
    return Additive(
        **common(code, signature, additive),
        added=on.call,
        width=_width(code, on),
    )


def _width(code: Code, on: _OnTokens) -> int:
    """The features of a token: what is told, else the first size at which it can be called."""
    told = code.options.embed or code.options.width
    parts = code.module.modules() if code.module is not None else ()
    known = [n for part in parts for r in ("embed", "width") for n in sizes_of(part, r)]
    failed = ""
    for width in dict.fromkeys([told] if told else [*known, SIZES["E"], 64]):
        try:
            on.call(torch.randn(2, 5, width, generator=torch.Generator().manual_seed(0)))
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or f"with {width} features: {raised(code, error)}"
            continue
        return width
    raise SignatureError(f"{code.name} was called as {on.signature}, and {failed}")
