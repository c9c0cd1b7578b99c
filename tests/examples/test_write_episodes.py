"""The example that writes episodes of one's own robot, and every command that its guide runs on them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planner.train import TrainConfig
from predimem.core.config import load_config
from predimem.core.episode_folder import load_episodes
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError

EXAMPLES = Path(__file__).parents[2] / "examples"
GUIDE = EXAMPLES.parent / "docs" / "guides" / "own-data.md"


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder with the examples, in which the script has been run as the guide says."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "examples").symlink_to(EXAMPLES)
    run(sys.executable, "examples/write_episodes.py", "runs/data/lamp", cwd=folder)
    return folder


def test_what_it_writes(folder: Path) -> None:
    episodes = load_episodes(folder / "runs" / "data" / "lamp")
    assert len(episodes) == 12 and {e.goal for e in episodes} == {"open left drawer", "open right drawer"}
    for episode in episodes:
        assert [episode.subtask_at(step) for step in (0, 9, 10, 39)] == ["watch", "watch", episode.goal, episode.goal]
        right = (episode.images["front"][0][:12, 32:] > 0).any()
        assert right == (episode.goal == "open right drawer") and not episode.images["front"][10][:12].any()
        assert episode.success and episode.keyframes == (9,)


@pytest.mark.slow
def test_the_commands_of_the_guide_read_it(folder: Path) -> None:
    commands = re.findall(r"^predimem (.*?)(?: +#.*)?$", GUIDE.read_text(), re.MULTILINE)
    # Those need somebody's data set, or a model at an endpoint.
    own = [command for command in commands if not command.startswith(("import", "annotate"))]
    quick = [command.split() for command in own if not command.startswith("train") or "--dry-run" in command]
    assert [words[:2] for words in quick] == [
        ["data", "stats"], ["data", "show"], ["export", "lerobot"], ["export", "sft"], ["train", "planner"]
    ]  # fmt: skip
    said = [run(sys.executable, "-m", "predimem.cli", *words, cwd=folder) for words in quick]
    assert "| LampDrawer | - | 12 |" in said[0] and (folder / "episode.mp4").stat().st_size > 1000
    assert "swift sft" in said[4] or "sft --model" in said[4]
    samples = [json.loads(line) for line in (folder / "runs" / "sft-lamp" / "train.jsonl").read_text().splitlines()]
    assert len(samples) == 600
    answers = {json.loads(sample["messages"][-1]["content"])["current_primitive"] for sample in samples}
    assert answers == {"watch", "open left drawer", "open right drawer"}


def test_the_config_knows_all_labels() -> None:
    tokenizer = load_config(TrainConfig, EXAMPLES / "lamp_drawer.yaml").base.tokenizer
    assert tokenizer.all_subtasks() == ["watch", "open left drawer", "open right drawer"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_trains_a_planner(folder: Path) -> None:
    run(sys.executable, "-m", "predimem.cli", "train", "planner", "--config", "examples/lamp_drawer.yaml", cwd=folder)
    assert (folder / "runs" / "train" / "lamp-drawer" / "export" / "predimem.json").is_file()


@pytest.mark.parametrize(
    ("spans", "keyframes", "says"),
    [
        ([SubtaskSpan("watch", 0, 2)], [], "expected SubtaskSpan"),  # type: ignore[arg-type]
        ([SubtaskSpan(0, 2, "a"), SubtaskSpan(1, 3, "b")], [], "after the span before it, which ends at 2"),
        ([SubtaskSpan(0, 4, "a")], [], "within the episode's 3 steps"),
        ([SubtaskSpan(0, 3, "a")], [3], "keyframe 3 is no step of the episode, which has 3"),
    ],
)
def test_annotations_that_do_not_fit_are_refused(
    tmp_path: Path, spans: list[SubtaskSpan], keyframes: list[int], says: str
) -> None:
    with pytest.raises(EpisodeError, match=says), EpisodeWriter(tmp_path / "a.h5", "b", "t", 1000, 10.0, {}) as writer:
        for _ in range(3):
            writer.add(None, [0.0], [0.0])  # type: ignore[arg-type]
        writer.finish("Do it.", True, spans, keyframes)
    assert not list(tmp_path.iterdir())
