"""What a traced law states is what its words say, on either side of a branch and where x is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.prove.branches import lengths_elsewhere
from attnproof.programs.prove.proofs import Proofs
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive, Attention, Rotary, Subject

from .test_attacks import SECONDS, layer, only, rotary, rotated

STRETCH = torch.tensor([1.0, 2.0, 3.0, 4.0])


def attention(attend: Callable[..., Tensor], **more: Any) -> Attention:
    return Attention(name="a", attend=attend, heads=2, groups=2, width=4, **more)


def softmax(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return torch.softmax(q @ k.mT, -1) @ v


def twice(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return 2 * softmax(q, k, v)


def total(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return 0 * (q @ k.mT) @ v + v.sum(2, keepdim=True)


def later_keys_weigh_more(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return torch.softmax(q @ k.mT + torch.arange(k.shape[2]), -1) @ v


def mixed(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return softmax(q, k, v.cumsum(0))


def if_as_many(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return softmax(q, k, v if q.shape[2] == k.shape[2] else v.cumsum(2))


def not_read(x: Tensor) -> Tensor:
    return x * torch.rand(()) if x.shape[0] > 1 else x


def running(x: Tensor) -> Tensor:
    return rotated(x, torch.arange(x.shape[2])[None])


FALSE: dict[str, tuple[Callable[[], Subject], str]] = {
    "weights that add up to 2": (lambda: attention(twice), "rows-sum-to-one"),
    "weights of 1": (lambda: attention(total), "rows-sum-to-one"),
    "each channel as much longer as it likes": (
        lambda: rotary(lambda x, p: rotated(x * STRETCH, p)),
        "norm",
    ),
    "the same without positions": (
        lambda: Rotary(name="r", rotate=rotated, running=lambda x: running(x * STRETCH), width=4),
        "norm",
    ),
    "keys that become longer": (
        lambda: rotary(rotated, key=lambda x, p: rotated(x, p) * (1 + p[:, None, :, None])),
        "norm",
    ),
    "keys that are moved": (lambda: rotary(rotated, key=lambda x, p: rotated(x, p) + 1), "linear"),
    "rows of a batch added to the next": (
        lambda: layer(lambda x: x.cumsum(0)),
        "rows-of-batch-apart",
    ),
    "the same of rotary code": (
        lambda: rotary(lambda x, p: rotated(x.cumsum(0), p)),
        "rows-of-batch-apart",
    ),
    "the same of attention": (lambda: attention(mixed), "rows-of-batch-apart"),
    "the same of what is added": (
        lambda: Additive(name="d", added=lambda x: x.cumsum(0), width=4),
        "rows-of-batch-apart",
    ),
    "the same without positions in rows": (
        lambda: Rotary(name="r", rotate=rotated, running=lambda x: running(x.cumsum(0)), width=4),
        "rows-of-batch-apart",
    ),
    "key places in the scores": (lambda: attention(later_keys_weigh_more), "permutation"),
    "positions counted from the first token": (
        lambda: rotary(lambda x, p: rotated(x, p - p[:, :1])),
        "relative",
    ),
    "the ids of the first row for all": (
        lambda: rotary(lambda x, p: rotated(x, p[:1].expand_as(p))),
        "follows-its-ids",
    ),
    "the mean of the ids of all rows": (
        lambda: rotary(lambda x, p: rotated(x, 0 * p + p.float().mean(0))),
        "follows-its-ids",
    ),
    "a layer that is not read, beside attention that is": (
        lambda: attention(softmax, layer=not_read, embed=4),
        "rows-of-batch-apart",
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_breaks_the_words_of_a_law_is_not_proved(name: str) -> None:
    make, law = FALSE[name]
    found = prove(make(), (law,), seconds=SECONDS)
    assert found.findings, "the attack was not asked"
    assert [f for f in found.findings if f.verdict == "holds"] == []


TRUE: dict[str, tuple[Callable[[], Subject], tuple[str, ...]]] = {
    "attention": (
        lambda: attention(softmax),
        ("rows-sum-to-one", "permutation", "order-of-keys", "rows-of-batch-apart"),
    ),
    "longer by one number": (
        lambda: rotary(lambda x, p: 1.5 * rotated(x, p)),
        ("norm", "relative", "follows-its-ids", "rows-of-batch-apart"),
    ),
    "keys longer by another number": (
        lambda: rotary(rotated, key=lambda x, p: 2 * rotated(x, p)),
        ("norm", "relative"),
    ),
    "without positions": (
        lambda: Rotary(name="r", rotate=rotated, running=running, width=4),
        ("norm", "relative", "rows-of-batch-apart"),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_obeys_the_words_is_proved(name: str) -> None:
    make, laws = TRUE[name]
    found = prove(make(), laws, seconds=SECONDS)
    for law in laws:
        only(found, law)


def test_as_many_queries_as_keys_is_told_where_a_proof_needs_it() -> None:
    told = "as many queries as keys"
    assert told not in only(prove(attention(softmax), ("order-of-keys",)), "order-of-keys")
    assert told in only(prove(attention(if_as_many), ("order-of-keys",)), "order-of-keys")


def test_code_of_one_length_is_proved_where_its_values_have_a_length_of_their_own() -> None:
    """The graph of torch's attention does not say that there are as many values as keys."""

    def wrong(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v) + v.mean(0)

    line, law = "q: B H n D, k: B H n D, v: B H n D -> B H n D", "rows-of-batch-apart"
    right = nn.functional.scaled_dot_product_attention
    found = [prove(adapted_as(code, line), (law,), seconds=SECONDS) for code in (right, wrong)]
    assert "as many queries as keys" in only(found[0], law)
    assert [one.verdict for one in found[1].findings] == ["broken"]


def test_channels_that_pass_beside_longer_ones_are_not_called_broken() -> None:
    def partly(x: Tensor, p: Tensor) -> Tensor:
        return torch.cat((1.5 * rotated(x[..., :2], p), x[..., 2:]), -1)

    (found,) = prove(rotary(partly), ("norm",), seconds=SECONDS).findings
    assert found.verdict in ("undecided", "broken")  # lengths of unlike vectors change unlike


# code with a branch on a length: what is proved on one side says what is found on the other


CALL = "x: B H n D, positions: B n -> x"


class Branched(nn.Module):
    """A rotation which past 24 tokens is interpolated, absolute, or refused."""

    inv_freq: Tensor

    def __init__(self, beyond: str) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, 8, 2).float() / 8))
        self.beyond = beyond

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        p = positions[:, None, :, None].float()
        angle = p * self.inv_freq
        if x.shape[-2] > 24:
            if self.beyond == "refused":
                raise ValueError("at most 24 tokens")
            angle = angle / 4 if self.beyond == "interpolated" else angle * p
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def found(beyond: str, law: str = "relative") -> Finding:
    subject = adapted_as(Branched(beyond), CALL, name=beyond)
    (finding,) = (one for one in prove(subject, [law]).findings if one.law == law)
    return finding


def test_what_holds_on_both_sides_says_so_of_both() -> None:
    told = found("interpolated")
    assert told.verdict == "holds"
    elsewhere = [one.text for one in told.assuming if "elsewhere" in one.text]
    assert len(elsewhere) == 2  # of two formulas, each with lengths of its own
    assert all("for which it is proved for" in one for one in elsewhere)
    assert all("n ≥ 25" in one or "n, n′ ≥ 25" in one for one in elsewhere)
    assert not any("> 24" in one for one in elsewhere)  # which says the same


def test_what_is_broken_on_the_other_side_is_broken() -> None:
    told = found("absolute")
    assert told.verdict == "broken"
    assert told.why.startswith("proved for")
    assert "n + n′ ≤ 24" in told.why
    assert "as at B = 3, H = 2, n = 25, other code runs, and breaks it" in told.why
    assert told.witness is not None


def test_a_law_that_the_other_side_keeps_is_proved_there() -> None:
    assert found("absolute", "norm").verdict == "holds"


def test_where_the_code_raises_there_is_nothing_to_say() -> None:
    told = found("refused")
    assert told.verdict == "holds"
    assert any("n ≤ 24" in one.text for one in told.assuming)
    assert not any("elsewhere" in one.text for one in told.assuming)


def test_what_is_not_proved_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Proofs.of
    monkeypatch.setattr(
        Proofs, "of", lambda self, law: whole(self, law) if self.elsewhere else None
    )
    told = [one.text for one in found("interpolated").assuming]
    where = "as at B = 3, H = 2, n = 25"
    assert f"other code runs elsewhere, {where}, for which it is not proved" in told


def test_lengths_on_the_other_side_are_the_smallest_at_which_the_code_runs() -> None:
    seen = []
    for beyond in ("interpolated", "refused"):
        subject = adapted_as(Branched(beyond), CALL, name=beyond)
        hooks: Any = prove(subject, ["norm"]).hooks
        seen.append(lengths_elsewhere(hooks.rotate.graph))
    assert seen == [[{"B": 3, "H": 2, "n": 25}], []]


# what is proved "if x ≠ 0" is no proof where x is 0 whatever is given


def linear(queries: int, keys: int) -> Tensor:
    far = torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]
    return -(2.0 ** -torch.arange(1, 5))[:, None, None] * far.abs()


def divided(queries: int, keys: int) -> Tensor:
    """Infinite where a query meets its own key."""
    far = torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]
    return -(2.0 ** -torch.arange(1, 5))[:, None, None] / far.abs()


def logarithmic(queries: int, keys: int) -> Tensor:
    """The logarithm of a distance, and 0 where there is none."""
    far = (torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]).abs()
    made = torch.where(far > 0, torch.log(1.0 * far), 0.0)
    return -(2.0 ** -torch.arange(1, 5))[:, None, None] * made


def normed(x: Tensor) -> Tensor:
    return x / x.square().sum(-1, keepdim=True).sqrt()


def finding_of(code: object, line: str, kind: str, law: str) -> Finding:
    return next(f for f in prove(adapted_as(code, line, kind=kind), laws=[law]).findings)


BIAS = "queries = r, keys = n -> 4 r n"


def test_a_bias_that_divides_by_0_is_not_proved() -> None:
    assert finding_of(linear, BIAS, "bias", "offset-only").verdict == "holds"
    seen = finding_of(divided, BIAS, "bias", "offset-only")
    assert seen.verdict == "undecided"
    assert "which does not hold everywhere: elsewhere the code gives NaN" in seen.why


def test_a_divisor_that_only_some_inputs_make_0_is_a_condition() -> None:
    seen = finding_of(normed, "x: B n E -> B n E", "layer", "permutation")
    assert seen.verdict == "holds"


def test_a_logarithm_that_is_not_taken_where_it_is_none_is_proved() -> None:
    seen = finding_of(logarithmic, BIAS, "bias", "offset-only")
    assert seen.verdict in ("holds", "undecided")
    assert "gives NaN" not in seen.why
