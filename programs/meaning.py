"""What the letters of a guessed line mean, held against a second call.

Code can often be called in an order of axes that is not its own: arrays broadcast, and axes of
another meaning fit by chance.  So one place of one array is changed: what comes back may be another
only where the line says that it is reached.  Rows of a batch are apart, and heads; a query, and a
row of a table, is that of one token; an entry of a mask is that of one query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .code import DoesNotFit
from .layout import labels, laid_out, read_back
from .roles import MASKS, ROTATED, role
from .signature import Argument, Signature, SignatureError

Run = Callable[[Mapping[str, Any], Mapping[str, int]], Mapping[str, Any]]
PLACE = 1  # neither first nor last, of any axis
HELD = ("ids", "index", "lengths", "bounds")
ALONG = "BHGVrnhwt"  # the letters of axes along which there is one thing after another
AS_KEYS = ("key", "value")
# What is summed in another order may differ by roundings, of which a changed token is far.
ROUNDINGS = 1e-5


def require_meaning(
    run: Run,
    arrays: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
    apart: str,
    *,
    used: bool = False,
) -> None:
    """Refuse a line if an array reaches another place than its own along one of its letters.

    ``apart``: the letters along which what goes in and what comes out stand at one place.  Of keys
    and values that is not so along tokens.  Code that changes its inputs, that gives NaN, or that
    gives something else each time is no matter of its line.  ``used``: what is rotated must also
    reach something.  Raises ``DoesNotFit``.
    """
    plain = run(_copied(arrays), lengths)
    finite = all(bool(x.isfinite().all()) for x in plain.values() if isinstance(x, Tensor))
    for one in signature.arrays:
        own = tuple(c for c in labels(one.axes or ()) if lengths.get(c, 1) > PLACE + 1)
        along = [c for c in own if c in ALONG]
        if one.name not in arrays or not along or one.kind in HELD:
            continue
        held = [c for c in along if c in apart and not (role(one) in AS_KEYS and c in "rn")]
        held = [c for c in held if not (role(one) in MASKS and c == "n")]
        other = {**arrays, one.name: _changed(one, arrays[one.name], along, lengths)}
        after, reached = run(_copied(other), lengths), False
        for back, moved in _moved(signature, plain, after, lengths):
            reached |= bool(moved.any())
            there = _elsewhere(back, moved, held, lengths)
            if there and _with_fellows_apart(run, arrays, one, other, signature, lengths, held):
                continue  # code that tells whether arrays are one changes all where they are not
            if there and _repeats(run, arrays, plain, signature, lengths):
                raise DoesNotFit(
                    f"called as {signature}, {one.name} at one place of {there} "
                    "reaches others, so that this is no such axis"
                )
        if used and not reached and finite and role(one) in ROTATED and "D" in own:
            raise DoesNotFit(f"called as {signature}, {one.name} does nothing")


def _with_fellows_apart(
    run: Run,
    arrays: Mapping[str, Any],
    one: Argument,
    other: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
    held: list[str],
) -> bool:
    """Whether one place reaches no other, if it is changed in all arrays that hold the same."""
    same = [
        a.name
        for a in signature.arrays
        if a is not one
        and a.axes == one.axes
        and role(a) in ROTATED
        and torch.equal(arrays[a.name], arrays[one.name])
    ]
    if not same:
        return False
    plain = run(_copied(arrays), lengths)
    after = run(_copied({**arrays, **dict.fromkeys((one.name, *same), other[one.name])}), lengths)
    told = _moved(signature, plain, after, lengths)
    return not any(_elsewhere(back, moved, held, lengths) for back, moved in told)


def _copied(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: x.clone() if isinstance(x, Tensor) else x for name, x in arrays.items()}


def _repeats(
    run: Run,
    arrays: Mapping[str, Any],
    plain: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
) -> bool:
    """Whether a call gives the same numbers twice: then another input made the difference."""
    moved = _moved(signature, plain, run(_copied(arrays), lengths), lengths)
    return not any(bool(where.any()) for _, where in moved)


def _changed(one: Argument, x: Tensor, along: list[str], lengths: Mapping[str, int]) -> Tensor:
    """The array with other numbers at one place along these letters."""
    shape = [lengths[c] for c in along]
    here = torch.zeros(shape, dtype=torch.bool)
    here[(PLACE,) * len(along)] = True
    sizes = {**lengths, **{str(a): a.size(lengths) for a in one.axes or ()}}
    at = laid_out(here, along, one.axes or (), sizes)
    if x.dtype == torch.bool:
        return x ^ at
    other = torch.zeros_like(x) if not (x.is_floating_point() or x.is_complex()) else 0.5 - x
    return torch.where(at, other, x)


def _moved(
    signature: Signature,
    plain: Mapping[str, Any],
    after: Mapping[str, Any],
    lengths: Mapping[str, int],
) -> list[tuple[tuple[str, ...], Tensor]]:
    """Of each result its letters, and where it is another, with one axis for each letter."""
    found = []
    for k, one in enumerate(signature.results):
        here, there = (told.get(one.name or str(k)) for told in (plain, after))
        if one.axes is None or not isinstance(here, Tensor) or not isinstance(there, Tensor):
            continue
        letters = labels(one.axes)
        own = {c: n for c, n in zip(map(str, one.axes), here.shape, strict=False) if len(c) == 1}
        try:
            a, b = (read_back(x, one.axes, letters, {**own, **lengths}) for x in (here, there))
        except (SignatureError, KeyError):
            continue
        largest = float(torch.nan_to_num(a.abs(), 0.0, 0.0).max()) if a.numel() else 0.0
        same = torch.isclose(a, b, rtol=ROUNDINGS, atol=ROUNDINGS * largest)
        same |= a.isnan() | b.isnan()
        found.append((letters, ~same))
    return found


def _elsewhere(
    back: tuple[str, ...], moved: Tensor, held: list[str], lengths: Mapping[str, int]
) -> str:
    """The first letter along which other places are reached than the changed one; "" if none."""
    for place, letter in enumerate(back):
        others = [k for k in range(moved.dim()) if k != place]
        reached = moved.amax(others) if others else moved
        if letter in held:
            reached = reached.clone()
            reached[PLACE] = False
            if bool(reached.any()):
                return letter
        elif (
            letter == "H"
            and "G" in {*held} - {*back}
            and (int(reached.sum()) > lengths["H"] // lengths["G"])
        ):
            return "G"
    return ""
