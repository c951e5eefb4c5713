"""Which law compares what is declared: what is declared and was not compared must be told."""

from __future__ import annotations

from .declared import parse

__all__ = ["laws_declared"]

LADDER = ("base", "frequencies", "scaling", "factor", "original", "low", "high", "fast", "slow")
LAWS: dict[str, dict[str, str]] = {
    "rope": dict.fromkeys(LADDER, "frequencies-as-declared")
    | {"layout": "layout-as-declared", "width": "width-as-declared",
       "length": "length-as-declared"},
    "attention": {"scale": "scale-as-declared", "causal": "causal",
                  "window": "window-as-declared", "hidden_row": "hidden-rows",
                  "alignment": "alignment", "groups": "groups-of-heads"},
    "bias": {"name": "slopes-as-declared", "slopes": "slopes-as-declared",
             "heads": "slopes-as-declared", "buckets": "buckets-as-declared",
             "distance": "buckets-as-declared", "bidirectional": "buckets-as-declared"},
    "sinusoidal": dict.fromkeys(("base", "frequencies", "layout"), "frequencies-as-declared"),
}  # fmt: skip
LAWS["mask"] = LAWS["attention"]


def laws_declared(text: str, kind: str) -> dict[str, tuple[str, ...]]:
    """The law that compares each thing that is declared, and what it compares, as it was written.

    The law may be one of another kind of code: then nothing compares it here.  ``format`` and
    ``positions`` say how the others are meant, and are compared by none.

    >>> laws_declared("attention:causal,scale=0.125", "attention")
    {'causal': ('causal',), 'scale-as-declared': ('scale=0.125',)}
    """
    if not text:
        return {}
    name, _, rest = text.partition(":")
    said = parse(text)
    found: dict[str, list[str]] = {}
    for part in filter(None, (p.strip() for p in rest.split(","))):
        key = part.partition("=")[0]
        law = LAWS[name].get(key)
        if key == "causal" and getattr(said, key) is False:
            law = "permutation" if kind == "layer" else "past-is-used"
        elif key == "hidden_row" and getattr(said, key) == "any":
            law = None
        elif name == "bias" and key in ("name", "heads") and (
            getattr(said, "name", "") == "t5" or getattr(said, "buckets", None)
        ):
            law = "buckets-as-declared"
        if law is not None:
            found.setdefault(law, []).append(part)
    return {law: tuple(parts) for law, parts in found.items()}
