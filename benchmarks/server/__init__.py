"""Measures the inference server."""
