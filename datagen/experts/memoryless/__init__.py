"""Experts without memory: what the scripted skills would do next, from any state of hand and scene."""
