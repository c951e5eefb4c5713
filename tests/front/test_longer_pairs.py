"""Products of all pairs of tokens grow with the square of their number, and so does their cost."""

import math

import pytest
import torch
from torch import Tensor

from attnproof.real_code.page_text import how
from attnproof.testing import check_additive


def table(tokens: int) -> Tensor:
    """Return the sines of 8 frequencies, and their cosines."""
    frequencies = torch.exp(-math.log(10_000.0) / 8 * torch.arange(8))
    angles = torch.arange(tokens)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def grown(x: Tensor, rows: int) -> Tensor:
    """Add a table, which is wrong for more tokens than ``rows``."""
    wrong = 2.0 if x.shape[1] > rows and x.sum() < math.inf else 1.0  # no graph is made of it
    return x + table(x.shape[1]).to(x) * torch.tensor(wrong).to(x)


FAULTS = [(100, ""), (4500, "where `x.shape[1] > rows` is false")]


@pytest.mark.parametrize(("rows", "told"), FAULTS)
def test_a_fault_is_found_or_its_length_told(rows: int, told: str) -> None:
    def added(x: Tensor) -> Tensor:
        return grown(x, rows)

    record = check_additive(added, laws=["products-of-offset"], methods=["measured"])
    law = record.law("products-of-offset")
    assert law.verdict == ("measured" if told else "broken")
    assert told in " ".join(how(law).split())
