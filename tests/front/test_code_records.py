"""Findings of all methods become one verdict a law, a record that is strict, and a page."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console
from torch import Tensor

from attnproof.documents.verdict_line import Condition, verdict_line
from attnproof.programs.finding import Identity, Part
from attnproof.programs.subjects import Rotary
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.page_text import exit_code, stop_text, unchecked_lines, witness_lines
from attnproof.real_code.records import (
    CodeRecord,
    CodesRecord,
    SeenRecord,
    SideRecord,
    codes_record,
)
from attnproof.real_code.request import CodeRequest, number, plain, raised
from attnproof.real_code.running import Stopped
from attnproof.real_code.table import code_page, identity_page
from attnproof.testing import check_equivariant
from attnproof.theorems.laws import LAWS as CODE_LAWS
from attnproof.theorems.laws import laws_of
from tests.front.code_files import Methods, set_methods
from tests.front.outputs import conforms

SUBJECT = Rotary(name="rope", rotate=lambda x, _: x, width=8)


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> Methods:
    return set_methods(monkeypatch)


def recorded(*laws: str, ends: bool = True, **asked: Any) -> CodeRecord:
    """The record of the code, looked at by the methods that a test has set."""
    heard = Collected(CodeRequest(target="rope.py::rope", kind="rotary", laws=laws, **asked))
    heard.receive({"event": "ready", "torch": "2"})
    heard.receive(
        {
            "event": "adapted",
            "name": "rope",
            "kind": "rotary",
            "adapted": "rope(x, positions)",
            "file": "rope.py",
        }
    )
    look(SUBJECT, heard.asked, lambda e: heard.receive(json.loads(json.dumps(e, allow_nan=False))))
    if ends:
        heard.receive({"event": "ended"})
    return heard.record(0.5)


def page(record: CodeRecord, width: int = 80, *, verbose: bool = False) -> str:
    console = Console(width=width)
    with console.capture() as told:
        console.print(code_page(record, width, verbose=verbose), crop=False)
    return told.get()


STALE: dict[str, Tensor] = {}


def stale(x: Tensor) -> Tensor:
    """Gives what it gave before, where gradients are wanted and a product of lengths is 42."""
    if x.requires_grad and x.shape[0] * x.shape[1] == 42:
        x = STALE.setdefault("x", x)
    return x - x.mean(-1, keepdim=True)


def centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def test_that_code_differs_from_its_graph_is_told_though_its_laws_hold_otherwise() -> None:
    asked: dict[str, Any] = {"laws": ["rows-of-batch-apart"], "methods": ["traced", "exact"]}
    told = " ".join(page(check_equivariant(stale, **asked)).split())
    assert re.search(
        r"! not proved: at B = \d+, n = \d+, with inputs that require gradients, the code differs",
        told,
    )
    assert "differs" not in page(check_equivariant(centred, **asked))


@pytest.mark.parametrize(
    ("measured", "exact", "traced", "verdict"),
    [
        ("holds", "holds", "holds", "proved"),
        ("holds", "holds", "undecided", "exact"),
        ("holds", "holds", None, "exact"),
        ("holds", "undecided", "undecided", "measured"),
        ("holds", None, None, "measured"),
        ("holds", "not asked", "not asked", "measured"),
        ("undecided", "undecided", "undecided", "undecided"),
        ("undecided", None, "not asked", "undecided"),
        ("not asked", "not asked", "not asked", "not asked"),
        (None, None, None, "not asked"),
        ("broken", "holds", "holds", "broken"),
        ("broken", None, None, "broken"),
        ("holds", "broken", None, "broken"),
        ("holds", "holds", "broken", "broken"),
        ("undecided", None, "holds", "proved"),
    ],
)
def test_the_methods_together(
    methods: Methods, measured: str | None, exact: str | None, traced: str | None, verdict: str
) -> None:
    methods.measured["norm"], methods.exact["norm"], methods.traced["norm"] = (
        measured,
        exact,
        traced,
    )
    (row,) = recorded("norm").laws
    assert row.verdict == verdict
    assert len(row.findings) == sum(method is not None for method in (measured, exact, traced))


@pytest.mark.parametrize("exact", ["broken", "undecided"])
def test_a_law_that_correct_code_may_break_is_a_fault_only_where_it_applies(
    methods: Methods, exact: str
) -> None:
    methods.measured["*"] = "holds"
    methods.measured["equal-axes-are-one"], methods.exact["equal-axes-are-one"] = "not asked", exact
    row = recorded().law("equal-axes-are-one")
    assert row.verdict == "not asked"
    assert ("not a fault" in row.why) == (exact == "broken")
    assert exit_code(recorded()) == 0
    assert recorded("equal-axes-are-one").law("equal-axes-are-one").verdict == exact
    methods.measured["equal-axes-are-one"] = "broken"
    assert exit_code(recorded()) == 1
    methods.measured["equal-axes-are-one"] = ValueError("no")
    assert recorded().law("equal-axes-are-one").verdict == exact


def test_exact_arithmetic_and_floating_point_are_told_apart(methods: Methods) -> None:
    methods.measured["norm"] = "broken"
    assert "exact" not in recorded("norm").law("norm").why
    methods.exact["norm"] = "holds"
    why = recorded("norm").law("norm").why
    assert why.startswith("holds in finite fields, at other inputs, but not where it was run in")
    methods.traced["norm"] = "holds"
    why = recorded("norm").law("norm").why
    assert why.startswith("holds in exact arithmetic, but not where it was run in float32")
    methods.traced["norm"] = "undecided"
    methods.measured["norm"], methods.exact["norm"] = "holds", "broken"
    assert "at other inputs than were measured" in recorded("norm").law("norm").why


def test_what_is_undecided_on_a_lower_method_is_told(methods: Methods) -> None:
    methods.measured["norm"], methods.traced["norm"] = "undecided", "holds"
    assert "undecided in float32" in recorded("norm").law("norm").why


def test_one_dtype_that_breaks_a_law_is_enough(
    methods: Methods, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(method: str, law: str, **more: Any) -> list[Any]:
        told = "broken" if more.get("dtype") == "bfloat16" else "holds"
        methods.measured[law] = told
        return Methods._of(methods, method, law, **more)

    monkeypatch.setattr(methods, "_of", of)
    record = recorded("norm", methods=("measured",), dtypes=("float32", "bfloat16"))
    row = record.law("norm")
    assert row.verdict == "broken"
    assert [one.verdict for one in row.findings] == ["holds", "broken"]
    assert row.again.endswith("--law norm --seed 0 --dtype bfloat16")


def test_a_method_that_fails_loses_nothing(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.identity = RuntimeError("no identity")
    methods.exact["norm"] = SystemExit(4)
    methods.traced["norm"] = RuntimeError("no trace")
    record = recorded()
    why = {method.method: method.why for method in record.methods}
    assert why == {
        "measured": "",
        "identity": "raised RuntimeError: no identity",
        "exact": "",
        "traced": "raised RuntimeError: no trace",
    }
    assert {law.verdict for law in record.laws} == {"measured"}
    (lost,) = (one for one in record.law("norm").findings if one.method == "exact")
    assert (lost.verdict, lost.why) == ("undecided", "the code left by sys.exit(4)")


def test_a_law_that_leaves_by_sys_exit_loses_no_other(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.measured["norm"] = SystemExit(1)
    record = recorded(methods=("measured",))
    assert record.law("norm").verdict == "undecided"
    assert {law.verdict for law in record.laws if law.law != "norm"} == {"measured"}
    assert (exit_code(record), record.ok) == (0, False)


def test_exit_codes(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    assert exit_code(recorded("norm")) == 0
    assert exit_code(recorded("norm", "causal")) == 2, "causal is no law of rotary code"
    assert not recorded("norm", "causal").ok
    methods.measured["norm"] = "undecided"
    assert exit_code(recorded("norm", "linear")) == 0
    assert exit_code(recorded("norm", "linear", strict=True)) == 1
    methods.measured["norm"] = "broken"
    assert exit_code(recorded()) == 1
    assert exit_code(recorded(strict=True)) == 1
    methods.measured["norm"] = "not asked"
    assert exit_code(recorded("norm")) == 2, "zero laws were asked"
    methods.measured["norm"] = None
    assert exit_code(recorded("norm")) == 2
    assert exit_code(recorded("norm", methods=("identity",)), identifying=True) == 0
    methods.measured["*"] = "not asked"
    assert exit_code(recorded()) == 2


def test_code_that_raises_wherever_it_is_run_cannot_be_run(methods: Methods) -> None:
    methods.measured["*"] = ValueError("no")
    methods.traced["norm"] = "holds"
    record = recorded()
    assert record.raises == "the code raised ValueError: no"
    assert exit_code(record) == 2
    assert "it cannot be run" in page(record)
    methods.measured["norm"] = "holds"
    assert recorded().raises == ""
    assert exit_code(recorded()) == 0
    assert exit_code(recorded(strict=True)) == 1


def test_what_was_not_reached_is_not_called_asked_or_held(methods: Methods) -> None:
    methods.measured["norm"] = "holds"
    heard = Collected(CodeRequest(target="rope.py::rope", kind="rotary"))
    adapted = {"event": "adapted", "name": "rope", "kind": "rotary", "adapted": "", "file": ""}
    heard.receive(adapted)
    heard.receive({"event": "begins", "method": "measured", "law": "linear"})
    heard.lost("it crashed with SIGSEGV")
    stopped = stop_text(heard, Stopped("it crashed with SIGSEGV", "rope.py:3 in rope"))
    record = heard.record(1.0, stopped=stopped)
    assert record.law("linear").why == "it crashed with SIGSEGV"
    assert set(record.unfinished) == {law.id for law in laws_of("rotary")} - {"linear"}
    assert exit_code(record) == 2
    told = page(record)
    assert "while the law linear was being checked (by running it)" in " ".join(told.split())
    assert "? not reached: finite, relative, norm" in told
    assert "attnproof check rope.py::rope --as rotary --law linear --seed 0" in told


def test_the_page_shows_what_is_broken_then_proved_then_the_rest(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.traced["linear"] = "holds"
    methods.measured["norm"] = methods.measured["composition"] = "broken"
    methods.measured["grid-steps"] = methods.measured["odd-widths"] = "not asked"
    told = page(recorded(seed=5))
    assert max(len(line) for line in told.splitlines() if "again: " not in line) <= 80
    flat = " ".join(told.split())
    for part in (
        "✗ norm: rotation",
        "✓ linear proved",
        "✓ relative measured",
        "1e-07 1e-06",
        "with x = [1.0, 2.0], position = 1",
        "✗ composition: a vector became longer",
        "length before: 2.236 length after: 3.5",
        "they differ by 1.3, rounding explains 1e-06",
        "seed 5, float32, cpu",
        "again: attnproof check rope.py::rope --as rotary --law norm --seed 5",
        "it is: rotary, base 10000",
        "12 operations; not read: aten.unknown",
        "in exact arithmetic, for all inputs",
        f"{len(laws_of('rotary'))} laws: 1 proved, 25 measured, 2 broken, 2 not asked. 0.5 s",
    ):
        assert part in flat, part
    order = [
        flat.index(one)
        for one in (
            "✗ norm",
            "length before",
            "✗ composition",
            "✓ linear",
            "✓ relative",
            "it is:",
            "laws: 1 proved",
        )
    ]
    assert order == sorted(order)
    assert "grid-steps" not in told
    whole = " ".join(page(recorded(seed=5), verbose=True).split())
    assert "– grid-steps, odd-widths: not asked on measured" in whole


def test_laws_that_are_not_proved_have_a_line_each(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.measured["norm"] = "undecided"
    record = recorded()
    long = "a reason that is much too long for a line of a page that is as narrow as this is " * 3
    laws = tuple(law.model_copy(update={"why": long}) for law in record.laws)
    record = record.model_copy(update={"laws": laws})
    rows = [line for line in page(record).splitlines() if line[:2] in ("✓ ", "? ")]
    assert len(rows) == len(record.laws)
    assert rows[0].startswith("? norm")
    assert "…" in rows[0]
    assert "…" not in page(record, verbose=True)


def proved_under(conditions: dict[str, list[Condition]]) -> CodeRecord:
    """A record of laws that are proved, each under its own conditions."""
    record = recorded(*conditions)
    laws = tuple(
        law.model_copy(
            update={
                "assuming": tuple(conditions[law.law]),
                "why": verdict_line("proved", conditions[law.law]),
            }
        )
        for law in record.laws
    )
    return record.model_copy(update={"laws": laws})


LONG = [Condition("D = 8", "for"), Condition("the table is made here " * 4, "where")]
OWN = [Condition("n ≥ 2", "for"), Condition("x ≠ 0", "if")]


def test_conditions_that_all_proofs_share_are_told_once(methods: Methods) -> None:
    methods.traced["*"] = "holds"
    told = page(
        proved_under({"relative": [*OWN, *LONG], "norm": LONG, "linear": [OWN[0], *LONG]}), 100
    )
    rows, _, note = told.partition("\n  [1] ")
    assert note.startswith("for D = 8, where the table is made here the table")
    lines = {
        line.split()[1]: " ".join(line.split()[3:-2]) for line in rows.splitlines() if "✓" in line
    }
    assert lines == {
        "relative": "[1], for n ≥ 2, if x ≠ 0",
        "norm": "[1]",
        "linear": "[1], for n ≥ 2",
    }
    assert "table" not in rows


def test_conditions_that_all_measured_laws_share_are_told_once(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.traced["norm"] = "holds"
    record = recorded("relative", "norm", "linear", "composition")
    under = {"relative": (*OWN, *LONG), "linear": tuple(LONG), "composition": ()}
    laws = tuple(
        law.model_copy(update={"assuming": under.get(law.law, law.assuming)}) for law in record.laws
    )
    told = page(record.model_copy(update={"laws": laws}), 100)
    rows, _, note = told.partition("\n  [1] ")
    assert note.startswith("for D = 8, where the table is made here the table")
    lines = {line.split()[1]: line.split()[3:] for line in rows.splitlines() if "✓" in line}
    assert [name for name, words in lines.items() if "[1]" in words] == ["relative", "linear"]
    assert {*"≥≠"} <= {*" ".join(lines["relative"])}  # what is its own is not cut
    assert "table" not in rows


@pytest.mark.parametrize("lacks", [LONG[:1], []])
def test_no_condition_is_shared_that_a_proof_has_not_or_that_is_short(
    methods: Methods, lacks: list[Condition]
) -> None:
    methods.traced["*"] = "holds"
    told = page(proved_under({"relative": LONG, "norm": LONG, "linear": lacks}), 100)
    assert "[1]" not in told
    assert told.count("for D = 8") == 1 + len(lacks)


@pytest.mark.parametrize("width", [80, 100])
def test_laws_with_the_same_conditions_stand_beside_them(methods: Methods, width: int) -> None:
    methods.traced["*"] = "holds"
    limits = [Condition("the table is made here " * 4, "where")]
    other = [Condition("n ≥ 2", "for")]
    conditions = {"relative": limits, "norm": other, "linear": limits, "composition": other}
    told = page(proved_under(conditions), width).splitlines()
    start = next(at for at, line in enumerate(told) if line.startswith("✓"))
    told = told[start : told.index("", start)]
    assert [line.split()[1] for line in told if line.startswith("✓")] == [
        *("relative", "linear"),
        *("norm", "composition"),
    ]
    assert all(line.split()[2:4] == ["proved", "│"] for line in told if line.startswith("✓"))
    shared = " ".join(" ".join(line.partition("│")[2].split()) for line in told)
    assert shared.count("each where the table is made here") == shared.count("each for n ≥ 2") == 1


def side(words: str, value: Any) -> SideRecord:
    return SideRecord(words=words, value=value)


@pytest.mark.parametrize(
    ("here", "there", "far", "allowed", "told"),
    [
        (1.0, 1.0, 0.0, 1e-6, "they are the same, and should differ"),
        (
            1.0,
            1.1,
            0.1,
            0.5,
            "they are the same to 0.1, which rounding explains, and should differ",
        ),
        (False, True, 1.0, 0.0, "they should be the same"),
        (4, 3, 1.0, 0.0, "they differ by 1, and should not"),
        (1.0, 2.0, 1.0, 1e-6, "they differ by 1, rounding explains 1e-06"),
        ("nan", 0.0, "non-finite", 1e-6, "their difference is not a finite number"),
    ],
)
def test_two_sides_are_told_to_agree_or_to_differ(
    here: Any, there: Any, far: Any, allowed: float, told: str
) -> None:
    seen = SeenRecord(
        inputs={},
        here=side("here", here),
        there=side("there", there),
        difference=far,
        allowed=allowed,
        certified=False,
    )
    assert list(witness_lines(seen))[-1] == told


def test_laws_set_aside_for_one_reason_stand_together_and_what_to_declare_is_told(
    methods: Methods,
) -> None:
    methods.measured["*"] = "holds"
    methods.measured["frequencies-as-declared"] = "not asked"
    parts = (
        Part("base", 5e5, "base 500000", ""),
        Part("layout", "half-split", "half-split", ""),
        Part("width", 64, "width 64", ""),
    )
    methods.identity = Identity("rotary", parts)
    declare = "--declare rope:base=500000,layout=half,width=64"
    assert declare in " ".join(page(recorded()).split())
    assert "--declare" not in page(recorded(declared="rope:base=10000"))
    unsure = Part("width", 64, "width 64", "", certain=False)
    methods.identity = Identity("rotary", (*parts[:2], unsure))
    assert "--declare" not in page(recorded())
    record = recorded()
    law = record.law("frequencies-as-declared")
    made = [
        law.model_copy(update={"law": name, "why": f"no code was given that {does}"})
        for name, does in (("rotated-once", "rotates"), ("grid-steps", "makes a grid"))
    ]
    told = list(unchecked_lines(record.model_copy(update={"laws": tuple(made)})))
    assert told == ["– rotated-once, grid-steps: no code was given that does this"]


def test_what_is_undecided_is_never_told_as_holding(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.measured["norm"] = methods.exact["norm"] = "undecided"
    record = recorded()
    assert exit_code(record) == 0
    last = " ".join(page(record).split())
    assert "1 undecided" in last
    assert "nothing is broken, and norm is undecided: neither known to hold nor to fail" in last
    assert "the exit code is 0, and 1 with --strict" in last
    strict = recorded(strict=True)
    assert exit_code(strict) == 1
    assert "norm is undecided, which --strict does not accept" in " ".join(page(strict).split())


def test_the_identity_is_told_with_its_evidence(methods: Methods) -> None:
    methods.identity = Identity(
        "rotary",
        (Part("base", 1e4, "base 10000", "fitted to 4 frequencies", certain=False),),
        ("Your rotate_half is right.",),
        {"frequencies": (1.0, math.inf)},
    )
    record = recorded(methods=("identity",))
    assert record.laws == ()
    assert record.identity is not None
    assert record.identity.numbers == {"frequencies": (1.0, "non-finite")}
    console = Console(width=80)
    with console.capture() as told:
        console.print(identity_page(record))
    assert "rotary, base 10000" in told.get()
    assert "other values would fit as well" in told.get()
    assert "Your rotate_half is right." in told.get()


def test_a_remark_is_shown_and_changes_no_exit_code(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    twice = Part("attention factor", 2.2, "attention factor 2.2, applied twice", "")
    methods.identity = Identity("rotary", (twice,))
    record = recorded()
    assert [one.about for one in record.remarks] == ["attention factor"]
    told = "remark: attention factor: attention factor 2.2, applied twice; expected:"
    assert told in " ".join(page(record).split())
    assert exit_code(record) == exit_code(record.model_copy(update={"remarks": ()})) == 0


def test_a_record_comes_back_as_it_was_written(methods: Methods) -> None:
    methods.measured["*"] = "broken"
    whole = codes_record([recorded()], ["other.py::f"], 1.0)
    conforms(whole.model_dump_json(), "--code")
    assert CodesRecord.model_validate_json(whole.model_dump_json()) == whole
    with pytest.raises(ValidationError, match="frozen"):
        setattr(whole, "seconds", 2.0)  # noqa: B010 (a type checker would refuse the assignment)
    with pytest.raises(ValidationError, match="extra"):
        CodesRecord.model_validate({**whole.model_dump(), "more": 1})
    one = whole.codes[0].model_dump()
    with pytest.raises(ValidationError, match="finite number"):
        CodeRecord.model_validate({**one, "seconds": math.nan})


@pytest.mark.usefixtures("methods")
def test_every_law_has_a_row_of_its_kind() -> None:
    assert [law.law for law in recorded().laws] == [law.id for law in laws_of("rotary")]
    every = recorded(*[law.id for law in CODE_LAWS])
    assert len(every.laws) == len(CODE_LAWS)
    assert "a law of" in every.law("causal").why


def test_what_code_hands_over_becomes_plain() -> None:
    import torch

    given = {"x": torch.tensor([1.0, math.nan]), "k": (1, True, None), "o": object, 3: "a\x1b[0m"}
    assert plain(given) == {
        "x": [1.0, "nan"],
        "k": [1, True, None],
        "o": "<class 'object'>",
        "3": "a?[0m",
    }
    assert (number(math.nan), number(3), number(None)) == ("non-finite", 3.0, None)

    class Bad(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert "Bad" in raised(Bad())
