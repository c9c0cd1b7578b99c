"""Our agents in the suite's own harness, with stock meshes and the suite's own wrappers."""

import numpy as np
import pytest
import torch

from predimem.core.types import Observation, Tick
from predimem.envs.mikasa import harness as mikasa_harness
from predimem.envs.mikasa import suite as mikasa
from predimem.envs.mikasa.expert import FamilyExpert

pytestmark = pytest.mark.needs("suite")
TASK = "RememberColor3-VLA-v0"
SUITE_SEED = 4_242_424_242


class Replay:
    """Plays a fixed list of actions and notes what it was shown."""

    last_tick: Tick | None = None

    def __init__(self, actions: list[np.ndarray]):
        self._actions = actions
        self.resets: list[tuple[str, str]] = []
        self.seen: list[Observation] = []

    def reset(self, instruction: str, episode_id: str) -> None:
        self.resets.append((instruction, episode_id))

    def act(self, observation: Observation) -> np.ndarray:
        self.seen.append(observation)
        return self._actions[observation.step]


def test_the_policy_resets_its_agent_between_episodes() -> None:
    rgb = torch.zeros(1, 4, 4, 6, dtype=torch.uint8)
    rgb[..., 3:] = 7
    obs = {"rgb": rgb, "proprio": torch.arange(7.0)[None]}
    agent = Replay([np.full(7, 2.0), np.zeros(7)])
    policy = mikasa_harness.AgentPolicy(agent, "touch it", first_seed=5)
    first = policy.forward(obs)
    assert first.shape == (1, 7) and first.dtype == np.float32 and (first == 1.0).all()  # clipped
    policy.forward(obs)
    policy.next_episode()
    policy.forward(obs)
    assert agent.resets == [("touch it", "harness/5"), ("touch it", "harness/6")]
    assert [o.step for o in agent.seen] == [0, 1, 0]
    assert agent.seen[0].state.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert (agent.seen[0].images["base_camera"] == 0).all()
    assert (agent.seen[0].images["hand_camera"] == 7).all()


def test_a_task_whose_instruction_is_drawn_is_refused() -> None:
    assert mikasa_harness.as_chunk_policy(Replay([]), TASK)
    with pytest.raises(ValueError, match=r"TimedTransferEasy-VLA-v0: its instruction names .* use `predimem eval`"):
        mikasa_harness.as_chunk_policy(Replay([]), "TimedTransferEasy-VLA-v0")


@pytest.mark.slow
def test_harness_and_environment_show_and_judge_the_same() -> None:
    """The expert's actions in our environment, replayed in the harness: same images, same success."""
    environment = mikasa.MikasaEnvironment(TASK, "stock")
    ours, actions = [environment.reset(SUITE_SEED)], []
    for _ in range(environment.horizon):
        actions.append(FamilyExpert(environment).action())
        result = environment.step(actions[-1])
        ours.append(result.observation)
    environment.close()
    agent, told = Replay(actions), []
    result_of_suite = mikasa_harness.run_suite_harness(
        TASK, lambda: agent, episodes=1, on_episode=lambda index, success: told.append((index, success))
    )
    assert result_of_suite["episode_seeds"] == [SUITE_SEED] and result_of_suite["episode_lengths"] == [25]
    assert result_of_suite["sr"] == 1.0 == float(result.success) and told == [(0, True)]
    assert agent.resets[0][0] == environment.instruction
    for expected, seen in zip(ours[:-1], agent.seen, strict=True):
        np.testing.assert_array_equal(expected.state, seen.state)
        for name, image in expected.images.items():
            np.testing.assert_array_equal(image, seen.images[name])
