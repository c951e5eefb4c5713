"""The relative and the content-dependent encodings, held against the formulas of their papers.

Each paper's formula is computed here with plain numbers, one query and one key at a time; none of
it is shared with the encodings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attnproof import Encoding
from attnproof.cards.verdicts import decided
from attnproof.encodings.bias import (
    Alibi,
    AlibiKeyBias,
    Fire,
    KerpleLog,
    KerplePower,
    Sandwich,
    T5Buckets,
    T5CausalBuckets,
)
from attnproof.encodings.masks import CausalWindow
from attnproof.encodings.relative import Cope, Shaw, TransformerXL
from attnproof.laws import LAWS
from tests.cases import each

TOKENS, WIDTH, VALUES = 24, 64, 5
HIDDEN = -math.inf
Read = tuple[float, Any]  # the score of a pair, and the value as it is read
Formula = Callable[[Any, Any, Any, int, int, Any, Any], Read]


def shaw(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Shaw et al. 2018: e_ij = x_i W_Q (x_j W_K + a^K_ij)ᵀ / √d, read is x_j W_V + a^V_ij."""
    clipped = sorted((-16, j - i, 16))[1]
    return q @ (k + e.a_K[clipped + 16]) / math.sqrt(len(q)), v + e.a_V[clipped + 16]


def transformer_xl(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Dai et al. 2019: content, content-dependent offset, global content, global offset."""
    R = np.array(
        [math.sin((i - j) * w) for w in e.omega] + [math.cos((i - j) * w) for w in e.omega]
    )
    a, b, c, d = q @ k, q @ e.W @ R, e.u_R @ k, e.v_R @ e.W @ R
    return (a + b + c + d) / math.sqrt(len(q)), v


def t5_bucket(distance: int, buckets: int) -> int:
    """Raffel et al. 2020: half of the buckets hold one distance, the rest grow up to 128."""
    half = buckets // 2
    if distance < half:
        return distance
    grown = Fraction(math.log(distance / half) / math.log(128 / half) * (buckets - half))
    return min(half + math.floor(grown.limit_denominator(10**9)), buckets - 1)


def t5(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    bucket = t5_bucket(abs(j - i), 16) + (16 if j > i else 0)
    return q @ k / math.sqrt(len(q)) + e.beta[bucket], v


def t5_causal(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    if j > i:
        return HIDDEN, v
    return q @ k / math.sqrt(len(q)) + e.beta[t5_bucket(i - j, 32)], v


def alibi(_: Any, q: Any, k: Any, i: int, j: int, v: Any, __: Any) -> Read:
    """Press et al. 2022: q_i·k_j / √d − slope·(i − j), here on both sides of the diagonal."""
    return q @ k / math.sqrt(len(q)) - 2**-4 * (i - j if j <= i else j - i), v


def alibi_causal(_: Any, q: Any, k: Any, i: int, j: int, v: Any, __: Any) -> Read:
    """The same with a mask: what the code with a bias on the keys computes, after the softmax."""
    return (q @ k / math.sqrt(len(q)) + 2**-4 * (j - i) if j <= i else HIDDEN), v


def kerple_log(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Chi et al. 2022: −r_1 log(1 + r_2 |m − n|)."""
    return q @ k / math.sqrt(len(q)) - e.r_1 * math.log1p(e.r_2 * abs(i - j)), v


def kerple_power(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Chi et al. 2022: −r_1 |m − n|^r_2."""
    return q @ k / math.sqrt(len(q)) - e.r_1 * abs(i - j) ** e.r_2, v


def fire(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Li et al. 2024: f(ψ(i − j) / ψ(max(L, i))), ψ(x) = log(cx + 1), for j <= i."""
    if j > i:
        return HIDDEN, v
    share = math.log(e.gamma * (i - j) + 1) / math.log(e.gamma * max(e.L, i) + 1)
    return q @ k / math.sqrt(len(q)) + e.f(share), v


def sandwich(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Chi et al. 2023: p_mᵀ p_n of the sinusoidal vectors, times the head's strength."""
    here, there = ([f(p * w) for w in e.omega for f in (math.sin, math.cos)] for p in (i, j))
    return q @ k / math.sqrt(len(q)) + e.strength * np.dot(here, there), v


def cope(e: Any, q: Any, _: Any, i: int, j: int, v: Any, K: Any) -> Read:
    """Golovneva et al. 2024: gates of the keys j, .., i, and an embedding between two rows."""
    if j > i:
        return HIDDEN, v
    logits = [q @ K[t] / math.sqrt(len(q)) for t in range(j, i + 1)]
    place = min(sum(1 / (1 + math.exp(-x)) for x in logits), len(e.E) - 1)
    low, high = math.floor(place), math.ceil(place)
    part = place - low
    return logits[0] + part * (q @ e.E[high]) + (1 - part) * (q @ e.E[low]), v


def causal_window(e: Any, q: Any, k: Any, i: int, j: int, v: Any, _: Any) -> Read:
    """Token i sees itself and the w − 1 tokens before it."""
    return (q @ k / math.sqrt(len(q)) if j in range(i - int(e.w) + 1, i + 1) else HIDDEN), v


FORMULAS: dict[type[Encoding], Formula] = {
    Shaw: shaw,
    TransformerXL: transformer_xl,
    T5Buckets: t5,
    T5CausalBuckets: t5_causal,
    Alibi: alibi,
    AlibiKeyBias: alibi_causal,
    KerpleLog: kerple_log,
    KerplePower: kerple_power,
    Fire: fire,
    Sandwich: sandwich,
    Cope: cope,
    CausalWindow: causal_window,
}


def off(kind: type[Encoding], formula: Formula, **numbers: Any) -> float:
    """How far attention is from the paper's formula, at most, on tokens in a row."""
    e = kind(**{**kind.defaults, **numbers})
    random = np.random.default_rng(7)
    Q, K = random.normal(size=(2, TOKENS, WIDTH))
    V = random.normal(size=(TOKENS, VALUES))
    p = np.arange(float(TOKENS))
    wanted = np.zeros((TOKENS, VALUES))
    for i in range(TOKENS):
        pairs = [formula(e, Q[i], K[j], i, j, V[j], K) for j in range(TOKENS)]
        strengths = [math.exp(score) for score, _ in pairs]
        for strength, (_, value) in zip(strengths, pairs, strict=True):
            wanted[i] += strength / sum(strengths) * value
    return float(np.max(np.abs(e.attention(Q, K, V, p, p) - wanted)))


@each(FORMULAS)
def test_the_code_is_the_formula_of_the_paper(kind: type[Encoding]) -> None:
    assert off(kind, FORMULAS[kind]) < 1e-12


def test_formulas_with_other_numbers() -> None:
    assert off(Fire, fire, L=8.0, f=lambda share: np.cos(3 * share)) < 1e-12
    assert off(Cope, cope, E=Cope.defaults["E"][:6]) < 1e-12  # more tokens than places
    assert off(KerplePower, kerple_power, r_2=1.7) < 1e-12


def spoilt(kind: type[Encoding], **methods: Callable[..., Any]) -> type[Encoding]:
    """The encoding with a method that is wrong."""
    return type("Spoilt", (kind,), methods)


WRONG: dict[str, type[Encoding]] = {
    "Shaw, the other way": spoilt(Shaw, relate=lambda e, q, k, m, n: Shaw.relate(e, q, k, n, m)),
    "Shaw, on keys alone": spoilt(Shaw, value=lambda e, v, m, n: v + 0 * Shaw.value(e, v, m, n)),
    "the offset to the query": spoilt(
        TransformerXL, relate=lambda e, q, k, m, n: TransformerXL.relate(e, q, k, n, m)
    ),
    "no bias of the content": spoilt(
        TransformerXL, relate=lambda e, q, k, m, n: TransformerXL.relate(e, q, 0 * k, m, n)
    ),
    "buckets one later": spoilt(T5Buckets, passed=lambda e, x: T5Buckets.passed(e, x - 1)),
    "both sides alike": spoilt(T5Buckets, bucket=lambda e, m, n: e.passed(abs(n - m))),
    "causal from the key": spoilt(
        T5CausalBuckets, bucket=lambda e, m, n: T5CausalBuckets.bucket(e, n, m)
    ),
    "keys the other way": spoilt(AlibiKeyBias, bias=lambda e, m, n: -AlibiKeyBias.bias(e, m, n)),
    "log of the distance": spoilt(KerpleLog, bias=lambda e, m, n: KerpleLog.bias(e, 2 * m, 2 * n)),
    "a root far away": spoilt(
        KerplePower, bias=lambda e, m, n: np.where(m == n, -e.r_1, KerplePower.bias(e, m, n))
    ),
    "a sandwich of sines": spoilt(Sandwich, bias=lambda e, m, n: Sandwich.bias(e, m, -n)),
    "counted after the key": spoilt(Cope, counted=lambda e, x, m, n: Cope.counted(e, x, m, n - 1)),
    "rounded": spoilt(Cope, counted=lambda e, x, m, n: np.round(Cope.counted(e, x, m, n))),
    "one key more": spoilt(CausalWindow, sees=lambda e, m, n: (n <= m) & (m - n <= e.w)),
}


class FireOfTheKey(Fire):
    def bias(self, m: Any, n: Any) -> Any:
        reach = self.psi(np.maximum(n, self.L + 0 * m))
        return self.f(self.psi(np.maximum(m - n, 0)) / reach)


@each(WRONG.values())
def test_a_wrong_encoding_is_noticed(wrong: type[Encoding]) -> None:
    assert off(wrong, FORMULAS[wrong.__mro__[1]]) > 1e-6


def test_wrong_numbers_are_noticed() -> None:
    assert off(FireOfTheKey, fire, L=8.0) > 1e-6
    assert off(Alibi, alibi, slope=-(2.0**-4)) > 1e-6


@pytest.mark.parametrize(
    ("kind", "bidirectional"),
    [(T5Buckets, True), (T5CausalBuckets, False)],
    ids=["both directions", "causal"],
)
def test_buckets_are_those_of_the_code_of_t5(kind: Any, bidirectional: bool) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from transformers.models.t5.modeling_t5 import T5Attention

    m, n = np.meshgrid(np.arange(400.0), np.arange(400.0), indexing="ij")
    their: Any = T5Attention._relative_position_bucket
    wanted = their(torch.as_tensor(n - m).long(), bidirectional, 32, 128).numpy()
    assert (kind(**kind.defaults).bucket(m, n) == wanted).all()
    assert len(np.unique(wanted)) == 32 - bidirectional  # none for a distance of 0 after
    later = kind(**{**kind.defaults, "t": kind.defaults["t"] + 1})
    assert (later.bucket(m, n) != wanted).any()


VERDICTS = [
    (Shaw, "relative", "proved", ()),
    (Shaw, "leaves-values", "refuted", ()),
    (TransformerXL, "relative", "proved", ()),
    (TransformerXL, "even", "refuted", ()),
    (T5Buckets, "relative", "proved", ()),
    (T5Buckets, "bounded", "proved", ()),
    (TransformerXL, "unique", "refuted", ()),  # W = 0
    (T5Buckets, "tells-before-from-after", "proved", ()),
    (Alibi, "falls-with-distance", "proved", ("the slope is at least 0",)),
    (AlibiKeyBias, "relative", "refuted", ()),
    (AlibiKeyBias, "translation", "proved", ()),
    (AlibiKeyBias, "falls-with-distance", "proved", ("the slope is at least 0",)),
    (AlibiKeyBias, "unique", "proved", ("the slope is not 0",)),
    (KerpleLog, "unique", "proved", ("neither r_1 nor r_2 is 0",)),
    (KerpleLog, "bounded", "refuted", ()),
    (KerpleLog, "falls-with-distance", "proved", ("r_1 is at least 0",)),
    (KerplePower, "falls-with-distance", "proved", ("r_1 is at least 0",)),
    (Fire, "relative", "refuted", ()),
    (Fire, "translation", "refuted", ()),
    (Sandwich, "tells-before-from-after", "refuted", ()),
    (Sandwich, "stays-under-envelope", "proved", ("the strength is at least 0",)),
    (Cope, "relative", "does not apply", ()),
    (Cope, "translation", "proved", ()),
    (Cope, "independent-of-length", "refuted", ()),
    (CausalWindow, "falls-with-distance", "proved", ()),
]
LAW = {law.id: law for law in LAWS}


@pytest.mark.parametrize(
    ("kind", "law", "verdict", "under"),
    VERDICTS,
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_is_known_of_it(
    kind: type[Encoding], law: str, verdict: str, under: tuple[str, ...]
) -> None:
    found = decided(kind, LAW[law])
    assert (found.verdict, found.under) == (verdict, under)


KEYS_TWICE_AS_FAR = spoilt(Shaw, relate=lambda e, q, k, m, n: Shaw.relate(e, q, k, m, 2 * n))
FROM_THE_KEY_ON = spoilt(KerpleLog, bias=lambda e, m, n: -KerpleLog.bias(e, m, n))


@pytest.mark.parametrize(
    ("wrong", "law"), [(KEYS_TWICE_AS_FAR, "relative"), (FROM_THE_KEY_ON, "falls-with-distance")]
)
def test_what_a_wrong_one_loses(wrong: type[Encoding], law: str) -> None:
    assert decided(wrong, LAW[law]).verdict == "refuted"


def test_with_open_gates_cope_counts_tokens() -> None:
    e = Cope(**Cope.defaults)
    Q = K = np.full((9, WIDTH), 9.0)
    p = np.arange(9.0)
    rest = e.scores(Q, K, p, p) - Q @ K.T / math.sqrt(WIDTH)
    for i in range(9):
        for j in range(i + 1):
            assert rest[i, j] == pytest.approx(Q[i] @ e.E[i - j + 1])
    closed = e.scores(Q, -K, p, p) + Q @ K.T / math.sqrt(WIDTH)
    assert closed[8, 0] == pytest.approx(Q[8] @ e.E[0])
    assert closed[8, 0] != pytest.approx(rest[8, 0])
