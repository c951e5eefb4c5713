"""Deciding cells: encodings × laws, into one record."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from time import perf_counter

from . import __version__
from .card_records import BrokenEncoding, CellRecord, EncodingRecord, RequirementRecord, TableRecord
from .conformance import NotAnEncoding, require_shapes
from .descriptions import encoding_record, law_record, source_of
from .encoding import Encoding
from .encoding_law import EncodingLaw
from .evidence import InternalErrorEvidence, UndecidedEvidence
from .faults import broken_by
from .registry import Home, home
from .verdict_line import clauses

Outcome = CellRecord | BrokenEncoding
Tell = Callable[[Outcome], None]
Laws = Sequence[EncodingLaw | str]
LIMIT = 20.0  # seconds of the thread that a law may take


def cell(
    kind: type[Encoding], law: EncodingLaw, *, numeric: bool = False, limit: float = LIMIT
) -> CellRecord:
    """The cell of an encoding and a law, with numbers if they are asked for.

    ``limit`` is what the law may take, in seconds of the thread.  If the code of the encoding
    raises, the cell is undecided and says what was raised and where; an error of attnproof is
    told as that.
    """
    from .cells import decided

    start = perf_counter()
    try:
        found = decided(kind, law, limit_seconds=limit)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (one cell stops no other)
        seconds, broken = perf_counter() - start, broken_by(error, source_of(kind))
        told = broken["error"]
        if broken["traceback"]:
            fault = InternalErrorEvidence(
                says="", why=told, traceback=broken["traceback"], seconds=seconds
            )
            return CellRecord(
                encoding=kind.id(),
                law=law.id,
                verdict=fault.kind,
                why=told,
                evidence=(fault,),
                seconds=seconds,
            )
        why = f"raised {told}"
        return CellRecord(
            encoding=kind.id(),
            law=law.id,
            verdict="undecided",
            why=why,
            error=told,
            evidence=(UndecidedEvidence(says="", why=why, seconds=seconds),),
            seconds=seconds,
        )
    if not numeric:
        return found
    from .measuring import measured

    try:
        return measured(kind, law, found)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        broken, more = broken_by(error, source_of(kind)), {}
        if broken["traceback"]:
            fault = InternalErrorEvidence(
                says="",
                why=f"the numbers: {broken['error']}",
                traceback=broken["traceback"],
                seconds=0.0,
            )
            more = {"evidence": (*found.evidence, fault)}
        return found.model_copy(
            update={"why": f"{found.why}; not measured: {broken['error']}", **more}
        )


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
    """Decide every law of every encoding.

    ``tell`` hears of each outcome as it comes: what is broken, then the cells, encoding by
    encoding.  An interrupt (Ctrl-C) ends it early: what was decided is in the record, and the
    encodings that are not whole are named in ``unfinished``.
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
    """What the documents require, where all laws that it takes were asked."""
    from .laws.requirements import REQUIREMENTS, granted

    asked = {law.id for law in laws}
    for encoding in encodings:
        own = [c for c in cells if c.encoding == encoding]
        found = {c.law: c.verdict for c in own}
        under = {c.law: f" {', '.join(clauses(c.conditions))}" for c in own if c.conditions}
        for requirement in REQUIREMENTS:
            if asked.issuperset(law for law, _ in requirement.laws):
                known = granted(requirement, found)
                told = tuple((law, verdict + under.get(law, "")) for law, verdict in known.because)
                yield RequirementRecord(
                    encoding=encoding,
                    id=requirement.id,
                    document=requirement.document,
                    says=requirement.says,
                    verdict=known.verdict,
                    because=told,
                )


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage less often: terms are kept on purpose, and a search makes millions."""
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
    """The outcomes, in order, as they come; in processes of their own, encoding by encoding."""
    if jobs == 1 or len(kinds) < 2:
        with few_collections():
            for kind in kinds:
                for law in laws:
                    yield cell(kind, law, numeric=numeric, limit=limit)
        return
    from joblib import Parallel, delayed

    from .laws import LAWS

    named: Laws = [law.id if law in LAWS else law for law in laws]
    work = (delayed(_in_worker)(home(kind), kind.id(), named, numeric, limit) for kind in kinds)
    for found in Parallel(n_jobs=jobs, return_as="generator", batch_size=1)(work):
        yield from found


def _in_worker(
    kind: type[Encoding] | Home, name: str, laws: Laws, numeric: bool, limit: float
) -> list[Outcome]:
    """The cells of one encoding in a process of its own, which imports its file by itself."""
    from .laws import LAWS

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
