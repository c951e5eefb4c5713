"""The pages of a run: the index, a page for each theorem, the definitions, and the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from ..cards.records import TableRecord
from ..documents.evidence import DerivedEvidence, Evidence
from ..numeric.results import ExactEvidence, MeasuredEvidence
from ..sweeping.scale import CONTROL, reach
from ..theorem_runs.judgement import against
from ..theorem_runs.records import (
    ClaimRecord,
    DefinitionRecord,
    OptionsRecord,
    ProofRecord,
    Results,
    TheoremRecord,
)
from ..theorem_runs.terminal import compared
from . import view
from .documents import MENDS, document_pages, ledger
from .drawing import Tile, drawn_tile, tiles, uses_drawn
from .page import (
    DEFINITIONS,
    ENCODINGS,
    GROWTHS,
    LARGE,
    definition_place,
    document_file,
    rendered,
    slug,
    theorem_file,
    written,
)
from .plots import READ, plots_of, render_growths

if TYPE_CHECKING:
    from ..encoding.base import Encoding
    from .plots import Measured, Plot

KERNEL = (60, 30, 10, 0)  # kernel steps of a link that a page shows, fewer while it is too large
KINDS = {
    "kernel": "decided by the kernel, by a witness or by the shapes",
    "sympy": "derived by SymPy, or refused where it is false",
    "exact": "the same without rounding, in finite fields",
    "measured": "the same measured on real code",
}


def seen(t: TheoremRecord) -> dict[str, str]:
    """Return, for each kind of evidence, "for" what was expected, "against" it, or "none"."""
    parts: dict[str, list[Evidence]] = {kind: [] for kind in KINDS}
    for e in t.evidence:
        if isinstance(e, DerivedEvidence) and e.status != "not derived":
            parts["sympy"].append(e)
        elif isinstance(e, ExactEvidence) and e.status != "skipped":
            parts["exact"].append(e)
        elif isinstance(e, MeasuredEvidence) and e.status != "skipped":
            parts["measured"].append(e)
    found = {
        kind: "none" if not held else "against" if against(t.expected, t.expected, held) else "for"
        for kind, held in parts.items()
    }
    undecided = t.verdict in ("undecided", "internal error")
    kernel = "for" if t.verdict == t.expected else "none" if undecided else "against"
    return {**found, "kernel": kernel}


Shared = Mapping[str, object]


@dataclass(frozen=True)
class Sheet:
    """A theorem with its place among the others, and the claims that rest on it."""

    record: TheoremRecord
    number: int
    claims: tuple[ClaimRecord, ...] = ()

    @property
    def file(self) -> str:
        """The name of its page."""
        return theorem_file(self.record.id)

    @property
    def seen(self) -> dict[str, str]:
        """What each kind of evidence says."""
        return seen(self.record)

    @property
    def kinds(self) -> str:
        """The kinds of evidence for it, as words of an HTML attribute."""
        return " ".join(kind for kind, state in self.seen.items() if state == "for")

    @property
    def measurements(self) -> int:
        """How many measurements it has."""
        return sum(
            isinstance(e, MeasuredEvidence) and e.status != "skipped" for e in self.record.evidence
        )

    @property
    def tile(self) -> Tile:
        """Its tile in the overview."""
        t = self.record
        return Tile(
            self.file, t.title, "wrong" if not t.ok else slug(t.verdict), tuple(self.seen.values())
        )


def sheets(results: Results) -> list[Sheet]:
    """Return the theorems in the order in which one would teach them."""
    resting: dict[str, list[ClaimRecord]] = {}
    for claim in results.claims:
        for name in dict.fromkeys(deciding.id for deciding in claim.statements):
            resting.setdefault(name, []).append(claim)
    ordered = [t for _, held in view.subjects(results) for t in held]
    return [Sheet(t, k, tuple(resting.get(t.id, ()))) for k, t in enumerate(ordered, 1)]


def by_subject(found: Sequence[Sheet]) -> list[tuple[str, list[Sheet]]]:
    """Return the theorems of each subject."""
    groups: dict[str, list[Sheet]] = {}
    for sheet in found:
        groups.setdefault(sheet.record.subject, []).append(sheet)
    return list(groups.items())


def commands(t: TheoremRecord, options: OptionsRecord) -> Iterator[tuple[str, str]]:
    """Yield the commands that run it again, and what each of them shows."""
    yield f"attnproof show {t.id}", "statement, proof, measurements and control in the terminal"
    if t.chain:
        yield f"attnproof show {t.id} --steps", "the same with the kernel steps"
    yield f"attnproof show {t.id} --sympy", "both sides as SymPy expressions"
    if options.numeric:
        dtypes = "".join(f" --dtype {name}" for name in options.dtypes)
        numbers = (
            f" --scale {options.scale} --device {options.device}{dtypes} --seed {options.seed}"
        )
        yield f"attnproof run {t.id}{numbers}", "the command that produced this page"
    else:
        yield f"attnproof run {t.id} --no-numeric", "the command that produced this page"
        yield f"attnproof run {t.id}", "the same with numbers"


def further(t: TheoremRecord) -> Iterator[tuple[str, str]]:
    """Yield the commands that measure it further than a run, and that show the result here."""
    yield f"attnproof scale {t.id} --json scale.json", "at growing numbers of tokens, to 1,048,576"
    yield "attnproof report report/results.json scale.json", "this report, with those results"


def _shared(
    results: Results, encodings: TableRecord | None = None, far: Sequence[Measured] = ()
) -> dict[str, object]:
    """Return what every page of a run may refer to."""
    pages = list(document_pages(results))
    return {
        "mends": MENDS,
        "results": results,
        "pages": pages,
        "homes": {e.claim.id: document_file(p.document.id) for p in pages for e in p.entries},
        "known": {d.name: d for d in results.definitions},
        "encodings": encodings,
        "encodings_home": f"{ENCODINGS}/index.html",
        "far": GROWTHS if far else "",
        "reach": reach,
        "read_growth": READ,
    }


def render(results: Results, encodings: TableRecord | None = None) -> str:
    """Return the index.  Raises :class:`MissingAsset` if a file of the package is missing."""
    return _index(_shared(results, encodings), results)


def _index(shared: Shared, results: Results) -> str:
    found = sheets(results)
    groups = by_subject(found)
    return rendered(
        "index.html.j2",
        "",
        **shared,
        counts=view.counts(results),
        compared=compared(results),
        groups=groups,
        total=len(found),
        verdicts=Counter(t.verdict for t in results.theorems),
        evidence=Counter(kind for s in found for kind, state in s.seen.items() if state == "for"),
        kinds=KINDS,
        picture=[
            (subject, held, tiles([s.tile for s in held], view.subject_title(subject)))
            for subject, held in groups
        ],
        legend={word: drawn_tile(word) for word in ("proved", "refuted", "wrong")},
        ledger=ledger(list(document_pages(results))),
    )


def _theorems(
    shared: Shared, results: Results, growths: Mapping[str, Sequence[Plot]]
) -> dict[str, str]:
    found = sheets(results)
    known = {d.name: d for d in results.definitions}
    pages: dict[str, str] = {}
    for before, sheet, after in zip([None, *found], found, [*found[1:], None], strict=False):
        name = sheet.record.id
        parts = {
            **shared,
            "sheet": sheet,
            "t": sheet.record,
            "before": before,
            "after": after,
            "commands": list(commands(sheet.record, results.options)),
            "graph": _graph(sheet, known),
            "growths": [*growths.get(name, ()), *growths.get(name + CONTROL, ())],
            "further": list(further(sheet.record)),
        }
        for kernel in KERNEL:
            text = rendered("theorem.html.j2", "../", kernel=kernel, **parts)
            if len(text.encode()) <= LARGE:
                break
        pages[sheet.file] = text
    return pages


def _graph(sheet: Sheet, known: Mapping[str, DefinitionRecord]) -> Markup:
    """Draw what it uses and what uses it; nothing if there is neither."""
    uses: dict[str, tuple[str, ...]] = {}
    left = [name for name in sheet.record.uses if name in known]
    while left:
        name = left.pop()
        if name not in uses:
            uses[name] = tuple(part for part in known[name].uses if part in known)
            left += uses[name]
    direct = [name for name in sheet.record.uses if name in known]
    claims = {c.id: f"../{document_file(c.document)}#{c.id}" for c in sheet.claims}
    places = {name: f"../{definition_place(name)}" for name in uses}
    return uses_drawn(uses, direct, places, claims)


def _definitions(shared: Shared, results: Results) -> str:
    used_by: dict[str, list[Sheet]] = {}
    inside: dict[str, list[str]] = {}
    for sheet in sheets(results):
        for name in sheet.record.uses:
            used_by.setdefault(name, []).append(sheet)
    for d in results.definitions:
        for name in d.uses:
            inside.setdefault(name, []).append(d.name)
    return rendered("definitions.html.j2", "", **shared, used_by=used_by, inside=inside)


def render_all(
    results: Results, encodings: TableRecord | None = None, far: Sequence[Measured] = ()
) -> dict[str, str]:
    """Return every page of a run, by the name of its file; ``index.html`` leads to all of them.

    ``far`` are records of sweeps and kernels: their growth is shown on the pages of theorems, and
    together on one page.
    """
    shared = _shared(results, encodings, far)
    return {
        **({GROWTHS: render_growths(far, led=True)} if far else {}),
        **{
            document_file(p.document.id): rendered("document.html.j2", "", **shared, page=p)
            for p in document_pages(results)
        },
        **_theorems(shared, results, plots_of(far)),
        DEFINITIONS: _definitions(shared, results),
        "index.html": _index(shared, results),
    }


def write_report(
    results: Results,
    directory: Path,
    encodings: TableRecord | None = None,
    kinds: Mapping[str, type[Encoding]] | None = None,
    far: Sequence[Measured] = (),
) -> Path:
    """Write ``index.html`` and the pages beside it; return the path of the first.

    The pages of a table of encodings, if there is one, are in a folder there; ``kinds`` has the
    classes by their ids, from which drawings are made; ``far`` is as in :func:`render_all`.  Raises
    :class:`ReportError` if the directory cannot be created or written to.
    """
    pages = render_all(results, encodings, far)
    if encodings is not None:
        from .encodings import render_encodings

        of_table = render_encodings(encodings, kinds or {}, root="../")
        pages |= {f"{ENCODINGS}/{name}": text for name, text in of_table.items()}
    return written(pages, directory)


def proof_html(record: ProofRecord) -> str:
    """Return a statement for a notebook: its verdict with every condition, and its proof.

    Nothing is fetched, and no style leaks out of it.
    """
    from ..theorem_runs.page import against_it

    return rendered("proof.html.j2", t=record, against_it=against_it)
