"""Torch readings: whole, by rows, in pieces, and against the definitions run on tensors."""

from dataclasses import replace
from typing import Any

import array_api_compat.torch as xp
import pytest
import torch
from array_api_compat import array_namespace

from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.devices import DeviceAbsent, UnknownDtype, chosen, devices, dtype_named
from attnproof.numeric.implementations.eager import SOFTMAX
from attnproof.numeric.profile import profile_of
from attnproof.numeric.row_selection import Rows, TooLarge
from attnproof.numeric.sample import distance, draw
from attnproof.numeric.scale import UnknownScale, scale_named, sizes_of
from attnproof.numeric.task import drawn
from attnproof.numeric.torch_reading import BoundReading, TorchReading, laid_out
from attnproof.symbolic.claim import equal, iterate
from attnproof.symbolic.givens import (
    boolean,
    frequencies,
    function,
    index_map,
    injection,
    permutation,
    positions,
    real,
    sizes,
)
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import (
    attention,
    causal,
    masked_attention,
    permutation_matrix,
)
from attnproof.theorems.definitions.positions import sinusoidal
from attnproof.theorems.definitions.rotary import block_rotation, rotate, rotate_half

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")
(H,) = sizes("H", "heads")
(B,) = sizes("B", "blocks")
(L,) = sizes("L", "layers")
GIVENS = {
    "Q": real(r, ell),
    "K": real(n, ell),
    "V": real(n, d),
    "M": boolean(r, n),
    "X": real(r, 2 * B),
    "Y": real(n, 2 * B),
    "p": positions(r),
    "q": positions(n),
    "omega": frequencies(B),
    "sigma": permutation(n),
    "tau": permutation(r),
    "W": real(H, ell, d),
    "f": function(2, 0, out=None, traits=("equivariant",)),
}
A = {name: given.named(name) for name, given in GIVENS.items()}
CPU = torch.device("cpu")


def softmax_by_heads() -> Any:
    heads = (A["Q"] @ A["W"]) @ (A["K"] @ A["W"]).mT
    weights = xp_softmax(heads)
    return (weights @ A["V"]).reshape(H * r, d)


def xp_softmax(scores: Any) -> Any:
    from attnproof.theorems.definitions.attention import softmax

    return softmax(scores)


TERMS = {
    "attention": attention(A["Q"], A["K"], A["V"]),
    "permuted": attention(A["Q"][A["tau"]], A["K"][A["sigma"]], A["V"][A["sigma"]]),
    "rows moved after": attention(A["Q"], A["K"], A["V"])[A["tau"]],
    "masked": masked_attention(A["Q"], A["K"], A["V"], A["M"]),
    "causal": masked_attention(A["K"], A["K"], A["V"], causal(A["K"])),
    "rotary": rotate(A["X"], A["p"], A["omega"]) @ rotate(A["Y"], A["q"], A["omega"]).mT,
    "half-split": rotate_half(A["X"], A["p"], A["omega"]),
    "sinusoidal": sinusoidal(A["p"], A["omega"]) @ block_rotation(A["omega"]),
    "heads": softmax_by_heads(),
    "sliced": A["X"][:, 0::2] * A["p"][:, None] + 1 / (2 + A["p"][:, None] ** 2),
    "stack": iterate(L, A["K"], lambda t, y: y + A["f"](y, t)),
}


def reading(dtype: torch.dtype = torch.float64, entries: Any = 1 << 20, **changes: Any) -> Any:
    statement = Statement(GIVENS, {"": equal(A["Q"], A["Q"])})
    scale = scale_named("small")
    lengths = {"r": 9, "n": 13, "ell": 8, "d": 6, "H": 3, "B": 4, "L": 2} | changes
    sample = draw(statement, lengths, scale, 5)
    return TorchReading(lengths, sample.in_dtype(dtype, CPU), dtype, CPU, entries=entries)


@pytest.mark.parametrize("name", TERMS)
def test_rows_are_rows_of_the_whole(name: str) -> None:
    term = TERMS[name].term
    whole = reading()(term)
    for axis, length in enumerate(whole.shape):
        places = torch.tensor([length - 1, 0, length // 2])
        where = tuple(Rows(places) if k == axis else None for k in range(term.ndim))
        found = reading().read(term, where)
        torch.testing.assert_close(found, whole.index_select(axis, places))


@pytest.mark.parametrize("name", TERMS)
def test_pieces_are_the_whole(name: str) -> None:
    term = TERMS[name].term
    torch.testing.assert_close(reading(entries=20)(term), reading()(term))


def permuted_bounds(name: str, map_: Any) -> tuple[Any, Any, bool]:
    """Bounds of X P or Pᵀ Y at few places, and of the whole; was all of X or Y read for the few?"""
    givens = {"X": real(ell, d), "W": real(d, n), "Y": real(n, d), "s": map_}
    x, w, y, s = (given.named(key) for key, given in givens.items())
    factor, p = (x @ w if name == "X P" else y @ w[:, :40]), permutation_matrix(s)
    side = factor @ p if name == "X P" else p.mT @ factor
    axis = 1 if name == "X P" else 0
    statement = Statement(givens, {"": equal(side, side)})
    sample = draw(statement, {"n": 300, "ell": 20, "d": 18}, scale_named("small"), 3)
    arithmetic = Arithmetic(profile_of(torch.float32, CPU), spreads=True)
    few, whole = (
        BoundReading(sample.sizes, sample.with_radii(arithmetic, CPU), arithmetic) for _ in "ab"
    )
    places = torch.arange(0, 300, 9)
    where = tuple(Rows(places) if k == axis else None for k in range(2))
    found = few.read(side.term, where)
    return found, arithmetic.take(whole(side.term), places, axis), factor.term in few.known


@pytest.mark.parametrize("name", ["X P", "Pᵀ Y"])
def test_of_what_is_permuted_only_the_places_asked_for_are_read(name: str) -> None:
    found, whole, known = permuted_bounds(name, permutation(n))
    assert not known
    torch.testing.assert_close(found.value, whole.value)
    torch.testing.assert_close(found.error(), whole.error(), rtol=1e-9, atol=0)
    assert bool((found.smallest_radius() <= whole.smallest_radius() * (1 + 1e-9)).all())
    assert bool((found.smallest_radius() > 0).all())


@pytest.mark.parametrize("name", ["X P", "Pᵀ Y"])
def test_a_matrix_that_takes_a_place_twice_is_multiplied_with(name: str) -> None:
    found, whole, known = permuted_bounds(name, index_map(n, n))
    assert known
    torch.testing.assert_close(found.value, whole.value)
    torch.testing.assert_close(found.smallest_radius(), whole.smallest_radius(), rtol=1e-9, atol=0)


def test_the_rows_test_can_fail() -> None:
    term = TERMS["permuted"].term
    found = reading().read(term, (Rows(torch.tensor([0, 1])), None))
    assert not torch.allclose(found, reading()(term)[:2].flip(0))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_walk_runs_the_definition(dtype: torch.dtype) -> None:
    walk = reading(dtype)
    v = walk.values
    torch.testing.assert_close(
        walk(TERMS["attention"].term), attention(v["Q"], v["K"], v["V"]), rtol=5e-2, atol=5e-2
    )
    if dtype == torch.float64:
        direct = masked_attention(v["Q"], v["K"], v["V"], v["M"])
        torch.testing.assert_close(walk(TERMS["masked"].term), direct)
        rotated = rotate_half(v["X"], v["p"], v["omega"])
        torch.testing.assert_close(walk(TERMS["half-split"].term), rotated)
        direct = sinusoidal(v["p"], v["omega"]) @ block_rotation(v["omega"])
        torch.testing.assert_close(walk(TERMS["sinusoidal"].term), direct)


def test_results_keep_the_dtype() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for name, array in TERMS.items():
            assert reading(dtype)(array.term).dtype == dtype or name == "sliced"


def test_positions_stay_exact_in_bfloat16() -> None:
    values = reading(torch.bfloat16).values
    assert values["p"].dtype == torch.float32
    assert (values["p"] == reading().values["p"]).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_with_a_selection_are_laid_out_to_be_fast_and_change_no_bit(
    dtype: torch.dtype,
) -> None:
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(256, 256, generator=generator).to(dtype)
    dense[0, :3] = torch.tensor([-0.0, float("inf"), -1.0])
    places = torch.randint(256, (256,), generator=generator)  # some of them twice
    rows = 1.5 * torch.eye(256)[places].to(dtype)
    columns = rows.mT.contiguous()
    for left, right in ((dense, columns), (rows, dense)):
        faster = laid_out(left, right)
        assert faster.stride() == (1, 256)
        same = left @ right
        assert torch.equal(same.isnan(), (faster @ right).isnan())
        assert torch.equal(same.nan_to_num(), (faster @ right).nan_to_num())
    for left, right in ((dense, dense), (dense, rows), (columns, dense)):  # order matters
        assert laid_out(left, right) is left
    assert laid_out(dense.float(), columns.float()).stride() == (256, 1)


def test_sampled_rows_keep_memory_linear() -> None:
    walk = reading(n=4000, r=3000)
    sides = walk.read(TERMS["attention"].term, (Rows(torch.arange(5)), None))
    assert sides.shape == (5, 6)
    sizes_held = [
        v.numel() for v in [*walk.known.values(), *walk.known_rows.values()] if hasattr(v, "numel")
    ]
    assert max(sizes_held) <= 4000 * 8


def test_columns_of_a_row_wise_softmax_need_every_row_and_not_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = 0

    def watched(scores: torch.Tensor) -> torch.Tensor:
        nonlocal most
        most = max(most, scores.numel())
        return torch.softmax(scores, -1)

    monkeypatch.setitem(SOFTMAX, "softmax", replace(SOFTMAX["softmax"], compute=watched))
    weights, where = xp_softmax(A["Q"] @ A["K"].mT).term, (None, Rows(torch.tensor([0, 7, 12])))
    walk = reading(entries=40)
    walk.replaced.update(SOFTMAX)
    found = walk.read(weights, where)
    assert most <= 40
    torch.testing.assert_close(found, reading()(weights)[:, [0, 7, 12]])
    assert not walk.known.keys() & {weights}  # nor is it held whole


S, V = A["K"] @ A["K"].mT, A["V"]
W, P = xp_softmax(S), array_namespace(S).eye(n)[A["sigma"]]
SIDES = {
    "rows of a softmax over rows": (W @ V, 0),
    "columns of it": (V.mT @ W, 1),
    "the sum of it": (array_namespace(S).sum(W @ V, axis=0), 1),
    "a product with it": (S @ W @ V, 1),
    "the other way round": (S @ (W @ V[:, 0]), 1),
    "columns of a matrix that permutes": (V.mT @ P, 0),
    "two of them": (V.mT @ P @ P, 1),
}


@pytest.mark.parametrize("name", SIDES)
def test_there_are_fewer_tokens_where_rows_cannot_be_selected(name: str) -> None:
    array, halved = SIDES[name]
    statement, default = Statement(GIVENS, {"": equal(array, array)}), scale_named("default")
    task = drawn(statement, default, CPU, 0)
    assert task.sizes["n"] == default.lengths["tokens"][0] >> halved
    assert task.sizes["n"] ** 2 <= default.passes or not halved
    more = drawn(statement, replace(default, passes=1 << 24), CPU, 0)
    assert more.sizes["n"] == default.lengths["tokens"][0]


def test_fewer_tokens_are_still_different_and_halving_ends() -> None:
    names = {f"X{k}": real(size, ell) for k, size in enumerate(sizes("a b c", "tokens"))}
    few = replace(scale_named("default"), lengths={"tokens": (767, 766, 765), "size": (191,)})
    lengths = sizes_of(Statement(names, {}), few, lambda sizes: sizes["a"] > 200)
    assert len(set(lengths.values())) == 4
    assert lengths["a"] == 190
    assert sizes_of(Statement(names, {}), few, lambda _: True)["a"] == 2


def test_a_term_too_large_is_told() -> None:
    lengths = {"n": 60_000, "r": 50_000, "ell": 1, "d": 1}
    values = {"Q": torch.ones(50_000, 1), "K": torch.ones(60_000, 1), "V": torch.ones(60_000, 1)}
    walk = TorchReading(lengths, values, torch.float32, CPU)
    with pytest.raises(TooLarge, match="50000 rows of an intermediate"):
        walk(TERMS["attention"].term)


def test_softmax_may_be_torch_softmax() -> None:
    plain, swapped = reading(), reading()
    swapped.replaced.update(SOFTMAX)
    term = TERMS["attention"].term
    torch.testing.assert_close(plain(term), swapped(term))


def test_sizes_differ_and_keys_outnumber_queries() -> None:
    statement = Statement(GIVENS, {"": equal(A["Q"], A["Q"])})
    for scale in ("small", "default", "large"):
        lengths = sizes_of(statement, scale_named(scale))
        assert len(set(lengths.values())) == len(lengths)
        assert lengths["n"] > lengths["r"]
    lengths = sizes_of(Statement({"Q": real(H, n, ell)}, {}), scale_named("default"))
    assert lengths == {"n": 4096, "H": 8, "ell": 64}
    assert sizes_of(Statement({"Q": real(n, ell)}, {}), scale_named("large"))["n"] == 65_536


def test_a_list_of_different_indices_is_shorter_than_its_range() -> None:
    givens = {"S": real(r, ell), "T": real(r, d), "e": injection(r, n)}
    for scale in ("small", "default", "large"):
        lengths = sizes_of(Statement(givens, {}), scale_named(scale))
        assert lengths["r"] < lengths["n"]


def test_what_is_not_quite_orthogonal_carries_its_distance() -> None:
    g = torch.linalg.qr(torch.eye(8, dtype=torch.float64) + 0.3).Q
    assert distance("orthogonal", g) < 1e-13
    assert distance("orthogonal", g * (1 + 1e-6)) > 1e-6
    signs = torch.tensor([[1.0, 1], [-1, 1], [1, -1], [-1, -1]]).double()
    assert distance("standard", signs) < 1e-13
    assert distance("standard", signs * (1 + 1e-6)) > 1e-6
    assert distance("standard", signs + 1e-6) > 1e-6


def test_what_is_absent_is_told_with_what_is_present() -> None:
    absent = "cuda" if "cuda" not in devices() else "mps"
    with pytest.raises(DeviceAbsent, match=f"'{absent}' was asked for.*present: .*cpu"):
        chosen(absent)
    with pytest.raises(ValueError, match="'tpu' was asked for"):
        chosen("tpu")
    with pytest.raises(UnknownDtype, match="'int4' was asked for; known: float64"):
        dtype_named("int4")
    with pytest.raises(UnknownScale, match="'huge' was asked for; there are small, default, large"):
        scale_named("huge")


def test_array_module_is_the_standard_one() -> None:
    assert reading().xp is xp
