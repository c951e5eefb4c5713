"""State and inputs in the calls beside the main one: other paths, masks, padding, pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.calls import other_ways, ways_of
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Additive, Attention, Layer, Mask, Rotary, Subject

Fault = Callable[[Callable[..., Any]], Callable[..., Any]]


def scores(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    found = q @ k.mT / 2
    if mask is None:
        return found
    return found.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else found + mask


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return scores(q, k, mask).softmax(-1) @ v


def layer(x: Tensor) -> Tensor:
    return attend(x, x, x)


def causal(x: Tensor) -> Tensor:
    return attend(x, x, x, torch.ones(x.shape[1], x.shape[1]).tril().bool())


def hide(x: Tensor, keep: Tensor) -> Tensor:
    return attend(x, x, x, keep[:, None, :])


def reading(x: Tensor, context: Tensor, keep: Tensor) -> Tensor:
    return attend(x, context, context, keep[:, None, :])


def step(x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    whole = x if state is None else torch.cat((state, x), 1)
    return causal(whole)[:, whole.shape[1] - x.shape[1] :], whole


def padded_step(x: Tensor, state: Tensor | None, _: Tensor) -> tuple[Tensor, Tensor]:
    return step(x, state)


def rotate(x: Tensor, places: Tensor) -> Tensor:
    angles = (places[:, None, :, None] * torch.tensor([1.0, 0.1])).to(x.dtype)
    (a, b), c, s = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def running(x: Tensor) -> Tensor:
    return rotate(x, torch.arange(x.shape[2])[None])


def shift(k: Tensor, steps: int) -> Tensor:
    return rotate(k, torch.full((1, k.shape[2]), steps))


def pair(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    return rotate(q, places), rotate(k, places)


def all_three(q: Tensor, k: Tensor, v: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return *pair(q, k, places), 1 * v


def last(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.arange(k.shape[2])[None]
    return rotate(q, places[:, -q.shape[2] :]), rotate(k, places)


def only_masked(faulty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda q, k, v, mask: attend(q, k, v) if mask is None else faulty(q, k, v, mask)


def with_fewer_queries(faulty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def either(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return (attend if q.shape[2] == k.shape[2] else faulty)(q, k, v, mask)

    return either


def subjects(fault: Fault) -> Iterator[Subject]:
    """Yield code with a fault in one call."""
    by_heads = {"attend": attend, "heads": 2, "groups": 2, "width": 4}
    by_tokens = {"layer": layer, "embed": 4}
    for more in (
        {"paths": {"other": fault(rotate)}},
        {"running": fault(running)},
        {"shift": fault(shift)},
        {"pair": fault(pair)},
        {"all_three": fault(all_three)},
        {"last": fault(last)},
    ):
        yield Rotary(name=f"rotary, {next(iter(more))}", rotate=rotate, width=4, **more)
    of_attention: dict[str, dict[str, Any]] = {
        "another path": {**by_heads, "paths": {"other": fault(attend)}},
        "weights": {**by_heads, "weights": fault(lambda q, k: scores(q, k, None).softmax(-1))},
        "a mask": {**by_heads, "attend": only_masked(fault(attend)), "masks": ("bool",)},
        "a mask of numbers": {
            **by_heads,
            "attend": only_masked(fault(attend)),
            "masks": ("float",),
        },
        "fewer queries": {**by_heads, "attend": with_fewer_queries(fault(attend))},
        "another path of tokens": {**by_tokens, "paths": {"other": fault(layer)}},
        "padding": {**by_tokens, "hide": fault(hide)},
        "another path with padding": {**by_tokens, "hide": hide, "hiding": {"o": fault(hide)}},
        "pieces": {**by_tokens, "layer": causal, "step": fault(step)},
        "padded pieces": {**by_tokens, "layer": causal, "padded_step": fault(padded_step)},
        "documents": {**by_tokens, "documents": fault(lambda x, _: layer(x))},
        "a first place": {**by_tokens, "whole_layer": fault(lambda x, _: layer(x))},
        "a context": {**by_tokens, "reading": fault(reading), "context": 4},
    }
    for name, options in of_attention.items():
        yield Attention(name=name, **options)
    yield Layer(name="layer, another path", call=layer, embed=4, paths={"other": fault(layer)})
    yield Layer(name="layer, pieces", call=causal, embed=4, step=fault(step))


def plain(call: Callable[..., Any]) -> Callable[..., Any]:
    return call


def counts(call: Callable[..., Any]) -> Callable[..., Any]:
    """Its first result grows with the number of calls."""
    before = 0.0

    def counting(*given: Any) -> Any:
        nonlocal before
        before += 1.0
        found = call(*given)
        return found + before if isinstance(found, Tensor) else (found[0] + before, *found[1:])

    return counting


def writes(call: Callable[..., Any]) -> Callable[..., Any]:
    """It writes to its first input."""

    def writing(x: Tensor, *given: Any) -> Any:
        found = call(x, *given)
        x.mul_(1.5)
        return found

    return writing


def verdict(code: Subject, law: str) -> str:
    (found,) = (one for one in examine(code, laws=(law,)) if one.law == law)
    return found.verdict


NAMES = [one.name for one in subjects(plain)]


@pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES)
def test_what_one_call_keeps_or_writes_breaks_the_laws_of_state(place: int) -> None:
    for law, fault in (("stateless", counts), ("no-mutation", writes)):
        assert verdict([*subjects(fault)][place], law) == "broken", law
        assert verdict([*subjects(plain)][place], law) == "holds", law


def test_a_mask_that_is_kept_for_calls_without_one_is_state() -> None:
    kept: dict[tuple[int, int], Tensor] = {}

    def keeps(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            kept[q.shape[2], k.shape[2]] = mask[:1]
        return attend(q, k, v, kept.get((q.shape[2], k.shape[2])))

    code = Attention(name="keeps", attend=keeps, heads=2, groups=2, width=4, masks=("bool",))
    (found,) = examine(code, laws=("stateless",))
    assert found.verdict == "broken"
    assert "after a call of another kind (attend with a mask of truth values)" in found.why


def test_queries_unlike_keys_are_as_many_as_a_law_is_measured_with() -> None:
    def writes_at(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        found = attend(q, k, v, mask)
        if (q.shape[2], k.shape[2]) == (37, 50):
            q.mul_(1.5)
        return found

    at = ({"B": 1, "r": 37, "n": 50},)
    for run_at, wanted in ((), "holds"), (at, "broken"):
        code = Attention(name="writes", attend=writes_at, heads=2, groups=2, width=4, run_at=run_at)
        assert verdict(code, "no-mutation") == wanted


def shapes_made(code: Subject, queries: int, rows: int, tokens: int) -> dict[str, list[Any]]:
    """The shapes of what each call is given, and where masks end."""
    made: dict[str, list[Any]] = {}
    for way in (*ways_of(code, queries), *other_ways(code, queries)):
        given = way.make_inputs(Draw(), rows, tokens, 0)
        made[way.attribute] = [tuple(x.shape) if isinstance(x, Tensor) else x for x in given]
        made[f"{way.attribute} keeps"] = [
            int(x[-1].flatten(0, -2)[0].sum() if x.dim() > 2 else x[-1].sum())
            for x in given
            if isinstance(x, Tensor) and x.dtype == torch.bool
        ]
    return made


def test_calls_of_given_lengths_have_these_and_keep_all_tokens_but_one() -> None:
    code = Attention(
        name="a", attend=attend, layer=layer, hide=hide, counting=attend,
        weights=lambda q, k: scores(q, k, None), reading=reading, context=6, masks=("bool",),
        heads=4, groups=2, width=8, embed=16,
    )  # fmt: skip
    made = shapes_made(code, 3, 2, 5)
    q, k = (2, 4, 3, 8), (2, 2, 5, 8)
    told = "attend with a mask of truth values"
    assert made["attend"] == [q, k, k, None]
    assert (made[told], made[f"{told} keeps"]) == ([q, k, k, (2, 1, 3, 5)], [4])
    assert made["weights"] == [q, k]
    assert made["counting"] == [q, k, k, (2, 3)]
    assert (made["hide"], made["hide keeps"]) == ([(2, 5, 16), (2, 5)], [4])
    assert made["reading"] == [(2, 5, 16), (2, 5, 6), (2, 5)]
    assert "attend with another number of queries than keys" not in made


def test_pieces_of_given_lengths_are_all_tokens_but_one_or_two_and_one_first() -> None:
    seen: list[int] = []

    def noted(x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        seen.append(x.shape[1])
        return step(x, state)

    for way in other_ways(Layer(name="l", call=causal, embed=4, step=noted), 6):
        way.call(*way.make_inputs(Draw(), 1, 6, 0))
    assert seen == [5, 1, 1, 5, 4, 2]


@pytest.mark.parametrize("code", [Mask(name="m", mask=lambda r, n: torch.ones(r, n).tril(n - r))])
def test_code_of_lengths_is_given_these(code: Mask) -> None:
    assert shapes_made(code, 3, 2, 5)["mask"] == [3, 5]


def test_positions_of_given_lengths_are_those_of_every_row_also_beyond_the_last() -> None:
    (way,) = ways_of(Rotary(name="r", rotate=rotate, width=4, first=1, most=4), 6)
    assert way.make_inputs(Draw(), 2, 6, 0)[1].tolist() == [[1, 2, 3, 4, 5, 6]] * 2


def test_given_lengths_may_be_beyond_the_rows_of_a_table() -> None:
    code = Additive(name="t", added=lambda x: x, width=4, most=4)
    for queries, tokens in ((0, 4), (6, 6)):
        (way,) = ways_of(code, queries)
        assert way.make_inputs(Draw(), 1, 6, 0)[0].shape[1] == tokens


def test_the_last_queries_are_fewer_than_the_keys_at_any_lengths() -> None:
    code = Rotary(name="r", rotate=rotate, width=4, last=last)
    for queries in (0, 6):
        (way,) = other_ways(code, queries)
        assert [x.shape[2] for x in way.make_inputs(Draw(), 2, 6, 0)] == [3, 6]


def test_code_that_refuses_other_calls_is_judged_by_its_main_one() -> None:
    def refuses(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None or q.shape[2] != k.shape[2]:
            raise NotImplementedError("another call")
        return attend(q, k, v)

    code = Attention(name="refuses", attend=refuses, heads=2, groups=2, width=4, masks=("bool",))
    for law in ("stateless", "no-mutation"):
        assert verdict(code, law) == "holds"


@pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES)
def test_what_one_call_keeps_breaks_the_law_at_given_lengths_too(place: int) -> None:
    at = ({"B": 1, "r": 4, "n": 9, "m": 9},)
    for fault, wanted in (counts, "broken"), (plain, "holds"):
        code = replace([*subjects(fault)][place], run_at=at)
        assert verdict(code, "stateless") == wanted


def test_what_a_call_of_many_tokens_keeps_is_met_by_calls_of_other_kinds() -> None:
    kept: dict[int, Tensor] = {}

    def keeps(x: Tensor, keep: Tensor) -> Tensor:
        if x.shape[1] > 40:
            kept[x.shape[1]] = keep
        return hide(x, keep)

    def layer_kept(x: Tensor) -> Tensor:
        return hide(x, kept[x.shape[1]]) if x.shape[1] in kept else layer(x)

    code = Attention(name="keeps", layer=layer_kept, hide=keeps, embed=4)
    assert verdict(replace(code, run_at=({"B": 2, "n": 30},)), "stateless") == "holds"
    (found,) = examine(replace(code, run_at=({"B": 2, "n": 50},)), laws=("stateless",))
    assert found.verdict == "broken"
    assert "after calls of all kinds, the last of them hide" in found.why


def chooses_expert(x: Tensor, slack: float) -> Tensor:
    """Double each token that finds room in the expert named by its largest channel."""
    chosen = torch.nn.functional.one_hot(x.argmax(-1).flatten(), x.shape[-1])
    place = (chosen.cumsum(0) * chosen).sum(-1).view(x.shape[:-1])
    return torch.where((place <= slack * place.numel() / x.shape[-1] + 8)[..., None], 2 * x, x)


def test_an_expert_overflows_where_tokens_are_alike() -> None:
    for slack, wanted in (1.5, "broken"), (4.0, "holds"):
        code = Layer(name="experts", call=partial(chooses_expert, slack=slack), embed=4)
        assert verdict(code, "rows-of-batch-apart") == "holds"
        code = replace(code, run_at=({"B": 20, "n": 6},))
        assert verdict(code, "rows-of-batch-apart") == wanted
