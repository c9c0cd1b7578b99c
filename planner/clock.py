"""A planner that knows the instruction and the time, and sees nothing: what is left when it is right is memory.

Scripted demonstrations keep time so well that on recorded frames this baseline is right most of the time. Figures of
a planner that sees absolute time stamps mean little before they are held against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from predimem.episodes import Episode
from predimem.types import MemorySnapshot, Plan


class ClockPlanner:
    """Implements `Planner`: the subtask that most demonstrations of this instruction had at this step."""

    def __init__(self, demonstrations: Sequence[Episode]):
        if not demonstrations:
            raise ValueError("no demonstrations to take the time from")
        self._by_instruction: dict[str, list[Episode]] = {}
        for episode in demonstrations:
            self._by_instruction.setdefault(episode.instruction, []).append(episode)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        """Raises ValueError for an instruction that was never demonstrated."""
        known = self._by_instruction.get(snapshot.instruction)
        if known is None:
            raise ValueError(f"no demonstration of {snapshot.instruction!r}")
        labels = (episode.subtask_at(min(snapshot.step, len(episode) - 1)) for episode in known)
        return Plan(snapshot.episode_id, snapshot.step, Counter(labels).most_common(1)[0][0])
