"""Run the targets of one command in turn, unless nothing about them has changed; print and store.

The key of a record consists of the request, the working directory, ``PYTHONPATH``, the processor,
the sources of attnproof, Python, and the name, version and installation time of every installed
distribution.  The record is stored with the digest of the target's file and of every source file
that the code loaded and that no distribution owns, and is used only while all of these are
unchanged.  Anything else that the code reads (data files, environment variables, the clock, the
network) is not covered.

Nothing here loads torch.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from inspect import getattr_static
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, TypeAlias

from pydantic import ValidationError

from ..errors import Interrupted, UsageError, tell_faults
from ..theorem_runs.records import processor
from .records import CodeRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ..theorem_runs.store import Key, Store
    from .collecting import Collected
    from .request import CodeRequest
    from .running import Event, Limits, Start


Ran: TypeAlias = "tuple[CodeRecord, int, dict[str, str]]"


def run_targets(
    targets: Sequence[str],
    asked: Callable[[str], CodeRequest],
    whole: float,
    json: Path | None,
    *,
    identifying: bool,
    verbose: bool = False,
    store: Store | None = None,
    fresh: bool = False,
) -> int:
    """Run the targets one after the other, none affecting another; return the exit code."""
    from .running import Limits

    start = monotonic()
    done: list[CodeRecord] = []
    codes: list[int] = []
    left = list(dict.fromkeys(targets))
    try:
        with _starting(len(left)) as begin:
            while left and 130 not in codes:
                one = asked(left[0])
                limits = Limits(one.limit, whole)
                found = partial(run_target, one, limits, identifying=identifying, begin=begin)
                record, code = _stored_or_run(
                    one, found, store, identifying=identifying, fresh=fresh
                )
                done.append(record)
                codes.append(code)
                left.pop(0)
                _show(record, identifying=identifying, first=len(done) == 1, verbose=verbose)
    except KeyboardInterrupt:
        codes.append(130)
    if not done:
        raise Interrupted("interrupted before any law was decided; nothing written")
    for record in done:
        tell_faults(record, json)
    if json is not None:
        _write(done, left, monotonic() - start, json)
    return max(codes, key=lambda code: (code == 130, code))


@contextmanager
def _starting(count: int) -> Iterator[Start | None]:
    """Yield how to start the processes of so many targets; several load the libraries once."""
    if count < 2 or sys.platform != "linux":
        yield None
        return
    from .forking import ForkServer

    with ForkServer() as server:
        yield server.started


def _stored_or_run(
    asked: CodeRequest,
    run: Callable[[], Ran],
    store: Store | None,
    *,
    identifying: bool,
    fresh: bool,
) -> tuple[CodeRecord, int]:
    """Return the stored record of an unchanged target; otherwise run it, and store the record.

    A record is stored only if its run came to its end, and only for code that runs on the CPU.
    """
    if store is None or asked.device != "cpu":
        return run()[:2]
    from .page_text import exit_code

    key = key_of(asked)
    record = None if fresh else stored_record(store, key)
    if record is not None:
        return record, exit_code(record, identifying=identifying)
    began = time()
    record, code, files = run()
    if code in (0, 1) and not any(method.why for method in record.methods):
        store_record(store, key, record, files, began)
    return record, code


def run_target(
    asked: CodeRequest, limits: Limits, *, identifying: bool, begin: Start | None = None
) -> Ran:
    """Run one target; return its record, the exit code, and the digests of the files it loaded.

    Raises ``KeyboardInterrupt`` if it came before anything was found.
    """
    from .loading import CannotLoad, require_target
    from .running import Child, run

    start = monotonic()
    child, why = None, ""
    try:
        require_target(asked.target)
        child = Child(asked, begin)  # it loads its libraries while this process loads its own
    except CannotLoad as error:
        why = str(error)
    from rich.console import Console

    from .collecting import Collected
    from .page_text import exit_code, stop_text

    collected, stopped, said, code = Collected(asked), "", "", None
    if child is None:
        collected.receive({"event": "refused", "why": why})
    else:
        try:
            with code_progress(Console(stderr=True), asked.target) as tell:
                cause, said = run(collected, limits, tell, child)
            stopped = stop_text(collected, cause) if cause is not None else ""
        except KeyboardInterrupt:
            if not collected.findings:
                raise
            stopped, code = f"{asked.target} was interrupted; earlier results are kept.", 130
    record = collected.record(monotonic() - start, stopped=stopped, said=said)
    code = exit_code(record, identifying=identifying) if code is None else code
    return record, code, collected.files


def _show(record: CodeRecord, *, identifying: bool, first: bool, verbose: bool) -> None:
    """Print one target, with an empty line before it unless it is the first."""
    from rich.console import Console

    from .table import code_page, identity_page

    console = Console()
    width = console.width
    page = (
        identity_page(record, width) if identifying else code_page(record, width, verbose=verbose)
    )
    with console.capture() as told:
        # Without cropping, a command can be copied.
        console.print(page, highlight=False, markup=False, crop=False)
    _say("\n" * (not first) + told.get())


def _say(text: str) -> None:
    """Print the text; if nobody reads on, as behind `| head`, carry on without printing."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(done: Sequence[CodeRecord], left: Sequence[str], seconds: float, file: Path) -> None:
    from ..documents.evidence import write_json
    from .records import codes_record

    try:
        _say(f"wrote {write_json(codes_record(done, left, seconds), file)}\n")
    except OSError as error:
        told = f"wanted to write {file}, but could not ({error.strerror or error})"
        raise UsageError(f"{told}; the results are printed above; choose another file") from None


@contextmanager
def code_progress(console: Console, target: str) -> Iterator[Callable[[Collected, Event], None]]:
    """Show a progress bar for one target; yield the function to call with each event."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(f"{target}: starting", total=None)
        begun = 0

        def tell(collected: Collected, event: Event) -> None:
            nonlocal begun
            if event["event"] != "begins":
                return
            method, law = collected.at
            begun += bool(law)
            what = " ".join(filter(None, (method, law))) or collected.does
            bar.update(
                task,
                total=collected.expected or None,
                completed=begun - 1 if law else begun,
                description=f"{target}: {what}",
            )

        yield tell


PACKAGE = Path(__file__).resolve().parent.parent


def sources_loaded(target: str = "") -> dict[str, str]:
    """Return the digest of each file that this process imported, except those of distributions.

    The keys are paths, and the digests are of the current contents.  ``target``, the file of the
    code itself, is included wherever it is.
    """
    owned = [*_owned(), str(PACKAGE), *(str(p.resolve()) for p in PACKAGE.iterdir() if p.is_dir())]
    found = {target: _digest(target)} if Path(target).is_file() else {}
    for module in list(sys.modules.values()):
        file = getattr_static(module, "__file__", None)  # getattr would load a lazy module
        if not isinstance(file, str) or any(file.startswith(f"{one}{os.sep}") for one in owned):
            continue
        if not (Path(file).is_absolute() or Path(file).exists()):
            continue  # synthetic modules, such as torch.ops, name files that do not exist
        path = os.path.realpath(file)
        if not any(path.startswith(f"{one}{os.sep}") for one in owned):
            found[path] = _digest(path)
    return found


def key_of(asked: CodeRequest) -> Key:
    """Return the key of a check: all that it depends on, except the files that it loads."""
    from ..theorem_runs.store import Key

    told = {
        "asked": asked.text(),
        "folder": str(Path.cwd()),
        "path": os.environ.get("PYTHONPATH", ""),
        "attnproof": _own(),
        "python": sys.version,
        "prefix": sys.prefix,
        "installed": _installed(),
        "processor": f"{platform.machine()} {processor()}",
    }
    return Key("code", asked.target, json.dumps(told, sort_keys=True))


def stored_record(store: Store, key: Key) -> CodeRecord | None:
    """Return the stored record of this code; None if there is none or a file has changed since."""
    from ..theorem_runs.store import StoreError

    try:
        stored = store.get(key)
        if stored is None:
            return None
        told = json.loads(stored.record)
        files = told["files"]
        if not files or any(_digest(path) != digest for path, digest in files.items()):
            return None
        record = CodeRecord.model_validate_json(told["record"])
    except (StoreError, ValidationError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return record.model_copy(update={"stored": stored.made})


def store_record(
    store: Store, key: Key, record: CodeRecord, files: Mapping[str, str], began: float
) -> bool:
    """Store a record; return whether it was stored.

    ``began``: when the process began, in seconds since the epoch.  A file that was written later
    may not be the version that was loaded, and then nothing is stored.
    """
    from ..theorem_runs.store import StoreError

    if not files or any(_written(path) >= began for path in files):
        return False
    told = {"record": record.model_dump_json(), "files": dict(files)}
    try:
        return store.put(key, json.dumps(told), replace=True)
    except StoreError:
        return False


def _digest(path: str) -> str:
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _written(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return float("inf")


def _owned() -> list[str]:
    """Return folders whose files change only with a version: those of Python and of packages."""
    named = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {sysconfig.get_paths()[name] for name in named}
    return sorted(found | {os.path.realpath(one) for one in found})


def _own() -> str:
    """Return the digest of attnproof's own sources."""
    digest = sha256()
    walk = os.walk(PACKAGE, followlinks=True)
    files = (f"{place}{os.sep}{name}" for place, _, names in walk for name in names)
    for path in sorted(path for path in files if path.endswith(".py")):
        digest.update(f"{path}\0".encode() + Path(path).read_bytes())
    return digest.hexdigest()


def _installed() -> list[str]:
    """Return the names and versions of distributions, with the time of their installation."""
    found: set[str] = set()
    for folder in _owned():
        if not Path(folder).is_dir():
            continue
        with os.scandir(folder) as entries:
            for one in entries:
                if one.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")):
                    found.add(f"{one.name} {one.stat().st_mtime_ns}")
    return sorted(found)
