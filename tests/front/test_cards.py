"""Cards: one encoding and every law, in text, in notebooks, as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import attnproof
from attnproof import Encoding, EncodingLaw
from attnproof.answers.cards import Card
from attnproof.cards.page import counted, faults, reasons
from attnproof.cards.records import CellRecord, TableRecord
from attnproof.cards.registry import load_file
from attnproof.cli import main
from attnproof.encodings.bias import Alibi, KerplePower
from attnproof.errors import UsageError
from attnproof.numeric.results import MeasuredEvidence
from attnproof.report.encodings import card_html
from tests.front.code_files import LAWS, NOT_EVEN, NOT_MADE, RAISES, write
from tests.front.outputs import Output, balanced, refused, shown, without_torch


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Card:
    """The card of a small encoding."""
    return attnproof.card(write(tmp_path_factory.mktemp("small")), LAWS)


def verdicts(card: Card) -> dict[str, str]:
    return {cell.law: cell.verdict for cell in card.cells}


def test_a_card_says_what_is_proved_refuted_and_proved_under_a_hypothesis(small: Card) -> None:
    assert verdicts(small) == {
        "relative": "proved",
        "even": "proved",
        "odd": "refuted",
        "falls-with-distance": "proved",
    }
    falls = small.cell("falls-with-distance")
    assert falls.under == ("the slope is at most 0",)
    assert falls.needed is not None
    assert not small.cell("even").under
    assert small.cell("odd").witness


def test_an_encoding_that_is_broken_in_one_line_has_other_cells(tmp_path: Path) -> None:
    card = attnproof.card(write(tmp_path, NOT_EVEN), LAWS)
    assert verdicts(card) == {
        "relative": "proved",
        "even": "refuted",
        "odd": "proved",
        "falls-with-distance": "proved",
    }
    assert card.cell("even").witness


def test_code_that_raises_leaves_its_cells_undecided_and_says_where(tmp_path: Path) -> None:
    card = attnproof.card(write(tmp_path, RAISES), LAWS)
    assert set(verdicts(card).values()) == {"undecided"}
    line = RAISES[: RAISES.index("return 1 // 0")].count("\n") + 1
    told = f"ZeroDivisionError: integer division or modulo by zero (line {line})"
    assert {cell.error for cell in card.cells} == {told}
    assert not card.record.ok
    assert f"the score: raises {told}" in str(card).replace("\n", " ")
    text = " ".join(str(card).split())
    assert f"! nearer, {', '.join(LAWS)}: raised {told}" in text  # once, and for all of them
    assert text.count(told) == len(card.encoding.formulas) + 1
    assert "see below" not in text
    every = attnproof.card(write(tmp_path, RAISES))
    raised = [cell for cell in every.cells if cell.error]
    assert f"! nearer, {len(raised)} laws: raised {told}" in " ".join(str(every).split())


def test_one_that_cannot_be_made_has_no_card(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        attnproof.card(write(tmp_path, NOT_MADE))


def test_a_class_an_instance_an_id_and_a_file_are_the_same_encoding(tmp_path: Path) -> None:
    (own,) = load_file(write(tmp_path))
    for one in (Alibi, Alibi(), "alibi"):
        assert attnproof.card(one, ["even"]).encoding.id == "alibi"
    for other in (own, own(), str(tmp_path / "nearer.py"), tmp_path / "nearer.py"):
        assert attnproof.card(other, ["even"]).encoding.id == "nearer"


def test_a_definition_of_a_plain_number_is_printed_by_its_meaning() -> None:
    """Its notation, x^y, has a place for what is no argument of the term."""
    card = attnproof.card(KerplePower(r_2=2), ["relative"])
    assert card.cell("relative").verdict == "proved"


def test_an_instance_with_numbers_is_asked_about_with_these_numbers() -> None:
    up, down = (
        attnproof.card(Alibi(slope=value), ["falls-with-distance"]).cell("falls-with-distance")
        for value in (-1, 1)
    )
    assert (up.verdict, down.verdict, down.under) == ("refuted", "proved", ())
    shown = attnproof.card(Alibi(slope=-1), ["even"])
    assert shown.encoding.title == "ALiBi with slope = -1"
    assert shown.encoding.parameters == ()


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("ropee", "wanted the id of an encoding, got 'ropee'; nearest: rope"),
        (3, "wanted a subclass of Encoding, an instance, an id or a file; got 3"),
        (int, "wanted a subclass of Encoding"),
    ],
)
def test_what_is_no_encoding_is_refused(wanted: object, told: str) -> None:
    with pytest.raises((UsageError, TypeError), match=re.escape(told)):
        attnproof.card(wanted)  # type: ignore[arg-type]


def test_a_law_that_is_asked_for_alone_is_stated(small: Card) -> None:
    alone = " ".join(str(attnproof.card("rope", ["keeps-norms"])).split())
    cell = attnproof.card("rope", ["keeps-norms"]).cell("keeps-norms")
    assert cell.statement is not None
    assert f"the law: {' '.join(cell.statement.text.split())}" in alone
    assert "the law: " not in str(small)


def test_a_card_names_the_projections_where_tokens_have_something_added() -> None:
    assert "A (2·B, 2·B): W_Q W_Kᵀ" in str(attnproof.card("sinusoidal", ["even"]))
    assert "W_Q" not in str(attnproof.card("rope", ["relative"]))


def test_an_unknown_law_is_refused(small: Card) -> None:
    with pytest.raises(UsageError, match="got 'evenn'; nearest: even"):
        attnproof.card(Alibi, ["evenn"])
    with pytest.raises(UsageError, match="the id of a law, got 'nothing'"):
        small.cell("nothing")


def test_a_file_with_two_encodings_wants_a_name(tmp_path: Path) -> None:
    text = "from attnproof import Encoding\nclass A(Encoding): pass\nclass B(Encoding): pass\n"
    with pytest.raises(TypeError, match="has A, B: name a class"):
        attnproof.card(write(tmp_path, text))


def test_the_text_has_every_verdict_its_reason_and_no_line_too_long(small: Card) -> None:
    text = str(small)
    assert max(map(len, text.splitlines())) <= 100
    words = " ".join(text.split())
    for cell in small.cells:
        for reason in reasons(cell):
            assert reason in words
    assert "without it: every size 1, slope = 1" in words
    assert "the score: s -> s + slope·(m - n)^2" in words
    assert counted(small.record) == "4 laws: 3 proved (1 under a hypothesis), 1 refuted"
    assert repr(small) == text


def test_a_narrow_terminal_wraps_and_loses_nothing(small: Card) -> None:
    text = shown(small, 44)
    assert max(map(len, text.splitlines())) <= 44
    squeezed = re.sub(r"\s|[\d.]+ s$", "", text, flags=re.MULTILINE)
    witness = small.cell("odd").witness
    assert re.sub(r"\s", "", witness) in squeezed


def test_the_record_of_a_card_comes_back(small: Card) -> None:
    assert TableRecord.model_validate_json(small.to_json()) == small.record
    changed = json.loads(small.to_json())
    changed["cells"][0]["verdict"] = "true"
    with pytest.raises(ValueError, match="verdict"):
        TableRecord.model_validate_json(json.dumps(changed))


def test_a_notebook_shows_it_whole_and_fetches_nothing(small: Card) -> None:
    html = small._repr_html_()
    balanced(html)
    assert "<math" in html
    assert "shown as LaTeX source" not in html
    assert html.count('class="sign proved"') == 3
    assert '<a href="https://example.org/nearer">' in html
    with pytest.raises(AssertionError):
        balanced(html.replace("</table>", "<script></script></table>", 1))


def test_a_notebook_escapes_what_an_encoding_says(small: Card) -> None:
    nasty = "<script>alert(1)</script> & <b>"
    cell = small.cells[0].model_copy(update={"why": nasty, "under": (nasty,)})
    encoding = small.encoding.model_copy(
        update={
            "title": nasty,
            "says": nasty,
            "sources": (nasty,),
            "file": nasty,
            "formulas": (
                attnproof.card(Alibi, ["even"])
                .encoding.formulas[0]
                .model_copy(update={"latex": "", "text": nasty}),
            ),
        }
    )
    record = small.record.model_copy(
        update={
            "encodings": (encoding,),
            "cells": (cell,),
            "unfinished": (nasty,),
            "laws": (small.record.laws[0].model_copy(update={"title": nasty, "group": nasty}),),
        }
    )
    html = card_html(record)
    balanced(html)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_faults_are_told_in_a_line_each(small: Card) -> None:
    record = small.record.model_copy(update={"unfinished": ("a", "b")})
    assert list(faults(small.record)) == []
    assert list(faults(record)) == ["! interrupted; incomplete: a, b"]
    assert not record.ok


def test_the_base_class_has_a_card_too() -> None:
    class Nothing(Encoding):
        """Nothing is done."""

    assert attnproof.card(Nothing, ["even"]).encoding.file.endswith("test_cards.py")


def test_numbers_stand_beside_a_verdict_and_a_failure_to_measure_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import attnproof.cards.table as numbers

    held = MeasuredEvidence(
        says="",
        implementation="torch",
        device="cpu",
        dtype="float32",
        sizes={},
        seed=0,
        sampled="every entry",
        error=0.0,
        tolerance=1.0,
        worst=(),
        seconds=0.0,
        status="held",
        reason="",
        rounding="",
    )

    def measured(_: object, law: EncodingLaw, cell: CellRecord) -> CellRecord:
        if law.id == "odd":
            raise ValueError("no numbers")
        return cell.model_copy(update={"evidence": (*cell.evidence, held)})

    monkeypatch.setattr(numbers, "measured", measured)
    card = attnproof.card(write(tmp_path), ["even", "odd"], numeric=True)
    assert verdicts(card) == {"even": "proved", "odd": "refuted"}
    assert "measured: 1 held in float32" in list(reasons(card.cell("even")))
    assert card.cell("odd").why.endswith("; not measured: ValueError: no numbers")
    plain = attnproof.card(tmp_path / "nearer.py", ["even"])
    assert len(list(reasons(plain.cell("even")))) == 1


# Cards say which requirements of the documents an encoding meets, by the laws it keeps.


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


# `attnproof card`: prints cards, writes their record, refuses in a line, needs no torch.


ASKED = [word for law in LAWS for word in ("--law", law)]


def test_the_command_prints_a_card_and_writes_its_record(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "new" / "card.json"
    path = write(tmp_path)
    assert main(["card", "alibi", str(path), *ASKED, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.index("ALiBi  alibi") < out.index("nearer  nearer")
    assert "if the slope is at most 0" in out
    record = TableRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert [encoding.id for encoding in record.encodings] == ["alibi", "nearer"]
    assert len(record.cells) == 2 * len(LAWS)


def test_a_card_of_a_file_that_is_broken_or_raises_fails(capsys: Output, tmp_path: Path) -> None:
    broken = write(tmp_path, "x = 1\n1 / 0", "broken")
    assert main(["card", str(broken)]) == 1
    assert f"! broken: {broken}: ZeroDivisionError: division by zero (line 2)" in (
        capsys.readouterr().out
    )
    assert main(["card", "alibi", "--law", "even", "--encoding", str(broken)]) == 1
    out = capsys.readouterr().out
    assert "✓" in out
    assert "! broken" in out
    assert main(["card", str(write(tmp_path, RAISES)), "--law", "even"]) == 1
    assert "! nearer, even: raised ZeroDivisionError" in capsys.readouterr().out
    assert main(["card", str(write(tmp_path, NOT_MADE, "not_made")), "--law", "even"]) == 1
    assert "! broken: nearer: SystemExit: no" in capsys.readouterr().out


def test_usage_errors_are_one_line(capsys: Output, tmp_path: Path) -> None:
    assert "nearest: rope" in refused(capsys, "card", "ropee")
    assert "see `attnproof list --encodings`" in refused(capsys, "card", "zzz")
    assert "which does not exist" in refused(capsys, "card", str(tmp_path / "gone.py"))
    assert "name the file" in refused(capsys, "card", "alibi", "--encoding", str(tmp_path))
    assert "nearest: even" in refused(capsys, "card", "alibi", "--law", "evenn")
    assert "wanted a file to write to" in refused(
        capsys, "card", "alibi", "--law", "even", "--json", str(tmp_path)
    )
    assert "Missing argument" in refused(capsys, "card")


def test_a_card_needs_no_torch(root: Path) -> None:
    done = without_torch(root, "card", "rope", "--law", "relative")
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert "1 law: 1 proved." in done.stdout


def test_numbers_do_and_say_so(root: Path) -> None:
    done = without_torch(root, "card", "rope", "--law", "relative", "--numeric")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("attnproof: --numeric needs torch (torch is not here)")
