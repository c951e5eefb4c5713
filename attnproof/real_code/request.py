"""The request to check code, validated in one place for all callers; and results as plain data."""

from __future__ import annotations

import ast
import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import UsageError, require_device, require_known

MAX_LENGTH = (
    4096  # characters of a text, entries of a list: a witness should be small enough to read
)
MAX_DEPTH = 8


def plain(value: Any, deep: int = 0) -> Any:
    """Return a value as None, bool, number, text, list or dictionary; NaN and infinities as words.

    Arrays become nested lists; anything else becomes its text.

    >>> plain({"x": (1, float("nan")), 2: {0.5}})
    {'x': [1, 'nan'], '2': '{0.5}'}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return readable(value)[:MAX_LENGTH]
    if deep < MAX_DEPTH:
        if isinstance(value, Mapping):
            return {
                readable(str(k)): plain(v, deep + 1) for k, v in list(value.items())[:MAX_LENGTH]
            }
        if isinstance(value, list | tuple):
            return [plain(v, deep + 1) for v in value[:MAX_LENGTH]]
        if hasattr(value, "tolist") and getattr(value, "size", None) is not None:
            return plain(_listed(value), deep + 1)
    return readable(_text(value))[:MAX_LENGTH]


def number(value: Any) -> float | str | None:
    """Return a number of a finding: None, a finite float, or the word non-finite.

    >>> number(2), number(float("inf")), number(None)
    (2.0, 'non-finite', None)
    """
    if value is None or isinstance(value, str):
        return value
    real = float(value)
    return real if math.isfinite(real) else "non-finite"


def readable(text: str) -> str:
    r"""Return the text without characters that would control a terminal.

    >>> readable("a\x1b[31mb\tc")
    'a?[31mb c'
    """
    kept = text.expandtabs(1) if "\t" in text else text
    return "".join(c if c == "\n" or c.isprintable() else "?" for c in kept)


def one_line(text: str, most: int = 400) -> str:
    r"""Return the text on one line, cut if it is long.

    >>> one_line("two\nlines")
    'two lines'
    """
    line = readable(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 2] + " …"


def raised(error: BaseException) -> str:
    """Describe in one line what code raised; ``sys.exit`` is described as such.

    >>> raised(ValueError("no")), raised(SystemExit(3))
    ('the code raised ValueError: no', 'the code left by sys.exit(3)')
    """
    if isinstance(error, SystemExit):
        return f"the code left by sys.exit({'' if error.code is None else error.code!r})"
    told = one_line(_text(error))
    return f"the code raised {type(error).__name__}" + (f": {told}" if told else "")


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 (any code may raise anything)
        return f"<{type(value).__name__} whose text raised {type(error).__name__}>"


def _listed(array: Any) -> Any:
    try:
        return array.tolist()
    except Exception:  # noqa: BLE001 (a tensor of a strange kind; its text must do)
        return _text(array)


KINDS = ("rotary", "attention", "bias", "additive", "mask", "layer")
DTYPES = ("float64", "float32", "bfloat16", "float16")
METHODS = ("measured", "identity", "traced", "exact")
"""In the order in which they run: fast ones that reveal most faults first.

Finite fields come last, and are skipped for a law that is proved and holds where it is measured.
"""
LIMIT = 60.0  # seconds that one law may take
IN_A_ROW = 3  # consecutive laws that do not finish, after which the code is blamed
SAME = "<the same "  # prefix for an object that no line of source recreates


@dataclass(frozen=True, kw_only=True)
class CodeRequest:
    """One target and how to check it; empty ``laws`` means all laws of its kind.

    ``limit``: seconds that one law may take by all methods.  ``call``: the signature in axis
    letters, if it was given.  ``strict``: undecided laws do not pass.  ``settings``: arguments of
    its constructor, such as ``hidden_size=64``.  ``card``: also check the laws of encodings on its
    graph.  ``known``: law, method and verdict of each finding of a previous process; no method
    examines a law twice.  ``lengthened``: laws that it examined at more tokens.  ``as_read``: the
    mask that it read, in the notation of a declaration.

    >>> CodeRequest(target="rope.py::rotate", kind="rotary", seed=3).again("norm")
    'attnproof check rope.py::rotate --as rotary --law norm --seed 3'
    """

    target: str
    kind: str = ""
    declared: str = ""
    laws: tuple[str, ...] = ()
    seed: int = 0
    dtypes: tuple[str, ...] = ("float32",)
    device: str = "cpu"
    methods: tuple[str, ...] = METHODS
    limit: float = LIMIT
    call: str = ""
    strict: bool = False
    settings: tuple[str, ...] = ()
    card: bool = False
    known: tuple[tuple[str, str, str], ...] = ()
    lengthened: tuple[str, ...] = ()
    as_read: str = ""

    def again(self, law: str, dtype: str = "") -> str:
        """Return the command that repeats one law; a call if the code has no name in a file."""
        if self.target.startswith("<"):
            more = f", declared={self.declared!r}" if self.declared else ""
            more += ", strict=True" * self.strict
            name = "equivariant" if self.kind == "layer" else self.kind
            function = f"testing.check_{name}" if name else "check"
            kind, where = dtype or self.dtypes[0], f", device={self.device!r}"
            code = self.target if self.target.startswith(SAME) else self.target[1:-1]
            return (
                f"attnproof.{function}({code}, laws=[{law!r}]{more}, "
                f"seed={self.seed}, dtype={kind!r}{where if self.device != 'cpu' else ''})"
            )
        words = ["attnproof", "check", self.target]
        words += ["--as", self.kind] * bool(self.kind)
        words += ["--declare", self.declared] * bool(self.declared)
        words += ["--call", self.call] * bool(self.call)
        for setting in self.settings:
            words += ["--set", setting]
        words += ["--law", law, "--seed", str(self.seed)]
        words += ["--dtype", dtype] * (dtype not in ("", "float32"))
        words += ["--device", self.device] * (self.device != "cpu")
        words += ["--strict"] * self.strict
        words += ["--limit", f"{self.limit:g}"] * (self.limit != LIMIT)
        return shlex.join(words)

    def text(self) -> str:
        """Return the request as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> CodeRequest:
        """Return the request that :meth:`text` wrote."""
        told = json.loads(text)
        names = ("laws", "dtypes", "methods", "settings", "lengthened")
        lists = {name: tuple(told[name]) for name in names}
        known = tuple((law, method, verdict) for law, method, verdict in told["known"])
        return cls(**{**told, **lists, "known": known})


def settings_of(words: Iterable[str]) -> dict[str, Any]:
    """Return constructor settings from their text; what is not a Python literal stays text.

    ``config.width=8`` sets a part of the argument ``config``.  Raises ``ValueError``.

    >>> settings_of(["heads=4", "sizes=(4, 4)", "kind=causal", "bias=False"])
    {'heads': 4, 'sizes': (4, 4), 'kind': 'causal', 'bias': False}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, has, text = word.partition("=")
        if not (has and all(part.isidentifier() for part in name.split("."))):
            raise ValueError(f"wanted a setting NAME=VALUE, such as hidden_size=64, got {word!r}")
        if name in found:
            raise ValueError(f"wanted each setting once, got {name} twice")
        try:
            found[name] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = text
    return found


@dataclass(frozen=True)
class Run:
    """Defaults for drawing inputs; ``report`` is called with the name and verdict of each law."""

    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    report: Callable[[str, str], None] | None = None


AT_WORK: ContextVar[Run] = ContextVar("attnproof_run", default=Run())  # noqa: B039 (it is frozen)


def code_request(
    target: str,
    *,
    kind: str = "",
    declared: str = "",
    call: str = "",
    seed: Any = None,
    dtypes: Iterable[Any] = (),
    device: Any = "",
    methods: str | Iterable[str] = METHODS,
    **more: Any,
) -> CodeRequest:
    """Return a validated request, for a command, a test or a notebook.

    Seed, dtypes and device default to those of the test run; ``more`` are further fields of
    :class:`CodeRequest`.  Raises ``ValueError`` for an unknown kind, dtype, device or method, or an
    invalid seed, declaration or call.
    """
    run = AT_WORK.get()
    seed = run.seed if seed is None else seed
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"wanted a seed, an integer of at least 0, got {seed!r}")
    names = [str(one or run.dtype).removeprefix("torch.") for one in dtypes] or [run.dtype]
    for name, one in zip(names, dtypes or names, strict=True):
        if name not in DTYPES:
            told = f"wanted a dtype to draw inputs in, got {one!r}; {', '.join(DTYPES)}"
            raise UsageError(told)
    device = str(device or run.device)
    require_device(device)
    require_known([kind] * bool(kind), KINDS, "a kind of code", ", ".join(KINDS))
    named = (methods,) if isinstance(methods, str) else tuple(methods)
    for name in named:
        if name not in METHODS:
            raise UsageError(f"wanted a method, got {name!r}; {', '.join(METHODS)}")
    if declared:
        _require_declared(declared, kind)
    if call:
        from ..programs.signatures.grammar import parse

        _ = parse(call)
    return CodeRequest(
        target=target,
        kind=kind,
        declared=declared,
        call=call,
        seed=seed,
        dtypes=tuple(dict.fromkeys(names)),
        device=device,
        methods=tuple(method for method in METHODS if method in named),
        **more,
    )


def _require_declared(declared: str, kind: str) -> None:
    from ..programs.declarations import declares, parse

    _ = parse(declared)
    if kind not in ("", *(of := declares(declared))):
        raise UsageError(
            f"wanted what is declared of {kind} code, got {declared!r}, which is declared of "
            f"{' or '.join(of)} code"
        )
