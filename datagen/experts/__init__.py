"""Scripted skills: Cartesian motions that pick, place, pour, open and close, one control step at a time."""
