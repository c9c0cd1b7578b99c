"""Short episodes in physics: one subtask after the other, done by an actor or by the expert with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datagen.actor_data.labelled import Labelled, look, without
from datagen.actor_data.starts import draw_gripper, draw_stage, leave, miss, settle, try_before, write
from datagen.experts.scripted.snapshot import Snapshot
from predimem.core.interfaces import Policy
from predimem.core.types import Observation
from predimem.envs.arena.robot.arm import CLOSED, OPEN
from predimem.envs.arena.robot.delta_pose import Driver
from predimem.envs.arena.scene.environment import CONTROL_HZ
from predimem.envs.arena.subtasks import Subtask

NOISY_SHARE, SPELL_SHARE = 0.75, 0.3  # of roll-outs, and of the chunks in them
START_TRIES = 20
FALLEN_M = 0.05

MakePolicy = Callable[[], Policy]
Relabel = Callable[[Observation, dict[str, str]], dict[str, np.ndarray]]


@dataclass
class Attempt:
    """One subtask: whether its stage was reached, after how many control steps."""

    subtask: Subtask
    done: bool
    steps: int


@dataclass
class Rollout:
    frames: list[Labelled] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)


def start(env: Any, driver: Driver, skills: Sequence[str], rng: np.random.Generator) -> int | None:
    """Begin before a random subtask of the episode that was reset; its index. None if it has none with an expert."""
    subtasks = env.variant().subtasks
    for _ in range(START_TRIES):
        stage = draw_stage(subtasks, skills, rng)
        if stage is None:
            return None
        scene = Snapshot.of(env)
        held = leave(scene, subtasks[:stage], rng)
        gripper = draw_gripper(scene, driver.arm, held, subtasks[stage - 1] if stage else None, rng)
        try_before(scene, gripper, subtasks[stage], rng)
        miss(gripper, scene, subtasks[stage], rng)
        if write(env, driver.arm, scene, gripper):
            settle(driver, CLOSED if gripper.gap_m < 0.07 else OPEN)
            return stage
    return None


def play(
    env: Any,
    driver: Driver,
    stage: int,
    subtasks: Sequence[Subtask],
    policy: Policy | None,
    rng: np.random.Generator,
    *,
    chunk_steps: int,
    execute_steps: int,
    latency_steps: int,
    subtask_steps: int,
    after_steps: int,
    chain: bool,
    noise: float,
    expert_share: float = 0.0,
    relabel: Relabel | None = None,
) -> Rollout:
    """From `stage` on; with `chain`, on with the next subtasks as long as they succeed.

    policy: None for the expert. What is played is cut where the gripper changes, so that it is looked again there.
    latency_steps: so many actions of the chunk before are played before those of a policy's new one.
    expert_share: of the looks after which the label's chunk is played although there is a policy.
    relabel: gives chunks that replace the expert's labels, for what it is shown and `Labelled.motions`. Where the
    subtask fails they are left out, and so are images whose subtask they labelled: what an actor does where it is stuck
    is nothing to learn.
    """
    rollout = Rollout()
    noise = noise if policy is None and rng.random() < NOISY_SHARE else 0.0
    clock, known = 0, Snapshot.of(env)
    queued = np.empty((0, 0), np.float32)  # what is left of the chunk that is played, from the next look on
    for subtask in subtasks[stage:]:
        frames: list[Labelled] = []
        relabelled: list[set[str]] = []
        began, done_at, after = clock, -1, int(rng.integers(after_steps + 1))
        while clock - done_at < after if done_at >= 0 else clock - began < subtask_steps:
            frame = look(env, driver.arm, subtask, chunk_steps, known, rng)
            frames.append(frame)
            seen = Observation(clock, frame.images, frame.state, clock / CONTROL_HZ)
            own = relabel(seen, frame.motions) if relabel is not None else {}
            frame.chunks.update(own)
            relabelled.append(set(own))
            if policy is None or (expert_share and rng.random() < expert_share):
                actions = frame.chunks[subtask.label].copy()
                if noise and rng.random() < SPELL_SHARE:
                    actions[:, :6] += noise * rng.normal(size=6)
            else:
                actions = late(policy.infer(seen, subtask.label).actions, queued, latency_steps)
            played = until_grip(actions, execute_steps)
            queued = actions[played:]
            for action in actions[:played]:
                driver.step(action)
                clock += 1
                if done_at < 0 and bool(subtask.done(env.world())[0]):
                    done_at = clock
            if _fallen(env):
                break
        if done_at < 0:
            frames = [kept for frame, own in zip(frames, relabelled, strict=True) if (kept := without(frame, own))]
        rollout.frames += frames
        rollout.attempts.append(Attempt(subtask, done_at >= 0, (done_at if done_at >= 0 else clock) - began))
        if done_at < 0 or not chain or _fallen(env):
            break
    return rollout


def _fallen(env: Any) -> bool:
    """Whether a thing has left the table: nothing can be learnt from there on, and where it is has no bounds."""
    return min(float(env.world().position_m[name][0, 2]) for name in env.task.objects) < -FALLEN_M


def late(actions: np.ndarray, queued: np.ndarray, latency_steps: int) -> np.ndarray:
    """float32 [h, A]: what is played from a look on, if its chunk arrives so many steps later and its first actions are
    then out of date, as with `align: steps` in an evaluation. Where fewer are queued, the chunk's own are played.

    actions: float32 [h, A], the chunk. queued: float32 [k, A], what is left of the one before.
    """
    known = queued[:latency_steps]
    return np.concatenate([known, actions[len(known) :]]) if len(known) else actions


def until_grip(actions: np.ndarray, execute_steps: int) -> int:
    """How many actions to play: up to the third with the new gripper command where that changes, else all."""
    closing = actions[:execute_steps, -1] > 0
    changes = np.flatnonzero(closing[1:] != closing[:-1])
    return min(execute_steps, int(changes[0]) + 4) if len(changes) else execute_steps
