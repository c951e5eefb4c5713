"""Fused attention kernels at the sizes their users run, in little more than one forward.

``call`` says what is asked, ``inputs`` draws it, ``streaming`` and ``clusters`` hold the float64
references with the bound of the kernel; each way of checking is one file: ``sampled``,
``clustered``, ``bitwise``, ``keys_permuted``, ``reach``.  ``ways`` chooses among them by size.
"""
