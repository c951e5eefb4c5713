"""Models that take token ids, called with vectors in place of the output of their embedding.

A law of a map of tokens is about vectors.  If it holds for all vectors, it holds for those in the
embedding, so a model that uses its ids only through the embedding satisfies it for all ids.
Whether it does is tested by runs with ids and with the vectors of the same ids.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from ..calls.attention import takes_mask
from ..code import Code, DoesNotFit
from ..loading.names import parameters
from ..loading.source_numbers import numbers_in
from .parts import CACHE_NAMES

IDS = re.compile(r"(\w+_)?(ids?|idx|indices|tokens?|inp(ut)?s?|words?|src|x|seq(uence)?)")
TARGETS = re.compile(r"targets?|labels?|y")  # ids that some models need to return all outputs
ROWS, TOKENS = 2, 6
LONGER, LONGEST, MAX_NUMBERS = (12, 33, 70), 1100, 8  # tokens, and rows, of further runs
REPEATS = 8  # repeated calls of code that may be random
MIN_WORDS = 16  # least size of a vocabulary
VECTORS: ContextVar[Tensor | None] = ContextVar("attnproof_vectors", default=None)


class EmbeddingOverride(nn.Embedding):
    """An embedding that returns the vectors it is given, whatever the ids are."""

    def __init__(self, replaced: nn.Embedding) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(replaced.__dict__)
        self.replaced = replaced.forward

    def forward(self, ids: Tensor) -> Tensor:
        """Return the given vectors; without any, those of the ids."""
        vectors = VECTORS.get()
        return self.replaced(ids) if vectors is None else vectors


class OnVectors(nn.Module):
    """A model of ids as a map of vectors: x (B, n, E) -> its output for each token (B, n, F).

    ``path``: of its embedding; ``name``: of the parameter that takes ids; ``word``: the id at each
    place when the embedding returns vectors instead; ``aims``: another parameter that is given the
    ids, "" for none.  ``ignored``: the number of returned arrays without a row per token, which are
    not checked.  ``further``: what else the model requires: masks and caches, passed as None, and
    the number of earlier tokens, 0.
    """

    ignored = 0

    def __init__(self, model: nn.Module, path: str, name: str, word: int, aims: str) -> None:
        super().__init__()
        self.model, self.path, self.name, self.word, self.aims = model, path, name, word, aims
        self.further = _further(model)
        owner, _, last = path.rpartition(".")
        before = model.get_submodule(path)
        if not isinstance(before, EmbeddingOverride):
            assert isinstance(before, nn.Embedding)  # checked by the caller
            setattr(model.get_submodule(owner), last, EmbeddingOverride(before))

    def forward(self, x: Tensor) -> Tensor:
        """Return the model's output when its embedding returns x."""
        return self.of_vectors(x)

    def of_vectors(self, x: Tensor, **given: int) -> Tensor:
        """Return the same output, with these numbers among the arguments of the model."""
        ids = torch.full(x.shape[:2], self.word, dtype=torch.int64, device=x.device)
        before = VECTORS.set(x)
        try:
            return self.of_ids(ids, **given)
        finally:
            VECTORS.reset(before)

    def of_ids(self, ids: Tensor, **given: int) -> Tensor:
        """Return the model's output for these ids, a row for each; several arrays are concatenated.

        Raises ``DoesNotFit`` if there is none.
        """
        more: dict[str, Any] = {**self.further, **given}
        more |= {self.aims: ids} if self.aims else {}
        if "use_cache" in inspect.signature(self.model.forward).parameters:
            more["use_cache"] = False
        found = self.model(**{self.name: ids}, **more)
        if dataclasses.is_dataclass(found) and not isinstance(found, Mapping):
            found = vars(found)
        leaves = tree_leaves(dict(found) if isinstance(found, Mapping) else found)
        every = [one for one in leaves if isinstance(one, Tensor)]
        rows = [x for x in every if x.dim() == 3 and x.shape[:2] == ids.shape]
        if not rows:
            raise DoesNotFit(f"given {self.name} (B, n), it does not return numbers (B, n, F)")
        self.ignored = len(every) - len(rows)
        return torch.cat(rows, -1) if len(rows) > 1 else rows[0]

    def vectors(self, ids: Tensor) -> Tensor:
        """Return the output of its embedding."""
        found: Tensor = self.model.get_submodule(self.path)(ids)
        return found


class OnVectorsFrom(OnVectors):
    """The same for a model that requires the number of earlier tokens, whose state it keeps."""

    def forward(self, x: Tensor, start_pos: int) -> Tensor:  # type: ignore[override]
        """Return the model's output behind ``start_pos`` tokens when its embedding returns x."""
        (name,) = _starts(self.model)
        return self.of_vectors(x, **{name: start_pos})


def _wrapped(model: nn.Module, path: str, name: str, word: int, aims: str) -> OnVectors:
    """Return the model on vectors, with the number of earlier tokens if it requires that."""
    kind = OnVectorsFrom if len(_starts(model)) == 1 else OnVectors
    return kind(model, path, name, word, aims)


def has_embedding(code: Code) -> bool:
    """Whether it may be a model of ids: a module with embeddings among its parts."""
    whole = code.module
    parts = () if whole is None or code.call is not whole else whole.modules()
    return any(isinstance(one, nn.Embedding) and one is not whole for one in parts)


def on_vectors(code: Code) -> tuple[Code, str, tuple[str, ...]]:
    """Return a model of ids as code on vectors, its call in words, and the conditions of proofs.

    Raises ``DoesNotFit`` for other code, and if it uses its ids other than through an embedding.
    """
    if code.module is None or not has_embedding(code):
        raise DoesNotFit("it is not a module with an embedding of words")
    name = _parameter(code)
    path = _embedding(code.module, name)
    whole, odd = _read(code, path, name)
    given = [f"{name}: B n ids", *[f"{whole.aims} = {name}"] * bool(whole.aims)]
    given += [f"{one} = {value}" for one, value in whole.further.items() if value is None]
    told = f"{code.name} called with {', '.join(given)}; any vectors replace the output of {path}"
    if whole.ignored:
        told += "; of its results, the arrays with a row for each word are checked"
    alone = f"{name} is int64 and acts only through {path}, as in every run"
    if odd:
        alone += f", in which no id was {_listed(odd)}"
    left = [f"{one} is None" for one, value in whole.further.items() if value is None]
    return _on_vectors(code, whole), told, (alone, *left)


def _on_vectors(code: Code, whole: OnVectors) -> Code:
    """Return the model as code that takes vectors; rebuilt unchanged, it is not examined again."""

    def again(**settings: Any) -> Code:
        fresh = code.again(**settings)
        if settings or fresh.module is None:
            return on_vectors(fresh)[0]
        return _on_vectors(
            fresh, _wrapped(fresh.module, whole.path, whole.name, whole.word, whole.aims)
        )

    width = whole.vectors(torch.zeros(1, 1, dtype=torch.int64)).shape[-1]
    options = dataclasses.replace(code.options, embed=width, arguments={})
    return dataclasses.replace(code, call=whole, module=whole, again=again, options=options)


def _listed(ids: Sequence[int]) -> str:
    *first, last = map(str, ids)
    return f"{', '.join(first)} or {last}" if first else last


def _parameter(code: Code) -> str:
    """Return the parameter that takes ids: the only required one, or one with such a name."""
    further = _further(code.call)
    known = [one for one in parameters(code.call) if not (one.is_number or one.name in further)]
    needed = [one for one in known if one.required]
    named = [one for one in needed or known if IDS.fullmatch(one.name)]
    if len(needed) > 1 or not named:
        raise DoesNotFit("it has no single parameter for ids")
    return named[0].name


def _further(model: Any) -> dict[str, int | None]:
    """Return the required masks and caches of a model, which are passed as None, and its start."""
    needed = [one for one in parameters(model) if one.required]
    left = [one.name for one in needed if takes_mask(one) or one.name in CACHE_NAMES]
    return {**dict.fromkeys(left), **dict.fromkeys(_starts(model), 0)}


def _starts(model: Any) -> list[str]:
    """Return the required parameters that take the number of earlier tokens, by their names."""
    return [one.name for one in parameters(model) if one.required and one.role == "offset"]


def _embedding(model: nn.Module, name: str) -> str:
    """Return the path of the one embedding that is given the ids themselves."""
    parts = {
        path: one
        for path, one in model.named_modules()
        if isinstance(one, nn.Embedding) and one.num_embeddings >= MIN_WORDS
    }
    if not parts or "" in parts:
        raise DoesNotFit(f"it has no embedding of a vocabulary of {MIN_WORDS} words or more")
    most = min(one.num_embeddings for one in parts.values())
    ids = torch.randint(most, (ROWS, TOKENS), generator=torch.Generator().manual_seed(3))
    met: dict[str, None] = {}

    def listening(path: str, forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def listens(input: Tensor) -> Tensor:  # noqa: A002 (the name of the parameter)
            if torch.equal(input, ids):
                met[path] = None
            return forward(input)

        return listens

    own = {path: vars(one).get("forward") for path, one in parts.items()}
    for path, one in parts.items():  # a hook would miss a direct call of forward
        vars(one)["forward"] = listening(path, one.forward)
    try:
        model(**{name: ids}, **_further(model))
    finally:
        for path, one in parts.items():
            del vars(one)["forward"]
            vars(one).update({"forward": own[path]} if own[path] else {})
    if len(met) != 1:
        raise DoesNotFit(f"wanted one embedding that is given {name}, got {len(met)}")
    return next(iter(met))


def _read(code: Code, path: str, name: str) -> tuple[OnVectors, list[int]]:
    """Return the model on vectors, and the ids that it uses other than through its embedding.

    Raises ``DoesNotFit`` if it uses most ids that way, or if no token reads another.
    """
    model = code.module
    assert model is not None  # checked by the caller
    embedding = model.get_submodule(path)
    assert isinstance(embedding, nn.Embedding)  # as found by _embedding
    words = embedding.num_embeddings
    special = _special(model, words)
    plain = torch.tensor([word for word in range(words) if word not in special])
    found = [one.name for one in parameters(model) if TARGETS.fullmatch(one.name)]
    failed = DoesNotFit("")
    for aims in ("", *found):
        whole = _wrapped(model, path, name, int(plain[len(plain) // 2]), aims)
        try:
            _require_alone(whole, plain, _bands(model, words, plain))
        except DoesNotFit as error:
            failed = error
            continue
        return whole, _odd(whole, plain, special)
    raise failed


def _special(model: nn.Module, words: int) -> list[int]:
    """Return ids that may have a meaning: first, last, padding, and numbers of the code.

    Such a number may also count from the end.  At most half of a vocabulary counts as special, so
    that a small one keeps plain ids.
    """
    padding = (getattr(part, "padding_idx", None) for part in model.modules())
    numbers = numbers_in([model])
    found = [words - 1, 0, *(word for word in padding if word is not None), *numbers]
    found += [words - n for n in numbers]
    return list(dict.fromkeys(word for word in found if 0 <= word < words))[: words // 2]


def _bands(model: nn.Module, words: int, plain: Tensor) -> list[Tensor]:
    """Return plain ids between any two numbers by which code may separate kinds of ids.

    These are the code's own numbers and the powers of two, from both ends.
    """
    powers = (2**k for k in range(words.bit_length()))
    numbers = [n for n in (*numbers_in([model]), *powers) if 0 < n < words]
    edges = sorted({0, words, *numbers, *(words - n for n in numbers)})
    bands = (plain[(low <= plain) & (plain < high)] for low, high in pairwise(edges))
    return [band for band in bands if len(band)]


def _odd(whole: OnVectors, plain: Tensor, special: Sequence[int]) -> list[int]:
    """Return the special ids that do more than their vectors, alone, repeated or among others."""
    known: list[int] = []
    odd: list[int] = []
    for word in special:
        rows = _rows_with(plain, word)
        tries = (torch.cat((rows, _rows_beside(plain, word, known))), *rows[:, None])
        (known if all(_agrees(whole, ids) for ids in tries) else odd).append(word)
    return odd


def _rows_with(plain: Tensor, word: int) -> Tensor:
    """Return rows of ids in which a word comes first, last, between others, and repeatedly."""
    ids = plain[torch.arange(4 * TOKENS) % len(plain)].reshape(4, TOKENS).clone()
    ids[0, 0] = ids[1, TOKENS // 2] = ids[2, -1] = word
    ids[3, 1::2] = word
    return ids


def _rows_beside(plain: Tensor, word: int, others: Sequence[int]) -> Tensor:
    """Return rows of ids in which a word comes after each of the others, and before it."""
    ids = plain[torch.arange(2 * len(others) * TOKENS) % len(plain)].reshape(-1, 2, TOKENS).clone()
    ids[:, 0, 1] = ids[:, 1, -2] = torch.tensor(others, dtype=torch.int64)
    ids[:, 0, -2] = ids[:, 1, 1] = word
    return ids.flatten(0, 1)


def _agrees(whole: OnVectors, ids: Tensor) -> bool:
    """Whether the vectors of ids give the output of the ids, a few rows at a time if need be."""
    try:
        return torch.equal(whole.of_ids(ids), whole.of_vectors(whole.vectors(ids)))
    except Exception:
        if len(ids) <= ROWS:
            raise
    return all(_agrees(whole, few) for few in torch.split(ids, ROWS))


def _reason_unlike(whole: OnVectors, ids: Tensor) -> DoesNotFit:
    """Return the reason why the vectors of ids do not give the output of the ids."""
    again = (whole.of_ids(ids) for _ in range(REPEATS))
    first = whole.of_ids(ids)
    if not all(torch.equal(one, first) for one in again):
        return DoesNotFit("equal calls in evaluation give different results")
    return DoesNotFit(f"it uses {whole.name} other than through {whole.path}")


def _require_own(whole: OnVectors, ids: Tensor) -> None:
    """Refuse an embedding in which the vector of an id depends on the others."""
    vectors, words = whole.vectors(ids), ids.flatten().tolist()
    each = {word: whole.vectors(torch.tensor([[word]]))[0, 0] for word in set(words)}
    apart = torch.stack([each[word] for word in words]).reshape(vectors.shape)
    if not torch.equal(vectors, apart):
        raise DoesNotFit(f"the output of {whole.path} for an id depends on the other ids")


def _require_alone(whole: OnVectors, plain: Tensor, bands: Sequence[Tensor]) -> None:
    """Refuse a model that uses ids beyond its embedding, or whose tokens never interact.

    ``bands``: ids of one kind each, if code tells kinds apart by their numbers.
    """
    generator = torch.Generator().manual_seed(5)

    def drawn(among: Tensor, rows: int, tokens: int) -> Tensor:
        return among[torch.randint(len(among), (rows, tokens), generator=generator)]

    beyond = [n + 1 for n in numbers_in([whole.model]) if TOKENS < n < LONGEST][:MAX_NUMBERS]
    few = ((ROWS, n) for n in (1, 2, TOKENS, *LONGER, *beyond))
    for rows, tokens in (*few, (1, TOKENS), *((n, 2) for n in (*LONGER, *beyond))):
        ids = drawn(plain, rows, tokens)
        _require_own(whole, ids)
        try:
            alone = _agrees(whole, ids)
        except Exception:
            if rows <= ROWS and tokens <= TOKENS:
                raise
            continue  # the code may not take so many
        if not alone:
            raise _reason_unlike(whole, ids)
    kinds = torch.stack([drawn(band, TOKENS, TOKENS) for band in bands])
    mixed = torch.randint(len(bands), (len(bands), TOKENS), generator=generator)
    of_all = kinds[mixed, 0, torch.arange(TOKENS)]
    for ids in (*kinds, of_all):
        if not _agrees(whole, ids):
            raise _reason_unlike(whole, ids)
    ids = plain[torch.randint(len(plain), (ROWS, TOKENS), generator=generator)]
    first, other = whole.of_ids(ids), ids.clone()
    other[:, TOKENS // 2] = plain[(plain == ids[0, TOKENS // 2]).int().argmin()]
    changed = (whole.of_ids(other) != first).any(-1).any(0)
    if int(changed.sum()) < 2:
        raise DoesNotFit("none of its tokens reads another")
