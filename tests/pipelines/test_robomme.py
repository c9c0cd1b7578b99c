"""`predimem train robomme`: planners share their episodes, actors too, and they are those that the evaluation plays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from actor.training.config import ActorTrainConfig
from planner.train_config import TrainConfig
from predimem.agent.config import AgentConfig
from predimem.core.config import ConfigError, from_dict, load_config, read_yaml
from predimem.pipelines.robomme import MIRRORED, RobommeConfig, plan_robomme
from predimem.pipelines.stage import ACTOR, ACTOR_DATA, DATA, PLANNER, choose_stages
from predimem.pipelines.stage_runs import check_configs

ROOT = Path(__file__).parents[2]
OF_ACTORS = (ACTOR_DATA, MIRRORED)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RobommeConfig:
    monkeypatch.chdir(ROOT)
    return replace(load_config(RobommeConfig, "configs/train_robomme.yaml"), out=str(tmp_path / "out"))


def test_what_is_made_of_what(config: RobommeConfig) -> None:
    stages = plan_robomme(config)
    played, *made = (stage for stage in stages if stage.kind == DATA and stage.name not in OF_ACTORS)
    assert made and all(one.needs == (played.name,) for one in made)
    assert {one.config["sources"] for one in made} == {str(played.result)}
    assert len({one.result for one in made}) == len(made)


@pytest.mark.needs("robomme")
def test_mistakes_are_found_before_anything_is_played(config: RobommeConfig) -> None:
    stages = plan_robomme(config)
    check_configs(stages)
    broken = replace(stages[1], config={**stages[1].config, "copies": 0})
    with pytest.raises(ValueError, match="copies"):
        check_configs([stages[0], broken])


def test_planners_differ_in_their_memory_alone(config: RobommeConfig) -> None:
    stages = plan_robomme(config)
    data = [str(stage.result) for stage in stages if stage.kind == DATA and stage.name not in OF_ACTORS]
    trained = [from_dict(TrainConfig, stage.config) for stage in stages if stage.kind == PLANNER]
    assert len({str(one.memory) for one in trained}) == len(trained) > 1
    first, *others = trained
    for one in others:
        alike = replace(one, memory=first.memory, prompt=first.prompt, out=first.out)
        assert alike == first and list(alike.episodes) == data


def test_they_are_those_that_are_played(config: RobommeConfig) -> None:
    agents = {
        name: from_dict(AgentConfig, one)
        for name, one in read_yaml("configs/eval/robomme.yaml")["agent_configs"].items()
    }
    planners = {agent.planner for agent in agents.values()} - {"oracle", "instruction"}
    assert planners == set(config.planners)
    assert {agent.actor for agent in agents.values()} - {"skills"} == set(config.actors)


def test_the_reactive_actor_goes_on_from_the_other_and_differs_in_what_it_is_told(config: RobommeConfig) -> None:
    stages = {stage.name: stage for stage in plan_robomme(config)}
    trained = [from_dict(ActorTrainConfig, stage.config) for stage in stages.values() if stage.kind == ACTOR]
    assert {one.sampling.instruction_share for one in trained} == {0.0, 1.0}
    first, reactive = trained
    assert reactive.continue_from == "predimem/weights/robomme-actor" and reactive.steps < first.steps
    longer = {name: getattr(first, name) for name in ("continue_from", "steps", "optimiser")}
    assert replace(reactive, out=first.out, sampling=first.sampling, actor=first.actor, **longer) == first
    assert replace(reactive.actor, model=first.actor.model) == first.actor
    assert first.episodes == str(stages[ACTOR_DATA].result)
    assert first.more_episodes == (str(stages[MIRRORED].result),)
    assert stages[MIRRORED].config["sources"] == first.episodes and stages[MIRRORED].needs == (ACTOR_DATA,)
    assert stages["robomme-actor"].result == Path(first.out) / "weights", "where `train actor` leaves them"
    assert all(stage.needs == OF_ACTORS for stage in stages.values() if stage.kind == ACTOR)


def test_an_actor_alone_needs_its_own_data(config: RobommeConfig) -> None:
    chosen = choose_stages(plan_robomme(config), ["robomme-actor"])
    assert [stage.name for stage in chosen] == [*OF_ACTORS, "robomme-actor"]
    planners_alone = plan_robomme(replace(config, demonstrations=None, mirrored=None, actors={}))
    assert not [stage for stage in planners_alone if stage.kind == ACTOR or stage.name in OF_ACTORS]
    without = plan_robomme(replace(config, mirrored=None))
    assert all(stage.config["more_episodes"] == [] for stage in without if stage.kind == ACTOR)


def test_one_planner_alone_needs_the_data(config: RobommeConfig) -> None:
    chosen = choose_stages(plan_robomme(config), ["robomme-planner-video"])
    assert [stage.name for stage in chosen] == ["played", *config.made, "robomme-planner-video"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"planners": {}}, "at least one of planners"),
        ({"made": {"played": "configs/datagen_robomme_moved.yaml"}}, "of its own stages, got 'played'"),
        ({"made": {"actor-data": "configs/datagen_robomme_moved.yaml"}}, "of its own stages, got 'actor-data'"),
        ({"made": {"mirrored": "configs/datagen_robomme_moved.yaml"}}, "of its own stages, got 'mirrored'"),
        ({"demonstrations": None}, "demonstrations: expected the config of the episodes that actors learn"),
        (
            {"demonstrations": None, "actors": {}},
            "demonstrations: expected the config of the episodes that are mirrored",
        ),
        ({"workers": 0}, "workers: expected at least 1, got 0"),
        ({"at_once": 0}, "at_once: expected at least 1, got 0"),
    ],
)
def test_refused(config: RobommeConfig, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(config, **changes)
