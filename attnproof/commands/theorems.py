"""The commands on theorems and claims: ``list``, ``show``, ``claims`` and ``run``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..documents.document import show as show_page
from ..errors import (
    Interrupted,
    UsageError,
    chosen_verdicts,
    require_file,
    require_id,
    require_known,
    require_writable,
)
from .options import (
    DeviceOption,
    Dtypes,
    EncodingFiles,
    Folders,
    Fresh,
    Jobs,
    JsonFile,
    NoNumeric,
    Scale,
    ScaleOption,
    Seed,
    StoreFile,
    app,
    finish,
    load_statements,
    options_of,
    run_store_in,
    statement_ids,
)

if TYPE_CHECKING:
    from ..theorem_runs.catalogue import Catalogue
    from ..theorem_runs.checking import Options
    from ..theorem_runs.ledger import Ledger
    from ..theorem_runs.records import Results
    from ..theorem_runs.run_store import RunStore


@app.command("list")
def list_theorems(
    encodings: Annotated[
        bool, typer.Option("--encodings", help="List encodings and their laws instead.")
    ] = False,
    encoding: EncodingFiles = None,
    code_laws: Annotated[
        bool, typer.Option("--code-laws", help="List the laws of PyTorch code instead.")
    ] = False,
    theorems: Folders = None,
) -> int:
    """List theorems and documents, or encodings, or laws of code."""
    if code_laws and (encodings or encoding):
        raise UsageError("wanted one list, got --code-laws and encodings; give one of them")
    if code_laws:
        from .check import list_code_laws

        return list_code_laws()
    if encodings or encoding:
        from .encodings import list_encodings

        return list_encodings(encoding or ())
    catalogue, ledger = load_statements(theorems)
    print(list_catalogue(catalogue, ledger))
    return 1 if catalogue.broken or ledger.broken else 0


@app.command()
def show(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="Ids of theorems or claims.", autocompletion=statement_ids
        ),
    ],
    steps: Annotated[bool, typer.Option("--steps", help="Show every kernel step.")] = False,
    sympy: Annotated[
        bool, typer.Option("--sympy", help="Show both sides as SymPy expressions instead.")
    ] = False,
    scale: ScaleOption = Scale.small,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    no_numeric: NoNumeric = False,
    theorems: Folders = None,
) -> int:
    """Show theorems with proof and evidence, or claims.

    A theorem is shown with its statement, proof, assumptions, measurements and negative control; a
    claim with the statements and demonstrations that decide it.
    """
    catalogue, ledger = load_statements(theorems)
    ids = (*catalogue.ids, *ledger.ids)
    for name in names:
        chosen, claims = catalogue.select([name]), ledger.select([name])
        members = [member.id for part in (chosen.entries, chosen.broken) for member in part]
        if members or not claims.claims:
            require_id(name, ids, members, "subject")
        else:
            require_id(name, ids, claims.ids, "document")
    from ..theorem_runs.page import show_claim, show_sides, show_theorem

    options = options_of(not no_numeric, scale, device, dtype, seed)
    codes = []
    for place, name in enumerate(names):
        print("\n" * place, end="")
        if name in catalogue.ids and sympy:
            codes.append(show_sides(catalogue.only(name)))
        elif name in catalogue.ids:
            codes.append(show_theorem(catalogue.only(name), options, steps=steps))
        else:
            codes.append(show_claim(catalogue, ledger.select([name]), options))
    return max(codes)


@app.command()
def claims(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID or document]...", help="Default: all claims.", autocompletion=statement_ids
        ),
    ] = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(help="Show only claims with this verdict (or prefix); repeatable."),
    ] = None,
    numeric: Annotated[
        bool, typer.Option("--numeric/--no-numeric", help="Also measure the statements.")
    ] = False,
    scale: ScaleOption = Scale.small,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    json: JsonFile = None,
    store: StoreFile = None,
    fresh: Fresh = False,
    theorems: Folders = None,
) -> int:
    """Show the claims of the documents with their verdicts.

    A verdict is derived from the statements and demonstrations that decide the claim.  Statements
    are measured only with --numeric.
    """
    from ..theorem_runs.ledger import VERDICTS

    wanted = chosen_verdicts(verdict or (), VERDICTS)
    catalogue, ledger = load_statements(theorems)
    require_known(
        names or (), ledger.names, "the id of a claim or a document", "`attnproof claims`"
    )
    require_file(json)

    from rich.console import Console

    from ..theorem_runs.terminal import claims_page, from_store

    options = options_of(numeric, scale, device, dtype, seed, jobs)
    chosen = ledger.select(names or ())
    run_store = run_store_in(store, fresh=fresh)
    parts = catalogue.with_ids(chosen.theorems)
    results = _run(parts, chosen, options, names or (), run_store, lines=False)
    console = Console()
    show_page(claims_page(results, console.width, wanted), console)
    if told := from_store(results):
        print(told)
    return _ended(results, json, None)


@app.command()
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID, subject or document]...",
            help="Default: everything.",
            autocompletion=statement_ids,
        ),
    ] = None,
    scale: ScaleOption = Scale.default,
    device: DeviceOption = "auto",
    dtype: Dtypes = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    json: JsonFile = None,
    html: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write an HTML report to this folder.")
    ] = None,
    no_numeric: NoNumeric = False,
    store: StoreFile = None,
    fresh: Fresh = False,
    theorems: Folders = None,
) -> int:
    """Check theorems and claims.

    Exit code 0: everything is as expected.  1: something is not.  2: a usage error, or an internal
    error of attnproof.
    """
    catalogue, ledger = load_statements(theorems)
    require_known(names or (), (*catalogue.names, *ledger.names))
    require_file(json)
    if html is not None:
        require_writable(html)

    from ..theorem_runs.runner import workers_loading
    from ..theorem_runs.terminal import run_page

    with workers_loading(jobs):
        options = options_of(not no_numeric, scale, device, dtype, seed, jobs)
    chosen = ledger.select(names or ())
    needed = catalogue.select([*names, *chosen.theorems]) if names else catalogue
    results = _run(needed, chosen, options, names or (), run_store_in(store, fresh=fresh))
    show_page(run_page(results))
    return _ended(results, json, html)


def _run(
    catalogue: Catalogue,
    ledger: Ledger,
    options: Options,
    names: Sequence[str],
    run_store: RunStore | None,
    *,
    lines: bool = True,
) -> Results:
    """Run with a progress bar; interrupted before anything was finished, leave nothing."""
    from rich.console import Console

    from ..theorem_runs.runner import run as run_catalogue
    from ..theorem_runs.terminal import progress

    broken = [*(b.id for b in catalogue.broken), *(b.file for b in ledger.broken)]
    ids = [entry.id for entry in catalogue.entries]
    coming = [*broken, *ids, *ledger.demonstrations, *["numbers"] * len(ids) * options.numeric]
    with progress(Console(stderr=True), coming, lines=lines) as tell:
        results = run_catalogue(catalogue, options, tuple(names), tell, ledger, run_store)
    for line in run_store.messages if run_store is not None else ():
        print(f"attnproof: {line}", file=sys.stderr)
    if results.unfinished and not results.theorems:
        raise Interrupted("interrupted before any theorem was finished; nothing written")
    return results


def _ended(results: Results, json: Path | None, html: Path | None) -> int:
    """Write what was asked for; return the exit code."""
    code = finish(results, json, ok=results.ok)
    if html is not None:
        from ..report import write_report

        print(f"wrote {write_report(results, html)}")
    return code


WORDS = {"proved": "", "refuted": " (false, refuted)", "ill-typed": " (false, ill-typed)"}


def list_catalogue(catalogue: Catalogue, ledger: Ledger) -> str:
    """Return a line per subject or document, two per theorem, and what is broken, with errors."""
    lines: list[str] = []
    for subject, entries in groupby(catalogue.entries, lambda entry: entry.subject):
        lines.append(subject)
        for entry in entries:
            title = entry.theorem.title + WORDS[entry.theorem.expected]
            lines += [f"  {entry.id}", f"      {title}"]
    if ledger.documents:
        lines.append("claims of the documents (`attnproof claims`)")
    for document in ledger.documents:
        count = sum(claim.document == document.id for claim in ledger.claims)
        lines.append(f"  {document.id}  {document.title} ({count} claim{'s' * (count != 1)})")
    lines.append("encodings and the laws they obey (`attnproof list --encodings`)")
    for broken in catalogue.broken:
        lines += [f"! broken: {broken.source.path}", f"      {broken.error}"]
    for wrong in ledger.broken:
        lines += [f"! broken: {wrong.file}", f"      {wrong.error}"]
    return "\n".join(lines)
