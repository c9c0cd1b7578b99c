"""What `predimem data stats` says of a folder of episodes and its journal."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datagen.inspect.statistics import data_statistics, memory_of_spans
from datagen.inspect.statistics_page import page
from predimem.core.episode_folder import list_episodes
from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError, Frames
from predimem.envs.arena.tasks import task_of
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.jobs.tasks import Outcome
from tests.datagen.export.builders import make_episode, save

FIRST = "CookiesSauceIntoTargetContainer"
OUTCOMES = (
    Outcome(FIRST, 1000, True, "", 20, 4.0,
            {"retries": {"pick cookies": 2, "place tomato": 1}, "stage_seconds": {"look": 1.0, "skills": 3.0}}),
    Outcome(FIRST, 1001, True, "", 40, 6.0, {"retries": {}, "stage_seconds": {"look": 2.0}}),
    Outcome(FIRST, 1002, False, "Place basket_left: it is elsewhere", 99, 8.0, {}),
    Outcome(FIRST, 1003, False, "error: RuntimeError: out of\nmemory", 0, 2.0, {}),
    Outcome("PourWineIntoMugTwice", 1001, True, "", 24, 5.0, {"recovered": True}),
    Outcome("ButterInEmptyDrawer", 1000, False, "out of time", 9, 7.0, {}),
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Episodes of 20 and 40 steps of task 1, and one of 24 of task 10, and a journal that had more."""
    folder = save(
        tmp_path,
        replace(make_episode(1, 1000), metadata={}),
        replace(make_episode(1, 1001, steps_each=10), metadata={}),
        replace(make_episode(10, 1001, steps_each=6), metadata={}),
    )
    lines = [json.dumps(outcome.as_json()) for outcome in OUTCOMES]
    earlier = json.dumps(OUTCOMES[0].as_json() | {"kept": False, "cause": "out of time"})  # of a seed the last counts
    (folder / "journal.jsonl").write_text("\n".join([earlier, *lines]) + '\n{"task": "PourWi')
    return folder


def test_each_task_and_all(root: Path) -> None:
    found = data_statistics(root, progress=False)
    names = [FIRST, "ButterInEmptyDrawer", "PourWineIntoMugTwice"]
    assert list(found["tasks"]) == names  # by their numbers
    first: dict[str, Any] = found["tasks"][names[0]]
    assert (first["attempted"], first["kept"], first["episodes"], first["yield"]) == (4, 2, 2, 0.5)
    assert (first["yield_low"], first["yield_high"]) == pytest.approx(wilson_interval(2, 4))
    assert first["causes"] == {"Place basket_left: it is elsewhere": 1, "error: RuntimeError: out of": 1}
    assert first["steps"] == {"mean": 30, "sd": pytest.approx(math.sqrt(200)), "min": 20, "max": 40}
    assert first["seconds"] == 1.5 and first["subtasks"] == 8 and first["subtasks_per_episode"] == 4
    assert first["memory_share"] == 2 / 8  # the last of four depends on it
    assert first["retries_per_episode"] == 1.5 and first["retried_share"] == 0.5
    assert first["images"] == 2 * 20 + 2 * 40
    assert first["work_seconds"] == 5.0 and first["stage_seconds"] == {"look": 1.5, "skills": 1.5}
    keyframes = sum(len(make_episode(1, s, steps_each=n).keyframes) for s, n in ((1000, 5), (1001, 10)))
    assert first["keyframes"] == keyframes > 0
    assert (first["keyframes_per_episode"], first["keyframes_per_subtask"]) == (keyframes / 2, keyframes / 8)
    assert found["tasks"][names[1]]["episodes"] == 0 and found["tasks"][names[1]]["steps"] is None
    whole = found["all"]
    assert (whole["attempted"], whole["kept"], whole["episodes"]) == (6, 3, 3)
    assert whole["bytes"] == sum(path.stat().st_size for path in list_episodes(root))
    assert json.loads(json.dumps(found)) == found


def test_the_page_has_every_task_beside_the_paper(root: Path) -> None:
    text = page(data_statistics(root, progress=False))
    assert "| tasks | 2 | 26 |" in text
    assert "| steps of a demonstration, mean | 28 | 1,076 |" in text
    assert "| segments of a demonstration | 4.0 | 5.8 |" in text
    row = next(line for line in text.splitlines() if line.startswith("| CookiesSauce"))
    assert row.startswith(
        "| CookiesSauceIntoTargetContainer | 4 | 2 | 0.50 [0.15, 0.85] | 30 ± 14 | 20 to 40 | 1.5 | 4.0 |"
    )
    assert "| ButterInEmptyDrawer | 1 | 0 | 0.00 [0.00, 0.79] | - |" in text
    assert "| out of time | 1 |" in text and "| look | 1.5 |" in text
    assert "The journal has" not in text


def test_without_a_journal_there_is_no_yield(root: Path) -> None:
    (root / "journal.jsonl").unlink()
    found = data_statistics(root, progress=False)
    assert list(found["tasks"]) == [FIRST, "PourWineIntoMugTwice"]
    assert found["all"]["yield"] is None and found["all"]["attempted"] is None
    assert found["all"]["retries_per_episode"] is None and found["all"]["steps"]["mean"] == 28
    assert "| yield | - | - |" in page(found)


def test_what_journal_and_folder_disagree_in_is_said(root: Path) -> None:
    list_episodes(root)[0].unlink()
    assert "The journal has 3 kept episodes; 1 of them are not in the folder." in page(data_statistics(root))


def test_damage_is_an_error(root: Path) -> None:
    (root / "journal.jsonl").write_text("{\n{}\n")
    with pytest.raises(ValueError, match=r"journal\.jsonl is damaged in line 1"):
        data_statistics(root, progress=False)
    (root / "journal.jsonl").unlink()
    path = list_episodes(root)[0]
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(EpisodeError, match=r"checksum|cannot be read"):
        data_statistics(root, progress=False)
    with pytest.raises(EpisodeError, match="no episodes under"):
        data_statistics(root / "nowhere", progress=False)


def test_images_are_counted_where_they_were_taken(tmp_path: Path) -> None:
    episode = make_episode(1, 1000)
    rows = np.arange(len(episode)) // 5
    fewer = {name: Frames(np.asarray(frames)[::5], rows) for name, frames in episode.images.items()}
    found = data_statistics(save(tmp_path, replace(episode, images=fewer)), progress=False)
    assert found["all"]["images"] == 2 * len(episode) / 5 and found["all"]["retries_per_episode"] == 1


def test_independent_states_take_no_time(tmp_path: Path) -> None:
    found = data_statistics(save(tmp_path, replace(make_episode(1, 1000), control_hz=0.0)), progress=False)
    assert found["all"]["seconds"] == 0 and found["all"]["episodes"] == 1


def test_memory_of_spans() -> None:
    episode = make_episode(10, 1000)
    declared = tuple(subtask.memory or "" for subtask in task_of(10).variants[0].subtasks)
    assert memory_of_spans(episode) == declared and "counting" in declared
    noted = replace(episode, metadata={"spans_memory": ["", "occlusion", "", ""]}, task="MyOwn")
    assert memory_of_spans(noted) == ("", "occlusion", "", "")
    assert memory_of_spans(replace(noted, metadata={"spans_memory": [""]})) is None
    assert memory_of_spans(replace(episode, subtasks=(SubtaskSpan(0, 20, "dance"),))) is None
