"""Files of code and of encodings, right and wrong; and methods whose findings a test sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from attnproof.programs.finding import Counterexample, Finding, Identity, Part

CODE = '''
import ctypes
import os
import sys
import time

import torch

print("the file is read")


def angles(positions, width):
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return positions[:, None, :, None].to(torch.float64) * frequencies


def rope(x, position_ids):
    """Half-split, in float64."""
    a = angles(position_ids, x.shape[-1])
    u, v = x.to(torch.float64).chunk(2, -1)
    return torch.cat((u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()), -1).to(x.dtype)


def rope_sign(x, position_ids):
    """One sign is wrong: lengths change."""
    a = angles(position_ids, x.shape[-1])
    u, v = x.to(torch.float64).chunk(2, -1)
    return torch.cat((u * a.cos() - v * a.sin(), v * a.cos() - u * a.sin()), -1).to(x.dtype)


def once(bad):
    """Rotary code that does something bad from its second call on: it can still be adapted."""
    def rope_bad(x, position_ids):
        if "LATE" in os.environ:
            bad(x)
        return rope(x, position_ids)
    return rope_bad


def forever(x):
    while True:
        pass


rope_forever = once(forever)
rope_exits = once(lambda x: os._exit(7))
rope_crashes = once(lambda x: ctypes.string_at(0))
rope_leaves = once(lambda x: sys.exit(3))
rope_prints = once(lambda x: print("a line of the code " * 3))
rope_mutates = once(lambda x: x.mul_(2))


def rope_raises(x, position_ids):
    raise RuntimeError("Found no NVIDIA driver on your system")


def takes_nothing_known(alpha, beta, gamma, delta, epsilon):
    return None


def rope_shape(x, position_ids):
    return rope(x, position_ids)[..., :1, :]


def rope_nan(x, position_ids):
    return rope(x, position_ids) * float("nan")


number = 3


class Holder:
    rope = staticmethod(rope)
'''


def write_code(folder: Path, text: str = CODE, name: str = "code_under_test") -> Path:
    """Write a file of code and give its path."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


BROKEN = Counterexample(
    {"x": [1.0, 2.0], "position": 1}, ("length before", 2.236), ("length after", 3.5), 1.264, 1e-6
)


ROTARY = Identity("rotary", (Part("base", 1e4, "base 10000", "fitted"),), ("yes",))


@dataclass
class FakeTraced:
    """What the traced method hands over."""

    findings: tuple[Finding, ...] = ()
    operations: int = 12
    guards: tuple[str, ...] = ("T >= 2",)
    unread: tuple[str, ...] = ("aten.unknown",)
    why: str = ""


@dataclass
class Methods:
    """Methods that find what a test sets, law by law, or do what it says."""

    measured: dict[str, Any] = field(default_factory=dict)
    exact: dict[str, Any] = field(default_factory=dict)
    traced: dict[str, Any] = field(default_factory=dict)
    identity: Any = ROTARY
    asked: list[tuple[str, str]] = field(default_factory=list)

    def examine(
        self, subject: Any, draws: Iterable[Any] = (), laws: Collection[str] = (), tell: Any = None
    ) -> tuple[Finding, ...]:
        del subject, tell
        return tuple(
            found
            for draw in draws
            for law in laws
            for found in self._of(
                "measured", law, seed=draw.seed, dtype=str(draw.dtype).removeprefix("torch.")
            )
        )

    def of_fields(
        self, subject: Any, laws: Collection[str] = (), seed: int = 0, *, named: bool = True
    ) -> tuple[Finding, ...]:
        del subject, named
        return tuple(found for law in laws for found in self._of("exact", law, seed=seed))

    def prove(
        self,
        subject: Any,
        laws: Collection[str] = (),
        tell: Callable[[Finding], None] = print,
        seconds: float = 10.0,
        begin: Callable[[str], None] = print,
        part: int = 0,
    ) -> FakeTraced:
        del subject, seconds, begin, part
        found = tuple(one for law in laws for one in self._of("traced", law))
        for one in found[:-1]:  # the last one is told at the end only
            tell(one)
        return FakeTraced(found)

    def identify(self, subject: Any, draw: Any = None) -> Identity:
        del subject, draw
        if isinstance(self.identity, BaseException):
            raise self.identity
        found: Identity = self.identity
        return found

    def _of(self, method: str, law: str, **more: Any) -> list[Finding]:
        self.asked.append((method, law))
        told = getattr(self, method).get(law, getattr(self, method).get("*"))
        if told is None:
            return []
        if isinstance(told, BaseException):
            raise told
        if told == "broken":
            longer = "a vector became longer"
            return [Finding(law, method, "broken", longer, 1.264, 1e-6, BROKEN, **more)]
        return [Finding(law, method, told, f"{told} on {method}", 1e-7, 1e-6, **more)]


def set_methods(monkeypatch: pytest.MonkeyPatch) -> Methods:
    """Put these methods in place of the real ones."""
    methods = Methods()
    places: dict[str, dict[str, Callable[..., Any]]] = {
        "measure.examine": {"examine": methods.examine},
        "exact": {"exact": methods.of_fields},
        "prove": {"prove": methods.prove, "parts_of": lambda *_: 1},
        "identify": {"identify": methods.identify},
    }
    for name, functions in places.items():
        module = ModuleType(f"attnproof.programs.{name}")
        spec = find_spec(module.__name__)
        assert spec is not None
        module.__path__ = list(spec.submodule_search_locations or ())  # what stands in it stays
        vars(module).update(functions)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return methods


# Scores fall with the distance: even and relative are proved, the envelope under a hypothesis.
SMALL = '''"""A small encoding."""

from attnproof import Encoding, at_least, hypothesis, real


class Nearer(Encoding):
    """slope·(m − n)² is added to the score."""

    title = "nearer"
    source = ("a test, https://example.org/nearer",)
    given = {"slope": real()}
    defaults = {"slope": -0.5}

    def bias(self, m, n):
        return self.slope * (m - n) ** 2

    @hypothesis("the slope is at most 0")
    def slope_not_positive(self):
        return [at_least(-self.slope, 0)]
'''

# The same with one line that is wrong in each of three ways.
RAISES = SMALL.replace("return self.slope *", "return 1 // 0 * self.slope *")
NOT_EVEN = SMALL.replace("(m - n) ** 2", "(m - n)")
NOT_MADE = SMALL.replace(
    "    def bias", "    def __init__(self):\n        raise SystemExit('no')\n\n    def bias"
)

# What is asked of it where all laws would take long.
LAWS = ["relative", "even", "odd", "falls-with-distance"]


def write(folder: Path, text: str = SMALL, name: str = "nearer") -> Path:
    """Write NAME.py and give its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path
