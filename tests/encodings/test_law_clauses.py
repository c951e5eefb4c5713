"""Every clause of a law is in its formula: an encoding that breaks one alone is not said to obey.

Beside a law and what is said, which is never "proved", stand the clauses of its words, each with
the smallest encoding that was thought of which keeps the other clauses and breaks this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from array_api_compat import array_namespace as of

from attnproof import Encoding, at_least, hypothesis, positive, real
from attnproof.cards.page import reasons
from attnproof.cards.verdicts import decided
from attnproof.laws import LAWS

LAW = {law.id: law for law in LAWS}
WITNESS, OPEN, IDLE = "refuted", "undecided", "does not apply"
Hook = Callable[..., Any]


def breaking(**body: Any) -> type[Encoding]:
    """An encoding with these hooks and attributes; ``given`` declares no parameters."""
    return type("Breaking", (Encoding,), {"__doc__": "A small encoding.", **body})


def biased(bias: Hook, **body: Any) -> type[Encoding]:
    """One that adds bias(m, n) to the scores."""
    return breaking(bias=lambda _, m, n: bias(m, n), **body)


def masked(sees: Hook, **body: Any) -> type[Encoding]:
    """One whose queries at m see the keys at n with sees(m, n)."""
    return breaking(sees=lambda _, m, n: sees(m, n), **body)


def related(relate: Hook, **body: Any) -> type[Encoding]:
    """One that adds relate(q, k, m, n) to q·k."""
    return breaking(relate=lambda _, q, k, m, n: relate(q, k, m, n), **body)


def added(add: Hook, **body: Any) -> type[Encoding]:
    """One that adds add(p) to each feature of the token at p."""
    return breaking(add=lambda e, p: add(p)[..., None] * of(p).ones((e.width,)), **body)


def rotated(factor: Hook, hook: str = "rotate") -> type[Encoding]:
    """One that multiplies queries, keys or both at p by factor(p)."""
    return breaking(**{hook: lambda _, x, p: x * factor(p)[..., None]})


def read(value: Hook, **body: Any) -> type[Encoding]:
    """One that reads value(v, m, n) for the value v at n."""
    return breaking(value=lambda _, v, m, n: value(v, m[..., None], n[..., None]), **body)


def scored(scores: Hook, **body: Any) -> type[Encoding]:
    """One with scores of its own."""
    return breaking(scores=lambda _, Q, K, m, n: scores(Q, K, m, n), **body)


def total(x: Any) -> Any:
    """The sum of the last axis."""
    return of(x).sum(x, axis=-1)


def crossed(Q: Any, K: Any, m: Any, n: Any) -> Any:
    """q·k less the sum of the query's products: the other keys enter."""
    del m, n
    scores = Q @ K.mT
    return scores - of(Q).sum(scores, axis=-1, keepdims=True)


def gates(K: Any) -> Any:
    """A number between 0 and 1 of each token, as it is."""
    return 1 / (1 + of(K).exp(-total(K)))


def forgotten(Q: Any, K: Any, m: Any, n: Any) -> Any:
    """q·k and the logarithms of the gates of the tokens after the key, up to the query."""
    xp = of(Q)
    after = (n > n[:, None]) & (n <= m[:, None, None])
    return Q @ K.mT + xp.sum(xp.where(after, xp.log(gates(K)), 0), axis=-1)


def wave(x: Any) -> Any:
    """A number that is 0 at whole numbers and at their halves."""
    xp = of(x)
    return xp.sin(2 * xp.pi * x) ** 2


BROKEN: dict[tuple[str, str], dict[str, type[Encoding]]] = {
    ("relative", WITNESS): {
        "the position of the key counts as the query's": biased(lambda m, n: n + 0 * m),
        "whatever the contents": related(lambda q, k, m, n: total(q * k) * m + 0 * n),
        "not at shifts by whole numbers alone": biased(lambda m, n: wave(m) + 0 * n),
        "what is seen, too": masked(lambda m, n: n <= 0 * m),
        "in every coordinate": biased(
            lambda m, n: m[..., 0] - n[..., 0] + m[..., 1] + 0 * n[..., 1], axes=2
        ),
    },
    ("relative", IDLE): {
        "no other token enters": scored(crossed, together=True),
        "no other position enters": biased(
            lambda m, n: of(n).sum(of(n).abs(m - n), axis=-1, keepdims=True) + 0 * n
        ),
    },
    ("even", WITNESS): {
        "for all positions": biased(lambda m, n: m - n),
        "for all contents": related(lambda q, k, m, n: total(q) * (m - n) + 0 * total(k)),
        "what is seen, too": masked(lambda m, n: n <= m),
        "in every coordinate": biased(
            lambda m, n: of(m).abs(m[..., 0] - n[..., 0]) + m[..., 1] - n[..., 1], axes=2
        ),
    },
    ("even", IDLE): {"the scores are what is looked at": read(lambda v, m, n: v * (m - n))},
    ("odd", WITNESS): {
        "for all positions": biased(lambda m, n: m * m - n),
        "what is seen, too": masked(lambda m, n: n <= m),
        "for all contents": related(lambda q, k, m, n: total(q * q) + 0 * (m + n) + 0 * total(k)),
    },
    ("tells-before-from-after", WITNESS): {
        "at one distance": biased(lambda m, n: (m - n) ** 2),
        "by its place, not by the query's": biased(lambda m, n: m + 0 * n),
    },
    ("falls-with-distance", WITNESS): {
        "at any distance, not at whole ones alone": biased(
            lambda m, n: 5 * wave(m - n) - of(m).abs(m - n)
        ),
        "the key where the query is": biased(lambda m, n: of(m).where(m == n, -1, 0)),
        "for all contents": related(lambda q, k, m, n: -total(q) * of(m).abs(m - n) + 0 * total(k)),
        "the nearer is seen where the farther is": masked(lambda m, n: n + 2 <= m),
        "by the mask of rows, not of single positions": masked(
            lambda m, n: n + 2 <= m if m.ndim else n <= m
        ),
        "what is seen falls": biased(lambda m, n: m - n, sees=lambda _, m, n: n <= m),
        "along every line": biased(
            lambda m, n: of(m).abs(m[..., 1] - n[..., 1]) - of(m).abs(m[..., 0] - n[..., 0]), axes=2
        ),
    },
    ("stays-under-envelope", WITNESS): {
        "after the query, too": biased(lambda m, n: of(m).maximum(0 * (m - n), n - m)),
        "wherever the key is seen": biased(
            lambda m, n: of(m).maximum(0 * (m - n), m - n), sees=lambda _, m, n: n <= m
        ),
        "seen by the mask of rows": biased(
            lambda m, n: of(m).maximum(0 * (m - n), m - n),
            sees=lambda _, m, n: n <= m if m.ndim else m <= n,
        ),
        "for all contents": related(lambda q, k, m, n: -total(q * k) + 0 * (m + n)),
    },
    ("translation", WITNESS): {
        "the scores": biased(lambda m, n: m * n),
        "the values": read(lambda v, m, n: v + n + 0 * m),
        "what is seen": masked(lambda m, n: n <= 2 * m),
        "whole positions that do not follow each other": read(
            lambda v, m, n: (
                v * (1 + of(n).maximum(0 * n, total(n[..., 0])[:, None, None] - n)) + 0 * m
            ),
            whole=True,
        ),
    },
    ("sees-order", WITNESS): {
        "positions, and not contents": related(lambda q, k, m, n: total(q * k * k) + 0 * (m + n)),
        "the order, and not the number of tokens": scored(lambda Q, K, *_: Q @ K.mT * K.shape[0]),
    },
    ("travels-with-tokens", WITNESS): {
        "scores by position, not by place": scored(
            lambda Q, K, *_: Q @ K.mT + of(Q).arange(K.shape[0])
        ),
        "values by position, not by place": read(
            lambda v, m, n: v * of(v).arange(v.shape[1])[None, :, None] + 0 * (m + n)
        ),
    },
    ("independent-of-length", WITNESS): {
        "not of the contents of others": scored(crossed),
        "not of the positions of others": biased(
            lambda m, n: of(n).sum(n, axis=-1, keepdims=True) + 0 * (m + n)
        ),
        "not of how many they are": scored(lambda Q, K, *_: Q @ K.mT / K.shape[0]),
        "not of a number that it is told": breaking(
            length="count", given={"count": positive()}, query=lambda e, q, *_: q * e.count
        ),
        "the values that are read": read(lambda v, m, n: v * v.shape[1] + 0 * (m + n)),
        "what is added to values, whatever the scores are": added(
            lambda p: p * (p.shape[0] if p.ndim else 1), scores=lambda _, Q, K, *__: Q @ K.mT
        ),
    },
    ("acts-on-scores", WITNESS): {
        "on the scores, not on the values": read(lambda v, m, n: v * (m - n)),
        "positions, and not contents": related(lambda q, k, m, n: total(q * q * k) + 0 * (m + n)),
    },
    ("leaves-values", WITNESS): {
        "none is made longer": read(lambda v, m, n: 2 * v + 0 * (m + n)),
        "nothing is added to the input": added(lambda p: p),
    },
    ("linear-shift", WITNESS): {
        "for all p, with one matrix": added(lambda p: p * p),
        "of queries": rotated(lambda p: 1 + p * p, "query"),
        "of keys": rotated(lambda p: 1 + p * p, "key"),
    },
    ("composes", WITNESS): {
        "of queries": rotated(lambda p: 1 + p, "query"),
        "of keys": rotated(lambda p: 1 + p, "key"),
    },
    ("identity-at-zero", WITNESS): {
        "of queries": rotated(lambda p: 2 + p, "query"),
        "of keys": rotated(lambda p: 2 + p, "key"),
    },
    ("keeps-norms", WITNESS): {
        "of queries": rotated(lambda p: 1 + p * p, "query"),
        "of keys": rotated(lambda p: 1 + p * p, "key"),
    },
    ("keeps-norms", IDLE): {
        "of tokens that are scored": breaking(
            rotate=lambda _, x, p: -x + 0 * p[..., None],
            scores=lambda _, Q, K, m, n: Q @ K.mT * m[:, None] * n[None],
        )
    },
    ("keeps-dot-products", WITNESS): {"at every position": rotated(lambda p: of(p).exp(p), "key")},
    ("commutes-with-projections", WITNESS): {
        "of queries": breaking(query=lambda e, q, p: q * of(q).arange(e.width) + 0 * p[..., None]),
        "of keys": breaking(key=lambda e, k, p: k * of(k).arange(e.width) + 0 * p[..., None]),
    },
    ("key-can-be-moved", WITNESS): {"without knowing where it was": rotated(lambda p: 1 + p * p)},
    ("key-can-be-moved", IDLE): {"it moves at all": rotated(lambda p: 1 + p, "query")},
    ("unique", WITNESS): {
        "however large": added(lambda p: p % 1000),
        "in every coordinate": added(lambda p: p[..., 0], axes=2),
    },
    ("unique", IDLE): {
        "among any number of keys": biased(lambda m, n: (m - n) * (2 - n.shape[-1])),
        "what tells them apart is used": biased(
            lambda m, n: m - n, scores=lambda _, Q, K, *__: Q @ K.mT
        ),
    },
    ("bounded", WITNESS): {
        "what is added": added(lambda p: p),
        "queries": rotated(lambda p: p, "query"),
        "keys": rotated(lambda p: p, "key"),
        "what is added to the scores": biased(lambda m, n: m - n),
        "the values": read(lambda v, m, n: v * (m - n)),
        "for any number of tokens": biased(
            lambda m, n: of(n).sum(of(n).sin(n) ** 2, axis=-1, keepdims=True) + 0 * (m + n),
            together=True,
        ),
        "by place, for any number of tokens": scored(
            lambda Q, K, *_: Q @ K.mT - of(Q).arange(K.shape[0]), together=True
        ),
        "cumulated over the tokens between": scored(forgotten, together=True),
        "what is added, cumulated": breaking(
            add=lambda e, p: of(p).sum(of(p).exp(-p * p)) * of(p).ones((*p.shape, e.width)),
            together=True,
        ),
    },
    ("bounded", OPEN): {
        "cumulated, and no mean": scored(
            lambda Q, K, *_: Q @ K.mT + of(Q).sum(gates(K)) / K.shape[0] ** 0.5, together=True
        )
    },
    ("continuous", WITNESS): {
        "the scores": biased(lambda m, n: (m - n) // 1),
        "the scores, beside a mask": biased(lambda m, n: (m - n) // 1, sees=lambda _, m, n: n <= m),
    },
    ("continuous", OPEN): {
        "keys": rotated(lambda p: p // 1, "key"),
        "queries": rotated(lambda p: p // 1, "query"),
        "values": read(lambda v, m, n: v * ((m - n) // 1)),
    },
    ("mask-continuous", WITNESS): {
        "where the mask begins": masked(lambda m, n: n <= m),
        "beside continuous scores": biased(lambda m, n: m - n, sees=lambda _, m, n: n <= m),
    },
    ("defined-beyond", OPEN): {
        "at every natural number, the scores": biased(lambda m, n: of(m).log(5 - m) + 0 * n),
        "the values": read(lambda v, m, n: v / (n - 3) + 0 * m),
        "of tokens at different places": biased(lambda m, n: of(m).sqrt(-((m - n) ** 2))),
        "what is seen": masked(lambda m, n: of(m).sqrt(5 - m) >= 0 * n),
    },
}
ROWS = [(*of, *row) for of, rows in BROKEN.items() for row in rows.items()]


@pytest.mark.parametrize(
    ("law", "verdict", "clause", "kind"), ROWS, ids=[f"{law}: {told}" for law, _, told, _ in ROWS]
)
def test_what_breaks_a_clause_is_not_said_to_obey(
    law: str, verdict: str, clause: str, kind: type[Encoding]
) -> None:
    limit = 1.0 if verdict == "undecided" else 60.0  # a slow machine decides nothing
    cell = decided(kind, LAW[law], limit_seconds=limit)
    assert cell.verdict == verdict, f"{clause}: {cell.why}"


TOLD = "equal steps with each more, so more than C for every C"


def test_a_bound_that_grows_with_the_sequence_is_told_with_its_steps() -> None:
    cell = decided(scored(forgotten, together=True), LAW["bounded"])
    assert TOLD in cell.why
    assert "the step: " in cell.why


@pytest.mark.parametrize(
    "kind",
    [
        scored(lambda Q, K, *_: Q @ K.mT + of(Q).sum(gates(K)) / K.shape[0], together=True),
        scored(lambda Q, K, *_: Q @ K.mT + of(Q).tanh(of(Q).sum(gates(K))), together=True),
        scored(lambda Q, K, *_: Q @ K.mT + of(Q).sin(of(Q).sum(gates(K))), together=True),
    ],
)
def test_what_stays_below_a_bound_for_any_number_of_tokens_is_not_refuted(
    kind: type[Encoding],
) -> None:
    assert decided(kind, LAW["bounded"], limit_seconds=2.0).verdict != "refuted"


class Supposed(Encoding):
    """c (m − n) is added, c at least 1: without a bound, and even where c is 0 alone."""

    given: ClassVar[dict[str, Any]] = {"c": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.c * (m - n)

    @hypothesis("c is at least 1")
    def large(self) -> list[Any]:
        return [at_least(self.c, 1)]


class NeverTrue(Supposed):
    """The same, supposed what no number obeys."""

    @hypothesis("the square of c is below 0")
    def large(self) -> list[Any]:
        return [at_least(-1 - self.c**2, 0)]


class Balanced(Supposed):
    """The same with c = 0, where it adds nothing, together with c = 0 in other words."""

    @hypothesis("c and its square are 0")
    def large(self) -> list[Any]:
        return [(self.c**2 + abs(self.c), 0)]


def test_a_counterexample_obeys_what_the_author_supposed() -> None:
    cell = decided(Supposed, LAW["even"])
    assert (cell.verdict, cell.under, cell.obeyed) == ("refuted", (), ("c is at least 1",))
    assert "even if c is at least 1" in list(reasons(cell))
    assert decided(Supposed, LAW["bounded"]).obeyed == ("c is at least 1",)


def test_what_breaks_the_hypothesis_alone_refutes_nothing() -> None:
    cell = decided(Balanced, LAW["even"], limit_seconds=0.5)
    assert cell.verdict in ("proved", "undecided")
    assert cell.under == ("c and its square are 0",)
    assert cell.needed is not None
    cell = decided(Balanced, LAW["bounded"], limit_seconds=0.5)
    assert (cell.verdict, cell.under) == ("undecided", ("c and its square are 0",))
    assert "without it" in cell.why


def test_a_hypothesis_that_nothing_obeys_is_told_and_not_tried() -> None:
    cell = decided(NeverTrue, LAW["even"])
    assert (cell.verdict, cell.under) == ("refuted", ())
    assert "no values are known that satisfy it: the square of c is below 0" in cell.why


def test_every_law_has_its_clauses_here() -> None:
    assert {law for law, _ in BROKEN} == set(LAW)
