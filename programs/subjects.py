"""What code is checked as: rotary, attention, bias, additive, mask or layer code, with one call.

People write the same thing with many signatures.  An adapter turns it into one of these classes,
and every law uses only the call defined here.  The optional fields are further things that code can
do (a step with a cache, a shift of cached keys, other paths to the same result); a law that needs a
missing one is skipped.

Letters of the shapes: B rows of a batch, n tokens or keys, r queries, H heads, G key-value heads, D
features of a head, E features of a token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attnproof.theorems.laws import Formula, laws_of
from attnproof.theorems.laws.masks import LATER_TOKENS_OMITTED

from .declarations import DeclaredAdditive, DeclaredAttention, DeclaredBias, DeclaredRotary

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Code under test.

    ``make`` builds a fresh instance with the same settings, so that what an earlier call left
    behind can be seen; keyword arguments (``base=..``, ``width=..``) change settings.  ``module``
    is the module behind it, if any: it is cast, and switched between training and evaluation.
    ``paths`` are other ways to the same result, by name, with the signature of the main call.
    ``adapted`` says in words how the code is called, and ``line`` in the signature language, if the
    call is given or guessed in it.

    ``given`` names inputs that the code does not make itself, with what was made for them: "angles"
    of rotary code, "mask" of a layer; "no mask" is the mask parameter that is left out, "full mask"
    what the given masks show; "padding" says which masks these are when a mask is given, and
    "counted" names lengths that mark padding.  No law takes these for properties of the code.

    ``lengths_given``: those of the letters of what it receives, which no law varies.
    ``others``: further lines that fit with another meaning, if ``line`` is a guess.  ``sizes``:
    widths among the settings of its constructor that were not given; ``guesses``: settings that no
    name explains.  ``conditions``: other choices in its calls, each a clause; proofs are
    conditional on them.  ``run_at``: the only lengths, by letter, at which a law is measured.
    ``beyond``: further numbers of tokens, if known, at which laws of a layer are checked.
    ``only_length``: the only number of tokens that it takes, 0 if it takes several.
    ``multiple_of``: the number of its tokens is a multiple of this one.
    ``converted``: which of its numbers are float32 here and not in use, as a clause; ``stored``:
    their formats in use.  ``as_before``: a context in which all that the code keeps, in this
    instance and beside it, as in a dictionary of its file, is as it was before the first call.
    """

    kind: ClassVar[str] = ""
    name: str
    make: Callable[..., Any] | None = None
    module: nn.Module | None = None
    paths: Mapping[str, Callable[..., Tensor]] = field(default_factory=dict)
    source: str = ""
    adapted: str = ""
    line: str = ""
    lengths_given: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    guesses: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    run_at: tuple[Mapping[str, int], ...] = ()
    only_length: int = 0
    multiple_of: int = 1
    converted: str = ""
    stored: tuple[str, ...] = ()
    beyond: tuple[int, ...] | None = None
    as_before: Callable[[], AbstractContextManager[Callable[[], object]]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its parameters or buffers; float32 if there are none."""
        parts = [] if self.module is None else [*self.module.parameters(), *self.module.buffers()]
        return next((x.dtype for x in parts if x.is_floating_point()), torch.float32)


@dataclass(frozen=True, kw_only=True)
class Rotary(Subject):
    """Rotary code.

    ``rotate``: queries (B, H, n, D) at positions (B, n) -> (B, H, n, D); positions with ``axes``
    coordinates are (B, n, axes).  ``key`` does the same to keys, if it is other code.  ``whole``:
    positions are integers.  ``first`` and ``most``: its positions p have first <= p < most.
    ``longest``: where it stands in for ``most`` in longer calls, which have other frequencies.

    ``shift``: keys already rotated (B, H, n, D), and an integer s -> the keys moved by s positions.
    ``all_three``: q, k, v (B, H, n, D), positions -> q, k, v, if code rotates values as well.
    ``values_rotate``: whether values are meant to rotate.  ``evict``: raw keys (B, H, n, D) -> the
    keys kept in its cache (B, H, W, D), their raw keys (B, H, W, D), and the positions (W,) that
    they claim to have.  ``grid``: rows, columns -> positions (rows·columns, 2), the row and column
    of each place, row-major.  ``convert``: projections of queries and keys (E_out, E_in) each,
    heads -> the same for code of the layout of ``converts_to``, itself a Rotary.  ``running``: x
    (B, H, n, D) at the positions 0..n-1, for code that takes no positions.  ``by_length``: the same
    for code whose results depend on n, which ``rotate`` keeps fixed.  ``beside``: x, what is
    rotated in the same call, positions, and 0 or 1 -> x rotated as a query or as a key, if one call
    rotates both.  ``pair``: x, y, positions -> x rotated as a query and y as a key, if one call
    rotates just these two.  ``last``: queries of the last tokens and the keys of all, the first at
    position 0 -> both rotated, if one call takes fewer queries than keys.  ``grouped``: keys
    rotated beside queries may have fewer heads.
    ``any_width``: all channels rotate, however many there are; ``width`` is the number used.
    ``single``: the letters among B and H whose axes the code lacks: it is called separately for
    each row, or head.  ``shared``: all rows have the same positions, which may be given once, as
    (1, n).  ``counts``: it counts the positions of a call itself, from the first one or 0.
    """

    kind: ClassVar[str] = "rotary"
    rotate: Callable[[Tensor, Tensor], Tensor]
    width: int
    key: Callable[[Tensor, Tensor], Tensor] | None = None
    heads: int = 2
    axes: int = 0
    whole: bool = True
    first: int = 0
    most: int = 1 << 20
    longest: int = 0
    declared: DeclaredRotary | None = None
    shift: Callable[[Tensor, int], Tensor] | None = None
    all_three: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]] | None = (
        None
    )
    values_rotate: bool = False
    evict: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]] | None = None
    grid: Callable[[int, int], Tensor] | None = None
    convert: Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]] | None = None
    converts_to: Rotary | None = None
    running: Callable[[Tensor], Tensor] | None = None
    by_length: Callable[[Tensor], Tensor] | None = None
    beside: Callable[[Tensor, Tensor, Tensor, int], Tensor] | None = None
    pair: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    last: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    grouped: bool = False
    any_width: bool = False
    single: str = ""
    shared: bool = False
    counts: bool = False

    @property
    def rotate_key(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The map that is applied to keys."""
        return self.key or self.rotate


@dataclass(frozen=True, kw_only=True)
class Attention(Subject):
    """Attention code: ``attend`` on queries, keys and values, or ``layer`` on tokens, or both.

    ``attend``: q (B, H, r, D), k (B, G, n, D), v (B, G, n, D), mask -> (B, H, r, D).  The mask is
    None, or truth values (B, 1, r, n) that are True where a query sees a key, or numbers of that
    shape to be added to the scores; ``masks`` names which of "bool" and "float" it takes, and
    ``by_key`` says that masks are the same for every query, ``by_head`` that they have a part for
    each head, (B, H, r, n) if it is given.

    ``layer``: tokens x (B, n, E) -> (B, n, E), with its own projections.  ``hide`` is the same with
    truth values (B, n), True for tokens that count and False for padding; ``hiding`` are other
    paths to that, as ``paths`` are to the main call.  ``counting``: q, k, v and truth values (B,
    n), True for the queries that count, if code takes a mask of queries.  ``reading``: x (B, n, E),
    a context (B, S, F) and truth values (B, S), True where it is seen, if code takes a mask of a
    context; ``context``: its number of features F.  ``from_start``: padding follows the tokens, as
    code is given their number.

    ``step``: a chunk of tokens (B, c, E) and the state (None at first) -> (B, c, E) and the next
    state: the same layer, fed in pieces.  ``padded_step``: the same with the number of padding
    tokens at the left of each row (B,) as third argument, on every call.  ``documents``: x (B, n,
    E) and position ids (B, n) that restart at 0 with each document.  ``positional``: whether the
    layer is meant to use absolute positions; ``whole_layer``: x (B, n, E) and the place of its
    first token -> (B, n, E), if code takes that.  ``weights``: like ``attend`` without values ->
    (B, H, r, n), if code returns its weights.  ``true_hides``: truth values are inverted before the
    code is given them, because its own True hides a key.  ``as_read``: the mask inferred from runs
    if nothing is declared.
    """

    kind: ClassVar[str] = "attention"
    attend: Callable[..., Tensor] | None = None
    layer: Callable[[Tensor], Tensor] | None = None
    hide: Callable[[Tensor, Tensor], Tensor] | None = None
    hiding: Mapping[str, Callable[..., Tensor]] = field(default_factory=dict)
    embed: int = 0
    heads: int = 1
    groups: int = 1
    width: int = 0
    masks: tuple[str, ...] = ()
    by_key: bool = False
    by_head: bool = False
    counting: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None
    reading: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    context: int = 0
    from_start: bool = False
    step: Step | None = None
    padded_step: Callable[[Tensor, Any, Tensor], tuple[Tensor, Any]] | None = None
    documents: Callable[[Tensor, Tensor], Tensor] | None = None
    whole_layer: Callable[[Tensor, int], Tensor] | None = None
    weights: Callable[[Tensor, Tensor], Tensor] | None = None
    positional: bool = False
    dropout: float = 0.0
    true_hides: bool = False
    declared: DeclaredAttention | None = None
    as_read: DeclaredAttention | None = None

    def __post_init__(self) -> None:
        if self.attend is None and self.layer is None:
            raise TypeError("attention code wants `attend` (on q, k, v) or `layer` (on tokens)")


@dataclass(frozen=True, kw_only=True)
class Bias(Subject):
    """Code that makes a bias of scores.

    ``bias``: numbers of queries r and keys n -> (H, r, n); the queries are the last r of n.
    ``window``: rows and columns of a window -> (H, R, R) with R = rows·columns, instead.
    ``index``: sizes of a window of any number of axes -> the index into its table (R, R), integers.
    ``square``: its windows are squares; for others it raises an error.
    ``causal``: whether keys after the query are hidden in any case.  ``of_heads``: a number of
    heads -> ``bias`` with so many, if code takes any number; otherwise it may raise anything.
    """

    kind: ClassVar[str] = "bias"
    heads: int
    bias: Callable[[int, int], Tensor] | None = None
    window: Callable[[int, int], Tensor] | None = None
    index: Callable[[tuple[int, ...]], Tensor] | None = None
    square: bool = False
    causal: bool = False
    of_heads: Callable[[int], Callable[[int, int], Tensor]] | None = None
    declared: DeclaredBias | None = None


@dataclass(frozen=True, kw_only=True)
class Additive(Subject):
    """Code that adds a table of positions to tokens: ``added``: x (B, n, D) -> (B, n, D).

    ``scale`` multiplies the tokens first, if the code does that (√D in the Transformer).  ``grid``:
    sizes of a grid (h, w), or (t, h, w) -> its table (*sizes, D), if tokens lie on ``axes`` axes;
    ``added`` then takes them row by row, as a grid that is nearly square.  ``within``: the same
    with coordinates in [0, 1), if it takes coordinates.
    """

    kind: ClassVar[str] = "additive"
    added: Callable[[Tensor], Tensor]
    width: int
    most: int = 4096
    scale: float = 1.0
    learned: bool = False
    grid: Callable[[tuple[int, ...]], Tensor] | None = None
    axes: int = 1
    within: Callable[[], Additive] | None = field(default=None, repr=False, compare=False)
    declared: DeclaredAdditive | None = None


@dataclass(frozen=True, kw_only=True)
class Mask(Subject):
    """Code that makes a mask.

    ``mask``: numbers of queries r and keys n -> (.., r, n): truth values, or numbers to add.
    ``true_means``: the meaning of True, "visible" or "hidden".  ``adds``: its numbers are declared
    to be added to scores, so that 0 hides nothing and 1 says nothing about visibility.
    ``as_read``: the mask inferred from runs if nothing is declared.  ``padded``: the number of
    tokens in each row (B,), of which one is full, and their maximum -> 1 where the last token of a
    row sees a key (B, S), 0 elsewhere, if code takes these numbers.
    """

    kind: ClassVar[str] = "mask"
    mask: Callable[[int, int], Tensor]
    padded: Callable[[Tensor, int], Tensor] | None = None
    true_means: str = "visible"
    adds: bool = False
    declared: DeclaredAttention | None = None
    as_read: DeclaredAttention | None = None


@dataclass(frozen=True, kw_only=True)
class Layer(Subject):
    """Any map of tokens: ``call``: x (B, n, E) -> (B, n, E').

    ``declared`` says whether it is causal, and ``positional`` whether it uses positions;
    ``as_read`` is what runs show if nothing is declared.  ``step``: the same fed in pieces, as for
    attention code.
    """

    kind: ClassVar[str] = "layer"
    call: Callable[[Tensor], Tensor]
    embed: int
    step: Step | None = None
    positional: bool = False
    declared: DeclaredAttention | None = None
    as_read: DeclaredAttention | None = None


@dataclass(frozen=True, kw_only=True)
class Pair(Subject):
    """Two programs on the same arrays that are checked for equality.

    ``calls``: each result of each program, by name: the shared arrays -> one array.  ``inputs``:
    examples of the shared arrays, and ``letters`` the letter of each of their axes.  ``formulas``:
    for each result, that both programs return the same.  ``sources``: the code of both.
    """

    kind: ClassVar[str] = "pair"
    calls: Mapping[str, Callable[..., Tensor]]
    inputs: tuple[Tensor, ...]
    letters: tuple[str, ...]
    formulas: tuple[Formula, ...]
    sources: tuple[Any, ...] = ()

    @property
    def lengths(self) -> dict[str, int]:
        """The length of each letter, in the examples."""
        return lengths_in(self.letters, self.inputs)


def lengths_in(letters: Sequence[str], arrays: Sequence[Tensor]) -> dict[str, int]:
    """Return the length of each letter, for arrays with lettered axes."""
    return {
        letter: n
        for told, x in zip(letters, arrays, strict=True)
        for letter, n in zip(told.split(), x.shape, strict=True)
    }


KINDS: dict[str, type[Subject]] = {
    cls.kind: cls for cls in (Rotary, Attention, Bias, Additive, Mask, Layer)
}


def lengths_of_code(subject: Subject) -> dict[str, int]:
    """Return the lengths of letters that code fixes: H, G, D, E, and F, context features."""
    match subject:
        case Rotary(heads=H, width=D):
            return {"H": H, "D": D, "E": D, "F": H * D}
        case Attention(heads=H, groups=G, width=D, embed=E, context=F):
            return {"H": H, "G": G, "D": D, "E": E, "F": F}
        case Additive(width=E) | Layer(embed=E):
            return {"E": E}
    return {}


def formulas_of(subject: Subject) -> tuple[Formula, ...]:
    """Return the formulas checked of some code: those of the laws of its kind, or a pair's own."""
    if isinstance(subject, Pair):
        return subject.formulas
    return tuple(f for law in laws_of(subject.kind) for f in law.formulas if f.kind == subject.kind)


def provable(subject: Subject) -> tuple[Formula, ...]:
    """Return the formulas of which a proof is tried: one weaker than its law does not prove it.

    Code that takes multiples of some number of tokens cannot be called with any first tokens alone,
    so that their omission says nothing about later tokens of the same block.
    """
    said = {"", LATER_TOKENS_OMITTED} if subject.multiple_of > 1 else {""}
    return tuple(f for f in formulas_of(subject) if f.unsaid in said and not f.floats)
