"""The calibration in force: the one stored for this backend, or one measured now and stored.

Nothing is taken over from another backend.  A backend that nothing is stored for is measured
once, some seconds long, told in one line, and stored.  Where measuring is switched off
(``ATTNPROOF_CALIBRATE=never``) or fails, :class:`NotCalibrated` says what to run, and what needs
the constants is skipped with that reason.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

from ..implementations import DoesNotFit
from .backend import Backend, backend_of
from .measuring import calibrated
from .record import Calibration, Constants
from .store import folder, stored, write
from .units import name_of

__all__ = ["NotCalibrated", "calibrate_missing", "calibration_of", "constants_for"]

SWITCH = "ATTNPROOF_CALIBRATE"
logger = logging.getLogger(__name__)


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
