"""How far the score of an encoding may be off in a format, derived from its own code.

The code of the encoding is run on symbols, which gives the score as a term; the term is read with
a rounding error for every operation (``numeric.torch_reading.BoundReading``), from the errors of
storing parameters, content and positions in the format.  Which keys are hidden and which branch is
taken is read exactly.  This needs torch, which is imported when a bound is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoding import Encoding
from ..law_names import named
from ..symbolic.array import as_array
from ..symbolic.givens import Given
from ..symbolic.scalars import integer, length_value
from ..symbolic.terms import Term, free
from .precision import Rounded, wide_kind
from .sampled import at, content

if TYPE_CHECKING:
    from ..numeric.profile import Profile
    from ..numeric.torch_reading import BoundReading

__all__ = ["NotBounded", "bounds"]

SECONDS = 0.3  # for one line: code that takes a step for each position is followed so far
FUNCTION = 8.0  # of exp, log, cos, sin and powers in float32, in units of roundoff: 4 ulp, which
# is what numpy holds its own to (release notes 1.17: exp 2.52 ulp, log 3.83)
FULL = 64  # positions that are read at once


class NotBounded(Exception):
    """There is no bound; the text says why."""


def bounds(numeric: Encoding, places: Any, form: type[Rounded], form_name: str) -> Any:
    """How far the score of a query at each place with the key before it may be off: (n,).

    NaN from where reading takes too long, infinity where nothing is left of the score.  Raises
    :class:`NotBounded` where torch is missing, or where the term cannot be read.
    """
    try:
        import_module("torch")
    except ImportError as error:
        raise NotBounded("torch, which computes bounds, is not installed") from error
    try:
        return _read(numeric, np.asarray(places), form, form_name)
    except NotBounded:
        raise
    except Exception as error:  # whatever its code or its numbers raise is told
        told = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise NotBounded(f"its score cannot be read with bounds ({told})") from error


def _read(numeric: Encoding, places: Any, form: type[Rounded], form_name: str) -> Any:
    import torch

    term, givens = _score(type(numeric))
    sizes = _sizes(numeric)
    found = np.full(len(places), np.nan)
    wanted = np.arange(len(places))
    if not numeric.whole:  # of a position that the format does not have nothing is left
        there = np.isfinite(_kept(places, form.wide()))
        found[~there] = np.inf
        wanted = wanted[there]
    at_once = 1 if numeric.whole or numeric.together else FULL
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small arrays
    try:
        start = thread_time()
        for first in range(0, len(wanted), at_once):
            if thread_time() - start > SECONDS:
                break
            some = wanted[first : first + at_once]
            reading = _reading(numeric, givens, sizes, places[some], form, form_name)
            radius = reading.rounded(reading(term)).error().numpy()
            found[some] = np.diagonal(np.broadcast_to(radius, (len(some), len(some))))
        return found
    finally:
        torch.set_num_threads(threads)


def _score(kind: type[Encoding]) -> tuple[Term, dict[str, Given]]:
    """The score of any queries with any keys as a term, and what it is given."""
    encoding = kind()
    givens, values = dict(kind.declared()), []
    for name in ("Q", "K", "u", "p"):
        own, value = named(name, encoding, {}, in_a_row=True)
        givens |= own
        values.append(value)
    return as_array(encoding.scores(*values)).term, givens


def _sizes(numeric: Encoding) -> dict[str, int]:
    """The lengths behind the sizes of its parameters and of its width."""
    axes: list[tuple[Term, int]] = []
    for name, given in type(numeric).declared().items():
        value = numeric.parameters[name]
        shape = () if callable(value) else np.shape(value)
        axes += zip(given.shape, shape, strict=False)
    axes.append((integer(as_array(type(numeric).width).term), numeric.width))
    found: dict[str, int] = {}
    for axis, length in sorted(axes, key=lambda one: len(free(one[0]))):
        for size in {str(t.data[0]) for t in free(axis) if t.op == "size"} - set(found):
            found[size] = next(
                n for n in range(1, length + 1) if length_value(axis, {**found, size: n}) == length
            )
    return found


def _reading(
    numeric: Encoding, givens: Mapping[str, Given], sizes: Mapping[str, int], places: Any,
    form: type[Rounded], form_name: str,
) -> BoundReading:  # fmt: skip
    """The reading of a term at these positions of the queries, the keys one before."""
    from ..numeric.implementations.eager import SOFTMAX_BOUND
    from ..numeric.torch_reading import BoundReading

    profile = _profile(form, form_name)
    count = len(places)
    tokens = content(numeric, count)
    values: dict[str, Any] = {**numeric.parameters, "Q": tokens, "K": tokens}
    for letter, where in (("u", places), ("p", places - 1)):
        if numeric.whole:
            values[f"{letter}_0"] = int(where[0])
        else:
            values[letter] = at(numeric, where)
    reading = BoundReading({**sizes, "n_q": count, "n_k": count}, {}, profile, SOFTMAX_BOUND)
    for name, given in givens.items():
        if name in values:
            reading.values[name] = _stored(
                reading, values[name], given, form, whole=numeric.whole
            )
    return reading


def _stored(
    reading: BoundReading, value: Any, given: Given, form: type[Rounded], *, whole: bool
) -> Any:
    """A value with the error of storing it in the format; it is known, as the value is."""
    import torch

    from ..numeric.rounded import Rounded as Bounded

    arithmetic, profile = reading.arithmetic, reading.arithmetic.profile
    if callable(value):
        return _function(reading, value, whole=whole)
    if given.kind == "natural":
        return value
    if np.asarray(value).dtype.kind in "iub":  # indices and truth values
        return torch.tensor(np.asarray(value))
    wide = wide_kind(given.kind)
    kept = _kept(value, form.wide() if wide else form)
    exact = torch.tensor(np.asarray(value), dtype=torch.float64)
    off = (torch.tensor(kept) - exact).abs().nan_to_num(nan=np.inf)
    return Bounded(arithmetic, exact, off, profile.wide if wide else profile.store)


def _kept(value: Any, form: type[Rounded]) -> Any:
    """A value as a format stores it, in float64."""
    return np.asarray(form.of(np.asarray(value, dtype=np.float64)), dtype=np.float64)


def _function(
    reading: BoundReading, function: Callable[..., Any], *, whole: bool
) -> Callable[..., Any]:
    """A function whose result is rounded: its code with errors, or its values at exact numbers.

    Whole positions are indices, and exact.
    """
    import torch

    def call(*given: Any) -> Any:
        rounded = [reading.rounded(value) for value in given]
        if not whole and any(bool(value.error().any()) for value in rounded):
            result = function(*rounded)
            return reading.arithmetic.stored(result, reading.arithmetic.profile.store)
        found = np.asarray(function(*(value.value.numpy() for value in rounded)), dtype=np.float64)
        exact = reading.arithmetic.exact(torch.tensor(found))
        return reading.arithmetic.stored(exact, reading.arithmetic.profile.store)

    return call


def _profile(form: type[Rounded], form_name: str) -> Profile:
    """The roundings of a format of :mod:`.precision`.

    Sums and products of numpy are added up in float32 at least, in any order; its functions are
    within FUNCTION units of that.
    """
    import torch

    from ..numeric.calibration.record import SEQUENTIAL
    from ..numeric.devices import dtype_named
    from ..numeric.profile import Profile, unit_roundoff

    dtype, wide = dtype_named(form.dtype_name), dtype_named(form.wide().dtype_name)
    info, single = torch.finfo(dtype), unit_roundoff(torch.float32)
    return Profile(
        form_name, dtype, store=unit_roundoff(dtype), wide=unit_roundoff(wide), accumulate=single,
        operand=0.0, least=info.smallest_normal * info.eps, product=single,
        function_error=FUNCTION, power_error=FUNCTION, sums=SEQUENTIAL, softmax=SEQUENTIAL,
        products=SEQUENTIAL, narrow=None, kernels=(), calibration="numpy, by its documents",
    )  # fmt: skip
