"""Biases and masks with a given call, as functions of lengths alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..code import Code, DoesNotFit, NoSetting
from ..loading.names import parameters, sizes_of
from ..signatures.grammar import parse
from ..signatures.layout import Label, labels, laid_out, read_back
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from ..subjects import Bias, Mask, Subject
from .roles import (
    HIDING,
    PLACES,
    ROTATED,
    SIZES,
    built_at,
    lengths_of,
    result_axes,
    result_names,
    role,
    runner,
    shared_fields,
)
from .supplied_inputs import (
    call_and_contents,
    plain_input,
    shape_only_contents,
    supplied_values,
)

ONE_LENGTH = "it takes one length, so fewer queries are read from the last rows"
WINDOWS = ("(h w)", "(h h)")
MASK_AXES = ("B", "H", "r", "n")
START = parse("start = (n - r) -> 1").arguments[0]  # position of the first of the last queries


def _rows_and_keys(axes: Sequence[Axis], label: str) -> tuple[Axis, ...]:
    """Return the axes; of two with this label, the first becomes r (queries), the other n."""
    at = [k for k, a in enumerate(axes) if str(a) == label]
    if len(at) != 2:
        return tuple(axes)
    own = {k: parse(f"-> {letter}").results[0] for k, letter in zip(at, "rn", strict=True)}
    return tuple((own[k].axes or ())[0] if k in own else a for k, a in enumerate(axes))


def heads_of(code: Code) -> int:
    """The number of heads for a call: as set, else as stored in the object, declared or default."""
    held = max(sizes_of(getattr(code.call, "__self__", code.call), "heads"), default=0)
    return code.options.heads or held or code.options.likely.get("heads", 0) or SIZES["H"]


def plain_arrays(signature: Signature, lengths: dict[str, int]) -> dict[str, Any]:
    """Return plain values for the arrays of code from which only lengths are wanted.

    Masks show every key; ids are those of one document; lengths are full.  Positions are those of
    the keys, those of the last keys for queries, and offsets (key minus query) for pairs.  Tokens
    are all the same vector; anything else is 0.  Every verdict names these choices
    (:data:`.supplied_inputs.CONTENTS`).
    """
    return {one.name: _plain(one, lengths) for one in signature.arrays}


def _plain(one: Argument, lengths: Mapping[str, int]) -> Tensor:
    shape, kind = one.shape(lengths), role(one)
    plain = plain_input(one, lengths, torch.zeros(()))
    if plain is not None:
        return plain
    if kind in PLACES:
        found = _places(one, lengths)
        return found.to(torch.get_default_dtype()) if kind == "coordinates" else found
    if kind in ROTATED and shape:  # one vector for all, so that rows do not depend on the length
        return torch.arange(1.0, shape[-1] + 1).sin().expand(shape).clone()
    return torch.zeros(shape)


def _places(one: Argument, lengths: Mapping[str, int]) -> Tensor:
    """Return the positions of tokens, or offsets if the array has axes of queries and keys."""
    letters = [str(axis) for axis in one.axes or ()]
    keys = torch.arange(lengths["n"])
    queries = lengths.get("r", lengths["n"])
    last = keys[max(lengths["n"] - queries, 0) :]
    if letters.count("n") == 2 or {"r", "n"} <= set(letters):
        here = ("r", "n")
        axes = _rows_and_keys(one.axes or (), "n") if letters.count("n") == 2 else one.axes or ()
        return laid_out(keys - last[:, None], here, axes, {**lengths, "r": len(last)})
    if "r" in letters:
        return laid_out(last, ("r",), one.axes or (), lengths)
    return laid_out(keys, ("n",), one.axes or (), lengths)


def _read_off(signature: Signature, axes: Sequence[Axis], found: Tensor) -> dict[str, int]:
    """Return the lengths of letters that occur only in the result, as axes of their own."""
    arrays = (one.letters for one in signature.arrays)
    values = (one.lengths for one in (*signature.arguments, *signature.built))
    known = {c for letters in (*arrays, *values) for c in letters}
    sizes = zip(axes, found.shape, strict=False)
    return {str(a): n for a, n in sizes if len(str(a)) == 1 and a.letters and str(a) not in known}


LengthMap = tuple[Callable[[int, int], Tensor], str]  # and how its lengths are treated, in words


def _by_lengths(code: Code, signature: Signature, heads: bool) -> LengthMap:
    """Return the code as a map of (queries, keys); for code with one length, its last rows."""
    run = runner(code, signature)
    back = result_names(signature, ("out",))[0]
    square = "r" not in signature.letters
    axes, more = result_axes(signature, back), 0
    if square:
        more = surplus_tokens(axes)
        axes = _rows_and_keys(axes, str(axes[-1]) if more else "n")
    if fixed_size(axes):
        return _fixed(code, signature, heads)
    if "n" not in [str(a) for a in axes]:
        raise SignatureError(
            f"wanted a result with axes of queries r and keys n, or n n for one length, got "
            f"{signature}"
        )
    there = labels(axes)
    numbers = [k for k, c in enumerate(there) if c.isdigit()]
    of_heads = heads or "H" in there
    named: Label = numbers[0] if heads and "H" not in there and len(numbers) == 1 else "H"
    wanted: tuple[Label, ...] = ("B", *((named,) if of_heads else ()), "r", "n")

    def whole(queries: int, keys: int) -> Tensor:
        rows = keys if square else queries
        lengths = lengths_of(signature, r=rows, n=keys, B=1, H=heads_of(code))
        found = run(plain_arrays(signature, lengths), lengths)[back]
        lengths |= {"r": rows + more, "n": keys + more}
        own = {c: n for c, n in _read_off(signature, axes, found).items() if c not in "Brn"}
        value = read_back(found, axes, wanted, {**lengths, **own})[0]
        if of_heads and not heads:  # a mask is shared by all heads
            if not torch.equal(value, value[:1].expand_as(value)):
                raise SignatureError(f"wanted one mask for all heads from {signature}, got several")
            value = value[0]
        return value.expand(*value.shape[:-2], rows + more, keys + more)

    def call(queries: int, keys: int) -> Tensor:
        value = whole(queries, keys)
        if more:
            value = value[..., start : start + keys, start : start + keys]
        return last_rows(value, queries) if square else value

    said = ONE_LENGTH if square else ""
    last = bool(more) and _last_left_out(whole(5, 5), more)
    start = 0 if last else more
    if more:
        which = "last" if last else "first"
        rows = "row and column" if more == 1 else f"{more} rows and columns"
        said += f"; its {which} {rows} belong to no token, and are left out"
    return call, said


def _last_left_out(whole: Tensor, more: int) -> bool:
    """Whether the surplus queries and keys come last rather than first, judged by diagonals.

    >>> _last_left_out(torch.tensor([[1, 2, 7], [0, 1, 7], [7, 7, 7]]), 1)
    True
    """
    return has_constant_diagonals(whole[..., :-more, :-more]) and not has_constant_diagonals(
        whole[..., more:, more:]
    )


def has_constant_diagonals(square: Tensor) -> bool:
    """Whether each diagonal is constant."""
    return torch.equal(square[..., 1:, 1:], square[..., :-1, :-1])


def surplus_tokens(axes: Sequence[Axis]) -> int:
    """The number of queries and keys beyond the tokens, such as a class token in front.

    >>> [surplus_tokens(parse(f"-> {axes}").results[0].axes) for axes in ("(n + 1) (n + 1)", "n n")]
    [1, 0]
    """
    sums = [axis for axis in axes[-2:] if axis.letters == ("n",) and len(axis.terms) == 2]
    more = sums[0].size({"n": 0}) if len(sums) == 2 and sums[0] == sums[1] else 0
    return more if more > 0 and sums[0].size({"n": 1}) == more + 1 else 0


def fixed_size(axes: Sequence[Axis]) -> int:
    """The only number of queries and keys that the code takes; 0 if these are letters.

    >>> fixed_size(parse("-> 4 16 16 add").results[0].axes)
    16
    """
    last = [axis.size({}) for axis in axes[-2:] if not axis.letters]
    return last[0] if len(last) == 2 and last[0] == last[1] > 1 else 0


def _fixed(code: Code, signature: Signature, heads: bool) -> LengthMap:
    """Return code with a fixed number of tokens as a map of (queries, keys), its first tokens."""
    back = result_names(signature, ("out",))[0]
    axes = result_axes(signature, back)
    most = fixed_size(axes)

    def call(queries: int, keys: int) -> Tensor:
        if keys > most:
            raise SignatureError(f"wanted at most {most} keys for {signature}, got {keys}")
        lengths = lengths_of(signature, B=1, H=heads_of(code))
        value: Tensor = runner(code, signature)(plain_arrays(signature, lengths), lengths)[back]
        if value.shape[-2:] != (most, most):
            raise SignatureError(
                f"wanted last axes {most} {most} from {signature}, got {tuple(value.shape)}"
            )
        for place in reversed(range(len(axes) - 2)):
            if not heads or "H" not in axes[place].letters:
                value = value.select(place, 0)
        value = value[None] if heads and value.dim() == 2 else value
        return value[..., keys - queries : keys, :keys]

    return call, f"it takes exactly {most} tokens, of which the first are used"


def last_rows(value: Tensor, queries: int) -> Tensor:
    """Return the last rows of a square result.

    They are selected by index rather than sliced: a slice tests whether it drops any row, so its
    graph would hold only for fewer queries than keys.

    >>> last_rows(torch.eye(3), 1)
    tensor([[0., 0., 1.]])
    """
    rows = value.shape[-2]
    return value.index_select(-2, torch.arange(rows - queries, rows, device=value.device))


def _shared(
    code: Code, signature: Signature, made: Callable[..., Subject], more: str, guessed: bool
) -> dict[str, Any]:
    """Return the fields of all subjects, for one batch row and the number of heads of the code."""
    again = partial(made, guessed=guessed)
    lengths = lengths_of(signature, B=1, H=heads_of(code))
    return shared_fields(code, signature, again, more, guessed, lengths)


def bias(code: Code, signature: Signature, *, guessed: bool = False) -> Bias:
    """Return a bias: a map of lengths to (H, r, n), or the bias of a window, or its index.

    Raises :class:`SignatureError`.
    """
    code = built_at(code, signature, H=heads_of(code))
    if "h" in signature.letters:
        return _of_window(code, signature, guessed)
    call, length = _by_lengths(code, signature, heads=True)
    few, square = call(2, 3), call(5, 5)
    if (
        supplied_values(signature, shape_only_contents)
        and not code.has_parameters
        and not (few.any() or square.any())
    ):
        raise SignatureError(_nothing_added(signature))
    late = torch.ones(5, 5, dtype=torch.bool).triu(1)
    more = call_and_contents(length, signature)
    return Bias(
        **_shared(code, signature, bias, more, guessed),
        heads=few.shape[0],
        bias=call,
        causal=bool(torch.isneginf(square[:, late]).all()),
        of_heads=partial(_with_heads, code, signature),
        given={**supplied_values(signature, shape_only_contents), **_start(code, signature)},
    )


def _with_heads(code: Code, signature: Signature, heads: int) -> Callable[[int, int], Tensor]:
    """Return the bias for another number of heads, set in the call or the constructor.

    Raises ``NoSetting`` if neither takes one.
    """

    def named(call: Callable[..., Any]) -> list[str]:
        return [one.name for one in parameters(call) if one.role == "heads"]

    told = {one.name for one in signature.arguments}
    if any("H" in one.lengths for one in signature.arguments):
        code = replace(code, options=replace(code.options, heads=heads))
    elif left := [name for name in named(code.call) if name not in told]:
        code = replace(code, call=partial(code.call, **{left[0]: heads}))
    elif code.module is not None and (built := named(type(code.module))):
        code = code.again(**{built[0]: heads})
    else:
        raise NoSetting(f"{code.name} takes no number of heads")
    return _by_lengths(code, signature, heads=True)[0]


def _nothing_added(signature: Signature) -> str:
    """Return why no law is asked of a bias that is 0 for the arrays supplied, and what to check.

    >>> _nothing_added(parse("mask: B n keep -> B 1 1 n")).partition(", so")[0]
    'as a bias it is 0 everywhere, where mask shows every key'
    """
    handed = ", ".join(str(one) for one in signature.arrays)
    values = supplied_values(signature, shape_only_contents)["values"]
    return (
        f"as a bias it is 0 everywhere, where {values}, so that every law would hold "
        "vacuously; check attention that adds it: a function that attends with q, k, v "
        "and what this returns, "
        f"--call 'q: B H r D, k: B H n D, v: B H n D, {handed} -> B H r D'"
    )


def _start(code: Code, signature: Signature) -> dict[str, str]:
    left = missing_start(code, signature)
    return {"start": left} if left else {}


def missing_start(code: Code, signature: Signature) -> str:
    """The parameter that must give the position of the first query if queries are few; else "".

    T5 takes ``past_seen_tokens``, which is 0 by default: the queries are then at the start.
    """
    told = {one.name for one in signature.arguments}
    left = [
        one.name
        for one in parameters(code.call)
        if one.role == "offset" and not one.required and one.name not in told
    ]
    if len(left) != 1 or not any(one.lengths == ("r",) for one in signature.arguments):
        return ""
    start = replace(START, name=left[0])
    placed = replace(signature, arguments=(*signature.arguments, start))
    try:
        plain, moved = (_by_lengths(code, one, heads=True)[0] for one in (signature, placed))
        last = plain(7, 7)[..., 4:, :]
        moves = torch.equal(moved(3, 7), last) and not torch.equal(plain(3, 7), last)
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return ""
    return left[0] if moves else ""


def mask(code: Code, signature: Signature, *, guessed: bool = False) -> Mask:
    """Return a mask: a map of lengths to (r, n).  Raises :class:`SignatureError`."""
    code = built_at(code, signature, H=heads_of(code))
    call, length = _by_lengths(code, signature, heads=False)
    kind = next((one.kind for one in signature.array_results), "")

    def read(queries: int, keys: int) -> Tensor:
        value = call(queries, keys)
        return (
            value
            if kind not in ("keep", "factors", *HIDING) or value.dtype == torch.bool
            else value != 0
        )

    read(2, 3)
    more = call_and_contents(length, signature)
    return Mask(
        **_shared(code, signature, mask, more, guessed),
        mask=read,
        padded=_padded(code, signature, kind, guessed=guessed),
        true_means="hidden" if kind in HIDING else "visible",
        adds=kind == "add",
        given=supplied_values(signature, shape_only_contents),
    )


def _padded(
    code: Code, signature: Signature, kind: str, *, guessed: bool
) -> Callable[[Tensor, int], Tensor] | None:
    """Return which keys the last token of each row sees (B, n), for code given lengths per row.

    None if padding comes first, or if the call was guessed and the lengths have no effect: they may
    be fractions of the longest.
    """
    told = [one for one in signature.arrays if role(one) == "lengths" and one.letters == ("B",)]
    back = result_names(signature, ("out",))[0]
    axes = _rows_and_keys(result_axes(signature, back), "n")
    there = labels(axes)
    if len(told) != 1 or not {"B", "n"} <= {*there} <= {"B", "H", "r", "n", "1"}:
        return None

    def every(counts: Tensor, most: int) -> Tensor:
        """Which keys each token of each row sees (B, r, n)."""
        rows = len(counts)
        lengths = lengths_of(signature, r=most, n=most, B=rows, H=heads_of(code))
        arrays = {**plain_arrays(signature, lengths), told[0].name: counts.clone()}
        found = read_back(runner(code, signature)(arrays, lengths)[back], axes, MASK_AXES, lengths)
        seen = found[:, 0].expand(rows, most, most).double()
        seen = seen.exp() if kind == "add" else 1 - seen if kind in HIDING else seen
        return (seen > 0.5).double()

    def padded(counts: Tensor, most: int) -> Tensor:
        return every(counts, most)[torch.arange(len(counts)), counts - 1]

    with suppress(Exception):  # the code may raise anything
        full, alone = padded(torch.tensor([4, 2]), 4), every(torch.tensor([4, 1]), 4)[1, -1]
        if (guessed and bool(full.all())) or alone.tolist() == [0, 0, 0, 1]:
            return None
    return padded


def _of_window(code: Code, signature: Signature, guessed: bool) -> Bias:
    """Return the bias of a window of h rows and w columns, or the index into its table.

    If only h is told, windows are squares.
    """
    back = result_names(signature, ("out",))[0]
    square = "w" not in signature.letters
    axes = _rows_and_keys(result_axes(signature, back), WINDOWS[square])
    tupled = next((one for one in signature.arguments if isinstance(one.value, tuple)), None)

    def require_sides(sizes: tuple[int, ...]) -> None:
        if square and len(set(sizes)) > 1:
            raise SignatureError(f"wanted a square window for {signature}, got {sizes}")

    def index(sizes: tuple[int, ...]) -> Tensor:
        require_sides(sizes)
        if len(sizes) == 2:
            call, lengths = signature, dict(zip("hw", sizes, strict=True))
        elif tupled is None:
            raise SignatureError(f"wanted a window of two axes, got {sizes}, in {signature}")
        else:
            letters = "hwuv"[: len(sizes)]
            area = f"({' '.join(letters)})"
            call = parse(f"{tupled.name} = ({', '.join(letters)}) -> {area} {area} index")
            lengths = dict(zip(letters, sizes, strict=True))
        found: Tensor = next(iter(runner(code, call)({}, lengths).values()))
        return found.reshape(math.prod(sizes), math.prod(sizes))

    def window(rows: int, columns: int) -> Tensor:
        require_sides((rows, columns))
        lengths = lengths_of(signature, h=rows, w=columns, B=1)
        lengths |= {"r": rows * columns, "n": rows * columns, "H": heads_of(code)}
        found = runner(code, signature)({}, lengths)[back]
        own = {c: n for c, n in _read_off(signature, axes, found).items() if c == "H"}
        return read_back(found, axes, ("B", "H", "r", "n"), {**lengths, **own})[0]

    def shown(sizes: tuple[int, ...]) -> Tensor:
        require_sides(sizes)
        made: Any = code.again(
            **{one.name: one.at(dict(zip("hw", sizes, strict=True))) for one in signature.built}
        ).call
        return index_of_pairs(made)

    told = _shared(code, signature, bias, "", guessed)
    if any(one.kind == "index" for one in signature.results):
        index((2, 2 if square else 3))
        return Bias(**told, heads=1, index=index, square=square)
    held = signature.built and hasattr(code.call, "relative_position_index")
    heads = window(2, 2 if square else 3).shape[0]
    return Bias(**told, heads=heads, window=window, index=shown if held else None, square=square)


def index_of_pairs(module: Any) -> Tensor:
    """Return the index (R, R) into the table of a module, for each pair of places of its window."""
    index: Tensor = module.relative_position_index
    places = math.isqrt(index.numel())
    return index.reshape(places, places)


def bias_of_table(module: Any) -> Tensor:
    """Return the bias (H, R, R) of a module: the rows of its table at its index."""
    index, table = index_of_pairs(module), module.relative_position_bias_table
    rows: Tensor = table[index.reshape(-1)]
    return rows.reshape(*index.shape, -1).permute(2, 0, 1)


def table_of_window(code: Code) -> Bias:
    """Return the bias of a module that is called with tokens and holds its table and index.

    Raises ``DoesNotFit`` if it cannot be built with another window.
    """
    holder: Any = code.call
    if "window_size" not in {one.name for one in parameters(type(holder))}:
        raise DoesNotFit("it has a table and an index, and is not built with a window_size")

    def of(sizes: tuple[int, ...]) -> Any:
        own = getattr(code.call, "window_size", None)
        if isinstance(own, int):
            if len(set(sizes)) > 1:
                raise TypeError(f"{code.name} has square windows")
            return code.again(window_size=sizes[0]).call
        return code.again(window_size=sizes).call

    return Bias(
        name=code.name,
        make=lambda **settings: table_of_window(code.again(**settings)),
        module=code.module,
        source=code.place,
        heads=holder.relative_position_bias_table.shape[-1],
        window=lambda rows, columns: bias_of_table(of((rows, columns))),
        index=lambda sizes: index_of_pairs(of(sizes)),
        square=isinstance(getattr(holder, "window_size", None), int),
        adapted=f"the table of {code.name}, read with its index, in windows of (rows, columns)",
    )
