"""Trainings of many stages that resume."""
