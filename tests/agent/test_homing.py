"""A hand that does not get on goes back to where it was first, by whatever its states and actions mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from memory_bank import MemoryBank
from predimem.agent.clock import SimulatedClock
from predimem.agent.dual_system import DualSystemAgent, DualSystemConfig
from predimem.agent.homing import Homing, HomingConfig
from predimem.agent.recording import TraceRecorder
from predimem.agent.runtime import run_episode
from predimem.agent.worker import PlannerWorker
from predimem.core.types import ActionChunk, Observation, StepResult
from tests.agent.fakes import Answered, ScriptedPlanner

HOME_M = np.array([0.1, -0.2, 0.3])


class Hand:
    """Moves as it is told: by 0.1 m and `action_rad` for an action of 1."""

    def __init__(self, rotation: str = "rpy", action_rad: float = 0.1):
        self._told, self._action_rad = rotation, action_rad
        self.m, self.rotation = HOME_M.copy(), Rotation.identity()

    @property
    def state(self) -> np.ndarray:
        if self._told == "rpy":
            return np.r_[self.m, self.rotation.as_euler("xyz"), 0.08].astype(np.float32)
        return np.r_[self.m, self.rotation.as_matrix()[:, :2].T.ravel()].astype(np.float32)

    def move(self, action: np.ndarray) -> None:
        assert np.abs(action[:6]).max() <= 1.0
        self.m = self.m + 0.1 * action[:3]
        self.rotation = Rotation.from_rotvec(self._action_rad * action[3:6]) * self.rotation


Actions = list[np.ndarray | None]


def play(hand: Hand, config: HomingConfig, subtask_at: Callable[[int], str], steps: int = 40) -> Actions:
    """What is done about a hand that is taken away once, at step 1, and left there."""
    homing, last, actions = Homing(config), np.array([0, 0, 0, 0, 0, 0, -1], np.float32), []
    for step in range(steps):
        if step == 1:
            hand.m, hand.rotation = np.array([0.4, 0.2, 0.01]), Rotation.from_euler("xyz", [0.2, -0.1, 2.0])
        action = homing.action(step, hand.state, last, subtask_at(step))
        actions.append(action)
        if action is not None:
            hand.move(action)
            last = action
    return actions


def away(hand: Hand) -> tuple[float, float]:
    return float(np.linalg.norm(hand.m - HOME_M)), float(hand.rotation.magnitude())


@pytest.mark.parametrize("rotation", ["rpy", "columns"])
@pytest.mark.parametrize("action_rad", [0.2, -0.2])
def test_it_goes_back_to_where_it_was_first(rotation: str, action_rad: float) -> None:
    hand = Hand(rotation, action_rad)
    config = HomingConfig({"pick *": 8}, opens=("pick *",), rotation=rotation, action_rad=action_rad)  # type: ignore[arg-type]
    actions = play(hand, config, lambda step: "pick up a cube")
    assert [action is None for action in actions[:9]] == [True] * 8 + [False]
    there = next(step for step in range(9, 40) if actions[step] is None)
    opening, rising, way = actions[8:10], actions[10:12], actions[12:there]
    assert all(np.array_equal(action, [0, 0, 0, 0, 0, 0, 1]) for action in opening)
    assert all(np.array_equal(action, [0, 0, 1, 0, 0, 0, 1]) for action in rising)
    assert len(way) > 3 and {float(action[6]) for action in way} == {1.0}
    far_m, far_rad = away(hand)
    assert far_m < 0.03 and far_rad < 0.1
    later = [step for step in range(there, 40) if actions[step] is not None]
    assert later[0] == there + 8  # and it is tried again after as long


def test_a_hand_that_is_still_is_not_waited_for() -> None:
    assert first_of(play(Hand(), HomingConfig({"*": 30}, still_steps=5), lambda step: "open it")) == 6
    assert first_of(play(Hand(), HomingConfig({"*": 30}, still_steps=5, still_m=1.0), lambda step: "open it")) == 5
    assert first_of(play(Hand(), HomingConfig({"*": 30}), lambda step: "open it")) == 30


def test_the_subtask_decides() -> None:
    config = HomingConfig({"pick *": 5, "*": 12}, opens=("pick *",))
    assert first_of(play(Hand(), HomingConfig({"pick *": 5}), lambda step: "open it")) is None
    actions = play(Hand(), config, lambda step: "pick a" if step < 7 else "place a")
    assert [step for step, action in enumerate(actions) if action is not None][:3] == [5, 6, 19]  # 12 after the change
    assert actions[5][6] == 1.0 and np.array_equal(actions[19], [0, 0, 1, 0, 0, 0, 1])  # type: ignore[index]
    closed = play(Hand(), HomingConfig({"place *": 5}), lambda step: "place a")
    assert np.array_equal(closed[5], [0, 0, 1, 0, 0, 0, -1])  # what it holds is not let go  # type: ignore[arg-type]


def test_a_hand_that_cannot_go_back_is_let_off() -> None:
    """As where something is in its way."""
    homing, state, last = Homing(HomingConfig({"*": 5}, action_rad=-0.1)), Hand().state, np.zeros(7, np.float32)
    homing.action(0, state, last, "open it")
    stuck = np.r_[0.5, 0.5, 0.5, state[3:]].astype(np.float32)
    back = [homing.action(step, stuck, last, "open it") is not None for step in range(1, 40)]
    assert "".join(".x"[one] for one in back) == "." * 4 + "x" * 22 + "." * 5 + "x" * 8


def test_what_does_not_fit_is_said() -> None:
    for wrong, message in (
        ({"after_steps": {"a": 0}}, "after_steps: a must be at least 1, got 0"),
        ({"still_steps": 0}, "still_steps must be at least 1"),
        ({"still_m": 0.0}, "still_m must be more than 0"),
        ({"action_rad": 0.0}, "action_rad must not be 0"),
    ):
        with pytest.raises(ValueError, match=f"homing: {message}"):
            HomingConfig(**wrong)
    homing = Homing(HomingConfig({"*": 5}))
    with pytest.raises(ValueError, match="a rotation as rpy, 6 numbers, got 2"):
        homing.action(0, np.zeros(2, np.float32), None, None)
    with pytest.raises(ValueError, match="actions that move and turn the hand, 7 entries, got 2"):
        homing.action(0, Hand().state, np.zeros(2, np.float32), "open it")


class MissingPolicy:
    """Goes to the goal; from the first time that it comes from home, beside it."""

    def __init__(self) -> None:
        self.tries, self._at_home = 0, False

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        goal_m = np.array([0.4, 0.2, 0.1])
        at_home = bool(np.linalg.norm(observation.state[:3] - HOME_M) < 0.05)
        self.tries += at_home and not self._at_home
        self._at_home = at_home
        way_m = goal_m + (0.05 if self.tries == 1 else 0.0) - observation.state[:3]
        action = np.r_[np.clip(way_m / 0.3, -1, 1), 0, 0, 0, -1].astype(np.float32)
        return ActionChunk(observation.step, np.tile(action, (4, 1)), subtask)


class ReachEnvironment:
    """Succeeds when the hand is within 1 cm of its goal."""

    instruction, action_dim, control_hz, horizon = "reach", 7, 20.0, 80

    def reset(self, seed: int) -> Observation:
        self._hand, self._step = Hand(), 0
        return self._observe()

    def step(self, action: np.ndarray) -> StepResult:
        self._hand.move(action)
        self._step += 1
        success = bool(np.linalg.norm(self._hand.m - [0.4, 0.2, 0.1]) < 0.01)
        return StepResult(self._observe(), success, self._step >= self.horizon, success)

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return np.zeros(7, np.float32)

    def close(self) -> None:
        pass

    def _observe(self) -> Observation:
        return Observation(self._step, {"cam": np.zeros((4, 4, 3), np.uint8)}, self._hand.state, self._step / 20)


@pytest.mark.parametrize("homing", [None, HomingConfig({"reach": 40}, still_steps=8)])
def test_a_policy_that_missed_reaches_it_from_where_it_began(homing: HomingConfig | None) -> None:
    clock, environment = SimulatedClock(1, 2), ReachEnvironment()
    worker = PlannerWorker(ScriptedPlanner([Answered("reach")]), clock)
    config = DualSystemConfig(execute_steps=1, homing=homing)
    agent = DualSystemAgent(MemoryBank(), worker, MissingPolicy(), clock, environment.hold_action, config)
    recorder = TraceRecorder()
    result = run_episode(environment, agent, "reach", "test", 0, subscribers=[recorder])
    agent.close()
    back = [tick["step"] for tick in recorder.trace["ticks"] if tick["homing"]]
    if homing is None:
        assert result.status == "failure" and back == []
    else:
        assert result.status == "success" and back == list(range(back[0], back[-1] + 1)) and len(back) < 20


def first_of(actions: Actions) -> int | None:
    return next((step for step, action in enumerate(actions) if action is not None), None)
