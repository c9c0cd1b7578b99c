"""`predimem train rounds`: who drives which data, what each planner learns from, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from datagen.dagger.config import PlannerDaggerConfig
from planner.train_config import TrainConfig
from predimem.cli.app import app
from predimem.core.config import ConfigError, from_dict, load_config
from predimem.core.frames import EpisodeError
from predimem.core.weight_files import WeightsError, weights_folder
from predimem.pipelines.own_rounds import OwnRoundsConfig, plan_own_rounds, played_with_skills, with_training_seeds
from predimem.pipelines.stage import DATA, PLANNER
from predimem.pipelines.stage_runs import check_configs, check_episodes

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def config(tmp_path: Path) -> OwnRoundsConfig:
    return replace(load_config(OwnRoundsConfig, "configs/train_own_rounds.yaml"), out=str(tmp_path / "out"))


def test_each_planner_drives_its_own_data_and_learns_from_it(config: OwnRoundsConfig) -> None:
    stages = {stage.name: stage for stage in plan_own_rounds(config)}
    check_configs(list(stages.values()))
    for name in config.planners:
        trained = from_dict(TrainConfig, stages[name].config)
        assert ROOT / (trained.continue_from or "") == weights_folder(None, name)
        assert not Path(trained.continue_from or "").is_absolute(), "it is noted in the weights"
        assert stages[name].needs == (f"{name}-slips", f"{name}-actor", f"{name}-hard")
        driven_by_it = tuple(str(stages[need].result) for need in stages[name].needs)
        assert trained.episodes == (*driven_by_it, *config.more_episodes)
        driven = [from_dict(PlannerDaggerConfig, stages[need].config) for need in stages[name].needs]
        assert {data.driver for data in driven} == {trained.continue_from}
        assert driven[0].low_level_policy == "skills"
        seeds = [seed for data in driven for seed in data.seeds]
        assert len(set(seeds)) == len(seeds)
    assert {stage.kind for stage in stages.values()} == {DATA, PLANNER}


def test_all_planners_have_equally_many_episodes_of_the_same_seeds(config: OwnRoundsConfig) -> None:
    data = [stage.config for stage in plan_own_rounds(config) if stage.kind == DATA]
    drawn = {(one["first_seed"], one["episodes"], str(one["disturbances"])) for one in data}
    assert len(data) == 3 * len(config.planners) and len(drawn) == len(config.data)


def test_training_seeds_share_the_data(config: OwnRoundsConfig) -> None:
    one = replace(config, planners={"arena-planner": "configs/planner/arena.yaml"}, training_seeds=(3, 1))
    first, second = (stage for stage in plan_own_rounds(one) if stage.kind == PLANNER)
    assert (first.weights, second.weights) == ("arena-planner", "arena-planner-seed-1")
    assert (first.config["seed"], second.config["seed"]) == (3, 1)
    assert first.config["episodes"] == second.config["episodes"]
    assert first.result != second.result
    assert with_training_seeds(one, ["arena-planner", "data"]) == ["arena-planner", "arena-planner-seed-1", "data"]


def test_older_episodes_are_learnt_from_as_well(config: OwnRoundsConfig) -> None:
    stages = plan_own_rounds(replace(config, more_episodes=("runs/data/older",)))
    assert all(stage.config["episodes"][3:] == ["runs/data/older"] for stage in stages if stage.kind == PLANNER)


def test_older_episodes_that_are_not_there_are_missed_before_anything_is_played(
    config: OwnRoundsConfig, tmp_path: Path
) -> None:
    out = Path(config.out)
    check_episodes(plan_own_rounds(replace(config, more_episodes=())), out)
    stages = plan_own_rounds(replace(config, more_episodes=(str(tmp_path / "older"),)))
    with pytest.raises(EpisodeError, match="no episodes under"):
        check_episodes(stages, out)
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "seed0000000001.h5").touch()
    check_episodes(stages, out)


def test_an_actor_of_ones_own_moves_where_a_learned_one_does(config: OwnRoundsConfig) -> None:
    stages = {stage.name: stage.config for stage in plan_own_rounds(replace(config, actor="some/actor"))}
    assert stages["arena-planner-actor"]["low_level_policy"] == "some/actor"
    assert stages["arena-planner-slips"].get("low_level_policy", "skills") == "skills"


def test_a_planner_that_is_not_there_is_missed_only_where_its_stages_are_asked_for(
    config: OwnRoundsConfig, tmp_path: Path
) -> None:
    (tmp_path / "arena-planner-recent").mkdir()
    others = replace(config, weights=str(tmp_path))
    stages = plan_own_rounds(others, ["arena-planner-recent"])
    assert stages[-1].weights == "arena-planner-recent"
    assert played_with_skills(stages, others.evaluation) == ["no-keyframes-skills"]
    for only in ([], ["arena-planner-text", "arena-planner-recent"]):
        with pytest.raises(WeightsError, match="no weights for 'arena-planner'"):
            plan_own_rounds(others, only)


def test_planners_of_long_tasks_are_played_on_these(tmp_path: Path) -> None:
    (tmp_path / "arena-planner-long-text").mkdir()
    config = replace(load_config(OwnRoundsConfig, "configs/train_long_rounds.yaml"), weights=str(tmp_path))
    stages = plan_own_rounds(config, ["arena-planner-long-text"])
    assert played_with_skills(stages, config.evaluation) == ["text-memory-long"]


def test_what_is_refused(config: OwnRoundsConfig, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="arena-planner"):
        plan_own_rounds(replace(config, weights=str(tmp_path)))
    with pytest.raises(ConfigError, match="training_seeds: expected different ones, got \\[1, 1\\]"):
        replace(config, training_seeds=(1, 1))
    with pytest.raises(ConfigError, match="at least one of planners"):
        replace(config, data={})


def test_the_command_lists_its_stages_and_refuses_other_seeds_than_numbers(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    listed = CliRunner().invoke(app, ["train", "rounds", *out, "--dry-run", "--only", "arena-planner-recent"])
    assert "[4/4] arena-planner-recent: predimem train planner" in listed.stdout, listed.output
    some = ["--dry-run", "--only", "arena-planner-recent", "--seeds", "3,1"]
    assert "arena-planner-recent-seed-1: " in CliRunner().invoke(app, ["train", "rounds", *out, *some]).stdout
    refused = CliRunner().invoke(app, ["train", "rounds", *out, "--seeds", "one"])
    assert "--seeds: expected whole numbers" in str(refused.exception) and refused.exit_code != 0


def test_the_second_round_for_the_corrected_actor_learns_from_what_the_planner_drove_in_the_first_one() -> None:
    first, second = (
        load_config(OwnRoundsConfig, f"configs/train_corrected_planner_{number}.yaml") for number in (1, 2)
    )
    assert second.weights == str(Path(first.out) / "weights")
    assert second.planners == first.planners
    for name, recipe in first.planners.items():
        before, after = (  # the first round's weights are not made here
            plan_own_rounds(replace(config, weights=None, planners={name: recipe})) for config in (first, second)
        )
        trained, data = after[-1].config, [stage for stage in (*before, *after) if stage.kind == DATA]
        assert set(trained["episodes"]) == {str(stage.result) for stage in data} | set(first.more_episodes)
        driven = [from_dict(PlannerDaggerConfig, stage.config) for stage in data]
        seeds = [seed for one in driven for seed in one.seeds]
        assert len(set(seeds)) == len(seeds)
        assert {one.low_level_policy for one in driven} == {first.actor, "skills"} and second.actor == first.actor
