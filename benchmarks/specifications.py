"""Compare attention layers of transformers with specifications.

``python -m benchmarks.specifications [NAME ...] [--into FILE] [--page FILE]``

Each result is stored in FILE as soon as it is known, and reused.  :mod:`benchmarks.classes`
compares rotary functions with specifications.
"""

from __future__ import annotations

import argparse
import importlib
import json
import warnings
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

from rich.table import Table

from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.sides import Operand
from attnproof.real_code.equal_records import line_of
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
COUNTEREXAMPLE = (
    "A counterexample says that code differs from its specification, not that it is wrong. "
    "[Classes](classes.md) compares rotary functions, and layers with each other."
)


def _of_layer(name: str) -> dict[str, Any]:
    model, kind = name.split(".")
    thing = getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), kind)
    start, text = process_time(), LAYERS[name]
    try:
        found = compare(Operand(thing, name), Operand(text, text))
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


def _table(found: list[dict[str, Any]]) -> Table:
    columns = ("layer", "specification", "verdict", "how it is known", "s")
    table = Table(*columns, title="Attention layers and what they are")
    for one in found:
        against, seconds = f"`{one['against']}`", f"{one['seconds']:.1f}"
        table.add_row(f"`{one['name']}`", against, one["verdict"], one["line"], seconds)
    return table


def main() -> None:
    """Compare the requested layers, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.specifications")
    parser.add_argument("names", nargs="*", help="layers; by default all")
    parser.add_argument("--into", type=Path, help="a file in which results are stored")
    parser.add_argument("--page", type=Path, help="a page of Markdown")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    if asked.into is not None and asked.into.exists():
        found = json.loads(asked.into.read_text(encoding="utf-8"))
    known = {one["name"] for one in found}
    for name in LAYERS:
        if name in known or (asked.names and name not in asked.names):
            continue
        one = _of_layer(name)
        found.append(one)
        told = f"{name}: {one['verdict']} {one['against']}, {one['seconds']:.1f} s"
        print(told, flush=True)
        if asked.into is not None:
            asked.into.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if asked.page is not None:
        words = " ".join(["python -m benchmarks.specifications", *asked.names])
        title = f"What attention code of transformers {version('transformers')} is"
        told = f"{len(found)} of {len(LAYERS)} layers were compared. {COUNTEREXAMPLE}"
        text = f"{page(title, words, [_table(found)])}\n{told}\n"
        asked.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
