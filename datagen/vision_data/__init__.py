"""Data for vision towers: images of scenes that are set without physics, with what they show."""
