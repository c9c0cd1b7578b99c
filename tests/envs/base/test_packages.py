"""The environments that come in packages: all of them step, and teachers know what is right."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from predimem.envs.base import tasks
from predimem.envs.base.game import CAMERA, GameEnvironment, Solved
from predimem.envs.base.packages import MissingPackage

pytestmark = pytest.mark.needs("popgym", "minigrid", "memory_gym")

TAUGHT = [
    "popgym-RepeatFirstEasy-v0",
    "popgym-RepeatPreviousMedium-v0",
    "popgym-AutoencodeEasy-v0",
    "popgym-CountRecallEasy-v0",
    "MiniGrid-MemoryS7-v0",
    "MiniGrid-MemoryS17Random-v0",
]


@pytest.mark.parametrize("task", tasks.PACKAGED)
def test_every_environment_can_be_played(task: str) -> None:
    environment = GameEnvironment(task, tasks.make_game(task))
    random, observation = np.random.default_rng(0), environment.reset(0)
    shape = {name: image.shape for name, image in observation.images.items()}
    for _ in range(20):
        result = environment.step(random.uniform(-1, 1, environment.action_dim))
        assert result.observation.state.shape == observation.state.shape
        assert {name: image.shape for name, image in result.observation.images.items()} == shape
        assert np.isfinite(result.observation.state).all() and "return" in result.info
        if result.terminated or result.truncated:
            break
    environment.close()


@pytest.mark.parametrize("task", TAUGHT)
def test_the_teacher_succeeds(task: str) -> None:
    environment = GameEnvironment(task, tasks.make_game(task))
    assert isinstance(environment.game, Solved)
    for seed in range(3):
        environment.reset(seed)
        while True:
            right = environment.game.solve()
            scores = environment.hold_action(None) if right is None else environment.scores(right)
            result = environment.step(scores)
            if result.terminated or result.truncated:
                break
        assert result.success, result.info


def test_joint_actions_reach_every_combination() -> None:
    game = tasks.make_game("popgym-BattleshipEasy-v0")
    assert game.action_dim == 64
    assert game._native(63).tolist() == [7, 7] and game._native(8).tolist() == [1, 0]  # type: ignore[attr-defined]


def test_continuous_actions_are_scaled_to_the_box() -> None:
    game = tasks.make_game("popgym-PositionOnlyPendulumEasy-v0")
    assert game.actions == () and game._native(np.array([1.0])).tolist() == [2.0]  # type: ignore[attr-defined]


def test_images_are_pixels() -> None:
    observation = GameEnvironment("m", tasks.make_game("MiniGrid-MemoryS7-v0")).reset(0)
    assert observation.images[CAMERA].shape == (56, 56, 3) and observation.state.tolist() == [1, 0, 0, 0]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "popgym", None)
    with pytest.raises(
        MissingPackage, match=r"popgym-RepeatFirstEasy-v0 needs the package popgym.*pip install 'predimem"
    ):
        tasks.make_game("popgym-RepeatFirstEasy-v0")
