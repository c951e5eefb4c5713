"""Constants of rounding that belong to a backend: measured, stored with its name, never guessed.

``functions`` and ``kernels`` measure errors, ``order`` reveals the order of sums, ``measuring``
does all of it, ``constants`` draws what the bounds need, ``store`` keeps it, ``in_force`` finds it.
"""
