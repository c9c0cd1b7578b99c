"""What a family of MIKASA's tasks has to tell, so that experts, oracles and data generation can deal with its tasks.

A new family is one file here with a class that inherits from `Family`, and one entry in `registry.FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from predimem.core.interfaces import Expert
from predimem.envs.mikasa.families.motion import moved

State = Mapping[str, Any]


class EpisodeReport(Protocol):
    """What is told of an episode beside the suite's success. There is a new one for each episode."""

    def update(self, state: State, success_now: bool) -> Mapping[str, float | str | bool]:
        """What `StepResult.info` gets at this step; called once for each step, with the state after it.

        success_now: the suite's own success of this step. Where the result has a `success_now`, that is what is counted
        instead. `mistake` says in words what went wrong at this step. Values are plain numbers, strings and booleans.
        """
        ...


class Family(Protocol):
    """Tasks of the suite that one script plays. Methods with a body are defaults.

    name: of the family. tasks: the ids that it covers.
    expert: where no memoryless controller plays these tasks, a function from a `MikasaEnvironment` to an
    `predimem.core.interfaces.Expert` that does; None: `act` with the true subtask plays them.

    A state is a mapping of plain values (numbers, strings, tuples, NumPy arrays) that holds all that the other methods
    need. It always has what `scene.robot_state` gives: `step` (control steps since the reset), `tcp_m` float64 [3]
    (world frame), `base_m` float64 [3] (the robot's base; its axes are the world's) and `gripper_m` (opening).
    A state for `alternatives` also has what `scene.camera_state` gives.
    """

    name: str
    tasks: tuple[str, ...]
    expert: Callable[[Any], Expert] | None = None

    def state(self, base: Any, step: int) -> dict[str, Any]:
        """The true state at control step `step`. base: the suite's unwrapped environment, which is only read.

        Called at every step, so it has to cost little: no images, no cameras.
        """
        ...

    def subtask(self, state: State) -> str:
        """The true subtask of this step.

        The images up to this step have to justify it, with a memory but without a clock: nothing may be named that no
        image has shown yet, and nothing that only a count of control steps could tell.
        """
        ...

    def subtasks(self, task: str) -> Sequence[str]:
        """Every subtask that can be the true one in a task, in a fixed order."""
        ...

    def goal(self, state: State) -> str:
        """In words, what fulfils the instruction in this episode, such as "touch the teal cube"."""
        ...

    def act(self, state: State, subtask: str) -> np.ndarray:
        """float32 [7] in [-1, 1] (`pd_ee_delta_pose`): what to do now for any subtask, from any state, without memory.

        A subtask that cannot be carried out in this state, or that the family does not know, is answered with `hold`.
        """
        ...

    def valid(self, state: State, subtask: str) -> bool:
        """Whether `act` can carry out a subtask in this state, so that the actor may be trained on it."""
        ...

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        """float64 [3], world frame: what a subtask is about, for the actor to point at; None where there is nothing."""
        return None

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        """float64 [3], world frame: where `act` moves the TCP for a subtask; None where it does not move."""
        return None

    def advance(self, state: State, action: np.ndarray) -> State:
        """The state one control step later in a simple kinematic model, in which chunks of actions are rolled out.

        The default moves the TCP and the gripper only; what the gripper holds has to be moved by the family.
        """
        return {**state, **moved(state, action)}

    def evidence(self, state: State) -> str:
        """What the image of this step shows that has to be remembered, in a few words; "" where there is nothing.

        The first image of each piece of evidence is a keyframe. What comes back later gets other words.
        """
        return ""

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        """What lies in view, by name: float64 [3], world frame. The planner's tower is trained to see it."""
        return {}

    def report(self) -> EpisodeReport | None:
        """A new report for an episode that begins; None where the suite's success says it all."""
        return None

    def notes(self, state: State) -> dict[str, Any]:
        """What a stored episode notes of its first state, as plain JSON values."""
        return {}
