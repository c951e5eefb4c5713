"""The laws of code: what each says, of which kind of code, and whether every correct one obeys it.

``group``: structure (theorems of the encoding), declared (it is what it is said to be), state
(nothing an earlier call, another row or another path did matters), precision (what floating point
leaves of it), masks.
``always``: code that breaks it is wrong whatever it is meant to be.  The others are asked where
the declaration or what the code can do makes them apply; each finding says.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CODE_LAWS", "CodeLaw", "laws_of"]


@dataclass(frozen=True)
class CodeLaw:
    """A law of code: ``says`` is a sentence, ``about`` the kinds of code it is asked of."""

    id: str
    about: tuple[str, ...]
    group: str
    says: str
    always: bool = True


def _law(id: str, about: str, group: str, says: str, *, always: bool = True) -> CodeLaw:  # noqa: A002
    return CodeLaw(id, tuple(about.split()), group, says, always)


CODE_LAWS: tuple[CodeLaw, ...] = (
    # of all code, and before anything else: where it is broken nothing else is measured
    _law("finite", "rotary attention bias additive mask layer", "structure",
         "ordinary inputs give finite numbers, and finite gradients"),
    # rotary code, structure
    _law("relative", "rotary", "structure",
         "the product of a turned query and a turned key depends on the offset of their "
         "positions alone"),
    _law("norm", "rotary", "structure",
         "turning multiplies every length by one number, the same at every position"),
    _law("composition", "rotary", "structure",
         "turning by m and then by n is turning by m + n"),
    _law("linear", "rotary", "structure", "turning is linear in the vector"),
    _law("identity-at-zero", "rotary", "structure",
         "at position 0 a vector stays, but for a common factor and a fixed order of channels"),
    _law("every-head-alike", "rotary", "structure", "every head turns in the same way"),
    _law("sees-positions", "rotary additive", "structure",
         "another position gives another result"),
    _law("follows-its-ids", "rotary", "structure",
         "tokens permuted together with their position ids give the results permuted; each "
         "row has its own ids"),
    _law("every-axis-matters", "rotary", "structure",
         "a change of any one coordinate of a position changes the result"),
    _law("equal-axes-are-one", "rotary", "structure",
         "a position whose coordinates are all p gives what position p gives on one "
         "axis", always=False),
    _law("grid-steps", "rotary", "structure",
         "one step to the right changes the coordinates in the same way everywhere on any grid"),
    _law("turned-once", "rotary", "structure",
         "queries, keys (and values, where they turn) are each turned exactly once"),
    _law("shift-of-cached-keys", "rotary", "structure",
         "a turned key shifted by s is the key turned at its position + s"),
    _law("cache-keeps-its-positions", "rotary", "structure",
         "every key in the cache is the raw key turned at the position it is said to have"),
    _law("conversion-keeps-scores", "rotary", "structure",
         "projections converted to another layout give the same scores there"),
    # rotary code, declared
    _law("layout-as-declared", "rotary", "declared", "the channels are paired as declared"),
    _law("width-as-declared", "rotary", "declared",
         "as many channels turn as declared, and the others pass through unchanged"),
    _law("frequencies-as-declared", "rotary additive", "declared",
         "the frequencies are the declared ladder, within what its format allows"),
    _law("length-as-declared", "rotary", "declared",
         "vectors become as much longer as declared, and not more"),
    _law("follows-its-arguments", "rotary", "declared",
         "another base, or another scaling, gives other frequencies, and those declared"),
    _law("odd-widths", "rotary", "declared",
         "an odd width is refused, or its last channel passes through unchanged"),
    # rotary code, precision
    _law("neighbours-differ", "rotary additive", "precision",
         "neighbouring positions up to 65536 give different angles"),
    _law("angles-are-exact", "rotary", "precision",
         "angles are as exact as a product in float32"),
    _law("survives-casting", "rotary", "precision",
         "after .bfloat16() or .half() the frequencies are what they were, within float32"),
    # attention code, structure
    _law("permutation", "attention layer", "structure",
         "tokens permuted give the outputs permuted", always=False),
    _law("order-of-keys", "attention", "structure",
         "keys and values permuted together give the same output"),
    _law("rows-sum-to-one", "attention", "structure",
         "equal values give that value: the weights of every query add up to 1"),
    _law("shift-of-scores", "attention", "structure",
         "a number added to all scores of a query changes nothing, and large scores give no NaN"),
    _law("groups-of-heads", "attention", "structure",
         "with fewer key heads than query heads each is repeated for the heads of its group"),
    _law("heads-apart", "attention", "structure",
         "a head reads its own queries, keys and values only"),
    _law("translation", "attention", "structure",
         "the same tokens further along give the same output, where the layer is relative"),
    # attention code, declared
    _law("scale-as-declared", "attention", "declared",
         "the logarithm of the ratio of two weights is the scale times the gap of the scores"),
    # masks
    _law("causal", "attention mask layer", "masks",
         "no output depends on a later token, by value and by gradient", always=False),
    _law("past-is-used", "attention mask", "masks",
         "every earlier token that should be seen has an influence", always=False),
    _law("window-as-declared", "attention mask", "masks",
         "a query sees exactly as many keys as the window declares", always=False),
    _law("alignment", "attention mask", "masks",
         "with fewer queries than keys the last query sees all that the declaration says"),
    _law("hidden-keys-do-nothing", "attention", "masks",
         "keys that are hidden have no influence, however large the numbers in them (inf "
         "and NaN are told)"),
    _law("mask-adds", "attention", "masks",
         "a mask of numbers adds exactly these to the scores"),
    _law("true-means-visible", "attention mask", "masks",
         "a mask of truth values hides what it says it hides"),
    _law("hidden-rows", "attention", "masks",
         "a query that sees no key reads zeros or what is declared, and never NaN"),
    _law("documents-apart", "attention", "masks",
         "documents packed into one row do not see each other"),
    # state
    _law("rows-of-batch-apart", "rotary attention additive layer", "state",
         "a row of a batch gives what it gives alone, also with one token"),
    _law("calls-forget", "rotary attention bias additive mask layer", "state",
         "a call gives the same whatever was called before it, on this instance or another"),
    _law("step-by-step", "attention", "state",
         "tokens fed one at a time, or in chunks, give what all at once give"),
    _law("padding-does-nothing", "attention", "state",
         "rows of different lengths, padded, give what each gives alone, at the first call "
         "and after"),
    _law("paths-agree", "rotary attention bias", "state",
         "every path to the result gives the same: weights asked for, fast path, fused kernel"),
    _law("evaluation-repeats", "attention layer", "state",
         "in evaluation two calls give the same"),
    _law("training-returns", "attention layer", "state",
         "training after an evaluation is training again"),
    _law("inputs-stay", "rotary attention bias additive mask layer", "state",
         "the inputs are not changed by a call"),
    # bias
    _law("offset-only", "bias", "structure",
         "the bias depends on the offset of query and key alone, up to a number for each query"),
    _law("last-rows", "bias", "structure",
         "the bias of the last queries alone is the last rows of the bias of all"),
    _law("slopes-as-declared", "bias", "declared",
         "the slope of each head is the published one for this number of heads"),
    _law("buckets-as-declared", "bias", "declared",
         "offsets fall into the declared buckets: both directions told apart where both are seen"),
    _law("offsets-have-own-index", "bias", "structure",
         "distinct offsets in the window have distinct places in the table"),
    # additive
    _law("linear-shift", "additive", "structure",
         "a shift of the position is one matrix, the same at every position", always=False),
    _law("products-of-offset", "additive", "structure",
         "the product of two rows of the table depends on their offset alone, and all are "
         "equally long",
         always=False),
)  # fmt: skip


def laws_of(kind: str) -> tuple[CodeLaw, ...]:
    """The laws that are asked of this kind of code."""
    return tuple(law for law in CODE_LAWS if kind in law.about)
