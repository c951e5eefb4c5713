"""Remarks on rotations: their pairs, how many channels rotate, and by which frequencies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..finding import Part, Remark, format_number
from ..subjects import Rotary, Subject
from .suggestions import Suggestions

RELATIVE_TOLERANCE = 1e-3  # relative tolerance between a value read off and a written value
FEW_DIGITS = 2  # of a base that people write down; published bases have one or two
LEAST_BASE = 100.0  # of published models for images; models of text use 10,000 or more
BASE_NAMES = ("base", "theta", "rope_theta", "rope_base", "rotary_base", "rotary_emb_base")
WIDTH_NAMES = ("rotary_dim", "rotary_ndims", "rotary_dims", "rope_dim", "rot_dim")
SHARE_NAMES = (
    "partial_rotary_factor",
    "rotary_pct",
    "rotary_percent",
    "rope_percent",
    "rotary_percentage",
)
LAYOUT_NAMES = (
    "interleaved",
    "is_neox_style",
    "rotary_interleaved",
    "rope_interleave",
    "rope_interleaved",
)
SCALING_NAMES = ("rope_type", "scaling_type", "rope_scaling_type")
FACTOR_NAMES = ("factor", "scaling_factor", "rope_scaling_factor")
HEAD_NAMES = ("head_dim", "head_size")
FAMILIES = {"yarn": r"\byarn", "llama3": r"\bllama ?3", "linear": r"\blinear scal"}


def remarks_on_rotation(
    subject: Any, parts: dict[str, Part], said: Suggestions
) -> Iterator[Remark]:
    """Yield what is unusual about rotary code."""
    yield from _layout(parts, said)
    yield from remarks_on_format(subject, parts)
    if subject.given.get("angles"):
        return
    yield from _width(subject, parts, said)
    yield from _scaling(parts, said)
    over = tuple(_over_head(subject, parts, said))
    yield from over
    if not over and not _proportional(said):
        yield from remarks_on_base(parts, said, "rotary code", _bases_of_neighboring_widths(parts))
    factor = parts.get("attention factor")
    if factor is not None and factor.words.endswith("applied twice"):
        yield Remark(
            "attention factor",
            "the square root of that",
            "YaRN multiplies by 0.1 ln s + 1 once",
            factor.words,
        )
    others = parts.get("other channels")
    if others is not None and others.words:
        yield Remark(
            "other channels",
            "the channels that do not rotate unchanged",
            "published partial rotations keep them",
            others.words,
        )


def _layout(parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    """Compare the pairs of the rotation with those of its table, or with what names say."""
    rotation = parts.get("rotation")
    if rotation is not None:
        yield Remark(
            "rotation",
            "one pairing of channels for both",
            "only then do scores depend on the offset alone",
            rotation.evidence,
        )
        return
    found = parts.get("layout")
    if found is None or not found.certain or found.value not in ("interleaved", "half"):
        return
    wanted, why = "", ""
    for one in said.under(LAYOUT_NAMES, bool):
        interleaved = one.value != (one.name == "is_neox_style")
        wanted, why = "interleaved" if interleaved else "half", str(one)
    for one in said.under(("layout",), str):
        if one.value in ("interleaved", "half", "half-split"):
            wanted, why = one.value.removesuffix("-split"), str(one)
    for pattern, layout in (
        (r"(?<!non )(?<!de )(?<!not )\binterleaved?\b|\bgptj", "interleaved"),
        (r"\bgpt ?neo ?x", "half"),
    ):
        if not wanted and (name := said.named(pattern)):
            wanted, why = layout, f"the name {name}"
    if wanted and wanted != found.value:
        words = {"half": "half-split"}.get(wanted, wanted)
        yield Remark("layout", words, why, found.words)


def _width(subject: Rotary, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    """Compare the number of rotated channels with settings."""
    found = parts.get("width")
    if found is None or not found.certain or not isinstance(found.value, int):
        return
    width, wanted = found.value, dict[int, str]()
    for one in said.under(WIDTH_NAMES, int):
        wanted[one.value] = str(one)
    heads = [subject.width, *(one.value for one in said.under(HEAD_NAMES, int))]
    for one in said.under(SHARE_NAMES, float):
        for whole in heads:
            if 0 < one.value < 1 and not subject.any_width and width < whole:
                told_of = f"{one}, whose heads have {whole} channels"
                wanted.setdefault(int(whole * one.value), told_of)
    if wanted and width not in wanted and width + width % 2 not in wanted:
        number, why = next(iter(wanted.items()))
        yield Remark("width", f"width {number}", why, found.words or f"width {width}")


def _proportional(said: Suggestions) -> bool:
    """Whether the code names the scaling whose exponents are intentionally over the whole head."""
    return any("proportional" in str(one.value) for one in said.settings)


def _over_head(subject: Any, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    """Report exponents over the head although fewer channels rotate: base^(−2i/D)."""
    base, width, ladder = (parts.get(name) for name in ("base", "width", "scaling"))
    if base is None or width is None or not base.value or not isinstance(width.value, int):
        return
    heads = [subject.width, *(one.value for one in said.under(HEAD_NAMES, int))]
    head = max(heads)
    if not 0 < width.value < head or head % 2 or _proportional(said):
        return
    whole = math.exp(math.log(base.value) * head / width.value)
    known = {float(one.value): str(one) for one in said.under(BASE_NAMES, (int, float))}
    known = known or dict.fromkeys(
        (n for n in said.numbers if n >= LEAST_BASE), "the number in its source"
    )
    near = next((n for n in known if is_near(whole, n)), None)
    read = ladder is not None and "the whole head" in ladder.words
    if not read and (near is None or any(is_near(base.value, n) for n in known)):
        return
    found = (
        ladder.words
        if read and ladder is not None
        else (
            f"base {format_number(base.value)}, which is {format_number(near or whole)}^"
            f"({width.value}/{head}): exponents are counted over the whole head"
        )
    )
    yield Remark(
        "frequencies",
        f"exponents counted over the {width.value} channels that rotate",
        "published partial rotations count them so",
        found,
    )


def _bases_of_neighboring_widths(parts: dict[str, Part]) -> tuple[float, ...]:
    """The bases for exponents that are divided by one channel more or less than rotate."""
    base, width = parts.get("base"), parts.get("width")
    if base is None or width is None or not base.value or not isinstance(width.value, int):
        return ()
    w = width.value
    return tuple(math.exp(math.log(base.value) * (w + d) / w) for d in (-1, 1))


def _scaling(parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    """Check that a scaling that is named, with a factor above 1, is present."""
    found = parts.get("scaling")
    family = found.value.get("family") if found is not None and found.certain else None
    factor = [one for one in said.under(FACTOR_NAMES, (int, float)) if one.value > 1]
    if family != "none" or not factor:
        return
    named = next((one for one in said.under(SCALING_NAMES, str) if one.value in FAMILIES), None)
    name = next((f for f, pattern in FAMILIES.items() if said.named(pattern)), "")
    if named is not None or name:
        wanted = name if named is None else named.value
        why = f"{named or 'the name ' + said.named(FAMILIES[name])}, {factor[0]}"
        yield Remark(
            "scaling",
            f"scaling {wanted} by {format_number(factor[0].value)}",
            why,
            "frequencies that are not scaled",
        )


def remarks_on_base(
    parts: dict[str, Part], said: Suggestions, kind: str, odd: tuple[float, ...] = ()
) -> Iterator[Remark]:
    """Compare the base with settings; without any, report a base that nobody would write down.

    ``odd``: the bases for exponents that are divided by an odd width.
    """
    found, scaling = parts.get("base"), parts.get("scaling")
    if found is None:
        return
    family = scaling.value if scaling is not None else "none"
    family = family.get("family") if isinstance(family, dict) else family
    if found.value is None:
        learned = r"\b(learn|random|gaussian|fourier|freqs?|axial)"
        # without a formula: only sinusoidal tables have a single published form
        if kind == "additive code" and found.words and not said.named(learned):
            yield Remark(
                "frequencies",
                "frequencies of base 10000",
                "published sinusoidal tables have base^(−2i/width)",
                found.words,
            )
        return
    if family not in ("none", "linear", ""):
        return
    if any(one.value > 1 for one in said.under(FACTOR_NAMES, (int, float))):
        return  # a scaling may change the base
    base = float(found.value)
    stated = [one for one in said.under(BASE_NAMES, (int, float)) if one.value > 1]
    if stated:
        if found.certain and not any(
            is_near(power, float(one.value)) for one in stated for power in (base, *odd)
        ):
            yield Remark(
                "base",
                f"base {format_number(float(stated[0].value))}",
                str(stated[0]),
                f"base {format_number(base)}{_relation(base, float(stated[0].value))}",
            )
        return
    if not found.certain or any(is_near(base, number) for number in said.numbers):
        return
    slip = [n for n in said.numbers if n >= LEAST_BASE and _relation(base, n)]
    if slip:
        yield Remark(
            "base",
            f"base {format_number(slip[0])}",
            "the number in its source",
            f"base {format_number(base)}{_relation(base, slip[0])}",
        )
    elif (_digits(base) > FEW_DIGITS or base < LEAST_BASE) and not said.computes(BASE_NAMES):
        yield Remark(
            "base",
            "a base with one or two significant digits, such as 10000 or 500000",
            f"published {kind} has such a base, and this number is not in the source",
            f"base {format_number(base)}",
        )


def _relation(found: float, wanted: float) -> str:
    """Name the slip that turns one base into another."""
    for power, words in ((2.0, "every second frequency"), (0.5, "half of each exponent")):
        if is_near(found, wanted**power):
            return f", which is {format_number(wanted)} with {words}"
    return ""


def _digits(number: float) -> int:
    return len(f"{number:.6e}".split("e")[0].replace(".", "").rstrip("0"))


def is_near(a: float, b: float) -> bool:
    """Whether a number that was read off is one that is written.

    >>> is_near(9999.5, 10000.0), is_near(9900.0, 10000.0)
    (True, False)
    """
    return abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b))


def remarks_on_format(subject: Subject, parts: dict[str, Part]) -> Iterator[Remark]:
    """Report numbers that are rounded to a shorter format than that of the inputs and weights."""
    found = parts.get("format")
    if found is not None and not subject.stored:
        why = "the inputs and weights are in a finer one"
        yield Remark("format", "no shorter format inside", why, found.words)
