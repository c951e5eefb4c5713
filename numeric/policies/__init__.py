"""The policies that judge a measurement, each with its own argument.

deterministic  no rounding error of the model can be larger (``measurement``)
probabilistic  independent rounding errors of mean zero hardly ever exceed it (``judging``)
residual       the error in the direction that a defect would cause (``residual``)
bitwise        queries computed in another order, or alone, must not differ in any bit (``judging``)
"""
