"""Infer what the parameters of a function are from their names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..code import DoesNotFit, source_of

ROLES: dict[str, str] = {
    "query": "q query queries xq query_layer query_states q_ qs target q_x",
    "key": "k key keys xk key_layer key_states k_ ks",
    "value": "v value values xv value_layer value_states v_ vs",
    "tokens": "x t tensor inputs input hidden_states hidden_state tokens emb embeddings src xs x_ "
    "y input_tensor inputs_embeds input_embeds token_embedding token_embeddings qk "
    "features inp seq vec input_features key_values kv ys kv_x",
    "positions": "pos position positions position_ids pos_ids input_pos ids position_id indices "
    "coords coordinates p m positions_ids input_positions time timestep timesteps "
    "token_positions pos_id seq_pos pos_seq",
    "offset": "offset start start_pos start_index past_length past_key_values_length cache_len "
    "seqlen_offset seqlen_offsets position_offset start_position start_positions past_len "
    "cache_offset past past_seen_tokens step",
    "cos": "cos cosine cosines cos_cached freqs_cos rope_cos cos_ cos_emb c",
    "sin": "sin sine sines sin_cached freqs_sin rope_sin sin_ sin_emb s",
    "freqs": "freqs_cis freqs rope_cache freqs_complex angles freq_cis complex_freqs cis theta_cis "
    "rotary_freqs pos_cis rotations phases rope cache freq",
    "pair": "position_embeddings cos_sin rope_emb rotary rotary_emb rotary_pos_emb sincos "
    "position_embedding sin_cos pos_emb sinu_pos sinusoidal_pos pos_embs pos_embed "
    "rel_pos_emb rel_pos_embs r",
    "encoding": "query_pe key_pe q_pe k_pe query_pos key_pos q_pos k_pos pos_enc "
    "positional_encoding",
    "rotated": "rope_n_elem rotary_dim rotary_ndims rot_dim rope_dim d_rope qk_rope_dim "
    "qk_rope_head_dim rope_head_dim",
    "length": "seq_len seqlen length n max_len max_seq_len end l context_length q_len tgt_len "
    "num_queries query_length n_positions max_position size seq_length n_ctx block_size "
    "context_len max_length num_positions sequence_length max_position_embeddings qlen "
    "n_queries tq query_len max_seqlen seq_q lq max_seq_length n_tokens i n_position "
    "q_length max_seqlen_q max_seq_len_q num_tokens max_positions nq n_seq context ctx_len max_pos "
    "t_q len_q "
    "t_len time_steps n_steps seq_len_q tgt_seq_len n_pos num_pos",
    "keys": "key_length k_len kv_len src_len kv_seq_len num_keys n_keys tk key_len klen lk j seq_k "
    "k_length total_len kv_length nk s_len t_k len_k "
    "seq_len_k src_seq_len target_length max_seqlen_k max_seqlen_kv max_seq_len_k",
    "heads": "heads num_heads n_heads n_head h nheads nhead num_attention_heads n_h head_num "
    "no_heads",
    "groups": "kv_heads num_kv_heads n_kv_heads num_key_value_heads groups n_kv_head",
    "width": "head_dim d d_head rotary_dim n_elem dim_head d_k hd head_size head_width width dh "
    "rot_dim rope_dim headdim d_rope rotary_ndims rope_n_elem dim_heads dim_per_head",
    "embed": "d_model embed_dim n_embd hidden_dim hidden_size dim embed model_dim emb_dim d_hid "
    "n_state embedding_dim channels in_channels dim_model emb_size d_in d_out dims "
    "input_dim output_dim num_embed num_hidden num_pos_feats n_units features_dim "
    "in_features n_feat n_feats embed_size embedding_size demb d_emb d_embed dimension",
    "base": "base theta rope_theta rope_base temperature base_freq",
    "rows": "batch_size bsz batch bs bsize num_batches b_size",
    "mask": "mask attn_mask attention_mask bias attn_bias src_mask rel_pos_bias position_bias "
    "pos_bias relative_position_bias pair_bias",
    "padding": "key_padding_mask src_key_padding_mask padding_mask",
    "causal": "causal is_causal use_causal_mask",
    "dropout": "dropout dropout_p drop p_drop attn_drop attn_dropout attention_dropout resid_pdrop "
    "attn_pdrop drop_rate dropout_rate",
    "device": "device",
    "dtype": "dtype torch_dtype",
    "scale": "scale scaling softmax_scale sm_scale attn_scale xpos_scale",
    "window": "window window_size sliding_window w ws",
}
# What a line says of a parameter of a role, if nothing else is known.
USUAL_ARGUMENTS: dict[str, str] = {
    "length": " = n",
    "keys": " = n",
    "heads": " = H",
    "groups": " = G",
    "width": " = D",
    "embed": " = E",
    "rows": " = B",
    "offset": " = p",
    "base": " = 10000.0",
    "causal": " = False",
    "dropout": " = 0.0",
    "device": ' = "cpu"',
    "dtype": " = torch.float32",
    "window": " = 3",
    "scale": ": scale",
    "positions": ": B n positions",
}
BY_WORD = {word: role for role, words in ROLES.items() for word in words.split()}
CAPITALS = {
    "T": "length",
    "N": "length",
    "L": "length",
    "S": "keys",
    "H": "heads",
    "D": "width",
    "C": "embed",
    "E": "embed",
    "B": "rows",
    "W": "window",
}


INDEX = re.compile(r"(layer|block|head)_?(idx|index|id|number|i)")  # of a layer or another part
OF_TOKENS = re.compile(r"(seq|sequence|tokens?|time|length)_(dim|axis)")  # the number of an axis
TABLE_WORDS = r"freqs?|rope|rotary|pos|positions?|cached?|table|emb|embeddings?|half|values?"
TABLE = re.compile(rf"(?:(?:{TABLE_WORDS})_)*(cos|sin)(?:ines?)?(?:_(?:{TABLE_WORDS}))*")
PAIR = re.compile(
    rf"(?:(?:{TABLE_WORDS})_)*(?:cos_?sin|sin_?cos)(?:_(?:{TABLE_WORDS}|cache|tables?))*"
)
# One of several tables: for queries or keys, or for an axis.
SEVERAL = re.compile(r"((?:freqs?|cos|sin|cis|angles|rot(?:ary)?)(?:_\w+)?)_[qkxyzhw]")
# Positions along one axis of several, such as pos_h, row_ids or x_positions.
_SIDE = r"([thwxyz]|rows?|cols?|columns?|heights?|widths?|time|temporal|frames?|depth)"
_PLACED = r"(pos|positions?|(pos(ition)?_)?(ids?|idx|ind(ex|ices))|coords?|coordinates?)"
ALONG_AXIS = re.compile(rf"({_PLACED}_{_SIDE})|({_SIDE}_{_PLACED})|rows|cols|columns")
# Names of the sides of a grid.
SIDES = (("h", "w"), ("height", "width"), ("H", "W"), ("grid_h", "grid_w"), ("rows", "cols"))
ARRAY = re.compile(r"\bTensor\b")  # a theta that is an array holds angles, not a base
MAXIMUM = re.compile(r"max(imum)?(_?\w+)?")
CAPACITY = 2048  # passed for a maximum number of tokens or positions
NUMBER = re.compile(r"(typing\.)?(Optional\[)?(int|float|bool)\]?( \| None)?")  # not an array
# Roles of arrays; a number with the role of positions is the position of the first token.
ARRAYS = {
    *("query", "key", "value", "tokens", "positions", "axis", "encoding"),
    *("cos", "sin", "freqs", "pair", "mask", "padding"),
}
SUFFIX = re.compile(r"(?<=[a-z])_[A-Z]{2,6}$")  # axes at the end of a name, as in q_BLHD


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, role (or ""), whether it is required, its default and annotation."""

    name: str
    role: str
    required: bool
    default: Any = None
    annotation: Any = None

    @property
    def is_capacity(self) -> bool:
        """Whether the name means the maximum number of tokens, not how many there are.

        >>> [Parameter(name, role_of(name), True).is_capacity for name in ("max_len", "seq_len")]
        [True, False]
        """
        return self.role == "length" and bool(MAXIMUM.fullmatch(self.name.lower()))

    @property
    def is_number(self) -> bool:
        """Whether it is annotated as a number, so that it is not given an array.

        >>> [Parameter("dim", "", True, annotation=one).is_number for one in (int, "int | None", 3)]
        [True, True, False]
        """
        kind = self.annotation
        text = kind.__name__ if isinstance(kind, type) else str(kind)
        return bool(NUMBER.fullmatch(text))

    @property
    def is_module(self) -> bool:
        """Whether it is a module of which a function reads attributes, by name or annotation."""
        kind = self.annotation
        text = kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
        return "Module" in (text, self.name.capitalize())

    @property
    def is_unknown_number(self) -> bool:
        """Whether it is a required integer whose value nothing suggests."""
        whole = self.is_number and "int" in str(self.annotation)
        return self.required and whole and not (self.role or INDEX.fullmatch(self.name))


@lru_cache(maxsize=4096)
def role_of(name: str) -> str:
    """Return the role of a parameter of that name, or "".

    >>> role_of("position_ids"), role_of("rope_theta"), role_of("hidden_dims"), role_of("q_BLHD")
    ('positions', 'base', 'embed', 'query')
    >>> role_of("cos_freqs"), role_of("rope_sin_table"), role_of("is_cos"), role_of("cos_sin")
    ('cos', 'sin', '', 'pair')
    >>> role_of("rope_cos_sin"), role_of("sincos_cache"), role_of("cosine_sin_k")
    ('pair', 'pair', '')
    >>> role_of("freqs_cis_q"), role_of("cos_x"), role_of("cache_k"), role_of("pos_h")
    ('freqs', 'cos', '', 'axis')
    """
    word = SUFFIX.sub("", name).lower()
    one = word[:-1] if word.endswith(("dims", "sizes")) else word
    known = CAPITALS.get(name) or BY_WORD.get(word) or BY_WORD.get(one, "")
    table, several = TABLE.fullmatch(word), SEVERAL.fullmatch(word)
    if PAIR.fullmatch(word):
        return known or "pair"
    if known or table:
        return known or table[1]  # type: ignore[index]
    return role_of(several[1]) if several else "axis" if ALONG_AXIS.fullmatch(word) else ""


def parameters(call: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a call without ``self``, ``*args`` and ``**kwargs``.

    Raises ``DoesNotFit`` if the signature cannot be read.
    """
    module = hasattr(call, "forward") and not inspect.isclass(call)
    target = getattr(call, "forward") if module else call  # noqa: B009
    if not inspect.ismethod(target):
        target = getattr(target, "_torchdynamo_inline", target)  # a scripted function
    try:
        found = tuple(inspect.signature(target).parameters.values())
        found = _forwarded(call, found, "__init__") if inspect.isclass(call) else found
        found = _forwarded(type(call), found, "forward") if module else found
    except (TypeError, ValueError) as error:
        found = _documented(call)
        if not found:
            raise DoesNotFit(f"its signature cannot be read: {error}") from None
    read = (
        Parameter(
            p.name,
            role_of(p.name),
            p.default is p.empty,
            None if p.default is p.empty else p.default,
            None if p.annotation is p.empty else p.annotation,
        )
        for p in found
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )
    return tuple(replace(one, role=_as_annotated(one)) for one in read)


def _as_annotated(one: Parameter) -> str:
    """Return the role of a parameter, corrected by its annotation and its default.

    >>> _as_annotated(Parameter("pos", "positions", True, annotation=int))
    'offset'
    >>> _as_annotated(Parameter("p", "positions", False, default=0.5))
    ''
    """
    if one.role == "base" and ARRAY.search(str(one.annotation)):
        return "freqs"
    if one.role in ARRAYS and isinstance(one.default, float):
        return ""
    if one.role in ARRAYS and one.is_number:
        return "offset" if one.role == "positions" else ""
    return one.role


def _forwarded(
    cls: type[Any], found: tuple[inspect.Parameter, ...], method: str
) -> tuple[inspect.Parameter, ...]:
    """Return the parameters of a method, with those of the base class that it forwards to.

    A method forwards if it takes ``*args, **kwargs``.
    """
    known = {one.name: one for one in found}
    own = [above for above in cls.__mro__ if method in vars(above)]
    if method != "__init__" and (not own or "super()" not in source_of(vars(own[0])[method])):
        return found  # it may ignore further arguments
    for above in own if method == "__init__" else own[1:]:
        if not {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= {
            one.kind for one in found
        } or above.__module__.split(".")[0] in ("builtins", "torch"):
            break
        found = tuple(inspect.signature(vars(above)[method]).parameters.values())[1:]
        known = {**{one.name: one for one in found}, **known}
    return tuple(known.values())


def _documented(call: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """Read the signature at the beginning of the docstring of a function written in C."""
    line = " ".join((call.__doc__ or "").split("->")[0].split())
    name, opens, rest = line.partition("(")
    if not opens or not rest.endswith(")") or not name.isidentifier():
        return ()
    try:
        made: dict[str, Any] = {}
        exec(compile(f"def {name}({rest}: pass", "<doc>", "exec"), {}, made)
    except (SyntaxError, NameError):
        return ()
    return tuple(inspect.signature(made[name]).parameters.values())


LETTERS: dict[str, str] = {
    "b": "b bs bsz batch batch_size bsize nb n_batch B",
    "t": "t l s n seq sequence seq_len seqlen seq_length length tokens q_len T N L S M slen sl "
    "tgt_len m num_tokens sequence_length qlen seqlen_q",
    "h": "h nh heads n_heads num_heads n_head H nhead head n_local_heads nheads K",
    "d": "d hd dim head_dim d_k d_head D dh head_size E depth c k dim_head hs e embed_dim d_model "
    "embedding_dim features hidden hidden_size n_embd C",
}
AXIS = {word: letter for letter, words in LETTERS.items() for word in words.split()}
UNPACKED = re.compile(r"^\s*([\w\s,*]+?)\s*=\s*\w+\.(?:shape|size\(\))", re.MULTILINE)
WRITTEN = re.compile(r"[\[(]\s*(\w+\s*,\s*\w+\s*,\s*\w+(?:\s*,\s*\w+)?)\s*[\])]")


def order_in(text: str, *, written: bool = True) -> str:
    """Return the order of axes that the source states: ``b, t, h, d = x.shape``, or (B, T, H, D).

    ``written``: docstrings and comments count too, not only code.

    >>> order_in("B, H, T, D = q.shape")
    'bhtd'
    >>> order_in("return x")
    ''
    """
    for pattern in (UNPACKED, WRITTEN) if written else (UNPACKED,):
        for found in pattern.findall(text):
            letters = [
                AXIS.get(name.strip(), AXIS.get(name.strip().lower(), ""))
                for name in found.split(",")
            ]
            if sorted(letters) in (["b", "d", "h", "t"], ["b", "d", "t"]):
                return "".join(letters)
    return ""


def sizes_of(holder: Any, role: str) -> tuple[int, ...]:
    """Return the numbers that an object or its ``config`` holds under names of a role, in order."""
    held: Mapping[str, Any] = {}
    config = getattr(holder, "config", None)
    for one in (holder, config):
        held = {**getattr(one, "__dict__", {}), **held}
    named = [held[word] for word in ROLES[role].split() if word in held]
    return tuple(v for v in named if isinstance(v, int) and not isinstance(v, bool) and v > 0)
