"""Code of a user's own, named by its place in a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from predimem.agent.config import AgentConfig
from predimem.agent.own_planner import make_own_planner, memory_of
from predimem.core.own_code import OwnCodeError, code_hash, load_object, place_beside
from predimem.evaluation.run.config import evaluation_settings
from predimem.serving.config import ModelsConfig
from predimem.serving.models import make_served

CODE = """
from beside import THRESHOLD
from memory_bank import MemoryConfig
from predimem.core.types import Plan

class MyPlanner:
    memory = MemoryConfig(recent_window=2)

    def __init__(self, threshold: float = THRESHOLD):
        self.threshold = threshold

    def plan(self, snapshot):
        return Plan(snapshot.episode_id, snapshot.step, "wait")

def no_planner():
    return 3
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "beside.py").write_text("THRESHOLD = 0.25")
    (tmp_path / "my_planner.py").write_text(CODE)
    return f"{tmp_path}/my_planner.py:MyPlanner"


def test_a_file_may_use_those_beside_it_and_is_run_once(place: str) -> None:
    assert make_own_planner(place, {}).threshold == 0.25  # type: ignore[attr-defined]
    assert make_own_planner(place, {"threshold": 3}).threshold == 3  # type: ignore[attr-defined]
    assert load_object(place, "planner") is load_object(place, "memory")
    assert memory_of(place, {}).recent_window == 2 and memory_of(place, {"recent_window": 5}).recent_window == 5
    assert load_object("predimem.core.own_code:code_hash", "planner") is code_hash
    before = code_hash(place)
    Path(place.rpartition(":")[0]).write_text(CODE + "\n")
    assert code_hash(place) != before


def test_what_is_wrong_is_said(place: str, tmp_path: Path) -> None:
    file = place.rpartition(":")[0]
    (tmp_path / "broken.py").write_text("\nimport nothing_of_this_name\n")
    for faulty, says in (
        (f"{file}:Other", r"my_planner.py defines no 'Other'; it defines: MyPlanner, no_planner"),
        (f"{tmp_path}/broken.py:X", r"broken.py, line 2: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("nowhere.py:X", r"planner: there is no file /.*nowhere.py"),
        (
            "nowhere:X",
            r"there is no module 'nowhere', neither installed nor in .*; a file is named by its path: path/to/file.py:NAME",
        ),
    ):
        with pytest.raises(OwnCodeError, match=says):
            load_object(faulty, "planner")
    with pytest.raises(OwnCodeError, match=r"planner_options: got an unexpected keyword argument 'treshold'; got"):
        make_own_planner(place, {"treshold": 1})
    with pytest.raises(OwnCodeError, match="gave 3, which has no method plan"):
        make_own_planner(f"{file}:no_planner", {})


def test_options_are_for_planners_of_ones_own() -> None:
    with pytest.raises(ValueError, match="planner_options: they are for a planner of your own"):
        AgentConfig("arena-planner", "skills", planner_options={"threshold": 1})
    assert AgentConfig("a.py:B", "skills").weights == ()


def test_a_planner_beside_its_config_is_found_from_everywhere(place: str, tmp_path: Path) -> None:
    agents = "agent_configs:\n  mine: {planner: 'my_planner.py:MyPlanner', actor: skills}\n"
    (tmp_path / "agents.yaml").write_text("benchmark: arena\n" + agents)
    settings = evaluation_settings(tmp_path / "agents.yaml", {})
    assert settings.agent_configs["mine"].planner == place
    assert place_beside("other.py:X", tmp_path) == "other.py:X" and place_beside("arena-planner", tmp_path) == (
        "arena-planner"
    )


def test_a_server_makes_it_in_the_planners_process(place: str) -> None:
    served = make_served(ModelsConfig(planner=place, planner_options={"threshold": 4}, memory={"keyframes": False}))
    assert served.make_planner is not None and served.make_planner().threshold == 4  # type: ignore[attr-defined]
    assert (served.memory.recent_window, served.memory.keyframes) == (2, False)
    assert code_hash(place) in served.weights.values()
    assert served.tasks.instructions == ()
