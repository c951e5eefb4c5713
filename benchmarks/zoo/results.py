"""Check a target as a user does, and store a part of its record as JSON after every subject."""

from __future__ import annotations

import inspect
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

from attnproof import __version__
from attnproof.real_code.collecting import Collected
from attnproof.real_code.records import CodeRecord, CodesRecord, LawVerdict
from attnproof.real_code.request import CodeRequest
from attnproof.theorem_runs.records import Machine

Row = dict[str, Any]
VERDICTS: tuple[str, ...] = get_args(LawVerdict)
INTERNAL = "internal error"
SHOWN = {"method", "witness", "seed", "dtype", "sizes"}
TRACED = {"operations", "guards", "why", "unread"}


def checked(target: str, flags: str, seconds: int) -> Row:
    """Check a target in a separate process, with limited processor time."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        command = [
            sys.executable,
            "-m",
            "attnproof",
            "check",
            target,
            *shlex.split(flags),
            "--store",
            str(record.with_suffix(".db")),
            "--json",
            str(record),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        limit = (seconds, seconds)
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
        )
        user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        if not record.exists():
            said = [*done.stderr.strip().splitlines(), "nothing was written"][-1]
            lost = Collected(CodeRequest(target=target))
            lost.why = f"ended with {done.returncode}: {said}"
            one = lost.record(0.0)
        else:
            text = record.read_text(encoding="utf-8")
            one = CodesRecord.model_validate_json(text).codes[0]
    found = without_folders(row(one), os.environ.get("PYTHONPATH", ""))
    why = found["why"] or ("" if any(found["laws"].values()) else found["stopped"])
    return {**found, "name": target, "why": why, "user": round(user, 1)}


def without_folders(found: Row, path: str) -> Row:
    """Return a row with file paths relative to the import path and to Python's own library.

    >>> without_folders({"why": "/some/place/code.py, /lib/site-packages/x.py"}, "/some/place")
    {'why': 'code.py, x.py'}
    >>> without_folders({"why": f"{inspect.__file__}:9"}, "")
    {'why': 'inspect.py:9'}
    """
    text = re.sub(r"/[^\s\"]*/site-packages/", "", json.dumps(found))
    for folder in filter(None, (*path.split(os.pathsep), str(Path(inspect.__file__).parent))):
        text = text.replace(json.dumps(f"{folder}/")[1:-1], "")
    told: Row = json.loads(text)
    return told


def row(record: CodeRecord) -> Row:
    """Return the record as a row, without the sentences of laws and methods without a reason."""
    identity = record.identity
    return {
        "name": record.target,
        "kind": record.kind,
        "sentence": identity.sentence if identity is not None else "",
        "answers": list(identity.answers) if identity is not None else [],
        "adapted": record.adapted,
        "why": record.why or record.raises,
        "stopped": record.stopped,
        "methods": {method.method: method.why for method in record.methods if method.why},
        "laws": {
            verdict: [law.law for law in record.laws if law.verdict == verdict]
            for verdict in VERDICTS
        }
        | {  # a method had an internal error, whatever the others found
            INTERNAL: [
                law.law
                for law in record.laws
                if any(one.verdict == INTERNAL for one in law.findings)
            ]
        },
        "broken": [
            {"law": law.law, "why": law.why, **law.shown.model_dump(include=SHOWN)}
            for law in record.broken
            if law.shown is not None
        ],
        "undecided": {law.law: law.why for law in record.laws if law.verdict == "undecided"},
        "traced": {}
        if record.traced is None
        else record.traced.model_dump(mode="json", include=TRACED),
        "seconds": round(record.seconds, 1),
    }


def head(library: str, packages: Iterable[str], command: str) -> Row:
    """Return versions, date and machine."""
    where = Machine.here()
    named = dict.fromkeys([*packages, "torch"])
    return {
        "library": library,
        "command": command,
        "made": datetime.now(UTC).date().isoformat(),
        "attnproof": __version__,
        "python": where.python,
        "machine": where.platform,
        "processors": where.processors,
        "versions": {name: metadata.version(name) for name in named},
    }


def write(path: Path, told: Row, rows: Mapping[str, Row]) -> None:
    """Write results next to the page; the new file replaces the old one when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in rows.values())
    text = f'{{"head": {json.dumps(told, ensure_ascii=False)},\n"subjects": [\n{lines}\n]}}\n'
    new = path.with_suffix(".json.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def read(path: Path) -> tuple[Row, dict[str, Row]]:
    """Return head and rows of stored results; empty if there is no file.

    Verdicts that did not exist when they were written have no laws.
    """
    if not path.exists():
        return {}, {}
    told = json.loads(path.read_text(encoding="utf-8"))
    rows = {one["name"]: one for one in told["subjects"]}
    for one in rows.values():
        if one["laws"]:
            one["laws"] = {verdict: one["laws"].get(verdict, []) for verdict in VERDICTS}
    return told["head"], rows
