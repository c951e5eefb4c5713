"""The ledger in the terminal: a table of claims, how many there are of each verdict, a summary."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, get_args

from .claim_records import ClaimRecord, ClaimVerdict
from .records import Results
from .terminal import against, sign, style
from .terminal_text import headed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

VERDICTS: tuple[str, ...] = get_args(ClaimVerdict)
WIDE = 110
VERDICT = 20  # "✗ false as written !"
GAP = 2  # between two columns: the padding and the box's own space


def claims_table(results: Results, console: Console, verdicts: Collection[str] = VERDICTS) -> None:
    """The claims with one of these verdicts, document by document, then the counts of all."""
    from rich.text import Text

    for document in results.documents:
        claims = [c for c in results.claims if c.document == document.id and c.verdict in verdicts]
        if claims:
            title = f"{document.id}  {document.title} ({document.kind})"
            console.print(Text(title, "bold"), soft_wrap=False)
            console.print(_wide(claims, console.width) if console.width >= WIDE
                          else _narrow(claims, console.width))  # fmt: skip
            console.print()
    if results.claims:
        console.print(counts(results))
    for line in against(results):
        console.print(Text(line, "red"), soft_wrap=True)
    told = f"{claims_summary(results)} {results.seconds:.1f} s"
    console.print(Text(told, "bold"), soft_wrap=True)


def _table(headings: Sequence[str], widths: Sequence[int]) -> Table:
    shown = headed(padding=(0, 1, 0, 0), leading=1)
    for heading, width in zip(headings, widths, strict=True):
        shown.add_column(heading, width=width, overflow="fold")
    return shown


def _wide(claims: Sequence[ClaimRecord], width: int) -> Table:
    """Five columns: id, place, claim, verdict, how it is known."""
    from rich.text import Text

    left = width - (7 + 15 + VERDICT) - 4 * GAP
    widths = (7, 15, left - left // 2, VERDICT, left // 2)
    shown = _table(("claim", "place", "what it says", "verdict", "how it is known"), widths)
    for claim in claims:
        shown.add_row(
            Text(claim.id, "bold"), claim.place, claim.says, _verdict(claim),
            Text(_known(claim, widths[-1]), "dim"),
        )  # fmt: skip
    return shown


def _narrow(claims: Sequence[ClaimRecord], width: int) -> Table:
    """Three columns: place under the id, how it is known under the claim, and the verdict."""
    from rich.text import Text

    widths = (14, width - (14 + VERDICT) - 2 * GAP, VERDICT)
    shown = _table(("claim", "what it says, and how it is known", "verdict"), widths)
    for claim in claims:
        says = Text(claim.says)
        says.append(f"\n{_known(claim, widths[1])}", "dim")
        head = Text(claim.id, "bold")
        head.append(f"\n{claim.place}", "not bold")
        shown.add_row(head, says, _verdict(claim))
    return shown


def _verdict(claim: ClaimRecord) -> Text:
    from rich.text import Text

    return Text(sign(claim.verdict) + " !" * (not claim.ok), style(claim.verdict))


def _known(claim: ClaimRecord, width: int) -> str:
    """How the verdict is known, with the first witness or mismatch, and what is right.

    In lines of this width; a long id is cut at its hyphens.
    """
    parts = [claim.evidence] if claim.reason else _parts(claim)
    parts += [f"right: {claim.correction}"] * bool(claim.correction)
    return "\n".join(line for part in parts for line in wrap(part, width))


def _parts(claim: ClaimRecord) -> list[str]:
    unstated = f"no statement by itself: {claim.unstated}" if claim.unstated else ""
    parts = [part for part in claim.evidence.removeprefix(unstated).split("; ") if part]
    words = {"refuted": "witness", "ill-typed": "shapes"}
    shown = [f"{words[s.verdict]}: {s.known}" for s in claim.statements if s.verdict in words]
    return [*[unstated] * bool(unstated), *parts, *shown[:1]]


def counts(results: Results) -> Table:
    """How many claims of each document have which verdict."""
    told = [v for v in VERDICTS if any(c.verdict == v for c in results.claims)]
    shown = headed(padding=(0, 1, 0, 0))
    shown.add_column("document", no_wrap=True)
    for heading in (*told, "all", "as expected"):
        shown.add_column(heading, justify="right", max_width=12, vertical="bottom")
    groups = [(d.id, [c for c in results.claims if c.document == d.id]) for d in results.documents]
    for name, claims in (*groups, *[("all", list(results.claims))] * (len(groups) > 1)):
        verdicts: list[str] = [claim.verdict for claim in claims]
        numbers = [*(verdicts.count(v) for v in told), len(claims), sum(c.ok for c in claims)]
        shown.add_row(name, *(str(number) if number else "–" for number in numbers))
    return shown


def claims_summary(results: Results) -> str:
    """One line: how many claims, their verdicts, and how many are as expected."""
    found = [claim.verdict for claim in results.claims]
    parts = ", ".join(_counted(found)) or "none"
    right = sum(claim.ok for claim in results.claims)
    return f"{len(found)} claim{'s' * (len(found) != 1)}: {parts}; {right} as expected."


def _counted(found: Sequence[str]) -> Iterator[str]:
    for verdict in VERDICTS:
        if verdict in found:
            yield f"{found.count(verdict)} {verdict}"
