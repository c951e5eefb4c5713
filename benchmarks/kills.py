"""Kill runs of attnproof with SIGKILL, and check that nothing is lost or counted twice.

``python -m benchmarks.kills --kills 100`` starts a run on a new store, kills it at a random moment,
and restarts it on the same store until it completes; then repeats this on another store.  After
each kill the store is compared with what the run had reported as finished, and at the end the
record is compared with that of an undisturbed run.  With ``--plant`` the store has a fault, which
must be detected.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Annotated, Any

import typer

from attnproof.documents.document import bar
from attnproof.theorem_runs.store import Key, Store

ROOT = Path(__file__).resolve().parent.parent
SELECTION = ("permutation",)
FINISHED = re.compile(r"^[✓✗?] (?:proved|refuted|ill-typed|undecided) +([\w-]+)")
TIMES = ("seconds", "created", "stored")
"""Fields in which two runs of the same work may differ."""
REACHED = ("sizes", "cases", "all_cases", "sides")
"""Fields that depend on how far a derivation by SymPy came within its time limit."""
CHILD = """
import sys
from benchmarks.kills import plant
plant(sys.argv[1])
from attnproof.cli import main
sys.exit(main(sys.argv[2:]))
"""
PLANTS = {
    "": "nothing",
    "late": "rows are written five at a time",
    "twice": "each row is written under two keys",
    "again": "nothing is found in the store",
    "torn": "half of each record is written",
}
LATE = 5
Tell = Callable[[int, str], None]


def plant(fault: str) -> None:
    """Plant a fault in the store of this process."""
    put = Store.put
    waiting: list[tuple[Key, str]] = []

    def late(self: Store, key: Key, record: str, *, replace: bool = False) -> bool:
        waiting.append((key, record))
        if len(waiting) >= LATE:
            for one in waiting:
                put(self, *one, replace=replace)
            waiting.clear()
        return True

    def twice(self: Store, key: Key, record: str, *, replace: bool = False) -> bool:
        put(self, Key(key.kind, key.name, key.identity + " "), record, replace=replace)
        return put(self, key, record, replace=replace)

    def torn(self: Store, key: Key, record: str, *, replace: bool = False) -> bool:
        return put(self, key, record[: len(record) // 2], replace=replace)

    if fault == "again":
        Store.get = lambda *_: None  # type: ignore[method-assign]
    elif fault:
        Store.put = {"late": late, "twice": twice, "torn": torn}[fault]  # type: ignore[method-assign]


@dataclass
class Kills:
    """Runs that are killed, and the faults found.

    ``tell`` is called with the number of kills so far and a description of the current step.
    """

    folder: Path
    selection: tuple[str, ...] = SELECTION
    fault: str = ""
    seed: int = 0
    killed: int = 0
    wholes: int = 0
    wrong: list[str] = field(default_factory=list)
    tell: Tell = lambda _, __: None

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.reference: dict[str, Any] = {}

    def run(self, kills: int) -> None:
        """Kill this many times; stop at the first fault."""
        first = self.folder / "first"
        started = perf_counter()
        self.tell(0, "a run that nobody disturbs")
        if self._whole(first, 1) is None:
            return
        self.longest = perf_counter() - started
        self.reference = _without_times(self._record(first))
        while self.killed < kills and not self.wrong:
            self._until_whole(self.folder / f"store-{self.wholes}", kills)
            self.wholes += 1

    def _until_whole(self, place: Path, kills: int) -> None:
        jobs = self.random.choice((1, 1, 2))
        before: dict[str, tuple[str, str]] = {}
        now = f"run {self.wholes + 1}, in {jobs} process{'es' * (jobs > 1)}"
        self.tell(self.killed, now)
        while self.killed < kills and not self.wrong:
            told, ended = self._kill(place, jobs)
            if ended:
                break
            self.killed += 1
            self.tell(self.killed, now)
            before = self._hold(place, told, before)
        if not self.wrong:
            self.tell(self.killed, f"{now}, to its end")
            before = self._rows(place)
            if self._whole(place, jobs) is not None:
                self._hold_whole(place, before)

    def _kill(self, place: Path, jobs: int) -> tuple[list[str], bool]:
        """Start a run and kill it: at a random moment, or right after a random reported outcome."""
        process = self._start(place, jobs)
        assert process.stderr is not None
        told: list[str] = []
        enough, count = Event(), self.random.choice((0, self.random.randrange(1, 12)))
        lines = process.stderr

        def listen() -> None:
            for line in lines:
                if found := FINISHED.match(line):
                    told.append(found.group(1))
                if count and len(told) >= count:
                    enough.set()

        listening = Thread(target=listen)
        listening.start()
        if count:
            while not enough.wait(0.005) and process.poll() is None:
                pass
        else:
            enough.wait(self.random.uniform(0, self.longest))
        ended = process.poll() is not None
        # Workers notice the death of their parent, or are killed with it.
        whole_group = self.random.random() < 0.5
        if not ended:
            (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        if jobs > 1:
            _end_group(process.pid)
        listening.join()
        lines.close()
        if ended and process.returncode not in (0, 1):
            self.wrong.append(f"a run that nobody killed ended with {process.returncode}")
        return told, ended

    def _start(self, place: Path, jobs: int) -> subprocess.Popen[str]:
        place.mkdir(parents=True, exist_ok=True)
        arguments = (
            "run",
            *self.selection,
            "--no-numeric",
            "--jobs",
            str(jobs),
            "--store",
            str(place / "store.sqlite"),
            "--json",
            str(place / "record.json"),
        )
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, self.fault, *arguments],
            cwd=ROOT,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def _whole(self, place: Path, jobs: int) -> list[str] | None:
        """Complete a run undisturbed, and return the lines that it printed."""
        process = self._start(place, jobs)
        _, said = process.communicate()
        if process.returncode:
            self.wrong.append(f"a run that nobody killed ended with {process.returncode}: {said}")
            return None
        return said.splitlines()

    def _hold(
        self, place: Path, told: list[str], before: dict[str, tuple[str, str]]
    ) -> dict[str, tuple[str, str]]:
        """Check after a kill that no finished result was lost or computed again."""
        after = self._rows(place)
        names = [name for name, _ in after.values()]
        for name in sorted(set(told) - set(names)):
            self.wrong.append(f"lost: {name} was said to be finished and is not in the store")
        for key, row in before.items():
            if after.get(key) != row:
                self.wrong.append(f"changed: the row of {row[0]} was {row}, is {after.get(key)}")
        for name, count in Counter(names).items():
            if count > 1:
                self.wrong.append(f"twice: {name} has {count} rows in the store")
        return after

    def _hold_whole(self, place: Path, before: dict[str, tuple[str, str]]) -> None:
        """Check that a completed run has every result once, as an undisturbed run does."""
        record = self._record(place)
        made = dict(before.values())
        for theorem in record["theorems"]:
            name, stored = theorem["id"], theorem["stored"]
            if (stored is not None) != (name in made):
                self.wrong.append(f"again: {name} in the store: {name in made}, used: {stored}")
        counts = Counter(theorem["id"] for theorem in record["theorems"])
        self.wrong += [f"twice: {name} is in the record" for name, k in counts.items() if k > 1]
        found = _without_times(record)
        if found != self.reference:
            differs = "the record differs from that of a run that nobody disturbed"
            self.wrong.append(f"{differs}: {_difference(found, self.reference)}")
        self._hold(place, list(counts), before)

    def _rows(self, place: Path) -> dict[str, tuple[str, str]]:
        """Return name and time of each row of a store, by key."""
        file = place / "store.sqlite"
        if not file.exists():
            return {}
        with Store(file, named=True) as store:
            found = {key: (name, made) for _, name, key, made in store}
            self.wrong += store.messages
        return found

    def _record(self, place: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((place / "record.json").read_text(encoding="utf-8"))
        found["options"].pop("jobs")
        return found


def _end_group(group: int) -> None:
    """Wait until all processes of a group have ended; orphaned workers end by themselves."""
    until = perf_counter() + 20
    while perf_counter() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        Event().wait(0.02)
    os.killpg(group, signal.SIGKILL)


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        left = TIMES if value.get("kind") != "derived" else (*TIMES, *REACHED)
        return {name: _without_times(part) for name, part in value.items() if name not in left}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


def _difference(found: Any, other: Any, where: str = "record") -> str:
    """Describe the first place where two records differ, with both values."""
    if isinstance(found, dict) and isinstance(other, dict) and found.keys() == other.keys():
        pairs = [(f"{where}.{name}", found[name], other[name]) for name in found]
    elif isinstance(found, list) and isinstance(other, list) and len(found) == len(other):
        pairs = [(f"{where}[{i}]", *both) for i, both in enumerate(zip(found, other, strict=True))]
    else:
        return f"{where} is {found!r}, not {other!r}"
    return next(_difference(one, two, place) for place, one, two in pairs if one != two)


def _told(kills: Kills, seconds: float) -> Iterator[str]:
    yield f"{kills.killed} kills of {kills.wholes} runs, each to its end at last; {seconds:.0f} s"
    yield from (f"! {line}" for line in kills.wrong)
    if not kills.wrong:
        yield "nothing finished was lost, nothing counted twice, every record as undisturbed"


def main(
    kills: Annotated[int, typer.Option(min=1, help="Number of kills.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the moments of the kills.")] = 0,
    fault: Annotated[
        str, typer.Option("--plant", metavar="|".join(PLANTS)[1:], help="A store with a fault.")
    ] = "",
) -> None:
    """Kill runs of attnproof, and check that nothing is lost or counted twice."""
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder, bar() as shown:
        task = shown.add_task("", total=kills)

        def tell(killed: int, now: str) -> None:
            shown.update(task, completed=killed, description=now)

        one = Kills(Path(folder), fault=fault, seed=seed, tell=tell)
        one.run(kills)
    print("\n".join(_told(one, perf_counter() - started)))
    raise SystemExit(bool(one.wrong))


if __name__ == "__main__":
    typer.run(main)
