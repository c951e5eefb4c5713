"""A call as it is told, in the letters that readers of it know: numbers that stand for letters.

People write the sizes of one object: ``x: B n 16``, ``-> B 2 2 r n``.  A number in the last axis of
what is mapped is that of features, and one before the tokens that of heads; these get their
letters, and their lengths are told beside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from .roles import PLACES, ROTATED, TABLES, role
from .signature import Argument, Axis, Signature

Sizes = dict[str, int]
LEAST = 4  # features; a lower number in the last axis is one of coordinates or of cos and sin
HEADS = Axis(((Fraction(1), ("H",)),))


def in_letters(signature: Signature) -> tuple[Signature, Sizes]:
    """The call with letters for numbers of features and of heads, and what lengths these have.

    >>> from .grammar import parse
    >>> call, sizes = in_letters(parse("x: B 2 2 n 16, at: B n positions -> x"))
    >>> str(call), sizes
    ('x: B 2 H n D, at: B n positions -> x', {'heads': 4, 'width': 16})
    """
    sizes: Sizes = {}
    signature = _headed(_with_tokens(signature), sizes)
    return _featured(signature, sizes), sizes


def _with_tokens(signature: Signature) -> Signature:
    """The one array with features is tokens, if its name says nothing and no other is mapped."""
    unknown = [one for one in signature.arrays if not role(one) and "E" in one.letters]
    if len(unknown) != 1 or any(role(one) in ROTATED for one in signature.arrays):
        return signature
    return _each(signature, lambda one: replace(one, kind="tokens") if one == unknown[0] else one)


def _number(axis: Axis) -> int:
    """The number that an axis is; 0 for letters."""
    return 0 if axis.letters else axis.size({})


def _headed(signature: Signature, sizes: Sizes) -> Signature:
    """Numbers before the tokens, of vectors and of scores, are heads."""
    if any("H" in one.letters for one in (*signature.arrays, *signature.results)):
        return signature

    def changed(one: Argument) -> Argument:
        axes = list(one.axes or ())
        scores = [str(a) for a in axes[-2:]] in (["r", "n"], ["n", "n"])
        tokens = {"r", "n"} & set(axes[-2].letters) if len(axes) >= 4 else set()
        vectors = role(one) in ROTATED and bool(tokens)
        behind = role(one) in ROTATED and len(axes) == 4 and {"r", "n"} & set(axes[1].letters)
        if behind and _number(axes[2]) > 1:  # heads behind the tokens
            sizes["heads"] = _number(axes[2])
            return replace(one, axes=(*axes[:2], HEADS, axes[3]))
        at = [k for k, axis in enumerate(axes[:-2]) if _number(axis) > 1]
        if not (scores or vectors) or not at or len(at) > 2 or at[-1] != len(axes) - 3:
            return one
        if len(at) == 2 and at[0] != at[1] - 1:
            return one
        found = [_number(axes[k]) for k in at]
        sizes["heads"] = found[0] * (found[1] if len(found) > 1 else 1)
        fold = str(found[0]) if len(found) > 1 else ""
        axes[at[0] : at[-1] + 1] = [replace(HEADS, fold=fold)]
        return replace(one, axes=tuple(axes))

    return _each(signature, changed)


def _featured(signature: Signature, sizes: Sizes) -> Signature:
    """A number in the last axis of what is mapped is that of features."""
    arrays = (*signature.arrays, *signature.results)
    if any({"D", "E"} & set(one.letters) for one in arrays):
        return signature
    mapped = next((one for one in signature.arrays if role(one) in ROTATED and one.axes), None)
    if mapped is None and any(role(one) in PLACES for one in signature.arrays):
        mapped = next((one for one in signature.results if one.axes), None)  # a table is made
    if mapped is None or len(mapped.axes or ()) < 2:
        return signature
    size = _number((mapped.axes or ())[-1])
    if size < LEAST:
        return signature
    placed = any(role(one) in (*TABLES, *PLACES) for one in signature.arrays)
    vectors = "H" in mapped.letters or (placed and len(mapped.axes or ()) > 3)
    letter, name = ("D", "width") if vectors else ("E", "embed")
    sizes[name] = size

    def changed(one: Argument) -> Argument:
        axes = list(one.axes or ())
        last = _number(axes[-1]) if axes else 0
        if last in (size, size // 2):
            axes[-1] = Axis(((Fraction(last, size), (letter,)),))
        return replace(one, axes=tuple(axes)) if axes else one

    return _each(signature, changed)


def _each(signature: Signature, changed: Callable[[Argument], Argument]) -> Signature:
    """The call with each of its arrays changed."""

    def other(one: Argument) -> Argument:
        inner = replace(one, parts=tuple(map(other, one.parts)))
        return changed(inner) if inner.axes is not None else inner

    return replace(
        signature,
        arguments=tuple(map(other, signature.arguments)),
        results=tuple(map(other, signature.results)),
    )
