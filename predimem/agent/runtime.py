"""Plays one episode. A crash of the environment, the planner or the policy is an `error`."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

from predimem.core.faults import setup_fault
from predimem.core.interfaces import Agent, Environment, HasHistory, ShowsVideo, Subscriber
from predimem.core.types import EpisodeResult, StepResult, Tick


def run_episode(
    environment: Environment,
    agent: Agent,
    task: str,
    agent_name: str,
    seed: int,
    subscribers: Sequence[Subscriber] = (),
) -> EpisodeResult:
    """Play `task` at `seed` until it ends or its horizon is reached, and tell the subscribers.

    KeyboardInterrupt and faults of the set-up (`predimem.core.faults`) pass through: an episode that was interrupted
    has no result.
    """
    episode_id = f"{task}/{seed}/{agent_name}"
    steps, last = 0, None
    try:
        observation = environment.reset(seed)
        agent.reset(environment.instruction, episode_id)
        _tell_history(environment, agent)
        _show_video(environment, agent)
        for subscriber in subscribers:
            subscriber.on_reset(observation, environment.instruction, episode_id)
        while steps < environment.horizon:
            action = agent.act(observation)
            last = environment.step(action)
            steps += 1
            for subscriber in subscribers:
                subscriber.on_step(observation, action, agent.last_tick or _no_tick(observation.step), last)
            observation = last.observation
            if last.terminated or last.truncated:
                break
        result = _result(task, agent_name, seed, steps, last)
    except Exception as error:
        if setup_fault(error) is not None:
            raise
        message = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
        result = EpisodeResult(task, agent_name, seed, "error", steps, message=message)
    for subscriber in subscribers:
        subscriber.on_end(result)
    return result


def _tell_history(environment: Environment, agent: Agent) -> None:
    """Tell the agent of the sessions before this episode, where there were some and it remembers them."""
    recall = getattr(agent, "recall", None)
    if recall is not None and isinstance(environment, HasHistory):
        recall(environment.history)


def _show_video(environment: Environment, agent: Agent) -> None:
    """Show the agent what the environment shows before the robot may act, where there is such a thing and it looks."""
    watch = getattr(agent, "watch", None)
    if watch is not None and isinstance(environment, ShowsVideo):
        for observation in environment.video:
            watch(observation)


def _result(task: str, agent_name: str, seed: int, steps: int, last: StepResult | None) -> EpisodeResult:
    success = last is not None and last.success
    info = last.info if last is not None else {}
    passed = int(success) if "stages_passed" not in info else int(info["stages_passed"])  # type: ignore[call-overload]
    total = int(info.get("stages_total", 1))  # type: ignore[call-overload]
    status = "success" if success else "failure"
    reason = "" if success else str(info.get("failure", ""))
    return EpisodeResult(task, agent_name, seed, status, steps, passed, total, reason, _numbers(info))


def _numbers(info: Mapping[str, object]) -> dict[str, float]:
    return {k: float(v) for k, v in info.items() if isinstance(v, int | float)}


def _no_tick(step: int) -> Tick:
    return Tick(step=step, subtask="", plan_age_steps=None, stale_action=False, held_action=False)
