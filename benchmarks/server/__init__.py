"""Measurements of the inference server."""
