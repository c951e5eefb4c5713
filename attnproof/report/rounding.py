"""How the score of an encoding rounds, for each position and format, with its bound.

How far a score may be off is derived from the code of the encoding, run on symbols: the term is
evaluated with a rounding error for every operation (``numeric.torch_reading.BoundReading``), from
the errors of storing parameters, content and positions in the format.  Which keys are hidden and
which branch is taken is evaluated exactly.  This needs torch, which is imported when a bound is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoding.base import Encoding
from ..encoding.names import named
from ..symbolic.array import as_array
from ..symbolic.concrete import length_value
from ..symbolic.givens import Given
from ..symbolic.scalars import integer
from ..symbolic.terms import Term, free
from .precision import FORMATS, Rounded, encoding_in, wide_kind

if TYPE_CHECKING:
    from ..numeric.profile import Profile
    from ..numeric.torch_reading import BoundReading


SECONDS = 0.3  # for one line; code that takes a step per position gets no further
FUNCTION = 8.0  # of exp, log, cos, sin and powers in float32, in units of roundoff: 4 ulp, which
# is what numpy promises (release notes 1.17: exp 2.52 ulp, log 3.83)
FULL = 64  # positions that are evaluated at once


class NotBounded(Exception):
    """There is no bound; the text says why."""


def bounds(numeric: Encoding, places: Any, form: type[Rounded]) -> Any:
    """Return how far the score of a query at each place with the previous key may be off: (n,).

    NaN from where evaluation takes too long, infinity where nothing is left of the score.  Raises
    :class:`NotBounded` if torch is missing, or if the term cannot be evaluated.
    """
    try:
        import_module("torch")
    except ImportError as error:
        raise NotBounded("bounds need torch, which is not installed") from error
    try:
        return _read(numeric, np.asarray(places), form)
    except NotBounded:
        raise
    except Exception as error:  # whatever its code or its numbers raise is reported
        told = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise NotBounded(f"its score cannot be evaluated with bounds ({told})") from error


def _read(numeric: Encoding, places: Any, form: type[Rounded]) -> Any:
    from ..numeric.devices import one_thread

    term, givens = _score(type(numeric))
    sizes = _sizes(numeric)
    found = np.full(len(places), np.nan)
    wanted = np.arange(len(places))
    if not numeric.whole:  # a position outside the format leaves nothing
        there = np.isfinite(_kept(places, form.wide()))
        found[~there] = np.inf
        wanted = wanted[there]
    at_once = 1 if numeric.whole or numeric.together else FULL
    start = thread_time()
    with one_thread():
        for first in range(0, len(wanted), at_once):
            if thread_time() - start > SECONDS:
                break
            some = wanted[first : first + at_once]
            reading = _reading(numeric, givens, sizes, places[some], form)
            radius = reading.rounded(reading(term)).error().numpy()
            found[some] = np.diagonal(np.broadcast_to(radius, (len(some), len(some))))
    return found


def _score(kind: type[Encoding]) -> tuple[Term, dict[str, Given]]:
    """Return the score of any queries with any keys as a term, and its givens."""
    encoding = kind()
    givens, values = dict(kind.declared()), []
    for name in ("Q", "K", "u", "p"):
        own, value = named(name, encoding, {}, in_a_row=True)
        givens |= own
        values.append(value)
    return as_array(encoding.scores(*values)).term, givens


def _sizes(numeric: Encoding) -> dict[str, int]:
    """Return the lengths behind the sizes of its parameters and of its width."""
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
    numeric: Encoding,
    givens: Mapping[str, Given],
    sizes: Mapping[str, int],
    places: Any,
    form: type[Rounded],
) -> BoundReading:
    """Return the evaluation of a term at these positions of queries, with keys one before."""
    from ..numeric.arithmetic import Arithmetic
    from ..numeric.implementations.eager import SOFTMAX_BOUND
    from ..numeric.torch_reading import BoundReading

    count = len(places)
    tokens = content(numeric, count)
    values: dict[str, Any] = {**numeric.parameters, "Q": tokens, "K": tokens}
    for letter, where in (("u", places), ("p", places - 1)):
        if numeric.whole:
            values[f"{letter}_0"] = int(where[0])
        else:
            values[letter] = at(numeric, where)
    arithmetic = Arithmetic(_profile(form))
    reading = BoundReading({**sizes, "n_q": count, "n_k": count}, {}, arithmetic, SOFTMAX_BOUND)
    for name, given in givens.items():
        if name in values:
            reading.values[name] = _stored(reading, values[name], given, form, whole=numeric.whole)
    return reading


def _stored(
    reading: BoundReading, value: Any, given: Given, form: type[Rounded], *, whole: bool
) -> Any:
    """Return a value with the error of storing it in the format, which is known exactly."""
    import torch

    from ..numeric.error_analysis import Rounded as Bounded

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
    """Return a value as a format stores it, in float64."""
    return np.asarray(form.of(np.asarray(value, dtype=np.float64)), dtype=np.float64)


def _function(
    reading: BoundReading, function: Callable[..., Any], *, whole: bool
) -> Callable[..., Any]:
    """Return a function with rounded results: its code with errors, or its values at exact numbers.

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


def _profile(form: type[Rounded]) -> Profile:
    """Return the roundings of a format of :mod:`.precision`.

    Sums and products of numpy accumulate in float32 at least, in any order; its functions are
    within FUNCTION units of that.
    """
    import torch

    from ..numeric.calibration.record import SEQUENTIAL
    from ..numeric.devices import dtype_named, unit_roundoff
    from ..numeric.profile import Profile

    dtype, wide = dtype_named(form.dtype_name), dtype_named(form.wide().dtype_name)
    info, single = torch.finfo(dtype), unit_roundoff(torch.float32)
    return Profile(
        dtype,
        store=unit_roundoff(dtype),
        wide=unit_roundoff(wide),
        accumulate=single,
        operand=0.0,
        least=info.smallest_normal * info.eps,
        product=single,
        function_error=FUNCTION,
        power_error=FUNCTION,
        sums=SEQUENTIAL,
        softmax=SEQUENTIAL,
        products=SEQUENTIAL,
        narrow=None,
        kernels=(),
        calibration="numpy, by its documents",
    )


SEED = 0


def at(numeric: Encoding, places: Any, form: type[Rounded] | None = None) -> Any:
    """Return positions at whole numbers; those with several coordinates along the first axis."""
    if numeric.whole:
        return np.asarray(places, dtype=np.int64)  # an index: no format rounds it
    line = np.asarray(places, dtype=np.float64)
    if numeric.axes:
        line = np.stack((line, *[0 * line] * (numeric.axes - 1)), axis=-1)
    return line if form is None else form.wide().of(line)


def content(numeric: Encoding, count: int, form: type[Rounded] | None = None) -> Any:
    """Return one content, repeated so many times."""
    one = np.random.default_rng(SEED).normal(size=numeric.width)
    tokens = np.tile(one, (count, 1))
    return tokens if form is None else form.of(tokens)


def scores(numeric: Encoding, m: Any, n: Any) -> Any:
    """Return the scores of that content at m with itself at n; NaN where a mask hides the key."""
    found = numeric.scores(content(numeric, len(m)), content(numeric, len(n)), m, n)
    found = np.broadcast_to(np.asarray(found, dtype=float), (len(m), len(n)))
    if numeric.defines("sees"):
        found = np.where(numeric.sees(m[:, None], n[None]), found, np.nan)
    return found


def reach(numeric: Encoding, far: int, slow: float = float("inf")) -> tuple[int, bool]:
    """Return the last position up to ``far`` to draw, and whether it is defined beyond that.

    Code that takes a step per position is followed, in powers of ten, as long as one score takes
    less than ``slow`` seconds.  Raises what the code raises at 0.
    """

    def took(place: int) -> float | None:
        start = thread_time()
        try:
            scores(numeric, at(numeric, [place]), at(numeric, [place]))
        except Exception:  # noqa: BLE001 (whether it raises is what is asked)
            return None
        return thread_time() - start

    scores(numeric, at(numeric, [0]), at(numeric, [0]))
    low, high = 0, 1
    while (seconds := took(high)) is not None:
        if high == far:
            return far, True
        if seconds > slow and (took(high) or 0) > slow:
            return low, True
        low, high = high, min(10 * high, far)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if took(middle) is None else (middle, high)
    return low, False


LAST_POSITION = 10**6
PER_DECADE = 8
SLOW = 0.02  # seconds for one score


@dataclass(frozen=True)
class Line:
    """The error of the score at each place in one format, and its bound if there is one.

    ``together`` says where a position and the previous one round to the same number; ``first`` is
    the first such position, 0 if there is none.
    """

    error: Any
    together: Any
    bound: Any | None
    first: int


@dataclass(frozen=True)
class Rounding:
    """The places, a line for each format, and the text about them."""

    places: Any
    lines: dict[str, Line]
    says: str


def rounding(numeric: Encoding) -> Rounding:
    """Return the error of a query's score with the previous key, in each format, up to 10⁶."""
    with np.errstate(all="ignore"):
        return _rounding(numeric)


def _rounding(numeric: Encoding) -> Rounding:
    end, further = reach(numeric, LAST_POSITION, SLOW)
    formats = dict(FORMATS)
    kinds = {given.kind for given in type(numeric).declared().values()}
    if numeric.whole and not any(map(wide_kind, kinds)):
        formats = {says: form for says, form in formats.items() if form.wide() is form}
    every = np.arange(1, end + 1)
    firsts = {
        says: int(every[_together(numeric, every, form)][:1].sum())
        for says, form in formats.items()
    }
    decades = np.log10(max(end, 2))
    places = np.geomspace(1, max(end, 2), int(PER_DECADE * decades) + 1).astype(int)
    places = np.unique([*places[places <= max(end, 1)], *(p for p in firsts.values() if p)])
    exact = np.array([_neighbours(numeric, p) for p in places])
    lines: dict[str, Line] = {}
    unbounded: dict[str, str] = {}
    for says, form in formats.items():
        low = encoding_in(numeric, form)
        error = np.abs(np.array([_neighbours(low, p, form) for p in places]) - exact)
        bound = None
        try:
            bound = np.where(np.isfinite(error), bounds(numeric, places, form), np.inf)
        except NotBounded as why:
            unbounded[says] = str(why)
        lines[says] = Line(error, _together(numeric, places, form), bound, firsts[says])
    kept = "; with angles in float32, so are positions and frequencies" * (
        len(formats) == len(FORMATS)
    )
    told = (
        f"The score of a query with the key one position before it, computed in each format "
        f"and compared with float64; parameters{'' if numeric.whole else ', positions'} and every "
        f"operation are rounded{kept}.{_ended(end, further=further)}"
        f"{_bounded(unbounded, lines)} {' '.join(_remarks(places, lines))}"
    )
    return Rounding(places, lines, told.strip())


def _ended(end: int, *, further: bool) -> str:
    """Return where the drawing ends early, and why."""
    if end == LAST_POSITION:
        return ""
    if further:
        return f" Drawn up to position {end}, because its code takes a step per position."
    return f" It is defined up to position {end}."


def _bounded(unbounded: dict[str, str], lines: dict[str, Line]) -> str:
    """Return what a reader must know about the bounds."""
    if len(unbounded) == len(lines):
        return f" No bounds are drawn: {next(iter(unbounded.values()))}."
    told = (
        " Dashed: a bound on the error, derived from its code operation by operation, as long "
        "as nothing overflows and the same branches are taken."
    )
    drawn = [line.bound for line in lines.values() if line.bound is not None]
    if any(np.isinf(bound).any() for bound in drawn):
        told += " Where it ends, it leaves no correct digit of the score, or is not finite."
    if any(np.isnan(bound).any() for bound in drawn):
        told += " It is not computed at positions where this would take too long."
    for says, why in unbounded.items():
        told += f" None is drawn in {says}: {why}."
    return told


def _neighbours(numeric: Encoding, place: int, form: type[Rounded] | None = None) -> float:
    """Return the score of a query at a position with the previous key."""
    token = content(numeric, 1, form)
    m, n = (at(numeric, [p], form) for p in (place, place - 1))
    return float(np.asarray(numeric.scores(token, token, m, n))[0, 0])


def _remarks(places: Any, lines: dict[str, Line]) -> Iterator[str]:
    """Yield what lines of errors cannot show, each remark once for all formats it is true of."""
    found: dict[str, list[str]] = {}
    for says, line in lines.items():
        if line.first:
            told = f"neighbouring positions coincide from {line.first} on (circles)"
            found.setdefault(told, []).append(says)
        if not np.isfinite(line.error).all():
            first = places[~np.isfinite(line.error)][0]
            told = f"there is no finite score from {first} on, of the positions drawn"
            found.setdefault(told, []).append(says)
        if (line.error == 0).all():
            found.setdefault("every score drawn is exact", []).append(says)
    for told, formats in found.items():
        yield f"In {', '.join(formats)} {told}."


def _together(numeric: Encoding, places: Any, form: type[Rounded]) -> Any:
    """Return where a position and the previous one are the same number in a format."""
    keys, queries = at(numeric, places - 1, form), at(numeric, places, form)
    return np.asarray(keys == queries).reshape(len(places), -1).all(axis=1)
