r"""LaTeX of terms, claims, statements and givens.

Formulas are printed as they were written: with matrices, names and folded definitions.

>>> from attnproof.symbolic.givens import permutation, real, sizes
>>> n, l = sizes("n l")
>>> Q, K = (real(n, l).named(name) for name in "QK")
>>> latex((Q @ K[permutation(n).named("sigma")].mT / l**0.5).term)
'\\frac{Q (\\sigma K)^{\\top}}{\\sqrt{\\ell}}'
"""

from .general_entries import letter as index_letter
from .general_entries import names_in
from .printer import name_latex
from .statements import (
    NOTATION,
    RELATIONS,
    claim_latex,
    fact_latex,
    latex,
    latex_pair,
    membership,
    sizes_latex,
    statement_latex,
    unfolded_latex,
)

__all__ = [
    "NOTATION",
    "RELATIONS",
    "claim_latex",
    "fact_latex",
    "index_letter",
    "latex",
    "latex_pair",
    "membership",
    "name_latex",
    "names_in",
    "sizes_latex",
    "statement_latex",
    "unfolded_latex",
]
