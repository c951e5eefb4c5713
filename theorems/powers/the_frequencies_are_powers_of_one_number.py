"""θ = ω^{−2/d}: its natural powers are the frequencies of the sinusoidal encoding."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    equal,
    for_all,
    greater,
    natural,
    positive,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.powers import number_power

(B,) = sizes("B", "blocks")


@theorem(
    "θ = ω^{−2/d} gives θ^k = ω^{−2k/d}, θ^{d/2} = 1/ω, and θ^{d/2−1} > 1/ω for ω > 1",
    given={"log_omega": positive(), "k": natural()},
    sources=("Ganev, Example 3.6, with ω = 10000",),
    claims=("G3.6e",),
)
def statement(log_omega: Array, k: Array) -> dict[str, Claim | Law]:
    """d = 2B, and ω^x is exp(x log ω), with log ω > 0.  The frequencies are θ^0, .., θ^{B−1}.

    They fall, so that the last is the smallest.
    """
    xp = array_namespace(log_omega)
    theta = xp.exp(-log_omega / B)
    base = xp.exp(log_omega)
    law = for_all(
        {"k": natural()},
        lambda k: equal(number_power(theta, k), xp.exp(-k * log_omega / B)).by_induction(k),
    )
    return {
        "powers": law,
        "each is smaller than the one before": greater(
            number_power(theta, k), number_power(theta, k + 1),
            ("θ^k = θ^{k+1}/θ", xp.exp(-(k + 1) * log_omega / B) * (xp.exp(log_omega / B) - 1)),
        ).with_facts(law.at(k=k), law.at(k=k + 1)),
        "the power d/2": equal(number_power(theta, B) * base, 1).with_facts(law.at(k=B)),
        "the last frequency": greater(
            number_power(theta, B - 1), 1 / base,
            ("θ^{B−1} = 1/(ω θ)", (xp.exp(log_omega / B) - 1) / base),
        ).with_facts(law.at(k=B - 1)),
    }  # fmt: skip


@statement.twin_of("the last frequency is 1/ω")
def last_is_smallest(log_omega: Array) -> Claim:
    xp = array_namespace(log_omega)
    return equal(number_power(xp.exp(-log_omega / 2), 1), xp.exp(-log_omega))
