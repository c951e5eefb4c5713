"""What judges a measurement: four policies, each with its own argument.

deterministic  no rounding error of the model can be larger (``measurement``)
probabilistic  independent rounding errors of mean zero exceed it hardly ever (``judging``)
residual       the error in the direction that a defect would cause (``residual``)
bitwise        queries answered in another order, or alone: not a bit may differ (``judging``)
"""
