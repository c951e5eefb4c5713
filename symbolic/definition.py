"""Named definitions: functions on arrays that stay folded until a proof unfolds them.

A definition is ordinary array code.  On symbolic arrays it gives one ``named`` term that holds
its body; on anything else (numpy, torch) it simply runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from .array import Array
from .refusals import called
from .terms import Term, make

P = ParamSpec("P")
R = TypeVar("R")

DEFINITIONS: dict[str, Definition[Any, Any]] = {}


@dataclass(eq=False)
class Definition(Generic[P, R]):
    """A named function on arrays, with the LaTeX of its name.

    A notation that is not a name with brackets holds its arguments: #1, #2; {#1} where they need no
    brackets.
    """

    name: str
    latex: str
    body: Callable[P, R]
    __doc__: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        update_wrapper(self, self.body)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result = called(self.body, self.body, *args, **kwargs)
        if not isinstance(result, Array):
            return result
        terms: list[Term] = [a.term for a in args if isinstance(a, Array)]
        return Array(  # type: ignore[return-value]
            make("named", (result.term, *terms), (self.name,), result.axes)
        )


def definition(latex: str) -> Callable[[Callable[P, R]], Definition[P, R]]:
    """Make a function on arrays a named definition, printed as ``latex``."""

    def wrap(body: Callable[P, R]) -> Definition[P, R]:
        made = Definition(body.__name__, latex, body)
        DEFINITIONS[made.name] = made
        return made

    return wrap
