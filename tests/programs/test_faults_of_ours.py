"""A fault of attnproof, met while it is decided whether a law is asked, is told as ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.draw import Draw
from attnproof.programs.exact.asking import exact
from attnproof.programs.identify.applicability import no_formula
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.signature import SignatureError
from attnproof.programs.subjects import Attention, Rotary
from attnproof.theorems.laws import laws_of
from tests.front.planted import planted

LAW = "rows-sum-to-one"
HOOK = "attnproof.programs.identify.applicability.no_softmax"


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
def test_a_fault_of_ours_is_an_internal_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert METHODS[method](subject()).verdict == "holds"
    monkeypatch.setattr(HOOK, planted("programs/identify/weights.py"))
    found = METHODS[method](subject())
    assert found.verdict == "internal error", found.why
    assert "KeyError: 'planted'" in found.why
    assert "programs/identify/weights.py" in found.traceback


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
        (refusing(SignatureError("wanted 5")), "undecided", "call of it does not fit: wanted 5"),
        (planted("programs/rotary.py"), "internal error", "KeyError: 'planted'"),
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
