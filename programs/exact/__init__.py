"""Exact checks of code over finite fields, by tensors that carry residues beside their numbers.

The user's code runs unmodified, once for each side of a law.  The inputs are drawn at random in a
tower of fields (scores in Z_q, their exponentials in Z_p with q | p − 1), so the two sides can be
compared without rounding.  The same run also computes floating-point numbers: a law that fails in
the field is reported as broken only if these numbers differ as well.
"""

from .checking import exact

__all__ = ["exact"]
