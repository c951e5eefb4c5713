r"""The LaTeX of what a statement is given: Q ∈ ℝ^{n×ℓ}, σ ∈ S_n, g ∈ O(ℓ)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..givens import Given
from .arrays import Printer
from .names import bracket, name_latex

__all__ = ["givens_latex", "membership", "sizes_latex"]

_REAL = r"\mathbb{R}"
_SETS = {
    "positive": r"\mathbb{R}_{>0}",
    "nonnegative": r"\mathbb{R}_{\ge 0}",
    "natural": r"\mathbb{N}",
    "boolean": r"\{\text{T}, \text{F}\}",
}


def membership(name: str, kind: str, shape: Iterable[str], below: str = "") -> str:
    r"""What a given is, as in Q ∈ ℝ^{n×ℓ} or σ ∈ S_n; axis lengths in LaTeX.

    >>> membership("c", "positive", [r"\ell"])
    'c \\in \\mathbb{R}_{>0}^{\\ell}'
    """
    letter, axes = name_latex(name), list(shape)
    if kind == "permutation":
        return rf"{letter} \in S_{{{axes[0]}}}"
    if kind == "orthogonal":
        return rf"{letter} \in \operatorname{{O}}({axes[0]})"
    if kind in ("injection", "index map"):
        arrow = r"\hookrightarrow" if kind == "injection" else r"\to"
        count = rf"\{{0, \dots, {axes[0]} - 1\}}"
        end = rf"\{{0, \dots, {below} - 1\}}" if below else r"\mathbb{N}"
        return rf"{letter} \colon\; {count} {arrow} {end}"
    if kind == "index":
        return rf"{letter} \in \{{0, \dots, {below} - 1\}}" if below else letter
    if kind == "function":
        return letter
    joined = r" \times ".join(axes[1:] if kind == "standard" else axes)
    power = f"^{{{joined}}}" if joined else ""
    if kind == "standard":
        return rf"{letter} \colon\; {axes[0]} \to \mathbb{{R}}{power}"
    return rf"{letter} \in {_SETS.get(kind, _REAL)}{power}"


def givens_latex(givens: Mapping[str, Given]) -> dict[str, str]:
    """What each given of a statement is, by name."""
    printer = Printer()
    told: dict[str, str] = {}
    for name, given in givens.items():
        below = printer(given.below) if given.below is not None else ""
        if given.kind == "function":
            dots = ", ".join(r"\cdot" for _ in given.core)
            told[name] = f"{name_latex(name)}{bracket(dots)}"
        else:
            told[name] = membership(name, given.kind, [printer(n) for n in given.shape], below)
    return told


def sizes_latex(names: Iterable[str]) -> str:
    """The quantified sizes: n, ℓ ≥ 1."""
    return ", ".join(name_latex(name) for name in names) + r" \ge 1"
