"""Writing the JSONL: interrupted and gone on with, to the same bytes as without."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from planner import training_data
from planner.dataset import DatasetConfig
from planner.training_data import write_training_data
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from tests.planner.builders import MEMORY, PROMPT

ROOT = Path(__file__).parents[2]
CONFIG = DatasetConfig(samples=60)


def files(folder: Path) -> dict[str, bytes]:
    """Name -> bytes, with the folder itself left out of the paths in the JSONL."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: data.replace(str(folder).encode(), b"OUT") for name, data in found.items()}


def write(folder, episodes, config=CONFIG, seed=0, **options):
    return write_training_data(folder, episodes, PROMPT, MEMORY, config, seed, **options)


def interrupt_after(monkeypatch, count):
    """The next call is interrupted when so many samples are written."""
    written, original = itertools.count(), training_data._record

    def record(*arguments):
        if next(written) == count:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(training_data, "_record", record)


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}])
def test_an_interrupted_run_goes_on_to_the_same_files(tmp_path, episodes, monkeypatch, capsys, options):
    write(tmp_path / "whole", episodes, **options)
    for count in (23, 11):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            interrupt_after(patched, count)
            write(tmp_path / "out", episodes, **options)
        assert not (tmp_path / "out" / "train.jsonl").exists()
    with (tmp_path / "out" / "train.jsonl.partial").open("a") as file:
        file.write('{"qid": "torn')  # as a crash leaves it
    (tmp_path / "out" / "images" / "torn.png.17.partial").touch()
    capsys.readouterr()
    write(tmp_path / "out", episodes, **options)
    assert "34 samples are there from an earlier run" in capsys.readouterr().err
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@pytest.mark.parametrize("change", ["seed", "dataset", "episodes"])
def test_what_follows_from_something_else_begins_anew(tmp_path, episodes, monkeypatch, change):
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        interrupt_after(patched, 20)
        write(tmp_path / "out", episodes)
    config = replace(CONFIG, late_probability=0.0) if change == "dataset" else CONFIG
    seed = int(change == "seed")
    used = [replace(e, state=e.state + 1) for e in episodes] if change == "episodes" else episodes
    write(tmp_path / "out", used, config, seed)
    write(tmp_path / "whole", used, config, seed)
    assert files(tmp_path / "out")["train.jsonl"] == files(tmp_path / "whole")["train.jsonl"]


def test_it_says_how_many_samples_and_how_long(tmp_path, episodes, capsys):
    write(tmp_path, episodes)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"60 samples of 11 episodes go to {tmp_path} (1 held out)"
    assert re.fullmatch(r"60 of 60 samples, in \d+ s", shown[-1])


WRITE = """
import sys
from pathlib import Path
from memory_bank import MemoryConfig
from planner.dataset import DatasetConfig
from planner.prompt import PromptConfig
from planner.training_data import write_training_data
from predimem.core.episode_folder import load_episodes
config = DatasetConfig(samples=3000, image_format="base64")
memory = MemoryConfig(recent_window=2, cluster_gap_steps=3)
write_training_data(Path(sys.argv[2]), load_episodes(sys.argv[1]), PromptConfig(recent_window=2), memory, config, 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_goes_on_after_ctrl_c_and_after_a_crash(tmp_path, episodes, number):
    for episode in episodes:
        save_episode(episode_path(tmp_path / "episodes", episode.task, episode.seed), episode)

    def start(out: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITE, str(tmp_path / "episodes"), str(tmp_path / out)]
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)

    partial = tmp_path / "out" / "train.jsonl.partial"
    process = start("out")
    until = time.monotonic() + 240
    while not (partial.is_file() and partial.stat().st_size > 100_000) and time.monotonic() < until:
        time.sleep(0.002)
    os.kill(process.pid, number)
    said = process.communicate()[1]
    assert process.returncode != 0 and partial.is_file()
    if number == signal.SIGINT:
        assert re.search(r"interrupted: \d+ of 3000 samples are written; the same command goes on", said)
    again, whole = start("out"), start("whole")
    assert "samples are there from an earlier run" in again.communicate()[1]
    whole.communicate()
    assert again.returncode == whole.returncode == 0
    assert files(tmp_path / "out") == files(tmp_path / "whole")
