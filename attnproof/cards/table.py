"""Decide cells, encodings × laws, into one record; print what an encoding does as formulas.

The formulas are computed: the methods of the encoding are run on symbols, and the results are
printed.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from .. import __version__
from ..documents.evidence import Formula, InternalErrorEvidence, UndecidedEvidence
from ..documents.verdict_line import clauses
from ..encoding.base import Encoding
from ..encoding.conformance import NotAnEncoding, require_shapes
from ..encoding.law import EncodingLaw
from ..errors import broken_by
from ..laws import LAWS
from ..laws.requirements import REQUIREMENTS, granted
from ..symbolic.array import as_array
from ..symbolic.givens import natural, positions, real, sizes
from ..symbolic.latex import unfolded_latex
from ..symbolic.plain import plain
from ..symbolic.statement import Statement
from ..theorem_runs import translation
from .records import (
    BrokenEncoding,
    CellRecord,
    EncodingRecord,
    LawRecord,
    RequirementRecord,
    TableRecord,
)
from .registry import Home, home, place_words, source_of
from .verdicts import LIMIT, decided, measured

PACKAGE = Path(__file__).resolve().parent.parent


def law_record(law: EncodingLaw) -> LawRecord:
    """Return what a law says, as a record."""
    return LawRecord.of(law, says=law.words)


def encoding_record(kind: type[Encoding]) -> EncodingRecord:
    """Return what an encoding says about itself, and what it does.

    Raises what its own code raises when it is made.
    """
    made = kind()
    declared = kind.declared().items()
    open_ = {name: given for name, given in declared if name not in made.parameters}
    return EncodingRecord(
        id=kind.id(),
        title=kind.title or kind.__name__,
        says=inspect.cleandoc(kind.__doc__ or ""),
        sources=tuple(kind.source),
        file=file_of(kind),
        acts=place_words(kind),
        formulas=tuple(_formulas(made)),
        parameters=translation.givens(Statement(open_, {})),
        hypotheses=tuple(kind.hypotheses().values()),
        code=translation.as_written(kind),
    )


def file_of(kind: type[Encoding]) -> str:
    """Return the file of an encoding, within the package by its path there; empty if none."""
    path = source_of(kind)
    if not path.name:
        return ""
    within = path.is_relative_to(PACKAGE)
    return f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}" if within else str(path)


def _formulas(made: Encoding) -> Iterator[Formula]:
    """Yield what each of its methods makes of symbols, in the order in which they act."""
    axes = (made.axes,) * bool(made.axes)
    one = natural("a position") if made.whole else positions(*axes)
    m, n, p = (one.named(name) for name in "mnp")
    x, q, k = (real(made.width).named(name) for name in "xqk")
    s = real().named("s")
    v = real(*sizes("d_v", "features")).named("v")
    places: list[tuple[str, str, Callable[[], Any]]] = []
    if made.defines("add"):
        places.append(("the token at p", "x ->", lambda: x + made.add(p)))
    if made.defines("rotate") and not made.defines("query", "key"):
        places.append(("a query or key at p", "x ->", lambda: made.rotate(x, p)))
    else:
        if made.defines("query", "rotate"):
            places.append(("a query at m", "q ->", lambda: made.query(q, m)))
        if made.defines("key", "rotate"):
            places.append(("a key at n", "k ->", lambda: made.key(k, n)))
    if made.defines("relate"):
        places.append(("the product", "q·k +", lambda: _number(made.relate, (q, k, m, n))))
    if made.defines("scores"):
        whole = "the score of a query at m with a key at n"
        places.append((whole, "", lambda: made.score(q, k, m, n)))
    elif made.defines("bias"):
        places.append(("the score", "s ->", lambda: s + _number(made.bias, (m, n))))
    if made.defines("sees"):
        places.append(("a query at m sees a key at n if", "", lambda: _number(made.sees, (m, n))))
    if made.defines("value"):
        pair = m[None, None], n[None, None]
        read = "a value at n, as a query at m reads it"
        places.append((read, "v ->", lambda: made.value(v[None, None], *pair)[0, 0]))
    for what, before, compute in places:
        yield _told(what, before, compute, made)


def _number(act: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return what a method makes of one query and one key, also if it insists on a row of each."""
    try:
        found = as_array(act(*arguments))
    except (IndexError, TypeError, ValueError):
        found = None
    if found is None or found.shape:
        found = as_array(act(*(a[None, None] for a in arguments)))
        found = found[(0,) * len(found.shape)]
    return found


ARROWS = {"->": r"\mapsto", "·": r"\cdot "}


def _told(what: str, before: str, compute: Callable[[], Any], made: Encoding) -> Formula:
    """Return the formula of one method; a definition appears by name and unfolded.

    If the method fails, the text says so; the cells that need it will as well.
    """
    words = what if what.endswith(" if") else f"{what}:"
    try:
        term = as_array(compute()).term
        latex, text = translation.formula(term).latex, plain(term)
        if term.op == "named":
            latex, text = f"{latex} = {unfolded_latex(term)}", f"{text} = {plain(term.args[0])}"
    except (Exception, SystemExit) as error:  # noqa: BLE001 (one method stops no other)
        told = broken_by(error, source_of(type(made)))["error"]
        return Formula(latex="", text=f"{words} raises {told}")
    head = before
    for sign, becomes in ARROWS.items():
        head = head.replace(sign, becomes)
    text = text.replace("[None]", "")  # a new axis, which means nothing for one position
    return Formula(
        latex=rf"\text{{{words} }} {head} {latex}",
        text=" ".join(f"{words} {before} {text}".split()),
    )


Outcome = CellRecord | BrokenEncoding
Tell = Callable[[Outcome], None]
Laws = Sequence[EncodingLaw | str]
RAISED = "raised "


def cell(
    kind: type[Encoding], law: EncodingLaw, *, numeric: bool = False, limit: float = LIMIT
) -> CellRecord:
    """Return the cell of an encoding and a law, with measurements if asked for.

    ``limit`` is what the law may take, in seconds of the thread.  If the code of the encoding
    raises, the cell is undecided and says what was raised and where; an error of attnproof is
    reported as such.
    """
    start = perf_counter()
    try:
        found = decided(kind, law, limit_seconds=limit)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (one cell stops no other)
        part = _raised(kind, error, perf_counter() - start)
        return CellRecord(
            encoding=kind.id(),
            law=law.id,
            verdict=part.kind,
            why=part.why,
            error=part.why.removeprefix(RAISED) if part.kind == "undecided" else "",
            evidence=(part,),
            seconds=part.seconds,
        )
    if not numeric:
        return found
    try:
        return measured(kind, law, found)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        part = _raised(kind, error, 0.0)
        told = part.why.removeprefix(RAISED)
        more = {}
        if part.kind == "internal error":
            fault = part.model_copy(update={"why": f"the numbers: {told}"})
            more = {"evidence": (*found.evidence, fault)}
        return found.model_copy(update={"why": f"{found.why}; not measured: {told}", **more})


def _raised(
    kind: type[Encoding], error: BaseException, seconds: float
) -> UndecidedEvidence | InternalErrorEvidence:
    """Return what the code of an encoding raised, and where; or an error of attnproof."""
    broken = broken_by(error, source_of(kind))
    told, traceback = broken["error"], broken["traceback"]
    if traceback:
        return InternalErrorEvidence(says="", why=told, traceback=traceback, seconds=seconds)
    return UndecidedEvidence(says="", why=f"{RAISED}{told}", seconds=seconds)


def tabulate(
    kinds: Sequence[type[Encoding]],
    laws: Sequence[EncodingLaw],
    *,
    broken: Iterable[BrokenEncoding] = (),
    jobs: int = 1,
    numeric: bool = False,
    tell: Tell | None = None,
    limit: float = LIMIT,
) -> TableRecord:
    """Decide every law for every encoding, and return the record.

    ``tell`` is called with each outcome as it comes: what is broken, then the cells, encoding by
    encoding.  An interrupt (Ctrl-C) ends it early: what was decided is in the record, and
    ``unfinished`` names the encodings that are incomplete.
    """
    started = perf_counter()
    tell = tell or (lambda _: None)
    wrong = list(broken)
    described: list[tuple[type[Encoding], EncodingRecord]] = []
    for kind in kinds:
        try:
            require_shapes(kind)
            described.append((kind, encoding_record(kind)))
        except NotAnEncoding as error:
            wrong.append(BrokenEncoding(name=kind.id(), error=str(error)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (one encoding stops no other)
            wrong.append(BrokenEncoding(name=kind.id(), **broken_by(error, source_of(kind))))
    for fault in wrong:
        tell(fault)
    cells: list[CellRecord] = []
    try:
        for outcome in _cells([kind for kind, _ in described], laws, jobs, numeric, limit):
            if isinstance(outcome, CellRecord):
                cells.append(outcome)
            else:
                wrong.append(outcome)
            tell(outcome)
    except KeyboardInterrupt:
        pass
    counted = {record.id: 0 for _, record in described}
    for found in cells:
        counted[found.encoding] += 1
    lost = {fault.name for fault in wrong}
    whole = [kind.id() for kind, _ in described if counted[kind.id()] == len(laws)]
    return TableRecord(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        attnproof=__version__,
        encodings=tuple(record for _, record in described),
        laws=tuple(law_record(law) for law in laws),
        cells=tuple(cells),
        requirements=tuple(_requirements(whole, laws, cells)),
        broken=tuple(wrong),
        unfinished=tuple(n for n, k in counted.items() if k < len(laws) and n not in lost),
        seconds=perf_counter() - started,
    )


def _requirements(
    encodings: Sequence[str], laws: Sequence[EncodingLaw], cells: Sequence[CellRecord]
) -> Iterator[RequirementRecord]:
    """Yield what the documents require, if all laws that this takes were asked."""
    asked = {law.id for law in laws}
    for encoding in encodings:
        own = [c for c in cells if c.encoding == encoding]
        found = {c.law: c.verdict for c in own}
        under = {c.law: f" {', '.join(clauses(c.conditions))}" for c in own if c.conditions}
        for requirement in REQUIREMENTS:
            if asked.issuperset(law for law, _ in requirement.laws):
                known = granted(requirement, found)
                told = tuple((law, verdict + under.get(law, "")) for law, verdict in known.because)
                yield RequirementRecord.of(
                    requirement, encoding=encoding, verdict=known.verdict, because=told
                )


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage less often: terms are kept on purpose, and a search makes millions."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _cells(
    kinds: Sequence[type[Encoding]],
    laws: Sequence[EncodingLaw],
    jobs: int,
    numeric: bool,
    limit: float,
) -> Iterator[Outcome]:
    """Yield the outcomes, in order, as they come; with several jobs, in worker processes."""
    if jobs == 1 or len(kinds) < 2:
        with few_collections():
            for kind in kinds:
                for law in laws:
                    yield cell(kind, law, numeric=numeric, limit=limit)
        return
    from joblib import Parallel, delayed

    named: Laws = [law.id if law in LAWS else law for law in laws]
    work = (delayed(_in_worker)(home(kind), kind.id(), named, numeric, limit) for kind in kinds)
    for found in Parallel(n_jobs=jobs, return_as="generator", batch_size=1)(work):
        yield from found


def _in_worker(
    kind: type[Encoding] | Home, name: str, laws: Laws, numeric: bool, limit: float
) -> list[Outcome]:
    """Return the cells of one encoding, in a worker process that imports its file by itself."""
    try:
        found = kind.load() if isinstance(kind, Home) else kind
    except (Exception, SystemExit) as error:  # noqa: BLE001
        path = kind.path if isinstance(kind, Home) else source_of(kind)
        return [BrokenEncoding(name=name, **broken_by(error, path))]
    if numeric:
        import torch

        torch.set_num_threads(1)
    known = {law.id: law for law in LAWS}
    chosen = [known[law] if isinstance(law, str) else law for law in laws]
    with few_collections():
        return [cell(found, law, numeric=numeric, limit=limit) for law in chosen]
