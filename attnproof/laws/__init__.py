"""The laws of encodings, in the order in which cards and tables list them."""

from __future__ import annotations

from importlib import import_module

from ..encoding.law import EncodingLaw

__all__ = ["LAWS"]

_HOMES = ("scores", "attention", "tokens", "positions")

LAWS: tuple[EncodingLaw, ...] = tuple(
    value
    for home in _HOMES
    for value in vars(import_module(f"{__name__}.{home}")).values()
    if isinstance(value, EncodingLaw)
)
