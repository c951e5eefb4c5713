"""Code over finite fields: what has no meaning there is named, and no more said than holds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.exact import exact
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Rotary, Subject
from attnproof.theorems.laws import LAWS

from . import exact_code as code
from .exact_asked import of, verdict
from .exact_attention_code import attention


def test_a_convolution_of_one_place_is_a_product_at_every_place() -> None:
    def convolved(width: int) -> Layer:
        weight, bias = torch.randn(4, 4, width), torch.randn(4)

        def call(x: Tensor) -> Tensor:
            moved = x.transpose(1, 2)
            return nn.functional.conv1d(moved, weight.to(x), bias.to(x), padding="same").mT

        return Layer(name="convolved", call=call, embed=4)

    assert verdict(convolved(1), "permutation") == "holds"
    assert verdict(convolved(1), "rows-of-batch-apart") == "holds"
    found = of(convolved(3), "permutation")["permutation"]
    assert (found.verdict, found.why) == (
        "not asked",
        "a convolution wider than one place is not supported in a finite field",
    )


def test_an_operation_without_meaning_is_named() -> None:
    sort = Layer(name="sort", call=lambda x: x.sort(1).values, embed=4)
    found = of(sort, "permutation")["permutation"]
    assert found.verdict == "not asked"
    assert found.why == "torch.sort has no meaning in a finite field"
    choose = Layer(name="choose", call=lambda x: x if x.sum() > 0 else -x, embed=4)
    why = of(choose, "permutation")["permutation"].why
    assert why == "torch.gt has no meaning in a finite field"
    read = Layer(name="read", call=lambda x: x * float(x[0, 0, 0]), embed=4)
    why = of(read, "permutation")["permutation"].why
    assert why == "reading a number out of a tensor has no meaning in a finite field"


def test_a_bias_of_windows_is_not_asked_and_fails_by_no_fault_of_ours() -> None:
    """Its calls are told how large a window is, where it is measured."""

    def window(rows: int, columns: int) -> Tensor:
        return torch.zeros(1, rows * columns, rows * columns)

    by_index = Bias(name="bias", heads=1, index=lambda sizes: window(*sizes)[0].long())
    for subject in (Bias(name="bias", heads=1, window=window), by_index):
        found = of(subject, "offset-only")["offset-only"]
        assert found.verdict == "not asked"
        assert "by measurement" in found.why


def test_what_the_field_does_not_know_is_not_called_broken() -> None:
    def norm(x: Tensor) -> Tensor:  # the square of a root, which the field does not know
        square = x.pow(2).sum(-1, keepdim=True)
        return x * torch.rsqrt(square).pow(2) * square

    def path(x: Tensor) -> Tensor:
        return x * 1

    both = Attention(name="roots", layer=norm, paths={"plain": path}, embed=4)
    found = of(both, "paths-agree")["paths-agree"]
    assert found.verdict == "undecided"
    assert "does not know all relations" in found.why


def test_whole_numbers_may_be_read_out_of_a_tensor() -> None:
    def call(x: Tensor) -> Tensor:
        order = torch.arange(x.shape[1]).tolist()
        return torch.stack([x[:, i] for i in order], 1) * int(torch.arange(3).max())

    assert verdict(Layer(name="lists", call=call, embed=4), "permutation") == "holds"
    listed = Layer(name="listed", call=lambda x: torch.tensor(x.tolist()), embed=4)
    why = of(listed, "permutation")["permutation"].why
    assert why == "reading numbers out of a tensor has no meaning in a finite field"


def test_code_that_asks_for_contiguous_tensors_gets_them() -> None:
    def call(x: Tensor) -> Tensor:
        return x.view(-1, x.shape[-1]).view(x.shape)

    layer = Layer(name="view", call=call, embed=4)
    assert verdict(layer, "rows-of-batch-apart") == "holds"


def test_a_sum_of_few_numbers_in_every_place_may_be_written_to() -> None:
    def rotated(x: Tensor, positions: Tensor, last: float = 0.1) -> Tensor:
        angles = positions[:, None, :, None] + torch.zeros(2)
        angles *= torch.tensor([1.0, last])
        a, b = x.chunk(2, -1)
        return torch.cat(
            (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1
        )

    assert verdict(Rotary(name="rotated", rotate=rotated, width=4), "relative") == "holds"
    other = Rotary(name="other", rotate=rotated, key=lambda x, p: rotated(x, p, 0.2), width=4)
    assert verdict(other, "relative") == "broken"


def test_what_raises_is_undecided_and_told() -> None:
    def call(x: Tensor) -> Tensor:
        raise RuntimeError(f"no such thing as {x.ndim} axes")

    found = of(Layer(name="raises", call=call, embed=4), "permutation")["permutation"]
    assert found.verdict == "undecided"
    assert "no such thing" in found.why


def test_a_refusal_that_the_code_hides_in_another_error_is_still_told() -> None:
    def call(x: Tensor) -> Tensor:
        try:
            return x.sort(1).values
        except Exception:  # noqa: BLE001
            raise ValueError("something went wrong") from None

    found = of(Layer(name="hides", call=call, embed=4), "permutation")["permutation"]
    assert found.why == "torch.sort has no meaning in a finite field"


def test_nothing_stays_behind_in_the_module() -> None:
    class Caching(nn.Module):
        cos: Any = None

        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            if self.cos is None:
                angles = torch.arange(64)[:, None] * code.FREQUENCIES
                self.cos, self.sin = (torch.cat([t, t], -1) for t in (angles.cos(), angles.sin()))
            cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
            found: Tensor = x * cos + code.half(x) * sin
            return found

    module = Caching()
    x, at = torch.randn(1, 2, 3, code.D), torch.arange(3)[None]
    assert verdict(code.rotary(module, module=module, most=63), "relative") == "holds"
    assert module.cos is None
    assert type(module(x, at)) is Tensor


def test_copies_carry_what_was_carried() -> None:
    def call(x: Tensor) -> Tensor:
        found: Tensor = 2 * x - copy.deepcopy(x)
        return found

    same = Attention(name="copy", layer=call, paths={"itself": lambda x: x}, embed=4)
    assert verdict(same, "paths-agree") == "holds"


def test_what_stays_behind_elsewhere_is_numbers() -> None:
    seen: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        seen.append(x)
        return x + (seen[0] * 0).sum()

    assert verdict(Layer(name="keeps", call=call, embed=4), "permutation") in ("holds", "undecided")
    assert type(seen[0] + 1) is Tensor
    assert torch.isfinite(seen[0] + 1).all()


def test_the_chance_of_a_false_law_is_told_where_it_is_known() -> None:
    assert "Schwartz–Zippel" in of(code.rotary(), "norm")["norm"].why
    assert "no bound is known" in of(attention(), "order-of-keys")["order-of-keys"].why
    assert "no bound is known" in of(code.rotary(code.written_in), "norm")["norm"].why


def test_findings_come_in_the_order_of_laws_and_are_told() -> None:
    heard: list[Finding] = []
    found = exact(code.rotary(), ["norm", "relative", "grid-steps"], tell=heard.append)
    assert [f.law for f in found] == ["relative", "norm", "grid-steps"]
    assert list(found) == heard
    assert found[2].verdict == "not asked"
    assert {f.method for f in found} == {"exact"}
    assert exact(code.rotary(), ["norm"], seed=3)[0].seed == 3


def test_every_law_is_known_by_its_name() -> None:
    for law in LAWS:
        for formula in law.formulas:
            assert formula.id == law.id
            assert formula.kind in law.about


# what holds of any code, or of one length alone, is not said to hold exactly


VANISHES = "channels vanish"
FIXED = "both sides are the same for all inputs"
WIDTH = 8


def rotary(rotate: Callable[[Tensor, Tensor], Tensor]) -> Rotary:
    return Rotary(name="rotate", rotate=rotate, width=WIDTH, heads=2)


def vanishing(x: Tensor, positions: Tensor) -> Tensor:
    """p N x with N N = 0."""
    u, _ = x.chunk(2, -1)
    return torch.cat((0 * u, positions[:, None, :, None] * u), -1)


def nothing(*given: Tensor | None) -> Tensor:
    first, *_ = given
    assert first is not None
    return first * 0


TRIVIAL: dict[str, tuple[Subject, tuple[str, ...]]] = {
    "rotary of powers that vanish": (rotary(vanishing), ("composition", "identity-at-zero")),
    "rotary of zeros": (
        rotary(nothing),
        (
            "relative",
            "composition",
            "linear",
            "identity-at-zero",
            "every-head-alike",
            "follows-its-ids",
            "rows-of-batch-apart",
        ),
    ),
    "attention of zeros": (
        Attention(name="a", attend=nothing, heads=4, groups=4, width=4),
        ("order-of-keys", "shift-of-scores", "heads-apart", "causal", "permutation"),
    ),
    "a layer of zeros": (
        Layer(name="zero", call=lambda x: x * 0, embed=6),
        ("permutation", "rows-of-batch-apart"),
    ),
}


@pytest.mark.parametrize(
    ("subject", "law"),
    [(subject, law) for subject, laws in TRIVIAL.values() for law in laws],
    ids=[f"{name}: {law}" for name, (_, laws) in TRIVIAL.items() for law in laws],
)
def test_zeros_on_both_sides_are_no_law(subject: Subject, law: str) -> None:
    (found,) = exact(subject, [law])
    assert found.verdict == "not asked", found.why
    # what asks for a softmax first has its own reason
    assert FIXED in found.why or VANISHES in found.why or law == "shift-of-scores"


def test_a_vector_that_becomes_0_at_position_0_has_not_stayed() -> None:
    for rotate in (vanishing, nothing):
        (found,) = examine(rotary(rotate), (Draw(),), ("identity-at-zero",))
        assert found.verdict == "broken", found.why


def distance(queries: int, keys: int) -> Tensor:
    return torch.arange(keys) - torch.arange(keys)[keys - queries :, None]


def bias(how: Callable[[int, int], Tensor]) -> Bias:
    return Bias(
        name="b", bias=lambda t, s: how(t, s) * torch.tensor([0.5, 0.25])[:, None, None], heads=2
    )


def of_one_length(queries: int, keys: int) -> Tensor:
    if keys != 5:
        raise ValueError("five keys")
    return distance(queries, keys)


def test_a_bias_is_asked_at_two_lengths() -> None:
    assert verdict(bias(distance), "offset-only") == "holds"
    assert verdict(bias(lambda t, s: distance(t, s) * s), "offset-only") == "broken"
    divided = bias(lambda t, s: distance(t, s) * (8 / torch.ones(s).sum()))
    assert verdict(divided, "offset-only") != "holds"
    (found,) = exact(bias(of_one_length), ["offset-only"])
    assert found.verdict == "not asked"
    assert "one length" in found.why


@pytest.mark.parametrize("law", ["offset-only", "last-rows"])
def test_of_a_bias_that_is_one_number_nothing_is_said(law: str) -> None:
    (found,) = exact(bias(lambda t, s: 0 * distance(t, s)), [law])
    assert found.verdict == "not asked"
    assert "the bias is 0 everywhere" in found.why


def sines(length: float = 0.0) -> Additive:
    def add(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        angles = places[:, None] * torch.tensor([1.0, 0.01])
        rows = torch.cat((angles.sin(), angles.cos()), -1)
        return x + rows * (1 + length * x.shape[1])

    return Additive(name="sines", added=add, width=4)


def test_a_table_is_asked_at_two_lengths() -> None:
    assert verdict(sines(), "products-of-offset") == "holds"
    assert verdict(sines(1.0), "products-of-offset") != "holds"
