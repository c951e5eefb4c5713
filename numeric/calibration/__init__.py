"""Constants of rounding that belong to a backend: measured, stored with its name, never guessed.

``functions`` measures errors, ``order`` reveals the order of sums, ``measuring`` does all of it;
``record`` says what is kept, and ``store`` keeps and finds it.
"""
