"""Checks for your own tests, of encodings and of PyTorch code, and strategies that draw inputs.

>>> from attnproof.encodings.rope import Rope
>>> from attnproof.testing import check_encoding
>>> check_encoding(Rope, ["relative"]).cell("rope", "relative").verdict
'proved'

``assert_rotary``, ``assert_attention`` and the others check real code, and fail for the first law
that it breaks; they are defined in :mod:`attnproof.real_code.asserting`.  ``assert_equal`` fails if
two programs are not the same function.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from . import __version__
from .cards.records import CellRecord, TableRecord
from .cards.registry import BUILT_IN
from .cards.verdicts import decided
from .encoding.base import Encoding
from .encoding.conformance import (
    NotAnEncoding,
    require_encoding,
    require_numbers,
    require_read,
    require_shapes,
)
from .encoding.law import EncodingLaw
from .laws import LAWS
from .real_code.asserting import (
    CodeBreaksLaw,
    assert_additive,
    assert_attention,
    assert_bias,
    assert_equivariant,
    assert_mask,
    assert_rotary,
    check_additive,
    check_attention,
    check_bias,
    check_equivariant,
    check_mask,
    check_rotary,
)
from .real_code.equal_records import NotEqual, assert_equal, check_equal
from .symbolic.comparison import NotRun
from .symbolic.gate import Misread

__all__ = [
    "CodeBreaksLaw",
    "LawBroken",
    "NotAnEncoding",
    "NotEqual",
    "assert_additive",
    "assert_attention",
    "assert_bias",
    "assert_equal",
    "assert_equivariant",
    "assert_mask",
    "assert_rotary",
    "check_additive",
    "check_attention",
    "check_bias",
    "check_encoding",
    "check_equal",
    "check_equivariant",
    "check_mask",
    "check_rotary",
    "contents",
    "lengths",
    "positions",
]

ALWAYS = "travels-with-tokens"


class LawBroken(AssertionError):
    """An encoding does not obey a law as it should; ``cell`` has what was found."""

    def __init__(self, text: str, cell: CellRecord) -> None:
        super().__init__(text)
        self.cell = cell


def check_encoding(
    kind: type[Encoding] | Encoding, laws: Iterable[str] | Mapping[str, str] | None = None
) -> TableRecord:
    """Check that an encoding runs the same on symbols and on numpy, and obeys the laws it should.

    ``laws`` are ids of laws that must be proved, or ids with the verdict that each should have
    ("proved", "refuted", "does not apply").  By default they are those that the class names in
    ``obeys``.  That tokens may be reordered with their positions is always checked.  A law that is
    proved under a hypothesis of the class counts as proved.

    Returns the record of what was decided.  Raises :class:`NotAnEncoding` for a class that is not
    one, does not run on numpy, or is misread, ``ValueError`` for an unknown law, and
    :class:`LawBroken` (an ``AssertionError``) for the first law with another verdict: its text has
    the law, the witness, and a line that reproduces it.
    """
    start = perf_counter()
    found = require_encoding(kind)
    wanted = _wanted(found.obeys if laws is None else laws)
    require_shapes(found)
    require_numbers(found)
    try:
        require_read(found)
    except (Misread, NotRun) as told:
        raise NotAnEncoding(str(told)) from told
    except Exception as error:
        raise NotAnEncoding(
            f"{found.__name__} does not run on symbolic arrays: {type(error).__name__}: {error}"
        ) from error
    cells = []
    for law in LAWS:
        if law.id in wanted:
            cells.append(decided(found, law))
            _require(found, law, cells[-1], wanted[law.id])
    from .cards.table import encoding_record, law_record

    return TableRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        attnproof=__version__,
        encodings=(encoding_record(found),),
        laws=tuple(law_record(law) for law in LAWS if law.id in wanted),
        cells=tuple(cells),
        seconds=perf_counter() - start,
    )


def _wanted(laws: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    asked = dict(laws) if isinstance(laws, Mapping) else dict.fromkeys(laws, "proved")
    known = [law.id for law in LAWS]
    for name, verdict in asked.items():
        if name not in known:
            raise ValueError(f"wanted the id of a law, got {name!r}; they are {', '.join(known)}")
        if verdict not in ("proved", "refuted", "does not apply"):
            raise ValueError(
                f"wanted 'proved', 'refuted' or 'does not apply' of {name}, got {verdict!r}"
            )
    return {ALWAYS: "proved", **asked}


def _require(kind: type[Encoding], law: EncodingLaw, cell: CellRecord, wanted: str) -> None:
    if cell.verdict == wanted:
        return
    lines = [
        f"{kind.__name__}: {law.title}",
        f"wanted {wanted}, found {cell.verdict}: {cell.why}",
        f"the law: {cell.statement.text}" if cell.statement is not None else "",
        f"to reproduce it: {_again(kind, law.id)}",
    ]
    raise LawBroken("\n".join(filter(None, lines)), cell)


def _again(kind: type[Encoding], law: str) -> str:
    """Return the line that reproduces a cell."""
    if kind.__module__.startswith(BUILT_IN):
        return f"attnproof card {kind.id()} --law {law}"
    try:
        return f"attnproof card {inspect.getfile(kind)} --law {law}"
    except (OSError, TypeError):  # typed into a session
        return f"attnproof.card({kind.__name__}).cell({law!r})"


def lengths(most: int = 8) -> Any:
    """Return a hypothesis strategy for a number of tokens, from 1 on."""
    return _strategies().integers(1, most)


def positions(
    count: int | None = None, *, axes: int = 0, whole: bool = True, most: int = 4096
) -> Any:
    """Return a hypothesis strategy for an array (n,) or (n, axes) of positions from 0 to ``most``.

    Whole positions are also drawn around places where a dtype or a table ends (256, 2048).
    """
    from hypothesis.extra.numpy import arrays

    st = _strategies()
    edges = [p for p in (0, 1, 255, 256, 257, 2047, 2048, 2049) if p <= most]
    one = st.one_of(st.integers(0, most), st.sampled_from(edges)) if whole else st.floats(0, most)
    number = st.just(count) if count is not None else lengths()
    return number.flatmap(
        lambda n: arrays(float, (n, axes) if axes else (n,), elements=one.map(float))
    )


def contents(rows: int, width: int, most: float = 4.0) -> Any:
    """Return a hypothesis strategy for arrays (rows, width), no entry above ``most`` in size."""
    from hypothesis.extra.numpy import arrays

    return arrays(float, (rows, width), elements=_strategies().floats(-most, most, width=32))


def _strategies() -> Any:
    try:
        from hypothesis import strategies
    except ImportError:
        raise ImportError(
            "attnproof.testing draws its inputs with hypothesis, which is not installed; "
            "pip install 'attnproof[testing]'"
        ) from None
    return strategies
