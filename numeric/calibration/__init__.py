"""Rounding constants of a backend: measured, stored under its name, never guessed.

``functions`` measures errors, ``order`` infers the order of sums, ``measuring`` runs everything;
``record`` defines what is kept, and ``store`` saves and finds it.
"""
