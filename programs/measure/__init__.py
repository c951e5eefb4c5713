"""Check laws by running the code: each probe tests one law, on inputs that reveal its faults.

The inputs include sizes that all differ, and then equal ones where equality could hide a broadcast;
one token in several rows; positions around 256, 2048 and 65536, restarting, different in each row;
calls in another order; large scores, NaN in hidden slots, rows that see nothing; every path; casts.
A probe goes from small to large, so that the first failure is a small one.
"""
