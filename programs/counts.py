"""Biases and masks whose call is told: made from lengths alone."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..numeric.programs.adapters.code import Code
from ..numeric.programs.adapters.counts import rows_of
from ..numeric.programs.subjects import Bias, Mask
from .layout import read_back
from .program import Program
from .roles import SIZES, common, lengths_of, result_axes, returned
from .signature import Axis, Signature, SignatureError

__all__ = ["bias", "mask"]


def _counted(code: Code, signature: Signature, heads: bool) -> Callable[[int, int], Tensor]:
    """(queries, keys) -> what the code gives; of code of one length the last rows are taken."""
    program = Program(code.call, signature, code.name)
    back = returned(signature, ("out",))[0]
    axes = result_axes(signature, back)
    square = "r" not in signature.letters
    wanted = (("H",) if heads else ()) + ("r", "n")
    if square:
        place = next((k for k, a in enumerate(axes) if str(a) == "n"), None)
        if place is None or [str(a) for a in axes].count("n") != 2:
            raise SignatureError(
                f"wanted a result with axes of queries r and keys n, or n n for "
                f"one length, got {signature}"
            )
        axes = tuple(
            Axis(((axes[place].terms[0][0], ("r",)),)) if k == place else a
            for k, a in enumerate(axes)
        )

    def call(queries: int, keys: int) -> Tensor:
        rows = keys if square else queries
        lengths = lengths_of(signature, r=rows, n=keys, B=1, H=code.options.heads or SIZES["H"])
        found = read_back(program.run({}, lengths)[back], axes, wanted, lengths)
        return rows_of(found, queries) if square else found

    return call


def bias(code: Code, signature: Signature) -> Bias:
    """A bias: lengths of queries and keys -> (H, T, S).  Raises :class:`SignatureError`."""
    call = _counted(code, signature, heads=True)
    heads = call(2, 3).shape[0]
    return Bias(
        **common(code, signature, bias),
        heads=heads,
        bias=call,
    )


def mask(code: Code, signature: Signature) -> Mask:
    """A mask: lengths of queries and keys -> (T, S).  Raises :class:`SignatureError`."""
    call = _counted(code, signature, heads=False)
    kind = next((one.kind for one in signature.results if one.axes is not None), "")
    call(2, 3)
    return Mask(
        **common(code, signature, mask),
        mask=call,
        true_means="hidden" if kind == "hide" else "visible",
    )
