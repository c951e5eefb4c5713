"""Which laws apply to a piece of code: decided here once, for every method.

The decision rests on the fields of the subject and on what is declared of it.  Whether a run of the
code rules out a formula is decided in :mod:`attnproof.programs.reading.applicability`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import identified_mask
from .calls.supplied_inputs import why_not_applicable
from .declarations import DeclaredAttention
from .identified_mask import IN_ORDER
from .subjects import Additive, Attention, Bias, Mask, Rotary, Subject

NO_MASK = "no causal mask is declared"
NOT_ALIGNED = "the position of the last query was neither read nor declared"
NOT_CAUSAL = "declared as not causal"
NOT_READ = (
    "the code takes tokens: a row of padding only, whose output nobody uses, is checked if "
    "attention:hidden_row=zero declares that it is not NaN"
)
NUMBERS_ALONE = (
    "its mask is additive: whether a row is −inf throughout is up to the caller, unless "
    "attention:hidden_row=zero is declared"
)

# By law: the field of the subject that it needs, and what the code lacks if that field is empty.
NEEDED_FIELDS = {
    "rotated-once": (
        "all_three",
        "no code was given that rotates queries, keys and values together",
    ),
    "shift-of-cached-keys": (
        "shift",
        "no code was given that shifts keys that are already rotated",
    ),
    "cache-keeps-its-positions": ("evict", "no code was given that keeps keys in a cache"),
    "conversion-keeps-scores": (
        "convert",
        "no code was given that converts projections to another layout",
    ),
    "grid-steps": ("grid", "it makes no grid of positions"),
    "follows-its-arguments": ("make", "it cannot be built with other settings"),
    "offsets-have-own-index": ("index", "the code exposes no index into its table"),
    "training-returns": ("module", "there is no module to train"),
    "weights-as-shown": ("weights", "the code does not return the weights of each head"),
    "training-is-evaluation": ("module", "there is no module to train"),
    "order-of-keys": ("attend", "the code takes tokens, not queries, keys and values"),
    "alignment": ("attend", "the code takes tokens: there are as many queries as keys"),
    "step-by-step": ("step", "it is not known how the code is called with further tokens"),
    "documents-apart": ("documents", "the code takes no packed documents"),
    "translation": ("whole_layer", "the code takes no position at which its tokens start"),
    "queries-apart": ("attend", "the code takes tokens: its queries cannot be told apart"),
    "last-rows": ("bias", "a window has no last queries"),
    "paths-agree": ("paths", "it has only one path"),
}


def declared_of(subject: Subject) -> DeclaredAttention:
    """Return the mask as read if there is one, else what is declared, else an empty declaration."""
    said, read = getattr(subject, "declared", None), getattr(subject, "as_read", None)
    said = said if isinstance(said, DeclaredAttention) else DeclaredAttention()
    return replace(read, positions=said.positions) if isinstance(read, DeclaredAttention) else said


def not_asked(law: str, subject: Subject, *, named: bool = False) -> str:
    """Return why a law does not apply to this code; "" if it does.

    ``named``: the user asks for this law by name, and so expects it even of undeclared code.

    >>> from attnproof.programs.subjects import Layer
    >>> not_asked("causal", Layer(name="f", call=lambda x: x, embed=4))
    'no causal mask is declared'
    """
    why = why_not_applicable(subject, law)
    field, lacking = NEEDED_FIELDS.get(law, ("", ""))
    if why or (hasattr(subject, field) and not getattr(subject, field)):
        return why or lacking
    if law == "causal":
        return _not_causal(subject, named=named)
    if law in IN_ORDER:
        return why_order_matters(subject)
    rule = RULES.get(law)
    return "" if rule is None else rule(subject)


def _not_causal(subject: Subject, *, named: bool = False) -> str:
    said = declared_of(subject).causal
    if said is False:
        return NOT_CAUSAL
    return "" if said or named else NO_MASK


def why_order_matters(subject: Any) -> str:
    """Return why the order of tokens or keys may matter, by declaration or by the mask as read."""
    declared = declared_of(subject)
    if declared.causal or declared.window:
        said = getattr(subject, "declared", None) is not None
        return f"{'a mask is declared' if said else 'it has a mask'}, so order matters"
    if getattr(subject, "positional", False) or declared.positions not in (None, "none"):
        return "the code is meant to use positions"
    return ""


def _one_head(subject: Any) -> str:
    return "it has one head" if subject.heads < 2 else ""


def _one_axis(subject: Rotary) -> str:
    return "its positions have one axis" if subject.axes < 2 else ""


def _no_scale(subject: Attention) -> str:
    if subject.declared is None:
        return "no scale is declared"
    if subject.positional or declared_of(subject).positions not in (None, "none"):
        return "the code uses positions: its scores are not q·k alone"
    return ""


def _one_table(subject: Additive) -> str:
    if subject.learned:
        return "its table is learned"
    return "its width is odd: one sine has no cosine" if subject.width % 2 else ""


def _tokens_only(subject: Attention) -> str:
    if subject.attend is None:
        return "the code takes tokens: its heads cannot be told apart"
    return _one_head(subject) if subject.module is not None else ""  # a function takes any number


def _one_group(subject: Attention) -> str:
    if subject.attend is None:
        return "the code takes tokens: which head reads which group is its own choice"
    same = subject.groups == subject.heads and not declared_of(subject).groups
    return "there are as many key heads as query heads" if same else ""


def _translation(subject: Attention) -> str:
    absolute = subject.positional or declared_of(subject).positions == "absolute"
    return "the layer is meant to use absolute positions" if absolute else ""


def _window(subject: Subject) -> str:
    declared = declared_of(subject)
    if not declared.window:
        return "no window is declared"
    whole = isinstance(subject, Mask) or declared.causal
    return "" if whole else "a window is checked only with a causal mask; declare causal"


def _alignment(subject: Subject) -> str:
    declared = declared_of(subject)
    if not declared.alignment:
        return NOT_ALIGNED
    return "" if declared.causal else NO_MASK


def _past(subject: Subject) -> str:
    unsaid = declared_of(subject).causal is None
    return "whether the code is causal is not declared" if unsaid else ""


def _without_mask(subject: Attention, kind: str = "") -> str:
    """Return why no mask of this kind can be passed."""
    left = subject.given.get("no mask", "")
    if left:
        return f"the meaning of {left} is not known: state it after its axes, with --call"
    if subject.given.get("mask") and subject.hide is None:
        return f"it is given {subject.given['mask']}, one for all rows, and no other"
    return f"the code takes no {kind}mask"


def _no_mask(subject: Attention) -> str:
    if subject.masks or subject.hide is not None or subject.reading is not None:
        return ""
    return _without_mask(subject)


def _no_numbers(subject: Attention) -> str:
    takes = subject.attend is not None and "float" in subject.masks
    return "" if takes else _without_mask(subject, "additive ")


def _no_truth(subject: Subject) -> str:
    if not isinstance(subject, Attention):
        return ""
    if subject.counting is not None:
        return ""
    if subject.true_hides:
        return "in its masks True means that a key is hidden; they are inverted here"
    if subject.attend is not None and "bool" in subject.masks:
        return ""
    if subject.hide is not None and subject.layer is not None and not subject.from_start:
        return ""
    if subject.reading is not None:
        return "its mask is that of a context: hidden-keys-do-nothing checks what it hides"
    return _without_mask(subject, "boolean ")


def _no_rows(subject: Attention) -> str:
    if subject.attend is None and subject.hide is not None:
        told = declared_of(subject).hidden_row in ("zero", "mean")
        return "" if told else NOT_READ
    if subject.attend is None or not subject.masks:
        return _without_mask(subject)
    told = "bool" in subject.masks or declared_of(subject).hidden_row != "any"
    return "" if told else NUMBERS_ALONE


def _no_padding(subject: Attention) -> str:
    takes = subject.layer is not None and (subject.hide or subject.reading) is not None
    return "" if takes or subject.padded_step is not None else "the code takes no padding"


def _undeclared(field: str, words: str) -> Callable[[Any], str]:
    """Return the rule that refuses rotary code whose declaration leaves this field open."""

    def rule(subject: Rotary) -> str:
        if subject.declared is None:
            return "nothing is declared"
        return "" if getattr(subject.declared, field) is not None else words

    return rule


def _no_ladder(subject: Rotary | Additive) -> str:
    said = subject.declared
    if said is None and isinstance(subject, Rotary):
        return "nothing is declared"
    if said is None or (said.base is None and said.frequencies is None):
        return "neither a base nor frequencies are declared"
    return _learned(subject)


def _learned(subject: Subject) -> str:
    return "its table is learned" if getattr(subject, "learned", False) else ""


def _undeclared_length(subject: Rotary) -> str:
    return "nothing is declared" if subject.declared is None else ""


def _undeclared_bias(what: str, name: str) -> Callable[[Bias], str]:
    """Return the rule that refuses a bias whose slopes or buckets are not declared."""

    def why(subject: Bias) -> str:
        said = subject.declared
        asked = said is not None and (getattr(said, what) or said.name == name)
        told = f"no {what} are declared (bias:name={name}, or {what}=..)"
        return "" if asked and subject.bias is not None else told

    return why


def _first_above(subject: Rotary) -> str:
    return f"its positions start at {subject.first}" if subject.first > 0 else ""


def _step(subject: Subject) -> str:
    if isinstance(subject, Rotary):
        return "" if subject.last is not None else "it takes as many queries as keys"
    ahead = declared_of(subject).causal is False
    return f"{NOT_CAUSAL}: the past would have to see the future" if ahead else ""


RULES: dict[str, Callable[[Any], str]] = {
    "identity-at-zero": _first_above,
    "every-head-alike": _one_head,
    "every-axis-matters": _one_axis,
    "equal-axes-are-one": _one_axis,
    "heads-apart": _tokens_only,
    "groups-of-heads": _one_group,
    "translation": _translation,
    "window-as-declared": _window,
    "alignment": _alignment,
    "past-is-used": _past,
    "hidden-keys-do-nothing": _no_mask,
    "mask-adds": _no_numbers,
    "scale-as-declared": _no_scale,
    "layout-as-declared": _undeclared("layout", "no layout is declared"),
    "width-as-declared": _undeclared("width", "no width is declared"),
    "frequencies-as-declared": _no_ladder,
    "length-as-declared": _undeclared_length,
    "neighbours-differ": _learned,
    "slopes-as-declared": _undeclared_bias("slopes", "alibi"),
    "buckets-as-declared": _undeclared_bias("buckets", "t5"),
    "true-means-visible": _no_truth,
    "hidden-rows": _no_rows,
    "padding-does-nothing": _no_padding,
    "step-by-step": _step,
    "products-of-offset": _one_table,
    "linear-shift": _one_table,
}


def promised(law: str, subject: Subject, *, named: bool = False) -> bool:
    """Whether code that breaks this law is at fault.

    For the laws about the order of tokens this takes ``causal=false``, and for
    ``products-of-offset`` any declaration, unless the law is asked for by name (``named``).

    >>> from attnproof.programs.subjects import Layer
    >>> promised("permutation", Layer(name="f", call=lambda x: x, embed=4))
    False
    """
    if law in IN_ORDER:
        return named or declared_of(subject).causal is False
    if law == "products-of-offset":
        return named or getattr(subject, "declared", None) is not None
    return not why_not_at_fault(law, subject)


def why_not_at_fault(law: str, subject: Subject) -> str:
    """Return why code that breaks a law about its mask as read is not at fault; "" if it is.

    The mask was read off few keys, and more keys may reveal a window; but a query that sees a later
    key is a leak in any case.
    """
    if law == "causal" or law not in identified_mask.LAWS or not getattr(subject, "as_read", None):
        return ""
    return (
        "which keys a query should see does not follow from the mask as read; declare what is meant"
    )
