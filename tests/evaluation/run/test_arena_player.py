"""The arena's agents on the real physics, and an episode that is filmed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np
import pytest

import predimem.envs.arena
from predimem.agent.baselines import RandomAgent
from predimem.agent.clock import TimeConfig
from predimem.agent.config import AgentConfig
from predimem.agent.dual_system import DualSystemConfig
from predimem.agent.recording import TraceRecorder
from predimem.agent.runtime import run_episode
from predimem.core.interfaces import Subscriber
from predimem.core.types import EpisodeResult, Observation
from predimem.core.weight_files import WeightsError
from predimem.envs.arena.benchmark import ARENA
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.suite import ArenaEnvironment, make
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.unseen.conditions import draw_setting
from predimem.envs.benchmark import BareRobot, load_benchmark
from predimem.evaluation.run.agents import AgentFactory
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import PlayConfig
from predimem.evaluation.run.film import film_episode
from predimem.evaluation.run.jobs import EpisodeJob, play_job
from predimem.evaluation.run.names import check_agents
from predimem.evaluation.run.verify import _compare

TASK = task_of(1)


@pytest.fixture(scope="module")
def player() -> Iterator[BenchmarkPlayer]:
    player = BenchmarkPlayer(PlayConfig(benchmark="arena"))
    yield player
    player.close()


def seed_with(variant_of_seed_0: bool) -> int:
    """A seed whose hidden state is that of seed 0, or one whose is not."""
    first = draw_layout(TASK, 0).variant
    return next(s for s in range(1, 100) if (draw_layout(TASK, s).variant == first) == variant_of_seed_0)


def test_all_tasks_have_names_and_a_category() -> None:
    names = ARENA.all_tasks()
    assert len(names) == len(TASKS) == 26
    asked = ("4", "PourWineIntoMugTwice", "predimem/Arena-TransferButterCreamCheese-v0")
    assert [ARENA.task_name(task) for task in asked] == [
        "ButterInOccupiedDrawer",
        "PourWineIntoMugTwice",
        "TransferButterCreamCheese",
    ]
    categories = ARENA.categories(())
    assert load_benchmark("mikasa").categories(()) is None
    assert {name: len(tasks) for name, tasks in categories.items()} == {
        "transferring": 4, "occlusion": 11, "counting": 7, "sequence": 4,
    }  # fmt: skip
    assert sorted(name for tasks in categories.values() for name in tasks) == sorted(names)


def test_who_plays_what() -> None:
    check_agents(["oracle", "script", "random"], "arena", {})
    with pytest.raises(ValueError, match="unknown agent 'script'; there are: oracle, random; the agents"):
        check_agents(["script"], "mikasa", {})


def test_the_oracle_succeeds_and_says_what_it_does(player: BenchmarkPlayer) -> None:
    recorder = TraceRecorder()
    seed = seed_with(False)
    result = player.play(TASK.name, "oracle", seed, [recorder])
    assert (result.status, result.message) == ("success", "")
    assert result.stages_passed == result.stages_total == TASK.stages
    said = list(dict.fromkeys(tick["subtask"] for tick in recorder.trace["ticks"]))
    assert said == [subtask.label for subtask in TASK.variants[draw_layout(TASK, seed).variant].subtasks]


@pytest.mark.slow
def test_the_script_plays_seed_0_whatever_the_seed(player: BenchmarkPlayer) -> None:
    result = player.play(TASK.name, "script", seed_with(False))
    assert result.status == "failure" and result.message.startswith("out of time: ")
    assert result.stages_passed < TASK.stages
    assert player.play(TASK.name, "script", seed_with(True)).status == "success"


@pytest.mark.slow
def test_of_the_arena_one_environment_is_kept(player: BenchmarkPlayer) -> None:
    player.play(TASK.name, "oracle", 1)
    ((key, first),) = player._environments.items()
    assert key[0] == TASK.name
    player.play(TASK.name, "oracle", 2)
    assert player._environments == {key: first}
    result = player.play("PourWineIntoMugTwice", "random", 1)
    (((task, _), environment),) = player._environments.items()
    assert task == "PourWineIntoMugTwice" and environment.action_dim == 7
    assert result.status == "failure" and result.metrics["clipped_actions"] == 0.0


def test_what_the_figures_depend_on(player: BenchmarkPlayer) -> None:
    provenance = player.provenance()
    assert provenance["benchmark_version"].startswith("arena ") and "agent_configs" not in provenance


@pytest.fixture(scope="module")
def planned() -> Iterator[BenchmarkPlayer]:
    systems = {
        "oracles": AgentConfig("oracle", "skills"),
        "slow": AgentConfig("oracle", "skills", s2_latency_steps=30),
        "patient": AgentConfig("oracle", "skills", confirm_plans=3),
        "learned": AgentConfig("arena-planner", "skills"),
        "driven": AgentConfig("oracle", "arena-actor"),
    }
    time = TimeConfig(s2_latency_steps=4)
    agent = DualSystemConfig(plan_every_steps=10)
    player = BenchmarkPlayer(PlayConfig("arena", time=time, agent=agent, agent_configs=systems, weights="x"))
    yield player
    player.close()


def test_the_oracle_actor_carries_out_what_is_planned_in_the_asynchronous_runtime(planned: BenchmarkPlayer) -> None:
    recorder = TraceRecorder()
    result = planned.play(TASK.name, "oracles", 900_000, [recorder])
    assert result.status == "success"
    ticks = recorder.trace["ticks"]
    assert [i for i, t in enumerate(ticks[:30]) if t["plan_arrived"]] == [4, 14, 24]
    assert [t["held_action"] for t in ticks[:6]] == [True] * 4 + [False] * 2
    assert {t["plan_age_steps"] for t in ticks[4:]} == set(range(4, 14))
    for waits in ("slow", "patient"):
        late = planned.play(TASK.name, waits, 900_000)
        assert late.status == "success" and late.steps > result.steps


@pytest.mark.parametrize(("execute_steps", "asked"), [(None, [1, 5, 9]), (1, list(range(1, 12)))])
def test_an_agent_config_says_how_often_the_actor_is_asked(execute_steps: int | None, asked: list[int]) -> None:
    config = AgentConfig("instruction", "arena-actor", execute_steps=execute_steps)
    factory = AgentFactory(PlayConfig("arena", agent_configs={"it": config}))
    agent = factory.make("it", BareRobot(lambda last: np.zeros(7, np.float32), 7, 20.0))
    agent.reset("pick cookies", "one")
    images = dict.fromkeys(("agentview_rgb", "eye_in_hand_rgb"), np.zeros((128, 128, 3), np.uint8))
    found = []
    for step in range(12):
        agent.act(Observation(step, images, np.zeros(17, np.float32), step / 20))
        if agent.last_tick.s1_latency_s is not None:
            found.append(step)
    assert found == asked


def test_rows_have_their_weights_and_the_control_mode_of_their_actor(planned: BenchmarkPlayer) -> None:
    with pytest.raises(WeightsError, match="no weights for 'arena-planner' in x"):
        planned.play(TASK.name, "learned", 0)
    factory = AgentFactory(planned._config)
    privileged = {name: factory.is_privileged(name) for name in ("oracles", "driven", "oracle", "random")}
    assert privileged == {"oracles": True, "driven": False, "oracle": True, "random": False}
    configs = planned._config.agent_configs
    check_agents(["slow", "oracle"], "arena", configs)
    with pytest.raises(ValueError, match=r"unknown agent 'fast'; there are: oracles, slow, .*, oracle, script, random"):
        check_agents(["fast"], "arena", configs)
    with pytest.raises(ValueError, match="'oracle' is an agent already"):
        check_agents(["oracle"], "arena", {"oracle": configs["slow"]})
    oracles = replace(planned._config, agent_configs={"oracles": configs["oracles"]})
    assert BenchmarkPlayer(oracles).provenance()["agent_configs"]["oracles"]["weights"] == {}


@pytest.mark.parametrize("solver", ["predimem", "maniskill"])
def test_whoever_solves_inverse_kinematics_takes_the_actions_of_learned_actors(solver: str) -> None:
    env = make("1", "pd_ee_delta_pose", 16, images=False, inverse_kinematics=solver)
    try:
        assert env.simulation.control_mode == ("pd_joint_pos" if solver == "predimem" else "pd_ee_delta_pose")
        before = after = env.reset(900_000).state[:3]
        assert env.action_dim == 7 and env.hold_action(None).tolist() == [0, 0, 0, 0, 0, 0, 1]
        for _ in range(5):
            after = env.step(np.array([-0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])).observation.state[:3]
        np.testing.assert_allclose(after - before, [-0.11, 0.0, 0.0], atol=0.02)  # the arm covers some 40 %
        assert [env.step(np.array([z, 0, 0, 0, 0, 0, 1])).info["clipped_actions"] for z in (0.0, 1.5, 0.0)] == [0, 1, 1]
        for action in (np.zeros(8), np.full(7, np.nan)):
            with pytest.raises(ValueError, match="an action of pd_ee_delta_pose is"):
                env.step(action)
    finally:
        env.close()


class ShortPlayer:
    """Plays a few steps of one environment at random."""

    def __init__(self, environment: ArenaEnvironment):
        self._environment = environment

    def true_keyframes(self, states: np.ndarray, hz: float) -> None:
        """Nobody annotates them."""

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber]) -> EpisodeResult:
        return run_episode(self._environment, RandomAgent(7), task, agent, seed, subscribers)

    def provenance(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._environment.close()


def test_a_filmed_episode_can_be_watched(tmp_path: Path) -> None:
    env = predimem.envs.arena.make(10, obs_mode="none", sim_backend="cpu", render_backend="auto", image_px=64)
    player = ShortPlayer(ArenaEnvironment(env, camera_every=4, horizon=10))
    path = tmp_path / "videos" / "wine.mp4"
    result = film_episode(player, "PourWineIntoMugTwice", "random", 3, path)
    assert (result.status, result.message) == ("failure", "out of time: pick wine bottle")
    assert [p.name for p in path.parent.iterdir()] == ["wine.mp4"]
    frames = list(imageio.imiter(path))
    assert len(frames) == 3 + 24  # steps 0, 4 and 8, and the outcome for two seconds
    assert frames[0].shape[1] >= 2 * 6 * 64 + 300  # two cameras, enlarged, and the list of stages
    with pytest.raises(ValueError, match="expected a seed"):
        film_episode(player, "PourWineIntoMugTwice", "random", -1, path)
    player.close()


def test_a_record_says_what_a_condition_changed_and_verification_looks_at_it(tmp_path: Path) -> None:
    task = "PourSauceOnFrypanTwice-distractors"
    env = predimem.envs.arena.make(7, obs_mode="none", sim_backend="cpu", condition="distractors")
    player = ShortPlayer(ArenaEnvironment(env, camera_every=None, horizon=4))
    record = play_job(player, EpisodeJob(task, 900_000, "random", trace=False), tmp_path)
    player.close()
    assert record["changed"] == draw_setting(task_of(7), 900_000, "distractors").changed
    assert len(record["changed"]["distractors_m"]) == 2
    assert not _compare(json.loads(json.dumps(record)), record).differences
    other = record | {"changed": {"distractors_m": {}}}
    assert all("changed.distractors_m" in text for text in _compare(other, record).differences)
    assert len(_compare(other, record).differences) == 2
