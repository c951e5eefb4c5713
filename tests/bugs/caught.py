"""Which public bugs `check` catches with their declarations, which with none, and false alarms.

``python -m tests.bugs.caught`` prints the table.  A bug is caught with declarations where a law is
broken; with none also where a remark stands on the mutant and not on the correct code.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import torch

from attnproof.programs.subjects import Subject
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.records import CodeRecord
from attnproof.real_code.request import CodeRequest

from .corpus import Bug, all_bugs, all_controls

LOOKS = ("measured", "identity")


def undeclared(subject: Subject) -> Subject:
    """The same code, of which nothing is declared."""
    bare: dict[str, Any] = {"declared": None} if hasattr(subject, "declared") else {}
    make = subject.make
    if make is not None:
        bare["make"] = lambda **settings: undeclared(make(**settings))
    return replace(subject, **bare)


def record_of(subject: Subject) -> CodeRecord:
    """What `check` finds of a subject by running it."""
    heard = Collected(CodeRequest(target=f"<{subject.name}>", methods=LOOKS))
    heard.receive(
        {
            "event": "adapted",
            "name": subject.name,
            "kind": subject.kind,
            "adapted": subject.adapted,
            "file": "",
        }
    )
    look(subject, heard.asked, heard.receive)
    heard.receive({"event": "ended"})
    return heard.record(0.0)


@dataclass(frozen=True)
class Caught:
    """What is found of one bug, with its declarations and with none.

    ``laws`` broken by the mutant and not by the correct code; ``remarks`` on the mutant alone;
    ``alarms``: laws broken by the correct code, and remarks on it.
    """

    laws: tuple[str, ...]
    remarks: tuple[str, ...]
    alarms: tuple[str, ...]


def found(subject: Subject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The laws that are broken, and the remarks in words."""
    record = record_of(subject)
    remarks = tuple(one.sentence for one in record.remarks)
    return tuple(law.law for law in record.broken), remarks


def caught(one: Bug, *, declared: bool) -> Caught:
    """What is found of one bug."""
    both = [make() if declared else undeclared(make()) for make in (one.mutant, one.correct)]
    (laws, remarks), (alarms, unusual) = map(found, both)
    return Caught(
        tuple(law for law in laws if law not in alarms),
        tuple(told for told in remarks if told not in unusual),
        (*alarms, *unusual),
    )


def main() -> None:
    """Print a line for each bug and control, and the counts."""
    torch.set_num_threads(1)
    only = set(sys.argv[1:])
    entries = {True: set(), False: set()}  # type: dict[bool, set[str]]
    missed, alarms = {True: set(), False: set()}, []  # type: dict[bool, set[str]], list[str]
    for one in all_bugs():
        if only and one.id not in only:
            continue
        for declared in (True, False):
            seen = caught(one, declared=declared)
            got = seen.laws or (not declared and seen.remarks)
            (entries if got else missed)[declared].add(one.id[:3])
            word = "declared" if declared else "undeclared"
            told = ", ".join(seen.laws) or "; ".join(seen.remarks) or "-"
            print(f"{one.id:5} {word:10} {told}", flush=True)
            if seen.alarms:
                alarms.append(f"{one.id} {word}: {', '.join(seen.alarms)}")
                print(f"{one.id:5} {word:10} ALARM ON CORRECT CODE {alarms[-1]}")
    for control in all_controls():
        if only and control.id not in only:
            continue
        for declared in (True, False):
            made = control.subject()
            laws, remarks = found(made if declared else undeclared(made))
            if laws or remarks:
                alarms.append(f"{control.id}: {', '.join((*laws, *remarks))}")
                print("ALARM", alarms[-1])
    for declared, word in ((True, "with"), (False, "without")):
        whole = entries[declared] - missed[declared]
        print(
            f"{word} declarations: {len(whole)} of {len(entries[declared] | missed[declared])};"
            f" missed: {', '.join(sorted(missed[declared]))}"
        )
    print(f"{len(alarms)} alarms on correct code and controls")


if __name__ == "__main__":
    main()
