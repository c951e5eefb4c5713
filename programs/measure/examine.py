"""Run every probe that fits some code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from importlib import import_module

from attnproof.theorems.laws import laws_of

from ...numeric.devices import one_thread
from ..draw import Draw
from ..finding import Finding
from ..subjects import Subject
from .base import PROBES, run_probe

__all__ = ["examine"]

MODULES = ("finite", "laws", "rotary_positions",
           "rotary_declared", "rotary_arguments", "rotary_angles", "attention_lines",
           "attention_scores", "attention_hidden", "attention_dropout", "attention_fills",
           "bias", "additive", "states")  # fmt: skip


def examine(
    subject: Subject, draws: Iterable[Draw] = (Draw(),), laws: Collection[str] = (),
    tell: Callable[[Finding], None] | None = None,
) -> tuple[Finding, ...]:  # fmt: skip
    """What the probes of these laws (all, if none is named) find, in the order of the laws.

    ``tell`` hears of each finding as soon as it is made.  Arrays are so small here that threads of
    torch would only wait for each other: one is used.
    """
    for name in MODULES:
        import_module(f"{__package__}.{name}")
    found: list[Finding] = []
    for draw in draws:
        for law in laws_of(subject.kind):
            if laws and law.id not in laws:
                continue
            for one in PROBES:
                if one.law == law.id and one.kind == subject.kind:
                    with one_thread():
                        made = run_probe(one, subject, draw)
                    found += made
                    if tell is not None:
                        for finding in made:
                            tell(finding)
    return tuple(found)
