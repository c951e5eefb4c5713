"""Words of a record as a person reads them: real indices, one sign for <=, links."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "psi": "ψ", "omega": "ω", "ell": "ℓ",
}  # fmt: skip
_SIGNS = (
    ("<=", "≤"), (">=", "≥"), ("!=", "≠"), (" -> ", " → "), ("``", ""),
)  # fmt: skip
# A lower index, of one letter or in braces, of one letter or of a name with a capital: x_i, QW_Q,
# A_ij, Att_α, f(x)_{ij}; so a_name stays a name.  An upper one of anything: ℝ^{n×d}, M^j, 10^−4.
_LOW = r"(?:(?P<base>(?<![A-Za-z_])(?:[A-Z][A-Za-z]*|\w))|(?<=[)\]}′\u0304]))_"
_INDEX = r"(?:\{[^{}]*\}|(?:[^\W_]|[ijkmn]{2})(?![A-Za-z0-9_]))"
_HIGH = r"(?<=[\w)\]}′'‖|])\^(?P<high>\{[^{}]*\}|\([^()]*\)|[−-]?\d+|\w)"
_BOTH = re.compile(rf"{_LOW}(?P<low>{_INDEX})(?:\^(?P<also>{_INDEX}))?|{_HIGH}")


def prose(text: str) -> Markup:
    """Words in which u_i, W_Q^h, R_{n−m} and ℝ^{n×d} have real indices.

    >>> prose("x_i ∈ ℝ^{d}, i <= n, a_name")
    Markup('x<sub>i</sub> ∈ ℝ<sup>d</sup>, i ≤ n, a_name')
    """
    for sign, becomes in _SIGNS:
        text = text.replace(sign, becomes)
    text = re.sub(r"(?<![.\w])\.\.(?!\.)", "…", text)
    text = re.sub(r"(?<=[\w)\]}])ᵀ", "^{T}", text).replace("ᵀ", "T")
    return _indexed(text)


def _indexed(text: str) -> Markup:
    told, done = Markup(""), 0
    for found in _BOTH.finditer(text):
        told += escape(text[done : found.start()] + (found["base"] or ""))
        for name, tag in (("low", "sub"), ("also", "sup"), ("high", "sup")):
            if found[name]:
                told += Markup(f"<{tag}>{{}}</{tag}>").format(_indexed(_inner(found[name])))
        done = found.end()
    return told + escape(text[done:])


def _inner(index: str) -> str:
    return index[1:-1] if index[0] in "{(" else index


def paragraphs(text: str) -> list[Markup]:
    """Words cut at empty lines; other line ends are spaces."""
    return [prose(" ".join(part.split())) for part in re.split(r"\n\s*\n", text) if part.strip()]


def minus(text: str) -> str:
    """A hyphen that stands for a minus, as a minus."""
    return re.sub(r"(?<![\w)])-(?=\d)|(?<= )-(?= )", "−", text)


def greek(told: Iterable[str]) -> list[str]:
    """Lines, each once, with Greek letters for Greek names."""
    words = r"\b(" + "|".join(_GREEK) + r")\b"
    return [re.sub(words, lambda m: _GREEK[m.group()], a) for a in dict.fromkeys(told)]


def linked(text: str) -> Markup:
    """Text in which an address of the web is a link."""
    parts = re.split(r"(https?://[^\s<>\"']+)", text)
    return Markup("").join(
        Markup('<a href="{0}">{0}</a>').format(part) if k % 2 else escape(part)
        for k, part in enumerate(parts)
    )
