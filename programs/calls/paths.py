"""Other ways to compute what a map of tokens does: flags, kernels, an explicit context, steps.

Passing the tokens themselves as the context, or a mask that shows every key, changes nothing if the
code ignores the order of tokens and uses no further weights; running the code decides whether that
is so.  Code that norms its tokens reads a context unnormed, so these paths are not tried on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..execution.calling import evaluating, modules_of
from ..loading.names import parameters
from ..signatures.signature import Argument, SignatureError
from .masks import is_mask
from .roles import ROTATED, role

if TYPE_CHECKING:
    from .tokens import OnTokens


TokenMap = Callable[..., Tensor]
MASK_OF_CONTEXT = re.compile(r"(encoder|context|memory|cross)\w*mask")

CONTEXTS = ("context", "encoder_hidden_states", "key_value_states", "memory", "xa", "x_kv", "kv")
KEYS = (("key", "value"), ("keys", "values"), ("k", "v"))
COUNT = 6
NEAR = 1e-5  # relative to the largest entry: float32 rounding of sums in another order


def other_paths(on: OnTokens, width: int) -> dict[str, OnTokens | Callable[..., Tensor]]:
    """Return the other paths by name, each a map of tokens (B, T, E) and of the kept ones (B, T).

    ``width``: the features of a token.
    """
    found: dict[str, OnTokens | Callable[..., Tensor]] = {}
    taken = parameters(on.code.call)
    if any(one.name == "need_weights" for one in taken):
        for wanted in (True, False):
            path = _as_it_returns(replace(on, options={"need_weights": wanted}), width)
            if path is not None:
                found[f"need_weights={wanted}"] = path
    torch_parts = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    if any(isinstance(part, torch_parts) for part in modules_of(on.code)):
        found["no fast path"] = _slow(on)
    alike = [one.name for one in on.line.arrays if _like_tokens(on, one)]
    if alike:
        names = ", ".join((on.tokens.name, *alike))
        found[f"one tensor for {names}"] = replace(on, shared=True)
    if alike or not on.context:
        found |= _same_of_any_order(on, width, alike)
    return found


def _same_of_any_order(on: OnTokens, width: int, alike: list[str]) -> dict[str, OnTokens]:
    """Return paths on which code may be causal or encode positions although the main path is not.

    They are used only if the main path ignores the order of tokens.
    """
    taken = {one.name: one for one in parameters(on.code.call)}
    told = {one.name for one in on.signature.arguments} | set(on.code.options.arguments)
    spare = [name for name, one in taken.items() if not one.required and one.default is None]
    free = [name for name in spare if name not in told]
    tried: dict[str, OnTokens] = {}
    contexts: list[tuple[str, ...]] = [(name,) for name in free if name in CONTEXTS]
    contexts += [both for both in KEYS if set(both) <= set(free)]
    normed = _norms(on, width)
    for names in contexts if not normed else ():
        more = [Argument(name, axes=on.tokens.axes, kind="tokens") for name in names]
        told_so = replace(on.signature, arguments=(*on.signature.arguments, *more))
        tried[", ".join(f"{name}={on.tokens.name}" for name in names)] = replace(
            on, signature=told_so
        )
    if alike and set(alike) <= set(spare) and not normed:
        kept = tuple(one for one in on.signature.arguments if one.name not in alike)
        tried[f"without {', '.join(alike)}"] = replace(
            on, signature=replace(on.signature, arguments=kept)
        )
    if on.spare:
        tried["a mask that shows every key"] = replace(on, full=True)
    own = _weights(on, width) if tried and _is_equivariant(on, width) else None
    if own is None:
        return {}
    found = {name: (path, _weights(path, width)) for name, path in tried.items()}
    return {name: path for name, (path, used) in found.items() if used is not None and used <= own}


def _as_it_returns(on: OnTokens, width: int) -> OnTokens | None:
    """Return the path, with or without weights behind its result; None if there is no such path.

    Code that raises NotImplementedError for a flag has no such path.
    """
    x = torch.randn(2, COUNT, width, generator=torch.Generator().manual_seed(12))
    results = on.signature.results
    more = [results, (*results, Argument("_"))]
    more += [results[:-1]] if len(results) == 2 and results[-1].name == "_" else []
    for path in (replace(on, signature=replace(on.signature, results=one)) for one in more):
        with evaluating(on.code), torch.no_grad():
            try:
                path(x)
            except NotImplementedError:
                return None
            except SignatureError:
                continue
            except Exception:  # noqa: BLE001 (the law reports what it raises)
                break
        return path
    return on


def masked_paths(on: OnTokens, paths: Mapping[str, TokenMap]) -> dict[str, TokenMap]:
    """Return the paths that hide what the mask hides: none whose context has a mask of its own."""
    told = {one.name for one in on.signature.arguments}
    own = any(
        MASK_OF_CONTEXT.search(p.name) for p in parameters(on.code.call) if p.name not in told
    )
    if not own:
        return dict(paths)
    return {name: path for name, path in paths.items() if not _takes_more(on, path)}


def _takes_more(on: OnTokens, path: TokenMap) -> bool:
    """Whether the path is given more arguments than the main path, such as a context."""
    line = getattr(path, "signature", on.signature)
    return len(line.arguments) > len(on.signature.arguments)


def _like_tokens(on: OnTokens, one: Argument) -> bool:
    """Whether the argument is given the same tokens again."""
    if one == on.tokens or is_mask(one) or role(one) not in ROTATED:
        return False
    return set(one.letters) == set(on.tokens.letters)


def _is_equivariant(on: OnTokens, width: int) -> bool:
    """Whether, in evaluation, permuting the tokens permutes the outputs in the same way."""
    x = torch.randn(2, COUNT, width, generator=torch.Generator().manual_seed(9))
    order = torch.tensor([2, 5, 0, 4, 1, 3])
    with evaluating(on.code), torch.no_grad():
        there, here = on(x[:, order]), on(x)[:, order]
    return bool((there - here).abs().max() <= NEAR * here.abs().max())


def _norms(on: OnTokens, width: int) -> bool:
    """Whether tokens may be normed before they are read, by the names of parts or by a run.

    Of code that refuses so many tokens, it is not known.
    """
    if any("norm" in type(part).__name__.lower() for part in modules_of(on.code)):
        return True
    x = torch.randn(2, COUNT, width, generator=torch.Generator().manual_seed(11))
    try:
        with evaluating(on.code), torch.no_grad():
            plain, scaled = on(x), on(4 * x)
    except Exception:  # noqa: BLE001 (the code may take other numbers of tokens alone)
        return True
    moved = scaled - plain
    residuals = (moved, moved - 3 * x) if moved.shape == x.shape else (moved,)
    near = 100 * NEAR * plain.abs().max()
    return any(bool(one.abs().max() <= near) for one in residuals)


def _weights(on: OnTokens, width: int) -> frozenset[str] | None:
    """Return the names of the weights the result depends on; None if the call raises."""
    x = torch.randn(2, COUNT, width, generator=torch.Generator().manual_seed(10))
    named = {} if on.code.module is None else dict(on.code.module.named_parameters())
    weights = {name: one for name, one in named.items() if one.requires_grad}
    with evaluating(on.code), torch.enable_grad():
        try:
            result = on(x)
            if not weights or not result.requires_grad:
                return frozenset()
            found: tuple[Tensor | None, ...] = torch.autograd.grad(
                result.square().sum(), [*weights.values()], allow_unused=True
            )
        except Exception:  # noqa: BLE001 (the call is a guess, and code may raise anything)
            return None
    return frozenset(name for name, grad in zip(weights, found, strict=True) if grad is not None)


def _slow(on: OnTokens) -> Callable[..., Tensor]:
    """Return the same call without the fast path of torch's own modules."""

    def slow(x: Tensor, keep: Tensor | None = None) -> Tensor:
        before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return on(x, keep)
        finally:
            torch.backends.mha.set_fastpath_enabled(before)

    return slow
