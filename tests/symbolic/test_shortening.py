"""A formula longer than a page is cut before its text is built, and says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, at_least, differ, equal
from attnproof.symbolic.continuity import bounded, whole_valued
from attnproof.symbolic.divisors import opened
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.latex import claim_latex, latex, latex_pair
from attnproof.symbolic.latex.statements import MAX_DEPTH, MAX_PARTS, shortened
from attnproof.symbolic.plain import plain, plain_claim
from attnproof.symbolic.prove import decide
from attnproof.symbolic.scalars import add, entry, index, mul, size
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.steps import rule_counts
from attnproof.symbolic.terms import Term, free, postorder
from attnproof.theorem_runs import page, translation

(n,) = sizes("n")
GIVEN = {"a": real(n), "b": real(n)}
LONG = 40 * MAX_PARTS  # letters


def tower(height: int) -> Array:
    """Roots and exponentials in one another: few parts, and 3^height of them to read."""
    a, b = (given.named(name) for name, given in GIVEN.items())
    for _ in range(height):
        a, b = xp.exp(a * b) + a, xp.sqrt(xp.abs(a + b)) * b
    found: Array = a * b
    return found


TELLS: dict[str, Callable[[Array], str]] = {
    "plain": lambda x: plain(x.term),
    "latex": lambda x: latex(x.term),
    "a pair": lambda x: " ".join(latex_pair(x.term, (x + 1).term)),
    "an equation": lambda x: plain_claim(equal(x, x + 1)) + claim_latex(equal(x, x + 1)),
    "an order": lambda x: claim_latex(at_least(x, 1)),
    "a difference": lambda x: claim_latex(differ(x, x + 1)),
    "an entry": lambda x: latex(x[0].term) + plain(x[0].term),
    "a product": lambda x: latex((x[:, None] @ x[None, :]).term),
    "a record": lambda x: translation.statement(Statement(GIVEN, {"": equal(x, x + 1)})).latex,
}


@pytest.mark.parametrize("tell", TELLS.values(), ids=list(TELLS))
def test_what_is_longer_than_a_page_is_cut_and_says_so(tell: Callable[[Array], str]) -> None:
    told = tell(tower(40))  # whole, it has more than 3^40
    assert "cut" in told
    assert len(told) < LONG
    assert "cut" not in tell(tower(2))


def test_the_outermost_parts_stay() -> None:
    assert plain(tower(40).term).startswith("(")
    text = plain(shortened((xp.exp(tower(40)) + GIVEN["a"].named("a")).term, 20))
    assert text.startswith("a + exp(") or text.endswith(" + a")


def test_of_a_long_sum_the_first_stay() -> None:
    names = [size(f"n{k}") for k in range(3 * MAX_PARTS)]
    assert plain(add(*names)).count(" + ") == MAX_PARTS - 1 - 1
    assert plain(mul(*names)).count("·") == MAX_PARTS - 1 - 1


def test_what_is_nested_too_deep_to_be_read_is_cut() -> None:
    x = GIVEN["a"].named("a")
    for _ in range(2 * MAX_DEPTH):
        x = xp.exp(x)
    assert plain(x.term).count("exp") == MAX_DEPTH


def parts(t: Term) -> int:
    return 1 + sum(map(parts, t.args))


def test_no_more_parts_than_a_page_and_nothing_else_is_changed() -> None:
    for most in (1, 2, 3, 10, 100):
        cut = shortened(tower(6).term, most)
        assert parts(cut) <= most
        assert any(t.op == "cut" for t in postorder(cut))
        assert cut.shape == tower(6).term.shape
    short = tower(3).term
    assert shortened(short) is short


def test_a_claim_that_is_cut_is_judged_as_it_is() -> None:
    x = tower(12)
    claims: dict[str, Claim] = {"same": equal(x, x), "other": equal(x, x + 1)}
    found = {name: decide(Statement(GIVEN, {"": one})).verdict for name, one in claims.items()}
    assert found == {"same": "proved", "other": "refuted"}


def test_what_walks_over_a_term_takes_a_shared_part_once() -> None:
    a, b = (given.named(name) for name, given in GIVEN.items())
    whole = a // 1
    for _ in range(60):
        a, b = xp.sin(a * b) * a, xp.cos(a + b) + b
        whole = xp.maximum(xp.abs(whole), whole * 2)
    x = a * b
    assert not bounded(x.term, free(x.term))
    assert whole_valued(whole.term)
    found = opened(entry((x[:, None] @ x[None, :]).term, index("i", n.term), index("j", n.term)))
    assert rule_counts(found)["entry"] > 2**60


def test_of_very_many_kernel_steps_the_first_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "STEPS", 50)
    x = tower(12)
    decided = decide(Statement(GIVEN, {"": equal(x * x + x, x * (x + 1))}))
    (link,) = decided.claims[0].links
    (lines,) = page.kernel_steps(decided)
    assert lines[-1].strip() == f"{link.steps - 50} more steps not shown"
    starts = [line.split()[0] for line in lines]
    assert "50." in starts
    assert "51." not in starts
