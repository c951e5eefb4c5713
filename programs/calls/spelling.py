"""Rewrite a call as given in the standard letters, with sizes for these letters.

People write the sizes of one object: ``x: B n 16``, ``-> B 2 2 r n``.  A number on the last axis of
the mapped array counts features, and one before the tokens counts heads; these are replaced by
their letters, and the lengths of the letters are returned beside the call.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..signatures.signature import Argument, Axis, Signature
from .roles import PLACES, ROTATED, TABLES, axes_of_table, role

Sizes = dict[str, int]
OPTIONS = {"H": "heads", "G": "groups", "D": "width", "E": "embed"}  # names of the lengths
START = "p"  # as a value: the position of the first token
MIN_FEATURES = 4  # fewest features whose half may be the width of a table
ROWS = "W"  # rows of one token, all equal, for code that requires so many
TOKENS = {"r", "n"}


def in_letters(signature: Signature, *, rotates: bool | None = None) -> tuple[Signature, Sizes]:
    """Return the call with letters for numbers of features and heads, and the lengths of these.

    ``rotates``: whether it is rotary code, in which a number after the tokens counts heads; None
    infers it from whether the code returns an array under the name of an input.

    >>> from ..signatures.grammar import parse
    >>> call, sizes = in_letters(parse("x: B 2 2 n 16, at: B n positions -> x"))
    >>> str(call), sizes
    ('x: B 2 H n D, at: B n positions -> x', {'heads': 4, 'width': 16})
    >>> call.sizes
    (('H', 4), ('D', 16))
    """
    sizes: Sizes = {}
    if rotates is None:
        rotates = any(signature.named(one.name) for one in signature.results if one.axes)
    found = _headed(_single(_with_tokens(signature)), sizes, rotates=rotates)
    found = _featured(_gridded(with_equal_rows(found, sizes), sizes), sizes)
    told = {OPTIONS[letter]: n for letter, n in sizes.items() if letter in OPTIONS}
    step = in_letters(found.step, rotates=rotates)[0] if found.step is not None else None
    return replace(found, sizes=tuple(sizes.items()), step=step), told


def _axis(letter: str, size: int = 1, of: int = 1) -> Axis:
    """Return the axis of a letter, or of a fraction of it: D/2 for 8 of 16."""
    return Axis(((Fraction(size, of), (letter,)),))


def _with_tokens(signature: Signature) -> Signature:
    """Mark the only array with features as tokens.

    Only if its name implies no role and no other array is mapped.
    """
    unknown = [one for one in signature.arrays if not role(one) and "E" in one.letters]
    if len(unknown) != 1 or any(role(one) in ROTATED for one in signature.arrays):
        return signature
    return signature.each(lambda one: replace(one, kind="tokens") if one == unknown[0] else one)


def _number(axis: Axis) -> int:
    """Return the number that an axis is; 0 for letters."""
    return 0 if axis.letters else axis.size({})


def _single(signature: Signature) -> Signature:
    """Mark a single row beside tokens, such as the one query of a context, as made here.

    >>> from ..signatures.grammar import parse
    >>> str(_single(parse("hidden: B 1 8, context: B n 16 -> B 1 8")))
    'hidden: B 1 8 constant, context: B n 16 -> B 1 8'
    """
    tokens = [one for one in signature.arrays if role(one) in ROTATED and TOKENS & {*one.letters}]

    def changed(one: Argument) -> Argument:
        axes = list(map(str, one.axes or ()))
        alone = len(axes) == 3 and axes[:2] == ["B", "1"] and axes[2].isdigit()
        single = alone and role(one) in ("query", "tokens", "")
        return replace(one, kind="constant") if single and one in signature.arrays else one

    return signature.each(changed) if tokens else signature


def _headed(signature: Signature, sizes: Sizes, *, rotates: bool) -> Signature:
    """Replace numbers before the tokens, of vectors and of scores, by heads.

    On three axes, a number before the tokens counts heads if there are queries and keys, or queries
    and scores, or if the call is given positions.  Keys with another number of heads have groups.
    """
    if any("H" in one.letters for one in (*signature.arrays, *signature.results)):
        return signature
    roles = {role(one) for one in signature.arrays}
    rotates = rotates or "query" in roles or is_placed(signature)
    scored = any(map(_of_scores, (*signature.arrays, *signature.results)))
    least = 3 if ("query" in roles and ("key" in roles or scored)) or is_placed(signature) else 4

    def changed(one: Argument) -> Argument:
        axes = list(one.axes or ())
        tokens = TOKENS & set(axes[-2].letters) if len(axes) >= least else set()
        vector = role(one) in ROTATED or (one in signature.results and "H" in sizes)
        vectors = vector and bool(tokens)
        behind = rotates and vector and len(axes) == 4 and TOKENS & set(axes[1].letters)
        if behind and _number(axes[2]) > 1:  # heads after the tokens
            letter = _heads(one, _number(axes[2]), sizes)
            return replace(one, axes=(*axes[:2], _axis(letter), axes[3])) if letter else one
        at = [k for k, axis in enumerate(axes[:-2]) if _number(axis) > 1]
        if not (_of_scores(one) or vectors) or not at or len(at) > 2 or at[-1] != len(axes) - 3:
            return one
        if len(at) == 2 and at[0] != at[1] - 1:
            return one
        found = [_number(axes[k]) for k in at]
        letter = _heads(one, found[0] * (found[1] if len(found) > 1 else 1), sizes)
        if not letter:
            return one
        fold = str(found[0]) if len(found) > 1 else ""
        axes[at[0] : at[-1] + 1] = [replace(_axis(letter), fold=fold)]
        return replace(one, axes=tuple(axes))

    return signature.each(changed)


def _heads(one: Argument, number: int, sizes: Sizes) -> str:
    """Return the letter for so many heads: G for keys and values unlike queries; else ""."""
    letter = "G" if role(one) in ("key", "value") and sizes.get("H", number) != number else "H"
    return letter if sizes.setdefault(letter, number) == number else ""


def _of_scores(one: Argument) -> bool:
    """Whether the last axes are those of queries and keys."""
    return [str(a) for a in (one.axes or ())[-2:]] in (["r", "n"], ["n", "n"])


def is_placed(signature: Signature) -> bool:
    """Whether the call is given positions, or tables of them."""
    given = any(role(one) in (*TABLES, *PLACES) for one in signature.arrays)
    return given or any(START in one.lengths for one in signature.arguments)


def with_equal_rows(signature: Signature, sizes: Sizes) -> Signature:
    """Replace a number before the tokens of three axes, unless it counts heads, by equal rows W."""
    known = signature.letters
    mapped = [one for one in signature.arrays if role(one) in ROTATED and len(one.axes or ()) == 3]
    numbers = {_number((one.axes or ())[0]) for one in mapped if TOKENS & set(_letters(one, 1))}
    if "B" in known or ROWS in known or len(numbers) != 1 or max(numbers) < 2:
        return signature
    sizes[ROWS] = max(numbers)

    def changed(one: Argument) -> Argument:
        axes = one.axes or ()
        rows = len(axes) == 3 and _number(axes[0]) == sizes[ROWS] and TOKENS & set(_letters(one, 1))
        return replace(one, axes=(_axis(ROWS), *axes[1:])) if rows else one

    return signature.each(changed)


def _gridded(signature: Signature, sizes: Sizes) -> Signature:
    """Replace two numbers beside rows and features by the sides of a grid of that size alone.

    >>> from ..signatures.grammar import parse
    >>> call, _ = in_letters(parse("x: B 3 5 48 -> B 3 5 16"))
    >>> str(call), call.sizes
    ('x: B h w E -> B h w 16', (('h', 3), ('w', 5), ('E', 48)))
    >>> str(in_letters(parse("x: B E 6 6 -> B E 6 6"))[0])
    'x: B E h w -> B E h w'
    """
    mapped = [one for one in signature.arrays if role(one) in ROTATED]
    sides = {side for one in mapped if (side := _sides(one))}
    alone = not {"h", "w", *TOKENS} & {c for one in mapped for c in one.letters}
    if len(sides) != 1 or not alone or sides != {*map(_sides, signature.results)} - {()}:
        return signature
    sizes |= dict(zip("hw", *sides, strict=True))

    def changed(one: Argument) -> Argument:
        axes = list(one.axes or ())
        if _sides(one) in sides:
            at = _first_side(one)
            axes[at : at + 2] = _axis("h"), _axis("w")
            return replace(one, axes=tuple(axes))
        return one

    return signature.each(changed)


def _sides(one: Argument) -> tuple[int, ...]:
    """Return the numbers beside rows and features on four axes; () if these are letters."""
    at = _first_side(one)
    found = tuple(map(_number, (one.axes or ())[at : at + 2]))
    return found if len(one.axes or ()) == 4 and all(n > 1 for n in found) else ()


def _first_side(one: Argument) -> int:
    """Return the place of the rows of a grid: behind the features if these are a letter there."""
    return 2 if any(axis.letters for axis in (one.axes or ())[1:2]) else 1


def _letters(one: Argument, place: int) -> tuple[str, ...]:
    """Return the letters of one axis."""
    return (one.axes or ())[place].letters


def _featured(signature: Signature, sizes: Sizes) -> Signature:
    """Replace a number on the last axis of the mapped array by features; queries r come first.

    A number between it and the tokens counts features too, which then have two axes.

    >>> from ..signatures.grammar import parse
    >>> call, _ = in_letters(parse("x: B n 2 16 -> B n 2 16"))
    >>> call.sizes, call.arrays[0].axes[-1].folded(32, {})
    ((('E', 32),), (2, 16))
    """
    arrays = (*signature.arrays, *signature.results)
    if any({"D", "E"} & set(one.letters) for one in arrays):
        return signature.each(_on_two_axes)
    rotated = [one for one in signature.arrays if role(one) in ROTATED and one.axes]
    rotated.sort(key=lambda one: (not TOKENS & {*one.letters}, "r" not in one.letters))
    mapped = next(iter(rotated), None)
    if mapped is None and any(role(one) in PLACES for one in signature.arrays):
        mapped = next((one for one in signature.results if one.axes), None)  # code of tables
    if mapped is None or len(mapped.axes or ()) < 2:
        return signature
    size = _number((mapped.axes or ())[-1])
    if size < 2:
        return signature
    halves = (size, size // 2) if size >= MIN_FEATURES else (size,)
    vectors = "H" in mapped.letters or (is_placed(signature) and len(mapped.axes or ()) > 3)
    letter = "D" if vectors else "E"
    fold = _number((mapped.axes or ())[-2]) if _after_tokens(mapped) else 0
    sizes[letter] = size * max(fold, 1)

    def changed(one: Argument) -> Argument:
        axes = list(one.axes or ())
        at = axes_of_table(one)[0] if axes and role(one) in TABLES else len(axes) - 1
        last = _number(axes[at]) if axes else 0
        if fold:
            own = _after_tokens(one) and (_number(axes[-2]), last) == (fold, size)
            axes[-2:] = [replace(_axis(letter), fold=str(fold))] if own else axes[-2:]
        elif last in halves:
            axes[at] = _axis(letter, last, size)
        return replace(one, axes=tuple(axes)) if axes else one

    return signature.each(changed)


def _after_tokens(one: Argument) -> bool:
    """Whether a number stands between the tokens and the features."""
    axes = one.axes or ()
    return len(axes) > 2 and bool(TOKENS & {*axes[-3].letters}) and _number(axes[-2]) > 1


def _on_two_axes(one: Argument) -> Argument:
    """Return a mapped array with its features, split by a number, as one axis of all of them."""
    axes = one.axes or ()
    if not _after_tokens(one) or str(axes[-1]) != "E" or role(one) not in (*ROTATED, ""):
        return one
    return replace(one, axes=(*axes[:-2], replace(axes[-1], fold=str(_number(axes[-2])))))
