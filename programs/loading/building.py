"""Turn a function, a module, a class or a factory into `Code` that can be built again.

Each build is independent of the others.
"""

from __future__ import annotations

import ast
import copy
import inspect
import re
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import nn

from ..code import Code, DoesNotFit, NoSetting, Options, globals_of, place_of, source_of
from ..execution.running import CodeFault, seeded
from ..execution.state import large_copies
from .constructors import build, construct, settings_for
from .functions import code_of_function
from .names import parameters, role_of
from .reach import UNCOMPILED, as_written, has_compiled

Made = TypeVar("Made")


def code_under_test(thing: Any, name: str, options: Options) -> Code:
    """Return the thing as code that can be called, which says if torch.compile wraps some of it.

    All that it may use is looked through.  Raises ``DoesNotFit``.
    """
    made = code_of(thing, name, options)
    return run_uncompiled(made) if has_compiled([thing, made.call]) else made


def run_uncompiled(code: Code) -> Code:
    """Return the code, which says that torch.compile is switched off when it is called."""
    told = "; ".join(filter(None, (code.converted, UNCOMPILED)))
    return code.changed(lambda again: replace(again, converted=told), converted=told)


def code_of(thing: Any, name: str, options: Options) -> Code:
    """Return the thing as code that can be called and built again.

    A class is instantiated, and a function that builds a module is called.  Raises ``DoesNotFit``.
    """
    thing = as_written(thing)
    if inspect.isclass(thing) or makes_modules(thing):
        return _built(thing, name or thing.__name__, options)
    if isinstance(thing, nn.Module):
        return _module(thing, name or type(thing).__name__, options, {})
    if inspect.ismethod(thing) and isinstance(thing.__self__, nn.Module):
        owner = _module(thing.__self__, name or thing.__qualname__, options, {})
        return method_of(owner, thing.__name__)
    if isinstance(thing, types.FunctionType):
        return code_of_function(thing, name or thing.__qualname__, options)
    if callable(thing):
        named = name or getattr(thing, "__name__", type(thing).__name__)
        return _instance(thing, named, options)
    raise DoesNotFit(f"an object of type {type(thing).__name__} cannot be called")


MAX_NESTED_FACTORIES = 3  # nested factories: how many functions may return what another one builds


def makes_modules(thing: Any, deep: int = MAX_NESTED_FACTORIES) -> bool:
    """Whether a function builds a module: by its return annotation, or by all its returns.

    The parameters of such a function are settings, like those of a constructor, not arrays.

    >>> def language_model(width, words):
    ...     net = nn.Sequential(nn.Embedding(words, width), nn.Linear(width, words))
    ...     return net
    >>> def normalised(x, width):
    ...     return nn.LayerNorm(width)(x)
    >>> def attended(x, width):
    ...     out = nn.MultiheadAttention(width, 1)
    ...     out, _ = out(x, x, x)
    ...     return out
    >>> [makes_modules(one) for one in (language_model, normalised, attended)]
    [True, False, False]
    """
    if not isinstance(thing, types.FunctionType):
        return False
    function = inspect.unwrap(thing)
    names = function.__globals__
    try:
        [tree] = ast.parse(textwrap.dedent(source_of(function))).body
    except (SyntaxError, ValueError):
        return False
    if _is_module(_thing(getattr(tree, "returns", None), names)):
        return True
    own = [*_own_nodes(tree)]
    held: dict[str, list[ast.expr]] = {}
    for one in own:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            held.setdefault(one.targets[0].id, []).append(one.value)
    stored = Counter(
        one.id for one in own if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    )
    held = {name: values for name, values in held.items() if stored[name] == len(values)}
    back = [one.value for one in own if isinstance(one, ast.Return)]
    values = [x for one in back for x in (held.get(getattr(one, "id", ""), [one]))]
    made = [_thing(one.func, names) if isinstance(one, ast.Call) else None for one in values]
    return bool(made) and all(
        _is_module(one) or (deep > 0 and makes_modules(one, deep - 1)) for one in made
    )


def _is_module(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, nn.Module)


def _own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of nested functions and classes."""
    for one in ast.iter_child_nodes(tree):
        if not isinstance(one, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield one
            yield from _own_nodes(one)


def _thing(node: ast.expr | None, names: Mapping[str, Any]) -> Any:
    """Return the object that a dotted name such as nn.Module denotes; None for anything else."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    found = names.get(node.id) if isinstance(node, ast.Name) else None
    for name in reversed(path):
        found = getattr(found, name, None)
    return found


def _built(cls: Callable[..., Any], name: str, options: Options) -> Code:
    space = globals_of(cls)
    given = settings_for(cls, options, space)
    with _memory_as_nan():
        holder, given = build(cls, given, options)
    maker = None if inspect.isclass(cls) else cls
    if isinstance(holder, nn.Module):
        _require_hashes(holder)
        return _module(_drawn(holder), name, options, given, maker)
    if maker is not None:
        raise DoesNotFit(
            f"wanted a function that builds a module, got one that builds {type(holder).__name__}"
        )
    return _instance(holder, name, options, given)


SPREAD = 0.2  # standard deviation of drawn weights


@contextmanager
def _memory_as_nan() -> Iterator[None]:
    """Fill uninitialised memory with NaN for the duration of a block, so that it is noticed."""
    before = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)


NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase)  # noqa: SLF001


def _drawn(module: nn.Module) -> nn.Module:
    """Draw the weights that the constructor left uninitialised, and tables and gates that are zero.

    As built, such a layer adds nothing or passes nothing on, so that every law would hold
    vacuously; training changes these weights.  A table with only some zero rows, as for padding, is
    kept.
    """
    generator = torch.Generator().manual_seed(0)
    factors = {id(m.weight) for m in module.modules() if isinstance(m, NORMS)}
    with torch.no_grad():
        for one in module.parameters():
            plain = type(one) is nn.Parameter and one.is_floating_point() and not one.is_meta
            # a table, a gate of all, or the factors of a norm
            whole = plain and (one.dim() > 1 or one.numel() == 1 or id(one) in factors)
            zero = whole and one.requires_grad and not bool(one.any())
            if zero or (plain and bool(one.isnan().any())):
                one.copy_(SPREAD * torch.randn(one.shape, generator=generator))
    return module


def _require_hashes(module: nn.Module) -> None:
    """Raise ``DoesNotFit`` for a module with a part that is not hashable.

    Torch cannot traverse it: a class that defines ``__eq__`` without ``__hash__`` has no hash.
    """
    try:
        list(module.modules())
    except TypeError as error:
        raise DoesNotFit(
            f"torch cannot traverse its submodules, as for its parameters: {error} (a class with "
            "__eq__ needs a __hash__)"
        ) from None


def _module(
    module: nn.Module,
    name: str,
    options: Options,
    built: Mapping[str, Any],
    maker: Callable[..., Any] | None = None,
) -> Code:
    _require_hashes(module)
    kept = _copy_of(module).eval()
    if type(module).__module__.startswith("transformers."):
        from .pretrained import layer_types

        options = layer_types(kept, options)

    def other(given: Mapping[str, Any]) -> Code:
        with _memory_as_nan():
            made = construct(maker or type(kept), given)
        return _module(_drawn(made), name, options, given, maker)

    return _object(kept, _copy_of, other, name, options, built, maker)


def _object(
    kept: Any,
    copied: Callable[[Any], Any],
    other: Callable[[Mapping[str, Any]], Code],
    name: str,
    options: Options,
    built: Mapping[str, Any],
    maker: Callable[..., Any] | None = None,
) -> Code:
    """Return code that calls a copy of an object, a new one whenever it is built again.

    ``other``: builds it with other arguments of its constructor.
    """
    said = maker or kept
    text, place = source_of(said), place_of(said)

    def again(**settings: Any) -> Code:
        if settings:
            given = _changed_arguments(maker or type(kept), kept, built, settings)
            with torch.random.fork_rng(devices=[]):  # every instance has the same weights
                seeded(0)
                return other(given)
        fresh = copied(kept)
        return Code(
            name=name,
            call=fresh,
            again=again,
            module=fresh if isinstance(fresh, nn.Module) else None,
            space=globals_of(said),
            text=text,
            place=place,
            built=built,
            options=options,
            maker=maker,
        )

    return again()


def _copy_of(module: nn.Module) -> nn.Module:
    """Return a copy with its own tensors; configs are shared, as nothing writes to them."""
    shared = {
        id(held): held
        for part in module.modules()
        for name, held in vars(part).items()
        if (name == "config" and not isinstance(held, nn.Module)) or isinstance(held, staticmethod)
    }
    return copy.deepcopy(module, {**shared, **large_copies(module)})


def _instance(thing: Any, name: str, options: Options, built: Mapping[str, Any] = {}) -> Code:
    try:
        kept = copy.deepcopy(thing)
    except Exception:  # noqa: BLE001 (some objects cannot be copied: those are used as they are)
        kept = thing

    def other(given: Mapping[str, Any]) -> Code:
        return _instance(construct(type(kept), given), name, options, given)

    copied = copy.deepcopy if kept is not thing else lambda one: one
    return _object(kept, copied, other, name, options, built)


def method_of(code: Code, method: str) -> Code:
    """Return the code that calls a method of the same object."""
    name = f"{code.name}.{method}" if "." not in code.name else code.name
    called = getattr(code.call, method)
    return code.changed(lambda made: method_of(made, method), call=called, name=name)


def in_float32(code: Code) -> Code | None:
    """Return the code with its stored numbers in float32; None if they are, or if it has none.

    >>> code = code_of(nn.Linear(2, 2, dtype=torch.bfloat16), "", Options())
    >>> made = in_float32(code)
    >>> made.converted, code.module.weight.dtype, made.module.weight.dtype
    ('what it stores in bfloat16 is converted to float32', torch.bfloat16, torch.float32)
    >>> in_float32(made) is None
    True
    """
    fresh = code.again()
    if fresh.module is None:
        return None
    stored = (*fresh.module.parameters(), *fresh.module.buffers())
    formats = {one.dtype for one in stored if one.is_floating_point()} - {torch.float32}
    if not formats:
        return None
    fresh.module.float()
    named = tuple(sorted(str(one).removeprefix("torch.") for one in formats))
    told = f"what it stores in {' and '.join(named)} is converted to float32"
    told = "; ".join(filter(None, (code.converted, told)))
    return fresh.changed(lambda made: in_float32(made) or made, converted=told, stored=named)


FORMATS_NAMED = re.compile(r"dtype|scalar type|BFloat16|Half")  # in errors about unlike formats


def as_it_is_or_in_float32(code: Code, made: Callable[[Code], Made]) -> Made:
    """Return what is made of the code, or if that raises, of the code in float32.

    Inputs are float32, which modules that store other formats may refuse.  If both raise, the
    error that speaks less of formats is raised.
    """
    try:
        return made(code)
    except CodeFault:
        raise
    except Exception as error:
        wide = in_float32(code)
        if wide is None:
            raise
        try:
            return made(wide)
        except Exception as other:  # noqa: BLE001 (the code may raise anything)
            errors = (other, error)
            raise min(errors, key=lambda one: len(FORMATS_NAMED.findall(str(one)))) from None


def _changed_arguments(
    cls: Callable[..., Any], kept: Any, built: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the constructor's arguments with some settings changed.

    Raises ``NoSetting`` if it does not take a setting or if its other arguments are not known.
    """
    known = parameters(cls)
    given = dict(built)
    for one in known:
        held = getattr(kept, one.name, None)
        if one.name not in given and isinstance(held, int | float | str | bool):
            given[one.name] = held
    for name, value in settings.items():
        taken = [one for one in known if one.name == name]
        taken = taken or [one for one in known if one.role and one.role == role_of(name)]
        if name == "width" and not taken:
            taken = [one for one in known if one.role == "embed"]
        if taken:
            given[taken[0].name] = value
        elif not _configured(given, name, value):
            raise NoSetting(
                f"{cls.__name__} takes {', '.join(p.name for p in known)}, and not {name}"
            )
    missing = [one.name for one in known if one.required and one.name not in given]
    if missing:
        raise NoSetting(
            f"the arguments that built {cls.__name__} are not known: {', '.join(missing)}"
        )
    return given


def _configured(given: dict[str, Any], name: str, value: Any) -> bool:
    """Change a setting in a copy of the config that has it; return whether there is one."""
    for key, config in list(given.items()):
        if not hasattr(config, "__dict__"):
            continue
        changed = copy.deepcopy(config)
        ropes = getattr(changed, "rope_parameters", None)
        if name == "base" and isinstance(ropes, dict):
            for one in [ropes, *(v for v in ropes.values() if isinstance(v, dict))]:
                if "rope_theta" in one:
                    one["rope_theta"] = value
            given[key] = changed
            return True
        held = [k for k in vars(changed) if role_of(name) and role_of(k) == role_of(name)]
        if held:
            setattr(changed, held[0], value)
            given[key] = changed
            return True
    return False
