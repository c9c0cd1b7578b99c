"""The benchmark played for real: sessions are recorded, an oracle actor carries out right and wrong answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datagen.experts.interference import AnswerPolicy
from predimem.agent.runtime import run_episode
from predimem.core.types import History, Observation, Tick
from predimem.envs.benchmark import EnvironmentRequest, load_benchmark
from predimem.envs.interference.benchmark import InterferenceOptions
from predimem.envs.interference.environment import InterferenceEnvironment
from predimem.envs.interference.families import FAMILIES
from predimem.envs.interference.sessions import SessionPool

pytestmark = pytest.mark.needs("vulkan")
PX = 64


class Answering:
    """An agent that gives one answer, and writes down the history that it was told."""

    last_tick: Tick | None = None

    def __init__(self, environment: InterferenceEnvironment, shift: int):
        self._environment, self._policy, self._shift = environment, AnswerPolicy(environment), shift
        self.history = History()

    def reset(self, instruction: str, episode_id: str) -> None:
        self._policy.reset()

    def recall(self, history: History) -> None:
        self.history = history

    def act(self, observation: Observation) -> np.ndarray:
        answers = self._environment.family.answers
        answer = answers[(self._environment.value + self._shift) % len(answers)]
        return self._policy.infer(observation, answer).actions[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


def made(task: str, folder: Path) -> InterferenceEnvironment:
    options = InterferenceOptions(str(folder), pool=1, image_px=PX)
    environment = load_benchmark("interference").make_environment(task, options, EnvironmentRequest(privileged=True))
    assert isinstance(environment, InterferenceEnvironment)
    return environment


def play(task: str, folder: Path, shift: int, seed: int = 900_001):
    environment = made(task, folder)
    agent = Answering(environment, shift)
    try:
        return run_episode(environment, agent, task, "answering", seed), agent.history
    finally:
        environment.close()


def test_the_right_answer_succeeds_and_a_wrong_one_fails_at_once(folder: Path) -> None:
    result, history = play("thing-k0", folder, shift=0)
    assert (result.status, result.message) == ("success", "")
    (lesson,) = history.sessions
    assert lesson.relevant and lesson.instruction == "Look, this thing is mine."
    assert [sorted(frame.images) for frame in lesson.frames] == [["agentview_rgb", "eye_in_hand_rgb"]] * 2
    assert lesson.frames[0].step == 0 < lesson.frames[1].step
    assert lesson.frames[0].images["agentview_rgb"].shape == (PX, PX, 3)
    assert not np.array_equal(lesson.frames[0].images["agentview_rgb"], lesson.frames[1].images["agentview_rgb"])
    wrong, again = play("thing-k0", folder, shift=1)
    assert wrong.status == "failure" and wrong.message.startswith("wrong: elsewhere: pick the thing: ")
    assert wrong.steps < 100
    assert np.array_equal(again.sessions[0].frames[1].images["agentview_rgb"], lesson.frames[1].images["agentview_rgb"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drawer", "plate", "pours", "order", "spot", "mug"])
def test_every_family_tells_right_from_wrong(name: str, folder: Path) -> None:
    for seed in (900_000, 900_003):
        result, _ = play(f"{name}-k0", folder, 0, seed)
        assert result.status == "success", (seed, result.message)
        for shift in range(1, FAMILIES[name].values):
            result, _ = play(f"{name}-k0", folder, shift, seed)
            assert result.status == "failure" and "out of time" not in result.message, (seed, shift, result.message)


def test_sessions_are_recorded_once_and_a_broken_file_anew(folder: Path) -> None:
    pool = SessionPool(folder, PX)
    family = FAMILIES["thing"]
    try:
        before = pool.lesson(family, 0, 0)
        (path,) = folder.rglob("thing/lesson-0-0.npz")
        changed = path.stat().st_mtime_ns
        assert SessionPool(folder, PX).lesson(family, 0, 0).frames[1].step == before.frames[1].step
        assert path.stat().st_mtime_ns == changed
        path.write_bytes(path.read_bytes()[:1000])
        pool.close()
        pool = SessionPool(folder, PX)
        after = pool.lesson(family, 0, 0)
        same = zip(before.frames, after.frames, strict=True)
        assert all(np.array_equal(a.images["agentview_rgb"], b.images["agentview_rgb"]) for a, b in same)
    finally:
        pool.close()
