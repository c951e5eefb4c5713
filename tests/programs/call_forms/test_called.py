"""Calls that are guessed of code which wants more than tokens, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from attnproof.programs.applicable_laws import not_asked
from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify.influence import layer_parts
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import Signature
from attnproof.programs.subject import _FROM_GUESS, adapted_as
from attnproof.programs.subjects import Attention, Rotary

from . import called_code as code

THREE = "query: B n E, key: B n E, value: B n E"
LINES: dict[str, tuple[Any, str]] = {
    "a config": (code.OfConfig, "x: B n E -> B n E"),
    "a constructor that hands on": (code.HandedOn, "x: B n E -> B n E"),
    "a namespace": (code.OfArguments, f"{THREE} -> B n E"),
    "a forced mask": (code.ForcedMask, f"{THREE}, mask: B 1 n keep -> B n E"),
    "a mask that stands for its own": (code.Replaced, "x: B n E -> B n E"),
    "a table of offsets": (code.Relative, f"{THREE}, pos_emb: 1 (2 n - 1) E offsets -> B n E"),
    "two streams": (
        code.Streams,
        "queries: B n E, keys: B n E, query_pe: B n E encoding, key_pe: B n E encoding -> B n E, _",
    ),
    "a pooler": (code.Pooler, "x: B n E -> B 3 E"),
    "squares": (code.Squares, "q: B (n n) E, k: B (n n) E, v: B (n n) E -> B (n n) E"),
    "tables one by one": (code.RotatingAttention, "x: B n E, cos: 1 n D, sin: 1 n D -> B n E"),
    "a table alone": (
        code.OnlyAngles,
        "seq: n positions -> pos: n D; then apply_rotary(t: B H n D, pos: n D angles -> t)",
    ),
    "a mask in an object": (code.causal_of, "query: B H r D, key: B H n D -> {seen: 1 1 r n keep}"),
    "a mask by a config": (
        code.causal_by,
        "inputs_embeds: B n E, attention_mask: B n keep, past_key_values = None -> B 1 n n keep",
    ),
    "keys of their own": (code.Powers, "x: B n D -> x; keys with downscale = True"),
    "offsets beside tokens": (code.offsets_and_tokens, "x: B n E -> _, 1 (2 n - 1) E"),
    "an image": (code.of_image, "x: B E h w -> B E h w"),
    "a start": (code.started, "qlen = r, klen = n, step = (n - r) -> 1 r n"),
}
KINDS = {"offsets beside tokens": "additive", "an image": "additive", "a start": "bias"}


@pytest.mark.parametrize("form", LINES)
def test_the_call_is_guessed_and_can_be_told(form: str) -> None:
    thing, line = LINES[form]
    kind = KINDS.get(form)
    guessed = adapted_as(thing, kind=kind)
    assert guessed.line == line == str(parse(line))
    assert adapted_as(thing, line, kind=guessed.kind).line == line


TOLD = {
    "cross": (code.ForcedMask, "query: B r E, key: B n E, value: B n E, mask: B 1 n keep -> B r E"),
    "streams": (
        code.Streams,
        "queries: B r E, keys: B n E, query_pe: B r E, key_pe: B n E -> out: B r E, _",
    ),
    "multiples": (code.Pooler, "x: B (4 n) E -> B 3 E"),
}


@pytest.mark.parametrize("form", TOLD)
def test_queries_and_keys_may_have_letters_of_their_own(form: str) -> None:
    subject: Any = adapted_as(*TOLD[form], kind="attention")
    rows = 3 if form == "multiples" else 1  # which are joined along the features
    out = subject.layer(torch.randn(2, 5, subject.embed))
    assert out.shape == (2, 5, rows * subject.embed)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "a size that no name says": (code.Unnamed, "IndexError"),
    "a mask that does nothing": (code.Doubtful, "whose meaning is not known"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_not_seen_is_refused(form: str) -> None:
    thing, why = REFUSED[form]
    with pytest.raises(NoAdapter, match=why):
        adapted_as(thing)


def test_what_was_built_is_told_and_can_be_changed() -> None:
    told = adapted_as(code.OfConfig)
    assert "--set config.n_embd=16 config.n_head=2 config.depth=2 layer_index=0" in told.adapted
    wide: Any = adapted_as(code.OfConfig, settings={"config.n_embd": 24})
    assert wide.embed == 24
    said = adapted_as(code.OfArguments).adapted
    assert "args.unscaled=False args.encoder_embed_dim=16 self_attention=True" in said
    flag: Any = adapted_as(code.OfArguments, settings={"args.unscaled": True})
    assert not flag.module.scaled


def found(subject: Any, law: str) -> str:
    (one,) = examine(subject, laws=[law])
    return one.verdict


def test_a_pooler_does_not_see_the_order_of_tokens() -> None:
    assert found(adapted_as(code.Pooler), "permutation") == "holds"
    assert found(adapted_as(code.FirstPooler), "permutation") != "holds"


def test_that_squares_have_no_proof_is_told_in_words() -> None:
    subject = adapted_as(code.Pooler, "x: B (n n) E -> B 3 E")
    assert "this code takes (n n)" in prove(subject, ["rows-of-batch-apart"]).why


def test_a_pooler_of_blocks_is_proved_for_whole_blocks() -> None:
    subject = adapted_as(code.Pooler, "x: B (4 n) E -> B 3 E", kind="attention")
    (one,) = prove(subject, ["rows-of-batch-apart"]).findings
    assert one.verdict == "holds"
    assert "whole blocks of 4 tokens" in [told.text for told in one.assuming]


def test_keys_undo_what_queries_are_multiplied_by() -> None:
    subject = adapted_as(code.Powers)
    assert isinstance(subject, Rotary)
    assert found(subject, "relative") == "holds"
    assert found(subject, "norm") == "not asked"
    told = adapted_as(code.Powers, "x: B n D -> x", kind="rotary", width=8)
    assert found(told, "relative") == "holds"
    undone = adapted_as(code.Undone, kind="rotary")
    assert "keys with" not in undone.line
    assert found(undone, "relative") == "broken"


def test_the_last_rows_are_asked_where_the_start_is_told() -> None:
    assert found(adapted_as(code.started), "last-rows") == "holds"
    left = adapted_as(code.started, "qlen = r, klen = n -> 1 r n")
    assert found(left, "last-rows") == "not asked"

    def first(qlen: int, klen: int) -> torch.Tensor:
        return code.started(qlen, klen)

    wrong = adapted_as(first, "qlen = r, klen = n -> 1 r n")
    assert found(wrong, "last-rows") == "broken"


def test_angles_that_are_rounded_break_no_law_of_offsets() -> None:
    assert found(adapted_as(code.rotated_bias), "offset-only") == "holds"

    def moved(length: int) -> torch.Tensor:
        return code.rotated_bias(length) * (1 + 1e-3 * torch.arange(length)[:, None])

    assert found(adapted_as(moved, "length = n -> n n"), "offset-only") == "broken"


def test_a_context_may_have_a_default_and_other_features() -> None:
    subject = adapted_as(code.OfContext(), name="cross")
    assert "--call 'x: B r E tokens, context: B n 24 tokens -> B r E'" in subject.adapted
    assert not_asked("causal", subject).startswith("keys and values come from a context")
    assert isinstance(subject, Attention)
    found = {one.law: one.verdict for one in prove(subject, ["permutation"]).findings}
    assert found == {"permutation": "holds"}


@pytest.mark.parametrize(
    ("made", "more"), [(code.OfContext, " alone"), (code.OfContextAndTokens, ", and other tokens")]
)
def test_whether_the_context_alone_is_read_is_seen(made: Any, more: str) -> None:
    line = "x: B r E tokens, context: B n 24 tokens -> B r E"
    subject: Any = adapted_as(made(), line, kind="attention")
    with torch.no_grad():
        (mask,) = (one for one in layer_parts(subject, Draw()) if one.name == "mask")
    assert mask.words == f"cross-attention: a token reads the context{more}"


def test_a_generator_of_the_code_is_no_array() -> None:
    subject = adapted_as(code.Noisy(), name="noisy")
    found = prove(subject, ["permutation"])
    assert not [one for one in found.findings if one.verdict == "holds"]
    assert found.why.startswith("torch.export refuses")


def test_the_sides_of_an_image_are_lengths_of_their_own() -> None:
    subject = adapted_as(code.on_a_grid, name="on_a_grid")
    assert "--call 'dim = E, h = h, w = w -> (h w) E'" in subject.adapted


def sized(call: Signature) -> int:
    axes = call.arrays[0].axes
    assert axes is not None
    return axes[0].size({})


def test_a_fault_of_ours_in_a_guess_is_told_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_FROM_GUESS, "rotary", lambda _: sized(parse("x: B n E -> x")))
    with pytest.raises(NoAdapter, match="a fault of attnproof, please report it: KeyError"):
        adapted_as(lambda q, position_ids: q * position_ids, name="rope", kind="rotary")
