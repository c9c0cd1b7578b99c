"""RoboMME's motion planners, one action at a time.

Its functions, such as `solve_pickup`, step the environment themselves until a motion is done. Here an agent decides at
every control step. So such a function runs in a thread of its own and waits at each of its steps until it is asked for
the next action. Only one of the two threads runs at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

SCREW_ATTEMPTS, RRT_ATTEMPTS = 1, 3  # as in RoboMME's own wrappers
NO_SPEEDS = "Fail to parameterize path"  # what mplib raises where it finds no speeds for a path, and gives no result
STEPPED: tuple[Any, ...] = (None, 0.0, False, False, {})  # what a step gives; motions only look at the simulation


class _BrokenOff(BaseException):
    """Raised inside a motion that nobody wants any more."""


class Motion:
    """A function that steps an environment, action by action: `next_action` until that is None, or `break_off`."""

    def __init__(self, run: Callable[[Callable[[Any], Any]], object]):
        """run: called with what stands for the environment's `step`."""
        self._asked, self._answered = threading.Semaphore(0), threading.Semaphore(0)
        self._action: np.ndarray | None = None
        self._error: BaseException | None = None
        self._broken_off = False
        self.done = False
        self._thread = threading.Thread(target=self._play, args=(run,), name="robomme-motion", daemon=True)
        self._thread.start()

    def next_action(self) -> np.ndarray | None:
        """float32 [8]; None when the motion has ended. Raises what the function raises."""
        if self.done:
            return None
        self._asked.release()
        self._answered.acquire()
        if self._error is not None:
            raise self._error
        return self._action

    def break_off(self) -> None:
        if not self.done:
            self._broken_off = True
            self._asked.release()
            self._answered.acquire()
            self.done = True

    def _play(self, run: Callable[[Callable[[Any], Any]], object]) -> None:
        self._asked.acquire()
        try:
            if not self._broken_off:
                run(self._step)
        except _BrokenOff:
            pass
        except BaseException as error:  # handed to the thread that asks
            self._error = error
        self._action, self.done = None, True
        self._answered.release()

    def _step(self, action: Any) -> tuple[Any, ...]:
        self._action = np.asarray(action, np.float32).reshape(-1)
        self._answered.release()
        self._asked.acquire()
        if self._broken_off:
            raise _BrokenOff
        return STEPPED


class MotionPlanner:
    """RoboMME's planner for one episode. `start` begins a motion."""

    def __init__(self, wrapped: Any):
        """wrapped: RoboMME's wrapper around the simulation (`RobommeEnvironment.wrapped`), after its reset."""
        import gymnasium
        from robomme.robomme_env.utils.planner_fail_safe import (  # type: ignore[import-not-found]
            FailAwarePandaArmMotionPlanningSolver,
            ScrewPlanFailure,
        )

        class StepTaken(gymnasium.Wrapper):
            """The environment as motions see it: their steps are taken from them."""

            def step(self, action: Any) -> Any:
                return self.take(action)

        self.env: Any = StepTaken(wrapped)
        self.env.take = None
        self.solver = FailAwarePandaArmMotionPlanningSolver(
            self.env,
            debug=False,
            vis=False,
            base_pose=wrapped.unwrapped.agent.robot.pose,
            visualize_target_grasp_pose=False,
            print_env_info=False,
        )
        self.solver.move_to_pose_with_screw = _with_retries(self.solver, ScrewPlanFailure)

    def start(self, solve: Callable[[Any, Any], object]) -> Motion:
        """solve: takes what stands for the environment, and the planner, as RoboMME's functions do."""

        def run(take: Callable[[Any], Any]) -> None:
            self.env.take = take
            solve(self.env, self.solver)

        return Motion(run)


def _with_retries(solver: Any, failure: type[Exception]) -> Callable[..., Any]:
    """A straight motion, and where there is none a path around. -1 where there is none either, as RoboMME has it."""
    straight, around = solver.move_to_pose_with_screw, solver.move_to_pose_with_RRTStar

    def move(*args: Any, **options: Any) -> Any:
        for attempts, plan in ((SCREW_ATTEMPTS, straight), (RRT_ATTEMPTS, around)):
            for _ in range(attempts):
                try:
                    result = plan(*args, **options)
                except failure:
                    continue
                except RuntimeError as error:
                    if str(error) != NO_SPEEDS:
                        raise
                    continue
                if not (isinstance(result, int) and result == -1):
                    return result
        return -1

    return move
