"""The roles of the parts of a signature, and what its readers share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from ..code import Code, DoesNotFit, can_be_called
from ..execution.calling import untouched
from ..execution.running import describe_refusal
from ..loading.building import method_of
from ..loading.constructors import guesses, set_words, widths_built
from ..loading.names import INDEX, OF_TOKENS, role_of
from ..loading.program import Program
from ..signatures.layout import CACHE_SIZE, laid_out
from ..signatures.signature import Argument, Axis, Same, Signature, SignatureError
from ..subjects import Subject

ROTATED = ("query", "key", "value", "tokens")
TABLES = ("cos", "sin", "angles", "cis", "cos_sin", "sin_cos", "matrices")
PLACES = ("positions", "coordinates", "axis")
JOINT_TABLES = ("cos_sin", "sin_cos")  # tables with cosines and sines in one array
PAIR = Axis(((Fraction(2), ()),))
ROW_AXES = {*"BHGnmrhwt"}  # letters of axes along which angles do not run
COUNTED = ("length", "keys", "heads", "groups", "width", "embed", "rows", "offset", "rotated")
MASKS = ("keep", "hide", "ones", "zeros", "factors", "add")
TRUTH_OF = {"ones": "keep", "zeros": "hide", "factors": "keep"}  # the same mask in truth values
HIDING = ("hide", "zeros")  # masks that are True, or 1, where a key is hidden
SIZES = {"B": 3, "H": 4, "G": 2, "r": 5, "n": 7, "D": 8, "E": 16}  # all different
MAX_INSTANCES = 8  # cached instances of the code, one for each choice of sizes
VARIED = "nrthwuvp"  # numbers of tokens, sides of grids and first positions vary in every law
OTHER_LENGTH = 6  # the length of any other letter
ORDINARY_ID = 2  # an id that is neither padding nor the first of the vocabulary


@lru_cache(maxsize=CACHE_SIZE)
def role(one: Argument) -> str:
    """Return the role of an array: the declared kind, else what its name implies.

    It is cached because every call of some code needs it.  An array with features is not a number,
    even if its name is that of a length or a width.

    >>> from ..signatures.grammar import parse
    >>> role(parse("context: B n E -> 1").arrays[0])
    'tokens'
    """
    if one.kind:
        return one.kind
    found = role_of(one.name)
    axes = [str(axis) for axis in one.axes or ()]
    wide = len(axes) > 2 and axes[-1].isdigit() and axes[-1] != "1"
    if found in COUNTED and (wide or {"D", "E"} & set(one.letters)):
        return "tokens"
    if len(one.name) == 1 and found in ("cos", "sin") and "E" in one.letters:
        return "tokens"
    if not found and len(axes) == 4 and axes[1:3] == ["n", "n"]:
        return "constant"  # of pairs of tokens
    if axes[-2:] == ["2", "2"] and ("D" in one.letters or found in ("pair", "freqs")):
        return "matrices"
    halves = found == "pair" or (found == "freqs" and "2" in map(str, one.axes or ()))
    if halves and "D" in one.letters and "E" not in one.letters:
        return "sin_cos" if one.name.lower().startswith("sin") else "cos_sin"
    return found


@lru_cache(maxsize=CACHE_SIZE)
def axes_of_table(table: Argument) -> tuple[int, ...]:
    """Return the places of a table's axis of angles and of its axes of 2, if any, in that order.

    Cosines and sines may have an axis of 2 before or after their angles; a matrix has two.

    >>> from ..signatures.grammar import parse
    >>> [axes_of_table(parse(f"t: {axes} -> 1").arrays[0]) for axes in (
    ...     "2 B 1 n D/2 cos_sin", "2 n 2 cos_sin", "n 2 2 cos_sin", "n 4 2 2 matrices")]
    [(4, 0), (2, 0), (1, 2), (1, 2, 3)]
    """
    axes = table.axes or ()
    many = {"matrices": 2}.get(role(table), 1 if role(table) in JOINT_TABLES else 0)
    twos = [k for k, axis in enumerate(axes) if axis == PAIR]
    if many == 1 and len(twos) > 1 and ROW_AXES & {*axes[-2].letters}:
        twos = twos[:1]  # before rows with a single pair
    own = twos[-many:] if many and len(twos) >= many else []
    left = [k for k in range(len(axes)) if k not in own]
    return (*left[-1:], *own)


def lengths_of(signature: Signature, **known: int) -> dict[str, int]:
    """Return a length for every letter: those given or declared, and distinct ones for the rest."""
    free = {c: SIZES.get(c, OTHER_LENGTH) for c in signature.letters}
    return {**free, **dict(signature.sizes), **known}


def lengths_given(
    signature: Signature, lengths: Mapping[str, int], *, arrays: bool = True
) -> dict[str, int]:
    """Return the lengths of the letters of what the code receives, which no law varies.

    ``arrays``: of its arrays as well as of numbers.

    >>> from ..signatures.grammar import parse
    >>> told = parse("x: B n E, n = n, heads = H -> B n E")
    >>> lengths_given(told, lengths_of(told, H=3), arrays=False)
    {'H': 3}
    """
    own = [one.lengths for one in (*signature.arguments, *signature.built)]
    own += [one.letters for one in signature.arrays] if arrays else []
    letters = {c for one in own for c in one} - set(VARIED)
    return {c: lengths[c] for c in signature.letters if c in letters}


def bounds(one: Argument, lengths: Mapping[str, int], like: Tensor) -> Tensor:
    """Return the boundaries of sequences of equal length packed into one axis.

    Raises :class:`SignatureError` for other axes.

    >>> from ..signatures.grammar import parse
    >>> told = parse("q: (B r) H D, k: (B n) H D, cu_seqlens_q: (B + 1) bounds -> q")
    >>> bounds(told.arrays[2], {"B": 2, "r": 3, "n": 5}, torch.zeros(1)).tolist()
    [0, 3, 6]
    """
    if one.shape(lengths) != (lengths["B"] + 1,):
        raise SignatureError(f"wanted one more bound than there are rows, (B + 1), got {one}")
    each = lengths["r" if one.name.endswith("q") and "r" in lengths else "n"]
    return torch.arange(lengths["B"] + 1, dtype=torch.int32, device=like.device) * each


def bounds_at(ids: Tensor) -> Tensor:
    """Return the boundaries of packed documents, whose position ids (B, n) begin at 0.

    >>> bounds_at(torch.tensor([[0, 1, 0], [0, 0, 1]])).tolist()
    [0, 2, 3, 4, 6]
    """
    begins = (ids.flatten() == 0).nonzero()[:, 0]
    return torch.cat((begins, begins.new_tensor([ids.numel()]))).to(torch.int32)


def document_numbers(one: Argument, ids: Tensor, lengths: Mapping[str, int]) -> Tensor:
    """Return the number of each token's document, whose position ids (B, n) begin at 0.

    >>> from ..signatures.grammar import parse
    >>> told = parse("x: B n E, document_ids: B n documents -> B n E").arrays[1]
    >>> document_numbers(told, torch.tensor([[0, 1, 0], [0, 0, 1]]), {"B": 2, "n": 3}).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    numbers = (ids == 0).cumsum(-1) - 1
    if "B" not in one.letters:
        return laid_out(numbers[0], ("n",), one.axes or (), lengths)
    return laid_out(numbers, ("B", "n"), one.axes or (), lengths)


def result_names(signature: Signature, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the results that correspond to these arrays, in their order."""
    told = tuple(name for name, _ in signature.named_results)
    if set(names) <= set(told):
        return tuple(names)
    if len(told) < len(names):
        raise SignatureError(f"wanted {' and '.join(names)} back, got {signature}")
    return told[: len(names)]


def result_axes(signature: Signature, name: str) -> tuple[Axis, ...]:
    """Return the axes in which a result comes back."""
    for k, one in enumerate(signature.results):
        if name in (one.name, str(k)) and one.axes is not None:
            return one.axes
    raise SignatureError(f"wanted {name} back, got {signature}")


def as_described(code: Code, signature: Signature) -> Code:
    """Return the code as the signature describes it: built with its settings, and its method.

    Raises :class:`SignatureError` if it cannot be built that way or has no such method.
    """
    settings = {one.name: one.value for one in signature.built if not one.lengths}
    made = code.again(**settings) if settings else code
    if not signature.method and can_be_called(made.call):
        return made
    if not signature.method:
        raise SignatureError(
            f"wanted method NAME behind a semicolon: objects of {code.name} cannot be called"
        )
    if not hasattr(made.call, signature.method):
        raise SignatureError(f"wanted a method {signature.method} of {code.name}, got none")
    return method_of(made, signature.method)


def runner(
    code: Code, signature: Signature, *, whole: bool = False
) -> Callable[[Mapping[str, Any], Mapping[str, int]], Any]:
    """Return a map of arrays and lengths to results by name, building code that depends on lengths.

    Calls of the same sizes share one instance, so that what a call leaves behind is there in the
    next.  Traced calls, and calls on anything but numbers, build their own, unless the code already
    has these sizes (:func:`built_at`).  ``whole``: results are returned unchanged.
    """
    kept: dict[tuple[Any, ...], Code] = {}
    sized = [one for one in signature.built if one.lengths]
    if not sized:
        made = Program(code.call, signature, code.name)
        return made.called if whole else made.run

    def run(arrays: Mapping[str, Any], lengths: Mapping[str, int]) -> Any:
        sizes = {one.name: one.at(lengths) for one in sized}
        plain = _on_numbers(arrays, sizes)
        there = sizes.items() <= code.built.items()
        made = code if there else kept.get(tuple(sizes.items())) if plain else None
        if made is None:
            made = code.again(**sizes)
        if plain and not there:
            if len(kept) >= MAX_INSTANCES:
                kept.pop(next(iter(kept)))
            kept[tuple(sizes.items())] = made
        program = Program(made.call, signature, code.name)
        return (program.called if whole else program.run)(arrays, lengths)

    return run


def built_at(code: Code, signature: Signature, **lengths: int) -> Code:
    """Return the code built with the line's settings at these lengths, if they determine them all.

    So ``built with dim = D`` acts as ``--set dim=8`` does: code that is built inside a call has no
    graph, and nothing can be proved of it.
    """
    sized = [one for one in signature.built if one.lengths]
    if not sized or not all(set(one.lengths) <= set(lengths) for one in sized):
        return code
    return code.again(**{one.name: one.at(lengths) for one in sized})


def _on_numbers(arrays: Mapping[str, Any], sizes: Mapping[str, Any]) -> bool:
    """Whether code runs on plain tensors and is not being traced."""
    tensors = [x for x in arrays.values() if isinstance(x, Tensor)]
    return (
        not torch.compiler.is_compiling()
        and not torch.compiler.is_exporting()
        and all(type(x) in (Tensor, nn.Parameter) for x in tensors)
        and all(isinstance(n, int | tuple) for n in sizes.values())
    )


def shared_fields(
    code: Code,
    signature: Signature,
    again: Callable[[Code, Signature], Subject],
    more: str = "",
    guessed: bool = False,
    lengths: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the fields that all subjects share: name, call, and how to build one again.

    ``guessed``: the signature was not given, and is shown so that it can be corrected.
    ``lengths``: those with which it is called, where they are not the usual ones.
    """

    def made(**settings: Any) -> Subject:
        other = code.again(**settings)
        with untouched(other.module):
            return again(other, signature)

    told = f"called as --call '{signature}'" if guessed else f"called as given: {signature}"
    own = type(code.module) if code.module is not None else inspect.unwrap(code.call)
    maker = code.maker or own
    said = {one.name: one.value for one in signature.built}
    guess = guesses(maker, code.built, {**code.options.settings, **said})
    built = f"built as with {set_words(guess)}" if guess else ""
    chosen = unexplained(signature) if guessed else ()
    lengths = lengths or lengths_of(signature)
    numbers = (f"with {one}, which is a guess" for one in chosen)
    same = (
        f"{one.name} is {one.value}" for one in signature.arguments if isinstance(one.value, Same)
    )
    more = "; ".join(filter(None, (built, code.converted, *numbers, *same, more)))
    parts = [one for one in more.split("; ") if one]
    return {
        "name": code.name,
        "line": str(signature),
        # a module has widths of its own
        "lengths_given": lengths_given(signature, lengths, arrays=code.module is None),
        "make": made,
        "module": code.module,
        "sizes": widths_built(maker, code.built, code.options.settings),
        "guesses": guess,
        "conditions": tuple(map(_clause, parts)),
        "converted": code.converted,
        "stored": code.stored,
        "source": code.place,
        "adapted": f"{code.name} {told}" + (f"; {more}" if more else ""),
    }


def unexplained(signature: Signature) -> Iterator[Argument]:
    """Yield the numbers of a line that were chosen here and that their names do not explain."""
    each = ((one.parts if one.named else (one,)) for one in signature.arguments)
    for one in chain.from_iterable(each):
        number = type(one.value) is int or "D" in one.lengths
        named = role_of(one.name) or INDEX.fullmatch(one.name) or OF_TOKENS.fullmatch(one.name)
        if number and not named:
            yield one


def _clause(words: str) -> str:
    """Return a choice of the call as a clause that follows "where".

    >>> _clause("with a table of each pair, made here")
    'it is called with a table of each pair, made here'
    """
    for begins, verb in (("with ", "called"), ("built ", "")):
        if words.startswith(begins):
            return " ".join(filter(None, ("it is", verb, words)))
    return words


def describe_call_error(code: Code, error: Exception) -> str:
    """Describe in a line what a call of the code raised; attnproof's own faults propagate."""
    if isinstance(error, SignatureError | DoesNotFit):
        return str(error)
    whole = Subject(name=code.name, source=code.place, adapted="as given")
    return f"it raised {describe_refusal(whole, error, 300)}"
