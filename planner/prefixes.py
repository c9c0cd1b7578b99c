"""What is kept of each robot's last prompt: the keys and values of its beginning, which is mostly the next one's, too.

Keys and values of a token depend on the tokens before it alone. So those of a prompt hold for another one as far as the
two have the same content. What follows is cut off and read anew: after a keyframe was inserted, replaced or taken out,
after a change of the task, and where the recent window begins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from planner.fair_shares import fair_shares
from planner.inputs import Inputs
from planner.key_values import BLOCK, KeyValues


class Prefix:
    """The beginning of a prompt whose keys and values are known: `content` as in `Inputs`."""

    def __init__(self, known: KeyValues):
        self.known = known
        self.content: list[int] = []
        self._ends: list[int] = []

    def agree_with(self, inputs: Inputs) -> int:
        """Cut off what `inputs` does not begin with; how many entries of it are known. They end at a stop.

        That they end at a stop makes the passes by which a prompt is read the same ones, whatever was known before, and
        so, on a CPU, the last bits of the answer.
        """
        same = 0
        for mine, other in zip(self.content, inputs.content, strict=False):
            if mine != other:
                break
            same += 1
        place = bisect_right(inputs.stops, same)
        self.cut(inputs.stops[place - 1] if place else 0)
        return len(self.content)

    def extend(self, inputs: Inputs, entries: int) -> None:
        """The keys and values of the first `entries` entries of `inputs` are known now."""
        self.content, self._ends = inputs.content[:entries], inputs.ends[:entries]

    def cut(self, entries: int) -> None:
        del self.content[entries:], self._ends[entries:]
        self.known.cut(self._ends[-1] if self._ends else 0)

    def shrink(self, bytes_: int) -> None:
        """Keep no more than these bytes: the beginning, which changes least."""
        tokens = bytes_ // self.known.token_bytes // BLOCK * BLOCK
        self.cut(bisect_right(self._ends, tokens))
        self.known.shrink(tokens)


class PrefixMemory:
    """The prefixes of all robots in a bounded number of bytes. make: gives empty keys and values."""

    def __init__(self, limit_bytes: int, make: Callable[[], KeyValues]):
        self._limit, self._make = limit_bytes, make
        self._prefixes: dict[str, Prefix] = {}

    @property
    def bytes(self) -> int:
        return sum(prefix.known.bytes for prefix in self._prefixes.values())

    def of(self, robot: str) -> Prefix:
        """What is known of this robot's prompt, maybe nothing."""
        if robot not in self._prefixes:
            self._prefixes[robot] = Prefix(self._make())
        return self._prefixes[robot]

    def forget(self, robot: str) -> None:
        self._prefixes.pop(robot, None)

    def trim(self) -> None:
        """Keep to the limit."""
        if self.bytes <= self._limit:
            return
        held = {robot: prefix.known.bytes for robot, prefix in self._prefixes.items()}
        for robot, share in fair_shares(held, self._limit).items():
            if share < held[robot]:
                self._prefixes[robot].shrink(share)
