"""Whether two programs are one function: proved for all sizes, or where they differ."""
