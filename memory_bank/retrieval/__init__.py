"""Earlier sessions: how a history is cut into them, which of them fits what the robot is to do now, and which it sees.

A *history* is what the robot remembers when an episode begins. The gate ranks its sessions by the present view and the
instruction and admits the keyframes of the one that fits, or of none.
"""

from memory_bank.retrieval.cutting import cut_sessions
from memory_bank.retrieval.gate import Admission, Gate, Match, decide, rank
from memory_bank.retrieval.memory import SELECTIONS, SessionMemory

__all__ = ["SELECTIONS", "Admission", "Gate", "Match", "SessionMemory", "cut_sessions", "decide", "rank"]
