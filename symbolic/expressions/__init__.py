"""Arrays of SymPy expressions at explicit sizes, and what SymPy derives of them by itself.

The bodies of theorems and definitions run on these arrays as they are written.  Nothing here
looks at a term, and the kernel knows nothing of this package: what both say was said twice.
"""
