"""Studies: drawn from results, refused where they name agents that are not there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from predimem.agent.config import AgentConfig
from predimem.core.weight_files import WeightsError, weights_folder
from predimem.evaluation.analysis.studies import StudyConfig
from predimem.evaluation.run.config import EvaluationFile, evaluation_settings
from predimem.evaluation.run.evaluation import EvaluationConfig, run_evaluation
from predimem.evaluation.run.names import missing_weights
from tests.evaluation.fake_player import FakePlayer

ROOT = Path(__file__).parents[3]


def test_a_study_is_drawn_and_shown(tmp_path: Path) -> None:
    studies = {
        "memory": StudyConfig("size of memory", {"reactive": "none", "predimem": "all"}),
        "other": StudyConfig("not played", {"x": "1", "predimem": "2"}),
    }
    config = EvaluationConfig(
        "mikasa", ("t",), ("predimem", "reactive"), 5, out=str(tmp_path), videos_per_task=0, studies=studies
    )
    run_evaluation(config, partial(FakePlayer))
    assert sorted(path.name for path in tmp_path.glob("study-*")) == ["study-memory.png", "study-memory.svg"]
    assert 'src="study-memory.svg"' in (tmp_path / "report.html").read_text()


def test_the_shipped_studies_name_agents_that_are_there() -> None:
    settings = evaluation_settings(ROOT / "configs/eval/arena_studies.yaml", {})
    assert {len(study.values) for study in settings.studies.values()} == {3, 4, 5}
    assert all(agent.actor == "skills" for agent in settings.agent_configs.values())
    agents = {"a": AgentConfig("oracle", "skills")}
    with pytest.raises(ValueError, match="studies: no agent config 'b'; there are: a"):
        EvaluationFile(benchmark="arena", agent_configs=agents, studies={"s": StudyConfig("q", {"a": "1", "b": "2"})})
    with pytest.raises(ValueError, match="two agents or more"):
        StudyConfig("q", {"a": "1"})


def test_missing_weights_name_their_recipe(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"train planner --config configs/planner/arena_window_5\.yaml"):
        weights_folder(tmp_path, "arena-planner-window-5")
    agents = [
        agent
        for name in (
            "arena",
            "arena_studies",
            "arena_corrected",
            "arena_long",
            "mikasa_touch",
            "mikasa_sequences",
            "robomme",
        )
        for agent in evaluation_settings(ROOT / "configs" / "eval" / f"{name}.yaml", {}).agent_configs.values()
    ]
    for name in {"planner", "planner-no-head", "actor"} | {name for agent in agents for name in agent.weights}:
        with pytest.raises(WeightsError) as missing:
            weights_folder(tmp_path, name)
        if re.fullmatch(r"arena-planner.*-(corrected|driven|seed-\d)", name):
            assert "`predimem train rounds`" in str(missing.value)
            continue
        (recipe,) = re.findall(r"configs/\S+\.yaml", str(missing.value))
        assert (ROOT / recipe).is_file(), recipe


def test_agents_whose_weights_are_missing(tmp_path: Path) -> None:
    agents = {"a": AgentConfig("x", "skills"), "b": AgentConfig("y", "z"), "c": AgentConfig("oracle", "skills")}
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    missing = missing_weights(agents, str(tmp_path))
    assert list(missing) == ["b"] and "no weights for 'z'" in missing["b"]
