"""The page's mathematics font: a subset of STIX Two Math that keeps its MATH table.

To make it again from the full font (version 2.11, SIL Open Font License, in the PyPI wheel
``ziamath``), with ``fonttools[woff]``::

    from pathlib import Path
    from attnproof.report import fonts
    fonts.subset(Path("STIXTwoMath-Regular.ttf"), Path("attnproof/report/assets", fonts.MATH))

The text faces are the Latin subsets of STIX Two Text published as ``@fontsource/stix-two-text``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

MATH = "stix-two-math.woff2"

Face = tuple[str, str, int, str]
"""Family, style, weight, file."""

TEXT_FACES: tuple[Face, ...] = (
    ("STIX Two Text", "normal", 400, "stix-two-text.woff2"),
    ("STIX Two Text", "italic", 400, "stix-two-text-italic.woff2"),
    ("STIX Two Text", "normal", 600, "stix-two-text-semibold.woff2"),
)
MATH_FACES: tuple[Face, ...] = (("STIX Two Math", "normal", 400, MATH),)
FACES = (*TEXT_FACES, *MATH_FACES)

# What formulas and running text may use, as code point ranges.
_RANGES = (
    (0x0020, 0x007E), (0x00A0, 0x00FF), (0x02C6, 0x02DD), (0x0391, 0x03C9), (0x03D1, 0x03D6),
    (0x03F5, 0x03F5), (0x2010, 0x2026), (0x2032, 0x2034), (0x203E, 0x203E), (0x2061, 0x2064),
    (0x2070, 0x208E), (0x2090, 0x209C), (0x2102, 0x2102), (0x210E, 0x2115), (0x211A, 0x211D),
    (0x2124, 0x2124), (0x1D40, 0x1D40), (0x2190, 0x2199), (0x21A6, 0x21AA), (0x21D2, 0x21D4),
    (0x2200, 0x22F1), (0x2308, 0x230B), (0x23DE, 0x23DF), (0x25A1, 0x25A1), (0x25FB, 0x25FB),
    (0x2713, 0x2717), (0x27E8, 0x27E9), (0x1D434, 0x1D467), (0x1D53C, 0x1D53C),
    (0x1D6A4, 0x1D6A5), (0x1D6E2, 0x1D71B),
)  # fmt: skip


# Latin and Greek capitals and small letters, and where their mathematical italics begin.
_ALPHABETS = (
    (0x41, 0x5A, 0x1D434),
    (0x61, 0x7A, 0x1D44E),
    (0x391, 0x3A9, 0x1D6E2),
    (0x3B1, 0x3C9, 0x1D6FC),
)


class MissingAsset(RuntimeError):
    """A file of the report's package is not there."""


def asset(name: str) -> bytes:
    """A file of ``assets``.  Raises :class:`MissingAsset` with what to do."""
    place = files(__package__) / "assets" / name
    try:
        return place.read_bytes()
    except OSError as error:
        raise MissingAsset(
            f"the report needs {name}, and {place} cannot be read ({error.strerror}); the "
            "installation is incomplete: install attnproof again"
        ) from error


def face_css(faces: Iterable[Face]) -> str:
    """The @font-face rules, with the fonts inside them."""
    rules = []
    for family, style, weight, name in faces:
        data = b64encode(asset(name)).decode("ascii")
        rules.append(
            f'@font-face{{font-family:"{family}";font-style:{style};font-weight:{weight};'
            f'font-display:swap;src:url(data:font/woff2;base64,{data}) format("woff2");}}'
        )
    return "\n".join(rules)


def italic(character: str) -> str:
    """The letter that a browser draws for a one-letter identifier: mathematical italic.

    >>> [hex(ord(italic(letter))) for letter in "xh"]
    ['0x1d465', '0x210e']
    """
    if character == "h":
        return "\u210e"
    for first, last, start in _ALPHABETS:
        if first <= ord(character) <= last:
            return chr(start + ord(character) - first)
    return {"∂": "\U0001d715", "ϵ": "\U0001d716", "ϑ": "\U0001d717", "ϕ": "\U0001d719"}.get(
        character, character
    )


def wanted() -> list[int]:
    """Every code point the subset is asked to hold."""
    return [code for first, last in _RANGES for code in range(first, last + 1)]


def subset(source: Path, target: Path) -> int:
    """Write the subset of a full font; the number of bytes written."""
    from fontTools import subset as tool

    options = tool.Options()
    options.flavor = "woff2"
    options.layout_features = ["ccmp", "dtls", "flac", "kern", "mark", "mkmk", "ssty"]
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]  # copyright and licence travel along
    font = tool.load_font(str(source), options)
    worker = tool.Subsetter(options)
    worker.populate(unicodes=wanted())
    worker.subset(font)
    tool.save_font(font, str(target), options)
    return target.stat().st_size
