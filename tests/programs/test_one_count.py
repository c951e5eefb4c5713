"""Biases that know one count: of few queries they are the last rows, and no law mistakes that."""

from collections.abc import Callable

import pytest
from torch import Tensor

from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Bias
from attnproof.testing import check_bias

from ..numeric import one_count_code as code

LAWS = ["offset-only", "last-rows"]


@pytest.mark.parametrize("made", code.PROVED, ids=lambda made: made.__name__)
def test_laws_of_correct_ones_are_proved(made: Callable[..., Tensor]) -> None:
    record = check_bias(made, LAWS, methods=["measured", "traced"])
    assert [(law.law, law.verdict) for law in record.laws] == [(law, "proved") for law in LAWS]


def test_keys_hidden_by_infinity_on_both_sides_are_no_difference() -> None:
    record = check_bias(code.signed, LAWS)
    assert [law.verdict for law in record.laws] == ["exact", "exact"]


def test_one_that_looks_at_more_than_the_offset_is_still_broken() -> None:
    record = check_bias(code.last_row_is_steeper, ["offset-only"])
    assert record.law("offset-only").verdict == "broken"
    assert check_bias(code.last_row_is_steeper, ["offset-only"], methods=["traced"]).broken


@pytest.mark.parametrize("made", [code.eight_bias, code.eight_last_bias])
def test_the_heads_of_code_that_is_not_told_how_many(made: Callable[..., Tensor]) -> None:
    subject = adapted_as(made)
    assert isinstance(subject, Bias)
    assert subject.heads == 8
    record = check_bias(
        made, ["slopes-as-declared"], declared="bias:name=alibi,heads=8", methods=["measured"]
    )
    assert record.law("slopes-as-declared").why == "all 8 slopes are as declared"
