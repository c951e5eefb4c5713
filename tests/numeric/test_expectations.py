"""Random numbers with given moments, and means over finitely many equally likely outcomes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.check import measure
from attnproof.numeric.profile import profile_of
from attnproof.numeric.reading import RowReading
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import scale_named, sizes_of
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import nonnegative, probability_space, real, standard
from tests.numeric.statements import CPU, d, stated

omega, psi = probability_space("Ω"), probability_space("Ψ")
MOMENTS = {"z": standard(omega, d), "w": standard(psi, d), "mu": real(), "sigma": nonnegative()}


def moments(of_product: Any) -> Any:
    def body(z: Any, w: Any, mu: Any, sigma: Any) -> Any:
        product = (mu + sigma * z) @ (mu + sigma * w).mT
        centred = (product - d * mu**2) ** 2
        variance = xp.sum(xp.sum(centred, axis=0), axis=0)
        return {
            "mean": equal(xp.sum(xp.sum(product, axis=0), axis=0), d * mu**2),
            "variance": equal(variance, of_product(mu, sigma)),
        }

    return stated(MOMENTS, body)


def test_the_variance_of_a_dot_product() -> None:
    right = moments(lambda mu, sigma: d * (sigma**4 + 2 * mu**2 * sigma**2))
    for scale in ("small", "default"):
        said = measure(right, scale=scale, device="cpu")
        assert {m.status for m in said} == {"held"}
    printed = moments(lambda _, sigma: d * sigma**4)
    wrong = [m for m in measure(printed, scale="small") if m.says == "variance"]
    assert {m.status for m in wrong} == {"violated"}
    assert len({said[0].sizes[name] for name in "dΩΨ"}) == 3


def test_random_numbers_have_their_moments() -> None:
    told = stated({"z": standard(omega, d)}, lambda z: equal(z, z))
    scale = scale_named("small")
    lengths = sizes_of(told, scale)
    assert lengths["Ω"] > 2 * lengths["d"]
    found = draw(told, lengths, scale, 0)
    z = found.values["z"]
    assert float(z.mean(0).abs().max()) < 1e-14
    assert float((z.mT @ z / len(z) - torch.eye(z.shape[1])).abs().max()) < 1e-14
    assert float(z.abs().std()) > 0.1
    assert found.in_dtype(torch.bfloat16, CPU)["z"].dtype == torch.float64
    radius = found.with_radii(Arithmetic(profile_of(torch.float32, CPU)), CPU)["z"].error()
    assert 0 < float(radius.max()) < 1e-11


def test_a_mean_over_outcomes_is_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowReading, "averaged", lambda _, total, __: total)
    said = measure(moments(lambda mu, s: d * (s**4 + 2 * mu**2 * s**2)), scale="small")
    assert {m.status for m in said} == {"violated"}
