"""Laws of code that makes a mask: causal, the past, the window, the alignment, what True means."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..declared import DeclaredAttention
from ..draw import Draw
from ..subjects import Mask
from .attention_fills import BEYOND, fill_told
from .attention_masks import wrongly
from .base import Outcome, held, not_asked, probe, undecided
from .influence import visible

__all__ = ["sees"]

LARGE = 33  # keys, of which not every mask is made
SIZES = ((1, 1), (2, 2), (3, 3), (6, 6), (1, 5), (2, 5), (5, 6), (33, 33), (130, 130), (1, 130))


def sees(subject: Mask, queries: int, keys: int) -> Tensor:
    """Truth values (T, S): what the mask leaves visible, in any row or head.

    A number hides where its exponential is 0 in its own format; less does not hide, whatever it
    is meant to do.  Masks of more axes must be alike in all others.

    Raises ``ValueError`` where the shape is no (.., T, S).
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


def _declared(subject: Mask) -> DeclaredAttention:
    return subject.declared or DeclaredAttention()


def _takes(subject: Mask, t: int, s: int) -> Tensor | None:
    """What is seen, or None where the code makes square masks only."""
    try:
        return sees(subject, t, s)
    except Exception:
        if t == s:
            raise
        return None


def _compared(subject: Mask, part: Any, why: str, good: str) -> Outcome:
    """Compare a part of what is seen with the declaration, at every size the code takes."""
    declared, taken = _declared(subject), []
    for t, s in SIZES:
        try:
            found = _takes(subject, t, s)
        except Exception:
            if s < LARGE:
                raise
            break  # code of a few tokens
        if found is None:
            continue
        wanted = visible(declared, t, s)
        taken.append((t, s))
        seen = wrongly(part(found, wanted), part(wanted, wanted), why, "seen")
        if seen is not None:
            return seen
    told = ", ".join(f"{t}×{s}" for t, s in taken)
    return held(f"{good} ({told})", 0.0, 0.0)


@probe("causal", "mask")
def causal(subject: Mask, _draw: Draw) -> Outcome:
    """No query sees a key after it."""
    declared = _declared(subject)
    at = DeclaredAttention(causal=True, alignment=declared.alignment)

    def later(found: Tensor, _wanted: Tensor) -> Tensor:
        return found & ~visible(at, *found.shape)

    found = _compared(subject, later, "a query sees a later key", "no query sees a later key")
    return found if found.witness is not None else replace(found, why=found.why + _fill(subject))


def _fill(subject: Mask) -> str:
    """What to add where a mask of numbers hides by a number that a score can come near."""
    made = subject.mask(2, 2)
    if not made.is_floating_point():
        return ""
    least = float(made.double().min())
    return fill_told(least) if -BEYOND[-1] < least < 0 else ""


@probe("past-is-used", "mask")
def past_is_used(subject: Mask, _draw: Draw) -> Outcome:
    """Every key that is declared visible is visible."""
    return _compared(subject, torch.logical_and, "a key that is to be seen is hidden",
                     "every key that is to be seen is seen")  # fmt: skip


@probe("window-as-declared", "mask")
def window_as_declared(subject: Mask, _draw: Draw) -> Outcome:
    """Query i sees min(i + 1, window) keys of a square mask, as declared."""
    declared = _declared(subject)
    w = declared.window
    if not w:
        return not_asked("no window is declared")
    for t in (2, w, w + 1, w + 3):
        found, wanted = sees(subject, t, t), visible(declared, t, t)
        count, due = int(found[-1].sum()), int(wanted[-1].sum())
        why = (f"the last query sees {count} of {t} keys, not {due}" if count != due else
               f"of {t} queries some see other keys than the window declares")  # fmt: skip
        seen = wrongly(found, wanted, why, "seen")
        if seen is not None:
            return seen
    return held(f"the last query sees {w} keys", 0.0, 0.0, T=w + 3)


@probe("alignment", "mask")
def alignment(subject: Mask, _draw: Draw) -> Outcome:
    """With T < S the mask is aligned to the end or to the start, as declared."""
    declared, ways = _declared(subject), {}
    made = {n: _takes(subject, *n) for n in ((1, 2), (1, 5), (2, 5), (3, 4))}
    found = {n: one for n, one in made.items() if one is not None}
    if not found:
        return not_asked("the code makes masks of as many queries as keys only")
    for way in ("end", "start"):
        said = DeclaredAttention(causal=True, window=declared.window, alignment=way)
        ways[way] = all(torch.equal(m, visible(said, *n)) for n, m in found.items())
    is_so = [way for way, right in ways.items() if right]
    words = f"aligned to the {is_so[0]}" if is_so else "aligned to neither"
    if not declared.causal:
        return not_asked(f"no causal mask is declared (it is {words})")
    for (t, s), one in found.items():
        why = f"the mask is {words}, and the {declared.alignment} is declared"
        seen = wrongly(one, visible(declared, t, s), why, "seen")
        if seen is not None:
            return seen
    why = f"with fewer queries than keys the mask is {words}, as declared"
    return held(why, 0.0, 0.0, T=1, S=5)


@probe("true-means-visible", "mask")
def true_means_visible(subject: Mask, _draw: Draw) -> Outcome:
    """True (or 0, in a mask of numbers) says what it is said to say, and not the opposite."""
    declared = _declared(subject)
    numbers = subject.mask(3, 3)
    kind = "0" if numbers.is_floating_point() else "True"
    if numbers.is_floating_point() and bool(numbers.isnan().any()):
        nan = numbers.reshape(-1, 3, 3).isnan().any(0)
        seen = wrongly(nan, torch.zeros_like(nan), "the mask has NaN in it", "NaN at")
        assert seen is not None
        return seen
    means = "visible" if numbers.is_floating_point() else subject.true_means
    if declared.causal is None and not declared.window:
        own = sees(subject, 3, 3).diagonal()
        if bool(own.all()):
            return held(f"{kind} means {means}: every query sees its own key", 0.0, 0.0, T=3, S=3)
        return undecided(f"{kind} is said to mean {means}, and then some query does not see its "
                         "own key; declare the mask to have it compared")  # fmt: skip
    for t in (2, 3, 6):
        found, wanted = sees(subject, t, t), visible(declared, t, t)
        if torch.equal(found, ~wanted) or (bool(wanted.all()) and not bool(found.any())):
            seen = wrongly(found, wanted, f"{kind} means the opposite of {means}", "seen")
            assert seen is not None
            return seen
        own = torch.eye(t, dtype=torch.bool)
        why = f"with {kind} as {means}, a query does not see its own key"
        seen = wrongly(found & own, own, why, "own key")
        if seen is not None:
            return seen
        partial = _too_small(subject, t, wanted)
        if partial is not None:
            return partial
    return held(f"{kind} means {means}", 0.0, 0.0, T=6, S=6)


def _too_small(subject: Mask, t: int, wanted: Tensor) -> Outcome | None:
    """Broken where a number that is to hide is so small that it hides nothing."""
    made = subject.mask(t, t)
    if not made.is_floating_point():
        return None
    seen = sees(subject, t, t) & ~wanted
    if not bool(seen.any()):
        return None
    value = float(made.reshape(-1, t, t)[0][seen].max())
    return wrongly(seen, torch.zeros_like(seen), f"{value:g} is added where a key is to be hidden: "
                   "its exponential is not 0", "not hidden")  # fmt: skip
