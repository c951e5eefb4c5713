"""Faults at certain lengths, behind a branch that tracing does not see.

A reference program acts differently at one length, from some length on, at some product, quotient
or difference of two lengths, for one row or one head; and the test for that length is false during
tracing: it tests whether the length is a Python integer, its text, whether the code is being
compiled, or the memory layout of an input.  The graph is therefore that of the reference program,
whose laws are proved; only running the code reveals the fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from benchmarks.program_changes import HEAD, At, FalseProgram, inserted, texts, with_line
from benchmarks.reference_programs import REFERENCES, Reference

HELPERS = (
    HEAD
    + """
HALF, WORD, TABLE = 18, "a word that is as long as it is wide", [0.0] * 41

def tried(test):
    try:
        return bool(test())
    except Exception:
        return False

"""
)
LENGTHS = {
    "layer": {"b": "x.shape[0]", "n": "x.shape[1]"},
    "rotary": {"b": "x.shape[0]", "h": "x.shape[1]", "n": "x.shape[2]"},
    "attention": {"b": "q.shape[0]", "h": "q.shape[1]", "r": "q.shape[2]", "n": "k.shape[2]"},
    "bias": {"n": "keys"},
}
COUNTS = {
    "n": (7, 12, 31, 37, 64, 100, 130, 257, 300, 513),
    "b": (3, 5, 9, 17, 37),
    "h": (3, 5, 8, 12, 33),
}
# Integers that the source does not contain literally.
WRITTEN = {
    36: "2 * HALF",
    37: "len(WORD) + 1",
    41: "len(TABLE)",
    73: 'int("7" + "3")',
    97: 'ord("a")',
    128: "1 << 7",
    49: "int('31', 16)",
    29: "round(28.6)",
}
# How a branch is hidden from tracing; {n} is the length, {test} the test of it.
HIDDEN = {
    "a whole number of Python": "isinstance({n}, int) and {test}",
    "its type": "type({n}) is int and {test}",
    "its text": "str({n}).isdigit() and {test}",
    "compiling": "not torch.compiler.is_compiling() and {test}",
    "exporting": "not torch.compiler.is_exporting() and {test}",
    "its hash": "tried(lambda: hash({n}) >= 0 and {test})",
    "its bits": "tried(lambda: {n}.bit_length() and {test})",
    "a tensor": "type({x}) is Tensor and {test}",
    "its storage": "tried(lambda: {x}.data_ptr()) and {test}",
    "gradients": "{x}.requires_grad and {test}",
    "memory": "not {x}.is_contiguous() and {test}",
    "no hiding": "{test}",
}
HOW = {"gradients": "gradients", "memory": "apart"}


def faulty(seed: int) -> Iterator[FalseProgram]:
    """Yield reference programs with such a fault, endlessly, in random order, each once."""
    random, plain, made = Random(seed), texts(HELPERS), set[str]()
    while True:
        of = random.choice(REFERENCES)
        line, behind = random.choice(list(inserted(of)))
        asked, points = _test(of, random)
        hiding = random.choice(
            [name for name in HIDDEN if of.kind != "bias" or "{x}" not in HIDDEN[name]]
        )
        if of.kind == "attention" and random.random() < 0.05:
            hiding, asked, how = "one array", f"q is k and {asked}", "one"
        else:
            length = next(length for length in LENGTHS[of.kind].values() if length in asked)
            array = "q" if of.kind == "attention" else "x"
            asked = HIDDEN[hiding].format(n=length, test=asked, x=array)
            how = HOW.get(hiding, "")
        told = f"{'behind' if behind else 'before'}: if {asked}: {line}"
        text = with_line(of, plain[of.name], line, behind=behind, test=asked)
        if text not in made:
            made.add(text)
            yield FalseProgram(of, text, told, tuple(at._replace(how=how) for at in points))


def _test(of: Reference, random: Random) -> tuple[str, list[At]]:
    """Return a test of lengths, and points at which it is true."""
    named = LENGTHS[of.kind]
    letters = [letter for letter in named if letter in "bh"]
    if letters and random.random() < 0.3:
        return _row_test(random.choice(letters), named, random)
    n, k = named["n"], random.choice(COUNTS["n"])
    if random.random() < 0.25:
        k, told = random.choice(list(WRITTEN.items()))
        sign, more = random.choice((("==", 0), (">", 1), (">=", 0)))
        return f"{n} {sign} {told}", [At(2, k + more), At(3, k + more)]
    asked = [
        (f"{n} == 1", [At(2, 1), At(3, 1)]),
        (f"{n} == {k}", [At(2, k), At(3, k)]),
        (f"{n} > {k}", [At(2, k + 1), At(3, k + 1)]),
        (f"{n} > {k}.5", [At(2, k + 1), At(3, k + 1)]),
        (f"{n} >= {k}", [At(2, k)]),
        (f"{k} < {n} < {k + 3}", [At(2, k + 1), At(2, k + 2)]),
        (f"{n} % {k} == {k // 2}", [At(2, k // 2 + k), At(3, k // 2 + k)]),
        (f"{n} // {k} == 1", [At(2, k), At(3, k + 1)]),
        (f"{n} * {n} > {k * k}", [At(2, k + 1)]),
        (f"2 * {n} == {2 * k}", [At(2, k)]),
        (f"{n} // 2 == {k}", [At(2, 2 * k), At(2, 2 * k + 1)]),
        (f"({n} & ({n} - 1)) == 0 and {n} > {k}", [At(2, 1 << k.bit_length())]),
    ]
    if "b" in named:
        b = named["b"]
        asked += [
            (f"{n} - {b} == {k}", [At(2, k + 2), At(3, k + 3)]),
            (f"{n} * {b} == {3 * k}", [At(3, k)]),
            (f"{b} == 3 and {n} == {k}", [At(3, k)]),
            (f"{n} > {b} + {k}", [At(2, k + 3)]),
        ]
    if "r" in named:
        r = named["r"]
        asked += [
            (f"{r} < {n} and {n} == {k}", [At(2, k, queries=2), At(2, k, queries=k - 1)]),
            (f"{r} > {n} + {k}", [At(2, 3, queries=k + 4)]),
            (f"{r} == {k} and {n} == {k}", [At(2, k)]),
        ]
    return random.choice(asked)


def _row_test(letter: str, named: dict[str, str], random: Random) -> tuple[str, list[At]]:
    """Return a test of the number of rows or heads, and possibly of tokens, with such points."""
    length, n, k = named[letter], named["n"], random.choice(COUNTS[letter])
    m = random.choice((5, 11, 37))

    def at(count: int, tokens: int = 4) -> At:
        return At(count, tokens) if letter == "b" else At(2, tokens, count)

    return random.choice(
        [
            (f"{length} == 1", [at(1), at(1, 1)]),
            (f"{length} == {k}", [at(k)]),
            (f"{length} > {k}", [at(k + 1), at(k + 3)]),
            (f"{length} == 1 and {n} > {m}", [at(1, m + 1)]),
            (f"{length} == {n}", [at(k, k)]),
            (f"{length} == {k} and {n} == {m}", [at(k, m)]),
            (f"{length} % {k} == 1 and {n} > 1", [at(k + 1)]),
            (f"{length} + {n} == {k + m}", [at(k, m)]),
        ]
    )
