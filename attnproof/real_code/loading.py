"""Find code by name: ``path/to/file.py::name``, ``package.module::Name``, or ``model.onnx``.

Loading a file runs it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from ..numeric.file_imports import imported
from .request import one_line

PREFIX = "_attnproof_code_"  # prefix of the name of a module that was read from a path
WANTED = "FILE.py::NAME, package.module::NAME or MODEL.onnx"
ONNX_ON = "CPUExecutionProvider"
ONNX_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}
SHOWN = 8  # names that are suggested


class CannotLoad(Exception):
    """There is no code under this name; says what was wanted, what came, and what to do."""


@dataclass(frozen=True)
class Loaded:
    """Code that was found, its name, and the file that it is in."""

    thing: Any
    name: str
    file: str


def split(target: str) -> tuple[str, str]:
    """Return the file or module, and the name in it.

    >>> split("models/rope.py::Rope.forward")
    ('models/rope.py', 'Rope.forward')
    """
    place, colons, name = target.rpartition("::")
    if not colons:
        place, name = target, ""
    if not place:
        raise CannotLoad(f"wanted {WANTED}, got {target!r}")
    if "::" in place:
        first, _, more = place.partition("::")
        raise CannotLoad(f"wanted {WANTED}, got {target!r}; write {first}::{more}.{name}")
    return place, name


def require_target(target: str) -> None:
    """Refuse, before anything is run, a target that names no file or nothing in it."""
    place, name = split(target)
    if _is_path(place):
        path = Path(place)
        if path.is_dir():
            raise CannotLoad(f"wanted {WANTED}, got the folder {place}; name a file in it")
        if not path.exists():
            raise CannotLoad(f"wanted {WANTED}, got {place}, which does not exist; check the path")
        if path.suffix == ".onnx":
            if name:
                raise CannotLoad(f"wanted the whole model {place}, got a part of it, {name!r}")
            return
        if path.suffix != ".py":
            raise CannotLoad(f"wanted {WANTED}, got {place}, {_not_python(path)}")
        if not name:
            raise CannotLoad(f"wanted {WANTED}, got {target!r}; {_names_in(path)}")
    elif not name:
        file, colon, rest = place.rpartition(".py:")
        within, _, last = place.rpartition(".")
        if colon and rest:
            told = f"write {file}.py::{rest}"
        else:
            told = "write ::NAME behind it"
            told += f", or {within}::{last} if {last} is the name meant" if within and last else ""
        raise CannotLoad(f"wanted {WANTED}, got {target!r}; {told}")


def load(target: str) -> Loaded:
    """Return the code of this name.

    Raises :class:`CannotLoad` if there is none, if its file raises, or if it is not callable.
    """
    require_target(target)
    place, name = split(target)
    path = Path(place) if _is_path(place) else None
    if path is not None and path.suffix == ".onnx":
        return Loaded(OnnxModel(path), path.stem, str(path.resolve()))
    try:
        module = _of_file(path) if path is not None else _of_name(place)
    except CannotLoad:
        raise
    except (Exception, SystemExit) as error:  # a file may raise anything
        raise CannotLoad(f"{place} cannot be imported: {_failure(error, path)}") from error
    thing = _named(module, name, place)
    if not _fits(thing):
        raise CannotLoad(
            f"wanted a function, a class or a module that can be called, got {target}, "
            f"which is {_article(type(thing).__name__)}{_callables(module)}"
        )
    return Loaded(thing, name, file_of(thing) or getattr(module, "__file__", None) or "")


class OnnxModel:
    """The model of an ONNX file, called with its inputs by name, and run by onnxruntime.

    Inputs are cast to the types that the model expects.  Raises :class:`CannotLoad` if onnxruntime
    is not installed or cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        try:
            onnxruntime: Any = importlib.import_module("onnxruntime")
        except ImportError:
            raise CannotLoad(
                f"{path} is run by onnxruntime, which is not installed: pip install onnxruntime"
            ) from None
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 4  # errors of a call are reported once, by the caller
        try:
            self._session = onnxruntime.InferenceSession(str(path), quiet, providers=[ONNX_ON])
        except Exception as error:  # (its errors have no common base class)
            told = one_line(str(error))
            raise CannotLoad(f"{path} cannot be read by onnxruntime: {told}") from error
        self.__name__ = self.__qualname__ = path.stem
        self._types = {one.name: ONNX_TYPES.get(one.type) for one in self._session.get_inputs()}
        wrong = [name for name, kind in self._types.items() if kind is None]
        wrong += [name for name in self._types if not name.isidentifier()]
        if wrong:
            raise CannotLoad(
                f"wanted inputs of {path} that are named like parameters and of a type that numpy "
                f"has, got {wrong[0]!r}; write a function that calls the model"
            )
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in self._types]
        )

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return what the model returns: a tensor, or a tuple of tensors."""
        import torch

        arrays = self.__signature__.bind(*given, **named).arguments
        cast = {k: x.detach().cpu().numpy().astype(self._types[k]) for k, x in arrays.items()}
        found = tuple(map(torch.from_numpy, self._session.run(None, cast)))
        return found[0] if len(found) == 1 else found


def _fits(thing: Any) -> bool:
    """Whether it can be checked as code: a callable, a config, or a subject."""
    if callable(thing):
        return True
    from ..programs.loading.pretrained import is_config
    from ..programs.subjects import Subject

    return isinstance(thing, Subject) or is_config(thing)


def _is_path(place: str) -> bool:
    named = place.endswith((".py", ".ipynb", ".onnx")) or "/" in place or "\\" in place
    return named or Path(place).exists()


def _not_python(path: Path) -> str:
    if path.suffix == ".ipynb":
        told = "write it out with `jupyter nbconvert --to script` and check that file"
        return f"which is a notebook; {told}"
    return "which is not a Python file"


def _of_file(path: Path) -> ModuleType:
    """Import the module of a file; a file in a package is imported as part of it.

    A file with relative imports is in a package, even if its folder has no ``__init__.py``.
    """
    folder = path.resolve().parent
    parts = [path.stem]
    levels = _relative_levels(path)
    while folder.name and ((folder / "__init__.py").exists() or len(parts) <= levels):
        parts.insert(0, folder.name)
        folder = folder.parent
    _reach(folder)
    if len(parts) == 1:
        return imported(path, PREFIX)
    if parts[-1] == "__init__":
        parts.pop()
    return importlib.import_module(".".join(parts))


def _relative_levels(path: Path) -> int:
    """Return how many folders up the relative imports of a file reach; 0 if it has none."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return 0
    return max((one.level for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)), default=0)


def _of_name(name: str) -> ModuleType:
    _reach(Path.cwd())
    try:
        there = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # something that it imports is missing
        there = False
    except ValueError:  # a module without a specification, such as __main__
        there = False
    if not there:
        raise CannotLoad(
            f"wanted {WANTED}, got the module {name!r}, which is not installed here and not in "
            f"{Path.cwd()}{_near_module(name)}"
        )
    return importlib.import_module(name)


def _near_module(name: str) -> str:
    """Suggest modules with a similar name, in the package where the first missing part would be."""
    parent, _, last = name.rpartition(".")
    while parent and parent not in sys.modules:
        parent, _, last = parent.rpartition(".")
    if not parent:
        installed = [one.name for one in pkgutil.iter_modules()]
        near = get_close_matches(name.partition(".")[0], installed, n=3, cutoff=0.7)
        return f"; nearest: {', '.join(near)}" if near else ""
    folders = getattr(sys.modules[parent], "__path__", ())
    near = get_close_matches(last, [m.name for m in pkgutil.iter_modules(folders)], n=3, cutoff=0.5)
    told = f"; nearest: {', '.join(f'{parent}.{one}' for one in near)}" if near else ""
    return f"; there is no {last!r} in {parent}{told}"


def _reach(folder: Path) -> None:
    """Let the code import modules beside it, as it could if it were run there."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _named(module: ModuleType, name: str, place: str) -> Any:
    thing: Any = module
    for part in name.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            raise CannotLoad(f"there is no {name!r} in {place}; {_near(module, name)}") from None
    return thing


def _near(module: ModuleType, name: str) -> str:
    own = _own(module)
    near = get_close_matches(name, own, n=3, cutoff=0.5)
    near = near or [other for other in own if name.lower() in other.lower()][:3]
    if near:
        return f"nearest: {', '.join(near)}"
    return f"it has {', '.join(own[:SHOWN]) or 'nothing that can be called'}"


def _callables(module: ModuleType) -> str:
    own = _own(module)
    return f"; {', '.join(own[:SHOWN])} can be called" if own else ""


def _own(module: ModuleType) -> list[str]:
    """Return the callables that are a module's own: functions, classes and instances.

    Those of a package include the callables of its modules.
    """
    inside = f"{module.__name__}."
    return [
        name
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and f"{getattr(value, '__module__', '') or module.__name__}.".startswith(inside)
    ]


def _names_in(path: Path) -> str:
    """Suggest functions and classes of a file, without running it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return "write ::NAME behind it"
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    names = [n.name for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")]
    return f"write ::NAME behind it, such as {', '.join(f'::{n}' for n in names[:SHOWN]) or '::f'}"


def _failure(error: BaseException, path: Path | None) -> str:
    """Describe what a file raised, and in which line."""
    told = one_line(str(error))
    line: int | None = None
    if isinstance(error, SyntaxError):
        told, line = error.msg, error.lineno
    elif isinstance(error, SystemExit):
        told = f"it leaves by sys.exit({'' if error.code is None else repr(error.code)})"
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if path is not None and Path(f.filename) == path.resolve()]
    mine = mine or [f for f in frames if path is not None and Path(f.filename).name == path.name]
    line = line or (mine[-1].lineno if mine else None)
    return f"{type(error).__name__}: {told}" + (f" (line {line})" if line else "")


def _article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def file_of(code: Any) -> str:
    """Return the file that defines the code; empty if built in or typed into a session."""
    try:
        code = inspect.unwrap(code) if callable(code) else code  # a Program wraps what it calls
        known = inspect.isroutine(code) or inspect.isclass(code)
        return inspect.getfile(code if known else type(code))
    except (OSError, TypeError):
        return ""
