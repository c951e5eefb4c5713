"""Encodings that multiply queries and keys, against the formulas of their papers in plain numpy.

Pairs of channels are complex numbers here, rotations exponentials of antisymmetric matrices:
nothing is shared with the definitions that are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from attnproof.cards.verdicts import decided
from attnproof.encoding.base import Encoding
from attnproof.encodings.powers import Multiplicative
from attnproof.encodings.rope import (
    Rope,
    RopeByParts,
    RopeHalfSplit,
    RopeInterpolated,
    RopeLlama3,
    RopeNtk,
    RopePartial,
    Xpos,
    Yarn,
    YarnByIndex,
)
from attnproof.encodings.rope_of_coordinates import MRope, RopeAxial, RopeMixed, String
from attnproof.laws.scores import relative

Numbers = np.ndarray[Any, np.dtype[np.float64]]
RNG = np.random.default_rng(7)
OMEGA, NU, RATES = (RNG.normal(size=4) for _ in range(3))
X = RNG.normal(size=(5, 8))
P = np.array([0.0, 1.0, -2.5, 7.0, 100.0])
GRID = RNG.normal(size=(5, 2)) * 10
SPACE = RNG.normal(size=(5, 3)) * 10


def rotated(z: Any, angles: Any) -> Any:
    """Complex numbers times exp(i a)."""
    return z * np.exp(1j * angles)


def interleaved(x: Numbers, angles: Numbers) -> Numbers:
    """The channels 2b and 2b + 1 as a complex number."""
    z = rotated(x[:, 0::2] + 1j * x[:, 1::2], angles)
    return np.stack((z.real, z.imag), axis=-1).reshape(x.shape)


def half_split(x: Numbers, angles: Numbers) -> Numbers:
    """The channels b and B + b as a complex number."""
    half = x.shape[1] // 2
    z = rotated(x[:, :half] + 1j * x[:, half:], angles)
    return np.concatenate((z.real, z.imag), axis=1)


def exponential(matrix: Numbers) -> Numbers:
    """exp(L) of an antisymmetric L: i L is Hermitian, so it has real eigenvalues."""
    values, vectors = np.linalg.eigh(1j * matrix)
    return np.asarray(((vectors * np.exp(-1j * values)) @ vectors.conj().T).real)


PARTS: dict[str, Any] = {"factor": 8.0, "length": 200.0, "slow": 2 * np.pi, "ramp": 38 * np.pi}


def by_parts(omega: Numbers) -> Numbers:
    """Peng et al. 2023, eq. 17 to 20, one frequency at a time."""
    found = []
    for w in omega:
        rotates = PARTS["length"] * w / (2 * np.pi)
        if rotates < 1:
            gamma = 0.0
        elif rotates > 20:
            gamma = 1.0
        else:
            gamma = (rotates - 1) / (20 - 1)
        found.append((1 - gamma) * w / PARTS["factor"] + gamma * w)
    return np.array(found)


SPREAD = np.array([2.0, 0.3, 0.1, 0.001])  # turns in training: above, between, between, below
AXIS = np.array([0, 2, 1, 1])
MIXED = RNG.normal(size=(4, 2))
MATRIX = RNG.normal(size=(8, 8))


def plain(encoding: Encoding, x: Numbers, p: Numbers) -> Numbers:
    return np.asarray(encoding.encode(x, p))


CASES: dict[str, tuple[Encoding, Numbers, Numbers, Callable[[], Numbers]]] = {
    "interleaved": (Rope(omega=OMEGA), X, P, lambda: interleaved(X, np.outer(P, OMEGA))),
    "half-split": (RopeHalfSplit(omega=OMEGA), X, P, lambda: half_split(X, np.outer(P, OMEGA))),
    "partial": (
        RopePartial(omega=OMEGA[:2]),
        X,
        P,
        lambda: np.concatenate((interleaved(X[:, :4], np.outer(P, OMEGA[:2])), X[:, 4:]), axis=1),
    ),
    "interpolated": (
        RopeInterpolated(omega=OMEGA, factor=4.0),
        X,
        P,
        lambda: interleaved(X, np.outer(P / 4, OMEGA)),
    ),
    "another base": (
        RopeNtk(omega=10_000.0 ** (-np.arange(4) / 4), factor=16.0),
        X,
        P,
        lambda: interleaved(X, np.outer(P, (10_000 * 16 ** (8 / 6)) ** (-2 * np.arange(4) / 8))),
    ),
    "by parts": (
        RopeByParts(omega=SPREAD, **PARTS),
        X,
        P,
        lambda: interleaved(X, np.outer(P, by_parts(SPREAD))),
    ),
    "yarn": (
        Yarn(omega=SPREAD, temperature=0.8, **PARTS),
        X,
        P,
        lambda: interleaved(X, np.outer(P, by_parts(SPREAD))),
    ),
    "axial": (
        RopeAxial(omega=OMEGA[:1], nu=NU[:3]),
        X,
        GRID,
        lambda: interleaved(
            X, np.concatenate((GRID[:, :1] * OMEGA[:1], GRID[:, 1:] * NU[:3]), axis=1)
        ),
    ),
    "mixed": (
        RopeMixed(Omega=MIXED),
        X,
        GRID,
        lambda: interleaved(X, GRID[:, :1] * MIXED[:, 0] + GRID[:, 1:] * MIXED[:, 1]),
    ),
    "three axes": (
        MRope(omega=OMEGA, axis=AXIS),
        X,
        SPACE,
        lambda: half_split(
            X, np.stack([SPACE[:, a] * w for a, w in zip(AXIS, OMEGA, strict=True)], axis=1)
        ),
    ),
    "powers of a matrix": (
        Multiplicative(M=MATRIX),
        X,
        np.array([3, 0, 1, 2, 5]),
        lambda: np.stack(
            [np.linalg.matrix_power(MATRIX, j) @ x for j, x in zip((3, 0, 1, 2, 5), X, strict=True)]
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_key_is_what_the_formula_says(case: str) -> None:
    encoding, x, p, formula = CASES[case]
    assert plain(encoding, x, p) == pytest.approx(formula(), rel=1e-12, abs=1e-12)
    alone = np.stack([plain(encoding, row, at) for row, at in zip(x, p, strict=True)])
    assert alone == pytest.approx(formula(), rel=1e-12, abs=1e-12)


def test_the_comparison_notices_a_wrong_layout_and_a_rotate_the_other_way() -> None:
    right = CASES["interleaved"][3]()
    assert plain(RopeHalfSplit(omega=OMEGA), X, P) != pytest.approx(right, rel=1e-3)
    assert plain(Rope(omega=-OMEGA), X, P) != pytest.approx(right, rel=1e-3)


def test_xpos_grows_queries_and_shrinks_keys() -> None:
    encoding = Xpos(omega=OMEGA, rates=RATES / 100)
    grown = np.repeat(np.exp(RATES / 100) ** P[:, None], 2, axis=1)
    rotate = interleaved(X, np.outer(P, OMEGA))
    assert np.asarray(encoding.encode_query(X, P)) == pytest.approx(rotate * grown)
    assert plain(encoding, X, P) == pytest.approx(rotate / grown)


def test_xpos_has_the_rates_of_the_paper() -> None:
    zeta = [(2 * b / 64 + 0.4) / 1.4 for b in range(32)]
    assert np.exp(512 * Xpos.defaults["rates"]) == pytest.approx(zeta)


def test_string_is_the_exponential_of_its_generators() -> None:
    P_, place, Omega = np.linalg.qr(MATRIX)[0], np.array([5, 0, 3, 6]), RNG.normal(size=(2, 2))
    generators = np.zeros((2, 8, 8))
    for k in range(2):
        for b in range(2):
            u, v = P_[place[2 * b]], P_[place[2 * b + 1]]
            generators[k] += Omega[k, b] * (np.outer(v, u) - np.outer(u, v))
    assert generators[0] @ generators[1] == pytest.approx(generators[1] @ generators[0])
    encoding = String(P=P_, place=place, Omega=Omega)
    rotates = [exponential(np.tensordot(p, generators, 1)) for p in GRID]
    wanted = [rotate @ x for rotate, x in zip(rotates, X, strict=True)]
    assert plain(encoding, X, GRID) == pytest.approx(np.stack(wanted))


def test_generators_that_do_not_commute_give_no_relative_scores() -> None:
    # LieRE with two rotations of space: what STRING's generators must not be.
    one, two = np.zeros((3, 3)), np.zeros((3, 3))
    one[0, 1], one[1, 0], two[1, 2], two[2, 1] = -1, 1, -1, 1

    def rotate(p: Numbers) -> Numbers:
        return exponential(p[0] * one + p[1] * two)

    m, n, s = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0])
    before, after = rotate(m).T @ rotate(n), rotate(m + s).T @ rotate(n + s)
    assert np.abs(before - after).max() > 0.1
    alike = exponential(0.3 * one).T @ exponential(0.7 * one)
    assert alike == pytest.approx(exponential(1.3 * one).T @ exponential(1.7 * one))


def test_yarn_divides_the_scores_by_its_temperature() -> None:
    cold, plain_ = Yarn(omega=SPREAD, temperature=0.5, **PARTS), RopeByParts(omega=SPREAD, **PARTS)
    assert cold.scores(X, X, P, P) == pytest.approx(2 * np.asarray(plain_.scores(X, X, P, P)))


def of_transformers(kind: str, theta: float, width: int, length: int, **told: Any) -> Any:
    """(frequencies, factor of cosines and sines) as transformers has them."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=width,
        num_attention_heads=1,
        head_dim=width,
        max_position_embeddings=length,
        rope_parameters={"rope_type": kind, "rope_theta": theta, **told},
    )
    seq_len = {"seq_len": 4 * length} if kind == "dynamic" else {}
    found, factor = ROPE_INIT_FUNCTIONS[kind](config, None, **seq_len)
    return found.double().numpy(), factor


def maps() -> Iterator[Any]:
    """An encoding, and what transformers calls it."""
    base = {"theta": 10_000.0, "width": 64, "length": 2048}
    omega = 10_000.0 ** (-np.arange(32) / 32)
    yield pytest.param(
        RopeInterpolated(omega=omega, factor=4.0),
        {"kind": "linear", "factor": 4.0, **base},
        id="linear",
    )
    # Dynamic scaling at 4 times the length with factor 2: 2·4 − (2 − 1) = 7.
    yield pytest.param(
        RopeNtk(omega=omega, factor=7.0), {"kind": "dynamic", "factor": 2.0, **base}, id="dynamic"
    )
    yield pytest.param(
        RopeLlama3.with_defaults(),
        {
            "kind": "llama3",
            "theta": 500_000.0,
            "width": 128,
            "length": 131_072,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        id="llama3",
    )
    yield pytest.param(
        YarnByIndex.with_defaults(),
        {
            "kind": "yarn",
            "theta": 10_000.0,
            "width": 128,
            "length": 65_536,
            "factor": 16.0,
            "original_max_position_embeddings": 4096,
        },
        id="yarn",
    )


@pytest.mark.parametrize(("encoding", "told"), list(maps()))
def test_frequencies_are_those_of_transformers(encoding: Any, told: dict[str, Any]) -> None:
    found, factor = of_transformers(**told)
    assert np.asarray(encoding.frequencies()) == pytest.approx(found, rel=1e-5)
    if isinstance(encoding, Yarn):
        assert factor**2 == pytest.approx(1 / encoding.temperature)


def test_the_ramp_of_the_paper_is_not_the_ramp_of_the_code() -> None:
    told = {**YarnByIndex.defaults, "length": 4096.0, "slow": 2 * np.pi, "ramp": 62 * np.pi}
    paper = Yarn(**{name: told[name] for name in Yarn.given}).frequencies()
    code = YarnByIndex.with_defaults().frequencies()
    assert np.abs(np.asarray(paper) / np.asarray(code) - 1).max() > 0.2


def test_the_comparison_with_transformers_notices_another_factor() -> None:
    found, _ = of_transformers("linear", 10_000.0, 64, 2048, factor=8.0)
    other = RopeInterpolated(omega=10_000.0 ** (-np.arange(32) / 32), factor=4.0)
    assert np.asarray(other.frequencies()) != pytest.approx(found, rel=1e-2)


FAST = (
    Rope,
    RopeHalfSplit,
    RopePartial,
    RopeInterpolated,
    RopeNtk,
    RopeByParts,
    RopeLlama3,
    Yarn,
    YarnByIndex,
    Xpos,
    RopeAxial,
    RopeMixed,
    MRope,
)


@pytest.mark.parametrize("kind", FAST)
def test_scores_are_relative_for_every_value_of_the_parameters(kind: type[Encoding]) -> None:
    cell = decided(kind, relative)
    assert (cell.verdict, cell.under) == ("proved", ())


def test_keys_that_move_twice_as_far_are_noticed() -> None:
    class Twice(Rope):
        def key(self, k: Any, p: Any) -> Any:
            return super().key(k, 2 * p)

    assert decided(Twice, relative).verdict == "refuted"
