"""Code that no adapter fits: what was tried, which packages are missing, and what to write instead.

The suggested line has the code's own parameters, each with what its name implies.  What no name
implies is ``?``, to be replaced before the line is passed back.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .code import Code, DoesNotFit
from .loading.names import USUAL_ARGUMENTS, Parameter, parameters
from .signatures.signature import packed_as

NEEDS_DEVICE = (
    "not compiled with cuda",
    "no nvidia driver",
    "no cuda gpus",
    "cuda error",
    "cuda is not available",
    "is_cuda",
    "must be on cuda",
    "cuda out of memory",
    "requires cuda",
    "active drivers",
    "flash_attn",  # named in errors even if installed: its kernels need CUDA
)
WANTS_DEVICE = (
    "This code asks for a CUDA device, and was run without one.  Take the device from its inputs "
    "(x.device), or run the check where there is one."
)
# Kernel packages that code names in an error if it needs them.
KERNELS = (
    "flash_attn",
    "xformers",
    "triton",
    "apex",
    "transformer_engine",
    "sageattention",
    "natten",
    "deepspeed",
    "causal_conv1d",
    "mamba_ssm",
)
_NO_MODULE = re.compile(r"No module named '?(\w+)")
_PIP = re.compile(r"pip3? install (?:-\S+ )*([A-Za-z][\w-]*)")
_NONE_CALLED = "'NoneType' object is not callable"


def advice(text: str) -> str:
    """Return what to do if an error says that a package or a device is missing, else "".

    >>> advice("flash_attn is not importable here")[:53]
    'This code needs flash_attn, which is not installed.  '
    >>> advice("no such width")
    ''
    """
    missing = _package(text)
    if missing:
        return _needs(missing)
    wants = any(word in text.lower() for word in NEEDS_DEVICE)
    return WANTS_DEVICE if wants else ""


def advice_on(code: Code, text: str) -> str:
    """Return advice, also if the code calls a name that is None because its import failed."""
    if _NONE_CALLED not in text:
        return advice(text)
    absent = [
        name
        for name, value in code.space.items()
        if value is None and re.search(rf"\b{re.escape(name)}\(", code.text)
    ]
    if not absent:
        return ""
    packages = [one for one in _imported(code.place.rpartition(":")[0], absent[0]) if not _is(one)]
    named = f"{absent[0]} is None in its file.  "
    return named + (_needs(packages[0]) if packages else "Choose a setting with which it is not.")


def _needs(package: str) -> str:
    kernels = " (it has kernels for a CUDA device)" * (package in KERNELS)
    return (
        f"This code needs {package}, which is not installed.  Install it{kernels} where the check "
        "is run, or choose a way without it: an argument in --call, a setting with --set, or "
        "another class of the file."
    )


def _package(text: str) -> str:
    """Return a package that an error of the code names and that is not installed, or ""."""
    lower = text.replace("-", "_").lower()
    named = [found[1] for found in (_NO_MODULE.search(text), _PIP.search(text)) if found]
    named += [one for one in KERNELS if re.search(rf"\b{one}\b", lower)]
    return next((one for one in (n.replace("-", "_") for n in named) if not _is(one)), "")


@lru_cache(maxsize=64)
def _is(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _imported(file: str, name: str) -> list[str]:
    """Return the packages from which a file imports a name."""
    try:
        nodes = [*ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))]
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom | ast.Import):
            module = getattr(node, "module", None) or ""
            found += [
                (module or one.name).partition(".")[0]
                for one in node.names
                if name == (one.asname or one.name) and not getattr(node, "level", 0)
            ]
    return found


UNKNOWN = "?"
SUGGESTED = USUAL_ARGUMENTS | {
    "encoding": ": B n E encoding",
    "cos": ": n D cos",
    "sin": ": n D sin",
    "freqs": ": n D/2 angles",
    "rotated": " = D",
    "pair": " = (cos: n D, sin: n D)",
    "mask": ": B n keep",
    "padding": ": B n keep",
}
HEADS = {"query": ": B H r D", "key": ": B H n D", "value": ": B H n D", "mask": ": B 1 r n keep"}
PACKED = {"qkv": ": B n 3 H D", "kv": ": B n 2 H D"}
TOKENS_FIRST = {"query": ": B r H D", "mask": ": B 1 r n keep"}
ROTATED = {**dict.fromkeys(("query", "key", "value", "tokens"), ": B H n D"), "axis": ": n axis"}
TOKENS = dict.fromkeys(("query", "key", "value", "tokens"), ": B n E")
LETTERS = ("c", "s")  # cosines and sines only if both are there
RESULTS = {
    "attention": "B H r D",
    "bias": "H r n",
    "additive": "B n E",
    "mask": "r n keep",
    "layer": "B n E",
}


def suggested_call(call: Callable[..., Any], kind: str, *, projects: bool = False) -> str:
    """Return a line for the required parameters; "" if there are none or they cannot be read.

    ``projects``: it has weights, so that attention takes tokens, not heads.

    >>> def make_mask(seq_len, window, spread): ...
    >>> suggested_call(make_mask, "mask")
    'seq_len = n, window = 3, spread = ? -> n n keep'
    """
    try:
        needed = [one for one in parameters(call) if one.required]
    except DoesNotFit:
        return ""
    if not needed:
        return ""
    if {one.role for one in needed if one.name in LETTERS} in ({"cos"}, {"sin"}):
        needed = [replace(one, role="") if one.name in LETTERS else one for one in needed]
    roles = [one.role for one in needed]
    packed = {packed_as(one.name) for one in needed} - {""}
    heads = kind == "attention" and ({"query", "key", "value"} <= set(roles) or bool(packed))
    heads &= not projects
    own = ROTATED if kind == "rotary" else HEADS if heads else TOKENS
    own = TOKENS_FIRST if packed and heads else own
    first = _first_length(roles, kind)
    told = [_part(one, own, "r" if k == first else "") for k, one in enumerate(needed)]
    if kind == "rotary":
        rotated = [one for one in needed if one.role in ROTATED]
        back = ", ".join(one.name for one in rotated) or UNKNOWN
    else:
        last = "B n H D" if "qkv" in packed else "B r H D"
        back = (
            last
            if packed and heads
            else RESULTS["layer" if kind == "attention" and not heads else kind]
        )
        back = back if kind != "bias" or "heads" in roles else back.replace("H", UNKNOWN)
        back = back if kind != "mask" or first is not None else back.replace("r n", "n n")
    return f"{', '.join(told)} -> {back}"


def _first_length(roles: list[str], kind: str) -> int | None:
    """Return the index of the length that counts queries if keys have a length of their own."""
    lengths = [k for k, role in enumerate(roles) if role in ("length", "keys")]
    return lengths[0] if kind in ("bias", "mask") and len(lengths) > 1 else None


def _part(one: Parameter, own: Mapping[str, str], length: str) -> str:
    if length:
        return f"{one.name} = {length}"
    packed = own is not TOKENS and packed_as(one.name)
    said = PACKED.get(packed or "") or own.get(one.role) or SUGGESTED.get(one.role)
    if one.role == "freqs" and any(word in one.name for word in ("cis", "complex")):
        said = ": n D/2 cis"
    if said is None:
        said = " = False" if one.annotation in (bool, "bool") else f" = {UNKNOWN}"
    return f"{one.name}{said}"


CALLED: dict[str, tuple[str, str, str]] = {  # class, call as a lambda, sizes
    "rotary": ("Rotary", "rotate=lambda x, positions: {}(x, positions)", "width=64"),
    "attention": (
        "Attention",
        "attend=lambda q, k, v, mask: {}(q, k, v)",
        "heads=4, groups=4, width=8",
    ),
    "bias": ("Bias", "bias=lambda queries, keys: {}(queries, keys)", "heads=8"),
    "additive": ("Additive", "added=lambda x: {}(x)", "width=64"),
    "mask": ("Mask", "mask=lambda queries, keys: {}(queries, keys)", ""),
    "layer": ("Layer", "call=lambda x: {}(x)", "embed=64"),
}
TABLES = ("Rotary", "rotate=lambda x, positions: FUNCTION(x, *{}(x, positions))", "width=64")
CALLS = {
    "rotary": "q: B H n D, k: B H n D, cos: n D, sin: n D -> q, k",
    "attention": "q: B H r D, k: B G n D, v: B G n D, mask: B 1 r n keep -> B H r D",
    "bias": "queries = r, keys = n -> H r n",
    "additive": "x: B n E -> B n E",
    "mask": "queries = r, keys = n -> r n keep",
    "layer": "x: B n E -> B n E",
}
BUILDING = "building it"
SETTING = re.compile(r"give settings=\{'([\w.]+)': \.\.\}")
APPLYING = re.compile(r"in the whole --call '([^']*)'")  # of code that makes tables
IN_PYTHON = re.compile(r"; give (arguments|settings)=\{[^}]*\}(, or a factory without arguments)?")
GIVE_SET = r"give --set \1=.."
LONG = 40  # longer names are abbreviated in examples


class NoAdapter(TypeError):
    """No adapter fits; ``tried`` holds the reason for each adapter.

    ``str`` of it advises callers from Python; ``on_command_line`` is the same text for users of the
    command line.  ``kind``: the kind asked for or nearest, "" if unknown.  ``line``: how the code
    may be called, made from its own parameters, with ``?`` for what is not known.  ``lacks``: what
    to do about what is missing at run time, if ``tried`` does not say it.
    """

    def __init__(
        self,
        name: str,
        place: str,
        tried: Mapping[str, str],
        kind: str = "",
        *,
        asked: bool = False,
        line: str = "",
        lacks: str = "",
        built: bool = False,
    ) -> None:
        self.name = name
        self.tried = dict(tried)
        alike: dict[str, list[str]] = {}  # adapters by error: code may fail the same way for all
        for one, why in tried.items():
            alike.setdefault(why.rpartition("): ")[2], []).append(one)
        lines = "\n".join(
            f"  {', '.join(kinds)}: {tried[kinds[0]] if len(kinds) == 1 else why}"
            for why, kinds in alike.items()
        )
        lacks = lacks or next(filter(None, map(advice, tried.values())), "")
        device = f"\n{lacks}" * bool(lacks)
        told = f"no adapter fits {name}{f' ({place})' if place else ''}.  Tried:\n{lines}{device}\n"
        applying = APPLYING.search(tried.get("rotary", ""))
        kind = "tables" if applying is not None else kind or "rotary"
        example = _built(name) if BUILDING in tried else _called(name, kind, built=built)
        open_ = not asked and BUILDING not in tried
        call = applying[1] if applying is not None else line or CALLS[kind]
        open_part = ", with its meaning in place of each ?" * (UNKNOWN in line)
        super().__init__(
            f"{told}Say {'what it is (kind=..), or ' * open_}how it is called, in axis letters "
            f"such as call={call!r}{open_part}; what sizes it has: width=.., heads=.., "
            f"embed=..; what it must be given: arguments={{..}}, settings={{..}}; or give what "
            f"such a function returns:\n"
            f"{example}"
        )
        ways = [f"what it is (--as {'|'.join(CALLED)})"] * open_
        ways += [f"how it is called (--call '{call}'{open_part})"] * (BUILDING not in tried)
        first = f"Say {', or '.join(ways)}, or write" if ways else "Write"
        self.on_command_line = (
            f"{IN_PYTHON.sub('', SETTING.sub(GIVE_SET, told))}"
            f"{first} in the file how it is called, and check "
            f"FILE.py::subject:\n{example}"
        )


def _called(name: str, kind: str, *, built: bool) -> str:
    """Return the source of a ``subject`` function that wraps code of that kind."""
    cls, call, sizes = TABLES if kind == "tables" else CALLED[kind]
    name = name if name.isidentifier() and len(name) < LONG else "my_code"
    called = "made" if built else name
    lines = ['name="mine"', call.format(called), *["module=made"] * built, *filter(None, [sizes])]
    inner = "".join(f"        {line},\n" for line in lines)
    first = ["from attnproof.programs import subjects"]  # code may have a name of its classes
    first += [f"made = {name}(..)  # with all that it must be given"] * built
    before = "".join(f"    {line}\n" for line in first)
    return f"def subject():\n{before}    return subjects.{cls}(\n{inner}    )"


def _built(name: str) -> str:
    """Return the source of a ``subject`` function that builds what could not be built."""
    return f"def subject():\n    return {name}(..)  # with all that it must be given"
