"""Code of others is run: what it prints is kept; its faults, and ours, are told in a paragraph."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor

from attnproof.programs import no_adapter
from attnproof.programs.exact.checking import exact
from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.running import IDLE, CodeFault, in_a_line, limited
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import WANTS_DEVICE, NoAdapter, advice
from attnproof.programs.prove import prove
from attnproof.programs.reading.applicability import no_formula
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Rotary
from attnproof.real_code.loading import load
from attnproof.symbolic.faults import fault_of
from attnproof.theorems.laws import laws_of
from tests.front.code_files import write_code
from tests.front.planted import planted


def test_code_for_another_device_is_told_as_such() -> None:
    assert advice("Torch not compiled with CUDA enabled") == WANTS_DEVICE


@pytest.mark.parametrize(
    ("error", "package"),
    [
        ("flash_attn is not installed", "flash_attn"),
        ("please install flash-attn: `pip install flash-attn`", "flash_attn"),
        ("No module named 'xformers.ops'", "xformers"),
        ("kernels are written in triton", "triton"),
        ("No module named 'no_such_package'", "no_such_package"),
    ],
)
def test_a_package_that_is_not_installed_is_named_and_no_device(
    error: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(no_adapter, "_is", lambda name: name == "torch")
    text = advice(error)
    assert f"needs {package}, which is not installed" in text
    assert "was run without one" not in text


def test_an_assertion_without_a_text_is_told_by_its_line(tmp_path: Path) -> None:
    path = write_code(tmp_path, "def few(x):\n    assert x.dim() == 7\n")
    few = load(f"{path}::few").thing
    with pytest.raises(AssertionError) as raised:
        few(torch.zeros(1))
    assert in_a_line(raised.value) == "AssertionError: assert x.dim() == 7"
    assert in_a_line(ValueError("no")) == "ValueError: no"


def test_a_loop_that_does_not_end_is_stopped() -> None:
    def forever() -> NoReturn:
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.001)

    start = time.perf_counter()
    with pytest.raises(CodeFault, match=r"within 0\.05 s"), limited(0.05):
        forever()
    assert time.perf_counter() - start < 60


def test_work_is_counted_as_it_is_done() -> None:
    clock, start = time.perf_counter(), time.process_time()

    def work() -> None:
        while time.process_time() - start < 5:
            pass

    with pytest.raises(CodeFault), limited(0.1):
        work()
    worked, waited = time.process_time() - start, time.perf_counter() - clock
    assert worked < 1
    assert worked >= 0.1 or waited >= 0.1 * IDLE  # others may have the machine


def test_a_package_that_is_installed_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_adapter, "_is", lambda _: True)
    assert no_adapter.advice("triton: no such width") == ""
    assert no_adapter.advice("No module named 'torch.nothing'") == ""
    assert no_adapter.advice("flash_attn wants fp16 on a GPU") == no_adapter.WANTS_DEVICE


def test_a_name_that_is_none_in_a_file_tells_from_which_package_it_is(tmp_path: Path) -> None:
    file = tmp_path / "fast.py"
    file.write_text(
        "try:\n    from no_such_package import fast\nexcept ImportError:\n    fast = None\n\n\n"
        "def attention(x):\n    return fast(x)\n"
    )
    with pytest.raises(NoAdapter) as refused:
        adapted_as(load(f"{file}::attention").thing)
    told = str(refused.value)
    assert "fast is None in its file.  This code needs no_such_package" in told
    file = tmp_path / "slow.py"
    file.write_text("slow = None\n\n\ndef attention(x):\n    return x.nothing\n")
    with pytest.raises(NoAdapter) as refused:
        adapted_as(load(f"{file}::attention").thing)
    assert "is None in its file" not in str(refused.value)


def test_code_in_time_is_not_stopped_and_the_alarm_is_given_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with limited(5):
        with limited(5):
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_longer_limit_inside_neither_ends_nor_outlasts_the_outer_one() -> None:
    with limited(20):
        with limited(60):
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 20
        assert 10 < signal.getitimer(signal.ITIMER_REAL)[0] <= 20
    start = time.perf_counter()
    with pytest.raises(CodeFault, match=r"within 0\.05 s"), limited(0.05), limited(60):
        time.sleep(30)
    assert time.perf_counter() - start < 30


class Held:
    """What takes long to be thrown away, and whose errors Python ignores."""

    def __del__(self) -> None:
        while True:
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("where", ["in code that catches it", "in a finalizer"])
def test_an_alarm_that_came_to_nothing_is_followed_by_another(where: str) -> None:
    heard = []

    def forever() -> NoReturn:
        if where == "in a finalizer":
            Held()
        else:
            try:
                while True:
                    pass
            except BaseException as error:  # noqa: BLE001 (as code under test may)
                heard.append(type(error).__name__)
        while True:
            pass

    with pytest.raises(CodeFault, match=r"within 0\.05 s"), limited(0.05):
        forever()
    assert heard == ["_TooLong"] * (where != "in a finalizer")


def test_a_signal_that_was_lost_is_followed_by_another() -> None:
    with limited(5):
        assert signal.getitimer(signal.ITIMER_REAL)[1] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_block_that_ends_as_its_time_does_is_through_or_stopped() -> None:
    before, through = signal.getsignal(signal.SIGALRM), []
    for k in range(60):
        with contextlib.suppress(CodeFault), limited(60), limited(1e-4 * (1 + k % 20)):
            for _ in range(100 * (k % 20)):
                with limited(1e-4 * (1 + k % 20)):
                    pass
            through.append(k)
        assert signal.getsignal(signal.SIGALRM) is before
    assert through


def test_the_time_of_other_processes_is_not_counted() -> None:
    with limited(0.2):
        time.sleep(0.5)


def test_an_alarm_of_others_rings_in_time_and_stays_theirs() -> None:
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(time.perf_counter()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with limited(60):
            time.sleep(0.4)
            assert len(heard) == 1
        time.sleep(0.1)
        assert len(heard) == 1
        signal.setitimer(signal.ITIMER_REAL, 30)
        with limited(0.1):
            pass
        assert 20 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_there_is_no_limit() -> None:
    seen = []

    def work() -> None:
        with limited(0.01):
            time.sleep(0.05)
        seen.append("through")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["through"]


# a fault of attnproof, met while it is decided whether a law is asked, is told as ours


LAW = "rows-sum-to-one"
HOOK = "attnproof.programs.reading.applicability.no_softmax"


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    assert mask is None
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def subject() -> Attention:
    return Attention(name="plain", attend=attend, heads=2, groups=2, width=4)


METHODS: dict[str, Callable[[Attention], Any]] = {
    "measured": lambda code: examine(code, [Draw()], (LAW,))[0],
    "exact": lambda code: exact(code, (LAW,))[0],
    "traced": lambda code: next(f for f in prove(code, (LAW,)).findings if f.law == LAW),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("faults_told")
def test_a_fault_of_ours_is_an_internal_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert METHODS[method](subject()).verdict == "holds"
    monkeypatch.setattr(HOOK, planted("programs/reading/weights.py"))
    found = METHODS[method](subject())
    assert found.verdict == "internal error", found.why
    assert "KeyError: 'planted'" in found.why
    assert "programs/reading/weights.py" in found.traceback


def turned(fails: Callable[..., Any]) -> Rotary:
    """Rotary code, which does this where it is built with an odd width."""

    def made(width: int = 4) -> Rotary:
        def rotate(x: Tensor, positions: Tensor) -> Tensor:
            if width % 2:
                fails()
            angle = positions[..., None].to(x.dtype)[:, None] * torch.ones(width // 2)
            u, v = x.chunk(2, -1)
            turned = (u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos())
            return torch.cat(turned, -1)

        return Rotary(name="turned", rotate=rotate, width=width, make=made)

    return made()


def refusing(error: Exception) -> Callable[..., Any]:
    def fails() -> None:
        raise error

    return fails


@pytest.mark.parametrize(
    ("fails", "verdict", "told"),
    [
        (refusing(ValueError("even widths")), "holds", "refused at the call: ValueError: even"),
        (refusing(SignatureError("wanted 5")), "undecided", "call does not fit: wanted 5"),
        (planted("programs/calls/rotary.py"), "internal error", "KeyError: 'planted'"),
    ],
)
def test_an_odd_width_is_refused_by_the_code_and_not_by_us(
    fails: Callable[..., Any], verdict: str, told: str
) -> None:
    (found,) = examine(turned(fails), [Draw()], ("odd-widths",))
    assert (found.verdict, told in found.why) == (verdict, True), found.why


def test_what_the_code_raises_says_nothing_against_asking() -> None:
    def fails(*_: Tensor) -> Tensor:
        raise ValueError("this code takes no such thing")

    code = Attention(name="fails", attend=fails, heads=2, groups=2, width=4)
    (formula, *_) = (
        f
        for law in laws_of("attention")
        if law.id == LAW
        for f in law.formulas
        if f.kind == "attention"
    )
    assert no_formula(formula, code) == ""


class OfTwo(torch.nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q.flip(-1), k.flip(-1)


def test_a_module_that_misses_an_argument_refuses_the_call() -> None:
    with pytest.raises(SignatureError, match=r"it raised TypeError: OfTwo\.forward\(\) missing 1"):
        adapted_as(OfTwo, "q: B H n D -> q", kind="rotary")


def test_a_module_of_ours_that_misses_an_argument_is_a_fault_of_ours() -> None:
    made = OfTwo()
    space: dict[str, Any] = {}
    exec(compile("def takes(x): ...", no_adapter.__file__, "exec"), space)
    for forward, theirs in ((made.forward, True), (space["takes"], False)):
        vars(made)["forward"] = forward
        exec(compile("def calls(made): made()", no_adapter.__file__, "exec"), space)
        with pytest.raises(TypeError) as caught:
            space["calls"](made)
        assert (fault_of(caught.value) is None) == theirs
