"""``attnproof check`` on published code that it has never seen: ``python -m benchmarks.zoo.trial``.

``trial.toml`` is the list, chosen before anything was run: ``target``, as a user names it,
``library`` and ``source``, a description of the code.  After the run may be added ``line``, the
flags with which a target that is refused by its bare name can be called; ``misread``, why a guessed
call is not that of the code; ``wrong``, laws that were proved and do not hold; and ``missed``,
faults that were not reported and false sentences, which the page would not show.  Each target runs
in a separate process, first by its bare name.  A target that was misread is also called with its
line, as a reader of the printed call would do; both runs count, and the result of the second is its
``corrected``, with ``still`` if that is not the call of the code either.  The results are in
docs/zoo/trial.json, the judgements of broken laws in ``judged.toml``, and ``--pages`` writes the
page from stored results.
"""

from __future__ import annotations

import argparse
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.markdown import table_of

from .judging import JUDGEMENTS, Judged, judgement_of, judgements
from .pages import short, violations
from .results import Row, checked, head, read, write

HERE = Path(__file__).with_name("trial.toml")
COLUMNS = ("proved", "exact", "measured", "broken", "undecided")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A target of the trial, a description of its source, and remarks added after the run."""

    target: str
    library: str
    source: str
    line: str = ""
    misread: str = ""
    still: str = ""
    wrong: tuple[str, ...] = ()
    missed: str = ""


def targets(path: Path = HERE) -> tuple[Target, ...]:
    """Return the list, in order.  Raises ``TypeError`` for an unknown key."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))["trial"]
    return tuple(Target(**{**one, "wrong": tuple(one.get("wrong", ()))}) for one in told)


def run(known: Sequence[Target], out: Path, *, seconds: int, only: Sequence[str] = ()) -> None:
    """Check the targets one after another, except those that have results."""
    path = out / "trial.json"
    told = head("trial", {one.library: None for one in known}, "python -m benchmarks.zoo.trial")
    rows = read(path)[1]
    for one in known:
        if any(word in one.target for word in only) if only else one.target not in rows:
            rows[one.target] = _checked(one, seconds)
        elif one.misread and one.line and "corrected" not in rows[one.target]:
            lined = checked(one.target, one.line, seconds)
            rows[one.target]["corrected"] = {**lined, "called": "" if lined["why"] else one.line}
        else:
            continue
        write(path, told, {t.target: rows[t.target] for t in known if t.target in rows})
        print(one.target, rows[one.target]["called"], rows[one.target]["user"], flush=True)


def _checked(one: Target, seconds: int) -> Row:
    """Return the row for the bare name, or for the line if the bare name is refused."""
    bare = {**checked(one.target, "", seconds), "called": "bare"}
    if not bare["why"]:
        return bare
    if not one.line:
        return {**bare, "called": ""}
    lined = checked(one.target, one.line, seconds)
    if not lined["why"]:
        return {**lined, "called": one.line}
    return {**bare, "called": "", "why": f"{lined['why']} (`{one.line}`)"}


def page(
    told: Row, rows: Mapping[str, Row], known: Sequence[Target], said: Sequence[Judged]
) -> str:
    """Return the page in Markdown: numbers, a table of targets, broken laws and refusals."""
    known = [one for one in known if one.target in rows]
    parts = [
        "# Code that attnproof had never seen",
        _numbers(rows, known, said),
        _made(told),
        "## Targets",
        _table(rows, known),
        *_broken(rows, known, said),
        *_notes(rows, known),
    ]
    return "\n\n".join(parts) + "\n"


def _made(told: Row) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    return (
        f"Made by `{told['command']}` on {told['made']}: {versions}; attnproof "
        f"{told['attnproof']}, Python {told['python']}, {told['machine']}, {told['processors']} "
        "processors. The targets, and descriptions of their sources, were written down before any "
        "of them was run; none of these libraries was used while attnproof was built."
        f"\n\n{told.get('note', '')}"
    ).rstrip()


def _called(one: Target, row: Row) -> str:
    """Return how a target was called: bare, line, corrected, misread or refused."""
    if not row["called"]:
        return "refused"
    if one.misread:
        mended = row.get("corrected", {}).get("called") and not one.still
        return "corrected" if mended else "misread"
    return "bare" if row["called"] == "bare" else "line"


def _runs(rows: Mapping[str, Row], known: Sequence[Target]) -> Iterator[tuple[Target, Row, str]]:
    """Yield every run that counts, with the way in which its target was called."""
    for one in known:
        row = rows[one.target]
        way = _called(one, row)
        yield one, row, "misread" if way == "corrected" else way
        if "corrected" in row:
            yield one, row["corrected"], "corrected" if way == "corrected" else "misread"


def _judged(
    rows: Mapping[str, Row], known: Sequence[Target], said: Sequence[Judged]
) -> Counter[str]:
    """Return the number of broken laws of each judgement; "" for laws not examined."""
    return Counter(
        judgement_of(one.library, one.target, law["law"], law["why"], said).judgement
        for one, row, _ in _runs(rows, known)
        for law in row["broken"]
    )


def _numbers(rows: Mapping[str, Row], known: Sequence[Target], said: Sequence[Judged]) -> str:
    ways = Counter(_called(one, rows[one.target]) for one in known)
    ran = [row for _, row, _ in _runs(rows, known)]
    laws = Counter({v: sum(len(row["laws"].get(v, ())) for row in ran) for v in COLUMNS})
    of = _judged(rows, known, said)
    seconds = [row["user"] for row in ran]
    libraries = len({one.library for one in known})
    breaks = ", ".join(f"{of[j]} {j or 'not looked at'}" for j in (*JUDGEMENTS, "") if of[j])
    wrong = sum(len(one.wrong) for one in known)
    return (
        f"{len(known)} targets of {libraries} libraries. Called: "
        f"{ways['bare'] + ways['line'] + ways['corrected']} ({ways['bare']} by the bare name, "
        f"{ways['line']} with a line, {ways['corrected']} with a line after a wrong call); "
        f"{ways['misread']} called wrongly, {ways['refused']} refused. Laws: "
        f"{', '.join(f'{laws[v]} {v}' for v in COLUMNS)}. Broken: {breaks or 'none'}. Proved, but "
        f"false: {wrong}. User time of a check: median {statistics.median(seconds):.1f} s, at most "
        f"{max(seconds):.1f} s."
    )


def _table(rows: Mapping[str, Row], known: Sequence[Target]) -> str:
    lines = []
    for one, ran, way in _runs(rows, known):
        counts = [str(len(ran["laws"].get(v, ())) or "") for v in COLUMNS]
        how = f"`{ran['called']}`" if way in ("line", "corrected") else way
        lines.append([f"`{one.target}`", one.source, how, *counts, f"{ran['user']:.1f}"])
    return table_of(["target", "what its source is", "called", *COLUMNS, "s"], lines, words=3)


def _broken(
    rows: Mapping[str, Row], known: Sequence[Target], said: Sequence[Judged]
) -> Iterator[str]:
    """Yield the broken laws, as on the pages of the libraries."""
    of: dict[str, dict[str, Row]] = {}
    for one, ran, _ in _runs(rows, known):
        before = of.setdefault(one.library, {}).get(one.target, {"broken": []})["broken"]
        of[one.library][one.target] = {**ran, "broken": [*before, *ran["broken"]]}
    yield from violations(of, said)


def _notes(rows: Mapping[str, Row], known: Sequence[Target]) -> Iterator[str]:
    """Yield refusals, misread calls, wrong proofs, undecided laws and missed faults."""
    told = {
        "Refused": [(t, rows[t.target]["why"]) for t in known if not rows[t.target]["called"]],
        "Called wrongly": [
            (t, f"{rows[t.target]['adapted']}: {t.misread}{_mended(t, rows[t.target])}")
            for t in known
            if t.misread and rows[t.target]["called"]
        ],
        "Proved, but false": [(t, ", ".join(t.wrong)) for t in known if t.wrong],
        "Undecided": [
            (t, f"{law}: {why}")
            for t, ran, _ in _runs(rows, known)
            for law, why in ran["undecided"].items()
        ],
        "Missed, or described wrongly": [(t, t.missed) for t in known if t.missed],
    }
    for title, cases in told.items():
        if cases:
            yield f"## {title}"
            yield "\n".join(f"- `{one.target}`: {short(why)}" for one, why in cases)


def _mended(one: Target, row: Row) -> str:
    """Describe the result of calling a misread target with its line."""
    if "corrected" not in row:
        return ""
    if why := row["corrected"]["why"]:
        return f"; refused with its line: {why}"
    return f"; with its line: {one.still or 'called correctly'}"


def main(arguments: list[str] | None = None) -> None:
    """Check all targets without a result, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.zoo.trial", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--list", type=Path, default=HERE, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("docs/zoo"), metavar="FOLDER")
    parser.add_argument(
        "--limit", type=int, default=60, metavar="SECONDS", help="processor time of one check"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=(),
        metavar="NAME",
        help="check targets whose name contains one of these again",
    )
    parser.add_argument(
        "--pages", action="store_true", help="only write the page, from stored results"
    )
    asked = parser.parse_args(arguments)
    known = targets(asked.list)
    if not asked.pages:
        run(known, asked.out, seconds=asked.limit, only=asked.only)
    text = page(*read(asked.out / "trial.json"), known, judgements())
    (asked.out / "trial.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
