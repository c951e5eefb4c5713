"""What the commands share: the app, options, what they load, and how they end."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError, interrupts_delayed, require_device, require_theorems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import torch
    from pydantic import BaseModel

    from ..theorem_runs.catalogue import Catalogue
    from ..theorem_runs.checking import Options
    from ..theorem_runs.ledger import Ledger
    from ..theorem_runs.run_store import RunStore
    from ..theorem_runs.store import Store


app = typer.Typer(
    name="attnproof",
    help="Theorems on attention and positional encodings: proved for every size, and measured.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Scale(StrEnum):
    """The size of the measured arrays."""

    small = "small"
    default = "default"
    large = "large"


class Dtype(StrEnum):
    """The dtype of measurements."""

    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


Folders = Annotated[
    list[Path] | None,
    typer.Option(
        "--theorems", metavar="DIR", help="Add your own theorems: a folder or a .py file."
    ),
]
ScaleOption = Annotated[Scale, typer.Option(help="Size of the measured arrays.")]
DeviceOption = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda|mps", help="Device for numerical computation.")
]
Dtypes = Annotated[
    list[Dtype] | None, typer.Option("--dtype", help="Measure only in this dtype; repeatable.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")]
EncodingFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--encoding", metavar="FILE", help="Add the encodings in your .py file; repeatable."
    ),
]
NoNumeric = Annotated[
    bool, typer.Option("--no-numeric", help="Skip measurements; only prove and refute.")
]
Jobs = Annotated[int, typer.Option(min=1, help="Number of parallel workers.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the record to this JSON file.")
]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Store of finished results; by default in the user's cache folder.",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ignore stored results and replace them.")]


def completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the shell completion of names; it offers nothing if they cannot be read."""

    def offered(incomplete: str) -> list[str]:
        try:
            return [name for name in names() if name.startswith(incomplete)]
        except Exception:  # noqa: BLE001 (a traceback would appear in the line being typed)
            return []

    return offered


def _statements() -> list[str]:
    catalogue, ledger = load_statements(None)
    return [*catalogue.ids, *ledger.ids]


statement_ids = completed(_statements)


def options_of(
    numeric: bool, scale: Scale, device: str, dtypes: list[Dtype] | None, seed: int, jobs: int = 1
) -> Options:
    """Return the options of a run; the libraries that it needs are loaded here, completely."""
    from ..theorem_runs.checking import Options

    require_device(device)
    with interrupts_delayed():
        usual = dtypes_on_device(device) if numeric else ()
        for side in ("symbolic.prove", *["numeric.check"] * numeric):
            import_module(f"attnproof.{side}")
    if numeric:
        from ..numeric.calibration.store import calibrate_missing
        from ..numeric.devices import chosen

        calibrate_missing((chosen("cpu"), chosen(device)))
    asked = tuple(dtype.value for dtype in dtypes or ())
    return Options(numeric, scale.value, device, asked or usual, seed, jobs)


def store_in(place: Path | None) -> Store | None:
    """Return the store of a command; messages about it go to standard error."""
    from ..theorem_runs.store import NotAStore, open_store

    try:
        store, told = open_store(place)
    except NotAStore as error:
        raise UsageError(str(error)) from None
    for line in told:
        print(f"attnproof: {line}", file=sys.stderr)
    told.clear()  # its users report what comes later
    return store


def run_store_in(place: Path | None, *, fresh: bool) -> RunStore | None:
    """Return the store of a run of theorems."""
    from ..theorem_runs.run_store import RunStore

    store = store_in(place)
    return None if store is None else RunStore(store, fresh)


def load_statements(theorems: list[Path] | None) -> tuple[Catalogue, Ledger]:
    """Return the catalogue and the ledger, including those of further folders."""
    from ..theorem_runs.catalogue import load_catalogue, theorem_files
    from ..theorem_runs.ledger import load_ledger

    for place in theorems or ():
        require_theorems(place, theorem_files(place))
    catalogue = load_catalogue(theorems or ())
    return catalogue, load_ledger(catalogue, theorems or ())


def load(needs: str, *parts: str, instead: str = "install torch") -> None:
    """Import parts of the package that need torch, completely; ``needs`` begins the error text."""
    try:
        with interrupts_delayed():
            for part in parts:
                import_module(f"attnproof.{part}")
    except ImportError as error:
        raise UsageError(f"{needs} torch ({error}); {instead}") from None


def present_device(device: str) -> torch.device:
    """Return the device that is meant.  Raises :class:`UsageError` if it is absent."""
    from ..numeric.devices import DeviceAbsent, chosen

    try:
        return chosen(device)
    except DeviceAbsent as absent:
        raise UsageError(str(absent)) from None


def dtypes_on_device(device: str) -> tuple[str, ...]:
    """Return the dtypes that are measured on a device by default."""
    from ..numeric.devices import dtypes_on

    return tuple(str(dtype).removeprefix("torch.") for dtype in dtypes_on(present_device(device)))


def cores() -> int:
    """Return how many processes may run at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def finish(record: BaseModel, json: Path | None, *, ok: bool) -> int:
    """Write the record if asked, and say where its faults are reported; return the exit code."""
    from ..errors import FAULT, tell_faults

    if json is not None:
        from ..documents.evidence import write_json

        print(f"wrote {write_json(record, json)}")
    faulty = tell_faults(record, json)
    stopped = getattr(record, "unfinished", ()) and not getattr(record, "errors", ())
    return 130 if stopped else FAULT if faulty else 0 if ok else 1
