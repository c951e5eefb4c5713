"""Mutation test of the trusted files: find single changes that no test detects.

``python -m benchmarks.trusted_mutants [FILE ...] --jobs 2`` changes one condition, assumption,
bound or argument of a trusted file at a time (:mod:`benchmarks.mutations`) and runs the tests that
execute the changed line, fastest first, until one fails.  A change that no test detects is a gap in
the tests, unless ``trusted_equivalents.toml`` explains why it has no effect.

mutmut and cosmic-ray start an interpreter or write a file for each change, and do not know
assumptions and conditions; here everything is imported once, and each change is compiled into the
functions of a forked process, about twenty per second.  A change that was detected before is not
tested again while its function is unchanged; ``--afresh`` tests all.  ``--sample 100`` makes a
hundred random changes of each file, and ``--markdown FILE`` writes the table and the survivors.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hashlib
import inspect
import json
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain
from math import inf
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Annotated, Any

import pytest
import typer
from coverage import Coverage
from rich.console import Console
from rich.table import Table

from attnproof.documents.document import bar
from benchmarks.markdown import items, markdown, table_of
from benchmarks.mutations import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("trusted_equivalents.toml")
STORE = ROOT / "build" / "trusted_mutants.json"
TIMES = STORE.with_name("trusted_times.json")
TRUSTED: dict[str, frozenset[str]] = {
    f"symbolic/{name}.py": frozenset()
    for name in (
        "terms", "scalars", "meaning", "well_formedness", "covers", "ranges", "kernel",
        *(f"rules/{rule}" for rule in (
            "__init__", "base", "conditions", "entries", "functions", "maps",
            "inequalities", "polynomials", "signs", "sums",
        )),
    )
} | {
    "symbolic/prove.py": frozenset(
        ["granted", "_sign_of", "_claimed", "_require_arbitrary", "check_proof"]
    )
}  # fmt: skip
TESTS = tuple(
    sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests/symbolic").glob("test_*.py"))
)
"""All tests of the folder: of each change, those run that execute it."""
SLACK = 4.0
"""Seconds that a test may take with a change, beyond ten times its time without."""
MEMORY = 6 << 30
NOTICED, SURVIVED, LATE = 0, 1, 2
VERDICTS = {NOTICED: "noticed", SURVIVED: "survived", LATE: "timed out"}


@dataclass
class Case:
    """A test as a function without arguments, whether it patches code, and its time."""

    name: str
    run: Callable[[], object]
    patched: bool = False
    seconds: float = 0.0


@dataclass
class Tests:
    """The collected tests, those that pass, and the tests that execute each line."""

    cases: list[Case] = field(default_factory=list)
    passed: set[int] = field(default_factory=set)
    through: dict[tuple[str, int], set[int]] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the collected tests instead of running them."""
        for item in session.items:
            assert isinstance(item, pytest.Function)
            arguments = dict(item.callspec.params) if hasattr(item, "callspec") else {}
            asked = set(inspect.signature(item.obj).parameters) - set(arguments)
            patched = "monkeypatch" in asked
            if asked <= {"monkeypatch"}:
                call = functools.partial(_called, item.obj, arguments, patched)
                self.cases.append(Case(item.nodeid, call, patched))
        return True

    def measure(self, files: list[Path], within: float) -> None:
        """Run every test once, and record its time and the lines that it executes.

        A test that fails without a change, or takes longer than ``within``, is reported and left
        out.
        """
        times: dict[str, float] = {}
        if TIMES.exists():
            times = json.loads(TIMES.read_text(encoding="utf-8"))
        caches = _caches()
        coverage = Coverage(
            data_file=None, config_file=False, include=[f"*/{file}" for file in map(_short, files)]
        )
        signal.signal(signal.SIGPROF, _late)
        coverage.start()
        with bar(Console(stderr=True)) as shown:
            task = shown.add_task("", total=len(self.cases))
            for k, case in enumerate(self.cases):
                shown.update(task, advance=1, description=case.name[-80:])
                if times.get(case.name, 0) > within:
                    continue
                _clear(caches)
                coverage.switch_context(str(k))
                started = time.process_time()
                try:
                    signal.setitimer(signal.ITIMER_PROF, 0 if within == inf else within)
                    case.run()
                    failure = None
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - it is told
                    failure = f"{type(error).__name__}: {error}"
                except _Late:
                    failure = f"more than {within:g} s"
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                times[case.name] = case.seconds = time.process_time() - started
                if failure is None:
                    self.passed.add(k)
                else:
                    coverage.switch_context("")
                    print(f"left out: {case.name}: {failure[:200]}")
        coverage.stop()
        STORE.parent.mkdir(exist_ok=True)
        TIMES.write_text(json.dumps(times), encoding="utf-8")
        data = coverage.get_data()
        for name in data.measured_files():
            for line, contexts in data.contexts_by_lineno(name).items():
                found = {int(c) for c in contexts if c} & self.passed
                self.through.setdefault((_short(Path(name)), line), set()).update(found)

    def of(self, mutant: Mutant, budget: float) -> list[Case]:
        """Return the tests that execute the change, fastest first, within a total time."""
        last = getattr(mutant.parent, "end_lineno", None) or mutant.line
        first = getattr(mutant.parent, "lineno", None) or mutant.line
        inside = isinstance(mutant.statement, (ast.FunctionDef, ast.ClassDef))
        short = _short(mutant.file)
        if inside:
            lines = (
                {mutant.line}
                if isinstance(mutant.replacement, ast.Pass)
                else set(range(min(first, mutant.line), last + 1))
            )
            if isinstance(mutant.parent, (ast.FunctionDef, ast.ClassDef)):
                lines = {mutant.line}
            numbers = set[int]().union(*(self.through.get((short, at), set()) for at in lines))
            if not numbers:  # a default, which is evaluated on import
                lines = set(range(mutant.statement.lineno, (mutant.statement.end_lineno or 0) + 1))
                numbers.update(*(self.through.get((short, at), set()) for at in lines))
        else:
            numbers = set[int]().union(*self.through.values()) or self.passed
        cases = sorted((self.cases[k] for k in numbers), key=lambda case: case.seconds)
        spent = accumulate(case.seconds for case in cases)
        return [case for case, seconds in zip(cases, spent, strict=True) if seconds <= budget]


class _Late(BaseException):
    """Raised if a test takes too long; a ``BaseException``, so that no test catches it."""


def _late(*_: object) -> None:
    raise _Late


def _called(test: Callable[..., object], arguments: dict[str, object], patched: bool) -> None:
    if not patched:
        test(**arguments)
        return
    with pytest.MonkeyPatch.context() as patch:
        test(**arguments, monkeypatch=patch)


def _short(file: Path) -> str:
    parts = file.parts
    return "/".join(parts[len(parts) - parts[::-1].index("symbolic") - 1 :])


@functools.cache
def _nothing() -> None:
    """Provide the type of cached functions."""


def _caches() -> list[Any]:
    return [x for x in gc.get_objects() if type(x) is type(_nothing)]


def _clear(caches: list[Any]) -> None:
    for cache in caches:
        cache.cache_clear()


# a change in the running process


def plant(
    mutant: Mutant, tree: ast.Module, module: ModuleType, functions: list[FunctionType]
) -> None:
    """Change the functions and tables of an imported module."""
    mutant.apply()
    statement = mutant.statement
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        assert isinstance(target, ast.Name)
        assert statement.value is not None
        code = ast.fix_missing_locations(ast.Expression(statement.value))
        _set(module, target.id, eval(compile(code, str(mutant.file), "eval"), module.__dict__))
    else:
        alone = ast.Module([tree.body[1], statement], [])  # under `from __future__ import ...`
        codes = dict(
            _codes(compile(ast.fix_missing_locations(alone), module.__file__ or "", "exec"))
        )
        for function in functions:
            place = function.__code__.co_qualname, function.__code__.co_firstlineno
            if place in codes and codes[place] != function.__code__:
                function.__code__ = codes[place]
        if isinstance(statement, ast.FunctionDef) and statement.args.defaults:
            values = [eval(ast.unparse(x), module.__dict__) for x in statement.args.defaults]
            _unwrapped(module.__dict__[statement.name]).__defaults__ = tuple(values)
        if isinstance(statement, ast.FunctionDef) and any(statement.args.kw_defaults):
            named = zip(statement.args.kwonlyargs, statement.args.kw_defaults, strict=True)
            _unwrapped(module.__dict__[statement.name]).__kwdefaults__ = {
                x.arg: eval(ast.unparse(v), module.__dict__) for x, v in named if v is not None
            }
    terms = module.__dict__
    if "_interned" in terms:  # attributes computed when a term is made are recomputed
        for term in list(terms["_interned"].values()):
            loose = terms["_loose"](term.op, term.args, term.data, term.shape)
            object.__setattr__(term, "loose", loose)
            object.__setattr__(term, "finite", terms["_finite"](term.op, term.args))


def _set(module: ModuleType, name: str, value: Any) -> None:
    old = module.__dict__[name]
    if isinstance(old, dict):
        old.clear()
        old.update(value)
        return
    for other in list(sys.modules.values()):
        if getattr(other, "__dict__", {}).get(name) is old:
            setattr(other, name, value)


def _unwrapped(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Yield the functions of a module and of its classes, by name and line."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield (part.co_qualname, part.co_firstlineno), part
            if not part.co_flags & 1:  # the body of a class
                yield from _codes(part)


def _functions(module: ModuleType) -> list[FunctionType]:
    return [
        x for x in gc.get_objects() if type(x) is FunctionType and x.__globals__ is module.__dict__
    ]


# one process for each change


@dataclass
class Work:
    """A change, its module, and the tests that execute it."""

    mutant: Mutant
    tree: ast.Module
    module: ModuleType
    functions: list[FunctionType]
    cases: list[Case]


def _child(work: Work, caches: list[Any]) -> int:
    """Return whether some test detects the change; run in a separate process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SLACK)
    try:
        plant(work.mutant, work.tree, work.module, work.functions)
        _clear(caches)
        for case in work.cases:
            signal.setitimer(signal.ITIMER_PROF, SLACK + 10 * case.seconds)
            case.run()
            if case.patched:  # values cached under its patch are wrong for the next test
                _clear(caches)
    except BaseException:  # noqa: BLE001 - a failed test, a refusal, a broken import: all detect it
        return NOTICED
    return SURVIVED


def _outcomes(work: list[Work], jobs: int, caches: list[Any]) -> Iterator[tuple[Mutant, str]]:
    running: dict[int, Mutant] = {}
    waiting = iter(work)
    while True:
        while len(running) < jobs and (one := next(waiting, None)) is not None:
            if not one.cases:
                yield one.mutant, "survived"
                continue
            pid = os.fork()
            if not pid:
                code = SURVIVED
                with contextlib.suppress(BaseException):
                    code = _child(one, caches)
                os._exit(code)
            running[pid] = one.mutant
        if not running:
            return
        pid, status = os.wait()
        mutant = running.pop(pid)
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
        yield (
            mutant,
            VERDICTS[
                LATE
                if late
                else os.waitstatus_to_exitcode(status)
                if os.WIFEXITED(status)
                else NOTICED
            ],
        )


def _digest(mutant: Mutant) -> str:
    """Return a digest of the change and the statement that contains it."""
    return hashlib.blake2b(
        "\0".join([_short(mutant.file), mutant.name, ast.dump(mutant.statement)]).encode(),
        digest_size=12,
    ).hexdigest()


def _equivalent() -> dict[str, dict[str, str]]:
    if not EQUIVALENT.exists():
        return {}
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))


def main(
    files: Annotated[
        list[str] | None, typer.Argument(help="Trusted files; by default all.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel processes.")] = 2,
    afresh: Annotated[bool, typer.Option(help="Test again what was detected before.")] = False,
    tests: Annotated[
        list[str] | None, typer.Option(help="Tests to run instead of the default.")
    ] = None,
    within: Annotated[float, typer.Option(help="Omit tests that take more seconds.")] = inf,
    budget: Annotated[float, typer.Option(help="Seconds of tests for each change.")] = inf,
    sample: Annotated[int, typer.Option(help="Maximum number of changes of a file; 0: all.")] = 0,
    markdown: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
) -> None:
    """Make every single change of the trusted files, and list those that no test detects."""
    chosen = [name for name in TRUSTED if not files or any(name.endswith(f) for f in files)]
    gathered = Tests()
    paths = [name for name in tests or TESTS if (ROOT / name.split("::")[0]).exists()]
    pytest.main(["-q", "--assert=plain", "-p", "no:cacheprovider", *paths], plugins=[gathered])
    gc.unfreeze()  # functions and caches are searched for among all objects
    gathered.measure([ROOT / name for name in chosen], within)
    console = Console(width=160)
    console.print(f"{len(gathered.cases)} tests, {sum(c.seconds for c in gathered.cases):.0f} s")
    before: dict[str, str] = {}
    if STORE.exists() and not afresh:
        before = json.loads(STORE.read_text(encoding="utf-8"))
    known = _equivalent()
    work, verdicts = list[Work](), dict[str, list[tuple[Mutant, str]]]()
    for name in chosen:
        file = ROOT / name
        tree = ast.parse(file.read_text(encoding="utf-8"))
        module = sys.modules["attnproof." + name[:-3].replace("/", ".").removesuffix(".__init__")]
        functions = _functions(module)
        reasons = known.get(name, {})
        found = verdicts[name] = []
        changes = list(mutants(file, tree, TRUSTED[name]))
        if sample and sample < len(changes):
            changes = random.Random(name).sample(changes, sample)
        for mutant in changes:
            if mutant.name in reasons:
                found.append((mutant, "equivalent"))
            elif before.get(_digest(mutant)) == "noticed":
                found.append((mutant, "noticed"))
            else:
                work.append(Work(mutant, tree, module, functions, gathered.of(mutant, budget)))
    caches = _caches()
    _clear(caches)  # once here rather than in every process
    gc.collect()
    gc.freeze()
    with bar(Console(stderr=True)) as shown:
        task = shown.add_task("", total=len(work))
        for mutant, verdict in _outcomes(work, jobs, caches):
            verdicts[_short(mutant.file)].append((mutant, verdict))
            before[_digest(mutant)] = verdict
            shown.update(task, advance=1, description=mutant.name[:80])
            if len(before) % 50 == 0:
                _keep(before)
    _keep(before)
    told = [
        f"{verdict}: {name}:{mutant.line}: {mutant.name}"
        for name, found in verdicts.items()
        for mutant, verdict in sorted(found, key=lambda one: one[0].line)
        if verdict in ("survived", "timed out")
    ]
    print(*told, sep="\n")
    console.print(_table(verdicts))
    if markdown is not None:
        _write(markdown, verdicts, told, sample)


def _keep(verdicts: dict[str, str]) -> None:
    STORE.parent.mkdir(exist_ok=True)
    STORE.write_text(json.dumps(verdicts), encoding="utf-8")


KINDS = ("noticed", "survived", "timed out", "equivalent")


def _rows(verdicts: dict[str, list[tuple[Mutant, str]]]) -> list[tuple[str, ...]]:
    kinds = {name: [verdict for _, verdict in found] for name, found in verdicts.items()}
    kinds["together"] = [*chain.from_iterable(kinds.values())]
    return [
        (name, str(len(row)), *(str(row.count(kind)) for kind in KINDS))
        for name, row in kinds.items()
    ]


def _table(verdicts: dict[str, list[tuple[Mutant, str]]]) -> Table:
    table = Table("file", "mutants", *KINDS, title="Single changes of the trusted files")
    for row in _rows(verdicts):
        table.add_row(*row)
    return table


def _write(
    file: Path, verdicts: dict[str, list[tuple[Mutant, str]]], told: list[str], sample: int
) -> None:
    """Write the table, and every change that no test detected."""
    which = f"{sample} changes of each file, drawn by chance" if sample else "every change"
    made = (
        f"Made by `python -m benchmarks.trusted_mutants`: {which} of one condition, assumption, "
        "bound or argument. *Noticed*: a test fails. *Equivalent*: it has no effect, for the "
        f"reason in [{EQUIVALENT.name}](../benchmarks/{EQUIVALENT.name})."
    )
    table = table_of(["file", "mutants", *KINDS], _rows(verdicts), words=1)
    changes = items(f"`{line}`" for line in told)
    file.write_text(
        markdown(["# Single changes of the trusted files", made, table, changes]), encoding="utf-8"
    )


if __name__ == "__main__":
    typer.run(main)
