"""`predimem train base`: trains heads for MIKASA-Base by imitation of its teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory_bank import MemoryConfig, make_memory
from predimem.core.progress import Bar, say
from predimem.core.seeds import TRAINING_SEEDS
from predimem.envs.base import tasks
from predimem.envs.base.game import GameEnvironment, Solved

if TYPE_CHECKING:
    from actor.memory_head.head import Head
    from actor.memory_head.lessons import Lesson

STEPS = {"TMaze": 800, "MemoryLength": 800}
OTHER_STEPS = 2_000
SLIPS = {"TMaze": 0.0}  # there a single slip loses the episode
OTHER_SLIPS = 0.1
FRAMES_OF_A_TASK, LEAST_EPISODES = 60_000, 50


def train_base(
    played: Sequence[str],
    agents: Sequence[str],
    out: Path,
    seed: int = 0,
    steps: int | None = None,
    memory: MemoryConfig | None = None,
) -> list[Path]:
    """Train each agent for each family of tasks among `played`; the folders of their weights below `out`.

    steps: of the optimiser; None: as many as the family needs. memory: in place of the one that an agent has.
    Raises ValueError for an unknown agent, and for a task without a teacher.
    """
    from actor.memory_head.agent import weights_name
    from actor.memory_head.config import HEADS

    if unknown := [name for name in agents if name not in HEADS]:
        raise ValueError(f"unknown agent {unknown[0]!r}; those that can be trained are: {', '.join(HEADS)}")
    families: dict[str, list[str]] = {}
    for task in played:
        families.setdefault(tasks.family_name(tasks.check_task(task)), []).append(task)
    made = []
    for family, members in families.items():
        lessons, actions = teach(members)
        for name in agents:
            head = train_one(family, lessons, actions, name, seed, steps, memory)
            head.save(out / weights_name(family, name))
            made.append(out / weights_name(family, name))
            say(f"{name} for {family}: {head.parameters:,} parameters, loss {head.trained['loss']:.3f} -> {made[-1]}")
    return made


def train_one(
    family: str,
    lessons: dict[str, list[Lesson]],
    actions: int,
    name: str,
    seed: int,
    steps: int | None = None,
    memory: MemoryConfig | None = None,
) -> Head:
    """The agent `name`, trained on the lessons of `teach`."""
    from actor.memory_head.config import HEADS, HeadTraining
    from actor.memory_head.train import train_head

    config = HEADS[name] if memory is None else replace(HEADS[name], memory=memory)
    training = HeadTraining(steps=steps or STEPS.get(family, OTHER_STEPS), seed=seed)
    return train_head(lessons, actions, config, training, f"{name} for {family}")


def own_memory(place: str) -> MemoryConfig:
    """The config of a memory of one's own, with the window and the limits of the agent `bank`. Raises ConfigError."""
    from actor.memory_head.config import HEADS

    config = replace(HEADS["bank"].memory, implementation=place)
    make_memory(config)  # raises before anything is trained
    return config


def teach(members: Sequence[str]) -> tuple[dict[str, list[Lesson]], int]:
    """(task -> the teacher's episodes, the shorter tasks first; how many actions there are) of tasks of one family."""
    from actor.memory_head.rows import RowLayout

    environments = {task: GameEnvironment(task, tasks.make_game(task)) for task in members}
    for task, environment in environments.items():
        if not isinstance(environment.game, Solved):
            raise ValueError(f"{task} has no teacher, so that nothing can be trained for it by imitation")
    ordered = sorted(members, key=lambda task: environments[task].horizon)
    lessons: dict[str, list[Lesson]] = {}
    for task in ordered:
        environment = environments[task]
        count = max(LEAST_EPISODES, FRAMES_OF_A_TASK // environment.horizon)
        slips = SLIPS.get(tasks.family_name(task), OTHER_SLIPS)
        with Bar(count, "episodes", f"the teacher plays {task}") as bar:
            lessons[task] = []
            for n in range(count):
                lessons[task].append(play_lesson(environment, TRAINING_SEEDS[n], slips))
                bar.add()
    layouts = {RowLayout.of(lessons[task][0].observations[0]) for task in ordered}
    if len(layouts) > 1:
        raise ValueError(f"{', '.join(ordered)} differ in their observations: train for each of them by itself")
    return lessons, environments[ordered[0]].action_dim


def play_lesson(environment: GameEnvironment, seed: int, slips: float) -> Lesson:
    """One episode of the teacher. slips: the probability of another action than the right one, which teaches how to go
    on after a mistake. Where any action is right, one is drawn."""
    from actor.memory_head.lessons import ANY, Lesson

    random, observation = np.random.default_rng(seed), environment.reset(seed)
    observations, labels, game = [], [], environment.game
    assert isinstance(game, Solved)
    while True:
        right = game.solve()
        observations.append(observation)
        labels.append(ANY if right is None else right)
        slip = right is None or random.random() < slips
        action = int(random.integers(environment.action_dim)) if slip else right
        assert action is not None
        result = environment.step(environment.scores(action))
        observation = result.observation
        if result.terminated or result.truncated:
            return Lesson(tuple(observations), np.array(labels))


def success_rate(head: Head, task: str, seeds: Sequence[int], side_by_side: int = 50) -> float:
    """The share of episodes that a head succeeds in; they are played side by side, which is faster than one by one."""
    from actor.memory_head.head import HeadPlayer

    succeeded = 0
    for first in range(0, len(seeds), side_by_side):
        player, some = HeadPlayer(head), seeds[first : first + side_by_side]
        environments = {n: GameEnvironment(task, tasks.make_game(task)) for n in range(len(some))}
        observations = {n: environments[n].reset(seed) for n, seed in enumerate(some)}
        for n in observations:
            player.begin(n)
        while observations:
            for n, scores in player.act(observations).items():
                result = environments[n].step(scores)
                observations[n] = result.observation
                if result.terminated or result.truncated:
                    succeeded += result.success
                    del observations[n]
    return succeeded / len(seeds)
