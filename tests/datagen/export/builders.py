"""Episodes of the arena: made by hand in milliseconds, and played by the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from datagen.demos.record import spans
from datagen.experts.scripted.solver import OracleSolver
from datagen.export.arena_state import OPENING, POSITION
from datagen.keyframes import extract_keyframes
from predimem.cli.app import app
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.envs import arena
from predimem.envs.arena.scene.reading import rotation_6d
from predimem.envs.arena.suite import CONTROL_HZ, ArenaEnvironment
from predimem.envs.arena.tasks import task_of

PX = 32


def make_episode(task: int = 1, seed: int = 1000, steps_each: int = 5, px: int = PX) -> Episode:
    """All subtasks of a task. The gripper wanders about, turned at random; images are smooth gradients."""
    rng = np.random.default_rng(seed)
    spec = task_of(task)
    variant = spec.variants[seed % len(spec.variants)]
    labels = [s.label for s in variant.subtasks]
    steps = steps_each * len(labels)
    quaternions = rng.normal(size=(steps, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    state = np.concatenate(
        [
            np.cumsum(rng.normal(scale=0.01, size=(steps, 3)), axis=0),
            [rotation_6d(q) for q in quaternions],
            np.where(np.arange(steps) % 10 < 5, 0.08, 0.03)[:, None],
            rng.uniform(-2.5, 2.5, (steps, 7)),
        ],
        axis=1,
    ).astype(np.float32)
    return Episode(
        benchmark="arena",
        task=spec.name,
        seed=seed,
        instruction=variant.instruction,
        control_hz=CONTROL_HZ,
        success=True,
        images={camera: _images(rng, steps, px) for camera in ("agentview_rgb", "eye_in_hand_rgb")},
        state=state,
        actions=rng.uniform(-1, 1, (steps, 7)).astype(np.float32),
        subtasks=tuple(SubtaskSpan(i * steps_each, (i + 1) * steps_each, label) for i, label in enumerate(labels)),
        keyframes=extract_keyframes(state[:, POSITION], state[:, OPENING], CONTROL_HZ),
        goal=labels[-1],
        metadata={"retries": 1},
    )


def _images(rng: np.random.Generator, steps: int, px: int) -> np.ndarray:
    """uint8 [steps, px, px, 3]: a colour for each step, brighter downwards, so that frames can be told apart."""
    colours = rng.integers(20, 180, (steps, 1, 1, 3))
    shade = np.linspace(0, 60, px)[:, None, None]
    return (colours + np.broadcast_to(shade, (px, px, 1))).astype(np.uint8)


def save(root: Path, *episodes: Episode) -> Path:
    for episode in episodes:
        save_episode(episode_path(root, episode.task, episode.seed), episode)
    return root


def play_episode(task: int = 1, seed: int = 1000, px: int = 64, look_every: int = 12, into_second: int = 10) -> Episode:
    """The oracle's first subtask and the beginning of its second, with an image every `look_every` steps."""
    options = {"obs_mode": "none", "control_mode": "pd_ee_delta_pose", "sim_backend": "cpu", "render_backend": "auto"}
    environment = ArenaEnvironment(arena.make(task, image_px=px, **options), camera_every=look_every)
    observation = environment.reset(seed)
    solver = OracleSolver(environment.simulation)
    observations, actions, labels = [], [], []
    second = environment.simulation.variant().subtasks[1].label
    while labels.count(second) < into_second:
        action = solver.action()
        observations.append(observation)
        actions.append(action)
        labels.append(solver.subtask)
        observation = environment.step(action).observation
    instruction = environment.instruction
    environment.close()
    state = np.stack([o.state for o in observations])
    return Episode(
        benchmark="arena",
        task=task_of(task).name,
        seed=seed,
        instruction=instruction,
        control_hz=CONTROL_HZ,
        success=False,
        images={name: np.stack([o.images[name] for o in observations]) for name in observations[0].images},
        state=state,
        actions=np.stack(actions),
        subtasks=spans(labels),
        keyframes=extract_keyframes(state[:, POSITION], state[:, OPENING], CONTROL_HZ),
    )


def run_command(*arguments: object) -> str:
    """The output of a command. Its error is raised, as `predimem.cli.main` meets it."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output
