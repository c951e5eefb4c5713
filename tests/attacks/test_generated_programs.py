"""Programs changed in one place: no law that torch finds false is proved, and no pair equal."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnproof.documents.verdict_line import Condition
from attnproof.programs.finding import Finding
from attnproof.programs.prove import proofs
from attnproof.programs.prove.statements import Graph
from benchmarks import false_programs, program_changes, reference_programs
from benchmarks.false_pairs import Compared, compared, false_pairs
from benchmarks.false_programs import FAMILIES, broken_at, judged, outside, proofs_alone
from benchmarks.length_faults import HELPERS, HIDDEN
from benchmarks.program_changes import At, FalseProgram, changed, texts, with_line
from benchmarks.reference_programs import REFERENCES, Reference

lengths = importlib.import_module("attnproof.programs.prove.lengths")
gates = importlib.import_module("attnproof.programs.prove.gate")  # its function has its name
PROOF = 0.5  # seconds
BRANCHES = (3, 4, 6, 7, 12, 31)  # beyond one at a hundred tokens, numbers take ten times as long
OF = {reference.name: reference for reference in REFERENCES}


def hiding(program: FalseProgram) -> str:
    """The way in which a branch is hidden: by what stands before its question."""
    marks = {name: form.partition("{test}")[0].rpartition("}")[2] for name, form in HIDDEN.items()}
    return next((name for name, mark in marks.items() if mark and mark in program.change), "")


# Of each kind one program is enough: those that come again are left out.
KINDS: dict[str, Callable[[FalseProgram], str]] = {
    "changes": lambda program: f"{program.of.name} {program.change[:6]}",
    "lengths": hiding,
}
COUNTS = {"changes": 12, "lengths": len(HIDDEN)}


@pytest.mark.parametrize("family", FAMILIES)
def test_no_law_that_torch_finds_false_is_proved(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if family == "changes":  # tracing sees their branches, and the code is run at fewer lengths
        request.getfixturevalue("fewer_lengths")
        monkeypatch.setattr(program_changes, "BRANCHES", BRANCHES)
    seen: set[str] = set()
    for k, program in enumerate(FAMILIES[family](11)):
        if KINDS[family](program) in seen:
            continue
        with proofs_alone():
            said = judged(program, tmp_path, f"{family}_{k}", most=1, seconds=PROOF)
        if isinstance(said, str):
            continue
        assert not [str(one) for one in said if one.verdict in ("holds", "internal error")]
        seen.add(KINDS[family](program))
        if len(seen) == COUNTS[family]:
            break


def none(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())


N, B, Q = "x.shape[1]", "x.shape[0]", "k.shape[2]"
CUMULATED = "x = x.cumsum(1)"
UNWATCHED: dict[str, Any] = {"_differs_at_branches": lambda *_: False}
PLAIN = {
    "WAYS": ("plain",) * 3,
    "AT_NAMED": ((1, "plain"),) * 4,
    "POWERS": (),
    "related_numbers": none,
    "pairs": none,
}
# A program, the branch to other code, a place where torch sees the law broken, and what of the gate
# finds it where comparisons are not watched: without that it is proved.
NEEDED: dict[str, tuple[str, str, str, At, dict[str, Any]]] = {
    "the numbers of the source": (
        "mean_pooled",
        f"isinstance({N}, int) and {N} == 1733",
        CUMULATED,
        At(2, 1733),
        {"constants_in": none},
    ),
    "their neighbours": (
        "mean_pooled",
        f"isinstance({N}, int) and {N} - 1 == 1733",
        CUMULATED,
        At(2, 1734),
        {"NEIGHBOURS": (0,)},
    ),
    "what is made of them": (
        "mean_pooled",
        f"type({N}) is int and {N} // 2 == 1733",
        CUMULATED,
        At(2, 3466),
        {"related_numbers": none},
    ),
    "two of them at a time": (
        "mean_pooled",
        f"isinstance({N}, int) and {B} == 37 and {N} == 29",
        CUMULATED,
        At(37, 29),
        {"pairs": none},
    ),
    "all lengths up to some hundreds": (
        "mean_pooled",
        f'str({N}).isdigit() and {N} == int("9" + str(9))',
        CUMULATED,
        At(2, 99),
        {"every": none},
    ),
    "inputs in another order in memory": (
        "mean_pooled",
        f"not x.is_contiguous() and {N} > 40",
        CUMULATED,
        At(2, 41, how="apart"),
        PLAIN,
    ),
    "one array for several": (
        "attention",
        f"k is q and {Q} > 40",
        "k = k.cumsum(2)",
        At(2, 41, how="one"),
        PLAIN,
    ),
    "what is compared": (
        "mean_pooled",
        f"isinstance({N}, int) and x.numel() == 25456",
        CUMULATED,
        At(37, 43),
        {},
    ),
}


@pytest.mark.parametrize("clause", NEEDED)
def test_each_part_of_the_gate_is_needed(
    clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, test, line, at, without = NEEDED[clause]
    text = with_line(OF[name], texts(HELPERS)[name], line, test=test)
    graphs: list[Graph] = []

    def believes(graph: Graph, **_: object) -> Any:
        graphs.append(graph)
        return gates.Gate()

    monkeypatch.setattr(proofs, "gate", believes)
    with proofs_alone():
        said = judged(FalseProgram(OF[name], text, clause, (at,)), tmp_path, "needed", most=1)
    assert not isinstance(said, str), said
    assert [one.verdict for one in said] == ["holds"]
    assert gates.gate(graphs[0]).differs_at
    for part, less in (without | UNWATCHED).items():
        monkeypatch.setattr(gates if hasattr(gates, part) else lengths, part, less)
    assert not gates.gate(graphs[0]).differs_at


def test_a_prover_that_believes_all_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believes(_: object, laws: list[str], **__: object) -> SimpleNamespace:
        where = (Condition("B, n ≥ 2", "for"),)
        found = [Finding(law, "traced", "holds", "", assuming=where) for law in laws]
        return SimpleNamespace(findings=found)

    monkeypatch.setattr(false_programs, "prove", believes)
    asked = (judged(one, tmp_path, f"program_{k}") for k, one in enumerate(changed(seed=11)))
    said = next(found for found in asked if not isinstance(found, str))
    assert {one.verdict for one in said} == {"holds"}


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda one: one.name)
def test_the_references_obey_their_laws(reference: Reference) -> None:
    code = getattr(reference_programs, reference.name)
    assert broken_at(code, reference, false_programs.TRIED) == {}
    one = (At(2, 3, queries=7, how="one"), At(2, 5, how="one"))  # its keys are its queries
    assert broken_at(code, reference, one) == {}


def test_a_condition_excludes_the_lengths_that_it_names() -> None:
    at = {"B": 2, "n": 5}
    excluded = [
        t
        for t in (
            "n ≤ B + 3",
            "n ≤ B + 2",
            "B, n ≥ 3",
            "n mod 4 ≠ 1",
            "n = 5",
            "E = 9",
            "n·(B + 1) ≤ 14",
            "BitwiseFn_bitwise_and(n, n - 1) ≠ 4",
        )
        if outside(t, at)
    ]
    assert excluded == [
        "n ≤ B + 2",
        "B, n ≥ 3",
        "n mod 4 ≠ 1",
        "n·(B + 1) ≤ 14",
        "BitwiseFn_bitwise_and(n, n - 1) ≠ 4",
    ]


# pairs that are two functions: none is taken for one, whichever way the second was changed


@pytest.mark.parametrize(("family", "count"), [("changes", 30), ("lengths", 2)])
def test_no_pair_of_two_functions_is_taken_for_one(
    family: str, count: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if family == "changes":
        request.getfixturevalue("fewer_lengths")
    found = (one for one in false_pairs(family, 3, tmp_path) if isinstance(one, Compared))
    said = list(islice(found, count))
    assert len(said) == count
    assert not [str(one) for one in said if one.is_wrong]
    assert any(one.verdict == "counterexample" for one in said)


def test_a_program_and_the_same_program_are_not_found_to_differ(tmp_path: Path) -> None:
    of = next(one for one in REFERENCES if one.name == "attention")
    same = FalseProgram(of, texts()[of.name], "nothing", (At(2, 9),))
    assert compared(same, tmp_path, "same") == "not found to differ"


def test_what_is_taken_for_one_function_is_told() -> None:
    of = next(one for one in REFERENCES if one.name == "attention")
    program = FalseProgram(of, texts()[of.name], "a change")
    assert Compared(program, At(2, 3), "proved", "1 kernel step").is_wrong
    assert not Compared(program, At(2, 3), "undecided", "nothing").is_wrong
