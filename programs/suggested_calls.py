"""A line to correct for code that nothing fits: its own parameters, with what their names say.

What no name says is ``?``, which is to be replaced before the line is passed back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .code import DoesNotFit
from .names import Parameter, parameters

UNKNOWN = "?"
PLAIN = {
    "length": " = n",
    "keys": " = n",
    "heads": " = H",
    "groups": " = G",
    "width": " = D",
    "embed": " = E",
    "rows": " = B",
    "offset": " = p",
    "base": " = 10000.0",
    "causal": " = False",
    "dropout": " = 0.0",
    "device": ' = "cpu"',
    "dtype": " = torch.float32",
    "window": " = 3",
    "scale": ": scale",
    "positions": ": B n positions",
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
ROTATED = dict.fromkeys(("query", "key", "value", "tokens"), ": B H n D")
TOKENS = dict.fromkeys(("query", "key", "value", "tokens"), ": B n E")
RESULTS = {
    "attention": "B H r D",
    "bias": "H r n",
    "additive": "B n E",
    "mask": "r n keep",
    "layer": "B n E",
}


def suggested(call: Callable[..., Any], kind: str) -> str:
    """A line of the signature language for the parameters that must be given; "" if none are known.

    >>> def make_mask(seq_len, window, spread): ...
    >>> suggested(make_mask, "mask")
    'seq_len = n, window = 3, spread = ? -> n n keep'
    """
    try:
        needed = [one for one in parameters(call) if one.required]
    except DoesNotFit:
        return ""
    if not needed:
        return ""
    roles = [one.role for one in needed]
    heads = kind == "attention" and {"query", "key", "value"} <= set(roles)
    own = ROTATED if kind == "rotary" else HEADS if heads else TOKENS
    first = _first_length(roles, kind)
    told = [_part(one, own, "r" if k == first else "") for k, one in enumerate(needed)]
    if kind == "rotary":
        rotated = [one for one in needed if one.role in ROTATED]
        back = ", ".join(one.name for one in rotated) or UNKNOWN
    else:
        back = RESULTS["layer" if kind == "attention" and not heads else kind]
        back = back if kind != "bias" or "heads" in roles else back.replace("H", UNKNOWN)
        back = back if kind != "mask" or first is not None else back.replace("r n", "n n")
    return f"{', '.join(told)} -> {back}"


def _first_length(roles: list[str], kind: str) -> int | None:
    """The place of the length that counts queries, where keys have a length of their own."""
    lengths = [k for k, role in enumerate(roles) if role in ("length", "keys")]
    return lengths[0] if kind in ("bias", "mask") and len(lengths) > 1 else None


def _part(one: Parameter, own: Mapping[str, str], length: str) -> str:
    if length:
        return f"{one.name} = {length}"
    said = own.get(one.role) or PLAIN.get(one.role)
    if one.role == "freqs" and any(word in one.name for word in ("cis", "complex")):
        said = ": n D/2 cis"
    if said is None:
        said = " = False" if one.annotation in (bool, "bool") else f" = {UNKNOWN}"
    return f"{one.name}{said}"
