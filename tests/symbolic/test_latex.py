"""The LaTeX of terms and statements: what it says, and what it must not hide."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from attnproof.report.words import mathml
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import all_positive, equal, exists
from attnproof.symbolic.givens import (
    boolean,
    frequencies,
    function,
    index_map,
    orthogonal,
    permutation,
    positions,
    real,
    sizes,
)
from attnproof.symbolic.latex import (
    claim_latex,
    fact_latex,
    latex,
    name_latex,
    statement_latex,
    unfolded_latex,
)
from attnproof.symbolic.meaning import entry_of
from attnproof.symbolic.plain import plain
from attnproof.symbolic.scalars import entry, index
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, make
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorems.definitions.attention import attention, softmax
from tests.cases import each
from tests.symbolic.stating import memberships

n, m = sizes("n m", "tokens")
l, d = sizes("l d", "features")
(B,) = sizes("B", "blocks")
Q = real(n, l).named("Q")
K = real(n, l).named("K")
V = real(n, d).named("V")
S = real(n, m).named("S")
X = real(n, d).named("X")
W = real(d, l).named("W_Q")
p = positions(n).named("p")
s = real().named("s")
b = real(d).named("b")
theta = frequencies(B).named("theta")
sigma = permutation(n).named("sigma")
tau = permutation(m).named("tau")

CASES: dict[str, tuple[Array, str]] = {
    "transpose": (Q @ K.mT, r"Q K^{\top}"),
    "root in the denominator": (Q @ K.mT / l**0.5, r"\frac{Q K^{\top}}{\sqrt{\ell}}"),
    "rows": (sigma_rows := X[sigma], r"\sigma X"),
    "rows of a product": ((X @ W)[sigma], r"\sigma (X W_{Q})"),
    "product of rows": (sigma_rows @ W, r"(\sigma X)\,W_{Q}"),
    "columns": (S[:, tau], r"S \tau^{\top}"),
    "rows and columns": (S[sigma][:, tau], r"\sigma S \tau^{\top}"),
    "transposed rows": (K[sigma].mT, r"(\sigma K)^{\top}"),
    "definition": (attention(Q, K[sigma], V), r"\operatorname{Att}(Q, \sigma K, V)"),
    "difference": (Q - K, "Q - K"),
    "minus in front": (-Q + K, "-Q + K"),
    "brackets of a difference": (Q - (K - Q), "Q - (K - Q)"),
    "scalars in front": (Q * s / 3, r"\frac{s Q}{3}"),
    "half": (0.5 * Q, r"\frac{Q}{2}"),
    "entrywise product": (Q * K, r"Q \odot K"),
    "inverse": (1 / s, r"\frac{1}{s}"),
    "function": (xp.cos(2 * s), r"\cos(2 s)"),
    "square": (xp.cos(s) ** 2, r"\cos^{2} s"),
    "exponential": (xp.exp(-s), r"e^{-s}"),
    "mean": (xp.mean(X, axis=0), r"\frac{1}{n}\,\sum_{i < n} X_{i}"),
    "picked row": (X[0], r"X_{0}"),
    "picked column": (X[:, 0], r"X_{:, 0}"),
    "every other": (real(n, 2 * B).named("x")[:, 1::2], "x_{:, 1::2}"),
    "all pairs": (p[:, None] - p[None, :], r"\left[p_{i} - p_{j}\right]_{i j}"),
    "added to each row": (X + b, r"\left[X_{i a} + b_{a}\right]_{i a}"),
    "exp of a matrix": (xp.exp(Q), r"\left[e^{Q_{i a}}\right]_{i a}"),
    "dot product": (b @ b, r"b^{\top}\,b"),
    "range": (xp.arange(n), r"(0, 1, \dots, n - 1)"),
    "causal mask": (xp.arange(n)[:, None] >= xp.arange(n)[None, :], r"\left[j \le i\right]_{i j}"),
    "rotation": (
        xp.stack(
            (xp.stack((xp.cos(s), -xp.sin(s)), axis=-1), xp.stack((xp.sin(s), xp.cos(s)), axis=-1)),
            axis=-2,
        ),
        r"\left(\begin{matrix}\cos s & -\sin s \\ \sin s & \cos s\end{matrix}\right)",
    ),
    "columns side by side": (
        xp.stack((xp.stack((s, xp.cos(s)), axis=-1), xp.stack((2 * s, -s), axis=-1)), axis=-1),
        r"\left(\begin{matrix}s & 2 s \\ \cos s & -s\end{matrix}\right)",
    ),
    "blocks": (xp.concat([X, X], axis=0), r"\left(\begin{matrix}X \\ X\end{matrix}\right)"),
    "a map of all pairs": (
        function(1, 1).named("h")(Q[:, None, :], K[sigma][None, :, :]),
        r"\left[h(Q_{i}, K_{\sigma(j)})\right]_{i j}",
    ),
}


@each(CASES)
def test_notation(case: str) -> None:
    array, wanted = CASES[case]
    assert latex(array.term) == wanted
    mathml(wanted)


def test_names() -> None:
    names = {
        "omega": r"\omega",
        "l": r"\ell",
        "WK": "W_{K}",
        "Q1": "Q_{1}",
        "mask": r"\mathrm{mask}",
    }
    assert {name: name_latex(name) for name in names} == names


def test_a_bound_letter_is_not_used_twice_in_one_scope() -> None:
    assert unfolded_latex(softmax(S).term) == (
        r"\left[\frac{e^{S_{i j}}}{\sum_{k < m} e^{S_{i k}}}\right]_{i j}"
    )


def test_letters_of_the_statement_are_not_taken_for_indices() -> None:
    i, j = (real(n).named(name) for name in "ij")
    assert latex((i[:, None] + j[None, :]).term) == r"\left[i_{k} + j_{m}\right]_{k m}"


def test_a_bound_letter_is_no_name_of_the_formula() -> None:
    total = xp.sum(real(n).named("x"))
    assert latex((s * total).term) == r"s\,\sum_{i < n} x_{i}"
    assert latex((real().named("i") * total).term) == r"i\,\sum_{j < n} x_{j}"
    assert latex((function(0).named("i")(s) * total).term) == r"i(s)\,\sum_{j < n} x_{j}"
    assert claim_latex(equal(total, real().named("i"))) == r"\sum_{j < n} x_{j} = i"


def test_letters_to_avoid_are_avoided() -> None:
    total = xp.sum(real(n).named("x")).term
    assert latex(total) == r"\sum_{i < n} x_{i}"
    assert latex(total, {index("i", n.term)}) == r"\sum_{j < n} x_{j}"


def test_an_axis_of_length_one_between_others_stays_visible() -> None:
    H = sizes("H", "heads")[0]
    slopes = real(H).named("m")
    keys = (slopes[:, None] * xp.arange(n))[:, None, :]
    assert latex(keys.term) == r"\left[m_{h}\,j\right]_{h \cdot j}"
    assert latex((slopes[:, None] * xp.arange(n)).term) == r"\left[m_{h}\,i\right]_{h i}"
    assert latex(slopes[:, None, None].term) == "m"


def test_where_is_cases() -> None:
    causal = xp.where(xp.arange(n)[:, None] >= xp.arange(n)[None, :], Q @ K.mT, -xp.inf)
    assert latex(causal.term) == (
        r"\left[\begin{cases}(Q K^{\top})_{i j} & \text{if } j \le i \\ -\infty & "
        r"\text{otherwise}\end{cases}\right]_{i j}"
    )


def test_kernel_terms() -> None:
    i, a = index("i", n.term), index("a", l.term)
    product = (Q @ K.mT).term
    j = index("j", n.term)
    assert latex(entry(product, i, j)) == r"(Q K^{\top})_{i j}"
    assert latex(entry_of(product, (i, j))) == r"\sum_{a < \ell} Q_{i a}\,K^{\top}_{a j}"
    assert latex(make("indicator", (make("equal", (i, j)),))) == r"\left[i = j\right]"
    assert latex(entry(Q.term, entry(sigma.term, i), a)) == r"Q_{\sigma(i), a}"
    inverse = make("inverse", (sigma.term,), shape=sigma.axes)
    assert latex(entry(inverse, i)) == r"\sigma^{-1}(i)"


def test_an_open_body_prints() -> None:
    """The body of a sum, taken by itself, has an index that nothing binds."""
    whole = entry_of((Q @ K.mT).term, (index("i", n.term), index("j", n.term)))
    assert r"\square" in latex(whole.args[1])


def test_claims() -> None:
    rows = equal(xp.sum(softmax(S), axis=-1), xp.ones(n))
    assert claim_latex(rows) == (
        r"\sum_{j < m} \operatorname{softmax}(S)_{i j} = 1 \quad \text{for all } i"
    )
    assert claim_latex(all_positive(softmax(S))).startswith(r"\operatorname{softmax}(S)_{i j} > 0")
    some = exists(real(l, l), "M", lambda M: equal(Q @ M, K), witness=xp.eye(l), free_of=(p,))
    assert claim_latex(some) == (
        r"\exists\, M \in \mathbb{R}^{\ell \times \ell} \text{ independent of } p:\quad "
        r"Q M = K \quad \text{namely } M = I_{\ell}"
    )


def test_statements() -> None:
    both = Statement({}, {"one": equal(Q, K), "two": equal(K, Q)}, ((p.term, p.term),))
    assert statement_latex(both) == (
        r"\begin{align*} \text{if } p &= p \\ \text{then } Q &= K && \text{one} \\ "
        r"K &= Q && \text{two} "
        r"\end{align*}"
    )
    wide = equal(*(sum((attention(Q, K, V) for _ in range(k)), X) for k in (4, 5)))
    assert r"\\ & \qquad = " in statement_latex(Statement({}, {"": wide}))


def test_words_in_a_label_are_not_commands() -> None:
    label = r"50% \input{x} $y$ & z"
    text = statement_latex(Statement({}, {label: equal(Q, K), "b": equal(Q, K)}))
    assert r"\input" not in text
    mathml(text)


def test_givens() -> None:
    (k,) = sizes("k")
    givens = {
        "Q": real(n, l),
        "sigma": permutation(n),
        "g": orthogonal(l),
        "e": index_map(k, n),
        "c": real(),
        "M": boolean(n, n),
    }
    assert memberships(givens) == {
        "Q": r"Q \in \mathbb{R}^{n \times \ell}",
        "sigma": r"\sigma \in S_{n}",
        "g": r"g \in \operatorname{O}(\ell)",
        "e": r"e \colon\; \{0, \dots, k - 1\} \to \{0, \dots, n - 1\}",
        "c": r"c \in \mathbb{R}",
        "M": r"M \in \{\text{T}, \text{F}\}^{n \times n}",
    }


ENTRIES = {e.id: e for e in load_catalogue().entries}


@each(ENTRIES)
def test_every_formula_of_the_catalogue_can_be_set(name: str) -> None:
    for statement in ENTRIES[name].statements:
        mathml(statement_latex(statement))
        for claim in (*statement.claims.values(), *(law.claim for law in statement.laws)):
            for text in (claim_latex(claim), *map(fact_latex, claim.using)):
                mathml(text)
            sides: list[Callable[..., str]] = [latex, unfolded_latex]
            for term in (claim.left, *(link.term for link in claim.links)):
                for read in sides:
                    mathml(read(term))
        for text in memberships(statement.givens).values():
            mathml(text)


@each(ENTRIES)
def test_a_statement_and_its_control_do_not_look_alike(name: str) -> None:
    told = [(statement_latex(s), memberships(s.givens)) for s in ENTRIES[name].statements]
    assert all(a != b for a, b in pairwise(told))


@each(ENTRIES)
def test_no_equation_of_the_catalogue_looks_trivial(name: str) -> None:
    """Different terms look different, unless one is the definition of the other."""
    for statement in ENTRIES[name].statements:
        for claim in statement.claims.values():
            if claim.relation == "=" and claim.right not in (None, claim.left):
                left, relation, right = claim_latex(claim).partition(" = ")
                assert left != right or _same(claim.left, claim.right), (relation, left)


def _same(left: Term, right: Term | None) -> bool:
    """Whether two terms are one when definitions are unfolded and tables read."""
    return right is not None and plain(left) == plain(right)
