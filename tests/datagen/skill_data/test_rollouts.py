"""Short episodes in physics, by the expert."""

from contextlib import closing

import numpy as np
import pytest

from datagen.arena.tasks import task_of
from datagen.scale.jobs import Job
from datagen.skill_data.collect import SkillWorker
from datagen.skill_data.config import SkillDataConfig
from predimem.config import ConfigError

CONFIG = SkillDataConfig(
    kind="rollouts", skills=("Move",), image_px=32, chunk_steps=8, execute_steps=4, chain_share=0.0, noise=0.0
)


def test_it_goes_on_for_a_while_after_a_success() -> None:
    with closing(SkillWorker(CONFIG)) as worker:
        rollouts = [
            worker.rollout(Job(task_of(18).name, seed), np.random.default_rng(seed)) for seed in (20_000, 20_001)
        ]
    lasted = []
    for rollout in rollouts:
        (attempt,) = rollout.attempts
        assert attempt.done and {frame.subtask for frame in rollout.frames} == {attempt.subtask.label}
        lasted.append(4 * len(rollout.frames) - attempt.steps)
    assert all(0 <= steps < CONFIG.after_steps + 4 for steps in lasted) and max(lasted) > 4


def test_how_long_is_not_negative() -> None:
    with pytest.raises(ConfigError, match="after_steps must be >= 0, got -1"):
        SkillDataConfig(after_steps=-1)
