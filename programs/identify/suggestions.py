"""What code says about itself: its names, docstrings, settings and the numbers in its source.

Nothing here describes what the code does.  It is what a reader would expect, with the place that
suggests it, so that :mod:`.remarks` can compare the two.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ..call_forms.vocabulary import OnVectors
from ..code import globals_of, text_and_place
from ..signatures.grammar import parse

MODULE_DEPTH = 2  # how deep the parts of a module are whose settings are read
SKIPPED_PACKAGES = (
    "torch",
    "builtins",
    "abc",
    "typing",
)  # classes of these say nothing about the code
DICTS = ("rope_parameters", "rope_scaling", "rope_config", "scaling_config")


@dataclass(frozen=True)
class Setting:
    """A named value that the code keeps, and where: "base = 10000 of Rope"."""

    name: str
    value: Any
    where: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value!r} of {self.where}"


@dataclass(frozen=True)
class Suggestions:
    """What code says about itself.

    ``names``: of the function, or of the class and its bases, nearest first.  ``docs``: the
    docstrings, by name.  ``settings``: values in attributes, configurations and defaults.
    ``numbers``: those in the source.  ``source``: of the function or class itself.  ``parameters``:
    of the function or of ``forward``.  ``parts``: the source of each class of which a module has
    parts, by name, including its own.
    """

    names: tuple[str, ...] = ()
    docs: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    numbers: frozenset[float] = frozenset()
    source: str = ""
    parameters: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    def named(self, pattern: str) -> str:
        """Return the first name with a word that matches the pattern, or "".

        Words are separated by underscores and by capitals.

        >>> Suggestions(names=("MPTAlibiBias",)).named("alibi")
        'MPTAlibiBias'
        """
        return next((name for name in self.names if re.search(pattern, _words(name))), "")

    def under(self, names: Collection[str], kinds: type | tuple[type, ...]) -> list[Setting]:
        """The settings with these names and types; bool does not count as a number."""
        return [
            one
            for one in self.settings
            if one.name in names
            and isinstance(one.value, kinds)
            and (kinds is bool or not isinstance(one.value, bool))
        ]

    def computes(self, names: Collection[str]) -> bool:
        """Whether the source assigns a computed number to one of these names.

        Tensors of frequencies have such names too, but they are made by torch or are 1 over powers.

        >>> made = "base = math.ceil((n / 6.28) ** (d / (d - 2)))"
        >>> Suggestions(source=made).computes(("base",))
        True
        >>> Suggestions(source="theta = 1.0 / base ** (torch.arange(0, d, 2) / d)").computes(
        ...     ("base", "theta")
        ... )
        False
        """
        for node in _syntax_nodes(self.source):
            if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                continue
            into = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value
            if not any(_target_name(one) in names for one in into):
                continue
            if isinstance(value, ast.BinOp | ast.Call) and "torch." not in ast.unparse(value):
                return True
        return False


def _target_name(node: ast.expr) -> str:
    """The name that is assigned to, a variable or an attribute."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _syntax_nodes(text: str) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(ast.parse(text))
    except SyntaxError:
        return


def _words(name: str) -> str:
    """A name in lower case, with its words separated by spaces.

    >>> _words("apply_rotary"), _words("GPTJAttention"), _words("GPTNeoX")
    ('apply rotary', 'gptj attention', 'gpt neo x')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", " ", name)
    return apart.replace("_", " ").replace(".", " ").lower()


def suggestions_of(thing: Any, module: nn.Module | None = None) -> Suggestions:
    """Collect what a function, class, module or method says; ``module`` is what was built from it.

    >>> def rotated(x, theta=10000.0):
    ...     "Rotate neighbours."
    >>> found = suggestions_of(rotated)
    >>> found.names, [str(one) for one in found.settings]
    (('rotated',), ['theta = 10000.0 of rotated'])
    """
    thing = getattr(thing, "func", thing) if isinstance(thing, functools.partial) else thing
    owner = module if module is not None else getattr(thing, "__self__", thing)
    owner = owner.model if isinstance(owner, OnVectors) else owner
    owner = thing if inspect.ismodule(owner) else owner  # the owner of a builtin is its module
    pieces: list[Any] = []
    if inspect.isroutine(thing):
        pieces.append(thing)
    kind = owner if inspect.isclass(owner) else type(owner)
    if isinstance(owner, nn.Module) or inspect.isclass(owner) or not inspect.isroutine(owner):
        pieces += [
            cls for cls in kind.__mro__ if cls.__module__.partition(".")[0] not in SKIPPED_PACKAGES
        ]
    if not pieces:
        return Suggestions()
    texts = [_source(piece) for piece in pieces]
    run = pieces[0] if inspect.isroutine(pieces[0]) else getattr(kind, "forward", None)
    return Suggestions(
        names=tuple(piece.__name__ for piece in pieces),
        docs={piece.__name__: _docstring(piece) for piece in pieces if _docstring(piece)},
        settings=tuple(_settings(pieces[0], owner)),
        numbers=frozenset(number for text in texts for number in _numbers(text)),
        source=texts[0],
        parameters=tuple(_parameters(run)),
        parts=_sources_of_parts(owner),
    )


def numbers_beside(thing: Any, line: str) -> frozenset[float]:
    """Return the numbers in the source of the code that is called before or after, by its line."""
    call = parse(line) if line else None
    others = () if call is None else (call.source, call.then)
    known = globals_of(thing)
    made = [known[one.code] for one in others if one is not None and one.code in known]
    return frozenset().union(*(suggestions_of(one).numbers for one in made))


def _sources_of_parts(owner: Any) -> dict[str, str]:
    kinds = {type(one) for one in owner.modules()} if isinstance(owner, nn.Module) else ()
    own = [one for one in kinds if one.__module__.partition(".")[0] not in SKIPPED_PACKAGES]
    return {one.__name__: _source(one) for one in sorted(own, key=lambda one: one.__name__)}


def _docstring(piece: Any) -> str:
    return (vars(piece).get("__doc__") if inspect.isclass(piece) else piece.__doc__) or ""


def _source(piece: Any) -> str:
    try:
        return textwrap.dedent(text_and_place(piece)[0])
    except (TypeError, SyntaxError):  # not hashed, or typed at a prompt
        return ""


def _parameters(run: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(run).parameters)
    except (TypeError, ValueError):
        return {}


def _settings(piece: Any, owner: Any) -> Iterator[Setting]:
    """Yield defaults of a function; attributes and configurations of an object and its parts."""
    if inspect.isroutine(piece):
        for name, one in _parameters(piece).items():
            if one.default is not one.empty and one.default is not None:
                yield Setting(name, one.default, piece.__name__)
    if isinstance(owner, nn.Module):
        for path, part in owner.named_modules():
            if path.count(".") < MODULE_DEPTH:
                yield from _attributes(part, f"{type(owner).__name__}{'.' * bool(path)}{path}")
    elif not inspect.isclass(owner) and not inspect.isroutine(owner):
        yield from _attributes(owner, type(owner).__name__)


def _attributes(part: Any, where: str) -> Iterator[Setting]:
    own = dict(vars(part)) if hasattr(part, "__dict__") else {}
    for cls in type(part).__mro__:
        if cls.__module__.partition(".")[0] not in SKIPPED_PACKAGES:
            own = {**{k: v for k, v in vars(cls).items() if isinstance(v, int | float)}, **own}
    for name, value in own.items():
        if name.startswith("_") or value is None:
            continue
        if name in ("config", "args", "cfg") and not isinstance(value, nn.Module):
            inner = value if isinstance(value, dict) else getattr(value, "__dict__", {})
            yield from _plain(inner, f"{where}.{name}")
        else:
            yield from _plain({name: value}, where)


def _plain(values: Mapping[str, Any], where: str) -> Iterator[Setting]:
    """Yield numbers, truth values and strings, also from dictionaries that describe rotations."""
    for name, value in values.items():
        if isinstance(value, bool | int | float | str):
            yield Setting(name, value, where)
        elif name in DICTS and isinstance(value, dict):
            yield from _plain(value, f"{where}.{name}")
            for kind, inner in value.items():  # one dictionary for each kind of layer
                if isinstance(inner, dict):
                    yield from _plain(inner, f"{where}.{name}[{kind!r}]")


def _numbers(text: str) -> Iterator[float]:
    """Yield the numbers in source code, including literal powers such as ``2**16``."""
    for node in _syntax_nodes(text):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield float(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            sides = (node.left, node.right)
            base, power = (s.value if isinstance(s, ast.Constant) else None for s in sides)
            if isinstance(base, int) and isinstance(power, int) and 0 < power < 64:
                yield float(base**power)
