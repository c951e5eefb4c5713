"""Which method is called, of a class that cannot be called itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.programs.subjects import Rotary


class RotarySplits(nn.Module):
    """Rotary code whose method takes queries, keys and values, beside a step of a rotation."""

    def __init__(self, head_dim: int = 16, slow: int = 0) -> None:
        super().__init__()
        self.slow = slow
        self.speeds: Tensor
        self.register_buffer("speeds", 100.0 ** -(torch.arange(0, head_dim, 2) / head_dim))

    @staticmethod
    def rotate(x: Tensor) -> Tensor:
        u, v = x.chunk(2, -1)
        return torch.cat((-v, u), -1)

    def _at_places(self, x: Tensor, late: int) -> Tensor:
        angle = (torch.arange(x.shape[-2]) // (1 + late * self.slow))[:, None] * self.speeds
        angle = torch.cat((angle, angle), -1)
        return x * angle.cos() + self.rotate(x) * angle.sin()

    def split(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self._at_places(q, 0), self._at_places(k, 1), v


class RotaryStep(nn.Module):
    """A class that has nothing but a step of a rotation."""

    @staticmethod
    def rotate(x: Tensor) -> Tensor:
        return RotarySplits.rotate(x)


SPLIT = "q: B H n D, k: B H n D, v: B H n D -> q, k, v; method split"


def _relative(subject: Any) -> str:
    (seen,) = examine(subject, (Draw(),), ("relative",))
    return seen.verdict


def test_a_step_of_a_rotation_is_not_called_where_a_method_rotates() -> None:
    subject: Any = adapted_as(RotarySplits)
    assert "q: B H n D, k: B G n D, v: B H n D -> q, k, v; method split" in subject.adapted
    assert not subject.values_rotate
    assert _relative(subject) == "holds"
    broken = adapted_as(RotarySplits, settings={"slow": 1})
    assert "method split" in broken.adapted
    assert _relative(broken) == "broken"


def test_a_step_of_a_rotation_alone_is_refused() -> None:
    with pytest.raises(NoAdapter, match="does not depend on positions"):
        adapted_as(RotaryStep)


def test_queries_and_keys_that_come_back_are_rotated_and_not_attended() -> None:
    subject = subject_of(RotarySplits, SPLIT)
    assert isinstance(subject, Rotary)
    assert _relative(subject) == "holds"
    assert _relative(subject_of(RotarySplits, SPLIT, settings={"slow": 1})) == "broken"


class RotaryOfAll(RotarySplits):
    """The same, which rotates values as well."""

    def split(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self._at_places(q, 0), self._at_places(k, 1), self._at_places(v, 0)


def test_values_rotate_where_they_do_not_come_back_as_they_were() -> None:
    subject: Any = subject_of(RotaryOfAll, SPLIT)
    assert subject.values_rotate


def test_values_that_a_line_leaves_aside_are_handed_and_dropped() -> None:
    subject: Any = subject_of(RotarySplits, SPLIT.replace("-> q, k, v", "-> q, k, _"))
    assert subject.all_three is None
    assert _relative(subject) == "holds"
    broken = subject_of(
        RotarySplits, SPLIT.replace("-> q, k, v", "-> q, k, _"), settings={"slow": 1}
    )
    assert _relative(broken) == "broken"


def test_what_an_object_without_a_call_has_is_told_without_what_every_module_has() -> None:
    class Holder(nn.Module):
        def made(self, size: int) -> int:
            return size

    with pytest.raises(NoAdapter, match=r"method NAME': it has made\n"):
        adapted_as(Holder)


class ChosenForward(nn.Module):
    """Attention whose ``__init__`` chooses which of its methods is ``forward``."""

    def __init__(self, whole: bool = True) -> None:
        super().__init__()
        self.forward = self.attend if whole else self.attend_twice

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v)

    def attend_twice(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return 2 * scaled_dot_product_attention(q, k, v)


class KindOfAttention(ChosenForward):
    """A kind that says nothing of what it inherits."""


def test_a_method_that_is_made_forward_is_called() -> None:
    for whole, verdict in ((True, "holds"), (False, "broken")):
        subject: Any = adapted_as(ChosenForward, kind="attention", settings={"whole": whole})
        assert subject.line == "q: B H r D, k: B H n D, v: B H n D -> B H r D"
        (seen,) = examine(subject, (Draw(),), ("rows-sum-to-one",))
        assert seen.verdict == verdict


def test_what_a_kind_inherits_as_forward_is_not_its_own() -> None:
    with pytest.raises(NoAdapter, match="objects of KindOfAttention cannot be called"):
        adapted_as(KindOfAttention)
