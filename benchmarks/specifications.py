"""Attention layers and rotary functions of transformers: which are one function.

``python -m benchmarks.specifications [NAME ...] [--into FILE] [--page FILE]``

Layers are compared with a specification each; rotary functions are put into classes, each with a
specification as its first.  What was found is kept in FILE as it is found, and not looked at again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

from rich.table import Table

from attnproof.comparing.records import line_of
from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.sides import Told
from benchmarks.markdown import page

HALF = "attention:heads=4,rope=half"
PLAIN = "attention:heads=4"
LAYERS = {
    "llama.LlamaAttention": HALF,
    "mistral.MistralAttention": HALF,
    "qwen2.Qwen2Attention": HALF,
    "qwen3.Qwen3Attention": f"{HALF},qk_norm",
    "gemma.GemmaAttention": HALF,
    "gemma2.Gemma2Attention": f"{HALF},scale=0.0625,softcap=50",
    "cohere.CohereAttention": "attention:heads=4,rope=interleaved",
    "olmo.OlmoAttention": HALF,
    "starcoder2.Starcoder2Attention": HALF,
    "granite.GraniteAttention": f"{HALF},scale=1",
    "smollm3.SmolLM3Attention": HALF,
    "bert.BertSelfAttention": PLAIN,
    "vit.ViTAttention": PLAIN,
    "opt.OPTAttention": PLAIN,
    "gpt_oss.GptOssAttention": f"{HALF},sink",
    "mixtral.MixtralAttention": HALF,
    "roberta.RobertaSelfAttention": PLAIN,
    "distilbert.DistilBertSelfAttention": PLAIN,
    "seed_oss.SeedOssAttention": HALF,
    "csm.CsmAttention": HALF,
    "arcee.ArceeAttention": HALF,
    "dinov2.Dinov2Attention": PLAIN,
    "electra.ElectraSelfAttention": PLAIN,
    "nemotron.NemotronAttention": f"{HALF},width=4",
}
ROTARY = ("rope:layout=half", "rope:layout=interleaved")
NAME = "apply_rotary_pos_emb"


def rotary_functions() -> Iterator[tuple[str, Any, int]]:
    """One function of each text that transformers has, its name, and how many models have it."""
    root = Path(inspect.getfile(importlib.import_module("transformers"))).parent / "models"
    found: dict[str, list[str]] = {}
    kept: dict[str, Any] = {}
    for file in sorted(root.glob("*/modeling_*.py")):
        if f"def {NAME}(" not in file.read_text(encoding="utf-8"):
            continue
        name = f"transformers.models.{file.parent.name}.{file.stem}"
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        code = getattr(module, NAME)
        text = "".join(inspect.getsource(one) for one in with_helpers(code))
        key = hashlib.sha256(text.encode()).hexdigest()
        found.setdefault(key, []).append(f"{name}::{NAME}")
        kept.setdefault(key, code)
    for key, names in found.items():
        yield names[0], kept[key], len(names)


def with_helpers(code: Any) -> list[Any]:
    """A function, and the functions of its own module that it calls, and those that these call."""
    found = [code]
    for one in found:
        named = (one.__globals__.get(name) for name in one.__code__.co_names)
        found += [
            other
            for other in dict.fromkeys(named)
            if inspect.isfunction(other) and other.__module__ == code.__module__
            if other not in found
        ]
    return found


def _of_layer(name: str) -> dict[str, Any]:
    model, kind = name.split(".")
    thing = getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), kind)
    return _compared(thing, name, LAYERS[name])


def _compared(thing: Any, name: str, text: str) -> dict[str, Any]:
    start = process_time()
    try:
        found = compare(Told(thing, name), Told(text, text))
        verdict, line = str(found.verdict), line_of(found)
    except Exception as error:  # noqa: BLE001 (a program may not be called as the other is)
        verdict, line = "not comparable", " ".join(str(error).split())[:200]
    return {
        "name": name,
        "against": text,
        "verdict": verdict,
        "line": line,
        "seconds": process_time() - start,
    }


def _of_rotary(name: str, thing: Any, count: int) -> dict[str, Any]:
    """What a rotary function is: the first specification of which it is not a counterexample."""
    found: dict[str, Any] = {}
    for text in ROTARY:
        found = {**_compared(thing, name, text), "models": count}
        if found["verdict"] not in ("counterexample", "not comparable"):
            return found
    return found


def _tables(found: list[dict[str, Any]]) -> list[Table]:
    layers = Table(
        "layer",
        "specification",
        "verdict",
        "how it is known",
        "s",
        title="Attention layers and what they are",
    )
    rotary = Table(
        "function",
        "models that have it",
        "specification",
        "verdict",
        "how it is known",
        "s",
        title="Rotary functions and what they are",
    )
    for one in found:
        name = f"`{one['name']}`"
        cells = (f"`{one['against']}`", one["verdict"], one["line"], f"{one['seconds']:.1f}")
        if "models" in one:
            rotary.add_row(name, str(one["models"]), *cells)
        else:
            layers.add_row(name, *cells)
    return [table for table in (layers, rotary) if table.row_count]


def _told(found: list[dict[str, Any]]) -> str:
    """How many of what there is were compared, and what a counterexample means here."""
    rotary = [one for one in found if "models" in one]
    every = sum(1 for _ in rotary_functions())
    models = sum(one["models"] for one in rotary if one["verdict"] == "proved")
    return (
        f"{len(found) - len(rotary)} of {len(LAYERS)} layers and {len(rotary)} of {every} rotary "
        f"functions of different text were compared; the proved ones stand in {models} models. "
        "A counterexample says that code is not what it was compared with, and not that it is "
        "wrong: some code rotates neighbours by the first half of a table of halves, for which "
        "there is no specification.\n"
    )


def main() -> None:
    """Compare what is asked for, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.specifications")
    parser.add_argument("names", nargs="*", help="layers, or rotary; all if none is named")
    parser.add_argument("--into", type=Path, help="where what is found is kept")
    parser.add_argument("--page", type=Path, help="a page of Markdown")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    if asked.into is not None and asked.into.exists():
        found = json.loads(asked.into.read_text(encoding="utf-8"))
    known = {one["name"] for one in found}

    def keep(one: dict[str, Any]) -> None:
        found.append(one)
        print(
            f"{one['name']}: {one['verdict']} {one['against']}, {one['seconds']:.1f} s", flush=True
        )
        if asked.into is not None:
            asked.into.write_text(json.dumps(found, indent=1), encoding="utf-8")

    for name in LAYERS:
        if name not in known and (not asked.names or name in asked.names):
            keep(_of_layer(name))
    if not asked.names or "rotary" in asked.names:
        for name, thing, count in rotary_functions():
            if name not in known:
                keep(_of_rotary(name, thing, count))
    if asked.page is not None:
        words = " ".join(["python -m benchmarks.specifications", *asked.names])
        title = f"What attention code of transformers {version('transformers')} is"
        text = f"{page(title, words, _tables(found))}\n{_told(found)}"
        asked.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
