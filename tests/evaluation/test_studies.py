"""Studies: drawn from results, refused where they name rows that are not there."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from predimem.evaluation.play import EvaluationFile, RowConfig, evaluation_settings
from predimem.evaluation.run import EvaluationConfig, run_evaluation
from predimem.evaluation.studies import StudyConfig
from predimem.weight_files import WeightsError, weights_folder
from tests.evaluation.fake_player import FakePlayer

ROOT = Path(__file__).parents[2]


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


def test_the_shipped_studies_name_rows_that_are_there() -> None:
    settings = evaluation_settings(ROOT / "configs/eval/arena_studies.yaml", {})
    assert {len(study.values) for study in settings.studies.values()} == {3, 4, 5}
    assert all(row.actor == "skills" for row in settings.rows.values())
    rows = {"a": RowConfig("truth", "skills")}
    with pytest.raises(ValueError, match="studies: no row 'b'; there are: a"):
        EvaluationFile(suite="arena", rows=rows, studies={"s": StudyConfig("q", {"a": "1", "b": "2"})})
    with pytest.raises(ValueError, match="two rows or more"):
        StudyConfig("q", {"a": "1"})


def test_missing_weights_name_their_recipe(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"train planner --config configs/planner/arena_window_5\.yaml"):
        weights_folder(tmp_path, "arena-planner-window-5")
    with pytest.raises(WeightsError, match=r"train actor --config configs/actor/tiny\.yaml"):
        weights_folder(tmp_path, "actor")
