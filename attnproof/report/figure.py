"""Small drawings: an error against its bound on a logarithmic scale, as inline SVG."""

from __future__ import annotations

from html import escape
from math import log10

from markupsafe import Markup

from ..evidence import MeasuredEvidence

_LOW, _HIGH = -4.0, 4.0


def ratio(m: MeasuredEvidence) -> float | None:
    """Error over tolerance; None where there is no such number."""
    error, bound = m.error, m.tolerance
    if not isinstance(error, float) or not isinstance(bound, float) or bound <= 0:
        return None
    return error / bound


def ratio_dot(m: MeasuredEvidence) -> Markup:
    """A dot left of the bound when the error is below it, right of it when above.

    The scale runs from a ten-thousandth of the bound to ten thousand times it; a hollow dot at
    an end stands for everything beyond.
    """
    value = ratio(m)
    if value is None:
        return Markup("")
    power = _LOW if value <= 0 else log10(value)
    held = min(max(power, _LOW), _HIGH)
    x = 4 + 92 * (held - _LOW) / (_HIGH - _LOW)
    kind = "in" if m.status == "held" else "out"
    hollow = " beyond" if held != power or value <= 0 else ""
    told = escape(f"the error is {value:.2g} times its bound")
    middle = 4 + 92 * -_LOW / (_HIGH - _LOW)
    return Markup(
        f'<svg class="ratio" viewBox="0 0 100 14" width="100" height="14" role="img">'
        f"<title>{told}</title>"
        f'<line class="axis" x1="2" y1="7" x2="98" y2="7"/>'
        f'<line class="bound" x1="{middle:g}" y1="1" x2="{middle:g}" y2="13"/>'
        f'<circle class="{kind}{hollow}" cx="{x:.1f}" cy="7" r="3.2"/></svg>'
    )
