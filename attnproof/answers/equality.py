"""``equal``: of two arrays in a statement, or of two programs.

One word serves both, and its arguments never leave a doubt: arrays and numbers are not programs,
and a program (a function, a module, a target) is not an array.  ``equal(X + X, 2 * X)`` is the
conclusion of a statement, and ``equal(f, g)`` gives the answer of the command ``attnproof equal``.
One of each is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ..symbolic import claim
from ..symbolic.givens import Function

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..symbolic.claim import Claim
    from .programs import ComparedPrograms

    Program = Callable[..., Any] | str

BOTH = (
    "equal(a, b) says that two arrays are equal, and equal(f, g) compares two programs: functions, "
    "modules, or targets such as 'rope.py::turn'"
)


@overload
def equal(
    left: Program,
    right: Program,
    call: str = "",
    other: str = "",
    *,
    where: str = "",
    weights: str = "",
    seed: int = 0,
    seconds: float = 20.0,
) -> ComparedPrograms: ...
@overload
def equal(left: Any, right: Any) -> Claim: ...
def equal(left: Any, right: Any, *args: Any, **named: Any) -> Claim | ComparedPrograms:
    """State that two arrays are equal, or find out whether two programs are the same function.

    For arrays, the result is a conclusion or a hypothesis of a statement; both have the same shape.

    For programs, it is a record that displays itself: proved, exact, measured, undecided, or a
    counterexample.  ``call`` says how both are called, in axis letters
    (:mod:`attnproof.programs.signatures.signature`), and ``other`` how the second is; ``where`` and
    ``weights`` say what stands for its arguments and parameters; a proof may take ``seconds``.
    ``right`` may be a specification, ``"attention:causal"``.

    Raises ``TypeError`` for an array and a program, :class:`~attnproof.AxisMismatch` for arrays of
    different shapes, ``SignatureError`` if the programs cannot be called on the same arrays, and
    ``ValueError`` for a target that cannot be loaded.

    >>> from attnproof import prove, real, sizes
    >>> (n,) = sizes("n")
    >>> prove(lambda X: equal(X + X, 2 * X), X=real(n)).verdict
    'proved'
    >>> equal(lambda x: x + x, lambda x: 2 * x, "x: B n E -> B n E").verdict
    'proved'
    """
    kinds = [_is_program(left), _is_program(right)]
    if not any(kinds):
        return claim.equal(left, right, *args, **named)
    if not all(kinds):
        told = " and ".join(type(one).__name__ for one in (left, right))
        raise TypeError(f"{BOTH}; got {told}")
    from ..real_code.equal_records import check_equal
    from .programs import ComparedPrograms

    return ComparedPrograms.showing(check_equal(left, right, *args, **named))


def _is_program(thing: Any) -> bool:
    if type(thing) is Function:
        raise TypeError(
            f"{thing.name} is a function of which nothing is known; say that two are equal at all "
            "values: for_all({'x': real()}, lambda x: equal(f(x), g(x)))"
        )
    return isinstance(thing, str) or callable(thing)
