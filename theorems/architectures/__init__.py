"""The architectures that attention is compared with: recurrences, convolutions, pooling, graphs."""
