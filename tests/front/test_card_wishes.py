"""Cards say which wishes of the documents an encoding meets, by the laws it keeps."""

from __future__ import annotations

import attnproof
from tests.front.outputs import balanced, shown


def test_wishes_follow_from_the_cells_and_need_all_their_laws() -> None:
    from attnproof.laws.wishes import WISHES, granted

    card = attnproof.card("alibi", ["relative", "continuous", "even", "unique"])
    asked = {cell.law: cell.verdict for cell in card.cells}
    wanted = [w for w in WISHES if {law for law, _ in w.laws} <= set(asked)]
    assert wanted
    assert [(w.id, w.verdict) for w in card.wishes] == [
        (w.id, granted(w, asked).verdict) for w in wanted
    ]
    words = shown(card, 300)
    assert "what the documents wish" in words
    for wish in card.wishes:
        assert wish.says in words
        assert f"{wish.verdict}: {wish.because[0][0]} {wish.because[0][1]}" in words
    balanced(card._repr_html_())
    assert "what the documents wish" in card._repr_html_()
    assert attnproof.card("alibi", ["even"]).wishes == ()


def test_a_wish_that_is_met_under_a_hypothesis_says_so() -> None:
    (wish,) = attnproof.card("alibi", ["tells-before-from-after"]).wishes
    assert (wish.verdict, wish.because) == ("not met", (("tells-before-from-after", "refuted"),))
    wishes = attnproof.card("sinusoidal", ["unique"]).wishes
    assert {(w.verdict, w.because) for w in wishes} == {
        ("met", (("unique", "proved if some frequency is not a rational multiple of π"),))
    }


def test_a_wish_is_not_met_by_one_that_breaks_its_law() -> None:
    met, broken = (attnproof.card(name, ["relative"]).wishes for name in ("alibi", "index"))
    assert [wish.verdict for wish in met] == ["met"]
    assert [wish.verdict for wish in broken] == ["not met"]
