"""Fused attention kernels at the sizes their users run, in little more than one forward.

``call`` says what is asked, and draws it; ``sampled`` looks at some rows, ``clusters`` at every row
on keys of few distinct values, ``residual`` at single keys; ``comparison`` says what was found, and
``methods`` chooses among the ways by size.
"""
