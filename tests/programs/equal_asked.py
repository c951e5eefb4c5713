"""What the proof alone finds of two functions, without the runs beside their graphs."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

from torch import Tensor

from attnproof.numeric.devices import one_thread
from attnproof.programs.equal.pair import two
from attnproof.programs.equal.sides import Told
from attnproof.programs.finding import Finding
from attnproof.programs.prove import proofs, prove
from attnproof.programs.prove.gate import Gate

Code = Callable[..., Tensor]
SECONDS = 6.0


def asked(first: Code, second: Code, line: str) -> Finding:
    """Whether a proof is found, at any lengths; on one thread."""
    both = two(Told(first, "first", line), Told(second, "second", line))
    with patch.object(proofs, "gate", lambda *_, **__: Gate()), one_thread():
        (found,) = prove(both.subject(), seconds=SECONDS, fixed=("",)).findings
    return found
