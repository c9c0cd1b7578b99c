"""What the robot measured and was told at each observation, and when: for plots, never for the robot.

A session keeps the last rows in memory, and the store keeps all of them in compressed pieces.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from memory_bank.store import MemoryStore
from predimem.serving import wire

RATE_S = 5.0  # over which the rate of control is taken
SLOW = 0.9  # of the rate that the robot should have: below it people are warned
_LIMIT = 1 << 30  # bytes of one array on the disk, which this server wrote


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One row for each observation, oldest first.

    steps: int64 [n], control steps.
    at_s: float64 [n], seconds since 1970 by this server's clock.
    s1_ms: float32 [n], how long the actor took; NaN where it was not asked.
    state: float32 [n, D]; action: float32 [n, A], the first row of the reply. In the robot's units.
    """

    steps: np.ndarray
    at_s: np.ndarray
    s1_ms: np.ndarray
    state: np.ndarray
    action: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    def pack(self) -> bytes:
        """As a piece for the disk. float32 values are kept bit for bit."""
        return zlib.compress(wire.pack({one.name: getattr(self, one.name) for one in fields(self)}), 6)

    def rates_hz(self) -> np.ndarray:
        """float64 [n]: control steps a second of wall-clock time over the last `RATE_S` seconds; NaN within the first
        second of an episode."""
        first = np.searchsorted(self.at_s, self.at_s - RATE_S)
        seconds = self.at_s - self.at_s[first]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(seconds >= 1.0, (self.steps - self.steps[first]) / seconds, np.nan)

    def plain(self, first_step: int = 0, most: int | None = None) -> dict[str, Any]:
        """The rows from a step on for a page, as lists; what is not known is null. Of more than `most` rows every nth
        one is given, and `every` says which."""
        first = int(np.searchsorted(self.steps, first_step))
        every = 1 if most is None else max(1, -(-(len(self) - first) // most))
        chosen = slice(first, None, every)
        return {
            "every": every,
            "steps": self.steps[chosen].tolist(),
            "at_s": np.round(self.at_s[chosen], 3).tolist(),
            "s1_ms": _known(self.s1_ms[chosen], 2),
            "rate_hz": _known(self.rates_hz()[chosen], 2),
            "state": _rounded(self.state[chosen]),
            "action": _rounded(self.action[chosen]),
        }

    def slowness(self, control_hz: float) -> str | None:
        """A sentence where a tenth of the episode or more was played below its rate."""
        rates = self.rates_hz()
        known = rates[~np.isnan(rates)]
        slow = float(np.mean(known < SLOW * control_hz)) if len(known) else 0.0
        if slow < 0.1:
            return None
        return (
            f"control ran below its {control_hz:g} Hz for {slow:.0%} of the observations "
            f"({np.median(known):.1f} Hz in the median)"
        ).replace("%", " %")


def unpack(pieces: Sequence[bytes]) -> Trajectory | None:
    """What was packed, piece by piece; None where there is none, such as in folders of earlier versions.

    Where an episode went on after a kill, the last row of a step counts, and the widths of the last robot.
    """
    parts = [Trajectory(**wire.unpack(zlib.decompress(piece), _LIMIT)) for piece in pieces]
    if not parts:
        return None
    widths = [(part.state.shape[1], part.action.shape[1]) for part in parts]
    parts = [part for part, width in zip(parts, widths, strict=True) if width == widths[-1]]
    arrays = [np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Trajectory)]
    _, from_end = np.unique(arrays[0][::-1], return_index=True)
    return Trajectory(*(array[::-1][from_end] for array in arrays))


def keep_rows(store: MemoryStore, key: int, rows: Trajectory) -> None:
    """Write the rows of an episode that came since the last ones. Raises NotOwner, and OSError."""
    store.keep_piece(key, float(rows.at_s[0]), rows.pack())


def rows_of(store: MemoryStore, key: int) -> Trajectory | None:
    """What was measured and commanded at each observation of an episode; None where it was not kept."""
    return unpack(store.trajectory_pieces(key))


def slowness(steps: int, seconds: float, control_hz: float, s1_share: float) -> str | None:
    """A sentence where control is slower than it should be; None where it is not, or it cannot be told yet.

    steps, seconds: control steps in so much wall-clock time. s1_share: the part of the time in which S1 computes.
    """
    if seconds < 1.0 or steps / seconds >= SLOW * control_hz:
        return None
    share = f"{100 * min(1.0, s1_share):.0f} %"
    return (
        f"control runs at {steps / seconds:.1f} Hz, below its {control_hz:g} Hz: S1 takes {share} of the time, "
        "the robot or its simulator, the network and the server's queues take the rest"
    )


class Recorder:
    """The last rows of a session, in arrays that are made once, whatever the length of the episode.

    Not thread-safe. capacity: rows.
    """

    def __init__(self, capacity: int):
        self._capacity = capacity
        self._arrays: Trajectory | None = None
        self.clear()

    def __len__(self) -> int:
        return min(self._count, self._capacity)

    def clear(self) -> None:
        """Forget all rows."""
        self._count = 0  # rows since the beginning
        self._taken = 0  # of them, those that `take` gave

    def add(self, step: int, at_s: float, s1_ms: float | None, state: np.ndarray, action: np.ndarray) -> None:
        if self._arrays is None:
            n = self._capacity
            self._arrays = Trajectory(
                np.zeros(n, np.int64),
                np.zeros(n),
                np.zeros(n, np.float32),
                np.zeros((n, len(state)), np.float32),
                np.zeros((n, len(action)), np.float32),
            )
        row, arrays = self._count % self._capacity, self._arrays
        arrays.steps[row], arrays.at_s[row], arrays.s1_ms[row] = step, at_s, np.nan if s1_ms is None else s1_ms
        arrays.state[row], arrays.action[row] = state, action
        self._count += 1

    @property
    def waiting(self) -> int:
        """How many rows `take` would give."""
        return min(self._count - self._taken, self._capacity)

    def take(self) -> Trajectory | None:
        """The rows that were not taken yet; None where there are none."""
        rows, self._taken = self.waiting, self._count
        return self.last(rows) if rows else None

    @property
    def newest(self) -> tuple[int, float] | None:
        """(step, at_s) of the last row."""
        if self._arrays is None or not self._count:
            return None
        row = (self._count - 1) % self._capacity
        return int(self._arrays.steps[row]), float(self._arrays.at_s[row])

    def last(self, rows: int) -> Trajectory:
        """A copy of up to so many rows; `add` comes first."""
        assert self._arrays is not None
        count = min(rows, len(self))
        chosen = np.arange(self._count - count, self._count) % self._capacity
        return Trajectory(*(getattr(self._arrays, one.name)[chosen] for one in fields(Trajectory)))


def _known(values: np.ndarray, digits: int) -> list[float | None]:
    return [round(value, digits) if value == value else None for value in values.tolist()]


def _rounded(rows: np.ndarray) -> list[list[float]]:
    return np.round(np.nan_to_num(rows.astype(np.float64)), 4).tolist()
