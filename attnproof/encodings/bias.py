"""What is added to the scores: ALiBi, KERPLE, FIRE, Sandwich, the buckets of T5."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Encoding,
    at_least,
    differ,
    frequencies,
    function,
    hypothesis,
    nonnegative,
    positive,
    real,
    sizes,
)
from attnproof.theorems.definitions.positions import looked_up, real_power

(B,) = sizes("B", "blocks")
(T,) = sizes("T", "buckets")


class Alibi(Encoding):
    """−slope·|m − n| is added to the score of a query at m with a key at n, for any real slope.

    In the paper the slopes of H heads, H a power of 2, are 2^(−8/H), 2^(−16/H), .., 2^(−8), and
    n <= m.
    """

    title = "ALiBi"
    source = ("Press, Smith and Lewis 2022, section 3",)
    given = {"slope": real()}
    defaults = {"slope": 2.0**-4}

    def bias(self, m: Any, n: Any) -> Any:
        return -self.slope * array_namespace(m).abs(m - n)

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        return self.slope * step

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return -self.bias(m, n)

    def apart(self, i: Any, j: Any) -> Any:
        return self.slope * (j - i)

    @hypothesis("the slope is not 0")
    def slope_not_0(self) -> list[Any]:
        return [differ(self.slope, 0)]

    @hypothesis("the slope is at least 0")
    def slope_not_negative(self) -> list[Any]:
        return [at_least(self.slope, 0)]


class AlibiByPlace(Encoding):
    """−slope |i − j| is added to the score of row i of the queries with row j of the keys.

    This is what code computes if it numbers the rows itself.  It is ALiBi if token i is at position
    i, and something else if rows are packed, padded on the left, or read from a cache.
    """

    title = "ALiBi, by place"
    source = ("the code of Press, Smith and Lewis 2022, which numbers the keys with arange",)
    together = True
    given = {"slope": real()}
    defaults = {"slope": 2.0**-4}

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        del m, n
        xp = array_namespace(Q)
        distance = xp.abs(xp.arange(Q.shape[0])[:, None] - xp.arange(K.shape[0])[None])
        return Q @ K.mT / Q.shape[-1] ** 0.5 - self.slope * distance


class AlibiKeyBias(Encoding):
    """slope·n is added to the scores of the key at n, and keys n > m are hidden.

    The code computes this instead of −slope·(m − n).  The difference is slope·m, the same for all
    keys of a query, so that softmax removes it.  For a slope >= 0 no score of a key that is seen
    exceeds q·k / √d + slope·m.
    """

    title = "ALiBi, on keys"
    source = ("the code of Press, Smith and Lewis 2022, and of BLOOM: build_alibi_tensor",)
    given = {"slope": real()}
    defaults = {"slope": 2.0**-4}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * n

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m

    def tell(self, here: Any, there: Any) -> Any:
        return here[1] - there[1]

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return self.plain(q, k) + self.slope * m

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return self.slope * array_namespace(m).abs(m - n)

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        return self.slope * step

    def apart(self, i: Any, j: Any) -> Any:
        return self.slope * (i - j)

    @hypothesis("the slope is not 0")
    def slope_not_0(self) -> list[Any]:
        return [differ(self.slope, 0)]

    @hypothesis("the slope is at least 0")
    def slope_not_negative(self) -> list[Any]:
        return [at_least(self.slope, 0)]


class KerpleLog(Encoding):
    """−r_1 log(1 + r_2 |m − n|) is added to the scores; in the paper r_1 and r_2 are positive."""

    title = "KERPLE, logarithmic"
    source = ("Chi et al. 2022, KERPLE: the logarithmic variant",)
    given = {"r_1": real(), "r_2": nonnegative()}
    defaults = {"r_1": 1.0, "r_2": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return -self.r_1 * xp.log1p(self.r_2 * xp.abs(m - n))

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        log = array_namespace(o).log
        return self.r_1 * (log(1 + self.r_2 * (o + step)) - log(1 + self.r_2 * o))

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return -self.bias(m, n)

    def tell(self, here: Any, there: Any) -> Any:
        exp = array_namespace(here).exp
        return exp(-here[0] / self.r_1) - exp(-there[0] / self.r_1)

    def apart(self, i: Any, j: Any) -> Any:
        return self.r_2 * (i - j)

    @hypothesis("neither r_1 nor r_2 is 0")
    def not_0(self) -> list[Any]:
        # x/0 is 0 here, so that r_1/r_1 is 1 exactly if r_1 is not 0
        return [(self.r_1 / self.r_1, 1), differ(self.r_2, 0)]

    @hypothesis("r_1 is at least 0")
    def r_1_not_negative(self) -> list[Any]:
        return [at_least(self.r_1, 0)]


class KerplePower(Encoding):
    """−r_1 |m − n|^r_2 is added to the scores; in the paper 0 < r_1 and 0 < r_2 <= 2."""

    title = "KERPLE, power"
    source = ("Chi et al. 2022, KERPLE: the power variant",)
    given = {"r_1": real(), "r_2": positive()}
    defaults = {"r_1": 0.1, "r_2": 0.5}

    def bias(self, m: Any, n: Any) -> Any:
        return -self.r_1 * real_power(array_namespace(m).abs(m - n), self.r_2)

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        return self.r_1 * (real_power(o + step, self.r_2) - real_power(o, self.r_2))

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return -self.bias(m, n)

    @hypothesis("r_1 is at least 0")
    def r_1_not_negative(self) -> list[Any]:
        return [at_least(self.r_1, 0)]


class Fire(Encoding):
    """f(ψ(m − n) / ψ(max(L, m))) is added, ψ(x) = log(γ x + 1); keys n > m are hidden.

    f is any function (in the paper a small network), γ (there c) and the threshold L any positive
    numbers; the paper trains all of them.
    """

    title = "FIRE"
    source = ("Li et al. 2024, Functional Interpolation for Relative Positions; causal",)
    given = {"f": function(0), "gamma": positive(), "L": positive()}
    defaults = {"f": lambda share: -4.0 * share, "gamma": 0.1, "L": 512.0}

    def psi(self, x: Any) -> Any:
        return array_namespace(x).log(self.gamma * x + 1)

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        reach = xp.maximum(m, xp.zeros(()) + self.L)
        return self.f(self.psi(xp.maximum(m - n, xp.zeros(()))) / self.psi(reach))

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m


class Sandwich(Encoding):
    """strength·Σ_b cos((m − n) ω_b) is added: the product of the sinusoidal vectors of m and n.

    The strength differs between heads.  No score exceeds q·k / √d + strength·B, the bias at m = n.
    """

    title = "Sandwich"
    source = ("Chi et al. 2023, Dissecting Transformer Length Extrapolation: Sandwich",)
    given = {"omega": frequencies(B), "strength": real()}
    defaults = {"omega": 10_000.0 ** (-np.arange(32) / 32), "strength": 0.5}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.strength * xp.sum(xp.cos((m - n)[..., None] * self.omega), axis=-1)

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return self.plain(q, k) + self.strength * self.omega.shape[0]

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.strength * xp.sum(1 - xp.cos((m - n) * self.omega), axis=-1)

    @hypothesis("the strength is at least 0")
    def strength_not_negative(self) -> list[Any]:
        return [at_least(self.strength, 0)]


class T5Buckets(Encoding):
    """β_bucket is added, where bucket = Σ_j [|n − m| >= t_j] + (T + 1)·[n > m].

    t_1, .., t_T are the distances at which a new bucket starts, β any table of 2(T + 1) numbers.
    With 32 buckets and a maximum distance of 128, as in T5, every distance up to 8 starts one;
    then the smallest d with 8 + ⌊8 log(d/8) / log(128/8)⌋ at its next value: 12, 16, 23, .., 91.
    (T5 leaves out the division of q·k by √d, which here all scores have.)
    """

    title = "T5 buckets, both directions"
    source = ("Raffel et al. 2020, section 2.1, and relative_position_bucket in the T5 code",)
    whole = True
    given = {"t": real(T), "beta": real(2 * T + 2)}
    defaults = {
        "t": np.array([*range(1, 9), 12, 16, 23, 32, 46, 64, 91.0]),
        "beta": -np.arange(32) / 64 - np.arange(32) % 16 / 4,
    }

    def passed(self, distance: Any) -> Any:
        """Return how many of the t_j a distance has reached."""
        xp = array_namespace(distance)
        reached = xp.astype(distance[..., None] >= self.t, distance.dtype)
        return xp.sum(reached, axis=-1)

    def bucket(self, m: Any, n: Any) -> Any:
        """Return the number of the bucket of a query at m and a key at n."""
        xp = array_namespace(m)
        after = xp.astype(n > m, m.dtype)
        return self.passed(xp.abs(n - m)) + (self.t.shape[0] + 1) * after

    def bias(self, m: Any, n: Any) -> Any:
        return looked_up(self.beta, self.bucket(m, n))


class T5CausalBuckets(T5Buckets):
    """β_bucket is added, where bucket = Σ_j [max(m − n, 0) >= t_j], and keys n > m are hidden.

    β is any table of T + 1 numbers.  With 32 buckets and a maximum distance of 128 every distance
    up to 16 starts a bucket, then the smallest d with 16 + ⌊16 log(d/16) / log(128/16)⌋ at its
    next value: 19, 21, .., 113.
    """

    title = "T5 buckets, causal"
    given = {"t": real(T), "beta": real(T + 1)}
    defaults = {
        "t": np.array(
            [*range(1, 17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113.0]
        ),
        "beta": -np.arange(32) / 8,
    }

    def bucket(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return self.passed(xp.maximum(m - n, xp.zeros(())))

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m
