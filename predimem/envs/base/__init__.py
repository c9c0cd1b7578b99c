"""MIKASA-Base (Cherepanov et al., arXiv:2502.10550): diagnostic environments for memory, played in milliseconds."""
