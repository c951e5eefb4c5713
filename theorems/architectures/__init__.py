"""The architectures that attention is compared with: recurrences, convolutions and pooling."""
