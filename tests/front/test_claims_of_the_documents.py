"""The ledger of the package: whole, and every claim derived as expected."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.ledger import Ledger, load_ledger
from attnproof.theorem_runs.page import claim_page, page
from attnproof.theorem_runs.records import Results


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    """The ledger of the package."""
    return load_ledger(load_catalogue())


RUN = """
import gc, sys
from functools import partial
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.ledger import load_ledger
from attnproof.theorem_runs.runner import Options, run
from attnproof.symbolic.expressions import deriving
deriving.derive = partial(deriving.derive, seconds=0.1)  # enough for the first choice of sizes
gc.set_threshold(100_000, 50, 100)  # terms are kept: to look for garbage takes a tenth of the time
catalogue = load_catalogue()
print(run(catalogue, Options(numeric=False), ledger=load_ledger(catalogue)).model_dump_json())
print("torch" in sys.modules)
"""


@dataclass(frozen=True)
class Ran:
    """A run of every theorem and every claim, and whether its process loaded torch."""

    results: Results
    loaded: str


@pytest.fixture(scope="module")
def ran(root: Path) -> Ran:
    """A run without numbers, in a process of its own, in which no other test imports anything."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=root, stdout=subprocess.PIPE, text=True, check=True
    )
    results, loaded = done.stdout.splitlines()
    return Ran(Results.model_validate_json(results), loaded)


@pytest.fixture(scope="module")
def results(ran: Ran) -> Results:
    """What that run found."""
    return ran.results


def test_the_ledger_is_whole(ledger: Ledger) -> None:
    assert [f"{broken.file}: {broken.error}" for broken in ledger.broken] == []
    assert [document.id for document in ledger.documents] == ["000", "001", "002", "003", "004"]


def test_every_claim_of_the_five_documents_is_there(ledger: Ledger) -> None:
    count = [sum(c.document == d.id for c in ledger.claims) for d in ledger.documents]
    assert count == [18, 38, 14, 80, 46]
    assert len(set(ledger.ids)) == len(ledger.claims) == 196


def test_a_theorem_lists_the_claims_that_name_it(ledger: Ledger) -> None:
    named: dict[str, set[str]] = {}
    for claim in ledger.claims:
        for theorem in claim.theorems:
            named.setdefault(theorem, set()).add(claim.id)
    listed = {entry.id: set(entry.theorem.claims) for entry in load_catalogue().entries}
    wrong = {
        name: sorted(named.get(name, set()) ^ claims)
        for name, claims in listed.items()
        if named.get(name, set()) != claims
    }
    assert wrong == {}


def test_demonstrations_are_as_expected_and_list_claims_that_are_there(
    ledger: Ledger, results: Results
) -> None:
    assert {record.id: record.why for record in results.demonstrations if not record.ok} == {}
    assert all(row.ours for record in results.demonstrations for row in record.rows)
    listed = {record.id: record.claims for record in results.demonstrations}
    assert set(listed) == set(ledger.demonstrations)
    assert {n for names in listed.values() for n in names} <= set(ledger.ids)


def test_every_theorem_has_the_expected_verdict_and_its_control_the_opposite(
    results: Results,
) -> None:
    assert {theorem.id: theorem.why for theorem in results.theorems if not theorem.ok} == {}


def test_every_claim_is_derived_as_expected(results: Results) -> None:
    assert [broken.error for broken in results.broken] == []
    assert {claim.id: claim.why for claim in results.claims if not claim.ok} == {}


def test_a_claim_that_is_not_decided_says_why(results: Results) -> None:
    for claim in results.claims:
        if claim.verdict in ("undecided", "not checkable"):
            assert claim.reason or claim.why, claim.id


def test_every_page_fits_80_columns(results: Results) -> None:
    pages = {claim.id: claim_page(claim, results) for claim in results.claims}
    pages |= {theorem.id: page(theorem) for theorem in results.theorems}
    assert len(pages) == len(results.claims) + len(results.theorems)
    for name, text in pages.items():
        assert max(map(len, text.splitlines())) <= 80, name


def test_deciding_every_theorem_never_loads_torch(ran: Ran) -> None:
    assert {entry.id for entry in load_catalogue().entries} <= {t.id for t in ran.results.theorems}
    assert ran.loaded == "False"
