"""What code does, read off its calls: rotations, weights, biases, and the calls that laws make."""
