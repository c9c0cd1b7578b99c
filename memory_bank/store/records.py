"""What the memory store keeps, read back as plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from predimem.core.types import Frame

Outcome = Literal["success", "failure", "ended"]  # the last: nobody said whether it was a success
UNNAMED = "unnamed"  # the robot of episodes whose id does not name one


class StoreError(ValueError):
    """A store that cannot be used, or a request that it cannot meet: says why and how to mend it."""


class StoreFault(OSError):
    """The database did not carry out a statement, such as on a full disk or after a lost connection."""


class DamagedImage(StoreFault):
    """The file of an image that is kept cannot be read."""


class NotOwner(RuntimeError):
    """Another server has gone on with the episode, or it was deleted."""


@dataclass(frozen=True)
class StoredPlan:
    """An answer of the planner that was used.

    text: the raw answer. at_s: when it was stored, in seconds since 1970. latency_s: how long the planner took; None
    where that was not kept. next_subtasks: what comes after the subtask, where the planner plans ahead.
    """

    step: int
    subtask: str | None
    keyframe_steps: tuple[int, ...]
    confidence: float | None
    text: str
    at_s: float | None = None
    latency_s: float | None = None
    next_subtasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredFailure:
    """An answer that could not be used, or none at all. text: the raw answer, empty where there was none."""

    step: int
    error: str
    text: str
    at_s: float
    latency_s: float | None


@dataclass(frozen=True)
class StoredEpisode:
    """One episode.

    key: its number in this store. An episode that begins anew under the same id gets another one.
    plans: the planner's answers, oldest first.
    image_steps: the control steps with images, sorted.
    outcome: how it ended, None where it was not ended.
    failures: the answers that could not be used, oldest first.
    began_s: when it began, in seconds since 1970.
    robot, session: the names of the robot that played it and of the session that it belongs to.
    """

    key: int
    episode_id: str
    instruction: str
    plans: tuple[StoredPlan, ...] = ()
    image_steps: tuple[int, ...] = ()
    outcome: Outcome | None = None
    failures: tuple[StoredFailure, ...] = ()
    began_s: float | None = None
    robot: str = UNNAMED
    session: str = ""

    @property
    def last_step(self) -> int | None:
        """The last control step that is known of it; None where nothing is kept but its name."""
        told = (*(plan.step for plan in self.plans), *(failure.step for failure in self.failures), *self.image_steps)
        return max(told, default=None)


@dataclass(frozen=True)
class RobotSummary:
    """A robot and how much is kept of it. image_bytes: the size of its images."""

    robot: str
    sessions: int
    episodes: int
    keyframes: int
    image_bytes: int
    used_s: float


@dataclass(frozen=True)
class SessionSummary:
    """A session and how much is kept of it. tasks: the instructions of its episodes, in the order of their begin."""

    robot: str
    session: str
    began_s: float
    used_s: float
    episodes: int
    keyframes: int
    image_bytes: int
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class StoredKeyframe:
    """A step whose images are kept.

    id: its number in this store. key: that of its episode.
    time_s: seconds since the reset of the episode. at_s: when it was stored, in seconds since 1970.
    cameras: in alphabetical order; the place of a camera in it is the number of its image.
    subtask: what the planner named when the images were stored.
    nominated: whether the planner nominated it; otherwise it is kept for people to look at.
    """

    id: int
    key: int
    episode_id: str
    robot: str
    session: str
    instruction: str
    step: int
    time_s: float
    at_s: float
    cameras: tuple[str, ...]
    subtask: str | None
    nominated: bool


@dataclass(frozen=True)
class Hit:
    """A keyframe that a search found. similarity: the cosine of its embedding and the query, from -1 to 1."""

    keyframe: StoredKeyframe
    similarity: float


@dataclass(frozen=True)
class Note:
    """What somebody wrote about a robot, one of its sessions or one of its episodes; `episode_id` is None unless it is
    about an episode, and `session` is None where it is about the robot."""

    robot: str
    session: str | None
    episode_id: str | None
    at_s: float
    author: str
    text: str


@dataclass(frozen=True)
class Scope:
    """Which part of the store a list or a search is about; what is None does not matter.

    task: the instruction of the episodes, word for word.
    before_s, after_s: keyframes of episodes that began before, or not before, this time (seconds since 1970).
    without_episode: leaves out one episode, such as the one that is played.
    subtask: keyframes whose subtask holds this text, in any case.
    nominated: True leaves out what is kept for people to look at.
    """

    robot: str | None = None
    session: str | None = None
    task: str | None = None
    episode_id: str | None = None
    without_episode: str | None = None
    before_s: float | None = None
    after_s: float | None = None
    subtask: str | None = None
    nominated: bool | None = None


EVERYTHING = Scope()


@dataclass(frozen=True)
class Retention:
    """How long what is kept stays. The episodes that were not used for longest go first, and none that is being played;
    None sets no limit.

    days: since an episode was used.
    gib: the size of all images.
    episodes: in the whole store. episodes_per_robot: of each robot.
    """

    days: float | None = None
    gib: float | None = None
    episodes: int | None = None
    episodes_per_robot: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value > 0:
                raise ValueError(f"retention: {name} has to be positive, or null for no limit; got {value}")

    @property
    def limited(self) -> bool:
        return any(value is not None for value in vars(self).values())


KEEP_ALL = Retention()


@dataclass(frozen=True)
class Removed:
    """What a deletion removed. keys: those of the episodes."""

    episodes: int = 0
    keyframes: int = 0
    image_bytes: int = 0
    keys: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class NewKeyframe:
    """A keyframe to keep. embeddings: name of the model -> its vector, float [D], of any length but zero."""

    frame: Frame
    subtask: str | None = None
    nominated: bool = True
    embeddings: Mapping[str, object] = field(default_factory=dict)


def robot_of(episode_id: str) -> str:
    """The robot that the id of an episode names: `robot-7/2041` is of `robot-7`."""
    return episode_id.rpartition("/")[0] or UNNAMED


def check_name(what: str, name: str) -> str:
    """The name of a robot, a session or a model. Raises StoreError where it cannot be one."""
    if not re.fullmatch(r"[\w.:/+@ -]{1,200}", name) or name != name.strip():
        raise StoreError(f"{what}: expected 1 to 200 letters, digits, spaces and . _ : / + @ -, got {name!r}")
    return name
