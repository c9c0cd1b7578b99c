"""Our agent in MIKASA's own harness: `mikasa_robo_suite.vla.benchmarking`, used unmodified.

Its environment construction, wrappers, episode loop, seeds and success are the suite's; only the
render device is mended where there is no GPU (`predimem.rendering.maniskill.prepare`). The harness asks a
`ChunkPolicy` for actions and never says that a new episode begins, so its episode callback does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from predimem.core.interfaces import Agent
from predimem.envs.mikasa.suite import check_action, check_task, observation_of
from predimem.rendering import maniskill as rendering


class AgentPolicy:
    """An `Agent` as the suite's `ChunkPolicy`: one action per forward pass, so that it sees every step.

    The agent is reset at the first `forward` after construction and after each `next_episode()`.
    """

    chunk_size = 1

    def __init__(self, agent: Agent, instruction: str, first_seed: int):
        self._agent = agent
        self._instruction = instruction
        self._seed = first_seed
        self._step = 0

    def forward(self, obs: Mapping[str, Any]) -> np.ndarray:
        """float32 [1, 7] for the suite's wrapped observation (`rgb`, `proprio`, batch of one)."""
        if self._step == 0:
            self._agent.reset(self._instruction, f"harness/{self._seed}")
        action = self._agent.act(observation_of(obs, self._step))
        self._step += 1
        return check_action(action)[None]

    def next_episode(self) -> None:
        self._seed += 1
        self._step = 0


def as_chunk_policy(agent: Agent, task: str, first_seed: int | None = None) -> AgentPolicy:
    """`agent` as a `ChunkPolicy` for `task`; first_seed (the suite's by default) only names episodes."""
    check_task(task)
    from mani_skill.utils.registration import REGISTERED_ENVS
    from mikasa_robo_suite.vla.benchmarking import START_SEED

    instruction = _instruction(task, REGISTERED_ENVS[task])
    return AgentPolicy(agent, instruction, START_SEED if first_seed is None else first_seed)


def run_suite_harness(
    task: str,
    make_agent: Callable[[], Agent],
    episodes: int | None = None,
    start_seed: int | None = None,
    on_episode: Callable[[int, bool], object] | None = None,
) -> dict[str, Any]:
    """The suite's `evaluate_task` on `task` with its defaults: 50 episodes from seed 4242424242.

    Returns the suite's own result (`sr`, `successes`, `episode_seeds`, `episode_lengths`, ...).
    on_episode is told (index, success) after each episode. Raises ValueError for unknown tasks.
    """
    check_task(task)
    rendering.prepare()
    from mikasa_robo_suite.vla import benchmarking

    defaults = benchmarking.BenchmarkConfig()
    config = benchmarking.BenchmarkConfig(
        n_episodes=defaults.n_episodes if episodes is None else episodes,
        start_seed=defaults.start_seed if start_seed is None else start_seed,
        sim_backend="cpu",
    )
    policy = as_chunk_policy(make_agent(), task, config.start_seed)

    def episode_done(index: int, result: Any) -> None:
        policy.next_episode()
        if on_episode is not None:
            on_episode(index, bool(result.success_once))

    return benchmarking.evaluate_task(
        _benchmark_task(task),
        policy,
        config,
        model={"name": "predimem"},
        commit=benchmarking.benchmark_commit(),
        episode_callback=episode_done,
    )


def _benchmark_task(task: str) -> Any:
    """The suite's record of a task that its CSV does not list: the CSV itself is not in the wheel."""
    from mani_skill.utils.registration import REGISTERED_ENVS
    from mikasa_robo_suite.vla.benchmarking import BenchmarkTask

    spec: Any = REGISTERED_ENVS[task]
    return BenchmarkTask(
        env_id=task,
        split="custom",
        memory_type="Unknown",
        max_episode_steps=int(spec.max_episode_steps),
        language_instruction=_instruction(task, spec),
        data_source="custom",
    )


def _instruction(task: str, spec: Any) -> str:
    said = getattr(spec.cls, "LANGUAGE_INSTRUCTION", None)
    if said is None:
        raise ValueError(
            f"{task}: its instruction names an angle or a number of steps that the suite's harness does not tell an "
            "agent beforehand; use `predimem eval`"
        )
    return str(said)
