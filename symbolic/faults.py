"""Attribution of errors: a fault of attnproof is never reported as an error of its user.

A traceback is read from its innermost frame outwards.  User code is code in the given files, and
all code that belongs neither to attnproof, nor to Python, nor to a library that attnproof calls
itself.  An exception is the user's concern in three cases:

* User code is below the last frame of attnproof: it raised the error.
* attnproof raised it deliberately, by ``raise``, when called by user code or as an error about its
  input: that is a refusal, which the user should see.
* A function of the user does not accept the arguments that it is called with, by attnproof or by a
  library, as torch calls the ``forward`` of a module.

Otherwise (a ``KeyError`` in an internal table, an assertion, internal arrays whose shapes do not
fit) it is a fault of attnproof, whatever code it was analysing.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from inspect import unwrap
from opcode import opmap
from pathlib import Path
from types import CodeType, FrameType, TracebackType

REPORT = "this is a bug in attnproof; please report it"
TRACEBACK_LENGTH = 20_000  # characters of a traceback that are kept, from its end
ATTNPROOF, USER, LIBRARY = "attnproof", "user", "library"
LIBRARIES = frozenset({
    "array_api_compat", "array_api_strict", "flint", "jinja2", "joblib", "latex2mathml",
    "matplotlib", "mpmath", "numpy", "pydantic", "pydantic_core", "pytest", "_pytest", "pluggy",
    "rich", "scipy", "sympy", "torch", "typer",
})  # fmt: skip
WRONG_ARGUMENTS = re.compile(
    r"([\w.<>]+)\(\) (?:takes|missing|got (?:an unexpected|multiple values))"
)
FORWARDING = ("__torch_function__", "__torch_dispatch__")
GENERATED = ("<frozen ", "<string>", "<__array_function__", "<attrs")  # dataclasses are <string>
ROOT = Path(__file__).resolve().parent.parent
ROOTS = (
    tuple(ROOT / part for part in ("attnproof", "symbolic", "numeric", "theorems", "programs"))
    if (ROOT / "attnproof").is_dir()
    else (ROOT,)
)


@dataclass(frozen=True)
class Fault:
    """An error of attnproof itself: one line with the error and its place, and the traceback."""

    error: str
    traceback: str

    @property
    def message(self) -> str:
        """The message for the user."""
        return f"internal error of attnproof: {self.error}; {REPORT}"


def fault_of(
    error: BaseException,
    user_files: Collection[str | Path] = (),
    refusals: tuple[type[BaseException], ...] = (TypeError, ValueError, ImportError),
) -> Fault | None:
    """Return the fault of attnproof behind an exception, or None if the user can fix it.

    ``user_files`` count as user code wherever they are, such as files of the catalogue.
    ``refusals`` are the exception types that attnproof raises deliberately about its input, besides
    its own exception classes.

    >>> try:
    ...     {}["left"]
    ... except KeyError as error:
    ...     fault_of(error) is None
    True
    """
    if not isinstance(error, Exception):
        return None  # an interrupt, or code that leaves by sys.exit
    user_paths = frozenset(str(Path(path).resolve()) for path in user_files)
    frames = list(_frames(error.__traceback__))
    owners = [_owner(tb.tb_frame.f_code.co_filename, user_paths) for tb in frames]
    if owners and (owners[-1] == LIBRARY or _forwards(frames[-1])):  # raised by torch
        through = [
            LIBRARY if tb.tb_frame.f_code.co_name in FORWARDING else one
            for tb, one in zip(frames, owners, strict=True)
        ]
        owners = through if USER in through else owners
    if _is_users(error, frames, owners, user_paths, refusals):
        return None
    text = " ".join(str(error).split())
    told = type(error).__name__ + (f": {text}" if text else "")
    at, caller = (_last(frames, owners, owner) for owner in (ATTNPROOF, USER))
    where = [_place(at)] if at is not None else []
    if caller is not None:  # the user's line, which can be changed until the fault is fixed
        where.append(f"called from {_place(caller)}")
    return Fault(told + (f" ({'; '.join(where)})" if where else ""), traceback_of(error))


def raised_by_attnproof(error: BaseException) -> bool:
    """Whether attnproof raised an exception deliberately, and no code that it called.

    >>> raised_by_attnproof(ValueError("never raised"))
    False
    """
    frames = list(_frames(error.__traceback__))
    if not frames or _owner(frames[-1].tb_frame.f_code.co_filename, frozenset()) != ATTNPROOF:
        return False
    return _raised_explicitly(frames[-1])


def traceback_of(error: BaseException) -> str:
    """Return the traceback as Python prints it; only the end if it is long."""
    told = "".join(traceback.format_exception(error))
    return told if len(told) <= TRACEBACK_LENGTH else f"...\n{told[-TRACEBACK_LENGTH:]}"


def _is_users(
    error: Exception,
    frames: list[TracebackType],
    owners: list[str],
    user_paths: frozenset[str],
    refusals: tuple[type[BaseException], ...],
) -> bool:
    last = {one: place for place, one in enumerate(owners)}
    if ATTNPROOF not in last:
        return USER in last or isinstance(error, SyntaxError)
    if last.get(USER, -1) > last[ATTNPROOF]:
        return True
    if isinstance(error, SyntaxError) and _owner(error.filename or "", user_paths) == USER:
        return True  # no line of such a file has run
    innermost = frames[-1]
    if last[ATTNPROOF] != len(frames) - 1:
        return _rejects_arguments(error, innermost.tb_frame, user_paths)
    if not _raised_explicitly(innermost):
        return _rejects_arguments(error, innermost.tb_frame, user_paths)
    if isinstance(error, AssertionError):
        return False
    if error.__cause__ is not None and not _is_refusal(error, refusals):
        return isinstance(error.__cause__, Exception) and (
            fault_of(error.__cause__, user_paths, refusals) is None
        )
    return USER in last or _is_refusal(error, refusals)


def _rejects_arguments(error: Exception, frame: FrameType, user_paths: frozenset[str]) -> bool:
    """Whether a function of the user does not accept the arguments it was called with."""
    said = WRONG_ARGUMENTS.match(str(error)) if isinstance(error, TypeError) else None
    if said is None:
        return False
    name = said[1]
    for value in frame.f_locals.values():
        for one in (value, getattr(value, name.rpartition(".")[2], None)):
            code = getattr(unwrap(one), "__code__", None) if callable(one) else None
            if isinstance(code, CodeType) and code.co_qualname == name:
                return _owner(code.co_filename, user_paths) == USER
    return False


def _is_refusal(error: Exception, refusals: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception is of a type with which attnproof reports errors in its input."""
    return isinstance(error, refusals) or type(error).__module__.startswith("attnproof.")


def _raised_explicitly(innermost: TracebackType) -> bool:
    """Whether the error came from a ``raise`` statement."""
    code = innermost.tb_frame.f_code.co_code
    return 0 <= innermost.tb_lasti < len(code) and (
        code[innermost.tb_lasti] == opmap["RAISE_VARARGS"]
    )


def _forwards(innermost: TracebackType) -> bool:
    """Whether our tensors, or a mode of ours, passed a call on to torch, whose C code raised."""
    code = innermost.tb_frame.f_code
    called = code.co_code[innermost.tb_lasti] == opmap["CALL_FUNCTION_EX"]  # func(*args, **kwargs)
    return code.co_name in FORWARDING and called


def _last(frames: list[TracebackType], owners: list[str], owner: str) -> TracebackType | None:
    pairs = zip(reversed(frames), reversed(owners), strict=True)
    return next((frame for frame, whose in pairs if whose == owner), None)


def _frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


@lru_cache(maxsize=4096)
def _owner(file: str, user_paths: frozenset[str]) -> str:
    if file.startswith("<"):
        return LIBRARY if file.startswith(GENERATED) else USER
    path = Path(file).resolve()
    if str(path) in user_paths:
        return USER
    if any(path.is_relative_to(root) for root in ROOTS):
        return ATTNPROOF
    parts = path.parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            name = parts[parts.index(folder) + 1]
            return LIBRARY if name.removesuffix(".py") in LIBRARIES else USER
    return LIBRARY if path.is_relative_to(sysconfig.get_path("stdlib")) else USER


def _place(at: TracebackType) -> str:
    path = Path(at.tb_frame.f_code.co_filename).resolve()
    root = ROOTS[0].parent
    shown = path.relative_to(root) if path.is_relative_to(root) else path.name
    return f"{shown}, line {at.tb_lineno}"
