"""Proofs that two programs are one function, asked for alone: no run shows that they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from torch import Tensor

from attnproof.numeric.devices import one_thread
from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand
from attnproof.programs.finding import Finding
from attnproof.programs.prove import proofs, prove, proving
from attnproof.programs.prove.calls import Call
from attnproof.programs.prove.exporting import Exported
from attnproof.programs.prove.paired_runs import Gate

Code = Callable[..., Tensor]
SECONDS = 6.0
EXPORTED, TRACES = proving._exported, dict[Any, Exported]()  # before it is replaced


def asked(first: Code, second: Code, line: str) -> Finding:
    """Whether a proof is found, at any lengths; a program is traced once for all it stands beside.

    Neither is run beside its graph.
    """
    both = pair_programs(Operand(first, "first", line), Operand(second, "second", line))
    programs = {"first_0": first, "second_0": second}

    def traced(call: Call, fixed: str, _: object, *, from_one: bool) -> Exported:
        shapes = tuple(x.shape for x in call.inputs)
        key = (programs[call.name], line, fixed, shapes, from_one)
        if key not in TRACES:
            TRACES[key] = EXPORTED(call, fixed, {}, from_one=from_one)
        return TRACES[key]

    with (
        patch.object(proofs, "gate", lambda *_, **__: Gate()),
        patch.object(proving, "_exported", traced),
        one_thread(),
    ):
        (found,) = prove(both.subject(), seconds=SECONDS, fixed=("",)).findings
    return found
