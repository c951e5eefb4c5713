"""Detection of NaN and infinity in the results of code at ordinary inputs.

Every call of the code under test passes through a watch.  Inputs are ordinary if they are finite,
no larger than normal draws, with no constant vector (a norm may divide by 0 there), and if every
query has a key to see; a mask is ordinary if it shows every query its own key.  The results must
then be finite (a mask or a bias may be −∞).  If they are not, no law can be evaluated:
:class:`NotFinite` ends the check.  It derives from ``BaseException``, so that no ``except
Exception`` on the way mistakes it for an error of the code or for a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._C import _DisableTorchDispatch

from ..subjects import Subject

S = TypeVar("S", bound=Subject)

MAX_ENTRY = 8.0  # above any normal draw; larger inputs may overflow a short format
MAX_POSITION = 4096  # positions beyond it may overflow in a short format
HIDES = ("bias", "window", "mask")  # results that are added to scores and may hide keys
STATES = ("step", "padded_step", "evict")  # only the first result is numbers
UNWATCHED = ("make", "module", "index", "padded_step", "convert", "grid")
"""Fields that are not watched: they build code, return integers, pad rows, or take no vectors."""
MAX_SHOWN = 16  # inputs with at most so many numbers are shown in full


_LOOKING: ContextVar[bool] = ContextVar("looking", default=False)


def looking() -> bool:
    """Whether the watch is computing: its operations are not operations of the code."""
    return _LOOKING.get()


@contextmanager
def _at_work() -> Iterator[None]:
    """Hide the operations of a block from dispatch modes, which would slow them down."""
    token = _LOOKING.set(True)
    try:
        with _DisableTorchDispatch():
            yield
    finally:
        _LOOKING.reset(token)


@dataclass(eq=False)
class NotFinite(BaseException):
    """The code returned NaN or infinity at ordinary inputs.

    ``call``: the field of the subject; ``inputs``: its arguments, as plain data; ``what``: the
    value returned, at index ``at``; ``count``: how many entries are not finite, in words.
    """

    call: str
    inputs: Mapping[str, Any]
    what: str
    at: tuple[int, ...]
    count: str

    def __str__(self) -> str:
        """Describe the observation in a clause."""
        return f"{self.call} gives {self.what} at {list(self.at)} ({self.count})"


def watching(subject: S, met: list[str] | None = None) -> S:
    """Return the same code, whose calls raise ``NotFinite`` if ordinary inputs give NaN or inf.

    ``met``: if given, collects the names of calls with such results at other inputs.

    >>> from ..subjects import Layer
    >>> broken = watching(Layer(name="f", call=lambda x: x / 0, embed=4))
    >>> try:
    ...     broken.call(torch.tensor([[[1.0, 2.0]]]))
    ... except NotFinite as seen:
    ...     print(seen)
    call gives inf at [0, 0, 0] (2 of 2 numbers are not finite)
    """
    return wrapped(subject, partial(_watched, met=met))


def wrapped(
    subject: S,
    wrap: Callable[[str, Callable[..., Any], Subject], Any],
    leave: Collection[str] = UNWATCHED,
) -> S:
    """Return the same code, and instances it makes, with each call replaced by its ``wrap``.

    The fields that ``leave`` names are left as they are.
    """
    made: dict[str, Any] = {}
    known: dict[int, Any] = {}
    for field in fields(subject):
        value = getattr(subject, field.name)
        if field.name in ("paths", "hiding"):
            main = _main(subject) if field.name == "paths" else "hide"
            made[field.name] = {path: wrap(main, call, subject) for path, call in value.items()}
        elif field.name == "make" and value is not None:
            made["make"] = _making(value, partial(wrapped, wrap=wrap, leave=leave))
        elif callable(value) and field.name not in leave:
            if id(value) not in known:  # a function under two names is wrapped once
                known[id(value)] = wrap(field.name, value, subject)
            made[field.name] = known[id(value)]
    return replace(subject, **made)


def _main(subject: Subject) -> str:
    """The field whose signature the alternative paths share."""
    names = ("rotate", "attend", "layer", "bias", "added", "mask", "call")
    return next((name for name in names if getattr(subject, name, None) is not None), "call")


def _making(make: Callable[..., Any], wrap: Callable[[Subject], Subject]) -> Callable[..., Any]:
    @wraps(make)
    def made(*given: Any, **settings: Any) -> Any:
        built = make(*given, **settings)
        return wrap(built) if isinstance(built, Subject) else built

    return made


def _watched(
    name: str, call: Callable[..., Any], subject: Subject, *, met: list[str] | None
) -> Callable[..., Any]:
    @wraps(call)
    def watched(*given: Any, **named: Any) -> Any:
        with _at_work():
            ordinary = not named and _ordinary(name, given, subject)
        result = call(*given, **named)
        if ordinary or met is not None:
            parts = result if isinstance(result, tuple | list) else (result,)
            with _at_work():
                try:
                    for part in parts[:1] if name in STATES else parts:
                        _require_finite(name, part, given)
                except NotFinite:
                    if ordinary:
                        raise
                    assert met is not None
                    met.append(name)
        return result

    return watched


def _require_finite(name: str, part: Any, given: tuple[Any, ...]) -> None:
    if type(part) not in (Tensor, torch.nn.Parameter) or not (
        part.is_floating_point() or part.is_complex()
    ):
        return
    bad = ~part.detach().isfinite()
    if name in HIDES and not part.is_complex():
        bad &= ~part.detach().isneginf()
    keep = given[1] if name in ("hide", "layer") and len(given) > 1 else None  # it may be both
    if isinstance(keep, Tensor):
        bad &= keep.to(bad.device)[..., None]  # rows of padding do not matter
    if name == "counting":
        bad &= given[3].to(bad.device)[:, None, :, None]
    if bool(bad.any()):
        at = tuple(int(i) for i in bad.nonzero()[0])
        value = part.detach()[at]
        what = "NaN" if bool(value.isnan()) else f"{float(value.real):g}"
        count = f"{int(bad.sum())} of {bad.numel()} numbers are not finite"
        raise NotFinite(name, _shown(given), what, at, count)


def finite_gradients(name: str, gradient: Tensor, *given: Any) -> Tensor:
    """Return the gradient of a call at ordinary inputs; raises ``NotFinite`` if not finite."""
    _require_finite(f"the gradient of {name}", gradient, given)
    return gradient


def _ordinary(name: str, given: tuple[Any, ...], subject: Subject) -> bool:
    """Whether these are inputs at which the results must be finite."""
    plain = [x for x in given if isinstance(x, Tensor)]
    if any(type(x) is not Tensor or x.is_meta for x in plain):  # in a finite field, or traced
        return False
    if name in ("attend", "weights"):
        return _ordinary_scores(given)
    if name in HIDES:
        return len(given) == 2 and given[0] <= given[1]
    if not all(bool(x.any(-1).all()) for x in plain if x.dtype == torch.bool and x.dim()):
        return False  # a row of padding alone
    vectors = [x for x in plain if x.is_floating_point() and x is not _places(name, given)]
    ordinary = all(_bounded(x) and _varied(x) for x in vectors)
    return ordinary and _ordinary_places(name, given, subject)


def _places(name: str, given: tuple[Any, ...]) -> Tensor | None:
    """The positions among the inputs, or None."""
    at = {"rotate": 1, "key": 1, "all_three": 3}.get(name)
    place = None if at is None or len(given) <= at else given[at]
    return place if isinstance(place, Tensor) else None


def _ordinary_places(name: str, given: tuple[Any, ...], subject: Subject) -> bool:
    places = _places(name, given)
    if places is None:
        return all(abs(x) <= MAX_POSITION for x in given if isinstance(x, int))
    if not places.numel():
        return False
    first, most = getattr(subject, "first", 0), getattr(subject, "most", MAX_POSITION)
    low, high = float(places.min()), float(places.max())
    return first <= low and high <= min(MAX_POSITION, most)


def _ordinary_scores(given: tuple[Any, ...]) -> bool:
    q, k, *rest = given
    vectors = [q, k, *rest[:1]]
    if not all(isinstance(x, Tensor) and _bounded(x) for x in vectors):
        return False
    if not (_varied(q) and _varied(k)):
        return False
    queries, keys = q.shape[-2], k.shape[-2]
    mask = rest[1] if len(rest) > 1 else None
    if mask is None:
        return bool(queries <= keys)
    if not isinstance(mask, Tensor) or mask.shape[-2:] != (queries, keys):
        return False
    seen = mask if mask.dtype == torch.bool else mask > -MAX_ENTRY
    if mask.is_floating_point() and not bool((mask <= MAX_ENTRY).all()):
        return False
    own = seen.diagonal(dim1=-2, dim2=-1)
    if bool(seen.all()):
        return bool(queries <= keys)
    return bool(queries == keys and own.all())


def _bounded(x: Tensor) -> bool:
    """Whether the array is not empty and no entry is larger than a normal draw."""
    return x.numel() > 0 and bool((x.detach().abs() <= MAX_ENTRY).all())


def _varied(x: Tensor) -> bool:
    """Whether no vector is constant; a norm may divide by 0 at a constant one."""
    if x.dim() == 0 or x.shape[-1] < 2:
        return False
    least, largest = x.detach().aminmax(dim=-1)
    return bool((largest > least).all())


def _shown(given: tuple[Any, ...]) -> dict[str, Any]:
    """Return inputs for a counterexample: their numbers if they are few, else their shapes."""
    told: dict[str, Any] = {}
    for n, x in enumerate(given):
        if isinstance(x, Tensor):
            few = x.numel() <= MAX_SHOWN
            told[f"argument {n + 1}"] = (
                x.detach().tolist() if few else f"{tuple(x.shape)}, {str(x.dtype)[6:]}, drawn"
            )
        elif x is not None:
            told[f"argument {n + 1}"] = x if isinstance(x, int | float | str) else str(x)
    return told
