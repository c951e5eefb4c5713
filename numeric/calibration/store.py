"""Where calibrations are kept: those of the package, and the user's own.

The user's own stand in ``$XDG_DATA_HOME/attnproof/calibrations`` (``~/.local/share`` where the
variable is not set) and go before those of the package.  A file that is not a calibration, or
whose constants do not follow from what it says was measured, is told and not used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import torch
from pydantic import ValidationError

from .backend import Backend
from .constants import constants_of
from .record import Calibration

__all__ = ["BrokenCalibration", "folder", "read", "stored", "write"]

KNOWN = Path(__file__).parent / "known"
logger = logging.getLogger(__name__)


class BrokenCalibration(ValueError):
    """A file is no calibration that can be used; the text says why."""


def folder() -> Path:
    """Where the user's own are."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "attnproof" / "calibrations"


def read(file: Path) -> Calibration:
    """The calibration in a file.

    Raises :class:`BrokenCalibration` if it is none, or if its constants were altered.
    """
    wanted = "wanted a calibration as `attnproof calibrate --json FILE` writes it"
    try:
        found = Calibration.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenCalibration(f"{wanted}, got {file}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise BrokenCalibration(f"{wanted}, got {file}: {where}: {first['msg']}") from error
    for constants in found.constants:
        try:
            again = constants_of(
                getattr(torch, constants.dtype), found.functions, found.orders, found.kernels,
                found.operands[constants.dtype],
            )  # fmt: skip
        except (AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
            raise BrokenCalibration(
                f"{wanted}, got {file}: measurements of {constants.dtype} are missing ({error})"
            ) from error
        if again != constants:
            raise BrokenCalibration(
                f"{wanted}, got {file}: the constants of {constants.dtype} do not follow from its "
                "measurements; measure again"
            )
    return found


def stored(backend: Backend) -> Calibration | None:
    """The calibration of exactly this backend, or None; unusable files are told on the way."""
    for file in _files(backend):
        try:
            found = read(file)
        except BrokenCalibration as broken:
            logger.warning("%s; not used", broken)
            continue
        if found.backend == backend:
            return found
        logger.warning("%s is of another backend (%s); not used", file, found.backend.label)
    return None


def _files(backend: Backend) -> Iterator[Path]:
    for place in (folder(), KNOWN):
        file = place / f"{backend.label}.json"
        if file.is_file():
            yield file


def write(found: Calibration, file: Path | None = None) -> Path:
    """Store a calibration as the user's own, or in a file; whole or not at all."""
    file = file or folder() / f"{found.backend.label}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f"{file.name}.{os.getpid()}")
    half.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    half.replace(file)
    return file
