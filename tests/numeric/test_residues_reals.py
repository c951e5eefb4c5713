"""What real numbers have and residues need not: signs, real roots, one component of matrices."""

from __future__ import annotations

from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof.numeric.residues.exact import exact
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import (
    boolean,
    index_below,
    nonnegative,
    orthogonal,
    positions,
    positive,
    real,
    sizes,
)
from attnproof.symbolic.namespace import cos, pi
from tests.numeric.statements import stated
from tests.numeric.test_residues_hypotheses import under

(n,) = sizes("n", "tokens")
(d,) = sizes("d", "features")
xp: Any = array_namespace(real(n).named("x"))
PAIR = {"M": orthogonal(2), "N": orthogonal(2)}

TRUE_OF_REALS: dict[str, tuple[Any, Any, Any]] = {
    "a sum of squares": (
        {"x": real(), "y": real(), "z": real()},
        lambda x, y, z: [(x * x + y * y + z * z, 0 * x)],
        lambda x: equal(x, 0 * x),
    ),
    "no distance": (
        {"q": real(d), "k": real(d)},
        lambda q, k: [(xp.sum((q - k) * (q - k), axis=0), 0 * xp.sum(k, axis=0))],
        lambda q, k: equal(q - k, 0 * k),
    ),
    "no real number": (
        {"x": real(), "y": real()},
        lambda x, y: [(x * x + y * y, 0 * x - 1)],
        lambda x: equal(x, 0 * x),
    ),
    "one positive root": (
        {"x": positive(), "y": positive()},
        lambda x, y: [(x * x, y * y)],
        lambda x, y: equal(x - y, 0 * y),
    ),
    "no sum": (
        {"w": nonnegative(n)},
        lambda w: [(xp.sum(w, axis=0), 0 * xp.sum(w, axis=0))],
        lambda w: equal(w, 0 * w),
    ),
    "a row of positive numbers": (
        {"w": positive(2), "x": real()},
        lambda w, x: [(w[0], -(x * x) * w[1])],
        lambda x: equal(x, 0 * x),
    ),
    "an entry of an orthogonal matrix": (
        {"M": orthogonal(2)},
        lambda M: [(M[0, 1], 0 * M[0, 1])],
        lambda M: equal(M[0, 0] * M[0, 0], 1 + 0 * M[0, 0]),
    ),
}


@pytest.mark.parametrize("name", TRUE_OF_REALS)
def test_what_holds_of_real_numbers_alone_is_not_said_to_be_violated(name: str) -> None:
    for seed in range(6):
        for check in exact(under(*TRUE_OF_REALS[name]), scale="small", seed=seed):
            assert check.status != "violated", check


def det(M: Any) -> Any:
    return M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]


@pytest.mark.parametrize(
    "body", [lambda M, N: equal(det(M), det(N)), lambda M, N: equal(det(M @ N), 1 + 0 * det(M))]
)
def test_two_orthogonal_matrices_have_two_determinants(body: Any) -> None:
    checks = exact(stated(PAIR, body), scale="small")
    assert "violated" in {check.status for check in checks}
    assert all("no other combination" in check.argument for check in checks)


def test_an_orthogonal_matrix_of_one_entry_has_both_signs() -> None:
    for sign in (1, -1):
        said = stated({"g": orthogonal(1)}, lambda g, s=sign: equal(g[0, 0], s + 0 * g[0, 0]))
        checks = exact(said)
        assert "violated" in {check.status for check in checks}


def test_a_bound_says_for_which_whole_numbers_and_masks_it_is() -> None:
    givens = {"x": real(n), "keep": boolean(n), "i": index_below(n)}
    claim = stated(
        givens, lambda x, keep, i: equal(xp.where(keep, x, 0)[i], xp.where(keep, x, 0)[i])
    )
    for check in exact(claim, scale="small"):
        assert check.error
        assert check.argument.endswith("; with i, keep as drawn")


@pytest.mark.parametrize(
    "body",
    [
        lambda p, x: equal(cos(2 * pi * p) * x, x),
        lambda p, x: equal((p // 1) * x, p * x),
        lambda p, x: equal((p % 1) * x, 0 * x),
    ],
)
def test_a_position_is_not_taken_for_a_whole_number(body: Any) -> None:
    checks = exact(stated({"p": positions(), "x": real()}, body), scale="small")
    assert {check.status for check in checks} == {"skipped"}
    assert "p, which may be any real number" in checks[0].reason
