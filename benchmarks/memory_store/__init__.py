"""Measures the memory store with very many keyframes."""
