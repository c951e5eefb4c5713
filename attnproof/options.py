"""What the commands of the command line share: their options, and what they load."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .interrupt import held_back
from .usage import UsageError, require_device, require_theorems

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .checking import Options
    from .ledger import Ledger
    from .sweeping.kept import Kept

__all__ = [
    "DeviceOption", "Dtype", "Dtypes", "Folders", "Fresh", "Jobs", "JsonFile", "NoNumeric", "Scale",
    "ScaleOption", "Seed", "StoreFile", "kept_in", "loaded", "options_of",
]  # fmt: skip


class Scale(StrEnum):
    """How large the numbers' arrays are."""

    small = "small"
    default = "default"
    large = "large"


class Dtype(StrEnum):
    """What the numbers are computed in."""

    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


Folders = Annotated[
    list[Path] | None,
    typer.Option("--theorems", metavar="DIR", help="Your own theorem files: a folder or a file."),
]
ScaleOption = Annotated[Scale, typer.Option(help="Size of the arrays that are measured.")]
DeviceOption = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where numbers are computed.")
]
Dtypes = Annotated[
    list[Dtype] | None, typer.Option("--dtype", help="Measure in this dtype only; repeatable.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of every random input.")]
NoNumeric = Annotated[bool, typer.Option("--no-numeric", help="Prove and refute only.")]
Jobs = Annotated[int, typer.Option(min=1, help="Theorems checked at once.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the record.")]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE",
        help="Where finished work is kept; by default in the user's cache.",
    ),
]  # fmt: skip
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Check anew what the store has, and replace it there.")
]


def options_of(
    numeric: bool, scale: Scale, device: str, dtypes: list[Dtype] | None, seed: int, jobs: int = 1
) -> Options:
    """How a run is asked for; the libraries it needs are loaded here, whole."""
    from .checking import Options
    from .machine import default_dtypes

    require_device(device)
    with held_back():
        present = default_dtypes(device) if numeric else ()
        for side in ("symbolic.prove", *["numeric.check"] * numeric):
            import_module(f".{side}", __package__)
    if numeric:
        from .numeric.calibration.store import calibrate_missing
        from .numeric.devices import chosen

        calibrate_missing((chosen("cpu"), chosen(device)))
    asked = tuple(dtype.value for dtype in dtypes or ())
    return Options(numeric, scale.value, device, asked or present, seed, jobs)


def kept_in(store: Path | None, *, fresh: bool) -> Kept | None:
    """The store of a run; what is to be heard of it goes to standard error."""
    from .sweeping.kept import opened
    from .sweeping.store import Foreign

    try:
        kept, told = opened(store, fresh=fresh)
    except Foreign as error:
        raise UsageError(str(error)) from None
    for line in told:
        print(f"attnproof: {line}", file=sys.stderr)
    return kept


def loaded(theorems: list[Path] | None) -> tuple[Catalogue, Ledger]:
    """The catalogue and the ledger, with those of further folders."""
    from .catalogue import load_catalogue, theorem_files
    from .ledger import load_ledger

    for place in theorems or ():
        require_theorems(place, theorem_files(place))
    catalogue = load_catalogue(theorems or ())
    return catalogue, load_ledger(catalogue, theorems or ())
