"""The drawings of an encoding, and what is said of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from attnproof import Encoding, real
from attnproof.cards.registry import load_encodings
from attnproof.encodings.additive import LearnedTable
from attnproof.encodings.bias import Alibi, T5Buckets
from attnproof.encodings.masks import NopeCausal
from attnproof.encodings.powers import MatrixPowers
from attnproof.encodings.rope import Rope
from attnproof.encodings.rope_of_coordinates import RopeAxial
from attnproof.report import plots, precision
from attnproof.report import rounding as home
from attnproof.report.precision import FORMATS, Brain, Single, WideAngles, encoding_in
from attnproof.report.rounding import Line, NotBounded, at, bounds, content, reach, rounding


def test_drawings_of_planes_masks_and_tables() -> None:
    plane = {plot.id: plot for plot in plots.plots(RopeAxial)}
    assert plane["plane"].drawn
    assert len(plane["plane"].rows) == 5
    masked = {plot.id: plot for plot in plots.plots(NopeCausal)}
    assert "mask hides" in masked["offsets"].says
    assert masked["offsets"].rows[-1][1] == "–"
    assert "no codes" in masked["codes"].why_not
    ended = {plot.id: plot for plot in plots.plots(LearnedTable)}
    assert "up to position 511" in ended["rounding"].says
    assert "differ" in ended["offsets"].says


def test_what_is_drawn_is_the_score() -> None:
    alibi = {plot.id: plot for plot in plots.plots(Alibi)}
    assert "coincide" in alibi["offsets"].says
    rows = [[float(v.replace("−", "-")) for v in row] for row in alibi["offsets"].rows]
    best = max(score for _, score in rows)
    assert all(abs(score - (best - abs(k) / 16)) < 1e-2 for k, score in rows)


def test_neighbours_fall_together_where_the_formats_end() -> None:
    said = {plot.id: plot for plot in plots.plots(Rope)}["rounding"].says
    assert "In bfloat16 neighbouring positions coincide from 257 on" in said
    assert "In float16 neighbouring positions coincide from 2049 on" in said
    assert "float32 neighbours" not in said


ALIBI = "from attnproof.encodings.bias import Alibi"
LOADS = (
    ("import attnproof.report, attnproof.report.encodings, attnproof.report.plots", "False False"),
    (
        f"{ALIBI}; from attnproof.answers.cards import card; print(card(Alibi, ['even']))",
        "False False",
    ),
    (f"{ALIBI}; from attnproof.report.plots import plots; plots(Alibi)", "True True"),
)


def said_by(root: Path, code: str) -> list[str]:
    """What code prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(("code", "loads"), LOADS)
def test_matplotlib_and_torch_are_loaded_to_draw_alone(root: Path, code: str, loads: str) -> None:
    told = "import sys; print('matplotlib' in sys.modules, 'torch' in sys.modules)"
    assert said_by(root, f"{code}\n{told}")[-1] == loads


def test_without_torch_plots_are_drawn_without_bounds(root: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"{ALIBI}; from attnproof.report.plots import plots\n"
        "plot = {p.id: p for p in plots(Alibi)}['rounding']\n"
        "print(bool(plot.drawn), plot.head, plot.says)"
    )
    (told,) = said_by(root, code)
    assert told.startswith("True ('position', 'float32', 'bfloat16', 'float16',")
    assert "bound, float32" not in told
    assert "No bounds are drawn: bounds need torch, which is not installed." in told


# Arithmetic in short formats, against that of torch.


def test_bfloat16_is_that_of_torch() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**32, size=200_000, dtype=np.uint32).view(np.float32)
    ties = (rng.integers(0, 2**16, size=50_000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    near = ties.view(np.uint32) + rng.integers(-1, 2, size=len(ties)).astype(np.uint32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45], dtype=np.float32)
    values = np.concatenate([drawn, ties, near.view(np.float32), special])
    with np.errstate(all="ignore"):
        ours = precision.brain(values)
    theirs = torch.from_numpy(values).to(torch.bfloat16).to(torch.float32).numpy()
    same = (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))
    assert same.all()
    assert precision.brain(np.float64(257.0)).tolist() == 256.0


@pytest.mark.parametrize(
    ("name", "like"),
    [("float32", torch.float32), ("float16", torch.float16), ("bfloat16", torch.bfloat16)],
)
def test_every_operation_rounds(name: str, like: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    form = precision.FORMATS[name]
    a, b = rng.normal(size=(2, 40, 50))
    x, y = form.of(a), form.of(b)
    s, t = torch.from_numpy(a).to(like), torch.from_numpy(b).to(like)
    for ours, theirs in (
        (x + y, s + t),
        (x * y, s * t),
        (x / y, s / t),
        (x[0] - y[0], s[0] - t[0]),
        (-x, -s),
        (3 * x, 3 * s),
    ):
        assert isinstance(ours, precision.Rounded)
        assert np.array_equal(np.asarray(ours, dtype=np.float32), theirs.float().numpy())
    for result in (
        x @ y.mT,
        np.sum(x, axis=0),
        np.where(x > 0, x, 0 * x),
        np.stack((x, y)),
        np.mean(x),
        x[0, 0] * np.arange(3),
        np.cos(x[0, 0]),
    ):
        assert isinstance(result, precision.Rounded)
        assert np.array_equal(form.nearest(np.asarray(result)), np.asarray(result))
    assert not isinstance(x > 0, precision.Rounded)
    x -= y
    assert np.array_equal(np.asarray(x, dtype=np.float32), (s - t).float().numpy())


# Rounding against position: the error in every format is within the bound, for every encoding.


SOME = np.array([1, 7, 60, 257, 500, 3000, 50_000, 10**6])
KINDS = load_encodings().kinds


def errors(kind: type[Encoding], form: type[precision.Rounded], places: Any) -> Any:
    """|score in a format − score in float64| of a query with the key before it."""
    numeric = kind.with_defaults()

    def scores(of: Any, low: type[precision.Rounded] | None) -> Any:
        token = content(numeric, 1, low)
        return np.array(
            [
                float(
                    np.asarray(
                        of.scores(token, token, *(at(numeric, [q], low) for q in (p, p - 1)))
                    )[0, 0]
                )
                for p in places
            ]
        )

    return np.abs(scores(encoding_in(numeric, form), form) - scores(numeric, None))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.id()))
def test_no_error_is_above_its_bound(kind: type[Encoding], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "SECONDS", 0.05)
    numeric = kind.with_defaults()
    with np.errstate(all="ignore"):
        end, _ = reach(numeric, 10**6, 0.01)
        places, told = SOME[end >= SOME], 0
        for says, form in FORMATS.items():
            error, bound = errors(kind, form, places), bounds(numeric, places, form)
            sure = np.isfinite(error) & np.isfinite(bound)
            assert (error[sure] <= bound[sure]).all(), says
            told += sure.sum()
    assert told >= len(FORMATS)


def test_a_wrong_profile_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    own = home._profile
    monkeypatch.setattr(home, "_profile", lambda _: own(Single))
    monkeypatch.setattr(home, "_kept", lambda value, _: np.asarray(value, dtype=np.float64))
    bound = bounds(Rope.with_defaults(), SOME, Single)
    assert (errors(Rope, Brain, SOME) > bound).sum() > len(SOME) / 2


def test_the_lines_of_rope() -> None:
    found = rounding(Rope.with_defaults())
    assert list(found.lines) == list(FORMATS)
    assert found.places[-1] == 10**6
    brain, wide = found.lines["bfloat16"], found.lines["bfloat16 with float32 angles"]
    assert (brain.first, wide.first, found.lines["float16"].first) == (257, 0, 2049)
    assert {257, 2049} <= set(found.places)
    far = found.places > 10**5
    assert isinstance(brain, Line)
    assert brain.bound is not None
    assert wide.bound is not None
    assert (wide.bound[far] < brain.bound[far] / 50).all()
    assert (wide.error[far] < brain.error[far]).mean() > 0.8
    assert "Dashed" in found.says
    assert "angles in float32" in found.says


def test_where_positions_are_whole_or_end() -> None:
    table = rounding(LearnedTable.with_defaults())
    assert table.places[-1] == 511
    assert "defined up to position 511" in table.says
    assert list(table.lines) == ["float32", "bfloat16", "float16"]
    assert not any(line.first for line in table.lines.values())
    buckets = rounding(T5Buckets.with_defaults())
    assert buckets.places[-1] == 10**6


def test_code_of_a_step_for_each_position_is_followed_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(home, "SLOW", home.SLOW / 10)
    monkeypatch.setattr(home, "SECONDS", home.SECONDS / 10)
    steps = rounding(MatrixPowers.with_defaults())
    assert steps.places[-1] < 10**6
    assert "a step per position" in steps.says


class Unread(Encoding):
    """A bias from code that leaves the term."""

    given: ClassVar = {"slope": real()}
    defaults: ClassVar = {"slope": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        if not isinstance(m, np.ndarray):
            raise TypeError("numbers only")
        return self.slope * (n - m)


def test_what_has_no_bound_says_why() -> None:
    with pytest.raises(NotBounded, match="TypeError: numbers only"):
        bounds(Unread.with_defaults(), SOME, Single)
    found = rounding(Unread.with_defaults())
    assert all(line.bound is None for line in found.lines.values())
    assert "No bounds are drawn: its score cannot be evaluated with bounds" in found.says


def test_angles_beside_short_data_are_those_of_torch() -> None:
    rng = np.random.default_rng(0)
    p, w, x = rng.uniform(0, 10**5, 20), rng.uniform(0, 1, 8), rng.normal(size=(20, 8))
    angle = WideAngles.wide()
    ours = angle.of(p)[:, None] * angle.of(w)
    theirs = torch.tensor(p).float()[:, None] * torch.tensor(w).float()
    assert isinstance(ours, angle)
    assert np.array_equal(np.asarray(ours), theirs.numpy())
    cosines, data = np.cos(ours), WideAngles.of(x)
    assert type(cosines) is WideAngles
    close = theirs.double().cos().to(torch.bfloat16).float().numpy()
    assert np.abs(np.asarray(cosines) - close).max() <= 2.0**-8
    assert type(data * cosines) is WideAngles
    assert type(data * ours) is angle
    assert type(data @ ours.mT) is WideAngles
    assert type(data * angle.of(3.0)) is WideAngles
    assert type(WideAngles.of(0.3) * np.arange(8)) is angle
    assert type(Brain.of(0.3) * np.arange(8)) is Brain


def test_bounds_of_alibi_know_where_positions_end() -> None:
    places = np.array([10, 60_000, 70_000])
    half = bounds(Alibi.with_defaults(), places, FORMATS["float16"])
    assert np.isfinite(half[0])
    assert half[2] == np.inf
