"""Scripts that measure speed and accuracy; their tables are in docs/benchmarks/."""
