"""Arrays of SymPy expressions at explicit sizes, and derivations of statements by SymPy.

The bodies of theorems and definitions run on these arrays as they are written.  Nothing here reads
a term, and the kernel does not use this package: a statement shown by both is shown twice,
independently.
"""

import os
import sys

_CACHE = "SYMPY_CACHE_SIZE"

if "sympy" not in sys.modules and _CACHE not in os.environ:
    os.environ[_CACHE] = "20000"  # read at import; one statement needs more than the default 1,000
    import sympy  # noqa: F401

    del os.environ[_CACHE]
