"""Show how the classes of a package are called by their names, without checking laws.

``python -m benchmarks.zoo.called transformers.models --match Attention$`` prints a line for each
class: how it is called, or why it is refused.  Reading the line reveals a class that is misread;
this takes a second per class, a check of all laws ten.
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

SHORT = 300  # characters of the reason of a refusal


def classes(package: str, match: str, seed: int | None = None) -> Iterator[type[nn.Module]]:
    """Yield the modules of a package whose names match, in order of files or shuffled by a seed.

    Files that cannot be loaded are skipped.
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
    """Ignore a package that cannot be loaded."""


def _loaded(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except BaseException:  # noqa: BLE001 (a library may raise anything, and leave, where it is loaded)
        return None


def called(found: Iterable[type[nn.Module]]) -> Iterator[tuple[str, bool, str]]:
    """Yield for each class its name, whether it is called, and its call or the refusal.

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
    """Print a line for each class, and the number that are called."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo.called", description=__doc__)
    parser.add_argument("package", help="such as transformers.models")
    parser.add_argument("--match", default="Attention$", help="pattern of the names of classes")
    parser.add_argument("--seed", type=int, help="seed of a random order of files")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="time after which no class is begun"
    )
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
