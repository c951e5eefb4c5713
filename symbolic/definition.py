"""Named definitions: functions on arrays that stay folded until a proof unfolds them.

A definition is ordinary array code.  On symbolic arrays it returns one ``named`` term that
contains its body; on other arrays (NumPy, torch) it simply runs.  Keyword-only parameters are
options and part of its name: ``attend[causal]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper, wraps
from inspect import Parameter, signature, unwrap
from typing import Any, Generic, ParamSpec, TypeVar

from .array import Array
from .refusals import checked_call
from .terms import Term, make

P = ParamSpec("P")
R = TypeVar("R")

DEFINITIONS: dict[str, Definition[Any, Any]] = {}


@dataclass(eq=False)
class Definition(Generic[P, R]):
    """A named function on arrays, with the LaTeX of its name.

    A notation other than a name with brackets contains placeholders for its arguments: #1, #2, or
    {#1} if the argument needs no brackets.
    """

    name: str
    latex: str
    body: Callable[P, R]
    __doc__: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        update_wrapper(self, self.body)

    @property
    def line(self) -> int:
        """The line of its file on which its body begins."""
        code: int = unwrap(self.body).__code__.co_firstlineno
        return code

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result = checked_call(self.body, self.body, *args, **kwargs)
        if not isinstance(result, Array):
            return result
        bound = signature(self.body).bind(*args, **kwargs) if kwargs else None
        own = bound.args if bound else args
        options = _changed_options(self.body, bound.kwargs) if bound else {}
        arrays = [a for a in (*own, *options.values()) if isinstance(a, Array)]
        name = self._specialised(options, len(own)).name if options else self.name
        terms: list[Term] = [a.term for a in arrays]
        return Array(  # type: ignore[return-value]
            make("named", (result.term, *terms), (name,), result.axes)
        )

    def _specialised(self, options: Mapping[str, Any], count: int) -> Definition[..., Any]:
        """Return the definition under these options; options that are arrays become arguments.

        It has its own name, so that causal attention is not confused with attention.
        """
        words = [_option_text(name, value) for name, value in options.items()]
        name = f"{self.name}[{', '.join(words)}]"
        if name not in DEFINITIONS:
            arrays = [key for key, value in options.items() if isinstance(value, Array)]
            fixed = {key: value for key, value in options.items() if key not in arrays}
            own = list(signature(self.body).parameters)[:count]

            @wraps(self.body)
            def body(*args: Any) -> Any:
                more = dict(zip(arrays, args[count:], strict=True))
                return self.body(*args[:count], **fixed, **more)

            kind = Parameter.POSITIONAL_ONLY
            positional = signature(self.body).replace(
                parameters=[Parameter(one, kind) for one in (*own, *arrays)]
            )
            body.__signature__ = positional  # type: ignore[attr-defined]
            latex = rf"{self.latex}_{{\text{{{', '.join(words)}}}}}"
            DEFINITIONS[name] = Definition(name, latex, body)
        return DEFINITIONS[name]


def _changed_options(body: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the defaults."""
    known = signature(body).parameters
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, Array) or repr(value) != repr(known[name].default)
    }


def _option_text(name: str, value: Any) -> str:
    """Return an option as text: causal, interleaved, window = 4; for an array, its name."""
    if value is True or isinstance(value, Array):
        return name
    return value if isinstance(value, str) else f"{name} = {value}"


def definition(latex: str) -> Callable[[Callable[P, R]], Definition[P, R]]:
    """Turn a function on arrays into a named definition, printed as ``latex``."""

    def wrap(body: Callable[P, R]) -> Definition[P, R]:
        made = Definition(body.__name__, latex, body)
        DEFINITIONS[made.name] = made
        return made

    return wrap
