"""Records set by hand, with one of everything that a report shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from attnproof.records import (
    BrokenFile,
    DefinitionRecord,
    Formula,
    GivenRecord,
    LinkRecord,
    Machine,
    MeasuredEvidence,
    OptionsRecord,
    ProvedEvidence,
    RefutedEvidence,
    Results,
    SizeRecord,
    TheoremRecord,
    TwinRecord,
    UndecidedEvidence,
    WitnessRecord,
)  # fmt: skip

FORMULA = Formula(
    latex=r"\operatorname{Att}(Q, \sigma K, \sigma V) = \operatorname{Att}(Q, K, V)",
    text="attention(Q, K[sigma], V[sigma]) = attention(Q, K, V)",
)
LEFT, RIGHT = (Formula(latex=t, text=t) for t in ("Q K", r"\frac{K}{2}"))

PROVED = ProvedEvidence(
    says="", steps=94, rules={"reindex": 2},
    assumptions=("sigma is a permutation",), readings=("the sum sigma is not 0",), seconds=0.1,
)  # fmt: skip
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


def measurement(status: str = "held", dtype: str = "float32") -> MeasuredEvidence:
    """A measurement of that status."""
    numbers: dict[str, tuple[float | str | None, float | None]] = {
        "held": (2e-7, 4e-7), "violated": (3.0, 4e-7), "non-finite": ("non-finite", 4e-7),
        "skipped": (None, None),
    }  # fmt: skip
    error, tolerance = numbers[status]
    return MeasuredEvidence.model_validate(
        {
            "says": "", "implementation": "scaled_dot_product_attention (flash)", "device": "cpu",
            "dtype": dtype, "sizes": {"n": 4096, "ell": 64}, "seed": 0, "sampled": "64 rows",
            "error": error, "tolerance": tolerance, "worst": (3, 17), "seconds": 0.1,
            "status": status, "reason": "not on this machine" if status == "skipped" else "",
        }
    )  # fmt: skip


TWIN = TwinRecord(
    says="only the keys are permuted", statement=FORMULA, verdict="refuted", expected="refuted",
    ok=True, why=(), chain=(), evidence=(REFUTED, measurement("violated")),
)  # fmt: skip
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
            says="", reason="the columns move with the keys", left=LEFT, right=RIGHT, steps=94,
            rules={"reindex": 2, "entry": 44}, seconds=0.1, proved=True,
        ),
        LinkRecord(
            says="", reason="", left=RIGHT, right=LEFT, steps=1, rules={"ring": 1}, seconds=0.1,
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
    twin=TWIN,
)  # fmt: skip
OPEN = THEOREM.model_copy(
    update={
        "id": "an-open-one", "title": "An open one", "verdict": "undecided", "ok": False,
        "why": ("expected proved, is undecided",), "evidence": (UNDECIDED,),
    }
)  # fmt: skip
FALSE = THEOREM.model_copy(
    update={
        "id": "a-false-one", "title": "A false one", "verdict": "refuted", "expected": "refuted",
        "chain": (), "evidence": (REFUTED,),
    }
)  # fmt: skip


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
            selection=(), numeric=True, scale="default", device="cpu", dtypes=("float32",),
            seed=0, jobs=1,
        ),
        definitions=(
            DefinitionRecord(name="attention", formula=FORMULA, words="Heads W_Q^h, ``keep``."),
        ),
        theorems=(THEOREM, OPEN, FALSE),
        broken=(BrokenFile(file="bias/odd.py", error="<script>alert(1)</script>"),),
        unfinished=("never-reached",),
        ok=False,
    )  # fmt: skip
