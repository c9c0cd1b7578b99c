"""The memory of the robot: a recent window and a keyframe buffer. Only the control thread uses it."""

from memory_bank.bank import MemoryBank
from memory_bank.config import MemoryConfig
from memory_bank.own import make_memory
from memory_bank.window import RecentWindow

__all__ = ["MemoryBank", "MemoryConfig", "RecentWindow", "make_memory"]
