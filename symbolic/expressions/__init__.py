"""Arrays of SymPy expressions at explicit sizes, and what SymPy derives of them by itself.

The bodies of theorems and definitions run on these arrays as they are written.  Nothing here
looks at a term, and the kernel knows nothing of this package: what both say was said twice.
"""

import os
import sys

_CACHE = "SYMPY_CACHE_SIZE"

if "sympy" not in sys.modules and _CACHE not in os.environ:
    os.environ[_CACHE] = "20000"  # read at import; of the usual 1,000 one statement takes more
    import sympy  # noqa: F401

    del os.environ[_CACHE]
