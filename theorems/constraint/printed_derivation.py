"""The derivation of the rotary encoding: the false lines of its printed form, and how it holds."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    angle,
    chain,
    equal,
    exists,
    for_all,
    function,
    natural,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import no_hypotheses
from attnproof.theorems.definitions.rotary import conjugate, modulus, product, real_number, unit

(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")


@theorem(
    "The derivation of the rotary encoding, line by line as printed",
    given={
        "x": real(2),
        "y": real(2),
        "Z": real(B, 2),
        "m": natural(),
        "n": natural(),
        "theta": angle(),
        "phase_x": angle(),
        "phase_y": angle(),
    },
    expected="refuted",
    sources=("document 004, derivation of the rotary encoding",),
    claims=("R17b", "R18", "R20", "R20b", "R21", "R22"),
)
def the_printed_rotary_derivation_has_false_lines(
    x: Array, y: Array, Z: Array, m: Array, n: Array, theta: Array, phase_x: Array, phase_y: Array
) -> dict[str, Claim]:
    """Each of them is false for f(x, m) = x e^{imθ}, whose phase is Θ(x) + mθ."""
    xp = array_namespace(x)
    offset_one = (phase_x + m * theta) - (phase_y + (m + 1) * theta)
    return {
        "one polar form for all pairs": exists(
            real(2), "P", lambda P: equal(Z, xp.ones((B, 1)) * P)
        ),
        "the key at the position of the query": equal(
            product(y, unit(m * theta)), product(y, unit(n * theta))
        ),
        "the increment of the phase": equal(
            (m + 1) * theta - m * theta, offset_one + phase_x - phase_y
        ),
        "the offset for m = n + 1": equal(n - (n + 1), 1),
        "the phase does not move": equal((m + 1) * theta, m * theta),
        "the modulus equals the vector": equal(Z[:, 0], modulus(real_number(Z[:, 0]))),
        "the modulus at offset 0 is the product": equal(
            product(x, y), real_number(modulus(x) * modulus(y))
        ),
    }


@the_printed_rotary_derivation_has_false_lines.negative_control(
    "the increment has the sign of its own previous line"
)
def increment(m: Array, theta: Array, phase_x: Array, phase_y: Array) -> dict[str, Claim]:
    offset_one = (phase_x + m * theta) - (phase_y + (m + 1) * theta)
    return {
        "the increment": equal((m + 1) * theta - m * theta, phase_x - phase_y - offset_one),
        "the offset for n = m + 1": equal((m + 1) - m, 1),
    }


def norm(x: Array) -> Array:
    """√(x·x)."""
    return (x @ x) ** 0.5


def unit_vector(x: Array) -> Array:
    """The complex number 1."""
    number: Array = real_number(array_namespace(x).ones(()))
    return number


def moduli(f: Function) -> Law:
    """‖f(x, m)‖ ‖f(y, m)‖ = ‖x‖ ‖y‖: what the constraint says of moduli at offset 0."""
    return for_all(
        {"x": real(d), "y": real(d), "m": natural()},
        lambda x, y, m: equal(norm(f(x, m)) * norm(f(y, m)), norm(x) * norm(y)),
    )


def phases(Theta: Function, gap: Function) -> Law:
    """Θ(x, m) − Θ(y, n) is a function of n − m."""
    return for_all(
        {"x": real(d), "y": real(d), "m": natural(), "n": natural()},
        lambda x, y, m, n: equal(Theta(x, m), Theta(y, n) + gap(x, y, n - m)),
    )


def points(u: Function, G: Function) -> list[Law]:
    """Phases as points u(x, m) of the unit circle: u(x, m) conj u(y, m) is the same for all m."""
    return [
        for_all(
            {"x": real(d), "m": natural()},
            lambda x, m: equal(product(u(x, m), conjugate(u(x, m))), unit_vector(x)),
        ),
        for_all(
            {"x": real(d), "y": real(d), "m": natural()},
            lambda x, y, m: equal(product(u(x, m), conjugate(u(y, m))), G(x, y)),
        ),
    ]


@theorem(
    "Equal moduli and additive phases: ‖f(x, m)‖ = ‖x‖ and Θ(x, m) = Θ(x, 0) + mθ",
    given={
        "f": function(1, 0, out=(d,)),
        "Theta": function(1, 0, says="a phase, as a real number"),
        "gap": function(1, 1, 0),
        "u": function(1, 0, out=(2,), says="a phase, as a point"),
        "G": function(1, 1, out=(2,)),
        "x": real(d),
        "y": real(d),
        "m": natural(),
    },
    sources=("document 004, derivation of the rotary encoding",),
    claims=("R20", "R21", "R22", "R22b", "R38"),
    assume=lambda f, Theta, gap, u, G: [moduli(f), phases(Theta, gap), *points(u, G)],
)
def the_rotary_derivation_holds_once_mended(
    f: Function,
    Theta: Function,
    gap: Function,
    u: Function,
    G: Function,
    x: Array,
    y: Array,
    m: Array,
) -> dict[str, Claim | Law]:
    """φ(m) = Θ(x, m) − Θ(x, 0) is the same for every token x, and grows by θ per step."""
    same_modulus, same_gap = moduli(f), phases(Theta, gap)
    on_circle, same_ratio = points(u, G)
    theta = Theta(x, 1) - Theta(x, 0)
    step = for_all(
        {"x": real(d), "m": natural()},
        lambda x, m: equal(Theta(x, m + 1), Theta(x, m) + Theta(x, 1) - Theta(x, 0)).with_facts(
            same_gap.at(x=x, y=x, m=m, n=m + 1), same_gap.at(x=x, y=x, m=0, n=1)
        ),
    )
    rotate, other = product(u(x, m), conjugate(u(x, 0))), product(u(y, m), conjugate(u(y, 0)))
    rest = product(u(y, m), conjugate(u(x, 0)))
    return {
        "the modulus squared": equal(norm(f(x, m)) ** 2, norm(x) ** 2).with_facts(
            same_modulus.at(x=x, y=x, m=m)
        ),
        "the modulus is ‖x‖": chain(
            norm(f(x, m)),
            ("a number at least 0 is the root of its square", (norm(f(x, m)) ** 2) ** 0.5),
            ("the modulus squared", (norm(x) ** 2) ** 0.5),
            ("a number at least 0 is the root of its square", norm(x)),
        ).with_facts(same_modulus.at(x=x, y=x, m=m)),
        "φ is the same for every token": equal(
            Theta(x, m) - Theta(x, 0), Theta(y, m) - Theta(y, 0)
        ).with_facts(same_gap.at(x=x, y=y, m=m, n=m), same_gap.at(x=x, y=y, m=0, n=0)),
        "and as a point, modulo 2π": chain(
            rotate,
            ("times 1", product(rotate, unit_vector(x))),
            ("u(y, m) has modulus 1", product(rotate, product(u(y, m), conjugate(u(y, m))))),
            ("in another order", product(product(u(x, m), conjugate(u(y, m))), rest)),
            ("the constraint at m", product(G(x, y), rest)),
            ("the constraint at 0", product(product(u(x, 0), conjugate(u(y, 0))), rest)),
            ("in another order", product(other, product(u(x, 0), conjugate(u(x, 0))))),
            ("u(x, 0) has modulus 1", product(other, unit_vector(x))),
            ("times 1", other),
        ).with_facts(
            on_circle.at(x=y, m=m),
            on_circle.at(x=x, m=0),
            same_ratio.at(x=x, y=y, m=m),
            same_ratio.at(x=x, y=y, m=0),
        ),
        "the increment of φ": equal(
            (Theta(y, m + 1) - Theta(y, 0)) - (Theta(x, m) - Theta(x, 0)),
            Theta(x, 0) - Theta(y, 0) - gap(x, y, 1),
        ).with_facts(same_gap.at(x=x, y=y, m=m, n=m + 1)),
        "one step is the same everywhere": step,
        "φ(m) = mθ": equal(Theta(x, m), Theta(x, 0) + m * theta)
        .by_induction(m)
        .with_facts(step.at(x=x, m=m)),
    }


@the_rotary_derivation_holds_once_mended.negative_control(
    "nothing is assumed of f", assume=no_hypotheses
)
def nothing_assumed(f: Function, x: Array, m: Array) -> Claim:
    return equal(norm(f(x, m)), norm(x))
