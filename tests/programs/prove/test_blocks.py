"""Code of which a part or a value was not traced, or that is answered alike in each run."""

from __future__ import annotations

import functools
import logging
import operator
import threading
from array import array
from collections.abc import Callable
from importlib.metadata import version
from string import Template
from typing import Any, Self

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Attention

from .test_branches import of_layer, told

pytestmark = pytest.mark.usefixtures("fewer_lengths")
SECONDS = 3.0
FAR = 70_000  # tokens that are never run
is_kind = isinstance
threads = torch.get_num_threads
LOG = logging.getLogger(__name__)


def late(x: Tensor) -> Tensor:
    """The same for fewer tokens, and nothing in it is compared."""
    return 2 * x.roll(max(0, x.shape[1] - FAR), 1)


def with_gradients(x: Tensor) -> Tensor:
    return late(x) if x.requires_grad else 2 * x


def loop(x: Tensor) -> Tensor:
    if not x.is_contiguous():
        for _ in range(FAR, x.shape[1]):
            x = x.cumsum(1)
    return 2 * x


def slice_of(x: Tensor) -> Tensor:
    more = torch.is_grad_enabled() and x[:, FAR:].sum(1, keepdim=True)
    return 2 * x + more


def other_name(x: Tensor) -> Tensor:
    return late(x) if is_kind(x.shape[1], int) else 2 * x


def text_of(x: Tensor) -> Tensor:
    return late(x) if repr(x.shape)[12:].find("s") < 0 else 2 * x


def kind_by_map(x: Tensor) -> Tensor:
    (kind,) = map(type, x[:, 0, 0].shape)
    found: dict[bool, Callable[[Tensor], Tensor]] = {True: late, False: lambda y: 2 * y}
    return found[kind is int](x)


class Quiet:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> bool:
        return True


def after_an_error(x: Tensor) -> Tensor:
    more = 0
    with Quiet():
        n = int.__add__(x.shape[1], 0)  # no int while it is traced
        more = max(0, n - FAR)
    return 2 * x.roll(more, 1)


def turned(x: Tensor, times: object) -> Tensor:
    """The same for fewer tokens, or none of these times."""
    return 2 * x.roll(int(times) * (x.shape[1] // FAR), 1)  # type: ignore[call-overload]


def comprehended(x: Tensor) -> Tensor:
    later = [x[:, FAR:].sum(1, keepdim=True) for _ in range(x.requires_grad)]
    return sum(later, 2 * x)


def of_a_map(x: Tensor) -> Tensor:
    """At one token this is an int while it is traced as well, and nowhere else."""
    kind = list(map(type, x.shape))[1]
    if kind is int:
        x = x.roll(max(0, x.shape[1] - FAR), 1)
    return 2 * x


def text_in_a_list(x: Tensor) -> Tensor:
    return 2 * x.roll(max(0, len(str([x.shape[1]])) - 7), 1)


def text_of_a_template(x: Tensor) -> Tensor:
    return 2 * x.roll(max(0, len(Template("$n").substitute(n=x.shape[1])) - 5), 1)


CALLS, COUNTED = np.zeros(1, dtype=np.int64), array("q", [0])


def counted(x: Tensor) -> Tensor:
    """It counts where nobody looks for numbers."""
    CALLS[0] += 1
    return 2 * x.roll(CALLS[0] // 10**6, 1)


def counted_in_bytes(x: Tensor) -> Tensor:
    COUNTED[0] += 1
    return 2 * x.roll(COUNTED[0] // 10**6, 1)


@functools.lru_cache
def nothing(_: int) -> None:
    pass


def counted_by_a_cache(x: Tensor) -> Tensor:
    nothing(0)
    return 2 * x.roll(nothing.cache_info().hits // 10**6, 1)


class Hooked(nn.Module):
    """A layer before which something runs, with gradients wanted, that is no block of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.linear.register_forward_pre_hook(lambda _, xs: turned(xs[0], xs[0].requires_grad))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x * 1)  # type: ignore[no-any-return]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def not_compiled(x: Tensor) -> Tensor:
    return with_gradients(x)


def scripted(x: Tensor) -> Tensor:
    if x.requires_grad:
        return 2 * x.roll(x.size(1) // 70000, 1)
    return 2 * x


class Marked(Tensor):
    pass


def unwritten(source: str) -> Any:
    """Return a function that has no source."""
    return eval(source, {"gt": operator.gt, "is_kind": is_kind, "FAR": FAR})


class Waiting(nn.Module):
    """It holds a clock, which no global name leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = threading.Event()

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1) if self.clock.is_set() else 2 * x


class Trained(nn.Module):
    """It is another function once it was trained, in evaluation too."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.steps += 1
        return x.cumsum(1) if self.steps else 2 * x


class Switched(Trained):
    def train(self, mode: bool = True) -> Self:
        self.late = mode or getattr(self, "late", False)
        return super().train(mode)

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1) if self.late else 2 * x


KIND_AND_LENGTH = unwritten("lambda n: is_kind(n, int) and gt(n, FAR)")
TEXT_OF_A_LENGTH = unwritten("lambda n: str(n).__eq__('70001')")
LINES: tuple[Any, ...] = (lambda n: is_kind(n, int) and operator.gt(n, FAR), lambda n: n)
KNOWN: set[int] = set()
HELD = torch.zeros(())
UNTRACED = "ran untraced"
NONE = "`<lambda>`, whose source was not found"
OTHER = "values of `"
CONDITIONS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "gradients": (with_gradients, UNTRACED),
    "a loop": (loop, UNTRACED),
    "a slice": (slice_of, UNTRACED),
    "another name": (other_name, UNTRACED),
    "a text": (text_of, UNTRACED),
    "a kind": (kind_by_map, UNTRACED),
    "an error": (after_an_error, UNTRACED),
    "a comprehension": (comprehended, UNTRACED),
    "whether gradients are wanted": (lambda x: turned(x, x.requires_grad), f"{OTHER}x.requires_g"),
    "whether they are enabled": (lambda x: turned(x, torch.is_grad_enabled()), f"{OTHER}torch.is_"),
    "how it lies in memory": (lambda x: turned(x, x.stride(2) - 1), f"{OTHER}x.stride(2)"),
    "how often it was written to": (lambda x: turned(x, x._version), f"{OTHER}x._version"),
    "what it is a part of": (lambda x: turned(x, x._base is not None), f"{OTHER}x._base"),
    "a hook": (Hooked(), OTHER),
    "what torch does not compile": (not_compiled, UNTRACED),
    "a kind, computed with": (lambda x: turned(x, is_kind(x.shape[1], int)), f"{OTHER}is_kind(x.s"),
    "a text of a list": (text_in_a_list, f"{OTHER}str([x.shape[1]])"),
    "a text that a library makes": (text_of_a_template, f"{OTHER}Template("),
    "a count in an array": (counted, f"{OTHER}CALLS[0]"),
    "a count in bytes": (counted_in_bytes, f"{OTHER}COUNTED[0]"),
    "a count of what is kept": (counted_by_a_cache, f"{OTHER}nothing.cache_info().hits"),
    "a method": (lambda x: x.cumsum(1) if x.is_neg() else x, "`x.is_neg()` is false"),
    "an attribute": (lambda x: x.cumsum(1) if x._backward_hooks else x, "`x._backward_hooks` is"),
    "a setting": (
        lambda x: x.cumsum(1) if torch.distributed.is_initialized() else x,
        "`torch.distributed.is_initialized()` is false",
    ),
    "a subclass": (lambda x: x.cumsum(1) if isinstance(x, Marked) else x, "`isinstance(x, Marked)"),
    "names of it": (lambda x: x.cumsum(1) if "flag" in dir(x) else x, "`dir(x)` returns"),
    "the rest of a test": (
        lambda x: x.cumsum(1) if x.requires_grad and operator.gt(x.shape[1], FAR) else x,
        UNTRACED,
    ),
    "a value in a test": (
        lambda x: (
            x.cumsum(1) if operator.gt(x.shape[1], FAR + 10**9 * (not x.requires_grad)) else x
        ),
        f"{OTHER}x.requires_grad",
    ),
    "what a text is asked": (
        lambda x: x.cumsum(1) if "".join(map(str, [x.shape[1]])).startswith("70001") else x,
        "join(map(str, [x.shape[1]]))` that did not",
    ),
    "a kind, without source": (lambda x: x.cumsum(1) if KIND_AND_LENGTH(x.shape[1]) else x, NONE),
    "a text, without source": (lambda x: x.cumsum(1) if TEXT_OF_A_LENGTH(x.shape[1]) else x, NONE),
    "two functions in a line": (lambda x: x.cumsum(1) if LINES[0](x.shape[1]) else x, NONE),
    "what it holds": (Waiting(), "the code reads the same from `Event`"),
    "what training sets": (Trained().eval(), "the attribute steps keeps its value, 0"),
    "what train sets": (Switched().train(mode=False), "the attribute late keeps its value, False"),
    "a number it holds": (
        lambda x: x.cumsum(1) if HELD.item() else x,
        "a tensor () that the code holds keeps its value, 0.0",
    ),
    "a version": (lambda x: x.cumsum(1) if version("torch") == "9" else x, "from `version`"),
    "a level of logging": (lambda x: x.cumsum(1) if LOG.isEnabledFor(3) else x, "`isEnabledFor`"),
    "another name of a setting": (lambda x: x.cumsum(1) if threads() > 999 else x, "`threads`"),
    "nothing": (lambda x: x.cumsum(1) if id(x) in KNOWN else x, "`id(x) in KNOWN` finds nothing"),
}


RETURNED = unwritten("lambda n: n")


def test_what_returns_its_argument_needs_no_condition() -> None:
    finding = of_layer(lambda x: x * RETURNED(2))
    assert finding.verdict == "holds", finding.why
    assert not [one.text for one in finding.assuming if "source" in one.text]


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_no_graph_is_of_is_a_condition(name: str) -> None:
    code, condition = CONDITIONS[name]
    finding = of_layer(code)
    assert finding.verdict == "holds", finding.why
    assert condition in told(finding)


@pytest.mark.usefixtures("lengths_of_one")
def test_what_runs_at_one_token_is_traced_there_alone() -> None:
    finding = of_layer(of_a_map)
    assert finding.verdict == "holds", finding.why
    assert UNTRACED in told(finding)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_what_torch_script_asks_is_a_condition() -> None:
    script = torch.jit.script(scripted)
    finding = of_layer(lambda x: script(x) * 1)
    assert finding.verdict == "holds", finding.why
    assert "queries by `scripted`, run by TorchScript, are answered" in told(finding)


def of_attention(same: Callable[[Tensor, Tensor, Tensor], bool]) -> Finding:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: object = None) -> Tensor:
        k = k.cumsum(2) if same(q, k, v) else k
        return torch.softmax(q @ k.mT, -1) @ v

    subject = Attention(name="a", attend=attend, heads=2, groups=2, width=4)
    (found,) = prove(subject, ("order-of-keys",), seconds=SECONDS).findings
    return found


def test_parts_of_one_array_are_a_condition() -> None:
    finding = of_attention(lambda q, k, _: q._base is not None and q._base is k._base)
    assert finding.verdict == "holds", finding.why
    assert "`q._base is k._base` is false" in told(finding)


def test_keys_may_be_values_while_queries_are_others() -> None:
    finding = of_attention(lambda q, k, v: k is v and q is not k and q.shape == k.shape)
    assert finding.verdict == "undecided"
    assert "one array for all inputs of its shape but the first" in finding.why


def test_queries_may_be_keys_while_values_are_others() -> None:
    finding = of_attention(lambda q, k, v: q is k and k is not v)
    assert finding.verdict == "undecided"
    assert "one array for all inputs of its shape but the last" in finding.why


def test_queries_may_be_values_while_keys_are_others() -> None:
    finding = of_attention(lambda q, k, v: q is v and k is not v)
    assert finding.verdict == "undecided"
    assert "one array for all inputs of its shape but the second" in finding.why


class Settings:
    """What is asked of it is code of its own, as that of a configuration of transformers."""

    times = 2

    def __getattribute__(self, key: str) -> int:
        return object.__getattribute__(self, "times" if key == "twice" else key)  # type: ignore[no-any-return]


SETTINGS = Settings()


class Correct(nn.Module):
    """What it asks turns out in both ways, or a graph is of it; what runs besides only copies."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.detach() if x.requires_grad else x
        if not y.is_contiguous():
            y = y.contiguous()
        if x.dtype is torch.float16 or not x.is_floating_point() or not torch.is_tensor(x):
            raise ValueError
        (heads, width), rest = divmod(x.shape[-1], 3), {"n": x.shape[1], "dim": x.ndim}
        rows = [x.new_zeros(1) * k for k in range(heads) if x.shape[k] > 0]
        match x.dim():
            case 3:
                scale = width / 1
            case _:
                scale = 2.0
        y = y * scale + sum(rows[:1]) * rest["n"] * (x.shape[0] == x.shape[0])
        asked = SETTINGS
        y = y * asked.twice
        return 2 * y if not self.training and x.dim() == 3 else y


def test_copies_are_no_condition() -> None:
    finding = of_layer(Correct().eval())
    assert finding.verdict == "holds", finding.why
    assert "every run" not in told(finding)
