"""Experts without memory: what the scripted skills would do next, from any state of gripper and scene."""
