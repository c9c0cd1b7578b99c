"""A learned actor as the low-level policy: its actions are carried out, and what it has done is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datagen.command import make_data, make_worker
from datagen.dagger.config import DisturbanceConfig, PlannerDaggerConfig
from datagen.dagger.labels import SubtaskLabeller
from datagen.dagger.learned_policy import LearnedPolicy
from datagen.experts.scripted.action_labels import chunk
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from datagen.experts.scripted.subtask_names import named
from datagen.generation import run_generation
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.types import ActionChunk, Observation
from predimem.core.weight_files import WeightsError
from predimem.envs.arena.subtasks import Subtask
from tests.datagen.experts import arena


class LearnedPerfectly:
    """A policy that answers with the labels that learned actors are trained on."""

    def __init__(self, env: Any):
        self._env, self.asked = env, 0
        self.learned: LearnedPolicy

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        self.asked += 1
        meant = named(self._env.task, self._env.variant(), subtask)
        assert isinstance(meant, Subtask)
        arm = self.learned.arm
        return ActionChunk(observation.step, chunk(arm, Gripper.of(arm), Snapshot.of(self._env), meant, 10), subtask)


def test_it_carries_out_actions_and_tells_when_the_motion_has_ended() -> None:
    env: Any = arena(1, 0)
    policy = LearnedPerfectly(env)
    learned = policy.learned = LearnedPolicy(env, policy, execute_steps=4)
    labeller = SubtaskLabeller(env, learned)
    labels = [subtask.label for subtask in env.variant().subtasks]
    passed_at = switched_at = -1
    for step in range(200):
        index = labeller.label()
        passed_at = step if passed_at < 0 and int(env.progress.stage[0]) == 1 else passed_at
        if index == 1:
            switched_at = step
            break
        action = learned.infer(Observation(step, {}, np.zeros(1, np.float32)), labels[0]).actions
        assert action.shape == (1, 8) and policy.asked == step // 4 + 1
        env.step(action[0])
    assert learned.doing is not None and learned.doing.label == labels[0]
    assert 0 < passed_at <= switched_at < passed_at + 30, "at rest soon after, and not before"
    still = learned.still(Observation(200, {}, np.zeros(1, np.float32))).actions[0]
    for _ in range(8):
        env.step(still)
    assert np.abs(learned.arm.true_q - still[:7]).max() < 0.02
    env.close()


def test_it_asks_anew_for_another_subtask_and_after_a_pause() -> None:
    env: Any = arena(1, 0)
    policy = LearnedPerfectly(env)
    learned = policy.learned = LearnedPolicy(env, policy, execute_steps=4)
    first, second, *_ = [subtask.label for subtask in env.variant().subtasks]
    asked = []
    for step, label in enumerate([first, first, second, second, None, second, second]):
        observation = Observation(step, {}, np.zeros(1, np.float32))
        env.step((learned.still(observation) if label is None else learned.infer(observation, label)).actions[0])
        asked.append(policy.asked)
    assert asked == [1, 1, 2, 2, 2, 3, 3]
    env.close()


def test_faulty_configs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{kind: dagger, low_level_policy: skils}")
    with pytest.raises(WeightsError, match="no weights for 'skils'"):
        make_data(tmp_path / "a.yaml", 1, None, {"out": str(tmp_path / "data")})
    assert not (tmp_path / "data").exists()
    with pytest.raises(ConfigError, match="the learned actor a is carried out with pd_joint_pos alone"):
        PlannerDaggerConfig(low_level_policy="a", control_mode="pd_ee_delta_pose")
    with pytest.raises(ConfigError, match="execute_steps must be >= 1, got 0"):
        PlannerDaggerConfig(low_level_policy="a", execute_steps=0)


@pytest.mark.slow
def test_an_episode_with_the_shipped_actor(tmp_path: Path) -> None:
    calm = DisturbanceConfig(undisturbed_share=1.0)
    config = PlannerDaggerConfig(
        out=str(tmp_path), tasks=("1",), episodes=1, low_level_policy="arena-actor", disturbances=calm
    )
    (outcome,) = run_generation(config, make_worker, progress=False)
    episode = load_episode(episode_path(tmp_path, outcome.task, config.first_seed))
    assert outcome.kept and episode.metadata["low_level_policy"] == "arena-actor" and len(episode) > 60
    assert episode.image_steps.tolist() == [t % 10 == 0 for t in range(len(episode))], "though it looks more often"
