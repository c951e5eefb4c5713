"""Call forms of attention and layers: how they are called where nobody says so, as a table.

Each form is a line of the signature language with roles in the place of names; what comes back is
read off the shapes of one call with lengths that all differ.  Masks are tried one by one, with a
token hidden that later tokens can see, causal rows as well: so what True means is seen.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from .adapters.code import Code, DoesNotFit
from .adapters.roles import Parameter, order_in, parameters
from .adapters.sources import alike
from .adapters.transformers import sections_of
from .attention import OnHeads, on_heads, takes_mask
from .fitting import Fit, best, fitting
from .masks import is_mask
from .program import Program
from .roles import MASKS as KINDS_OF_MASKS
from .roles import SIZES, TURNED, raised, role
from .signature import Signature, parse
from .states import stepping
from .subjects import Attention, Layer
from .tables import beside
from .tokens import OnTokens, attention, layer, widths_of_tokens

__all__ = ["CHOICES", "FORMS", "fit_attention", "fit_layer"]

THREE = ("query", "key", "value")
CHOICES: dict[str, tuple[str, ...]] = {
    "<q>": ("B H r D", "B r H D", "B r (H D)", "B r D", "H r D", "r B D", "r D"),
    "<one>": ("B H n D", "B n H D", "B n (H D)", "B n D", "H n D", "n B D", "n D"),
    "<x>": ("B n E", "n B E", "n E", "B C h w"),
    "<row>": ("B 1 r n", "B r n", "r n", "B H r n", "B 1 1 n", "B n"),
    "<padding>": ("B n", "B 1 1 n", "B r n"),
    "<causal>": ("B 1 n n", "n n"),
}
# The roles of parameters that a form gives something, and its line: {braces} stand for their names.
FORMS: dict[str, tuple[tuple[str, ...], str]] = {
    "of heads": (THREE, "{query}: <q>, {key}: <k>, {value}: <k>"),
    "of heads, one length": (THREE, "{query}: <one>, {key}: <one>, {value}: <one>"),
    "of tokens": (("tokens",), "{tokens}: <x>"),
    "of tokens, three times": (THREE, "{query}: <x>, {key}: <x>, {value}: <x>"),
    "of tokens and a context": (("tokens", "other"), "{tokens}: <x>, {other}: <x>"),
}
# What else code must be given, by its role: axes, or a value.
BESIDE: dict[str, str] = {
    "mask": " = None", "padding": " = None", "pair": " = None", "dropout": " = 0.0",
    "causal": " = False", "heads": " = H", "groups": " = G", "width": " = D", "length": " = n",
    "positions": ": B n positions", "offset": " = p", "scale": ": scale",
}  # fmt: skip
SCALES = ("scale", "scaling", "softmax_scale", "sm_scale", "attn_scale")
CACHES = ("past_key_value", "past_key_values", "layer_past", "kv_cache", "cache", "past_kv", "past",
          "state", "cache_kv", "past_kvs", "prev_state")  # fmt: skip
CONTEXTS = ("context", "memory", "encoder_hidden_states", "cond", "conditioning", "source")
KEYS = parse("x: (n + p) -> x").arrays[0].axes[0]  # type: ignore[index]
STATES = (" = DynamicCache()", "", " = {}")
KINDS = ("keep", "add", "ones")  # hide is what shows under keep
WEIGHTS = ("B H r n", "B H n n", "B r n", "H r n", "B n n", "r n", "n n")


def fit_attention(code: Code) -> Attention:
    """Attention by the form that fits it: on queries, keys and values, else on tokens.

    Raises ``DoesNotFit``, and ``Ambiguous`` where two forms fit and differ in what they say.
    """
    code, known = _bound(code), parameters(code.call)
    failed: dict[str, str] = {}
    if _takes_three(known) and not _weighty(code):
        found = _heads_fit(code, known, failed)
        if found is not None:
            return found
    try:
        line = _tokens_line(code, known, failed, keeps=True)
    except DoesNotFit:
        if not code.options.likely.get("causal"):
            raise
        # its flag may only go with a mask: then it is called without, and asked all the same
        line = _tokens_line(_unsaid(code), known, failed, keeps=True)
    if not _speaks_of_attention(code):
        raise DoesNotFit("neither its name nor its source speaks of attention or softmax")
    return attention(code, parse(line), guessed=True)


def _unsaid(code: Code) -> Code:
    """The same, of which nobody says that it is causal."""
    return replace(code, options=replace(code.options, likely={}))


def fit_layer(code: Code) -> Layer:
    """Any map of tokens by the form that fits it.  Raises ``DoesNotFit``."""
    code = _bound(code)
    line = _tokens_line(code, parameters(code.call), {}, keeps=False)
    return layer(code, parse(line), guessed=True)


def _bound(code: Code) -> Code:
    """The code with the arguments that are told in Python, where these cannot be written down."""
    known = {one.name for one in parameters(code.call)}
    more = {k: v for k, v in code.options.arguments.items() if k in known and not _literal(v)}
    if not more:
        return code

    def again(**settings: Any) -> Code:
        return _bound(code.again(**settings))

    return replace(code, call=partial(code.call, **more), again=again)


def _literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _takes_three(known: tuple[Parameter, ...]) -> bool:
    named = {one.role for one in known}
    first = [one for one in known if one.required][:3]
    other = ("cos", "sin", "mask", "positions", "length")
    return set(THREE) <= named or (len(first) == 3 and not {one.role for one in first} & {*other})


def _weighty(code: Code) -> bool:
    return code.module is not None and any(True for _ in code.module.parameters())


def _speaks_of_attention(code: Code) -> bool:
    own = f"{code.name} {type(code.call).__name__} {code.text}".lower()
    return any(word in own for word in ("atten", "attn", "softmax", "scaled_dot", "transformer"))


def _named(known: tuple[Parameter, ...], roles: tuple[str, ...]) -> dict[str, str]:
    """The parameters that stand for roles: by their names, else in their order."""
    by = {one.role: one.name for one in reversed(known)}
    if set(roles) <= set(by):
        return {one: by[one] for one in roles}
    places = [one.name for one in known if one.required]
    places += [one.name for one in known if not one.required]
    return dict(zip(roles, places, strict=False))


def _beside(code: Code, known: tuple[Parameter, ...], taken: set[str], *, square: bool) -> str:
    """What else the code must be given, and what is told of it: arguments, whether it is causal.

    Raises ``DoesNotFit`` for a parameter whose name does not say what it is.
    """
    causal = bool(code.options.likely.get("causal", 0))
    fixed = {k: v for k, v in code.options.arguments.items() if _literal(v)}
    said = []
    for one in known:
        if one.name in taken:
            continue
        if one.name in fixed:
            said.append(f"{one.name} = {fixed[one.name]!r}")
        elif one.role == "causal" and (one.required or causal):
            said.append(f"{one.name} = {causal}")
        elif one.required and one.name not in code.options.arguments:
            kind = "scale" if one.name in SCALES else "mask" if takes_mask(one) else one.role
            if one.name in CACHES:
                kind = "mask"  # it is given none
            if kind not in BESIDE:
                raise DoesNotFit(
                    f"it must be given {one.name!r}, and what that is its name does not say; "
                    f"give arguments={{{one.name!r}: ..}}, or the whole --call"
                )
            own = BESIDE[kind] if square or kind != "length" else " = r"
            said.append(one.name + own)
    return "".join(f", {one}" for one in said)


def _heads_fit(
    code: Code, known: tuple[Parameter, ...], failed: dict[str, str]
) -> Attention | None:
    """Attention on heads: the axes first, then what each mask means."""
    names = _named(known, THREE)
    for form in ("of heads", "of heads, one length"):
        lines = _heads_lines(code, known, names, form)
        found = fitting(lines, lambda line: _tried_on_heads(code, line, known), code, failed)
        if not found:
            continue
        line = best(found, code.name).line
        for one in known:
            if takes_mask(one) and one.name not in code.options.arguments:
                axes = [x if form == "of heads" else x.replace("r", "n") for x in CHOICES["<row>"]]
                line = _with_mask(code, line, one.name, axes, _heads_marks)
        return on_heads(code, parse(line), guessed=True)
    return None


def _heads_lines(
    code: Code, known: tuple[Parameter, ...], names: Mapping[str, str], form: str
) -> Iterator[str]:
    """What goes in, for each order of axes: that of the source first."""
    square = form != "of heads"
    axes = CHOICES["<one>" if square else "<q>"]
    hinted = order_in(code.text).upper().replace("T", "r")
    order = sorted(axes, key=lambda x: x.replace(" ", "").replace("n", "r") != hinted)
    for q in order:
        own = {one.name: "H" for one in known if one.role == "heads" and "(H D)" in q}
        beside = _beside(code, known, set(names.values()) | set(own), square=square)
        beside += "".join(f", {name} = {letter}" for name, letter in own.items())
        if any(one.name == "enable_gqa" for one in known) and "enable_gqa" not in beside:
            beside += ", enable_gqa = True"
        for keys in ("H",) if square or "H" not in q else ("G", "H"):
            k = q.replace("H", keys).replace("r", "n")
            line = FORMS[form][1].replace("<q>", q).replace("<one>", q).replace("<k>", k)
            yield line.format(**names) + beside.replace(": B n positions", ": n positions")


def _tried_on_heads(code: Code, line: str, known: tuple[Parameter, ...]) -> Fit[str]:
    """The line with what comes back, and how well it fits: rows and heads are apart, tokens not."""
    q, k, v = _drawn(code, groups="G" in parse(f"{line} -> 1").letters)
    on = OnHeads(code.again(), parse(f"{line} -> 1"))
    if "H" not in on.three[0].letters:
        q, k, v = q[:, :1], k[:, :1], v[:, :1]
    if "B" not in on.three[0].letters:
        q, k, v = q[:1], k[:1], v[:1]
    if on.square:
        q = torch.cat((q, q), 2)[:, :, : k.shape[2]]
    arrays, lengths = on.given(q, k, v)
    whole = _with_result(line, on.program.called(arrays, lengths), lengths)
    on = OnHeads(code.again(), parse(whole))
    q, k, v = _drawn(code, groups=on.groups == "G")
    q = torch.cat((q, q), 2)[:, :, : k.shape[2]]

    out = on.attend(q, k, v)
    if out.shape != q.shape:
        raise DoesNotFit(f"{tuple(q.shape)} was wanted, {tuple(out.shape)} came")
    token, head = v.clone(), v.clone()
    token[1, :, 0] += 1.0
    head[:, 1] += 1.0
    by_token, by_head = (out != on.attend(q, k, x) for x in (token, head))
    heads = any(one.role == "heads" for one in known)
    quality = (
        not bool(by_token[[0, 2]].any()),  # rows are apart
        bool(by_token[1, :, 1:].any()),  # tokens are not
        int(by_head.any(-1).any(-1).any(0).sum()) <= q.shape[1] // v.shape[1],  # heads are
        on.groups == "G",
        heads == ("(H D)" in line),
    )
    return Fit(whole, whole, out, quality)


def _drawn(code: Code, *, groups: bool) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    width = code.options.width or code.options.likely.get("width", 0) or SIZES["D"]
    heads = code.options.heads or SIZES["H"]

    def normal(h: int, n: int) -> Tensor:
        return torch.randn(SIZES["B"], h, n, width, generator=generator)

    keys = SIZES["G"] if groups else heads
    return normal(heads, SIZES["r"]), normal(keys, SIZES["n"]), normal(keys, SIZES["n"])


def _with_result(line: str, value: Any, lengths: Mapping[str, int]) -> str:
    """The line with what comes back, read off its shapes.  Raises ``DoesNotFit``."""
    if isinstance(value, Mapping) or hasattr(value, "last_hidden_state"):
        mapping = isinstance(value, Mapping)
        name = next(iter(value)) if mapping and "last_hidden_state" not in value else (
            "last_hidden_state"
        )  # fmt: skip
        found = value[name] if mapping else value.last_hidden_state
        return f"{line} -> {{{name}: {_axes_of(found, lengths, line)}}}"
    if not isinstance(value, tuple | list):
        return f"{line} -> {_axes_of(value, lengths, line)}"
    if not value:
        raise DoesNotFit("nothing came back")
    said = [_axes_of(value[0], lengths, line)]
    for one in value[1:]:
        try:
            axes = _axes_of(one, lengths, line)
        except DoesNotFit:
            axes = ""
        shown = "E" not in lengths and axes in WEIGHTS and "weights" not in " ".join(said)
        said.append(f"weights: {axes}" if shown else "_")
    return f"{line} -> {', '.join(said)}"


def _axes_of(value: Any, lengths: Mapping[str, int], line: str) -> str:
    """The axes of an array, by their lengths; the last may be of no known length.

    Raises ``DoesNotFit``.
    """
    if not isinstance(value, Tensor):
        raise DoesNotFit(f"a tensor was wanted, and {type(value).__name__} came back")
    letters = parse(f"{line} -> 1").letters
    there = [c for c in "BHGrnhwDEC" if c in letters]
    known = {lengths[c]: c for c in reversed(there)}
    for a, b in combinations(there, 2):
        known.setdefault(lengths[a] * lengths[b], f"({a} {b})")
    said = [known.get(size, "") for size in value.shape]
    if said and not said[-1]:
        said[-1] = "F"
    if not all(said):
        raise DoesNotFit(f"an array of shape {tuple(value.shape)} came back, and what its axes are "
                         f"is not seen")  # fmt: skip
    return " ".join(said)


Marks = Callable[[Code, Signature], str]


def _with_mask(
    code: Code, line: str, name: str, axes: Iterable[str], marks: Marks
) -> str:  # fmt: skip
    """The line with this mask, in the first axes in which it does something.

    A mask under which what is hidden comes through is still one, which is asked about.
    """
    leaks = ""
    for one in axes:
        told: dict[str, bool] = {}
        for kind in KINDS:
            if kind == "ones" and told:
                continue
            trial = _inserted(line, f"{name}: {one} {kind}")
            try:
                what = marks(code.again(), parse(trial))
            except Exception:  # noqa: BLE001 (the code may not take such a mask)
                continue
            if what == "shown" and kind == "keep":
                told["hide"] = True
            elif what == "hidden":
                told[kind] = True
            elif what == "leaks" and kind == "keep":
                leaks = leaks or trial
        found = [kind for kind in ("keep", "hide", "add", "ones") if told.get(kind)]
        if found:
            return _inserted(line, f"{name}: {one} {' or '.join(found[:2])}")
    return leaks or line


def _inserted(line: str, said: str) -> str:
    """The line with one argument more, in the place of the same that is told as None."""
    name = said.partition(":")[0]
    before, arrow, after = line.partition(" -> ")
    before = before.replace(f", {name} = None", "")
    return f"{before}, {said}{arrow}{after}"


def _heads_marks(code: Code, call: Signature) -> str:
    """Whether what the newest mask hides is hidden: key 1, which all causal rows but one can see.

    "hidden", "shown" (the rest is hidden), "leaks" (it does something), or "".
    """
    newest = call.arguments[-1].name
    on = OnHeads(code, replace(call, arguments=tuple(
        one for one in call.arguments if one.name == newest or role(one) not in KINDS_OF_MASKS
    )))  # fmt: skip
    q, k, v = _drawn(code, groups=on.groups == "G")
    if "H" not in on.three[0].letters:
        q, k, v = q[:, :1], k[:, :1], v[:, :1]
    q = torch.cat((q, q), 2)[:, :, : k.shape[2]] if on.square else q
    seen = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    seen[..., 1] = False

    def changed(at: int) -> tuple[Tensor, Tensor, Tensor]:
        keys, values = k.clone(), v.clone()
        keys[:, :, at] += 1.0
        values[:, :, at] += 1.0
        return q, keys, values

    return _what(lambda x, m: on.attend(x[0], x[1], x[2], m)[:, :, 2:], (q, k, v), changed, seen)


def _what(
    call: Callable[[Any, Tensor], Tensor], plain: Any, changed: Callable[[int], Any], seen: Tensor
) -> str:
    """What a mask does whose entry 1 is False: see above."""
    before = call(plain, seen)
    if not bool(torch.isfinite(before).all()):
        return ""
    marked, others = (torch.equal(before, call(changed(at), seen)) for at in (1, 0))
    if marked != others:
        return "hidden" if marked else "shown"
    every = call(plain, torch.ones_like(seen))
    return "" if marked or torch.equal(before, every) else "leaks"


def _tokens_marks(code: Code, call: Signature, embed: int) -> str:
    """The same of tokens: token 1 is padding, in one row alone."""
    newest = call.arguments[-1].name
    on = OnTokens(code, replace(call, arguments=tuple(
        one for one in call.arguments if one.name == newest or role(one) not in KINDS_OF_MASKS
    )))  # fmt: skip
    x = torch.randn(3, 6, embed, generator=torch.Generator().manual_seed(4))
    keep = torch.ones(3, 6, dtype=torch.bool)
    keep[:, 1] = False

    def changed(at: int) -> Tensor:
        other = x.clone()
        other[:, at] += 1.0
        return other

    return _what(lambda y, m: on(y, m)[:, 2:], x, changed, keep)


def _tokens_line(
    code: Code, known: tuple[Parameter, ...], failed: dict[str, str], *, keeps: bool
) -> str:
    """How it is called on tokens.  Raises ``DoesNotFit``."""
    if not known:
        raise DoesNotFit("it takes no argument")
    pairs = [one for one in known if one.role == "pair"]
    for text in _tokens_lines(code, known, failed):
        for embed in widths_of_tokens(code):
            for source in [*(_tables(code, pairs[0], embed) if pairs else ()), ("", "")]:
                try:
                    line = _on_tokens(code, text, source, embed, keeps=keeps)
                except DoesNotFit as error:
                    failed.setdefault("", str(error))
                    continue
                except Exception as error:  # noqa: BLE001 (the code may raise anything)
                    told = f"called with tokens (B, T, {embed}): {raised(code, error)}"
                    failed.setdefault("", told)
                    continue
                line = _masked(code, line, known, embed)
                return _stepped(code, line, known, embed)
    raise DoesNotFit(failed.get("", "no form of a call has its parameters"))


def _tokens_lines(
    code: Code, known: tuple[Parameter, ...], failed: dict[str, str]
) -> Iterator[str]:  # fmt: skip
    roles = [one.role for one in known[:3]]
    needed = [one for one in known if one.required]
    three = roles == [*THREE] or len(needed) == 3
    second = known[1] if len(known) > 1 and known[1].required else None
    two = second is not None and (
        second.role in ("key", "value", "tokens") or second.name in CONTEXTS
    )
    orders = ("n B E",) if _tokens_first(code) else ("B n E", "n E", "B C h w")
    for count in (3, 2, 1) if three else (1, 2) if two else (1,):
        taken = known[:count]
        for x in orders:
            given = ", ".join(
                f"{one.name}: {x}" + ("" if one.role in TURNED else " tokens") for one in taken
            )
            try:
                beside = _beside(code, known, {one.name for one in taken}, square=True)
            except DoesNotFit as error:
                failed.setdefault("", str(error))
                continue
            yield from dict.fromkeys(
                given + beside.replace(": B n positions", places)
                for places in (": B n positions", ": n positions")
            )


def _tokens_first(code: Code) -> bool:
    """Whether tokens come before rows: said by the module, or by its source."""
    own = getattr(code.module, "batch_first", None)
    if own is not None:
        return not own
    inner = getattr(getattr(code.module, "self_attn", None), "batch_first", None)
    if inner is not None and type(code.module).__module__.startswith("torch."):
        return not inner
    return order_in(code.text).startswith("t")


def _on_tokens(
    code: Code, text: str, source: tuple[str, str], embed: int, *, keeps: bool
) -> str:  # fmt: skip
    """The line with tables and what comes back.  Raises ``DoesNotFit``."""
    pair, made = source
    if pair:
        name = pair.partition(" ")[0]
        text = text.replace(f", {name} = None", "") + f", {pair}"
    on = OnTokens(code.again(), parse(f"{text} -> 1{made}"))
    x = torch.randn(3, 10, embed, generator=torch.Generator().manual_seed(2))
    x = x[:1] if "B" not in on.tokens.letters else x
    arrays, lengths = on.given(x)
    whole = _with_result(text, on.program.called(arrays, lengths), lengths) + made
    out = OnTokens(code.again(), parse(whole))(x)
    if out.shape[:2] != x.shape[:2] or (keeps and out.shape != x.shape):
        raise DoesNotFit(f"{tuple(x.shape)} was wanted, {tuple(out.shape)} came")
    return whole


def _tables(code: Code, one: Parameter, embed: int) -> Iterator[tuple[str, str]]:
    """The cos and sin that a layer is given by the module of its file that makes them."""
    prefix = type(code.module).__name__
    named = [(name, thing) for name, thing in code.space.items()
             if name.endswith("RotaryEmbedding") and inspect.isclass(thing)
             and issubclass(thing, nn.Module)]  # fmt: skip
    for name, _ in sorted(named, key=lambda pair: -alike(pair[0], prefix)):
        try:
            made = beside(code, name, SIZES["D"])
            axes = f"{len(sections_of(made.call))} 1 n" if sections_of(made.call) else "1 n"
            kind = getattr(code.module, "layer_type", None)
            more = made.options.arguments.get("layer_type")
            of_type = f", layer_type = {str(kind or more)!r}" if more else ""
            x, at = (parameter.name for parameter in parameters(made.call)[:2])
            call = parse(f"{x}: 1 n E, {at}: {axes} positions{of_type} -> 1")
            lengths = {"n": 7, "E": embed}
            arrays = {x: torch.zeros(1, 7, embed)}
            arrays[at] = torch.arange(7).expand(call.arrays[1].shape(lengths))
            cos, _ = Program(made.call, call, name).called(arrays, lengths)
        except Exception:  # noqa: BLE001 (whatever stands beside may make no such table)
            continue
        first = "".join(f"{size} " for size in cos.shape[:-3])
        wide = f"n {cos.shape[-1]}"
        given = str(call).partition(" -> ")[0]
        yield (
            f"{one.name} = (cos: {first}B {wide}, sin: {first}B {wide})",
            f"; cos, sin from {name}({given} -> {first}1 {wide}, {first}1 {wide})",
        )


def _masked(code: Code, line: str, known: tuple[Parameter, ...], embed: int) -> str:
    """The line with masks of padding, and with a causal one where the code makes none itself."""
    taken = [one for one in known if takes_mask(one) and one.name not in code.options.arguments]
    causal = " from " in line and bool(getattr(code.module, "is_causal", False))
    for one in taken:
        if causal and one.role != "padding":
            if _hides(code, line, embed):
                continue
            for axes in CHOICES["<causal>"]:
                for kind in KINDS:
                    trial = _inserted(line, f"{one.name}: {axes} {kind}")
                    if _hides(code, trial, embed):
                        return trial
        line = _with_mask(
            code, line, one.name, CHOICES["<padding>"], partial(_tokens_marks, embed=embed)
        )
    return line


def _hides(code: Code, line: str, embed: int) -> bool:
    """Whether, called so, a token does nothing to the ones before it, and something to the last."""
    call = OnTokens(code.again(), parse(line))
    x = torch.randn(3, 5, embed, generator=torch.Generator().manual_seed(2))
    late, early = x.clone(), x.clone()
    late[:, -1] += 1.0
    early[:, 0] += 1.0
    try:
        plain = call(x)
        return torch.equal(plain[:, :-1], call(late)[:, :-1]) and not torch.equal(
            plain[:, -1], call(early)[:, -1]
        )
    except Exception:  # noqa: BLE001 (the code may not take such a mask)
        return False


def _stepped(code: Code, line: str, known: tuple[Parameter, ...], embed: int) -> str:
    """The line with how it is called in steps, where it takes what a step leaves to the next."""
    cache = next((one.name for one in known if one.name in CACHES), "")
    if not cache:
        return line
    whole, _, made = line.partition("; ")
    before, _, back = whole.replace(f", {cache} = None", "").partition(" -> ")
    call = parse(whole)
    for mask in (one for one in call.arrays if is_mask(one)):
        longer = replace(mask, axes=(*(mask.axes or ())[:-1], KEYS))
        before = before.replace(str(mask), str(longer))
    spare = next((one.name for one in known if one.role == "mask"), "")
    if made and spare and call.named(spare) is None and _hides(code, line, embed):
        # a kernel that is causal without a mask knows no earlier tokens: then it is given one
        before = before.replace(f", {spare} = None", "") + f", {spare}: B 1 n (n + p) add"
    if any(one.name == "use_cache" for one in known):
        before += ", use_cache = True"
    for start in STATES:
        step = f"{before}, {cache}{start}"
        for told in _returning(step, back, cache):
            trial = f"{whole}{f'; {made}' if made else ''}; step: {told}"
            try:
                if _carries(OnTokens(code.again(), parse(trial)), embed):
                    return trial
            except Exception:  # noqa: BLE001 (it is not fed in pieces so)
                continue
    return line


def _returning(step: str, back: str, cache: str) -> Iterator[str]:
    """The step with what comes back: all but the last left aside, which may be the state."""
    first = back.partition(",")[0]
    for many in range(1, 5):
        rest = ["_"] * (many - 1)
        if rest:
            yield f"{step} -> {', '.join([first, *rest[:-1], cache])}"
        yield f"{step} -> {', '.join([first, *rest])}"


def _carries(on: OnTokens, embed: int) -> bool:
    """Whether something is left to the next step, and what came before matters then."""
    step = stepping(on, embed)
    x = torch.randn(2, 5, embed, generator=torch.Generator().manual_seed(5))
    _, (kept, _) = step(x[:, :3], None)
    return all(value is not None and value != {} and value != [] for value in kept.values())
