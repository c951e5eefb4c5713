"""Decide whether two programs are the same function: proved for all sizes, or a counterexample."""
