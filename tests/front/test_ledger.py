"""The ledger: read, held against the catalogue, and told in one line where it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.ledger import BrokenClaim, Ledger, Reference, load_ledger, read

if TYPE_CHECKING:
    from tests.front.conftest import House


def loaded(folder: Path) -> Ledger:
    """The part of the ledger that a test wrote."""
    return load_ledger(load_catalogue([folder]), [folder]).select(["900"])


def faults(path: Path) -> list[str]:
    """What is wrong with a file by itself."""
    return [broken.error for broken in read(path).broken]


def test_a_claim_comes_with_its_document_in_order(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    house.ledger(house.claim.replace("Z1", "Z2"), house.claim)
    ledger = loaded(tmp_path)
    assert not ledger.broken
    assert [(d.id, d.title, d.kind) for d in ledger.documents] == [
        ("900", "Notes on addition", "notes")
    ]
    assert ledger.ids == ("Z2", "Z1")
    assert ledger.theorems == ("addition-commutes",)
    (first, _) = ledger.claims
    assert (first.document, first.printed) == ("900", ("addition-commutes",))
    assert list(first.references) == [("printed", "addition-commutes")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a-b", Reference("a-b")),
        ("a-b#control", Reference("a-b", control=True)),
        ("a-b#the first = one", Reference("a-b", "the first = one")),
        ("a-b#control#the first", Reference("a-b", "the first", control=True)),
        ("a-b#controls", Reference("a-b", "controls")),
    ],
)
def test_a_reference_names_a_theorem_a_control_or_a_conclusion(
    text: str, wanted: Reference
) -> None:
    assert Reference.of(text) == wanted


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'kind = "theorem"',
            'kind = "lemma"',
            (
                "Z1: kind: wanted definition, theorem, property, step, example, numeric-demo, "
                "convention "
                "or heuristic, got 'lemma'"
            ),
        ),
        (
            '"true as written"',
            '"true"',
            (
                "Z1: expected: wanted true as written, true under a stated correction, false as "
                "written, "
                "not checkable or undecided, got 'true'"
            ),
        ),
        ("place =", "palce =", "Z1: palce: there is no such key; nearest: place"),
        ("place =", "palce =", "Z1: place: wanted, and missing"),
        ('says = "Addition of numbers commutes."', 'says = " "', "Z1: says: wanted words, got ' '"),
        ('says = "Addition of numbers commutes."', "says = 3", "Z1: says: wanted words, got 3"),
        (
            'printed = ["addition-commutes"]',
            'printed = "addition-commutes"',
            "Z1: printed: wanted a list of ids, got 'addition-commutes'",
        ),
        (
            'printed = ["addition-commutes"]',
            "printed = [3]",
            "Z1: printed: wanted a list of ids, got [3]",
        ),
        (
            'printed = ["addition-commutes"]',
            'printed = ["a", "a"]',
            "Z1: printed: wanted each id once, got ['a', 'a']",
        ),
        (
            'printed = ["addition-commutes"]',
            "printed = []",
            (
                "Z1: wanted something that decides it: printed, disproof, corrected, "
                "demonstrations, "
                "undecided or not_checkable; got none"
            ),
        ),
        (
            "printed",
            'undecided = "a"\nnot_checkable = "b"\nprinted',
            "Z1: undecided and not_checkable: wanted one reason, got two",
        ),
        (
            "printed",
            'unstated = "a"\ncorrection = "b"\nprinted',
            ("Z1: unstated: what is not a statement cannot be printed as one; name one of them"),
        ),
        (
            "printed",
            "corrected",
            (
                "Z1: corrected: wanted what shows the printed form wrong as well: printed, "
                "disproof, "
                "demonstrations or unstated"
            ),
        ),
        (
            "printed",
            'mends = "type"\ncorrection = "b"\nprinted',
            "Z1: mends: wanted the statement that is right in corrected, got none",
        ),
        (
            "printed",
            'mends = "type"\ncorrected = ["x"]\nprinted',
            "Z1: correction: wanted, in words, what is right; got none",
        ),
        ('id = "Z1"', 'id = ""', "claim 1: id: wanted words, got ''"),
        ('id = "Z1"', "", "claim 1: id: wanted, and missing"),
    ],
)
def test_a_wrong_claim_is_told_with_its_id_its_key_and_what_came(
    house: House, old: str, new: str, told: str
) -> None:
    assert old in house.claim
    path = house.ledger(house.claim.replace(old, new, 1), house.claim.replace("Z1", "Z2"))
    assert told in faults(path)
    assert [entry.id for entry in read(path).claims] == ["Z2"]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("", "wanted the table [document] with id, title and kind; there is none"),
        ('[document]\nid = "900"\ntitle = "x"', "[document]: kind: wanted, and missing"),
        (
            '[document]\nid = "900"\ntitle = "x"\nkind = "y"\nyear = 1',
            "[document]: year: there is no such key; there are 3, none like it",
        ),
        (
            '[document]\nid = "901"\ntitle = "x"\nkind = "y"',
            "[document]: id: wanted '900', the file's name, got '901'",
        ),
        ("document = 3\n", "wanted the table [document] with id, title and kind; there is none"),
        (
            'claims = []\n[document]\nid = "900"\ntitle = "x"\nkind = "y"',
            "wanted the table [document] and tables [[claim]], got the key 'claims'",
        ),
    ],
)
def test_a_wrong_document_is_told(house: House, document: str, told: str) -> None:
    path = house.ledger(document=document)
    assert told in faults(path)
    assert not read(path).claims


def test_a_file_that_is_no_toml_is_told_with_its_line(house: House) -> None:
    path = house.ledger('[[claim]]\nid = "Z1')
    (broken,) = read(path).broken
    assert (broken.file, broken.document, broken.id) == ("claims/900.toml", "900", "")
    assert "Unterminated string" in broken.error
    path.write_bytes(b"\xff\xfe")
    (broken,) = read(path).broken
    assert "utf-8" in broken.error


def test_a_single_bracket_is_told(house: House) -> None:
    path = house.ledger('[claim]\nid = "Z1"')
    assert faults(path) == ["wanted tables [[claim]], with two brackets, got [claim] or a value"]


def test_an_unknown_theorem_is_told_with_the_nearest(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    house.ledger(house.claim.replace("addition-commutes", "addition-comutes#control"))
    ledger = loaded(tmp_path)
    told = "Z1: printed: wanted the id of a theorem, got 'addition-comutes'; nearest: addition-"
    assert not ledger.claims
    (broken,) = ledger.broken
    assert broken.error.startswith(told)
    assert (broken.file, broken.id) == ("claims/900.toml", "Z1")


def test_an_unknown_demonstration_is_told_with_the_nearest(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    house.demonstration()
    house.ledger(house.claim.replace("printed", 'demonstrations = ["two-and-too"]\nprinted'))
    (broken,) = loaded(tmp_path).broken
    assert "got 'two-and-too'; nearest: two-and-two" in broken.error
    house.ledger(house.claim.replace("printed", 'demonstrations = ["two-and-two"]\nprinted'))
    assert not loaded(tmp_path).broken


def test_an_id_is_given_once(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    house.ledger(house.claim, house.claim, house.claim.replace("Z1", "addition-commutes"))
    ledger = loaded(tmp_path)
    assert [entry.id for entry in ledger.claims] == ["Z1"]
    assert [broken.error for broken in ledger.broken] == [
        "Z1: the id is taken by a claim in claims/900.toml",
        "addition-commutes: the id is taken by a theorem or a subject",
    ]


def test_a_document_is_given_once(tmp_path: Path, house: House) -> None:
    house.ledger()
    other = tmp_path / "other"
    (other / "claims").mkdir(parents=True)
    (other / "claims" / "900.toml").write_text((tmp_path / "claims" / "900.toml").read_text())
    ledger = load_ledger(load_catalogue(), [tmp_path, other])
    told = f"the id 900 is taken by the document of {tmp_path / 'claims' / '900.toml'}"
    assert BrokenClaim("claims/900.toml", told, "900") in ledger.broken


def test_a_selection_takes_claims_documents_and_what_they_show(
    tmp_path: Path, house: House
) -> None:
    house.theorem("addition_commutes")
    house.demonstration()
    with_numbers = house.claim.replace("printed", 'demonstrations = ["two-and-two"]\nprinted')
    house.ledger(house.claim, with_numbers.replace("Z1", "Z2"), house.claim.replace("kind", "kin"))
    ledger = load_ledger(load_catalogue([tmp_path]), [tmp_path])
    assert {"900", "Z1", "Z2"} <= set(ledger.names)
    assert set(ledger.demonstrations) > {"two-and-two"}
    assert ledger.select([]) is ledger
    document, first, second = (ledger.select([name]) for name in ("900", "Z1", "Z2"))
    assert (document.ids, first.ids, second.ids) == (("Z1", "Z2"), ("Z1",), ("Z2",))
    assert [list(part.demonstrations) for part in (document, first, second)] == [
        ["two-and-two"],
        [],
        ["two-and-two"],
    ]
    assert [len(part.broken) for part in (document, first, second)] == [2, 2, 0]
    nothing = ledger.select(["softmax"])
    assert not nothing.claims
    assert not nothing.broken
    assert not nothing.documents
