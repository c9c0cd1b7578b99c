"""The memory of the robot: a recent window and a keyframe buffer. Only the control thread uses it."""

from memory_bank.bank import MemoryBank, MemoryConfig

__all__ = ["MemoryBank", "MemoryConfig"]
