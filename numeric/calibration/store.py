"""Where calibrations are kept, and which one applies.

The user's own are in ``$XDG_DATA_HOME/attnproof/calibrations`` (``~/.local/share`` if the variable
is not set) and take precedence over those of the package.  A file that is not a calibration, or
whose constants do not follow from its measurements, is reported and ignored.

Calibrations of other backends are never used.  A backend without a stored calibration is measured
once; this takes some seconds and is announced in one line, and the result is stored.  If measuring
is disabled (``ATTNPROOF_CALIBRATE=never``) or fails, :class:`NotCalibrated` says what to run, and
whatever needs the constants is skipped with that reason.
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

# Stored calibrations: those of the package, and the user's own

KNOWN = Path(__file__).parent / "known"
logger = logging.getLogger(__name__)


class BrokenCalibration(ValueError):
    """A file is not a usable calibration; the message says why."""


def folder() -> Path:
    """The folder of the user's own calibrations."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "attnproof" / "calibrations"


def read(file: Path) -> Calibration:
    """Read the calibration in a file.

    Raises :class:`BrokenCalibration` if it is not one, or if its constants were altered.
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


def stored_calibration(backend: Backend) -> Calibration | None:
    """The calibration of exactly this backend, or None; unusable files are reported on the way."""
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
    """Store a calibration as the user's own, or in a file, atomically."""
    file = file or folder() / f"{found.backend.label}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f"{file.name}.{os.getpid()}")
    half.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    half.replace(file)
    return file


# The calibration that applies: stored for this backend, or measured now and stored

SWITCH = "ATTNPROOF_CALIBRATE"


class NotCalibrated(DoesNotFit):
    """The constants of a backend are unknown, and are not guessed."""


def calibration_of(device: torch.device) -> Calibration:
    """The calibration that applies to a device of this process.

    Raises :class:`NotCalibrated` if there is none.
    """
    switch = os.environ.get(SWITCH, "auto")
    return _calibrate(backend_of(device), str(device), folder(), switch)


def constants_for(dtype: torch.dtype, device: torch.device) -> tuple[Constants, str]:
    """The constants in a dtype on a device, and the name of their calibration."""
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
    """Measure what is not stored yet, before work is distributed to several processes.

    Failures are reported later, where the constants are needed.
    """
    for device in dict.fromkeys(devices):
        with suppress(NotCalibrated):
            calibration_of(device)


@cache
def _calibrate(backend: Backend, device: str, place: Path, switch: str) -> Calibration:
    """Find the calibration once per process for all its dependencies; ``place`` is its folder."""
    found = stored_calibration(backend)
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
