"""To depend on n − m only is to be unchanged when m and n move together."""

from attnproof.symbolic import Array, Claim, equal, for_all, function, natural, theorem
from attnproof.symbolic.claim import Law
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.hypotheses import nothing

POSITIONS = {"m": natural(), "n": natural()}


def by_offset(S: Function, g: Function) -> Law:
    """S(m, n) = g(n − m)."""
    return for_all(POSITIONS, lambda m, n: equal(S(m, n), g(n - m)))


def unmoved(T: Function) -> Law:
    """T(m + s, n + s) = T(m, n)."""
    return for_all({**POSITIONS, "s": natural()}, lambda m, n, s: equal(T(m + s, n + s), T(m, n)))


@theorem(
    "S(m, n) depends on n − m only if and only if S(m + s, n + s) = S(m, n)",
    given={
        "S": function(0, 0, says="a score that is a function of the offset"), "g": function(0),
        "T": function(0, 0, says="a score that no common shift changes"),
        "m": natural(), "n": natural(), "s": natural(), "k": natural(),
    },
    sources=("document 004, the constraint",),
    claims=("R19",),
    assume=lambda S, g, T: [by_offset(S, g), unmoved(T)],
)  # fmt: skip
def statement(
    S: Function, g: Function, T: Function, m: Array, n: Array, s: Array, k: Array
) -> dict[str, Claim]:
    """A shift-invariant T at offset k is T(0, k), at offset −k it is T(k, 0), wherever it is."""
    law, shift = by_offset(S, g), unmoved(T)
    return {
        "a function of the offset does not move": equal(S(m + s, n + s), S(m, n)).with_facts(
            law.at(m=m + s, n=n + s), law.at(m=m, n=n)
        ),
        "what does not move is its value at offset k": equal(T(m, m + k), T(0, k)).with_facts(
            shift.at(m=0, n=k, s=m)
        ),
        "and at offset −k": equal(T(m + k, m), T(k, 0)).with_facts(shift.at(m=k, n=0, s=m)),
    }


@statement.twin_of("the score depends on the sum of the positions", assume=nothing)
def by_the_sum(g: Function, m: Array, n: Array, s: Array) -> Claim:
    return equal(g((m + s) + (n + s)), g(m + n))
