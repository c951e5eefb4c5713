"""Which remarks fall on published code that is installed: each is a true finding, or a fault here.

``python -m benchmarks.remarks [PART ..]`` looks at the rotary, attention, bias and additive code of
transformers, one of each source text, and prints every remark and the counts.  ``PART`` keeps the
names that contain it.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import torch

from attnproof.programs.identify import identify
from attnproof.programs.identify.remarks import remarks_on
from attnproof.programs.subject import adapted_as

SECONDS = 15  # of one class or function: built, called and read
WANTED = re.compile(
    r"Attention$|Rotary|RoPE|Rope(?!n)|Alibi|alibi|Sinusoid|PositionalEncoding|apply_rotary|"
    r"eager_attention|RelativePosition|causal_mask"
)


def published(parts: list[str]) -> Iterator[tuple[str, Any]]:
    """Classes and functions of transformers' models with such names, one of each source text."""
    models = importlib.import_module("transformers.models")
    seen = set[str]()
    for package in pkgutil.iter_modules(models.__path__):
        asked = [part.partition("::")[0] for part in parts if "::" in part]
        if len(asked) == len(parts) > 0 and package.name not in asked:
            continue  # loading all of them takes minutes
        name = f"transformers.models.{package.name}.modeling_{package.name}"
        try:
            module = importlib.import_module(name)
        except Exception:  # noqa: BLE001 (a model may want a library that is not there)
            continue
        for told, thing in vars(module).items():
            if not WANTED.search(told) or getattr(thing, "__module__", "") != name:
                continue
            text = inspect.getsource(thing)
            bare = text.replace(package.name.title().replace("_", ""), "").partition("\n")[2]
            if bare in seen or not any(part in f"{package.name}::{told}" for part in parts or [""]):
                continue
            seen.add(bare)
            yield f"{package.name}::{told}", thing


def _read(thing: Any, told: Connection) -> None:
    """Send the kind, the remarks and the sentence of one piece of code; what it prints is lost."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    torch.set_num_threads(1)
    try:
        subject = adapted_as(thing, "")
        found = identify(subject)
        remarks = [str(one) for one in remarks_on(subject, found, thing)]
        read = "not read" if found.part("unread") is not None else "read"
        told.send((f"{subject.kind} code {read}", remarks, found.sentence))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (any code may raise anything)
        told.send((f"refused: {type(error).__name__}", [], ""))


def main() -> None:
    """Print each remark, and how many pieces of code were read."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    context = get_context("fork")  # what is loaded need not be loaded again
    counts, start = Counter[str](), perf_counter()
    for name, thing in published(sys.argv[1:]):
        there, here = context.Pipe(duplex=False)
        child = context.Process(target=_read, args=(thing, here), daemon=True)
        child.start()
        here.close()
        word, remarks, sentence = "not ended", [], ""
        if there.poll(SECONDS):
            with suppress(EOFError):
                word, remarks, sentence = there.recv()
        child.kill()
        child.join()
        counts[word] += 1
        counts["remarks"] += len(remarks)
        for one in remarks:
            print(f"{name}: {one}\n    {sentence}", flush=True)
    print(f"{dict(sorted(counts.items()))}, {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
