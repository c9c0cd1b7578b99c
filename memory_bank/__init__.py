"""What the robot remembers: a recent window and a keyframe buffer, on the control thread only."""

from memory_bank.bank import MemoryBank, MemoryConfig

__all__ = ["MemoryBank", "MemoryConfig"]
