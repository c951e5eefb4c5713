"""How the classes of a package are called by their names, with no law asked.

``python -m benchmarks.zoo.called transformers.models --match Attention$`` prints a line for each
class: how it is called, or why it is refused.  A class that is misread is seen by reading its line;
that takes a second each, where a check of all laws takes ten.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import pkgutil
import random
import re
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from time import monotonic
from types import ModuleType

import torch
from torch import nn

from attnproof.programs.subject import adapted_as

SHORT = 300  # characters of why a class is refused


def classes(package: str, match: str, seed: int | None = None) -> Iterator[type[nn.Module]]:
    """The modules of a package whose names match, in the order of files, or in one drawn by a seed.

    Files that cannot be loaded are left out.
    """
    root = import_module(package)
    names = [package]
    if hasattr(root, "__path__"):
        names += [one.name for one in pkgutil.walk_packages(root.__path__, f"{package}.", _passed)]
    if seed is not None:
        random.Random(seed).shuffle(names)
    for name in names:
        file = _loaded(name)
        for one in list(vars(file).values()) if file is not None else ():
            own = inspect.isclass(one) and one.__module__ == name
            if own and issubclass(one, nn.Module) and re.search(match, one.__name__):
                yield one


def _passed(_: str) -> None:
    """A package that cannot be loaded keeps no other from its turn."""


def _loaded(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except BaseException:  # noqa: BLE001 (a library may raise anything, and leave, where it is loaded)
        return None


def called(found: Iterable[type[nn.Module]]) -> Iterator[tuple[str, bool, str]]:
    """Of each class its name, whether it is called, and its call or why it is refused.

    >>> for one in called([nn.MultiheadAttention]):
    ...     print(one[:2])
    ('torch.nn.modules.activation::MultiheadAttention', True)
    """
    for one in found:
        torch.manual_seed(0)
        name = f"{one.__module__}::{one.__name__}"
        try:
            subject = adapted_as(one)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (a library may raise what is no Exception)
            yield name, False, " ".join(str(error).split())[:SHORT]
        else:
            yield name, True, f"{subject.kind}: {subject.line or subject.adapted}"


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each class, and how many are called."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo.called", description=__doc__)
    parser.add_argument("package", help="such as transformers.models")
    parser.add_argument("--match", default="Attention$", help="of the names of classes")
    parser.add_argument("--seed", type=int, help="draws the order of files")
    parser.add_argument("--seconds", type=float, default=600.0, help="after which none is begun")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    end, counted = monotonic() + asked.seconds, [0, 0]
    for name, good, told in called(classes(asked.package, asked.match, asked.seed)):
        counted[good] += 1
        print(f"{'✓' if good else '✗'} {name}  {told}", flush=True)
        if monotonic() > end:
            break
    print(f"{counted[1]} of {sum(counted)} classes are called by their names")


if __name__ == "__main__":
    main()
