"""Two programs compared from Python: in a notebook, or in one's own tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .records import EqualRecord, equal_record, page

if TYPE_CHECKING:
    from ..programs.equal.sides import Told


class NotEqual(AssertionError):
    """Two programs are two functions, or not known to be one; ``record`` says what was found."""

    def __init__(self, text: str, record: EqualRecord) -> None:
        super().__init__(text)
        self.record = record


def check_equal(
    first: Any,
    second: Any,
    call: str = "",
    other: str = "",
    *,
    where: str = "",
    weights: str = "",
    seed: int = 0,
    seconds: float = 20.0,
) -> EqualRecord:
    """Whether two programs are one function: the record of what was found.

    Each is a function or module, or its target, ``"FILE.py::NAME"``; ``second`` may be a
    specification, such as ``"attention:causal"``.  ``call`` says how both are
    called in axis letters, ``other`` how the second is (:mod:`attnproof.programs.signature`);
    ``where`` and ``weights`` what stands for its arguments and parameters.

    Raises :class:`~attnproof.programs.signature.SignatureError` where the two cannot be called on
    the same arrays, and ``ValueError`` for a target that cannot be loaded.

    >>> found = check_equal(lambda x: 2 * x, lambda x: x + x, "x: B n E -> B n E")
    >>> found.verdict
    'proved'
    """
    from ..programs.equal.deciding import compare
    from ..programs.equal.sides import Told
    from ..programs.equal.specification import is_specification
    from ..real_code.loading import CannotLoad

    names = tuple(_name(one) for one in (first, second))
    specified = isinstance(second, str) and is_specification(second)
    try:
        told = (
            loaded(first, names[0], call),
            Told(second, second) if specified else loaded(second, names[1], other or call),
        )
    except CannotLoad as error:
        raise ValueError(str(error)) from None
    found = compare(*told, where=where, weights=weights, seed=seed, seconds=seconds)
    more = [f", call={call!r}"] * bool(call) + [f", other={other!r}"] * bool(other)
    shown = [
        repr(one) if isinstance(one, str) else name
        for one, name in zip((first, second), names, strict=True)
    ]
    more += [f", where={where!r}"] * bool(where) + [f", weights={weights!r}"] * bool(weights)
    again = f"attnproof.testing.check_equal({shown[0]}, {shown[1]}{''.join(more)}, seed={seed})"
    return equal_record(found, (names[0], names[1]), again, seed)


def assert_equal(
    first: Any, second: Any, call: str = "", other: str = "", *, strict: bool = False, **more: Any
) -> EqualRecord:
    """Fail where two programs are not one function; ``strict``: also where that is not proved.

    Raises :class:`NotEqual` with the page of what was found.

    >>> record = assert_equal(lambda x: x * x, lambda x: x**2, "x: B n E -> B n E")
    """
    __tracebackhide__ = True
    record = check_equal(first, second, call, other, **more)
    if record.verdict in ("counterexample", "internal error") or (
        strict and record.verdict != "proved"
    ):
        raise NotEqual("\n".join(line for line, _ in page(record)), record)
    return record


def loaded(thing: Any, name: str, line: str, settings: Iterable[str] = ()) -> Told:
    """A program, or the one at a target.  Raises ``CannotLoad`` and ``ValueError``."""
    from ..programs.equal.sides import Told
    from ..real_code.loading import load
    from ..real_code.request import settings_of

    found = load(thing).thing if isinstance(thing, str) else thing
    return Told(found, name, line, settings_of(settings))


def _name(thing: Any) -> str:
    return thing if isinstance(thing, str) else getattr(thing, "__name__", type(thing).__name__)
