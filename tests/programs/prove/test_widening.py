"""Lengths of which a proof speaks beyond its graph: where other code runs that is one function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pprint import pformat
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import handle_torch_function

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.prove import exporting, prove
from attnproof.programs.prove.branches import is_valid_at, lengths_elsewhere
from attnproof.programs.prove.calls import Call, calls_of, symbolic
from attnproof.programs.prove.exporting import Exported
from attnproof.programs.prove.printed_lengths import printed_ranges
from attnproof.programs.prove.statements import graphs_of
from attnproof.programs.prove.widening import widened
from attnproof.programs.subjects import Attention, Layer
from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import size

pytestmark = pytest.mark.usefixtures("lengths_of_one")
MASK = torch.ones(12, 12).tril() == 0
WIDTH = 4


def found_of(call: Any, law: str = "causal") -> Finding:
    subject = Attention(name="l", layer=call, embed=WIDTH, declared=DeclaredAttention(causal=True))
    (found,) = prove(subject, (law,), seconds=5.0).findings
    return found


def lengths_of(found: Finding) -> str:
    assert found.verdict == "holds", found.why
    return "; ".join(one.text for one in found.assuming if one.kind == "for")


def elsewhere(found: Finding) -> bool:
    return any("runs elsewhere" in one.text for one in found.assuming)


def attended(x: Tensor, hidden: Tensor) -> Tensor:
    return (x @ x.mT).masked_fill(hidden, float("-inf")).softmax(-1) @ x


def stored(x: Tensor) -> Tensor:
    """At 12 tokens nothing is cut off the mask, and its graph has two operations less."""
    n = x.shape[1]
    return attended(x, MASK[:n, :n])


def made_at_once(x: Tensor) -> Tensor:
    n = x.shape[1]
    return attended(x, (torch.ones(12, 12).tril() == 0)[:n, :n])


def in_two_ways(x: Tensor) -> Tensor:
    """One function, that is computed otherwise from 10 tokens on."""
    n = x.shape[1]
    scores = torch.einsum("bnd,bmd->bnm", x, x) if n >= 10 else x @ x.transpose(1, 2)
    hidden = torch.ones(n, n).triu(1) == 1
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ x


def alone_it_is_squeezed(x: Tensor) -> Tensor:
    """One row is another graph, and the same function."""
    return x.cumsum(1) if x.shape[0] > 1 else x.squeeze(0).cumsum(0)[None]


def with_the_biased_spread_of_its_rows(x: Tensor) -> Tensor:
    return x.cumsum(1) + x.var(0, correction=0) + x.std(-1, keepdim=True)


@pytest.mark.parametrize(
    ("call", "lengths"),
    [
        (stored, "n + n′ ≤ 12; E = 4"),
        (made_at_once, "n + n′ ≤ 12; E = 4"),
        (in_two_ways, "E = 4"),
        (alone_it_is_squeezed, "E = 4"),
        (with_the_biased_spread_of_its_rows, "E = 4"),
        (nn.Linear(WIDTH, WIDTH), "E = 4"),
    ],
)
def test_where_all_is_one_function_one_proof_is_of_all(call: Any, lengths: str) -> None:
    found = found_of(call)
    assert lengths_of(found) == lengths
    assert not elsewhere(found)
    assert "every run" not in str(found.assuming)  # its branches were run on both sides


def other_at_12(x: Tensor) -> Tensor:
    """The whole mask, and not the part of it: keys are hidden the other way round."""
    n = x.shape[1]
    return attended(
        x, MASK[:n, :n].mT & (MASK[:n, :n].mT != MASK[:n, :n]) if n == 12 else MASK[:n, :n]
    )


def doubled_for_long(x: Tensor) -> Tensor:
    return x.cumsum(1) * (2 if x.shape[1] >= 10 else 1)


def doubled_for_one_row(x: Tensor) -> Tensor:
    return x.cumsum(1) * (2 if x.shape[0] == 1 else 1)


def doubled_for_one_token(x: Tensor) -> Tensor:
    return x.cumsum(1) * (2 if x.shape[1] == 1 else 1)


def doubled_for_one_token_of_one_row(x: Tensor) -> Tensor:
    """Each of both lengths alone may be 1, and not both."""
    return x.cumsum(1) * (2 if x.shape[0] * x.shape[1] == 1 else 1)


def one_row_of_seven_is_doubled(x: Tensor) -> Tensor:
    """One row is traced under a condition of its own, which no other rows have."""
    return x.cumsum(1) * (2 if x.shape[0] == 1 and x.shape[1] == 7 else 1)


def one_row_of_twelve_is_doubled(x: Tensor) -> Tensor:
    """12 tokens are one function with others, and one row is, and both together are not."""
    n = x.shape[1]
    hidden = MASK[:n, :n]
    return attended(x, hidden) * (2 if n == 12 and x.shape[0] == 1 else 1)


def with_another_table(x: Tensor) -> Tensor:
    """One row takes the rows of a table of the same name and shape that has other numbers."""
    table = ONE if x.shape[0] > 1 else OTHER
    return x.cumsum(1) + table[: x.shape[1]]


def one_row_is_dropped(x: Tensor) -> Tensor:
    y = x.squeeze(0)
    return y.cumsum(1) if y.dim() == 3 else 2 * y.cumsum(0)[None]


def one_axis_is_dropped(x: Tensor) -> Tensor:
    return x.cumsum(1) * (1 if x[None].squeeze().dim() == 3 else 2)


def of_torch(x: Tensor) -> Tensor:
    """A function as torch has them in Python, which hands itself on to whoever follows it."""
    if functional.has_torch_function_unary(x):  # type: ignore[attr-defined]
        found: Tensor = handle_torch_function(of_torch, (x,), x)
        return found
    return one_axis_is_dropped(x)


of_torch.__module__ = functional.__name__


def unheard(x: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():
        return one_axis_is_dropped(x)


def doubled_where_it_lies_in_order(x: Tensor) -> Tensor:
    return x.cumsum(1) * (2 if x.transpose(0, 1).is_contiguous() else 1)


def doubled_by_its_strides(x: Tensor) -> Tensor:
    turned = x.transpose(0, 1)
    try:
        in_order = turned.stride() == turned.contiguous().stride()
    except Exception:  # noqa: BLE001 (as code has it that is never to fail)
        in_order = False
    return x.cumsum(1) * (2 if in_order else 1)


def doubled_where_it_does_not_raise(x: Tensor) -> Tensor:
    """One row goes together with any number of rows."""
    try:
        return 2 * x.cumsum(1) + 0 * (x + torch.ones(7, 1, 1)).sum()
    except (RuntimeError, ValueError):
        return x.cumsum(1)


def doubled_by_its_name(x: Tensor) -> Tensor:
    """A length of 1 is a text, and many tokens are asked for beside it alone."""
    return x.cumsum(1) * (2 if str(x.shape[0]) == "1" and x.shape[1] > 3000 else 1)


def doubled_by_a_key(x: Tensor) -> Tensor:
    try:
        many = {1: x.shape[1]}.get(x.shape[0], 0)
    except TypeError:
        many = 0
    return x.cumsum(1) * (2 if many > 3000 else 1)


def doubled_by_a_text_made_elsewhere(x: Tensor) -> Tensor:
    """The standard library makes the text."""
    return x.cumsum(1) * (2 if pformat((x.shape[0],)) == "(1,)" and x.shape[1] > 3000 else 1)


def doubled_where_a_text_is_not_refused(x: Tensor) -> Tensor:
    """No operation raises, but the standard library, of what is no whole number."""
    try:
        one = json.dumps(x.shape[0]) == "1"
    except TypeError:
        one = False
    return x.cumsum(1) * (2 if one and x.shape[1] > 3000 else 1)


def doubled_by_an_int(x: Tensor) -> Tensor:
    """While it is traced a length is none."""
    rows = x.shape[0]
    return x.cumsum(1) * (2 if isinstance(rows, int) and rows == 1 and x.shape[1] > 3000 else 1)  # type: ignore[redundant-expr]


def doubled_where_shapes_go_together(x: Tensor) -> Tensor:
    """No array is at hand where the shapes are refused."""
    try:
        torch.broadcast_shapes((x.shape[0],), (7,))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return x.cumsum(1)
    return x.cumsum(1) * (2 if x.shape[1] > 3000 else 1)


def divided_by_the_other_rows(x: Tensor) -> Tensor:
    """One row has no others, and 0/0 is no number."""
    others = x.shape[0] - 1
    return x.cumsum(1) / others * others


def with_the_spread_of_its_rows(x: Tensor) -> Tensor:
    """The variance of one row is no number."""
    return x.cumsum(1) + x.var(0) - x.var(0)


def with_the_mean_of_later_tokens(x: Tensor) -> Tensor:
    """The mean of none is no number."""
    return x.cumsum(1) + 0 * x[:, 1:].mean(1, keepdim=True)


def scaled_by_the_strides_of_a_copy(x: Tensor) -> Tensor:
    """What lies in order already is not copied, and keeps its strides."""
    return x.cumsum(1) * (x.transpose(0, 1).contiguous().stride(0) / x.shape[0])


def written_where_it_is_a_view(x: Tensor) -> Tensor:
    """What is written to is a copy of more than one row, and of one row it is the row itself."""
    y = x * 1
    y.transpose(0, 1).reshape(-1, WIDTH).mul_(2)
    return y.cumsum(1)


ONE, OTHER = torch.randn(2, 12, WIDTH).unbind()


def traced(call: Call, from_one: bool = True) -> Exported:
    trace = exporting.traced(
        call.code, call.inputs, symbolic(call), call.modules, from_one=from_one
    )
    return exporting.read(trace)


@pytest.mark.parametrize(
    ("call", "kept"),
    [
        (doubled_for_long, {"n": 10}),
        (doubled_for_one_row, {"B": 1}),
        (doubled_for_one_token, {"n": 1}),
        (doubled_for_one_token_of_one_row, {"B": 1, "n": 1}),
        (one_row_of_seven_is_doubled, {"B": 1, "n": 7}),
        (with_another_table, {"B": 1}),
        (one_row_is_dropped, {"B": 1}),
        (one_axis_is_dropped, {"B": 1}),
        (one_axis_is_dropped, {"n": 1}),
        (of_torch, {"B": 1}),
        (unheard, {"B": 1}),
        (doubled_where_it_lies_in_order, {"B": 1}),
        (doubled_where_it_lies_in_order, {"n": 1}),
        (doubled_by_its_strides, {"B": 1}),
        (doubled_where_it_does_not_raise, {"B": 1}),
        (doubled_by_its_name, {"B": 1}),
        (doubled_by_a_key, {"B": 1}),
        (doubled_by_a_text_made_elsewhere, {"B": 1}),
        (doubled_where_a_text_is_not_refused, {"B": 1}),
        (doubled_by_an_int, {"B": 1}),
        (doubled_where_shapes_go_together, {"B": 1}),
        (divided_by_the_other_rows, {"B": 1}),
        (with_the_spread_of_its_rows, {"B": 1}),
        (with_the_mean_of_later_tokens, {"n": 1}),
        (scaled_by_the_strides_of_a_copy, {"n": 1}),
        (written_where_it_is_a_view, {"B": 1}),
        (other_at_12, {"n": 12}),
        (one_row_of_twelve_is_doubled, {"B": 1, "n": 12}),
    ],
)
@pytest.mark.parametrize("from_one", [True, False])
def test_where_it_is_another_function_nothing_is_said(
    call: Callable[[Tensor], Tensor], kept: dict[str, int], from_one: bool
) -> None:
    (one,) = calls_of(Layer(name="l", call=call, embed=WIDTH))
    (graph,) = graphs_of([(one, traced(one, from_one))])
    found = widened(graph, traced, lengths_elsewhere(graph))
    assert is_valid_at(found, {"B": 3, "n": 5})
    assert not is_valid_at(found, {"B": 3, "n": 5, **kept})


def test_what_torch_has_in_python_is_traced_from_one() -> None:
    layer = nn.MultiheadAttention(WIDTH, 2, batch_first=True).eval()
    (one,) = calls_of(Layer(name="l", call=lambda x: layer(x, x, x)[0], embed=WIDTH, module=layer))
    assert {int(r.lower) for r in traced(one).ranges.values()} == {1}


def test_other_code_beyond_a_branch_that_breaks_the_law_is_seen() -> None:
    found = found_of(other_at_12)
    assert found.verdict == "broken"
    assert "n = 12, other code runs" in found.why


TOKENS = Array(size("T", "tokens"))


@pytest.mark.parametrize(
    ("longest", "told"),
    [
        ([(TOKENS * 2, 64), (TOKENS, 50)], ("2·T ≤ 64", "T ≤ 50")),
        ([(TOKENS + 1, 65), (TOKENS, 64)], ("T ≤ 64",)),
        ([(TOKENS + Array(size("S", "tokens")), 64), (TOKENS, 64)], ("S + T ≤ 64",)),
    ],
)
def test_a_bound_is_left_out_only_where_it_follows(
    longest: list[tuple[Array, int]], told: tuple[str, ...]
) -> None:
    assert printed_ranges([], {length.term: n for length, n in longest}) == told
