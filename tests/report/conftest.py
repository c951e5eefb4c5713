"""Records set by hand, with one of everything that a report shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from attnproof.documents.evidence import (
    Formula,
    IllTypedEvidence,
    ProvedEvidence,
    RefutedEvidence,
    UndecidedEvidence,
    UseRecord,
    WitnessRecord,
)
from attnproof.numeric.results import MeasuredEvidence, Number, Status
from attnproof.theorem_runs.ledger import Document
from attnproof.theorem_runs.records import (
    BrokenFile,
    ClaimRecord,
    ControlRecord,
    DecidingRecord,
    DefinitionRecord,
    DemonstrationRecord,
    GivenRecord,
    LinkRecord,
    Machine,
    OptionsRecord,
    Results,
    RowRecord,
    SizeRecord,
    StepRecord,
    TheoremRecord,
)

FORMULA = Formula(
    latex=r"\operatorname{Att}(Q, \sigma K, \sigma V) = \operatorname{Att}(Q, K, V)",
    text="attention(Q, K[sigma], V[sigma]) = attention(Q, K, V)",
)
LEFT, RIGHT = (Formula(latex=t, text=t) for t in ("Q K", r"\frac{K}{2}"))

PROVED = ProvedEvidence(
    says="",
    steps=95,
    rules={"reindex": 2, "entry": 92, "ring": 1},
    assumptions=("sigma is a permutation",),
    readings=("the sum sigma ≠ 0",),
    seconds=0.1,
)
UNDECIDED = UndecidedEvidence(says="", why="no witness was found in 400 tries", seconds=1.0)
REFUTED = RefutedEvidence(
    says="",
    witness=WitnessRecord(
        sizes={"n": 2, "ell": 1},
        values={"Q": "[[1]]", "K": "[[0], [1/2]]", "sigma": "[1, 0]", "h": "h(x) = x²"},
        text="n = 2, Q = (1): left 0.268…, right -0.731…",
        place=(0, 0),
        left="0.268…",
        right="-0.731…",
        gap="231/500",
        certified_by="ball arithmetic (Arb)",
    ),
    seconds=0.1,
)


def measurement(status: Status = "held", dtype: str = "float32") -> MeasuredEvidence:
    """A measurement of that status."""
    numbers: dict[Status, tuple[Number | None, float | None]] = {
        "held": (2e-7, 4e-7),
        "violated": (3.0, 4e-7),
        "non-finite": ("non-finite", 4e-7),
        "skipped": (None, None),
    }
    error, tolerance = numbers[status]
    return MeasuredEvidence(
        says="",
        implementation="scaled_dot_product_attention (flash)",
        device="cpu",
        dtype=dtype,
        sizes={"n": 4096, "ell": 64},
        seed=0,
        sampled="64 rows",
        error=error,
        tolerance=tolerance,
        worst=(3, 17),
        seconds=0.1,
        status=status,
        reason="not on this machine" if status == "skipped" else "",
    )


CONTROL = ControlRecord(
    says="only the keys are permuted",
    statement=FORMULA,
    verdict="refuted",
    expected="refuted",
    ok=True,
    why=(),
    assumed=(),
    chain=(),
    evidence=(REFUTED, measurement("violated")),
)
THEOREM = TheoremRecord(
    id="attention-ignores-the-order",
    title="Attention is unchanged by <b>one</b> & the same permutation",
    subject="permutation",
    file="permutation/attention_ignores_the_order.py",
    says="Permuting keys and values together\nleaves every row q_i as it was.\n\nFor k >= 1.",
    statement=FORMULA,
    verdict="proved",
    expected="proved",
    ok=True,
    why=(),
    chain=(
        LinkRecord(
            says="",
            reason="the columns move with the keys",
            left=LEFT,
            right=RIGHT,
            steps=94,
            rules={"reindex": 2, "entry": 44},
            seconds=0.1,
            proved=True,
            kernel=tuple(
                StepRecord(rule=rule, at="1.0", inside=("•1",), before=f"a < b{k}", after="c")
                for k, rule in enumerate(("entry", "reindex"))
            ),
        ),
        LinkRecord(
            says="",
            reason="",
            left=RIGHT,
            right=LEFT,
            steps=1,
            rules={"ring": 1},
            seconds=0.1,
            proved=True,
        ),
    ),
    evidence=(PROVED, *(measurement(s) for s in ("held", "violated", "non-finite", "skipped"))),
    claims=("B4",),
    sources=("Vaswani et al. 2017, https://arxiv.org/abs/1706.03762",),
    sizes=(SizeRecord(name="n", role="tokens"), SizeRecord(name="ell", role="features")),
    givens=(
        GivenRecord(name="Q", kind="real", shape=("n", "2·B + 1"), says="any real numbers"),
        GivenRecord(name="sigma", kind="permutation", shape=("n",), says="a permutation"),
    ),
    assumed=(),
    control=CONTROL,
    code="@theorem('<one>')\ndef attention_ignores_the_order(Q, K, V):\n    ...\n",
    uses=("attention",),
)
OPEN = THEOREM.model_copy(
    update={
        "id": "an-open-one",
        "title": "An open one",
        "verdict": "undecided",
        "ok": False,
        "why": ("expected proved, is undecided",),
        "evidence": (UNDECIDED,),
    }
)
FALSE = THEOREM.model_copy(
    update={
        "id": "a-false-one",
        "title": "A false one",
        "verdict": "refuted",
        "expected": "refuted",
        "chain": (),
        "evidence": (REFUTED,),
    }
)


ILL_TYPED = THEOREM.model_copy(
    update={
        "id": "an-ill-typed-one",
        "title": "An ill-typed one",
        "verdict": "ill-typed",
        "expected": "ill-typed",
        "chain": (),
        "sizes": (),
        "statement": Formula(latex="", text="equal(Q @ g, Q)"),
        "evidence": (IllTypedEvidence(says="", error="n is not d", seconds=0.0),),
    }
)
INDUCTION = THEOREM.model_copy(
    update={
        "id": "one-by-induction",
        "title": "One by induction",
        "claims": ("G1", "Z9"),
        "chain": tuple(
            LinkRecord.model_validate(
                {
                    "says": "powers",
                    "opens": opens,
                    "reason": "",
                    "left": LEFT,
                    "right": RIGHT,
                    "relation": relation,
                    "steps": 4,
                    "rules": {"unroll": 4},
                    "seconds": 0.1,
                    "proved": True,
                }
            )
            for opens, relation in (
                ("By induction on m. For m = 0:", "="),
                ("From m to m + 1:", ">="),
                ("But", "!="),
            )
        ),
        "evidence": (
            ProvedEvidence(
                says="powers",
                steps=13,
                rules={"unroll": 12, "induction": 1},
                assumptions=("phi(0) = eye(d)", "c is nonnegative", "sum(x) > 0"),
                seconds=0.1,
                uses=(
                    UseRecord(formula=LEFT, source=""),
                    UseRecord(formula=RIGHT, source="linear"),
                ),
            ),
            measurement(),
        ),
    }
)


def deciding(theorem: str, role: str, verdict: str, **more: object) -> DecidingRecord:
    """A statement that decides a claim."""
    return DecidingRecord.model_validate(
        {
            "id": theorem,
            "conclusion": "",
            "control": False,
            "role": role,
            "verdict": verdict,
            "known": "n = 2",
            **more,
        }
    )


def claim(name: str, verdict: str, *statements: DecidingRecord, **more: object) -> ClaimRecord:
    """A claim of the document 003."""
    return ClaimRecord.model_validate(
        {
            "id": name,
            "document": "003",
            "place": f"Lemma {name}",
            "origin": "document",
            "kind": "theorem",
            "says": f"The claim {name} about X ∈ ℝ^{{n×d}}.",
            "verdict": verdict,
            "expected": verdict,
            "ok": True,
            "why": (),
            "evidence": "",
            "statements": statements,
            "demonstrations": (),
            "correction": "",
            "mends": "",
            "unstated": "",
            "reason": "",
            **more,
        }
    )


DEMONSTRATION = DemonstrationRecord(
    id="the-weights",
    title="The weights",
    says="Seed 42.",
    remark="No seed is set there.",
    claims=("G5",),
    outcome="differs",
    ok=True,
    why=(),
    seconds=0.1,
    rows=(
        RowRecord(
            says="A_0", ours="-0.5\n1.0", printed="-0.5\n1.0", agrees=True, expected_to_differ=False
        ),
        RowRecord(says="B", ours="1", printed="2", agrees=False, expected_to_differ=True),
        RowRecord(says="C", ours="3", printed=None, agrees=None, expected_to_differ=False),
    ),
)
ORDER = THEOREM.id
CLAIMS = (
    claim(
        "G1",
        "true as written",
        deciding("one-by-induction", "printed", "proved", conclusion="powers"),
        deciding("one-by-induction", "printed", "proved", conclusion="sums"),
    ),
    claim(
        "G2",
        "false as written",
        deciding(ORDER, "printed", "refuted", control=True),
        deciding(ORDER, "corrected", "proved"),
        correction="Both, by one permutation.",
    ),
    claim(
        "G3",
        "true under a stated correction",
        deciding("an-ill-typed-one", "printed", "ill-typed"),
        deciding(ORDER, "corrected", "proved"),
        correction="g has ℓ rows.",
        mends="type",
    ),
    claim(
        "G4",
        "false as written",
        deciding("a-false-one", "disproof", "proved"),
        unstated="It names no axis.",
    ),
    claim("G5", "true as written", demonstrations=("the-weights",), kind="numeric-demo"),
    claim("G6", "true as written", demonstrations=("the-weights",), origin="cross"),
    claim(
        "G7",
        "undecided",
        deciding("nowhere", "printed", "undecided"),
        ok=False,
        why=("expected true as written, is undecided",),
        reason="A rule is missing.",
    ),
    claim("G8", "not checkable", reason="A taste."),
)


@pytest.fixture
def ledger(results: Results) -> Results:
    """A run with the claims of a document as well, and an empty document."""
    documents = (
        Document(id="003", title="Notes on <attention>", kind="expository notes"),
        Document(id="004", title="A blog post", kind="blog post"),
    )
    other = claim("R1", "true as written").model_copy(update={"document": "004"})
    return results.model_copy(
        update={
            "documents": (*documents, Document(id="005", title="Empty", kind="note")),
            "claims": (*CLAIMS, other),
            "demonstrations": (DEMONSTRATION,),
            "theorems": (*results.theorems, ILL_TYPED, INDUCTION),
        }
    )


@pytest.fixture
def results() -> Results:
    """A run with a proved, an undecided and a refuted theorem, a broken and an unfinished one."""
    return Results(
        attnproof="0.1.0",
        created=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        seconds=93.0,
        machine=Machine(
            python="3.11.9", platform="Linux", processors=2, torch="2.13.0", devices=("cpu",)
        ),
        options=OptionsRecord(
            selection=(),
            numeric=True,
            scale="default",
            device="cpu",
            dtypes=("float32",),
            seed=0,
            jobs=1,
        ),
        definitions=(
            DefinitionRecord(name="softmax", formula=FORMULA, words="Rows that sum to one."),
            DefinitionRecord(
                name="attention", formula=FORMULA, words="Heads W_Q^h, ``keep``.", uses=("softmax",)
            ),
        ),
        theorems=(THEOREM, OPEN, FALSE),
        broken=(BrokenFile(file="bias/odd.py", error="<script>alert(1)</script>"),),
        unfinished=("never-reached",),
        ok=False,
    )
