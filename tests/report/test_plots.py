"""The drawings of an encoding, and what is said of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attnproof.encodings.alibi import Alibi
from attnproof.encodings.learned_table import LearnedTable
from attnproof.encodings.nope_causal import NopeCausal
from attnproof.encodings.rope import Rope
from attnproof.encodings.rope_axial import RopeAxial
from attnproof.report import plots


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
    assert "fall on one line" in alibi["offsets"].says
    rows = [[float(v.replace("−", "-")) for v in row] for row in alibi["offsets"].rows]
    best = max(score for _, score in rows)
    assert all(abs(score - (best - abs(k) / 16)) < 1e-2 for k, score in rows)


def test_neighbours_fall_together_where_the_formats_end() -> None:
    said = {plot.id: plot for plot in plots.plots(Rope)}["rounding"].says
    assert "In bfloat16 neighbours fall together from 257 on" in said
    assert "In float16 neighbours fall together from 2049 on" in said
    assert "float32 neighbours" not in said


ALIBI = "from attnproof.encodings.alibi import Alibi"
LOADS = (
    ("import attnproof.report, attnproof.report.encodings, attnproof.report.plots", "False False"),
    (f"{ALIBI}; from attnproof.cards import card; print(card(Alibi, ['even']))", "False False"),
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
    assert "No bounds are drawn: torch, which computes bounds, is not installed." in told
