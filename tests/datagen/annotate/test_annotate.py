"""`predimem annotate` against an HTTP server that says what a script says, and what trainings say of bare episodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from datagen.annotate.annotate import shown_steps
from datagen.annotate.answer import read_spans
from datagen.annotate.command import write_table
from datagen.decompose.steps import AnswerError
from datagen.keyframes import extract_keyframes
from planner.dataset import training_episodes
from predimem.cli.app import app
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, NoSubtask, SubtaskSpan
from tests.datagen.decompose.conftest import scripted  # noqa: F401 (a fixture)

STEPS, HZ, INSTRUCTION = 40, 10.0, "Swap the cups."
ARMS = ["--tcp", "0,1,2", "--gripper", "3", "--tcp", "4,5,6", "--gripper", "7"]


def arm(stops: tuple[int, ...], closes: int) -> np.ndarray:
    """float32 [T, 4]: moves at 0.2 m/s but at `stops`, and closes its gripper."""
    speed = np.full(STEPS, 0.02, np.float32)
    speed[list(stops)] = 0.0
    opening = np.where(np.arange(STEPS) < closes, 0.08, 0.03)
    return np.stack([np.cumsum(speed), np.zeros(STEPS), np.zeros(STEPS), opening], -1).astype(np.float32)


def episode(seed: int, spans: tuple[SubtaskSpan, ...]) -> Episode:
    state = np.concatenate([arm((10, 11), 25), arm((30,), 18)], -1)
    images = np.broadcast_to(np.arange(STEPS, dtype=np.uint8)[:, None, None, None], (STEPS, 8, 8, 3))
    return Episode("mine", "Cups", seed, INSTRUCTION, HZ, True, {"front": images}, state, state[:, :2], spans, ())


def answer(*entries: tuple[int, str]) -> str:
    return json.dumps({"subtasks": [{"first_image": image, "label": label} for image, label in entries]})


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_spans_are_named_and_keyframes_are_those_of_both_arms(tmp_path: Path, scripted) -> None:  # noqa: F811
    bare = (SubtaskSpan(0, STEPS, INSTRUCTION),)
    named = (SubtaskSpan(0, 20, "pick the red cup"), SubtaskSpan(20, STEPS, "place the red cup"))
    for seed, spans in ((1000, bare), (1001, ()), (1002, named)):
        save_episode(episode_path(tmp_path / "in", "Cups", seed), episode(seed, spans))
    each = [extract_keyframes(state[:, :3], state[:, 3], HZ) for state in (arm((10, 11), 25), arm((30,), 18))]
    keyframes = sorted(set(each[0]) | set(each[1]))
    shown = shown_steps(STEPS, keyframes, 8)
    assert len(shown) == 8 and set(keyframes) <= set(shown)
    good = answer((0, "pick the red cup"), (3, "place the red cup"))
    url, requests = scripted([answer((1, "pick the red cup"), (1, "")), f"<think>hm</think>```json\n{good}\n```", good])
    words = ["annotate", "--episodes", tmp_path / "in", "--out", tmp_path / "out", "--endpoint", f"{url}/v1"]
    words += ["--model", "scripted", "--images", 8, *ARMS]
    done = run(*words)
    assert done.exit_code == 0, done.output + str(done.exception)
    assert "1 episodes have several subtasks already" in done.output and "2 of 2 episodes kept" in done.output
    for seed in (1000, 1001):
        found = load_episode(episode_path(tmp_path / "out", "Cups", seed))
        expected = (SubtaskSpan(0, shown[3], "pick the red cup"), SubtaskSpan(shown[3], STEPS, "place the red cup"))
        assert found.subtasks == expected and found.goal == "place the red cup"
        assert found.keyframes == tuple(keyframes) and found.metadata["annotated_by"] == "scripted"
        np.testing.assert_array_equal(found.images["front"], episode(seed, ()).images["front"])
    content = requests()[0]["body"]["messages"][1]["content"]
    assert sum(part["type"] == "image_url" for part in content) == 8
    corrected = requests()[1]["body"]["messages"][-1]["content"]
    assert "label must be a text that is not empty" in corrected
    table = (tmp_path / "out" / "spans.csv").read_text().splitlines()
    assert table[:2] == ["task,episode,start,end,label", f"Cups,1000,0,{shown[3]},pick the red cup"]
    corrected_table = [table[0], f"Cups,1000,0,{shown[3]},pick the blue cup", table[2]]
    (tmp_path / "out" / "spans.csv").write_text("\n".join([*corrected_table, ""]))
    again = run(*words)
    assert again.exit_code == 0 and len(requests()) == 3  # nothing is asked twice
    now = (tmp_path / "out" / "spans.csv").read_text().splitlines()
    assert now == [*corrected_table, *table[3:]] and len(table) == 5, "corrections stay, and what is missing is added"


def test_only_the_given_labels_are_taken(tmp_path: Path, scripted) -> None:  # noqa: F811
    save_episode(episode_path(tmp_path / "in", "Cups", 1000), episode(1000, ()))
    (tmp_path / "labels.txt").write_text("pick cup\nplace cup\n")
    url, _ = scripted([answer((0, "grab the cup"))] * 4)
    words = ["annotate", "--episodes", tmp_path / "in", "--out", tmp_path / "out", "--endpoint", f"{url}/v1"]
    done = run(*words, "--model", "scripted", "--labels", tmp_path / "labels.txt")
    said = f"{done.output}{done.exception}"
    assert done.exit_code != 0 and "EpisodeError" in said
    traceback = (tmp_path / "out" / "errors" / "Cups-seed0000001000.txt").read_text()
    assert "'grab the cup' is none of the labels pick cup, place cup" in traceback
    same = run("annotate", "--episodes", tmp_path / "in", "--out", tmp_path / "in", "--model", "scripted")
    assert "episodes are never changed" in str(same.exception)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I see cups.", "not JSON"),
        (answer((1, "a")), "the first subtask begins with image 0, not 1"),
        (answer((0, "a"), (2, "b"), (2, "c")), r"later image than the one before, not \[0, 2, 2\]"),
        (answer((0, "a"), (9, "b")), "first_image must be one of 0 to 2, not 9"),
        ('{"subtasks": [{"first_image": 0}]}', "exactly the fields first_image and label"),
        ('{"subtasks": []}', "a list of one subtask or more"),
    ],
)
def test_faulty_answers_are_told_of(text: str, problem: str) -> None:
    with pytest.raises(AnswerError, match=problem):
        read_spans(text, [0, 10, 19], 20)


def test_neighbours_with_one_label_are_one_span() -> None:
    spans = read_spans(answer((0, "a"), (1, "a"), (2, "b")), [0, 10, 15], 20)
    assert spans == (SubtaskSpan(0, 15, "a"), SubtaskSpan(15, 20, "b"))


def test_trainings_say_how_to_mend_episodes_without_subtasks(tmp_path: Path) -> None:
    save_episode(episode_path(tmp_path, "Cups", 1000), episode(1000, ()))
    with pytest.raises(NoSubtask, match="Cups seed 1000 has no subtasks: name its subtasks with `predimem annotate`"):
        training_episodes(tmp_path)


def test_a_table_that_was_edited_keeps_its_lines_and_its_columns(tmp_path: Path) -> None:
    save_episode(episode_path(tmp_path, "Cups", 1001), episode(1001, (SubtaskSpan(0, STEPS, "swap"),)))
    table = tmp_path / "spans.csv"
    table.write_text("task,episode,start,end,subtask\nCups,1000,0,5,lift")  # an editor left out the last line's end
    write_table(tmp_path)
    assert table.read_text().splitlines()[1:] == ["Cups,1000,0,5,lift", f"Cups,1001,0,{STEPS},swap"]
    table.write_text("episode,start,end,subtask\n1000,0,5,lift\n")
    with pytest.raises(ValueError, match=r"spans.csv has no column task; expected task,episode,"):
        write_table(tmp_path)
