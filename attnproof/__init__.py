"""attnproof: theorems on attention and positional encodings, proved and measured.

These are all the public names.  Each is loaded when it is first used, so that
``import attnproof`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cards import card as card
    from .cards import table as table
    from .catalogue import load_catalogue as load_catalogue
    from .declarations import hypothesis as hypothesis
    from .encoding import Encoding as Encoding
    from .encoding_law import EncodingLaw as EncodingLaw
    from .encoding_law import law as law
    from .numeric.check import measure as measure
    from .programs.program import Program as Program
    from .programs.program import program as program
    from .registry import load_encodings as load_encodings
    from .symbolic.array import Array as Array
    from .symbolic.array import AxisMismatch as AxisMismatch
    from .symbolic.claim import Claim as Claim
    from .symbolic.claim import Law as Law
    from .symbolic.claim import all_positive as all_positive
    from .symbolic.claim import at_least as at_least
    from .symbolic.claim import chain as chain
    from .symbolic.claim import differ as differ
    from .symbolic.claim import equal as equal
    from .symbolic.claim import exists as exists
    from .symbolic.claim import for_all as for_all
    from .symbolic.claim import greater as greater
    from .symbolic.claim import iterate as iterate
    from .symbolic.claim import over as over
    from .symbolic.claim import rows as rows
    from .symbolic.definition import definition as definition
    from .symbolic.givens import angle as angle
    from .symbolic.givens import boolean as boolean
    from .symbolic.givens import frequencies as frequencies
    from .symbolic.givens import function as function
    from .symbolic.givens import index_below as index_below
    from .symbolic.givens import index_map as index_map
    from .symbolic.givens import injection as injection
    from .symbolic.givens import inverse as inverse
    from .symbolic.givens import natural as natural
    from .symbolic.givens import nonnegative as nonnegative
    from .symbolic.givens import orthogonal as orthogonal
    from .symbolic.givens import permutation as permutation
    from .symbolic.givens import positions as positions
    from .symbolic.givens import positive as positive
    from .symbolic.givens import probability_space as probability_space
    from .symbolic.givens import real as real
    from .symbolic.givens import sizes as sizes
    from .symbolic.givens import standard as standard
    from .symbolic.prove import decide as decide
    from .symbolic.statement import Statement as Statement
    from .symbolic.statement import Theorem as Theorem
    from .symbolic.statement import theorem as theorem
    from .theorems.definitions.attention import attention as attention
    from .theorems.definitions.attention import biased_attention as biased_attention
    from .theorems.definitions.attention import causal as causal
    from .theorems.definitions.attention import masked_attention as masked_attention
    from .theorems.definitions.attention import multi_head as multi_head
    from .theorems.definitions.attention import self_attention as self_attention
    from .theorems.definitions.attention import softmax as softmax
    from .theorems.definitions.positions import alibi as alibi
    from .theorems.definitions.positions import sinusoidal as sinusoidal
    from .theorems.definitions.rotary import block_rotation as block_rotation
    from .theorems.definitions.rotary import rotate as rotate
    from .theorems.definitions.rotary import rotate_half as rotate_half
    from .theorems.definitions.rotary import rotation as rotation

__version__ = "0.1.0"

_HOMES = {
    "cards": ("card", "table"),
    "catalogue": ("load_catalogue",),
    "encoding": ("Encoding",),
    "declarations": ("hypothesis",),
    "encoding_law": ("EncodingLaw", "law"),
    "numeric.check": ("measure",),
    "programs.program": ("Program", "program"),
    "registry": ("load_encodings",),
    "symbolic.array": ("Array", "AxisMismatch"),
    "symbolic.claim": (
        "Claim", "Law", "all_positive", "at_least", "chain", "differ", "equal", "exists",
        "for_all", "greater", "iterate", "over", "rows",
    ),
    "symbolic.definition": ("definition",),
    "symbolic.givens": (
        "angle", "boolean", "frequencies", "function", "index_below", "index_map",
        "injection", "inverse", "natural", "nonnegative", "orthogonal", "permutation",
        "positions", "positive", "probability_space", "real", "sizes", "standard",
    ),
    "symbolic.prove": ("decide",),
    "symbolic.statement": ("Statement", "Theorem", "theorem"),
    "theorems.definitions.attention": (
        "attention", "biased_attention", "causal", "masked_attention", "multi_head",
        "self_attention", "softmax",
    ),
    "theorems.definitions.rotary": ("block_rotation", "rotate", "rotate_half", "rotation"),
    "theorems.definitions.positions": ("alibi", "sinusoidal"),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 (the names are strings, from the table above)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"attnproof has no {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
