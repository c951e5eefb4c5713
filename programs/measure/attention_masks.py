"""Laws of which keys a query sees: the past, the window, the alignment.

What is seen is read off the weights where values can be set, and found by changing tokens, and by
gradients, in a layer.  A mask that is not declared raises no alarm: it is told.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..declared import DeclaredAttention
from ..finding import Seen
from ..identify.weights import read_weights
from ..influence import influences, told_matrix, visible
from .base import Outcome, held, not_asked, probe, undecided
from .influence import attend_sizes, inputs
from .scene import Scene, in_formats

__all__ = ["embed_of", "tokens_reached", "weights_seen", "wrongly"]

HIDES = "this format may round a small influence away, and the code does not take a finer one"
SHOWN = 16  # of more queries the one that shows it is told
FAR = 32  # a window longer than this is looked at around its edge only


def wrongly(
    found: Tensor, wanted: Tensor, why: str, what: str, **inputs: object
) -> Outcome | None:
    """Broken where two matrices of truth values differ, with the first place as witness."""
    found, wanted = found.cpu(), wanted.cpu()
    if torch.equal(found, wanted):
        return None
    place = [int(n) for n in (found != wanted).nonzero()[0]]
    sizes = {"T": found.shape[0], "S": found.shape[1]}
    rows = slice(None) if len(found) <= SHOWN else slice(place[0], place[0] + 1)
    shown = {**sizes, **inputs, "query": place[0], "key": place[1], what: told_matrix(found[rows]),
             "declared": told_matrix(wanted[rows])}  # fmt: skip
    here, there = bool(found[tuple(place)]), bool(wanted[tuple(place)])
    seen = Seen(shown, (f"query {place[0]} sees key {place[1]}", here),
                (f"query {place[0]} is to see key {place[1]}", there), 1.0, 0.0)  # fmt: skip
    return Outcome(why, 1.0, 0.0, seen, sizes=sizes)


def weights_seen(scene: Scene, queries: int, keys: int) -> Tensor:
    """Truth values (T, S): which weights are not 0 for scores of 0, in any head or row."""
    attend = scene.subject.attend
    _, _, _, h, g, d = attend_sizes(scene.subject, scene.declared)[0]
    q, k, _ = inputs(scene, (2, queries, keys, h, g, d))
    read = read_weights(attend, torch.zeros_like(q), k)
    return (read.abs().nan_to_num(nan=1.0) > 0).flatten(0, 1).any(0)


def embed_of(scene: Scene) -> int:
    """Features of a token; where there are none, a number of them for queries, keys and values."""
    return scene.subject.embed or 5


def tokens_reached(
    scene: Scene, call: Callable[[Tensor], Tensor], b: int, t: int
) -> tuple[Tensor, float]:  # fmt: skip
    """How much each output changes with each token (T, T), and how much rounding explains."""
    x = scene.draw.normal(b, t, embed_of(scene), salt=t)
    return influences(call, x, scene.draw), scene.allow(call, x)()


def tokens_ever(scene: Scene, call: Callable[[Tensor], Tensor], t: int) -> Tensor:
    """Truth values (T, T): whether an output changes with a token, at some scale of tokens."""
    found = torch.zeros(t, t, dtype=torch.bool)
    for scale in (1.0, 0.1, 0.01):
        x = scale * scene.draw.normal(2, t, embed_of(scene), salt=t)
        found |= influences(call, x, scene.draw) > 0
        if bool(found.all()):
            break
    return found


@probe("past-is-used", "attention")
@in_formats
def past_is_used(scene: Scene) -> Outcome:
    """Every key that should be seen changes the output, also with fewer queries than keys."""
    one, declared = scene.subject, scene.declared
    if scene.low:
        return undecided(HIDES)
    shapes = [(2, 2), (3, 3), (6, 6)]
    for t, s in [*shapes, (1, 5), (2, 5)] if one.attend is not None else shapes:
        wanted = visible(declared, t, s)
        found = _reaching(scene, t, s)
        if found is None:
            continue
        seen = wrongly(found & wanted, wanted, "a token that should be seen has no influence",
                       "seen", seed=scene.draw.seed)  # fmt: skip
        if seen is not None:
            return seen
    return held("every token that should be seen has an influence", 0.0, 0.0)


def _reaching(scene: Scene, t: int, s: int) -> Tensor | None:
    """What is seen, by weights or by tokens; None where T ≠ S is refused (by alignment told)."""
    if scene.subject.attend is None and scene.tokens is not None:
        return tokens_ever(scene, scene.tokens, t)
    try:
        return weights_seen(scene, t, s)
    except Exception:
        if t == s:
            raise
        return None


@probe("window-as-declared", "attention")
@in_formats
def window_as_declared(scene: Scene) -> Outcome:
    """The last query sees min(window, S) keys: those that have a weight or change its output."""
    declared, one = scene.declared, scene.subject
    if not declared.window:
        return not_asked("no window is declared")
    if not declared.causal:
        return not_asked("windows are counted where the mask is causal; declare causal")
    if scene.low:
        return undecided(HIDES)
    w = declared.window
    for t in sorted({max(2, w), w + 1, w + 3}) if w <= FAR else (w + 3,):
        edge = range(t) if w <= FAR else [t - w - 2, t - w - 1, t - w, t - w + 1, t - 1]
        wanted = visible(declared, t, t)[-1:, edge]
        if one.attend is not None:
            found = _window_weights(scene, t, list(edge))
        else:
            x = scene.draw.normal(2, t, one.embed, salt=t) * 0.1
            found = influences(one.layer, x, scene.draw, list(edge))[-1:, edge] > 0
        count, due = int(found.sum()), int(wanted.sum())
        if not torch.equal(found, wanted):
            seen = Seen({"T": t, "window": w, "keys": list(edge), "seen": told_matrix(found),
                         "declared": told_matrix(wanted), "seed": scene.draw.seed},
                        ("keys that reach the last query", count), ("keys that should", due),
                        float(abs(count - due) or 1), 0.0)  # fmt: skip
            return Outcome(f"the last query sees {count} of {t} tokens, not {due}", seen.difference,
                           0.0, seen, sizes={"T": t})  # fmt: skip
    return held(f"the last query sees {w} keys", 0.0, 0.0, T=w + 3)


def _window_weights(scene: Scene, t: int, edge: list[int]) -> Tensor:
    """Which of these keys have weight for the last of t queries (1, len(edge))."""
    if t <= FAR + 3:
        return weights_seen(scene, t, t)[-1:, edge].cpu()
    _, _, _, h, g, d = attend_sizes(scene.subject, scene.declared)[0]
    q, k, v = inputs(scene, (1, t, t, h, g, d))
    found = []
    for key in edge:
        value = torch.zeros_like(v)
        value[:, :, key] = 1
        last = scene.subject.attend(torch.zeros_like(q), k, value, None)[:, :, -1]
        found.append(bool((last != 0).any()))
    return torch.tensor([found])


@probe("alignment", "attention")
@in_formats
def alignment(scene: Scene) -> Outcome:
    """With T < S the last query sees all S keys (end), or the first query the first (start)."""
    declared = scene.declared
    found = {}
    for t, s in ((1, 2), (1, 5), (2, 5), (3, 4)):
        try:
            found[t, s] = weights_seen(scene, t, s)
        except Exception as error:  # noqa: BLE001 (code for T = S raises what it likes)
            if declared.causal:
                return undecided(f"fewer queries than keys raised {type(error).__name__}")
            return not_asked("the code takes as many queries as keys")
    ways = [way for way in ("end", "start")
            if all(torch.equal(m.cpu(), visible(_causal(declared, way), *n))
                   for n, m in found.items())]  # fmt: skip
    words = f"alignment {ways[0]}" if ways else "neither alignment"
    if not declared.causal:
        return not_asked(f"no causal mask is declared (seen: {words})" if ways else
                         "no causal mask is declared")  # fmt: skip
    for (t, s), seen in found.items():
        why = f"the code has {words}, and {declared.alignment} is declared"
        wrong = wrongly(seen, visible(declared, t, s), why, "seen", seed=scene.draw.seed)
        if wrong is not None:
            return wrong
    return held(f"fewer queries than keys: {words}, as declared", 0.0, 0.0, T=1, S=5)


def _causal(declared: DeclaredAttention, way: str) -> DeclaredAttention:
    return DeclaredAttention(causal=True, window=declared.window, alignment=way)
