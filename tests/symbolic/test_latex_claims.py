"""The LaTeX and the text of claims that are not a plain equation, of powers and random arrays."""

from __future__ import annotations

from typing import Any

from attnproof.report.words import mathml
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import (
    Claim,
    all_positive,
    at_least,
    differ,
    equal,
    exists,
    for_all,
    greater,
    iterate,
    over,
    rows,
)
from attnproof.symbolic.divisors import conditions
from attnproof.symbolic.givens import (
    function,
    index_below,
    natural,
    nonnegative,
    permutation,
    probability_space,
    real,
    sizes,
    standard,
)
from attnproof.symbolic.latex import (
    claim_latex,
    fact_latex,
    latex,
    latex_pair,
    name_latex,
    statement_latex,
)
from attnproof.symbolic.plain import plain, plain_claim, plain_fact
from attnproof.symbolic.scalars import index
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.rotary import conjugate, product, unit
from tests.cases import each
from tests.symbolic.stating import memberships

(n,) = sizes("n", "tokens")
d, l = sizes("d l", "features")
M, N = (real(d, d).named(name) for name in "MN")
x, y = (real(d).named(name) for name in "xy")
s, c = real().named("s"), nonnegative().named("c")
m, k = natural().named("m"), natural().named("k")
Omega, Psi = probability_space("Ω"), probability_space("Psi")
z, w = standard(Omega, l).named("z"), standard(Psi, l).named("w")
f, v = function(1, 0, out=None).named("f"), real(2).named("v")


def power(base: Array, exponent: Any) -> Any:
    return iterate(exponent, xp.eye(d), lambda _, Y: base @ Y)


def layers(depth: Any) -> Any:
    return iterate(depth, x, lambda t, h: xp.tanh(M @ h + f(x, t)))


def mean(a: Array) -> Array:
    return xp.sum(a, axis=0)


p, u, T = permutation(d).named("p"), real(4 * n).named("u"), real(n, n, d).named("T")
ARRAYS: dict[str, tuple[Any, str | None, str | None]] = {
    "power": (power(M, m), "M^{m}", "M^m"),
    "power of a sum": (power(M, m + k) @ x, r"M^{m + k}\,x", "M^(m + k) @ x"),
    "next power": (power(M, m + 1), "M^{m + 1}", "M^(m + 1)"),
    "power of a transpose": (power(M.mT, m), r"(M^{\top})^{m}", "(Mᵀ)^m"),
    "transpose of a power": (power(M, m).mT, r"(M^{m})^{\top}", "(M^m)ᵀ"),
    "power of a product": (power(M @ N, m), "(M N)^{m}", "(M @ N)^m"),
    "power of a number": (iterate(m, xp.ones(()), lambda _, v: v * s), "s^{m}", "s^m"),
    "from the other side": (
        iterate(m, xp.eye(d), lambda _, Y: Y @ M),
        r"F^{m}(I_{d}) \quad \text{with } F(x) = x M",
        "iterate(m, eye(d); t, y -> y @ M)",
    ),
    "from another start": (
        iterate(m, x, lambda _, Y: M @ Y),
        r"F^{m}(x) \quad \text{with } F(y) = M y",
        "iterate(m, x; t, y -> M @ y)",
    ),
    "a function again and again": (
        iterate(m, x, lambda _, Y: function(1, out=None).named("g")(Y)),
        "g^{m}(x)",
        "iterate(m, x; t, y -> g(y))",
    ),
    "layers": (
        layers(m),
        (
            r"\left(F_{m - 1} \circ \cdots \circ F_{0}\right)(x) \quad \text{with } "
            r"F_{t}(y) = \tanh(M y + f(x, t))"
        ),
        "iterate(m, x; t, y -> tanh(M @ y + f(x, t)))",
    ),
    "rows": (
        rows(n, lambda i: power(M, i) @ x),
        r"\left(M^{i}\,x\right)_{i < n}",
        "(j ↦ (M^j @ x))",
    ),
    "a row of rows": (rows(n, lambda i: power(M, i) @ x)[0], r"M^{0}\,x", "(j ↦ (M^j @ x))[0]"),
    "rows that are an array": (rows(n, lambda i: real(n, d).named("X")[i]), "X", "X"),
    "expectation": (
        mean(z + s),
        r"\left[\mathbb{E}\left[z_{a} + s\right]\right]_{a}",
        "E_Ω[z + s]",
    ),
    "expectation of a random number": (
        mean(real(Omega).named("X")),
        r"\mathbb{E}\left[X\right]",
        "E_Ω[X]",
    ),
    "expectation of a product": (
        mean(mean((z @ w.mT) ** 2)),
        r"\mathbb{E}\left[\left(\sum_{a < \ell} z_{a}\,w_{a}\right)^{2}\right]",
        "E_Psi[E_Ω[(z @ wᵀ)^2]]",
    ),
    "expectation of an expectation": (
        mean(mean(z @ w.mT) ** 2),
        (
            r"\mathbb{E}_{\Psi}\left[\left(\mathbb{E}_{\Omega}\left[\sum_{a < \ell} z_{a}\,w_{a}"
            r"\right]\right)^{2}\right]"
        ),
        None,
    ),
    "covariance": (z.mT @ z, r"\left[\mathbb{E}\left[z_{a}\,z_{b}\right]\right]_{a b}", "zᵀ @ z"),
    "two outcomes of one space": (
        mean(mean(z @ z.mT)),
        (
            r"\mathbb{E}\left[\mathbb{E}_{\omega}\left[\sum_{a < \ell} z_{\omega a}\,z_{a}"
            r"\right]\right]"
        ),
        None,
    ),
    "basis vector": (xp.eye(d)[0], "e_{0}", "eye(d)[0]"),
    "entry of an entry": (real(3, 2).named("X")[0][1], "X_{0, 1}", "X[0][1]"),
    "small matrix": (
        xp.eye(2) + xp.eye(2)[1][:, None] * xp.eye(2)[0][None, :],
        r"\left(\begin{matrix}1 & 0 \\ 1 & 1\end{matrix}\right)",
        None,
    ),
    "small matrix with zeros": (xp.eye(2) * real(2, 2).named("X"), r"I_{2} \odot X", None),
    "small triangle": (
        xp.where(xp.arange(2)[:, None] >= xp.arange(2)[None, :], x[0], 0) * xp.exp(s),
        r"\left(\begin{matrix}x_{0}\,e^{s} & 0 \\ x_{0}\,e^{s} & x_{0}\,e^{s}\end{matrix}\right)",
        None,
    ),
    "ones": (xp.ones((n, d)) @ x, r"1_{n \times d}\,x", "broadcast_to(1, (n, d)) @ x"),
    "a matrix and a number": (s * xp.eye(d) + c, r"s I_{d} + c \cdot 1_{d \times d}", None),
    "squares": (s * s * c, "s^{2}\\,c", "s·s·c"),
    "dot products": ((x @ x) * (y @ y), r"(x^{\top}\,x)\,(y^{\top}\,y)", "(x @ x)·(y @ y)"),
    "a notation of its own": (
        product(v, conjugate(2 * v)),
        r"v \cdot (2 v)^{*}",
        "product(v, conjugate(2·v))",
    ),
    "its brackets": (
        real(2, 2).named("A") @ product(v, product(v, unit(s + c))),
        r"A (v \cdot (v \cdot e^{\mathrm{i}\,(s + c)}))",
        None,
    ),
    "its sums": (product(v + v, v), r"(v + v) \cdot v", None),
    "a product by entries of a product": ((M @ N) * M, r"(M N) \odot M", "(M @ N)·M"),
    "a product of a product by entries": (M @ (N * M), r"M (N \odot M)", "M @ (N·M)"),
    "rows of a product by entries": ((M * M)[p], r"p (M \odot M)", "(M·M)[p]"),
    "a product by entries of rows": (M[p] * M, r"(p M) \odot M", "M[p]·M"),
    "a number and a remainder": (m + k % 3, r"m + (k \bmod 3)", "m + (k mod 3)"),
    "the remainder of a sum": ((m + k) % 3, r"(m + k) \bmod 3", "(m + k) mod 3"),
    "the remainder of a long sum": (
        xp.sum(x) % 3,
        r"\left(\sum_{a < d} x_{a}\right) \bmod 3",
        "sum(x, axis=0) mod 3",
    ),
    "a sine and a factor": (xp.sin(s) * (s + 1), r"\sin(s)\,(s + 1)", "sin(s)·(s + 1)"),
    "a logarithm and a name": (xp.log(s) ** 2 * c, r"(\log s)^{2}\,c", "log(s)^2·c"),
    "a square of a sine and a name": (xp.sin(s) ** 2 * c, r"\sin^{2}(s)\,c", "sin(s)^2·c"),
    "sines": (xp.sin(s) * xp.cos(c), r"\sin s\,\cos c", "sin(s)·cos(c)"),
    "every second to the end": (u[1::2], "u_{1::2}", "u[1::2]"),
    "every second of the first half": (u[: 2 * n : 2], "u_{0:2 n:2}", "u[:2·n:2]"),
    "rows one below the other": (
        xp.stack((x, y)),
        r"\left(\begin{matrix}x^{\top} \\ y^{\top}\end{matrix}\right)",
        "stack(x, y)",
    ),
    "columns side by side": (
        xp.stack((x, y), axis=1),
        r"\left(\begin{matrix}x & y\end{matrix}\right)",
        "stack(x, y, axis=1)",
    ),
    "vectors joined": (
        xp.concat((x, y)),
        r"\left(\begin{matrix}x \\ y\end{matrix}\right)",
        "concat(x, y)",
    ),
    "matrices on a new last axis": (
        xp.stack((M, N), axis=2),
        r"\operatorname{stack}_{2}(M, N)",
        "stack(M, N, axis=2)",
    ),
    "matrices side by side": (
        xp.concat((M, N), axis=1),
        r"\left(\begin{matrix}M & N\end{matrix}\right)",
        "concat(M, N, axis=1)",
    ),
    "arrays joined along the first of three axes": (
        xp.concat((T, T)),
        r"\operatorname{concat}_{0}(T, T)",
        "concat(T, T)",
    ),
    "all axes in another order": (
        xp.permute_dims(T, (1, 0, 2)),
        r"\operatorname{axes}_{1, 0, 2}(T)",
        "permute(T, (1, 0, 2))",
    ),
    "two pairs of axes exchanged": (
        xp.permute_dims(T[None], (1, 0, 3, 2)),
        None,
        "permute(T[None, :, :, :], (1, 0, 3, 2))",
    ),
    "in another shape": (
        xp.reshape(M, (d * d,)),
        r"\operatorname{reshape}_{d^{2}}(M)",
        "reshape(M, (d·d,))",
    ),
    "a softmax of equal scores": (
        softmax(xp.broadcast_to(s, (n, d))),
        r"\operatorname{softmax}(s \cdot 1_{n \times d})",
        "softmax(broadcast_to(s, (n, d)))",
    ),
    "a sum of equal numbers": (
        xp.sum(xp.broadcast_to(s, (n,))),
        r"\sum_{i < n} s",
        "sum(broadcast_to(s, (n,)), axis=0)",
    ),
    "a sum of one number n times": (
        xp.sum(xp.broadcast_to(x[:1], (n,))),
        None,
        "sum(broadcast_to(x[:1], (n,)), axis=0)",
    ),
    "a sum over the rows of a repeated vector": (
        xp.sum(xp.broadcast_to(x, (n, d)), axis=1),
        None,
        "sum(x, axis=1)",
    ),
    "nothing added": (s + 0, "s", "s + 0"),
}


@each(ARRAYS)
def test_arrays(case: str) -> None:
    array, wanted, text = ARRAYS[case]
    if wanted is not None:
        assert latex(array.term) == wanted
        mathml(wanted)
    assert text is None or plain(array.term) == text


CLAIMS: dict[str, tuple[Claim, str, str]] = {
    "at least": (
        at_least(x @ x + 1, 2 * xp.sum(x)),
        r"x^{\top}\,x + 1 \ge 2\,\sum_{a < d} x_{a}",
        "x @ x + 1 ≥ 2·sum(x, axis=0)",
    ),
    "greater, by entries": (
        greater(xp.exp(x), x),
        r"e^{x_{a}} > x_{a} \quad \text{for all } a",
        "exp(x) > x",
    ),
    "positive": (all_positive(xp.exp(s)), "e^{s} > 0", "exp(s) > 0"),
    "numbers that differ": (differ(s, c), r"s \ne c", "s ≠ c"),
    "arrays that differ in some entry": (
        differ(xp.exp(x), y, s, ("because", c), s - c),
        r"e^{x_{a}} \ne y_{a} \quad \text{for some } a",
        "exp(x) ≠ y",
    ),
    "for all": (
        for_all({"x": real(d), "m": natural()}, lambda x, m: equal(f(x, m), power(M, m) @ x)).claim,
        r"f(x, m) = M^{m}\,x \quad \text{for all } x \in \mathbb{R}^{d}, m \in \mathbb{N}",
        "for all x ∈ ℝ^d, m ∈ \u2115: f(x, m) = M^m @ x",
    ),
    "for all, by entries": (
        for_all({"s": real()}, lambda s: equal(xp.exp(x * s), y)).claim,
        r"e^{x_{a}\,s} = y_{a} \quad \text{for all } a, s \in \mathbb{R}",
        "for all s ∈ ℝ: exp(x·s) = y",
    ),
    "for all, some": (
        for_all({"m": natural()}, lambda m: exists(real(d), "v", lambda v: equal(v, x * m))).claim,
        r"\text{for all } m \in \mathbb{N}:\quad \exists\, v \in \mathbb{R}^{d}:\quad v = m x",
        "for all m ∈ \u2115: there is v with v = x·m",
    ),
    "some index": (
        exists(index_below(l), "jk", lambda j: equal(j * s, s)),
        r"\exists\, \mathrm{jk} \in \{0, \dots, \ell - 1\}:\quad \mathrm{jk}\,s = s",
        "there is jk with jk·s = s",
    ),
    "expectation, by entries": (
        equal(mean(z * s), xp.zeros(l)),
        r"\mathbb{E}\left[z_{a}\,s\right] = 0 \quad \text{for all } a",
        "E_Ω[z·s] = 0",
    ),
    "what would look alike": (
        equal(M @ N @ x, M @ (N @ x)),
        r"M N x = M (N x)",
        "M @ N @ x = M @ (N @ x)",
    ),
    "powers that would look alike": (
        equal(
            *(iterate(m, xp.ones(()), layer) for layer in (lambda _, v: s * v, lambda _, v: v * s))
        ),
        r"F^{m}(1) = G^{m}(1) \quad \text{with } F(x) = s x \quad \text{with } G(x) = x s",
        "s^m = s^m",
    ),
}


@each(CLAIMS)
def test_claims(case: str) -> None:
    claim, wanted, text = CLAIMS[case]
    assert claim_latex(claim) == wanted
    mathml(wanted)
    assert plain_claim(claim) == text


def test_what_would_look_alike_is_told_apart_in_a_chain() -> None:
    left, right = (M @ N @ M).term, (M @ (N @ M)).term
    assert latex(left) == latex(right)
    assert latex_pair(left, right) == ("M N M", "M (N M)")
    assert latex_pair(left, left) == ("M N M", "M N M")


def test_hypotheses_stand_before_the_conclusions() -> None:
    start = for_all({"x": real(d)}, lambda x: equal(f(x, 0), x))
    step = for_all({"x": real(d), "m": natural()}, lambda x, m: equal(f(x, m + 1), M @ f(x, m)))
    sign = for_all({}, lambda: at_least(c, s))
    claim = equal(f(x, m), power(M, m) @ x).by_induction(m)
    text = statement_latex(Statement({}, {"": claim}, ((s.term, c.term),), (start, step, sign)))
    assert text == (
        r"\begin{align*} \text{if } s &= c \\ "
        r"\text{and } f(x, 0) &= x \quad \text{for all } x \in \mathbb{R}^{d} \\ "
        r"\text{and } f(x, m + 1) &= M f(x, m) \quad \text{for all } x \in \mathbb{R}^{d}, "
        r"m \in \mathbb{N} \\ \text{and } c &\ge s \\ "
        r"\text{then } f(x, m) &= M^{m}\,x \end{align*}"
    )
    mathml(text)
    assert claim_latex(sign.claim) == r"c \ge s"
    assert plain_claim(start.claim) == "for all x ∈ ℝ^d: f(x, 0) = x"


def test_facts_are_told_at_their_values() -> None:
    law = for_all({"x": real(d), "m": natural()}, lambda x, m: equal(f(x, m), x * m))
    once = law.at(x=y, m=k + 1)
    family = over(d, lambda j: law.at(x=M[j], m=0))
    assert fact_latex(once) == r"f(y, k + 1) = (k + 1)\,y"
    assert plain_fact(once) == "f(y, k + 1) = y·(k + 1)"
    assert fact_latex(family) == r"f(M_{a}, 0) = 0 \cdot M_{a} \quad \text{for all } a < d"
    assert plain_fact(family) == "f(M[a], 0) = 0·M[a] for all a < d"
    for fact in (once, family):
        mathml(fact_latex(fact))


def test_a_family_does_not_take_a_name_that_is_there() -> None:
    a = real().named("a")
    law = for_all({"x": real(d)}, lambda x: equal(x * a, x))
    assert r"\text{for all } b < d" in fact_latex(over(d, lambda j: law.at(x=M[j])))


def test_labels_stand_above_what_is_too_wide_for_them() -> None:
    long = "a conclusion with a name that is much longer than the page has room for"
    wide = equal(x + s * (x + s * (x + s * y)), y + s * (y + s * (y + s * (x + y))))
    beside = statement_latex(Statement({}, {"one": equal(x, y), "two": equal(y, x)}))
    above = statement_latex(Statement({}, {long: wide, "two": equal(y, x)}))
    assert r"x &= y && \text{one}" in beside
    assert rf"& \textit{{{long}}} \\ & \quad x" in above
    assert "&&" not in above
    for text in (beside, above):
        mathml(text)


def test_indices_in_a_label_are_set() -> None:
    text = statement_latex(Statement({}, {"M^j x_i": equal(x, y), "a_name": equal(y, x)}))
    assert r"\text{M}^{\text{j}}\text{ x}_{\text{i}}" in text
    assert r"\text{a_name}" in text
    mathml(text)


def test_givens() -> None:
    given = {"m": natural(), "c": nonnegative(d), "z": standard(Omega, l), "X": real(Omega, d)}
    assert memberships(given) == {
        "m": r"m \in \mathbb{N}",
        "c": r"c \in \mathbb{R}_{\ge 0}^{d}",
        "z": r"z \colon\; \Omega \to \mathbb{R}^{\ell}",
        "X": r"X \in \mathbb{R}^{\Omega \times d}",
    }
    assert name_latex("Ω'") == r"\Omega'"


def test_conditions_know_the_new_forms() -> None:
    """Divisors inside powers, tables and expectations are found, and by name."""
    inverse = iterate(m, xp.ones(()), lambda _, v: v / s)
    found = conditions(
        inverse.term,
        rows(n, lambda i: power(M, i) @ x / c).term,
        mean(z / (c + 1)).term,
        layers(m).term,
    )
    assert {(repr(f.value), f.wanted) for f in found} == {("s", "not 0"), ("c", "not 0")}


def test_a_bound_index_is_no_outcome() -> None:
    """An index that is called like the hidden one is still printed."""
    i = index("i", n.term)
    assert latex(real(n).named("v")[Array(i)].term) == "v_{i}"
