"""Running the code under test: limits, calls that change nothing, random inputs, rounding."""
