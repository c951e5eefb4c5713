"""Other paths of a map of tokens: a context of its own tokens, a mask that shows all, padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention


class Reading(nn.Module):
    """Attention that reads a context, or the tokens themselves."""

    fault = ""

    def __init__(self, dim: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o, self.more = (nn.Linear(dim, dim) for _ in range(5))

    def forward(
        self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        read = x if context is None else context
        keys = self.q if context is not None and self.fault == "weights of queries" else self.k
        if context is not None and self.fault == "weights of its own":
            read = self.more(read)
        if self.fault == "normed":
            x = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
            read = x if context is None else context
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.q(x), keys(read), self.v(read))
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        late = torch.ones(scores.shape[-2:]).triu(1).bool()
        if mask is not None and self.fault == "causal under a mask":
            scores = scores.masked_fill(late, -torch.inf)
        elif mask is not None:
            scores = scores + mask
        elif context is None and self.fault == "causal alone":
            scores = scores.masked_fill(late, -torch.inf)
        out: Tensor = self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return out


class OfQueries(Reading):
    """In the path of a context queries and keys share their weights."""

    fault = "weights of queries"


class MaskIsCausal(Reading):
    """Whatever the mask says."""

    fault = "causal under a mask"


class OwnWeights(Reading):
    """A context has weights of its own: another function."""

    fault = "weights of its own"


class Normed(Reading):
    """Tokens are normed where they come in, and a context is taken as it is."""

    fault = "normed"


class NormedByAPart(Reading):
    """The same by a part, beside what the tokens themselves add."""

    def __init__(self, dim: int = 16, heads: int = 4) -> None:
        super().__init__(dim, heads)
        self.before = nn.LayerNorm(dim)

    def forward(
        self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        return x + super().forward(self.before(x), context, mask)


class CausalAlone(Reading):
    """Causal where nothing else is said."""

    fault = "causal alone"


def called(code: nn.Module, line: str) -> Attention:
    torch.manual_seed(3)
    found = adapted_as(code, line, kind="attention")
    assert isinstance(found, Attention)
    return found


def agree(subject: Attention) -> Finding:
    found = examine(subject, (Draw(0),), ("paths-agree",))
    return next((one for one in found if one.verdict == "broken"), found[0])


def test_a_context_of_the_tokens_themselves_changes_nothing() -> None:
    subject = called(Reading(), "x: B n E -> B n E")
    assert set(subject.paths) == {"context=x"}
    assert agree(subject).verdict == "holds"


def test_weights_of_queries_in_the_path_of_a_context_are_seen() -> None:
    seen = agree(called(OfQueries(), "x: B n E -> B n E"))
    assert seen.verdict == "broken"
    assert "the path context=x" in seen.why


def test_a_mask_that_shows_every_key_changes_nothing() -> None:
    line = "x: B n E, mask: r n add -> B n E"
    subject = called(Reading(), line)
    assert "a mask that shows every key" in subject.paths
    assert agree(subject).verdict == "holds"
    seen = agree(called(MaskIsCausal(), line))
    assert seen.verdict == "broken"
    assert "the path a mask that shows every key" in seen.why


@pytest.mark.parametrize("code", [OwnWeights, Normed, NormedByAPart, CausalAlone])
def test_what_is_another_function_by_design_is_no_path(code: type[nn.Module]) -> None:
    assert not called(code(), "x: B n E -> B n E").paths


def test_one_tensor_for_all_gives_what_copies_give() -> None:
    class Three(nn.Module):
        def __init__(self, fault: bool) -> None:
            super().__init__()
            self.parts, self.fault = nn.Linear(16, 48), fault

        def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            q, k, v = (
                part
                for x, n in ((query, 0), (key, 1), (value, 2))
                for part in [self.parts(x).chunk(3, -1)[n]]
            )
            if self.fault and key is query:
                k = q
            out: Tensor = (q @ k.mT / 4).softmax(-1) @ v
            return out

    line = "query: B n E, key: B n E, value: B n E -> B n E"
    assert agree(called(Three(fault=False), line)).verdict == "holds"
    assert agree(called(Three(fault=True), line)).verdict == "broken"


class Weighing(nn.Module):
    """Gives its weights where they are wanted, or says that it does not."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.parts, self.kind = nn.Linear(16, 48), kind

    def forward(self, x: Tensor, need_weights: bool = False) -> Any:
        if need_weights and self.kind == "none":
            raise NotImplementedError("need_weights is not supported")
        q, k, v = self.parts(x).chunk(3, -1)
        summed = -2 if need_weights and self.kind == "fault" else -1
        weights = (q @ k.mT / 4).softmax(summed)
        return (weights @ v, weights) if need_weights else weights @ v


class Weighed(Weighing):
    """The same, whose weights are wanted where nothing is said."""

    def forward(self, x: Tensor, need_weights: bool = True) -> Any:
        return super().forward(x, need_weights)


def test_weights_that_are_wanted_stand_behind_the_result() -> None:
    line = "x: B n E -> B n E"
    assert agree(called(Weighing("both"), line)).verdict == "holds"
    assert agree(called(Weighing("fault"), line)).verdict == "broken"
    both = called(Weighed("both"), f"{line}, _")
    assert {"need_weights=True", "need_weights=False"} <= set(both.paths)
    assert agree(both).verdict == "holds"


def test_what_code_says_it_does_not_do_is_no_path() -> None:
    assert set(called(Weighing("none"), "x: B n E -> B n E").paths) == {"need_weights=False"}


def test_paths_agree_where_rows_are_padded() -> None:
    """Weights asked for, a path of its own may forget what is padded."""

    class Padded(nn.Module):
        def __init__(self, fault: bool) -> None:
            super().__init__()
            self.parts, self.fault = nn.Linear(16, 48), fault

        def forward(
            self, x: Tensor, keep: Tensor | None = None, need_weights: bool = False
        ) -> Tensor:
            q, k, v = self.parts(x).chunk(3, -1)
            scores = q @ k.mT / 4
            if keep is not None and not (self.fault and need_weights):
                scores = scores.masked_fill(~keep[:, None], -torch.inf)
            out: Tensor = scores.softmax(-1) @ v
            return out

    line = "x: B n E, keep: B n keep -> B n E"
    assert agree(called(Padded(fault=False), line)).verdict == "holds"
    assert agree(called(Padded(fault=True), line)).verdict == "broken"


@pytest.mark.parametrize("shown", [False, True])
def test_what_a_hidden_token_gives_is_no_path_to_compare(shown: bool) -> None:
    """NaN of all paths where a token is hidden is nobody's; where one is shown it is a fault."""

    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.Linear(16, 48)

        def forward(
            self, x: Tensor, keep: Tensor | None = None, need_weights: bool = False
        ) -> Tensor:
            q, k, v = self.parts(x).chunk(3, -1)
            scores = q @ k.mT / 4
            if keep is not None:
                scores = scores.masked_fill(~(keep[:, None] & keep[..., None]), -torch.inf)
            out: Tensor = scores.softmax(-1) @ v
            if keep is not None and shown and need_weights:
                out = out.masked_fill((keep & ~keep.all(-1, keepdim=True))[..., None], torch.nan)
            return out

    subject = called(Padded(), "x: B n E, keep: B n keep -> B n E")
    assert subject.hiding
    assert agree(subject).verdict == ("broken" if shown else "holds")


class MaskedContext(Reading):
    """A mask of ones for its tokens, and one of its own for a context, as encoders' layers have."""

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        mask = attention_mask if encoder_hidden_states is None else encoder_attention_mask
        added = None if mask is None else (1.0 - mask) * torch.finfo(x.dtype).min
        return super().forward(x, encoder_hidden_states, added)


def test_a_context_with_a_mask_of_its_own_is_not_hidden_by_that_of_the_tokens() -> None:
    line = "x: B n E, attention_mask: B 1 1 n ones -> B n E"
    subject: Any = adapted_as(MaskedContext(), line)
    assert set(subject.paths) - set(subject.hiding) == {"encoder_hidden_states=x"}
    found = examine(subject, (Draw(0),), ("paths-agree", "finite"))
    assert [one.verdict for one in found] == ["holds", "holds"]
