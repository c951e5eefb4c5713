"""Cards say which requirements of the documents an encoding meets, by the laws it keeps."""

from __future__ import annotations

import attnproof
from tests.front.outputs import balanced, shown


def test_requirements_follow_from_the_cells_and_need_all_their_laws() -> None:
    from attnproof.laws.requirements import REQUIREMENTS, granted

    card = attnproof.card("alibi", ["relative", "continuous", "even", "unique"])
    asked = {cell.law: cell.verdict for cell in card.cells}
    wanted = [w for w in REQUIREMENTS if {law for law, _ in w.laws} <= set(asked)]
    assert wanted
    assert [(w.id, w.verdict) for w in card.requirements] == [
        (w.id, granted(w, asked).verdict) for w in wanted
    ]
    words = shown(card, 300)
    assert "what the documents require" in words
    for requirement in card.requirements:
        assert requirement.says in words
        assert (
            f"{requirement.verdict}: {requirement.because[0][0]} {requirement.because[0][1]}"
            in words
        )
    balanced(card._repr_html_())
    assert "what the documents require" in card._repr_html_()
    assert attnproof.card("alibi", ["even"]).requirements == ()


def test_a_requirement_that_is_met_under_a_hypothesis_says_so() -> None:
    (requirement,) = attnproof.card("alibi", ["tells-before-from-after"]).requirements
    assert (requirement.verdict, requirement.because) == (
        "not met",
        (("tells-before-from-after", "refuted"),),
    )
    requirements = attnproof.card("sinusoidal", ["unique"]).requirements
    assert {(w.verdict, w.because) for w in requirements} == {
        ("met", (("unique", "proved if some frequency is not a rational multiple of π"),))
    }


def test_a_requirement_is_not_met_by_one_that_breaks_its_law() -> None:
    met, broken = (attnproof.card(name, ["relative"]).requirements for name in ("alibi", "index"))
    assert [requirement.verdict for requirement in met] == ["met"]
    assert [requirement.verdict for requirement in broken] == ["not met"]
