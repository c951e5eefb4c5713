"""The table of ATen: a row gives the numbers of its operation in a finite field as well.

On terms each row is compared with torch in prove/test_operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.aten import ROWS, row
from attnproof.programs.exact.residues import Residues, unwrapped
from attnproof.programs.exact.rules import FROM_TABLE, RULES, ruled
from attnproof.programs.exact.session import NoMeaning, Pair, Session
from attnproof.programs.prove import prove
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.prove.operations import KINDS
from attnproof.programs.prove.paired_runs import MULTIPLY_ADDS_PER_ENTRY, work_of
from attnproof.programs.subjects import Layer
from tests.cases import each
from tests.numeric.operation_cases import CASES as OPERATIONS
from tests.programs.prove.test_operations import Inputs, operation, parts

A = torch.tensor([[3.0, -1.0, 2.0, 4.0], [0.0, 5.0, -2.0, 1.0]])
B = torch.tensor([[1.0, 2.0, -4.0, 8.0], [2.0, -1.0, 0.5, 4.0]])
W = torch.tensor([[[2.0], [1.0]], [[-1.0], [3.0]], [[0.0], [1.0]]])
SEEN = torch.tensor([[True, False, True, True], [False, True, True, False]])
# Of whole numbers these are fractions of powers of two, which a field has.
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "add.Tensor": ((A, B), {"alpha": 2}),
    "sub.Tensor": ((A, B), {"alpha": 3}),
    "mul.Tensor": ((A, B), {}),
    "div.Tensor": ((A, B), {}),
    "neg.default": ((A,), {}),
    "reciprocal.default": ((B,), {}),
    "pow.Tensor_Scalar": ((B, -3), {}),
    "where.self": ((SEEN, A, B), {}),
    "masked_fill.Scalar": ((A, SEEN, 7.0), {}),
    "sum.dim_IntList": ((A, [1], True), {}),
    "mean.dim": ((A, [1]), {}),
    "var.correction": ((A, [1]), {"correction": 0, "keepdim": True}),
    "var_mean.correction": ((A, [0]), {"correction": 1}),
    "cumsum.default": ((A, 1), {}),
    "cumprod.default": ((A, 1), {}),
    "prod.dim_int": ((B, 0, True), {}),
    "mm.default": ((A, B.mT.contiguous()), {}),
    "convolution.default": ((A[None], W, B[0, :3], [1], [0], [1], False, [0], 1), {}),
    "complex.default": ((A, B), {}),
    "view_as_complex.default": ((A.reshape(2, 2, 2),), {}),
}


def wrong(name: str, rule: Callable[..., Any] | None = None) -> bool:
    """Whether a row gives other residues than those of what torch computes."""
    session, (args, keywords) = Session(), CASES[name]
    word, overload = name.split(".")
    want = getattr(getattr(torch.ops.aten, word), overload)(*args, **keywords)
    given = [
        session.constant(x) if isinstance(x, Tensor) and x.is_floating_point() else x for x in args
    ]
    found = (
        ruled(word, session, given, keywords)
        if rule is None
        else unwrapped(rule(Residues(session), *given, **keywords))
    )
    parts = zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]
    return not all(_same(session, a, b) for a, b in parts)


def _same(session: Session, found: Any, want: Tensor) -> bool:
    if isinstance(found, Pair):
        return _same(session, found.real, want.real) and _same(session, found.imag, want.imag)
    return bool(torch.equal(session.field(found).top, session.constant(want).top))


@each(sorted(CASES))
def test_a_row_gives_the_residues_of_its_operation(name: str) -> None:
    assert not wrong(name)


WRONG: dict[str, Callable[..., Any]] = {
    "sub.Tensor": lambda xp, a, b, **_: xp.number(b) - xp.number(a),
    "div.Tensor": lambda xp, a, b: xp.number(b) / xp.number(a),
    "var.correction": lambda xp, x, axes, **_: ROWS["aten.var.correction"].function(
        xp, x, axes, correction=1, keepdim=True
    ),
    "masked_fill.Scalar": lambda xp, x, seen, value: xp.where(seen, x, value),
    "cumsum.default": lambda xp, x, axis: xp.sum(xp.number(x), axis=(axis,), keepdims=True),
    "cumprod.default": lambda xp, x, axis: xp.cumulative_sum(xp.number(x), axis=axis),
    "prod.dim_int": lambda xp, x, axis, keepdim: xp.sum(xp.number(x), (axis,), keepdim),
    "view_as_complex.default": lambda xp, x: xp.pair(xp.number(x)[..., 1], xp.number(x)[..., 0]),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_row_is_noticed(name: str) -> None:
    assert wrong(name, WRONG[name])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (lambda x: x.cumprod(1), "a product along an axis of a length that is n"),
        (lambda x: x * x.repeat(1, 1, 17).prod(-1, keepdim=True), "a product of 68 numbers"),
        (lambda x: x * x.argmax(-1, keepdim=True), "aten.argmax.default"),
    ],
)
def test_a_product_or_choice_without_a_reading_is_told_in_words(code: Any, told: str) -> None:
    found = prove(Layer(name="layer", call=code, embed=4, positional=True), ["rows-of-batch-apart"])
    assert not [one for one in found.findings if one.verdict == "holds"]
    assert told in " ".join((found.why, *found.unread))


def test_what_is_read_from_the_table_stands_there() -> None:
    assert set(FROM_TABLE) <= {name.split(".")[1] for name in ROWS}
    assert set(FROM_TABLE) <= set(RULES)


SUMMED: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "a product": (lambda x: x @ torch.ones(5, 7), 5),
    "a linear map": (lambda x: torch.nn.functional.linear(x, torch.ones(7, 5)), 5),
    "a sum with a product": (lambda x: torch.addmm(torch.ones(7), x, torch.ones(5, 7)), 5),
    "no product": (lambda x: x + torch.ones(5), 0),
}


@pytest.mark.parametrize("name", sorted(SUMMED))
def test_the_cost_of_an_entry_is_what_is_summed_for_it(name: str) -> None:
    code, summed = SUMMED[name]
    graph = read(traced(code, (torch.ones(3, 5),), ((True, False),)))
    rows = str(graph.shapes[0][0])
    work = work_of(graph)
    entries = code(torch.ones(1, 5)).numel()
    assert work({rows: 1011}) - work({rows: 11}) == 1000 * entries * (
        1 + summed / MULTIPLY_ADDS_PER_ENTRY
    )


MOVES = sorted(n for n, kind in KINDS.items() if kind == "moves" and n in OPERATIONS)


@each(MOVES)
def test_what_moves_entries_computes_none(name: str) -> None:
    for case in OPERATIONS[name]:
        inputs = Inputs({"n": 2, "m": 3})
        for a in case.args:
            inputs.term(a)
        drawn = list(inputs.values.values())
        values = iter(drawn)
        args = [inputs.number(a, values) for a in case.args]
        made = (case.code or operation(name))(*args, **case.keywords)
        given = {float(x) for value in drawn for x in value.flatten()}
        given |= {float(x) for x in (*case.args, *case.keywords.values()) if isinstance(x, float)}
        new = {float(x) for part in parts(made) for x in part.flatten()} - given
        assert all(x.is_integer() for x in new), new  # as it counts, or writes down 0 or 1


def test_an_operation_has_one_row() -> None:
    with pytest.raises(ValueError, match="two rows"):
        row("rows", "aten.add.Tensor")(lambda xp, a, b: xp.number(a) + b)


def test_of_known_numbers_alone_torch_has_computed_what_a_field_refuses() -> None:
    session, keywords = Session(), {"rounding_mode": "floor"}
    assert ruled("div", session, (A, B), keywords) is None
    with pytest.raises(NoMeaning):
        ruled("div", session, (session.constant(A), B), keywords)
