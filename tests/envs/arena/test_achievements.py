"""Stages achieved though they were not due, in the real physics: drawers and objects are put where a robot would."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import predimem.envs.arena
from predimem.envs.arena.suite import ArenaEnvironment
from predimem.evaluation.analysis.stages import facts_of
from tests.envs.arena.test_suite import drop_into_drawer, hold, put, set_drawer

SEED, AWAY = 3, 28  # a second without it, and a look
OPEN_M = 0.17


@pytest.fixture(scope="module")
def environment() -> Iterator[ArenaEnvironment]:
    env = predimem.envs.arena.make(
        "ButterInOccupiedDrawer", obs_mode="none", control_mode="pd_joint_pos", sim_backend="cpu"
    )
    environment = ArenaEnvironment(env, camera_every=None)
    yield environment
    environment.close()


def undue(environment: ArenaEnvironment, steps: int) -> list[str]:
    told = [str(hold(environment).info["undue"]) for _ in range(steps)]
    return [line for text in told for line in text.splitlines()]


def move_drawer(environment: ArenaEnvironment, drawer: str, opening_m: float) -> list[str]:
    set_drawer(environment.simulation, drawer, opening_m)
    return undue(environment, AWAY)


def test_what_is_due_is_not_undue(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    assert undue(environment, AWAY) == []
    for drawer in ("top_drawer", "middle_drawer", "bottom_drawer"):
        assert move_drawer(environment, drawer, OPEN_M) == []
        assert move_drawer(environment, drawer, 0.0) == []
    assert hold(environment).info["stage_due"] == 6
    again = environment.simulation.variant().start["cookies"]
    assert move_drawer(environment, again, OPEN_M) == []  # opened again, and that was due
    assert hold(environment).info["stage_due"] == 7


def test_a_drawer_that_is_opened_again(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    assert undue(environment, AWAY) == []
    assert move_drawer(environment, "top_drawer", OPEN_M) == []
    assert move_drawer(environment, "top_drawer", 0.0) == []
    assert move_drawer(environment, "top_drawer", OPEN_M) == ["again: open top drawer"]
    assert move_drawer(environment, "top_drawer", 0.0) == []  # putting it right is not counted
    assert move_drawer(environment, "bottom_drawer", OPEN_M) == ["ahead: open bottom drawer"]
    assert hold(environment).info["stage_due"] == 2


def test_a_drawer_that_trembles_is_opened_once(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    undue(environment, AWAY)
    assert move_drawer(environment, "top_drawer", OPEN_M) == []
    set_drawer(environment.simulation, "top_drawer", 0.159)
    assert undue(environment, 8) == []
    assert move_drawer(environment, "top_drawer", OPEN_M) == []


def test_the_butter_is_put_away_before_all_was_inspected(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    undue(environment, AWAY)
    drawer = environment.simulation.variant().start["cookies"]
    label = f"place butter into {drawer.removesuffix('_drawer')} drawer"
    set_drawer(environment.simulation, drawer, OPEN_M)
    undue(environment, AWAY)
    drop_into_drawer(environment, "butter")
    assert f"ahead: {label}" in undue(environment, AWAY)
    put(environment.simulation, "butter", (-0.2, 0.0, 0.05))
    assert undue(environment, AWAY) == []


@pytest.mark.slow
def test_pouring_into_the_other_mug() -> None:
    """The script of seed 0 in an episode in which the other mug was asked for."""
    from predimem.envs.arena.layout import draw_layout
    from predimem.envs.arena.tasks import task_of
    from predimem.evaluation.analysis.failures import explain
    from predimem.evaluation.report.episode_log import LogRecorder
    from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
    from predimem.evaluation.run.config import PlayConfig

    task = task_of(10)
    other = next(s for s in range(9) if draw_layout(task, s).variant != draw_layout(task, 0).variant)
    recorder, player = LogRecorder(), BenchmarkPlayer(PlayConfig(benchmark="arena"))
    result = player.play(task.name, "script", other, [recorder])
    player.close()
    done, wanted = (f"pour wine into mug 1st: mug {colour}" for colour in ("red", "white"))
    assert [(kind, label) for _, kind, label in recorder.log.undue][:1] == [("elsewhere", done)]
    failure = explain(recorder.log, result)
    assert failure and (failure.cause, failure.label) == ("wrong subtask", wanted)


def test_the_stages_are_explained(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    info = hold(environment).info
    facts = facts_of(info)
    assert [stage.label for stage in facts] == str(info["stage_labels"]).splitlines()
    assert (facts[0].skill, facts[0].target, facts[0].memory) == ("Open", "top_drawer", "")
    assert (facts[2].memory, facts[2].evidence, facts[2].budget_steps) == ("occlusion", (0,), 360)
    assert sum(stage.budget_steps for stage in facts) == environment.horizon
    assert json.loads(str(info["stage_facts"])) and facts_of({}) == ()
