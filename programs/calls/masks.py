"""Which keys each query sees: by declaration, in the mask a call expects, and from its outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import torch
from torch import Tensor

from ..declarations import DeclaredAttention
from ..execution.draw import Draw
from ..signatures.layout import laid_out
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from ..subjects import Mask
from .roles import HIDING, MASKS, TRUTH_OF, role

QUERIES, KEYS = (Axis(((Fraction(1), (letter,)),)) for letter in "rn")
SLOTS = "slots"  # as a letter, which no line can contain: the places of a cache, some unused


def is_mask(one: Argument) -> bool:
    """Whether an argument is a mask."""
    return role(one) in MASKS


def is_query_mask(one: Argument) -> bool:
    """Whether a mask marks the queries that count: without an axis of keys, and not added.

    >>> from ..signatures.grammar import parse
    >>> [is_query_mask(one) for one in parse("q_mask: B r keep, kv_mask: B n keep -> 1").arrays]
    [True, False]
    """
    return is_mask(one) and role(one) != "add" and "r" in one.letters and "n" not in one.letters


def masks_in(signature: Signature) -> tuple[Argument, ...]:
    """Return the masks of keys of a call, those with a row for each query first.

    Raises :class:`SignatureError` for a mask whose kind is not known.
    """
    for one in signature.arrays:
        if role(one) in ("mask", "padding"):
            raise SignatureError(
                f"wanted what True means in {one.name}: keep or hide, or add for "
                "numbers that are added to the scores"
            )
    found = [one for one in signature.arrays if is_mask(one) and not is_query_mask(one)]
    return tuple(sorted(found, key=lambda one: not per_query(one)))


def _places(axes: Sequence[Axis]) -> tuple[int | None, int]:
    """Return the places of the query axis, None if there is none, and of the key axis.

    Raises :class:`SignatureError` if there is no key axis, or a third axis of tokens.
    """
    found = [k for k, axis in enumerate(axes) if {"r", "n", SLOTS} & set(axis.letters)]
    keyed = [k for k in found if SLOTS in axes[k].letters]
    keyed = keyed or [k for k in found if "n" in axes[k].letters]
    if not keyed or len(found) > 2:
        told = " ".join(map(str, axes))
        raise SignatureError(f"wanted a mask with an axis of keys n, got {told}")
    return next((k for k in found if k != keyed[-1]), None), keyed[-1]


def per_query(one: Argument) -> bool:
    """Whether the mask has a row for each query, rather than one row for all."""
    return _places(one.axes or ())[0] is not None


def is_square(one: Argument) -> bool:
    """Whether the mask is square in one length, so that it hides the keys after each query."""
    queries, _ = _places(one.axes or ())
    return queries is not None and "n" in (one.axes or ())[queries].letters


def is_of_slots(one: Argument) -> bool:
    """Whether its keys are the places of a cache, at which tokens stand by their positions."""
    return SLOTS in one.letters


def with_query_letter(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the axes with r for queries and n for keys, for code that has a single length."""
    found = [k for k, axis in enumerate(axes) if "n" in axis.letters]
    if len(found) < 2:
        return tuple(axes)
    return tuple(with_letter(a, "n", "r") if k == found[0] else a for k, a in enumerate(axes))


def with_letter(axis: Axis, old: str, new: str) -> Axis:
    """Return the axis with one letter replaced by another."""
    return Axis(
        tuple(
            (factor, tuple(new if c == old else c for c in letters))
            for factor, letters in axis.terms
        )
    )


def forms_of(one: Argument) -> tuple[str, ...]:
    """Return the forms of mask that the argument takes: "bool", "float"."""
    kinds = {"float" if kind == "add" else "bool" for kind in (role(one), one.also) if kind}
    return tuple(form for form in ("bool", "float") if form in kinds)


def mask_argument(
    seen: Tensor, one: Argument, lengths: Mapping[str, int], like: Tensor, least: float
) -> Tensor:
    """Return the mask in the form and the axes that the argument expects.

    ``seen`` holds truth values (B, r, n), True where a key is seen, or numbers to add, or a part
    for each head (B, H, r, n); ``least`` is the number that hides a key.  A mask with one row for
    all queries gets the first row.
    """
    kinds = (role(one), one.also)
    if seen.dtype == torch.bool:
        if role(one) in TRUTH_OF:
            seen = _numbers(seen, role(one), like)
        elif "hide" in kinds:
            seen = ~seen
        elif "keep" not in kinds:
            seen = torch.zeros_like(seen, dtype=like.dtype).masked_fill(~seen, least)
    axes = list(one.axes or ())
    queries, keys = _places(axes)
    axes[keys] = KEYS
    rows = "BH" if seen.dim() > 3 else "B"
    x, here = seen[..., 0, :], tuple(f"{rows}n")
    if queries is not None:
        x, here, axes[queries] = seen, tuple(f"{rows}rn"), QUERIES
    if "B" not in one.letters:
        x, here = x[0], here[1:]
    elif x.shape[0] != lengths["B"]:
        x = x.expand(lengths["B"], *x.shape[1:])
    return laid_out(x, here, axes, {**lengths, "r": seen.shape[-2], "n": seen.shape[-1]})


def row_by_row(call: Callable[..., Tensor], first: Tensor, *more: Tensor | None) -> Tensor:
    """Return the result for each row, called alone; what has a single row is given to all.

    >>> row_by_row(lambda x, y: x + y, torch.tensor([[1], [2]]), torch.tensor([[5]])).tolist()
    [[6], [7]]
    """
    given = (first, *more)
    return torch.cat(
        [
            call(*(x if x is None or x.shape[0] == 1 else x[b : b + 1] for x in given))
            for b in range(first.shape[0])
        ]
    )


BATCH = 16  # rows in one call, all with the mask of one of them


def call_in_batches(rows: int, call: Callable[[int, slice], Tensor]) -> Tensor:
    """Return the result for each row, called among other rows that all have its mask.

    For masks without a batch axis.  ``call`` is given the row and the slice of rows that are called
    together with it.

    >>> call_in_batches(20, lambda row, some: torch.arange(20)[some]).tolist() == [*range(20)]
    True
    """
    found = []
    for row in range(rows):
        low = max(0, min(row, rows - BATCH))
        found.append(call(row, slice(low, low + BATCH))[row - low : row - low + 1])
    return torch.cat(found)


def query_mask_argument(
    counts: Tensor, one: Argument, lengths: Mapping[str, int], like: Tensor, least: float
) -> Tensor:
    """Return truth values (B, n), True where a query counts, as a mask of queries is expected."""
    axes = tuple(with_letter(axis, "r", "n") for axis in one.axes or ())
    return mask_argument(counts[:, None], replace(one, axes=axes), lengths, like, least)


def all_visible_mask(one: Argument, lengths: Mapping[str, int], like: Tensor) -> Tensor:
    """Return a mask, in any axes, under which every key is seen."""
    kind, shape = role(one), one.shape(lengths)
    if kind == "add":
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    seen = torch.ones(shape, dtype=torch.bool, device=like.device)
    return _numbers(seen, kind, like) if kind in TRUTH_OF else ~seen if kind == "hide" else seen


def _numbers(seen: Tensor, kind: str, like: Tensor) -> Tensor:
    """Return truth values as 0 and 1: integers, as from tokenizers, but float64 beside float64.

    1.0 minus an integer tensor is float32, in which the lowest float64 is −∞: code that multiplies
    the two would get NaN, and only because the check runs in float64.
    """
    marked = ~seen if kind in HIDING else seen
    real = kind == "factors" or like.dtype == torch.float64
    return marked.to(like.dtype) if real else marked.long()


NEAR = 1e-3  # relative to the row's largest output: a masked query moves further


def declared_visibility(declared: DeclaredAttention, queries: int, keys: int) -> Tensor:
    """Return the truth values (r, n) of what each query sees by the declaration.

    With alignment "end" the last query sees the last key, with "start" the first query sees the
    first key.  A window counts the keys up to and including the query's own.

    >>> declared_visibility(DeclaredAttention(causal=True), 2, 3).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    offset = keys - queries if declared.alignment == "end" else 0
    ahead = torch.arange(keys)[None, :] - (torch.arange(queries)[:, None] + offset)
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if declared.causal:
        seen &= ahead <= 0
    if declared.window:
        seen &= ahead > -declared.window
        if not declared.causal:
            seen &= ahead < declared.window
    return seen


def unaffected_queries(
    attend: Callable[..., Tensor],
    counting: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor,
) -> Tensor:
    """Return 1 where masking the queries left a query's output unchanged, else 0: (B, n)."""
    plain, under = attend(q, k, v, None).double(), counting(q, k, v, counts).double()
    near = NEAR * plain.abs().amax((1, 3), keepdim=True)
    return ((plain - under).abs() <= near).all(3).all(1).double()  # False for NaN


def format_mask(seen: Tensor) -> list[str]:
    """Format a matrix of truth values as lines of # (seen) and . (not seen)."""
    return ["".join("#" if bool(one) else "." for one in row) for row in seen]


def influences(call: Callable[[Tensor], Tensor], x: Tensor, draw: Draw) -> Tensor:
    """Return how much each output changes with each token, at most: x (B, n, E) -> (r, n)."""
    keys = range(x.shape[1])
    other = torch.stack([draw.normal(x.shape[0], x.shape[2], salt=500 + j) for j in keys], 1)
    return changes(call, x, other, keys)


def changes(call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, at: Iterable[int]) -> Tensor:
    """Return how much each output changes, at most, when a token becomes that of y: (r, n)."""
    before = call(x).double()
    found = torch.zeros(before.shape[1], x.shape[1], dtype=torch.float64)
    for j in at:
        other = x.clone()
        other[:, j] = y[:, j]
        change = (call(other).double() - before).abs().nan_to_num(nan=torch.inf)
        found[:, j] = change.amax(dim=(0, 2)).cpu()
    return found


def mask_visibility(subject: Mask, queries: int, keys: int) -> Tensor:
    """Return the truth values (r, n) of what the mask leaves visible in any row or head.

    A number hides a key if its exponential underflows to 0 in its own format; a smaller penalty
    does not, whatever its purpose.

    Raises ``ValueError`` if the shape is not (.., r, n).
    """
    made = subject.mask(queries, keys)
    if made.shape[-2:] != (queries, keys):
        raise ValueError(f"wanted a mask (.., {queries}, {keys}), got {tuple(made.shape)}")
    flat = made.reshape(-1, queries, keys)
    if made.dtype == torch.bool:
        seen = flat if subject.true_means == "visible" else ~flat
    elif made.is_floating_point():
        least = math.log(torch.finfo(made.dtype).smallest_normal * torch.finfo(made.dtype).eps)
        seen = ~(flat < least)
    else:
        seen = (flat != 0) if subject.true_means == "visible" else (flat == 0)
    return seen.any(0).cpu()
