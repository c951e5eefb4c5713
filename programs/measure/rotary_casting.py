"""The effect of casting a module on the frequencies of its rotary code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from ...numeric.devices import name_of
from ..execution.calling import evaluating, fresh, untouched
from ..execution.draw import Draw
from ..execution.rotary_matrices import SHORT, matrices, point
from ..execution.running import describe_refusal
from ..execution.tolerance import ladder_error, rounding_of
from ..loading.program import listening_to_modules
from ..reading.rotations import UNREAD, Frequencies, read_frequencies, rotation_of
from ..subjects import Rotary
from .base import Outcome, compare, holds, not_asked, probe, undecided

UNKNOWN_MODULES = (
    "the module that runs in a call could not be identified, so a cast may not reach it"
)


def _shorten(module: nn.Module, dtype: torch.dtype) -> None:
    """Cast as the law says: ``to(dtype)`` would also discard the imaginary part of a table."""
    (module.bfloat16 if dtype is torch.bfloat16 else module.half)()


@contextlib.contextmanager
def cast(modules: Iterable[nn.Module], dtype: torch.dtype) -> Iterator[None]:
    """Cast modules in place; all that they hold is restored afterwards."""
    modules = list(modules)
    with contextlib.ExitStack() as restored:
        for module in modules:
            restored.enter_context(untouched(module))
        for module in modules:
            _shorten(module, dtype)
        yield


def active_modules(code: Rotary, draw: Draw) -> list[nn.Module]:
    """Return the modules that run in a call: one may be built for the width of its input."""
    found: dict[nn.Module, None] = {}
    with listening_to_modules(found.setdefault):
        matrices(code, code.rotate, [point(code, code.first)], draw)
    return list(found)


def _caches_tables(modules: Iterable[nn.Module], uncalled: nn.Module) -> bool:
    """Whether calls leave tables behind, in plain attributes or in buffers of other shapes."""
    modules = list(modules)
    plain = any(
        isinstance(x, Tensor)
        for one in modules
        for part in one.modules()
        for x in vars(part).values()
    )
    before = dict(uncalled.named_buffers())
    return plain or any(
        x.shape != before[name].shape
        for one in modules
        for name, x in one.named_buffers()
        if name in before
    )


@probe("survives-casting", "rotary")
def survives_casting(subject: Rotary, draw: Draw) -> Outcome:
    """Compare frequencies before and after the module is cast to bfloat16 and float16.

    What calls cache may survive a cast, so that another instance is cast before its first call.
    """
    code = fresh(subject)
    if code is None or code.module is None:
        code = subject
    if code.module is None:
        return not_asked("it is a function: there is no module to cast")
    tried: list[tuple[str, Outcome]] = []
    with evaluating(code):
        before = read_frequencies(rotation_of(code, draw), code)
        if before is None:
            return undecided(UNREAD)
        working = active_modules(code, draw)
        if not bool((before.omega != 0).any()):
            return undecided("no frequency was read: no pair of channels rotates with the position")
        modules = list(dict.fromkeys([code.module, *working]))
        for dtype in SHORT:
            name = name_of(dtype)
            for made, shortened in _to_cast(subject, code, modules, dtype):
                try:
                    told = _cast_to(dtype, made, shortened, subject, before, draw, made is code)
                except Exception as error:  # noqa: BLE001 (code need not take every dtype)
                    text = describe_refusal(subject, error, 120)
                    if dtype == SHORT[-1] and not tried:
                        return undecided(f"after a cast the code raised {text}")
                    continue
                if told.witness is not None or told.doubtful:
                    return told
                tried.append((name, told))
    if not working:
        return undecided(UNKNOWN_MODULES)
    worst = max((one for _, one in tried), key=lambda one: one.error or 0.0)
    casts = " and to ".join(dict.fromkeys(name for name, _ in tried))
    return holds(
        f"the frequencies are unchanged after a cast to {casts}",
        worst.error,
        worst.bound,
        D=subject.width,
    )


def _cast_to(
    dtype: torch.dtype,
    made: Rotary,
    shortened: contextlib.AbstractContextManager[None],
    subject: Rotary,
    before: Frequencies,
    draw: Draw,
    called: bool,
) -> Outcome:
    """Compare the frequencies of the cast module, on data of that dtype, with those before.

    A difference may come from the dtype of the data.  So the cast module is also run on the earlier
    data, and an uncast one on data of that dtype, after the same calls if ``called``.
    """
    name, short = name_of(dtype), draw.cast(dtype)
    with evaluating(made), shortened:
        after = read_frequencies(rotation_of(made, short), made)
        if after is None or len(after.omega) != len(before.omega):
            return undecided(f"after a cast to {name} no frequency could be read")
        told = _as_before(before, after, name, draw, subject.width)
        if told.witness is None:
            return told
        own = _read_if_it_runs(made, draw)
    if own is not None and len(own.omega) == len(before.omega):
        on_own = _as_before(before, own, name, draw, subject.width)
        if on_own.witness is not None:
            return on_own
    other = fresh(subject)
    beside = None
    if other is not None:
        with evaluating(other):
            if called:
                _read_if_it_runs(other, draw)
            beside = _read_if_it_runs(other, short)
    if beside is None or len(beside.omega) != len(before.omega):
        return undecided(
            f"after a cast to {name}, on data in {name}, the frequencies differ, because of "
            "either the data or the cast"
        )
    return _as_before(beside, after, name, draw, subject.width, f", of data in {name}")


def _read_if_it_runs(code: Rotary, draw: Draw) -> Frequencies | None:
    try:
        return read_frequencies(rotation_of(code, draw), code)
    except Exception:  # noqa: BLE001 (code may refuse data of another dtype)
        return None


def _as_before(
    before: Frequencies, after: Frequencies, name: str, draw: Draw, width: int, more: str = ""
) -> Outcome:
    """Compare the frequencies after a cast with those before."""
    slack = ladder_error(before.omega, rounding_of(draw.dtype).angle_unit)
    return compare(
        after.omega,
        before.omega,
        after.radius + before.radius + slack,
        lambda pair: (
            f"a cast of the module to {name} changes the frequency of pair {pair}",
            {"cast": name, "pair": pair, "channels": list(after.pairs[pair])},
            f"frequency after the cast{more}",
        ),
        "",
        there=f"frequency before{more}",
        D=width,
    )


def _to_cast(
    subject: Rotary, code: Rotary, modules: list[nn.Module], dtype: torch.dtype
) -> Iterator[tuple[Rotary, contextlib.AbstractContextManager[None]]]:
    """Yield the code, and a fresh instance if calls leave something behind, with their casts."""
    yield code, cast(modules, dtype)
    made = fresh(subject)
    if made is not None and made.module is not None and _caches_tables(modules, made.module):
        yield made, _cast_before(made.module, dtype)


@contextlib.contextmanager
def _cast_before(own: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Cast every module before its first call, also those that are built during a call."""
    seen: set[nn.Module] = set()

    def shorten(module: nn.Module) -> None:
        if module not in seen:
            seen.update(module.modules())
            _shorten(module, dtype)

    shorten(own)
    with listening_to_modules(shorten):
        yield
