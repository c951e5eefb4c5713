"""The error for code that no adapter fits: what was tried, and what to write down instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .missing_packages import advice
from .suggested_calls import UNKNOWN

CALLED: dict[str, tuple[str, str, str]] = {  # the class, the call as a lambda, and its sizes
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
CALLS = {
    "rotary": "q: B H n D, k: B H n D, cos: n D, sin: n D -> q, k",
    "attention": "q: B H r D, k: B G n D, v: B G n D, mask: B 1 r n keep -> B H r D",
    "bias": "queries = r, keys = n -> H r n",
    "additive": "x: B n E -> B n E",
    "mask": "queries = r, keys = n -> r n keep",
    "layer": "x: B n E -> B n E",
}
BUILDING = "building it"
SETTING = re.compile(r"give settings=\{'(\w+)': \.\.\}")
IN_PYTHON = re.compile(r"; give (arguments|settings)=\{[^}]*\}(, or a factory without arguments)?")
GIVEN = r"give --set \1=.."
LONG = 40  # letters of a name that an example still shows


class NoAdapter(TypeError):
    """No adapter fits; ``tried`` says of each why not.

    ``str`` of it advises one who called from Python; ``on_command_line`` is the same text for one
    who has ``--as`` and a file.  ``kind``: what was asked for, or is nearest, "" if unknown.
    ``line``: how it may be called, made from its own parameters, with ``?`` for what is not known.
    ``lacks``: what to do about what it misses where it is run, if that is not in what was tried.
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
    ) -> None:
        self.name = name
        self.tried = dict(tried)
        alike: dict[str, list[str]] = {}  # code that always raises does it for every adapter
        for one, why in tried.items():
            alike.setdefault(why.rpartition("): ")[2], []).append(one)
        lines = "\n".join(
            f"  {', '.join(kinds)}: {tried[kinds[0]] if len(kinds) == 1 else why}"
            for why, kinds in alike.items()
        )
        lacks = lacks or next(filter(None, map(advice, tried.values())), "")
        device = f"\n{lacks}" * bool(lacks)
        told = f"no adapter fits {name}{f' ({place})' if place else ''}.  Tried:\n{lines}{device}\n"
        example = _built(name) if BUILDING in tried else _called(name, kind or "rotary")
        open_ = not asked and BUILDING not in tried
        call = line or CALLS[kind or "rotary"]
        open_part = ", with what it is for each ?" * (UNKNOWN in line)
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
            f"{IN_PYTHON.sub('', SETTING.sub(GIVEN, told))}"
            f"{first} in the file how it is called, and check "
            f"FILE.py::subject:\n{example}"
        )


def _called(name: str, kind: str) -> str:
    """A function that returns how code of that kind is called."""
    cls, call, sizes = CALLED[kind]
    short = name.isidentifier() and len(name) < LONG
    lines = ['name="mine"', call.format(name if short else "my_code"), *filter(None, [sizes])]
    inner = "".join(f"        {line},\n" for line in lines)
    imported = f"from attnproof.programs.subjects import {cls}"
    return f"def subject():\n    {imported}\n    return {cls}(\n{inner}    )"


def _built(name: str) -> str:
    """A function that builds what could not be built."""
    return f"def subject():\n    return {name}(..)  # with all that it must be given"
