"""Sort rotary functions and attention layers of transformers into classes of equal ones.

``python -m benchmarks.classes [rotary] [layers] [--into FILE] [--page FILE]``

All rotary functions with distinct source texts are compared, and the layers in :data:`LAYERS`,
built with attnproof's default numbers of heads and channels and with the same weights.  Results are
stored in FILE and reused.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import re
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from attnproof.programs.equal.deciding import classes
from attnproof.programs.equal.sides import Operand
from attnproof.real_code.equal_records import ApartRecord, ClassesRecord, classes_record
from benchmarks.markdown import page

# Decoders of text, most of them in wide use, whose layers take tokens and tables of angles.
LAYERS = (
    "llama.LlamaAttention",
    "mistral.MistralAttention",
    "qwen2.Qwen2Attention",
    "qwen3.Qwen3Attention",
    "gemma.GemmaAttention",
    "gemma2.Gemma2Attention",
    "gemma3.Gemma3Attention",
    "phi.PhiAttention",
    "phi3.Phi3Attention",
    "cohere.CohereAttention",
    "cohere2.Cohere2Attention",
    "olmo.OlmoAttention",
    "olmo2.Olmo2Attention",
    "stablelm.StableLmAttention",
    "starcoder2.Starcoder2Attention",
    "granite.GraniteAttention",
    "smollm3.SmolLM3Attention",
    "gpt_neox.GPTNeoXAttention",
    "nemotron.NemotronAttention",
    "glm.GlmAttention",
    "glm4.Glm4Attention",
    "glm4_moe.Glm4MoeAttention",
    "ernie4_5.Ernie4_5Attention",
    "exaone4.Exaone4Attention",
    "helium.HeliumAttention",
    "mixtral.MixtralAttention",
    "qwen2_moe.Qwen2MoeAttention",
    "qwen3_moe.Qwen3MoeAttention",
    "gpt_oss.GptOssAttention",
    "seed_oss.SeedOssAttention",
    "arcee.ArceeAttention",
    "dots1.Dots1Attention",
    "hunyuan_v1_dense.HunYuanDenseV1Attention",
    "bitnet.BitNetAttention",
)
OF_ALL = (
    "this covers values, not gradients",
    "every float32 call in evaluation without autocast runs this graph",
)
ROTARY = ("rope:layout=half", "rope:layout=interleaved")
NAME = "apply_rotary_pos_emb"
TITLES = {"rotary": "Rotary functions", "layers": "Attention layers"}


def rotary_functions() -> Iterator[tuple[str, Any, int]]:
    """Yield a name, the function, and the number of models that have it, for each distinct text."""
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
    """Return a function and the functions of its module that it calls, directly or indirectly."""
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


def programs(what: str) -> Iterator[tuple[Operand, int]]:
    """Yield the programs to compare, each with the number of models that have it."""
    if what == "rotary":
        yield from ((Operand(text, text), 0) for text in ROTARY)
        yield from ((Operand(code, name), count) for name, code, count in rotary_functions())
        return
    for name in LAYERS:
        model, kind = name.split(".")
        module = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
        yield Operand(getattr(module, kind), name), 0


def found_of(what: str) -> ClassesRecord:
    """Return the classes, without times, which the page does not show."""
    told = [one for one, _ in programs(what)]
    return classes_record(classes(told, begin=lambda name: print(name, flush=True)), 0.0)


def tables(what: str, found: ClassesRecord) -> list[Table]:
    """Return tables of the members of each class, and of the differences between classes."""
    counts = {one.name: count for one, count in programs(what)}
    members = Table("class", "program", "models", "how it is known", title=TITLES[what])
    firsts: dict[str, int] = {}
    for number, each in enumerate(found.classes, 1):
        firsts[each.first] = number
        members.add_row(str(number), _name(each.first), _count(counts[each.first]), "the first")
        for one in each.others:
            members.add_row("", _name(one.target), _count(counts[one.target]), _short(one.line))
    apart = Table("classes", "verdict", "why", "the first step of each that the other does not do")
    apart.title = f"{TITLES[what]}: between classes"
    alone: dict[str, list[ApartRecord]] = {}
    for pair in found.apart:
        if pair.second not in firsts:
            continue
        if pair.verdict == "not comparable":
            alone.setdefault(pair.second, []).append(pair)
            continue
        places = f"{firsts[pair.first]} and {firsts[pair.second]}"
        apart.add_row(places, pair.verdict, pair.why, _parted(pair))
    for second, pairs in alone.items():
        others = ", ".join(str(k) for k in sorted(firsts[one.first] for one in pairs))
        told = f"with {firsts[pairs[0].first]}: {pairs[0].why}"
        apart.add_row(f"{firsts[second]} and each of {others}", "not comparable", told, "")
    return [table for table in (members, apart) if table.row_count]


def _name(target: str) -> str:
    """Return a name without the parts that all share."""
    match = re.fullmatch(r"transformers\.models\.(\w+)\.modeling_\w+::\w+", target)
    return f"`{match[1] if match else target}`"


def _short(line: str) -> str:
    """Return the line of a verdict without the conditions that all proofs share."""
    for clause in OF_ALL:
        line = re.sub(rf"(, where|; and|;) {re.escape(clause)}", "", line)
    return line


def _count(models: int) -> str:
    return str(models) if models else ""


def _parted(one: ApartRecord) -> str:
    if one.parted is None:
        return ""
    steps = (one.parted.first, one.parted.second)
    return "; ".join(f"{step.place}: `{step.text}`" for step in steps if step)


def _told(found: dict[str, ClassesRecord]) -> str:
    """Return the explanation below the tables."""
    how = (
        "Each program is compared with the first of each class, and its line says under which "
        "conditions the two are one function. Two more conditions hold for every proof: "
        f"{', and '.join(OF_ALL)}. A program that is not comparable is in a class of its own. A "
        "counterexample says that two classes are different functions, not which of them is wrong."
    )
    lines = [how]
    if "rotary" in found:
        lines.append(
            "Some rotary code rotates neighbouring channels by the first half of a half-split "
            "table, for which there is no specification."
        )
    if "layers" in found:
        lines.append(
            f"The {len(LAYERS)} layers are chosen among text decoders. They are built with the "
            "numbers of heads and channels that attnproof uses for layers, and otherwise with the "
            "defaults of their own configuration; each is the first layer of its model, and takes "
            "tables as the first of its class does. Weights are shared by name: layers whose "
            "weights have other names or shapes are not comparable."
        )
    return "\n\n".join(lines) + "\n"


def main() -> None:
    """Find the requested classes, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classes")
    parser.add_argument("what", nargs="*", help="rotary, layers; by default both")
    parser.add_argument("--into", type=Path, help="a file in which results are stored")
    parser.add_argument("--page", type=Path, help="a page of Markdown")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    known: dict[str, ClassesRecord] = {}
    if asked.into is not None and asked.into.exists():
        stored = json.loads(asked.into.read_text(encoding="utf-8"))
        known = {name: ClassesRecord.read(one) for name, one in stored.items()}
    for what in asked.what or TITLES:
        if what not in known:
            known[what] = found_of(what)
        if asked.into is not None:
            stored = {name: one.model_dump(mode="json") for name, one in known.items()}
            asked.into.write_text(json.dumps(stored, indent=1), encoding="utf-8")
    if asked.page is not None:
        words = " ".join(["python -m benchmarks.classes", *asked.what])
        title = f"Which code of transformers {version('transformers')} is the same function"
        every = [table for what, one in known.items() for table in tables(what, one)]
        asked.page.write_text(f"{page(title, words, every)}\n{_told(known)}", encoding="utf-8")


if __name__ == "__main__":
    main()
