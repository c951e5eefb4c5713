"""Turn any object into a `Subject`: decide which kind of code it is and how it is called."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import torch

from .call_forms.choices import FINITE_MASK
from .call_forms.vocabulary import has_embedding, on_vectors
from .calls.counts import has_constant_diagonals
from .calls.table_makers import makes_tables
from .code import Ambiguous, Code, DoesNotFit, NoSetting, Options, can_be_called, place_of
from .declarations import Declared, declares, sizes_declared
from .execution.running import CodeFault, fault_in, in_a_line, limited, seeded, text_of, uncompiled
from .loading.building import as_it_is_or_in_float32, code_under_test, in_float32, makes_modules
from .loading.constructors import placed
from .loading.names import parameters
from .loading.pretrained import class_for, is_config
from .loading.reach import UNCOMPILED, has_compiled
from .loading.shared_state import SharedState
from .no_adapter import NoAdapter, advice_on, suggested_call
from .signatures.signature import packed_as
from .subjects import KINDS, Additive, Bias, Rotary, Subject

WORDS = {
    "rotary": r"rope|rotary|rotate|freqs_cis",
    "attention": r"attention|attn|multihead|mha|sdpa|scaled_dot|transformer.*layer|^heads?$|mqa"
    r"|gqa",
    "bias": r"alibi|kerple|bias|slopes|relative_position|rel_pos|t5|bucket",
    "additive": r"sinusoid|position|pos_?enc|pos_?emb|timing|^pe$",
    "mask": r"mask|causal",
}
EMBEDS = re.compile(r"(rotary|rope).*(emb|enc|pos)", re.IGNORECASE)
BY_METHOD = ("rotary", "bias")  # kinds for which methods of an object are tried
PARTS = re.compile(r"layer|block|transformer", re.IGNORECASE)
SECONDS = 60.0


class OtherKind(ValueError):
    """The code is not of the kind that was asked for or declared."""


def adapt(
    thing: Any,
    kind: str | None = None,
    declared: Declared | None = None,
    name: str = "",
    forms: Mapping[str, Callable[[Code], Subject]] = MappingProxyType({}),
    **more: Any,
) -> Subject:
    """Return the subject that the laws call, from a function, module, class, config or factory.

    ``kind`` is one of rotary, attention, bias, additive, mask, layer; by default it is the declared
    kind, else the kind that the names suggest, else the first kind as which the code can be called.
    ``more``: fields of `Options` (``width=64``, ``arguments={..}``) and fields of the subject to
    set (``axes=2``, ``shift=..``).  ``forms``: for each kind to be tried, the function that guesses
    how such code is called.  A `Subject` is accepted as it is and needs no forms.

    Raises ``NoAdapter`` if no kind fits, ``OtherKind`` if the code is not of the kind asked for or
    declared, and ``CodeFault`` if it does not terminate.

    >>> from .subjects import Layer
    >>> adapt(Layer(name="f", call=lambda x: x, embed=4), name="same").name
    'same'
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}; got {kind!r}")
    options, set_later = _options(more)
    require_settings(thing, options.settings, name)
    if declared is not None:
        options = replace(options, likely=sizes_declared(declared))
    likely = kind or (declares(declared)[0] if declared is not None else None)
    said = io.StringIO()
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        uncompiled(),
        limited(SECONDS),
    ):
        seeded(0)
        subject = _adapted(thing, likely, name, options, forms)
    if kind is not None and kind != subject.kind:
        raise OtherKind(f"{subject.name} is {subject.kind} code, and {kind} code was asked for")
    changed = dict(set_later)
    if isinstance(thing, Subject) and has_compiled([thing]):
        changed["converted"] = "; ".join(filter(None, (subject.converted, UNCOMPILED)))
        changed["conditions"] = (*subject.conditions, UNCOMPILED)
    if name:
        changed["name"] = name
    if declared is not None:
        if subject.kind not in declares(declared):
            raise OtherKind(
                f"{subject.name} is {subject.kind} code, and the declaration is one of "
                f"{' or '.join(declares(declared))} code"
            )
        changed["declared"] = declared
    return _with(subject, changed)


def require_settings(thing: Any, settings: Mapping[str, Any], name: str = "") -> None:
    """Check that the constructor takes these settings; raises ``NoSetting`` otherwise.

    >>> try:
    ...     require_settings(torch.nn.ReLU, {"in_place": True})
    ... except NoSetting as error:
    ...     print(error)
    ReLU is built with inplace; got the setting 'in_place'; nearest: inplace
    """
    if not settings:
        return
    told = _name(thing, name)
    if not inspect.isclass(thing) and not makes_modules(thing):
        raise NoSetting(
            f"{told} is not a class, and settings are arguments of a constructor; got "
            f"{', '.join(settings)}; name the class, or a factory that builds it"
        )
    try:
        known = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # a built-in without a readable signature
        return
    if any(one.kind == one.VAR_KEYWORD for one in known):
        return
    names = [one.name for one in known if one.kind not in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL)]
    for setting in (one.partition(".")[0] for one in placed(thing, settings)):
        if setting not in names:
            near = get_close_matches(setting, names, n=2)
            nearest = f"; nearest: {', '.join(near)}" if near else ""
            takes = ", ".join(names) or "nothing"
            raise NoSetting(f"{told} is built with {takes}; got the setting {setting!r}{nearest}")


def _with(subject: Subject, changed: Mapping[str, Any]) -> Subject:
    known = {f.name for f in fields(subject)}
    unknown = [key for key in changed if key not in known]
    if unknown:
        raise TypeError(
            f"{subject.kind} code has no {', '.join(unknown)}; it has "
            f"{', '.join(sorted(known))}; options are "
            f"{', '.join(f.name for f in fields(Options))}"
        )
    if not changed:
        return subject
    make = subject.make

    def again(**settings: Any) -> Subject:
        assert make is not None
        made: Any = make(**settings)
        return _with(made, changed) if isinstance(made, Subject) else made

    remade: dict[str, Any] = {"make": again} if make and "make" not in changed else {}
    return replace(subject, **changed, **remade)


def _options(more: Mapping[str, Any]) -> tuple[Options, dict[str, Any]]:
    known = {f.name for f in fields(Options)}
    later = {key: value for key, value in more.items() if key not in known}
    return Options(**{key: value for key, value in more.items() if key in known}), later


def _adapted(
    thing: Any,
    kind: str | None,
    name: str,
    options: Options,
    forms: Mapping[str, Callable[[Code], Subject]],
) -> Subject:
    if isinstance(thing, Subject):
        return thing
    made, settings = resolved(thing, kind, options.settings)
    if isinstance(made, Subject):
        return made
    if made is not thing and not is_config(thing):
        name = name or getattr(thing, "__name__", "")
    thing, options = made, replace(options, settings=settings)
    try:
        code = code_under_test(thing, name, options)
    except DoesNotFit as error:
        raise NoAdapter(_name(thing, name), place_of(thing), {"building it": str(error)}) from None
    except Exception as error:
        told = f"it raised {in_a_line(error)}"
        raise NoAdapter(_name(thing, name), place_of(thing), {"building it": told}) from error
    shared = SharedState.of(thing, code.call)
    called = can_be_called(code.call)
    if not called:
        forms = {one: forms[one] for one in _named(code) if one in BY_METHOD and one in forms}
    if not called and not forms:
        bare = dir(torch.nn.Module()) if code.module is not None else ()
        own = ", ".join(
            one for one in dir(code.call) if not one.startswith("_") and one not in bare
        )
        told = (
            f"objects of {_name(thing, name)} cannot be called; name the method to call, as in "
            f"--call 'x: B n E -> B n E; method NAME': it has {own or 'none'}"
        )
        raise NoAdapter(_name(thing, name), place_of(thing), {"building it": told})
    found = as_it_is_or_in_float32(code, lambda one: _first(one, kind, forms))
    return shared.noted_in(found)


def resolved(
    thing: Any, kind: str | None, settings: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Return what a config or a factory without arguments stands for, and the settings of that.

    Anything else is returned unchanged.  Raises ``DoesNotFit`` for a model config without a class
    of the kind asked for.
    """
    if is_config(thing):
        found = settings if inspect.isclass(thing) else {"config": thing}
        return class_for(thing, kind), found
    made = _from_factory(thing)
    return (thing, settings) if made is thing else resolved(made, kind, settings)


def _name(thing: Any, name: str) -> str:
    return name or getattr(thing, "__name__", "") or type(thing).__name__


def _first(code: Code, kind: str | None, forms: Mapping[str, Callable[[Code], Subject]]) -> Subject:
    tried: dict[str, str] = {}
    named = _named(code)
    words, why = on_token_ids(code, kind, forms)
    if words is not None:
        return words
    for one in (kind,) if kind else dict.fromkeys([*named, *KINDS]):
        if one not in forms:
            continue
        try:
            fresh = code.again()  # a fresh copy for each trial
            subject = SharedState.of(fresh.call).noted_in(forms[one](fresh))
        except CodeFault:
            raise
        except DoesNotFit as error:
            if isinstance(error, Ambiguous) and (kind or one in named):
                raise
            tried[one] = str(error)
            continue
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            whole = Subject(name=code.name, source=code.place, adapted="as tried")
            ours = "a fault of attnproof, please report it: " * (fault_in(whole, error) is not None)
            tried[one] = f"{ours}{in_a_line(error, 200)}"
            continue
        if kind:
            return subject
        if other := _why_another_kind(code, one, named, subject):
            tried[one] = other
            continue
        said = (
            "its names suggest it"
            if one in named
            else "it can be called as such code"
            + (f", and not as {' or '.join(named)} code, which its names suggest") * bool(named)
        )
        return replace(subject, adapted=f"{subject.adapted}; taken for {one} code: {said}")
    if why:
        tried["with the embeddings of its tokens"] = why
    like = kind or next(iter(named), "") or _like(code)
    raise NoAdapter(
        code.name,
        code.place,
        tried,
        like,
        asked=bool(kind),
        line=suggested_call(code.call, like, projects=code.has_parameters),
        lacks=next(filter(None, (advice_on(code, told) for told in tried.values())), ""),
        built=code.module is not None,
    )


def on_token_ids(
    code: Code, kind: str | None, forms: Mapping[str, Callable[[Code], Subject]]
) -> tuple[Subject | None, str]:
    """Return a model that takes token ids as a map of embedding vectors, or None and the reason.

    Tried before the other kinds, because with ids that are all equal such a model can also be
    called as a table of positions.
    """
    kinds = [
        one for one in ("attention", "layer") if one in forms and kind in (None, "attention", one)
    ]
    if not kinds or not has_embedding(code):
        return None, ""
    found, why = _on_words(code, kinds, forms)
    if found is None and (wide := in_float32(code)) is not None:
        found, why = _on_words(wide, kinds, forms)
    return found, why


def _on_words(
    code: Code, kinds: list[str], forms: Mapping[str, Callable[[Code], Subject]]
) -> tuple[Subject | None, str]:
    fresh = code.again()
    shared = SharedState.of(fresh.call)
    try:
        made, told, alone = on_vectors(fresh)
    except CodeFault:
        raise
    except Exception as error:  # noqa: BLE001 (the code may raise anything)
        return None, text_of(error, 200)
    why = ""
    for one in kinds:
        try:
            fresh = made.again()
            subject = SharedState.of(fresh.call).noted_in(forms[one](fresh))
        except DoesNotFit as error:
            why = str(error)
            continue
        conditions = (*subject.conditions, *alone)
        told = "; ".join(filter(None, (told, code.converted)))
        subject = replace(subject, adapted=told, line="", others=(), conditions=conditions)
        return shared.noted_in(subject), ""
    return None, why


def _why_another_kind(code: Code, kind: str, named: list[str], subject: Subject) -> str:
    """Return why code that can be called as this kind is not of this kind; "" if it is.

    Judged by its behaviour and by its names.
    """
    weighs = kind not in named or code.has_parameters
    if weighs and isinstance(subject, Rotary) and not _rotates(subject):
        return "it can be called as rotary code, but does not rotate its input"
    if kind not in named and _adds_nothing(subject):
        return f"it can be called as {kind} code, but adds nothing"
    if kind not in named and _adds_to_places(subject):
        return f"it can be called as {kind} code, but adds a number to each place, as tables do"
    if kind not in named and _only_hides(subject):
        return f"it can be called as {kind} code, but only hides keys, as a mask does"
    if kind not in named and "; method " in subject.line and (named or code.has_parameters):
        why = f"its names suggest {named[0]}" if named else "it has weights"
        return f"only one of its methods can be called so, and {why}"
    return _why_names_rule_out(code, kind, named)


def _adds_nothing(subject: Subject) -> bool:
    """Whether the code adds only zeros: to tokens that are 0, or to scores of two shapes."""
    if isinstance(subject, Additive):
        return not bool(subject.added(torch.zeros(1, 3, subject.width)).any())
    call = subject.bias if isinstance(subject, Bias) else None
    return call is not None and not any(bool(call(r, n).any()) for r, n in ((2, 3), (5, 5)))


def _adds_to_places(subject: Subject) -> bool:
    """Whether code that adds to scores adds other numbers for pairs of the same offset."""
    if not isinstance(subject, Bias) or subject.bias is None or " n constant" not in subject.line:
        return False
    return not has_constant_diagonals(subject.bias(6, 6))


def _only_hides(subject: Subject) -> bool:
    """Whether a bias adds 0 to the scores of some keys, and hides all others."""
    call = subject.bias if isinstance(subject, Bias) else None
    if call is None:
        return False
    added = torch.cat([call(r, n).flatten() for r, n in ((6, 6), (3, 7))])  # as it was fitted
    return bool((added == 0).any() and ((added == 0) | (added <= FINITE_MASK)).all())


def _why_names_rule_out(code: Code, kind: str, named: list[str]) -> str:
    """Return why its names rule out a kind whose call fits almost any code; "" if they do not."""
    own = [one for one, words in WORDS.items() if re.search(words, code.name, re.IGNORECASE)]
    embeds = EMBEDS.search(code.name) and "rotary" in named
    if (kind in ("attention", "layer", "mask", "additive") and embeds) or (
        kind == "additive" and own == ["rotary"]
    ):
        return "its name suggests a rotary embedding, and almost any code can be called so"
    placed = "additive" in named and kind not in named and not PARTS.search(code.name)
    if kind == "layer" and {"query", "key", "value"} <= {one.role for one in parameters(code.call)}:
        return "it takes queries, keys and values, and almost any code can be called so"
    if kind == "attention" and placed:
        return "its name suggests a table of positions, and almost any code can be called so"
    if kind == "bias" and own == ["additive"]:
        return "its name suggests a table of positions, whose rows are not queries"
    if kind == "layer" and not code.has_parameters and makes_tables(code.again()):
        return "it returns cosines and sines, and almost any code can be called so"
    any_code = kind == "layer" or (kind == "attention" and "rotary" in named)
    if any_code and named and kind not in named and not code.has_parameters:
        return (
            f"almost any code can be called as {kind} code, and its names suggest "
            f"{' and '.join(named)}: if it is {'a layer' if kind == 'layer' else kind}, say so"
        )
    return ""


ROUNDINGS = 64  # tolerance in units of eps; a nonlinear map deviates by more in float32


def _rotates(subject: Rotary) -> bool:
    """Whether the map depends on positions and is linear, unlike a layer."""
    x = torch.randn(1, 1, 3, subject.width, generator=torch.Generator().manual_seed(7))
    places = torch.arange(3)[None]
    if subject.axes:
        places = places[..., None].expand(1, 3, subject.axes)
    moved = subject.rotate(x, places), subject.rotate(x, places + 2)
    if bool(subject.rotate(torch.zeros_like(x), places).any()):
        return False
    whole, parts = (
        subject.rotate(x - x.flip(-1), places),
        moved[0] - subject.rotate(x.flip(-1), places),
    )
    allowed = ROUNDINGS * torch.finfo(whole.dtype).eps * max(1.0, float(parts.abs().max()))
    moves = bool((moved[0] - moved[1]).abs().max() > allowed)  # by more than rounding
    return moves and bool((whole - parts).abs().max() <= allowed)


def _named(code: Code) -> list[str]:
    """The kinds suggested by the name of the code and by the names of its parameters."""
    own = f"{code.name.rsplit('.', 1)[-1]} {type(code.call).__name__}"
    try:
        given = " ".join(one.name for one in parameters(code.call))
    except DoesNotFit:
        given = ""
    found = [kind for kind, words in WORDS.items() if re.search(words, own, re.IGNORECASE)]
    if re.search(r"\bcos\b|freqs|\brope", given) and "attention" not in found:
        found.insert(0, "rotary")
    if re.search(r"\b(q|query)\b.*\bv|value\b", given) and "rotary" not in found:
        found.insert(0, "attention")
    return list(dict.fromkeys(found))


def _like(code: Code) -> str:
    """The kind that the parameters resemble most, for code whose names suggest none."""
    try:
        known = parameters(code.call)
    except DoesNotFit:
        known = ()
    roles = {one.role for one in known}
    if {"query", "key"} <= roles or any(packed_as(one.name) == "qkv" for one in known):
        return "attention"
    if "positions" in roles and "tokens" in roles:
        return "rotary"
    return "mask" if roles & {"length", "keys"} else "layer"


def _from_factory(thing: Any) -> Any:
    """Return what a function without arguments builds, if it can be adapted; else the thing."""
    if not inspect.isfunction(thing):
        return thing
    try:
        if any(True for _ in inspect.signature(thing).parameters):
            return thing
    except (TypeError, ValueError):
        return thing
    made = thing()
    return (
        thing
        if isinstance(made, torch.Tensor)
        or (not callable(made) and not isinstance(made, Subject) and not is_config(made))
        else made
    )
