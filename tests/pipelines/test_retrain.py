"""`predimem train arena`: which stages it has, and what each of them is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from actor.training.config import DaggerConfig
from datagen.actor_data.config import ActorDataConfig
from datagen.dagger.config import PlannerDaggerConfig
from datagen.vision_data.config import VisionDataConfig
from predimem.core.config import ConfigError, from_dict, load_config
from predimem.core.seeds import TRAINING_SEEDS
from predimem.core.weight_files import weights_folder
from predimem.evaluation.run.config import evaluation_settings
from predimem.pipelines.own_tasks import StartConfig, start_of
from predimem.pipelines.retrain import RetrainConfig, plan_stages
from predimem.pipelines.stage import ACTOR, DATA, PLANNER, choose_stages
from tests.pipelines.tiny_arena import TINY

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "train_arena.yaml"


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def config(tmp_path: Path) -> RetrainConfig:
    return replace(load_config(RetrainConfig, CONFIG), out=str(tmp_path / "out"))


def test_each_stage_comes_after_what_it_needs(config: RetrainConfig) -> None:
    stages = plan_stages(config)
    names = [stage.name for stage in stages]
    assert len(set(names)) == len(names)
    for stage in stages:
        assert all(names.index(need) < names.index(stage.name) for need in stage.needs)
    assert names.index("dagger-2") < names.index("arena-actor") < names.index("dagger-3")  # it acts there
    assert names.index("dagger-3") < names.index("arena-planner") < names.index("arena-planner-recent")


def test_it_makes_the_weights_of_every_agent(config: RetrainConfig) -> None:
    agents = evaluation_settings(ROOT / "configs" / "eval" / "arena.yaml", {}).agent_configs.values()
    assert {name for agent in agents for name in agent.weights} == {s.weights for s in plan_stages(config)} - {None}


def test_who_drives_and_who_learns_from_what(config: RetrainConfig) -> None:
    stages = {stage.name: stage for stage in plan_stages(config)}
    first, second, third, last = (stages[f"dagger-{number}"].config for number in range(4))
    assert first["driver"] == "oracle" and second["driver"] == str(stages["planner-round-0"].result)
    assert stages["planner-round-0"].config["episodes"] == [first["out"]]
    assert third["driver"] == str(stages["planner-round-1"].result)
    assert [one["low_level_policy"] for one in (first, second, third)] == ["skills", "skills", "expert"]
    assert last["low_level_policy"] == str(stages["arena-actor"].result)
    rounds = [first["out"], second["out"], third["out"], last["out"]]
    trained = [s for s in stages.values() if s.weights and s.config["episodes"] == rounds]
    assert {s.config["vision"]["directory"] for s in trained} == {
        stages["planner-round-0"].config["vision"]["directory"]
    }
    assert {s.config["vision"]["scenes"] for s in trained} == {stages["vision-data"].config["out"]}
    assert len(trained) == 5 and trained[0].config["memory"] != trained[1].config["memory"]
    untrained = stages["arena-planner-untrained"]
    assert untrained.needs == () and untrained.config["vision"] is None and untrained.config["sft"]["epochs"] == 0


def test_another_actor_goes_on_from_the_first_with_all_that_it_had(config: RetrainConfig) -> None:
    from actor.training.config import ActorTrainConfig

    stages = {stage.name: stage for stage in plan_stages(config)}
    first, other = (from_dict(ActorTrainConfig, stages[f"arena-actor{name}"].config) for name in ("", "-reactive"))
    assert other.continue_from == str(stages["arena-actor"].result) and other.episodes == first.episodes
    assert other.more_episodes == tuple(f"{first.out}/rollouts{number}" for number in range(3))
    assert other.dagger.rounds == 0 and other.sampling.instruction_share == 1.0


def test_continuing_begins_every_training_with_weights_and_knows_the_new_words() -> None:
    from actor.training.config import ActorTrainConfig
    from planner.train import TrainConfig

    start = StartConfig(rehearse=("4",), rehearse_episodes=3)
    config = replace(load_config(RetrainConfig, ROOT / "configs" / "continue_arena.yaml"), continue_from=start)
    config = replace(config, tasks=("examples/juice_beside_cookies.py",))
    stages = {stage.name: stage for stage in plan_stages(config)}
    assert list(stages) == [
        "rehearsal", "dagger-0", "planner-round-0", "dagger-1", "actor-data", "arena-actor", "arena-planner"
    ]  # fmt: skip
    own = str(ROOT / "examples" / "juice_beside_cookies.py")
    assert stages["dagger-0"].config["tasks"] == [own] and stages["actor-data"].config["tasks"] == [own, "4"]
    assert stages["rehearsal"].config["tasks"] == ["4"] and stages["rehearsal"].config["episodes"] == 3
    planner = from_dict(TrainConfig, stages["arena-planner"].config)
    assert planner.continue_from == str(weights_folder(None, "arena-planner"))
    assert planner.episodes == tuple(stages[name].config["out"] for name in ("rehearsal", "dagger-0", "dagger-1"))
    known = load_config(TrainConfig, ROOT / "configs" / "planner" / "arena.yaml").base.tokenizer
    assert planner.base.tokenizer.subtasks[: len(known.subtasks)] == known.subtasks
    assert "place juice beside cookies: basket left" in planner.base.tokenizer.subtasks
    assert len(planner.base.tokenizer.instructions) == len(known.instructions) + 1
    actor = from_dict(ActorTrainConfig, stages["arena-actor"].config)
    assert actor.continue_from == str(weights_folder(None, "arena-actor"))


def test_where_a_training_may_go_on_from() -> None:
    assert start_of(None, (), False, None) is None
    assert start_of(None, ("a.py",), True, "mine") == StartConfig(weights="mine")
    assert start_of(StartConfig(actor="mine"), ("a.py",), True, None) == StartConfig(actor="mine")
    with pytest.raises(ConfigError, match="--continue trains on for some tasks: name them"):
        start_of(None, (), True, None)
    with pytest.raises(ConfigError, match="give --continue as well"):
        start_of(None, ("a.py",), False, "mine")
    with pytest.raises(ConfigError, match="with continue_from it has to be null"):
        replace(load_config(RetrainConfig, CONFIG), continue_from=StartConfig())


def test_seeds_are_for_training_and_each_is_used_once(config: RetrainConfig) -> None:
    seeds: list[int] = []
    for stage in plan_stages(config):
        if stage.kind == DATA:
            seeds += range(stage.config["first_seed"], stage.config["first_seed"] + stage.config["episodes"])
        elif dagger := stage.config.get("dagger"):
            seeds += (s for k in range(dagger["rounds"] + 1) for s in from_dict(DaggerConfig, dagger).seeds(k))
    assert len(set(seeds)) == len(seeds) and set(seeds) <= set(TRAINING_SEEDS)


def test_a_config_in_former_words_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_text(
        "{suite: practice, driver: truth, hand: skills, truth_spells: {truth_s: [1.0, 2.0]}}"
    )
    (tmp_path / "former.yaml").write_text(f"""
planners:
  practice: {tmp_path}/data.yaml
  practice_changes: {{max_overtime_s: 3.0}}
  scenes: configs/datagen_scenes.yaml
  scene_changes: {{frames: 4}}
  rounds: [{{episodes: 1, first_seed: 46000, hand: expert}}]
  recipes: {{arena-planner: configs/planner/arena.yaml}}
actor: {{recipe: configs/actor/arena.yaml, skills: configs/datagen_skills.yaml, skill_changes: {{frames: 2}}}}
""")
    stages = {stage.name: stage.config for stage in plan_stages(load_config(RetrainConfig, tmp_path / "former.yaml"))}
    dagger = from_dict(PlannerDaggerConfig, stages["dagger-0"])
    assert (dagger.driver, dagger.low_level_policy, dagger.max_overtime_s) == ("oracle", "expert", 3.0)
    assert dagger.oracle_spells.oracle_s == (1.0, 2.0)
    assert from_dict(VisionDataConfig, stages["vision-data"]).frames == 4
    assert from_dict(ActorDataConfig, stages["actor-data"]).frames == 2


@pytest.mark.parametrize("tiny", [False, True])
def test_every_config_is_one_that_its_command_reads(tmp_path: Path, tiny: bool) -> None:
    from actor.training.config import ActorTrainConfig
    from planner.train import TrainConfig

    (tmp_path / "tiny.yaml").write_text(TINY)
    data_kinds = {"dagger": PlannerDaggerConfig, "actor_data": ActorDataConfig, "vision_data": VisionDataConfig}
    for stage in plan_stages(load_config(RetrainConfig, tmp_path / "tiny.yaml" if tiny else CONFIG)):
        kinds: dict[str, Any] = {PLANNER: TrainConfig, ACTOR: ActorTrainConfig}
        cls = kinds.get(stage.kind) or data_kinds[stage.config["kind"]]
        path = tmp_path / f"{stage.name}.yaml"
        path.write_text(yaml.safe_dump(stage.config))
        loaded = load_config(cls, path)
        assert Path(loaded.out) in (stage.result, *stage.result.parents)


@pytest.mark.parametrize(
    ("rounds", "says"),
    [
        ([{"episodes": 4, "first_seed": 2000}, {"episodes": 4, "first_seed": 2003}], "round 1 plays seed 2003"),
        ([{"episodes": 4, "first_seed": 900000}], "not a training seed"),
        ([], "at least one round"),
    ],
)
def test_faulty_rounds(tmp_path: Path, rounds: list[dict[str, int]], says: str) -> None:
    data = yaml.safe_load(CONFIG.read_text())
    data["planners"]["rounds"] = rounds
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(ValueError, match=says):
        load_config(RetrainConfig, tmp_path / "bad.yaml")


def test_some_stages_and_what_they_need(config: RetrainConfig) -> None:
    stages = plan_stages(config)
    chosen = lambda *only: [stage.name for stage in choose_stages(stages, only)]  # noqa: E731
    assert chosen() == [stage.name for stage in stages]
    assert chosen("actor") == ["actor-data", "arena-actor", "arena-actor-reactive"]
    assert chosen("arena-planner-untrained") == ["arena-planner-untrained"]
    assert chosen("dagger-1") == ["vision-data", "dagger-0", "planner-round-0", "dagger-1"]
    assert not {"actor-data", "arena-actor"} & set(chosen("dagger-2"))
    assert {"actor-data", "arena-actor"} < set(chosen("dagger-3"))
    assert chosen("practice-1", "scenes", "skills") == chosen("dagger-1", "vision-data", "actor-data"), "former names"
    with pytest.raises(ConfigError, match="no stage 'plannr'; there are: data, planner, actor"):
        chosen("plannr")
