"""Where calibrations are kept, and which of them is in force.

The user's own stand in ``$XDG_DATA_HOME/attnproof/calibrations`` (``~/.local/share`` where the
variable is not set) and go before those of the package.  A file that is not a calibration, or
whose constants do not follow from what it says was measured, is told and not used.

Nothing is taken over from another backend.  A backend that nothing is stored for is measured
once, some seconds long, told in one line, and stored.  Where measuring is switched off
(``ATTNPROOF_CALIBRATE=never``) or fails, :class:`NotCalibrated` says what to run, and what needs
the constants is skipped with that reason.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from pydantic import ValidationError

from ..devices import name_of
from ..implementations import DoesNotFit
from .measuring import calibrated
from .record import Backend, Calibration, Constants, backend_of, constants_of

# Where calibrations are kept: those of the package, and the user's own

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
                getattr(torch, constants.dtype),
                found.functions,
                found.orders,
                found.kernels,
                found.operands[constants.dtype],
            )
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


# The calibration in force: the one stored for this backend, or one measured now and stored

SWITCH = "ATTNPROOF_CALIBRATE"


class NotCalibrated(DoesNotFit):
    """The constants of a backend are not known, and were not guessed."""


def calibration_of(device: torch.device) -> Calibration:
    """The calibration in force for a device of this process.

    Raises :class:`NotCalibrated` where there is none.
    """
    switch = os.environ.get(SWITCH, "auto")
    return _found(backend_of(device), str(device), folder(), switch)


def constants_for(dtype: torch.dtype, device: torch.device) -> tuple[Constants, str]:
    """The constants in a dtype on a device, and the name of the calibration they are from."""
    calibration = calibration_of(device)
    found = calibration.of(name_of(dtype))
    if found is None:
        known = ", ".join(c.dtype for c in calibration.constants)
        raise NotCalibrated(
            f"the calibration {calibration.label} has no {name_of(dtype)}, only {known}; run "
            f"`attnproof calibrate --device {device.type}`"
        )
    return found, calibration.label


def calibrate_missing(devices: Iterable[torch.device]) -> None:
    """Measure what is not stored yet, before work is handed to several processes.

    What cannot be measured is told where it is missing.
    """
    for device in dict.fromkeys(devices):
        with suppress(NotCalibrated):
            calibration_of(device)


@cache
def _found(backend: Backend, device: str, place: Path, switch: str) -> Calibration:
    """Looked up once in a process for all that it depends on; ``place`` is where it is stored."""
    found = stored(backend)
    if found is not None:
        return found
    run = f"run `attnproof calibrate --device {torch.device(device).type}`"
    if switch == "never":
        raise NotCalibrated(
            f"no constants of rounding are stored for {backend.label}, and none are guessed; {run}"
        )
    logger.warning(
        "attnproof: measuring the constants of rounding of %s, once (%s)", backend.label, place
    )
    try:
        found = calibrated(torch.device(device))
    except (RuntimeError, ValueError) as error:
        raise NotCalibrated(
            f"measuring the constants of rounding of {backend.label} failed ({error}), and none "
            f"are guessed; {run} to see where"
        ) from error
    try:
        write(found)
    except OSError as error:
        logger.warning("attnproof: the constants are not kept: %s", error)
    return found
