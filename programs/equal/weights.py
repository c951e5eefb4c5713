"""Which parameter of a module is which weight of a layer, by their names."""

from __future__ import annotations

import re

from torch import nn

from .expressions import Expression, expressions

NAMES = {
    "wq": r"(q_proj|wq|to_q|query|q_lin|q)\.weight",
    "wk": r"(k_proj|wk|to_k|key|k_lin|k)\.weight",
    "wv": r"(v_proj|wv|to_v|value|v_lin|v)\.weight",
    "wo": r"(o_proj|out_proj|wo|to_out(\.0)?|dense|out_lin|c_proj|out|proj|o)\.weight",
    "bq": r"(q_proj|wq|to_q|query|q_lin|q)\.bias",
    "bk": r"(k_proj|wk|to_k|key|k_lin|k)\.bias",
    "bv": r"(v_proj|wv|to_v|value|v_lin|v)\.bias",
    "bo": r"(o_proj|out_proj|wo|to_out(\.0)?|dense|out_lin|c_proj|out|proj|o)\.bias",
    "nq": r"(q_norm|query_norm|q_layernorm|query_layernorm)\.weight",
    "nk": r"(k_norm|key_norm|k_layernorm|key_layernorm)\.weight",
    "sink": r"sinks?",
    "table": r"rel(ative)?_(attention|pos(ition)?)_(bias|table|embedding)(_table)?(\.weight)?",
}
FUSED = re.compile(
    r"(qkv_proj|qkv|c_attn|query_key_value|in_proj|Wqkv|W_pack|to_qkv)[._](weight|bias)"
)


def weights_of(
    module: nn.Module, heads: int | None = None, groups: int | None = None
) -> dict[str, Expression]:
    """Which parameter of a module is which weight of a layer, by their names.

    ``heads``, ``groups``: of queries, of keys and values.  Fused weights are cut where queries,
    keys and values follow each other.
    """
    known = dict(module.named_parameters())
    found: dict[str, str] = {}
    for weight, pattern in NAMES.items():
        hits = [name for name in known if re.fullmatch(rf"(.+\.)?{pattern}", name)]
        if len(hits) == 1:
            found[weight] = hits[0]
    fused = [name for name in known if FUSED.fullmatch(name)]
    for name in fused:
        rows = known[name].shape[0]
        queries, keys = heads or 1, groups or heads or 1
        width = rows // (queries + 2 * keys)
        cuts = [0, queries * width, (queries + keys) * width, rows]
        letter = "w" if name.endswith("weight") else "b"
        found |= {f"{letter}{c}": f"{name}[{cuts[k]}:{cuts[k + 1]}]" for k, c in enumerate("qkv")}
    return {name: expressions(f"{name} = {told}")[name] for name, told in found.items()}
