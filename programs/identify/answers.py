"""Plain answers to what people ask of rotary code."""

from __future__ import annotations

from collections.abc import Sequence

from .turned import Blocks, layout_name, table_pairs

__all__ = ["about_rotate_half"]


def about_rotate_half(
    blocks: Sequence[Blocks], pairs: Sequence[tuple[int, int]], noise: float
) -> tuple[str, str]:
    """Is my rotate_half right?  The answer, and what is broken ("" if nothing is).

    It is right where the two channels that the rotation mixes have one angle in the table, and
    one of the two sines a minus sign.  Either layout is right with its own table.
    """
    name = layout_name(pairs)
    i, j = pairs[min(1, len(pairs) - 1)]
    worst = max(float(one.away.max()) for one in blocks)
    if worst <= 4 * noise:
        by = {"half-split": f"channel i with i + {j - i}", "interleaved": "neighbours"}
        if name not in by:
            return f"the rotation is right: it and the table have the same pairs, {name}", ""
        return (f"rotate_half is right for {name} layout: the table pairs {by[name]} and so does "
                "the rotation"), ""  # fmt: skip
    if any(one.mirrored() for one in blocks):
        told = "no minus sign stands before one of the two sines, so that pairs are not turned"
        return f"no: {told}: the relative law fails", told
    bad = max(blocks, key=lambda one: float(one.away.max()))
    table = table_pairs(bad, pairs)
    if table is not None and table != list(pairs):
        told = (f"the table is {layout_name(table)} and the rotation pairs "
                f"{_said(name, i, j)}")  # fmt: skip
        return f"no: {told}: the relative law fails", told
    told = (f"channels {i} and {j} are mixed and do not turn into each other: they end {worst:.2g} "
            "of their length away")  # fmt: skip
    return f"no: {told}: the relative law fails", told


def _said(name: str, i: int, j: int) -> str:
    return {"interleaved": "neighbours", "half-split": f"channel i with i + {j - i}"}.get(
        name, name
    )
