"""The page of a library: a table of its classes, every violation, and all that could not be run.

Violations of one law that read alike but for numbers stand in one paragraph, with the classes
that have them and the smallest witness among them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnproof.real_code.page_text import witness_lines
from attnproof.real_code.records import SeenRecord, SideRecord
from attnproof.theorems.laws import LAWS as CODE_LAWS
from benchmarks.markdown import table_of

from .judging import JUDGEMENTS, Judged, judgement_of
from .results import VERDICTS, Row

SAYS = {law.id: law.says for law in CODE_LAWS}
ADAPTERS = "450b8ea8"  # the last commit that calls subjects by code of its own


@dataclass
class _Group:
    """Violations of one law that read alike."""

    law: str
    judged: Judged
    cases: list[tuple[str, Row]] = field(default_factory=list)

    @property
    def smallest(self) -> tuple[str, Row]:
        """The class whose witness is shortest."""
        return min(self.cases, key=lambda case: (len(json.dumps(case[1]["witness"])), case[0]))


def page(
    told: Row,
    rows: Mapping[str, Row],
    known: Sequence[Judged],
    uncalled: Mapping[str, str] = {},
) -> str:
    """The page in Markdown; ``told`` is its head, ``known`` the judgements of violations.

    ``uncalled``: why no line calls a subject.  A row names in ``same`` the classes that have its
    code, and stands for those that have no row.
    """
    stands = _standing(rows)
    groups = _groups(told["library"], rows, known)
    parts = [
        f"# {told['library']}",
        _head(told, rows),
        _summary(rows, groups),
        "## Classes",
        _table(rows, stands),
        *_violations(groups),
        *_not_run(rows),
        *_uncalled(uncalled),
        *_undecided(rows),
        *_untraced(rows),
        *_same(stands),
    ]
    return "\n\n".join(parts) + "\n"


def overview(libraries: Sequence[tuple[Row, Mapping[str, Row]]], known: Sequence[Judged]) -> str:
    """The page of all libraries: what was looked at in each, and what was found."""
    counted = []
    for told, rows in libraries:
        laws = Counter(v for row in rows.values() for v, ids in row["laws"].items() for _ in ids)
        sorts = Counter(g.judged.judgement for g in _groups(told["library"], rows, known))
        counted.append((told, len(rows), laws + sorts))
    columns = [word for word in (*VERDICTS, *JUDGEMENTS) if any(of[word] for *_, of in counted)]
    lines = []
    for told, subjects, of in counted:
        name = told["library"]
        counts = (str(of[word] or "") for word in columns)
        version = told["versions"].get(name, "")
        lines.append([f"[{name}](zoo/{name}.md)", version, str(subjects), *counts])
    table = table_of(["library", "version", "subjects", *columns], lines, words=2)
    names = "\n".join(f"zoo/{told['library']}" for told, _ in libraries)
    return (
        "# The zoo\n\nThe attention and position code that libraries ship, with the laws of each "
        "class and function. Written by `python -m benchmarks.zoo --pages` from the results beside "
        "the pages. The last columns count kinds of violations, as judged by a person; most real "
        "ones have [a page of their own](finds.md). [Code that attnproof had never "
        f"seen](zoo/trial.md) was chosen before any of it was run.\n\n{table}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\nzoo/trial\n```\n"
    )


def _standing(rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """The classes that stand for others, with those of the same code that have no row."""
    found = {
        name: [other for other in row.get("same", ()) if other not in rows]
        for name, row in rows.items()
        if not row["why"]
    }
    return {name: others for name, others in found.items() if others}


def _same(stands: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The classes that were not run, because another with the same code was."""
    if stands:
        count = sum(map(len, stands.values()))
        yield "## The same code"
        yield (
            f"{count} further classes were not run. Their code is that of a class above, except "
            "for names; their configs may set another width, base or scaling."
        )
        yield "\n".join(
            f"- `{name}` stands for {_names(others)}" for name, others in stands.items()
        )


def _head(told: Row, rows: Mapping[str, Row]) -> str:
    made = (
        f"Made by `{told['command']}` on {told['made']}: {_named(told['versions'])}, attnproof "
        f"{told['attnproof']}, Python {told['python']}, {told['machine']}, "
        f"{told['processors']} processors; float32, random weights, nothing downloaded."
    )
    of = Counter((row["made"], _named(row["versions"])) for row in rows.values() if not row["line"])
    earlier = "; ".join(f"{count} of {day} ({named})" for (day, named), count in of.items())
    if not of:
        return made
    return (
        f"{made}\n\nNot run by a line: {earlier}. They are results of adapters in Python, which "
        f"lines have replaced; commit {ADAPTERS} has them."
    )


def _named(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _summary(rows: Mapping[str, Row], groups: Sequence[_Group]) -> str:
    total = Counter({v: sum(len(row["laws"][v]) for row in rows.values()) for v in VERDICTS})
    lost = sum(bool(row["why"]) for row in rows.values())
    of = Counter(g.judged.judgement for g in groups)
    named = ", ".join(f"{of[j]} {j or 'not looked at'}" for j in (*JUDGEMENTS, "") if of[j])
    counts = ", ".join(f"{total[v]} {v}" for v in VERDICTS)
    told = f"{len(rows)} subjects, {lost} of which could not be run. Laws: {counts}."
    cases = sum(len(g.cases) for g in groups)
    if groups:
        told += f" {cases} violations of {len(groups)} kinds: {named}."
    return (
        f"{told} *Proved*: for the traced graph, at all sizes within its guards; *exact*: by "
        "running the code over finite fields; *measured*: on drawn inputs, with a derived bound."
    )


def _table(rows: Mapping[str, Row], stands: Mapping[str, Sequence[str]]) -> str:
    columns = [v for v in VERDICTS if any(row["laws"][v] for row in rows.values())]
    days = ["made"] * (len({row["made"] for row in rows.values()}) > 1)
    lines = []
    for name, row in rows.items():
        what = row["sentence"] or ("could not be run" if row["why"] else "not identified")
        counts = [str(len(row["laws"][v]) or "") for v in columns]
        told = [what, *(row[day] for day in days)]
        lines.append([f"`{name}`{_for(stands.get(name, ()))}", *told, *counts])
    return table_of(["class", "what it is", *days, *columns], lines, words=2 + len(days))


def _for(others: Sequence[str]) -> str:
    """The first of the classes that a row stands for, and how many more."""
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f", for `{others[0]}`{more}" if others else ""


def _groups(library: str, rows: Mapping[str, Row], known: Sequence[Judged]) -> list[_Group]:
    found: dict[tuple[Any, ...], _Group] = {}
    for name, row in rows.items():
        for one in row["broken"]:
            judged = judgement_of(library, name, one["law"], one["why"], known)
            like = "" if judged.judgement else re.sub(r"[\d.e+-]*\d", "0", one["why"])
            key = (one["law"], judged, like)
            found.setdefault(key, _Group(one["law"], judged)).cases.append((name, one))
    return _ordered(found.values())


def _ordered(groups: Iterable[_Group]) -> list[_Group]:
    """In the order of the laws, the most frequent first."""
    order = list(SAYS)
    return sorted(groups, key=lambda g: (order.index(g.law), -len(g.cases)))


def violations(
    libraries: Mapping[str, Mapping[str, Row]], known: Sequence[Judged]
) -> Iterator[str]:
    """What a page says of every broken law of the rows of some libraries."""
    found = (g for library, rows in libraries.items() for g in _groups(library, rows, known))
    yield from _violations(_ordered(found))


def _violations(groups: Sequence[_Group]) -> Iterator[str]:
    for judgement in (*JUDGEMENTS, ""):
        mine = [g for g in groups if g.judged.judgement == judgement]
        if mine:
            yield f"## {JUDGEMENTS.get(judgement, 'Not looked at yet')}"
        for group in mine:
            yield from _violation(group)


def _violation(group: _Group) -> Iterator[str]:
    name, one = group.smallest
    count = len(group.cases)
    yield f"### {group.law}, {count} class{'' if count == 1 else 'es'}"
    page = group.judged.find
    find = f" See [{page}](../finds/{page}.md)." if page else ""
    yield f"Law: {SAYS[group.law]}. {group.judged.reason}{find}"
    sizes = "".join(f", {axis} = {size}" for axis, size in one["sizes"].items())
    head = f"{name}: {one['why']} ({one['method']}, {one['dtype']}, seed {one['seed']}{sizes})"
    yield "```text\n" + "\n".join([head, *witness_lines(_seen(one["witness"]))]) + "\n```"
    if count > 1:
        yield f"Classes: {_names([case for case, _ in group.cases])}."


def _seen(told: Row) -> SeenRecord:
    sides = {side: SideRecord(**told[side]) for side in ("here", "there")}
    return SeenRecord(**{**told, **sides})


def _not_run(rows: Mapping[str, Row]) -> Iterator[str]:
    told = [
        f"- `{name}`: {short(row['why'] or row['stopped'])}"
        for name, row in rows.items()
        if row["why"] or row["stopped"]
    ]
    if told:
        yield "## Could not be run, or not to the end"
        yield "\n".join(told)


def _uncalled(uncalled: Mapping[str, str]) -> Iterator[str]:
    if uncalled:
        yield "## Not called by a line"
        yield "\n".join(f"- `{name}`: {why}" for name, why in uncalled.items())


def _undecided(rows: Mapping[str, Row]) -> Iterator[str]:
    whose: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, row in rows.items():
        for law, why in () if row["why"] else row["undecided"].items():
            like = re.sub(r"[\d.e+-]*\d", "0", why)
            whose.setdefault((law, like), []).append((name, why))
    if whose:
        yield "## Undecided"
        yield "\n".join(
            f"- {law} ({len(cases)}): {short(cases[0][1])} – {_names([n for n, _ in cases])}"
            for (law, _), cases in sorted(whose.items(), key=lambda one: one[0])
        )


def _untraced(rows: Mapping[str, Row]) -> Iterator[str]:
    whose: dict[str, list[str]] = {}
    for name, row in rows.items():
        for method, why in row["methods"].items():
            whose.setdefault(f"{method}: {short(why)}", []).append(name)
        if row["traced"].get("why"):
            whose.setdefault(f"traced: {short(row['traced']['why'])}", []).append(name)
    if whose:
        yield "## Methods that gave no result"
        yield "\n".join(f"- {why} – {_names(names)}" for why, names in sorted(whose.items()))


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def short(text: str) -> str:
    r"""The text in a line, of at most 300 letters.

    >>> short("why \n  not")
    'why not'
    """
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:298] + " …"
