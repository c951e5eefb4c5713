"""Identify what code is from its behavior: layout, base, scaling, precision, masks, heads, slopes.

Nothing in an identity comes from source code or from names: each part is derived from the results
of calls, together with how it was read and how accurate it is.  What the code says about itself is
collected separately (:mod:`.suggestions`), and :mod:`.remarks` compares the two.
"""

from __future__ import annotations

from importlib import import_module

from ...numeric.devices import one_thread
from ..execution.draw import Draw
from ..execution.finite import NotFinite, watching
from ..execution.running import describe_error, fault_in
from ..finding import Identity, Part
from ..subjects import Subject

__all__ = ["identify"]


def identify(subject: Subject, draw: Draw = Draw()) -> Identity:  # noqa: B008 (frozen)
    """Identify the code of a subject: parts in words, with their evidence, and plain answers.

    An exception of the code becomes a part named "unread"; whatever cannot be read is marked as
    such.

    >>> from attnproof.programs.subjects import Mask
    >>> import torch
    >>> made = Mask(name="m", mask=lambda T, S: torch.ones(T, S).tril(S - T).bool())
    >>> identify(made).sentence
    'mask, causal, aligned at the end, True means visible, bool'
    """
    try:
        with one_thread():
            reader = import_module(f"{__package__}.{READERS[subject.kind]}")
            found: Identity = getattr(reader, f"identify_{subject.kind}")(watching(subject), draw)
            return found
    except NotFinite as seen:
        told = f"{seen}, at ordinary inputs"
        part = Part("finite", False, "which gives NaN or infinity", told)
        return Identity(subject.kind, (part,), (f"No: {told}.",))
    except Exception as error:  # noqa: BLE001 (any code may raise anything)
        fault = fault_in(subject, error)
        told = describe_error(error)
        part = Part(
            "unread",
            None,
            "which could not be read",
            told if fault is None else fault.message,
            certain=False,
        )
        return Identity(
            subject.kind or "unknown",
            (part,),
            traceback=fault.traceback if fault is not None else "",
        )


READERS = {
    "rotary": "rotary",
    "attention": "attention",
    "bias": "bias",
    "additive": "additive",
    "mask": "masks",
    "layer": "influence",
}
"""The module that identifies each kind of code."""
