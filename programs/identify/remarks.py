"""Remarks where code differs from what its names, docstrings and settings suggest.

A remark breaks no law and changes no exit code, since the code may be intended that way.  It states
what was expected, which name, line or setting suggests that, and what was found.  If nothing
suggests anything, the code is compared with published code, and only known slips are remarked on.
Code that declares what it does gets no remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from ..finding import Identity, Part, Remark, format_number
from ..subjects import Attention, Subject
from .influence import TOKENS
from .rotary_remarks import is_near, remarks_on_base, remarks_on_format, remarks_on_rotation
from .suggestions import Suggestions, numbers_beside, suggestions_of

SCALE_NAMES = r"scal|temperature|multiplier|norm_factor|inv_norm"
WINDOW_NAMES = ("window", "window_size", "sliding_window", "local_window")
CAUSAL_NAMES = ("causal", "is_causal", "causal_mask")
DIRECTION_NAMES = ("bidirectional",)
BUCKET_NAMES = ("buckets", "num_buckets", "relative_attention_num_buckets")
CAUSAL = re.compile(r"(?i)(multi-?head )?causal (self-?|multi-?head )*attention\b")
IS_CAUSAL = re.compile(r"(?<!self\.)\bis_causal=True\b")  # in a call
RELATIVE = re.compile(r"(?i)\b(apply_)?(rope|rotary|rotate|alibi|relative)[a-z_]*")


def remarks_on(subject: Subject, identity: Identity, thing: Any = None) -> tuple[Remark, ...]:
    """Return what is unusual about code: where its identity differs from what it says about itself.

    ``thing`` is the object that was adapted, by default the module of the subject.

    >>> from attnproof.programs.subjects import Bias
    >>> made = Part("slopes", [1.0], "lines with slopes not as published for 1 heads (1)", "")
    >>> def alibi(heads): ...  # no body is needed
    >>> code = Bias(name="Alibi", heads=1)
    >>> [one.about for one in remarks_on(code, Identity("bias", (made,)), alibi)]
    ['slopes']
    """
    code = thing if thing is not None else subject.module
    said = Suggestions() if code is None else suggestions_of(code, subject.module)
    said = replace(said, numbers=said.numbers | numbers_beside(code, subject.line))
    parts = {part.name: part for part in identity.parts}
    rule = REMARKS_BY_KIND.get(subject.kind)
    found = tuple(rule(subject, parts, said)) if rule is not None else ()
    known = _declared(getattr(subject, "declared", None))
    return tuple(one for one in found if one.about not in known)


def _declared(declared: Any) -> set[str]:
    """The names of declared parts, which a law compares regardless of what the code says."""
    if declared is None:
        return set()
    usual = type(declared)()
    said = {
        f.name
        for f in fields(declared)
        if getattr(declared, f.name) not in (None, getattr(usual, f.name))
    }
    parts = {"causal": "mask", "length": "attention factor"}
    return said | {parts[name] for name in said if name in parts}


def _attention(subject: Any, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    yield from _scale(subject, parts, said)
    yield from _mask(subject, parts, said)
    softmax = parts.get("softmax")
    axes = ("queries", "heads", "rows of the batch")
    other = said.named(r"\bslot|\binvert|\bcapsule|\brouting")  # in these queries compete for keys
    if softmax is not None and softmax.value in axes and not other:
        yield Remark(
            "softmax",
            "softmax over keys",
            "the weights of a query add up to 1 in published attention",
            softmax.words,
        )
    grouping = parts.get("grouping")
    if grouping is not None and "tiled" in grouping.words:
        yield Remark(
            "grouping",
            "each key head repeated for neighbouring query heads",
            "published models with groups do so",
            grouping.words,
        )
    places = parts.get("scores")
    told = RELATIVE.search(said.source) if places is not None else None
    if places is not None and told:
        yield Remark(
            "scores",
            "scores that depend on the offset of the positions alone",
            f"the code speaks of {told[0]}",
            places.words,
        )
    weights = parts.get("weights")
    if weights is not None:
        yield Remark(
            "weights",
            "an effect of every projection",
            "training leaves a projection that no gradient reaches as it is",
            weights.words,
        )
    yield from remarks_on_format(subject, parts)
    slopes = parts.get("bias")
    if slopes is not None:
        yield from _slopes(subject, slopes, said)


def _scale(subject: Attention, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    """Report √D, 1 or 1/√E in place of 1/√D, or another number that is nowhere in the code."""
    found = parts.get("scale")
    if found is None or not found.certain or not isinstance(found.value, float):
        return
    D, value = subject.width, found.value
    usual = D**-0.5
    asked = [name for name in said.parameters if re.search(SCALE_NAMES, name)]
    if not D or is_near(value, usual) or asked:
        return
    E = subject.embed or D * subject.heads
    stated = [
        one
        for one in said.settings
        if re.search(SCALE_NAMES, one.name)
        and isinstance(one.value, int | float)
        and not isinstance(one.value, bool)
        and (is_near(value, one.value) or is_near(value * one.value, 1.0))
    ]
    scalar = [
        one
        for one in said.under(("query_pre_attn_scalar",), (int, float))
        if is_near(value, one.value**-0.5)
    ]
    expected = f"scale 1/√D = {format_number(usual)}"
    if is_near(value, D**0.5):
        why = "scores are multiplied by √D where they are meant to be divided by it"
    elif E != D and is_near(value, E**-0.5) and not scalar:
        why = "D is the width of a head; E is that of all heads"
    elif subject.heads != D and is_near(value, subject.heads**-0.5) and not scalar:
        why = "D is the width of a head; this is 1/√H, H the number of heads"
    elif value == 1.0 or (abs(value - 1) < 1e-5 and not stated):
        if stated or said.named(r"t5\b|\bgpt ?neo\b|\bcosine") or "scale" in said.source:
            return
        why = "without a scale scores grow with the width, and the code names none"
    elif stated or scalar or _is_in_source(value, said) or said.named(r"\bmu ?p\b"):
        return
    else:
        why = "published attention has this scale, and no number of the code gives another"
    yield Remark("scale", expected, why, found.words)


def _is_in_source(value: float, said: Suggestions) -> bool:
    """Whether a number in the source is this scale or its reciprocal."""
    return any(is_near(value, number) or is_near(value * number, 1.0) for number in said.numbers)


def _mask(subject: Any, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    """Report a causal mask that shows later keys or is off by one, and a window off by one."""
    found = parts.get("mask")
    if found is None or not isinstance(found.value, dict) or subject.given.get("mask"):
        return
    value = found.value
    rule, before, after = (value.get(word) for word in ("rule", "before", "after"))
    causal = _causal(said, subject.name)
    if rule == "causal" and after == -1 and not said.named(r"\bstrict|\bexclu|\blsh|\bshift"):
        yield Remark(
            "mask",
            "a query sees its own key",
            "causal masks of published code show it; this one is off by one",
            found.words,
        )
    elif rule == "window" and before is None and after == 1:
        yield Remark(
            "mask", "a query sees no later key", "it is a causal mask off by one", found.words
        )
    elif rule == "inverted" or (rule == "mirrored" and causal):
        yield Remark(
            "mask",
            "causal",
            causal or "its truth values would be a causal mask the other way round",
            found.words,
        )
    elif causal and value.get("ahead"):
        free = rule == "none" and (_takes_mask(subject) or "given" in value)
        if not free:
            yield Remark("mask", "causal", causal, f"{found.words}, in which later keys are seen")
    yield from _window(subject, value, said, found.words)
    if rule in ("blocks", "causal blocks"):
        words = r"block|chunk|local|window|bucket|segment|patch|document|packed|cu_seqlens"
        if said.source and not re.search(words, said.source.lower()):
            yield Remark(
                "mask",
                "every token is seen",
                "nothing in the code speaks of "
                "blocks; heads and tokens that were split apart in the wrong order look "
                "like that",
                found.words,
            )


def _window(subject: Any, value: dict[str, Any], said: Suggestions, words: str) -> Iterator[Remark]:
    """Report a window that is off by one, and one that is named and not there."""
    rule, before, after = (value.get(word) for word in ("rule", "before", "after"))
    edge = rule == "window" and after == 0 and isinstance(before, int)
    window = value.get("window") or (before + 1 if edge else None)  # type: ignore[operator]
    stated = [one for one in said.under(WINDOW_NAMES, int) if one.value > 1]
    if window and all(one.value != window for one in stated):
        missed = [one for one in stated if abs(one.value - window) == 1]
    elif rule == "causal" and not _takes_mask(subject):
        missed = [one for one in stated if one.value < TOKENS]  # more were seen
    else:
        missed = []
    if missed:
        yield Remark("window", f"a window of {missed[0].value} keys", str(missed[0]), words)


def _takes_mask(subject: Any) -> bool:
    taken = getattr(subject, "masks", ()) or getattr(subject, "hide", None) is not None
    return bool(taken) or "no mask" in subject.given


def _causal(said: Suggestions, name: str) -> str:
    """Return what says that code is causal, or "" if nothing does or something contradicts it."""
    flags = said.under(CAUSAL_NAMES, bool)
    if flags and len({one.value for one in flags}) == 1:  # parts may disagree
        return str(flags[0]) if flags[0].value else ""
    other = r"\bnon\b|\bnot\b|\bbidirectional\b|\bunmask"
    for known in (*said.names, name):
        told_in = Suggestions(names=(known,))
        if told_in.named(r"\bcausal|\blook ahead\b|\bsubsequent\b") and not told_in.named(other):
            return f"the name {known}"
    for known, text in said.docs.items():
        first = text.strip().partition("\n")[0]
        plain = not re.search(r"(?i)\b(or|if|optional|non|not)\b", first)
        if plain and CAUSAL.match(first):
            return f"the docstring of {known}: {first!r}"
    calls = (one for one, text in said.parts.items() if IS_CAUSAL.search(text))
    return next((f"is_causal=True in {one}" for one in calls), "")


def _bias(subject: Any, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    slopes, buckets = parts.get("slopes"), parts.get("buckets")
    if slopes is not None:
        yield from _slopes(subject, slopes, said)
    if buckets is None or not isinstance(buckets.value, dict):
        return
    for one in said.under(DIRECTION_NAMES, bool):
        if one.value != buckets.value["bidirectional"]:
            way = "both directions" if one.value else "one direction"
            yield Remark("buckets", f"buckets of {way}", str(one), buckets.words)
            return
    numbers = said.under(BUCKET_NAMES, int)
    if numbers and buckets.value["buckets"] not in {one.value for one in numbers}:
        yield Remark("buckets", f"{numbers[0].value} buckets", str(numbers[0]), buckets.words)


def _slopes(subject: Any, found: Part, said: Suggestions) -> Iterator[Remark]:
    """Report unpublished slopes in code that is named after ALiBi and does not learn its slopes."""
    learns = subject.module is not None and any(True for _ in subject.module.parameters())
    name = said.named(r"\bali ?bi|\blinear bias") or (
        "ALiBi" if "alibi" in said.source.lower() else ""
    )
    if "not as published" in found.words and name and not (learns and found.name == "slopes"):
        yield Remark("slopes", "the published slopes of ALiBi", f"the name {name}", found.words)


def _additive(subject: Any, parts: dict[str, Part], said: Suggestions) -> Iterator[Remark]:
    if not subject.learned and "table" in parts and parts["table"].value == "sinusoidal":
        yield from remarks_on_base(parts, said, "additive code")


REMARKS_BY_KIND: dict[str, Callable[[Any, dict[str, Part], Suggestions], Iterator[Remark]]] = {
    "rotary": remarks_on_rotation,
    "attention": _attention,
    "bias": _bias,
    "additive": _additive,
    "mask": _mask,
    "layer": _mask,
}
"""The function that yields the remarks on each kind of code."""
