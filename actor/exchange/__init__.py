"""Checkpoints of π0.5 as openpi and LeRobot write them, in and out."""
