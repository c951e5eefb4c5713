"""What is asked of some code, as plain data; and what a test run says to its assertions."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

KINDS = ("rotary", "attention", "bias", "additive", "mask", "layer")
DTYPES = ("float64", "float32", "bfloat16", "float16")
METHODS = ("measured", "identity", "traced", "exact")
"""In the order they run: what is quick, and says most of wrong code, comes first.

Finite fields come last, and are not asked of a law that is proved and holds where it is measured.
"""
LIMIT = 60.0  # seconds that one law may take
IN_A_ROW = 3  # laws that come to no end, and none that does between them: then it is the code
SAME = "<the same "  # begins what is told of an object that no line makes again


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One target and how it is looked at; ``laws`` empty means all that its kind has.

    ``limit`` is in seconds: what one law may take by all methods.  ``call`` is its signature in
    axis letters, where that is told.  ``strict``: what is undecided does not pass.
    ``settings`` of its constructor, as ``hidden_size=64``.  ``card``: the laws of encodings are
    asked of its graph too.  ``known``: law, method and verdict of what a process before this one
    found of it; no law is asked twice by one method.  ``as_read``: the mask that it read, as it
    would be declared.

    >>> Asked(target="rope.py::rotate", kind="rotary", seed=3).again("norm")
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
    as_read: str = ""

    def again(self, law: str, dtype: str = "") -> str:
        """The command that shows one law again; the call, for code that has no name in a file."""
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
        """The same as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Asked:
        """What :meth:`text` wrote."""
        told = json.loads(text)
        lists = {name: tuple(told[name]) for name in ("laws", "dtypes", "methods", "settings")}
        known = tuple((law, method, verdict) for law, method, verdict in told["known"])
        return cls(**{**told, **lists, "known": known})


def settings_of(words: Iterable[str]) -> dict[str, Any]:
    """Settings of a constructor, as they are written; what is not a literal of Python is a text.

    ``config.width=8`` is a part of the argument ``config``.  Raises ``ValueError``.

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
    """Where inputs come from unless an assertion says otherwise; ``heard``: name, verdict."""

    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    heard: Callable[[str, str], None] | None = None


AT_WORK: ContextVar[Run] = ContextVar("attnproof_run", default=Run())  # noqa: B039 (it is frozen)
