"""Decide whether two programs are the same function, by proof or by counterexample."""
