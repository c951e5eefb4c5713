"""Check fused attention kernels at production sizes, at little more than the cost of one forward.

``call`` describes the checked call and draws its inputs; ``sampled`` compares some rows,
``clusters`` compares every row on keys of few distinct values, ``residual`` tests single keys;
``comparison`` reports the findings, and ``methods`` chooses the method by size.
"""
