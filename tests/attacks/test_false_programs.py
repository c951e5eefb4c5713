"""Programs of which a law was once called proved that does not hold, and what is said now."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from attnproof.numeric.devices import one_thread
from attnproof.real_code.checking import adapted, look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.loading import load
from attnproof.real_code.page_text import exit_code
from attnproof.real_code.records import CodeRecord
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.table import WIDE, code_page

HERE = Path(__file__).parent / "programs"

# The target, what it is checked as, the law, and what the line must say if it says "proved".
ONCE_PROVED = [
    ("alone.py::layer", "layer", "rows-of-batch-apart", None),
    ("norm.py::rotate", "rotary", "norm", None),
    ("norm.py::rotate_late", "rotary", "norm", None),
    ("gradient.py::attention", "attention:causal", "causal", "not gradients"),
    ("gradient.py::rows", "layer", "rows-of-batch-apart", None),
    ("composition.py::rotary", "rotary", "composition", None),
    ("branches.py::typed", "layer", "permutation", None),
    ("branches.py::cached", "layer", "permutation", None),
    ("branches.py::compiled", "layer", "permutation", None),
    ("flag.py::flagged", "layer", "permutation", "the buffer flag keeps its value"),
    ("wrap.py::rotate", "rotary", "relative", "positions and lengths stay below 8388608"),
    ("fill_added.py::late", "layer", "permutation", None),
    ("length.py::alibi_bias", "bias", "offset-only", None),
    ("remainder.py::seventh", "layer", "permutation", "n mod 97 ≠ 0"),
    ("fill.py::attention", "attention:causal", "causal", "scores stay within ±2.5e+08"),
    ("blocks.py::attention", "attention", "order-of-keys", None),
]


@pytest.mark.usefixtures("fewer_lengths")
@pytest.mark.parametrize(("target", "meant", "law", "condition"), ONCE_PROVED)
def test_it_is_not_proved_or_only_under_what_the_line_says(
    target: str, meant: str, law: str, condition: str | None
) -> None:
    kind, _, declared = meant.partition(":")
    asked = CodeRequest(
        target=f"{HERE}/{target}", kind=kind, declared=meant if declared else "", laws=(law,)
    )
    record = looked_at(asked)
    says = record.law(law)
    if condition is None:
        assert says.verdict != "proved"
        assert says.verdict != "broken" or exit_code(record) == 1
        return
    assert says.verdict == "broken" or (says.verdict == "proved" and condition in says.why)
    page = Console(width=WIDE, file=io.StringIO(), record=True)
    page.print(code_page(record))
    printed = " ".join(page.export_text().split())
    assert says.verdict == "broken" or says.why.split(",")[0] in printed


def looked_at(asked: CodeRequest) -> CodeRecord:
    """What `check` finds, without a process of its own: the code here neither ends nor prints."""
    heard, code = Collected(asked), load(asked.target)
    with one_thread():
        subject = adapted(code.thing, asked, code.name, code.file, heard.receive)
        look(subject, asked, heard.receive, code.thing)
    heard.receive({"event": "ended"})
    return heard.record(1.0)
