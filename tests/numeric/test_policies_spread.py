"""How independent rounding errors spread, against real roundings: never more than the bound."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.attention_bound import AttentionBound
from attnproof.numeric.error_analysis import Rounded
from attnproof.numeric.policies.weights import attention_spread, softmax_spread
from attnproof.numeric.profile import profile_of
from attnproof.numeric.sample import SmoothFunction
from attnproof.numeric.spread import LAMBDA, multiplicity, sources

CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
WIDTH = 64


def drawn(seed: int, dtype: torch.dtype, *shape: int, scale: float = 1.0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * scale).to(dtype)


def arithmetic(dtype: torch.dtype) -> Arithmetic:
    return Arithmetic(profile_of(dtype, CPU), spreads=True)


def repeated(xp: Any, x: Any, rows: int) -> Any:
    """The first row of x, as many times."""
    if isinstance(xp, Arithmetic):
        return xp.broadcast_to(x[:1], (rows, x.shape[-1]))
    return x[:1].expand(rows, x.shape[-1])


def softmax(xp: Any, x: Any) -> Any:
    return softmax_spread(x) if isinstance(xp, Arithmetic) else torch.softmax(x, -1)


def twice(x: Any, how: Any) -> Any:
    return how(x, x)


OPERATIONS: dict[str, Any] = {
    "chain of products": lambda _, a, b: ((a @ b) @ a) @ b,
    "sum": lambda _, a, b: (a * b).sum(0),
    "with itself": lambda _, a, b: twice(a * b, lambda x, y: x + y),
    "gram": lambda _, a, b: twice(a * b, lambda x, y: x @ y.mT),
    "sum of squares": lambda _, a, b: twice(a * b, lambda x, y: (x * y).sum(-1)),
    "repeated": lambda xp, a, b: repeated(xp, a * b, 256).sum(0),
    "repeated and scaled": lambda xp, a, _: (repeated(xp, a, 256) * 0.3).sum(0),
    "both halves": lambda xp, a, b: twice(a * b, lambda x, y: xp.concat((x, y), axis=0)).sum(0),
    "norm": lambda xp, a, b: twice(a * b, lambda x, y: x / xp.sqrt((y * y).sum(-1))[..., None]),
    "softmax": lambda xp, a, b: softmax(xp, (a @ b) * 0.125) @ b,
    "exp": lambda xp, a, b: xp.exp(a * b).sum(-1),
    "tanh": lambda xp, a, b: xp.tanh(a @ b * 0.1) @ a,
    "quotient": lambda _, a, b: (a / (b * b + 1)).sum(-1),
    "power": lambda _, a, b: ((a + b) ** 3).sum(0),
    "rotation": lambda xp, a, b: xp.cos(b) * (a * b) - xp.sin(b) * (a * b),
}


class Torch:
    """The names of the array API on torch."""

    cos, sin, exp, tanh, sqrt = torch.cos, torch.sin, torch.exp, torch.tanh, torch.sqrt

    @staticmethod
    def concat(arrays: Any, axis: int) -> Any:
        return torch.cat(arrays, dim=axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_errors_stay_within_the_spread(name: str, dtype: torch.dtype) -> None:
    how, numbers, worst = OPERATIONS[name], arithmetic(dtype), 0.0
    for seed in range(6):
        a, b = drawn(seed, dtype, WIDTH, WIDTH), drawn(seed + 1000, dtype, WIDTH, WIDTH)
        bound = how(numbers, numbers.exact(a.double()), numbers.exact(b.double()))
        error = (how(Torch, a, b).double() - bound.value).abs()
        worst = max(worst, float((error / bound.probable_radius()).max()))
        assert bool((bound.smallest_radius() <= bound.error()).all())
    assert worst <= 1, f"{name} in {dtype}: error {worst:.2f} times what it should spread"
    assert worst > 1e-3, f"{name} in {dtype}: the bound is {1 / worst:.0f} times the error"


def quadrature(x: Rounded, copies: int) -> float:
    """What a calculus without sources says of a sum of copies of one entry: λ √copies σ."""
    own = x.sigma()
    assert own is not None
    return LAMBDA * math.sqrt(copies) * float(own.max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_copies_of_one_error_do_not_cancel(dtype: torch.dtype) -> None:
    """One rounding, repeated 4,096 times and summed exactly, is 4,096 times itself."""
    numbers, copies = arithmetic(dtype), 4096
    a, b = drawn(3, dtype, WIDTH), drawn(4, dtype, WIDTH)
    product = numbers.exact(a.double()) * numbers.exact(b.double())
    shape = (copies, WIDTH)
    summed = numbers.broadcast_to(product[None, :], shape).sum(0)
    error = ((a * b).double() - product.value).abs() * copies
    assert bool((error <= summed.probable_radius()).all())
    assert float(error.max()) > quadrature(product, copies)


def test_an_array_added_to_itself_has_twice_the_error() -> None:
    numbers = arithmetic(torch.bfloat16)
    a, b = (numbers.exact(drawn(k, torch.bfloat16, WIDTH).double()) for k in range(2))
    x, y = a * b, a * b
    doubled, other = (x + x)[...], (x + y)[...]
    (part,) = x.parts
    assert torch.equal(doubled.parts[0].sigma, 2 * part.sigma)
    assert len(other.parts) == 3  # those of x, of y, and of storing
    rotated = x + x[torch.arange(WIDTH - 1, -1, -1)]
    assert rotated.shared is not None


def test_roundings_of_equal_numbers_are_not_independent() -> None:
    numbers = arithmetic(torch.bfloat16)
    x = numbers.exact(drawn(0, torch.float64, WIDTH))
    assert (x * 0.3).parts
    few = numbers.exact(torch.tensor([1.0, 2.0, 1.0, 3.0], dtype=torch.float64)) * 0.3
    own = few.value * 2**-8 + numbers.profile.least
    assert torch.allclose(few.parts[0].sigma, own * 2**0.5)
    same = numbers.broadcast_to(x[:1], (WIDTH,)) * 0.3
    assert not same.parts
    assert same.shared is not None
    assert multiplicity(torch.tensor([1.0, 2.0, -1.0])) == 2
    assert multiplicity(torch.tensor([1.0, 2.0, 0.0, 0.0])) == 1
    assert multiplicity(torch.tensor([math.nan] * 4 + [math.inf] * 4 + [3.0, 1.0, -3.0, 3.0])) == 3
    taken = numbers.take(x * 0.3, torch.tensor([0, 1, 1, 2]), axis=0)
    assert not taken.parts


@pytest.mark.parametrize("shape", [(12, 5), (48, 300), (2, 48, 300)])
def test_equal_numbers_in_different_parts_of_an_array_are_counted(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parts = [x[..., k : k + 4, :] for k in range(0, shape[-2], 4)]
    assert multiplicity(*parts) == multiplicity(x) == 1
    for k in range(3):  # the same row in three parts
        x[..., 5 * k, :] = x[..., -1, :]
    assert multiplicity(*parts) == multiplicity(x) == 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_attention_stays_within_its_spread(dtype: torch.dtype, shift: float) -> None:
    numbers, worst, gain = arithmetic(dtype), 0.0, 0.0
    for seed in range(5):
        q, k, v = (drawn(seed * 3 + i, dtype, 300, 32, scale=1.5) for i in range(3))
        v = v + shift
        bound = attention_spread(AttentionBound(), *(numbers.exact(x.double()) for x in (q, k, v)))
        found = torch.nn.functional.scaled_dot_product_attention(
            q[None, None], k[None, None], v[None, None]
        )[0, 0]
        error = (found.double() - bound.value).abs()
        worst = max(worst, float((error / bound.probable_radius()).max()))
        gain = max(gain, float((bound.error() / bound.probable_radius()).median()))
    assert worst <= 1
    if dtype == torch.float32:  # where storing the output is not most of the error
        assert gain > 1.2, "it is no tighter than the deterministic bound"


def test_a_wrong_scale_leaves_the_spread() -> None:
    numbers = arithmetic(torch.float32)
    q, k, v = (drawn(i, torch.float32, 300, 32, scale=1.5) for i in range(3))
    bound = attention_spread(AttentionBound(), *(numbers.exact(x.double()) for x in (q, k, v)))
    found = torch.nn.functional.scaled_dot_product_attention(
        q[None, None], k[None, None], v[None, None], scale=1.001 / math.sqrt(32)
    )[0, 0]
    assert bool(((found.double() - bound.value).abs() > bound.smallest_radius()).any())


def test_unknown_code_has_its_deterministic_radius() -> None:
    numbers = arithmetic(torch.float32)
    value, radius = torch.ones(3, dtype=torch.float64), torch.full((3,), 0.5, dtype=torch.float64)
    assert torch.equal(numbers.rounded(value, radius, 0.0, exact=True).smallest_radius(), radius)


def broadcast(xp: Arithmetic, x: Rounded, times: int) -> tuple[Rounded, Rounded]:
    """Each row so many times: in views, and written out."""
    rows, width = x.shape
    views = xp.broadcast_to(x[:, None], (rows, times, width))
    written = Rounded(xp, views.value.clone(), views.error().clone(), x.unit)
    written.shared = views.shared if views.shared is None else views.shared.clone()
    written.distinct = views.distinct
    return views, written


@pytest.mark.parametrize("spreads", [True, False])
@pytest.mark.parametrize("times", [2, 300])
def test_a_product_of_repeated_rows_is_that_of_the_rows_written_out(
    times: int, *, spreads: bool
) -> None:
    xp = Arithmetic(profile_of(torch.float32, CPU), spreads=spreads)
    x, weight = (xp.exact(drawn(k, torch.float64, 40, 40)) for k in range(2))
    views, written = (rows @ weight for rows in broadcast(xp, x * 0.3, times))
    assert views.value.stride(1) == 0, "each row was multiplied once"
    assert written.value.stride(1) != 0
    assert views.value.shape == written.value.shape
    torch.testing.assert_close(views.value, written.value)
    torch.testing.assert_close(views.error(), written.error())
    torch.testing.assert_close(views.probable_radius(), written.probable_radius())
    assert len(views.parts) == len(written.parts)
    torch.testing.assert_close(
        (views + 1).sum(1).probable_radius(), (written + 1).sum(1).probable_radius()
    )


def test_what_is_read_again_has_the_same_errors_and_roundings_of_its_own() -> None:
    xp = arithmetic(torch.float32)
    function = SmoothFunction("f", (1,), (1,), (), 0, xp.exact)
    x = xp.exact(drawn(0, torch.float64, 2, 200, 8)) * 0.3
    first, second = function(x[:1]), function(x[:1])
    assert len(function.last) == 1
    assert torch.equal(first.value, second.value)
    assert torch.equal(first.smallest_radius(), second.smallest_radius())
    assert first.parts
    assert not sources(first) & sources(second)
    other = function(x[1:])  # of the same shape, and another array
    assert not torch.equal(first.value, other.value)
    fresh = SmoothFunction("f", (1,), (1,), (), 0, xp.exact)(x[1:])
    assert torch.equal(other.value, fresh.value)
    assert torch.equal(other.smallest_radius(), fresh.smallest_radius())


@pytest.mark.parametrize("spoilt", ["", "two entries in a row", "infinite"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_product_that_selects_rows_or_columns_is_the_product(
    side: str, spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = arithmetic(torch.bfloat16)
    matrix = torch.eye(WIDTH, dtype=torch.float64)[torch.arange(WIDTH).flip(0)]
    matrix[3] *= -2
    matrix[5] = 0
    matrix[7, 8] += spoilt == "two entries in a row"
    x = drawn(0, torch.float64, WIDTH, WIDTH)
    x[0, 0] = math.inf if spoilt == "infinite" else 1.0

    def product() -> Rounded:
        chosen, other = numbers.exact(matrix), numbers.exact(x) * 0.3
        return chosen @ other if side == "left" else other @ chosen

    found = product()
    assert (torch.matmul is numbers.exact(matrix)._times(numbers.exact(x))) == bool(spoilt)
    monkeypatch.setattr(Rounded, "_times", lambda *_: torch.matmul)
    wanted = product()
    for ours, theirs in (
        (found.value, wanted.value),
        (found.error(), wanted.error()),
        (found.smallest_radius(), wanted.smallest_radius()),
    ):
        assert torch.allclose(ours, theirs, rtol=1e-12, equal_nan=True)
