"""Drawings of a record as SVG: one tile a theorem, and what a theorem uses and is used by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

WIDE, HIGH, STEP = 13, 22, 18  # of a tile, and from one to the next
ROW, LETTER, PAD, GAP = 30, 7.4, 9, 54  # of the graph: a row, a letter, a margin, between columns
FALSE = ("refuted", "ill-typed")


@dataclass(frozen=True)
class Tile:
    """A theorem in the picture: where it leads, its title, its verdict, what the evidence says."""

    href: str
    title: str
    word: str
    states: tuple[str, ...]


def tiles(held: Sequence[Tile], title: str) -> Markup:
    """The theorems of one subject, a tile each, in one row."""
    wide = STEP * len(held)
    count = f"{len(held)} theorem{'' if len(held) == 1 else 's'}"
    drawn = "".join(
        f'<a href="{escape(tile.href)}"><title>{escape(f"{tile.word}: {tile.title}")}</title>'
        f'<g transform="translate({STEP * place} 0)" class="{escape(tile.word)}">'
        f"{_inside(tile.word, tile.states)}</g></a>"
        for place, tile in enumerate(held)
    )
    return Markup(
        f'<svg class="tiles" viewBox="0 0 {wide} {HIGH}" width="{wide}" height="{HIGH}" '
        f'role="group" aria-label="{escape(f"{title}: {count}")}">{drawn}</svg>'
    )


def drawn_tile(word: str) -> Markup:
    """One tile by itself, twice as large, for a legend."""
    inside = _inside(word, ("for",) * 4 if word != "wrong" else ("against", "for", "none", "none"))
    return Markup(
        f'<svg class="tiles" viewBox="0 0 {WIDE} {HIGH}" width="{2 * WIDE}" height="{2 * HIGH}" '
        f'aria-hidden="true"><g class="{word}">{inside}</g></svg>'
    )


def _inside(word: str, states: Sequence[str]) -> str:
    """A block for the verdict, with a mark that needs no colour, and a bar for each other kind."""
    mark = ""
    if word in FALSE:
        mark = '<path d="M3.5 2l6 6m0-6l-6 6"/>'
    elif word == "wrong":
        mark = '<path d="M6.5 1.5v4.4m0 1.3v1.4"/>'
    bars = "".join(
        f'<rect class="{state}" x="0.5" y="{11.5 + 4 * k:g}" width="{WIDE - 1}" height="2"/>'
        for k, state in enumerate(states[1:])
    )
    return f'<rect x="0" y="0" width="{WIDE}" height="10"/>{mark}{bars}'


@dataclass(frozen=True)
class Node:
    """A box with a word in it."""

    name: str
    href: str
    x: float
    y: float
    wide: float
    kind: str


def uses_drawn(
    name: str,
    uses: Mapping[str, Sequence[str]],
    direct: Sequence[str],
    places: Mapping[str, str],
    claims: Mapping[str, str],
    root: str = "",
) -> Markup:
    """A theorem between the definitions it names, those inside them, and what rests on it.

    ``uses`` has for each definition those inside it; an arrow leads to what uses.
    """
    if not uses and not claims:
        return Markup("")
    depth: dict[str, int] = {}
    for word in uses:
        _depth(word, uses, depth)
    deepest = max(depth.values(), default=-1)
    columns: list[list[tuple[str, str, str]]] = [[] for _ in range(deepest + 1)]
    for word in uses:
        columns[depth[word]].append((word, root + places[word], "definition"))
    columns.append([(name, "", "this")])
    if claims:
        columns.append([(claim, root + href, "claim") for claim, href in claims.items()])
    high = ROW * max(map(len, columns)) + 4
    nodes: dict[tuple[str, str], Node] = {}
    x = 2.0
    for column in columns:
        wide = max(LETTER * len(word) for word, _, _ in column) + 2 * PAD
        top = (high - ROW * len(column)) / 2
        for place, (word, href, kind) in enumerate(sorted(column, key=lambda c: c[2] == "this")):
            nodes[kind, word] = Node(word, href, x, top + ROW * place + 4, wide, kind)
        x += wide + GAP
    this = nodes["this", name]
    pairs = [(nodes["definition", a], nodes["definition", b]) for b in uses for a in uses[b]]
    pairs += [(nodes["definition", word], this) for word in direct]
    pairs += [(this, nodes["claim", claim]) for claim in claims]
    told = f"It uses {', '.join(direct) or 'no definition'}; "
    told += f"on it rest {', '.join(claims)}." if claims else "no claim rests on it."
    wide = x - GAP + 2
    return Markup(
        f'<svg class="graph" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        f'role="img"><title>{escape(told)}</title>'
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L6 3L0 6z"/></marker></defs>'
        f"{''.join(_arrow(a, b) for a, b in pairs)}{''.join(map(_box, nodes.values()))}</svg>"
    )


def _depth(word: str, uses: Mapping[str, Sequence[str]], found: dict[str, int]) -> int:
    """How many definitions stand inside one another there; one inside itself counts once."""
    if word not in found:
        found[word] = 0
        inner = [_depth(part, uses, found) for part in uses[word]]
        found[word] = 1 + max(inner) if inner else 0
    return found[word]


def _arrow(a: Node, b: Node) -> str:
    x, y, to, down = a.x + a.wide, a.y + 11, b.x - 1, b.y + 11
    bend = (to - x) / 2
    return (
        f'<path class="arrow" marker-end="url(#tip)" '
        f'd="M{x:g} {y:g}C{x + bend:g} {y:g} {to - bend:g} {down:g} {to:g} {down:g}"/>'
    )


def _box(node: Node) -> str:
    box = (
        f'<rect class="{node.kind}" x="{node.x:g}" y="{node.y:g}" width="{node.wide:g}" '
        f'height="22" rx="3"/><text x="{node.x + node.wide / 2:g}" y="{node.y + 15:g}" '
        f'text-anchor="middle">{escape(node.name)}</text>'
    )
    return f'<a href="{escape(node.href)}">{box}</a>' if node.href else box
