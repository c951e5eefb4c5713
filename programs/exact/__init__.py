"""Code run over finite fields: a tensor that carries residues beside its numbers.

The user's code runs unmodified, once for each side of a law.  What goes in is drawn at random in
a tower of fields (scores in Z_q, what an exponential gives in Z_p with q | p − 1), so that two
sides that agree, agree without rounding.  The numbers run along: what breaks in the field is
reported only if it breaks in the numbers of the same run as well.
"""

from .asking import exact

__all__ = ["exact"]
