"""`predimem train actor`: what --dry-run says and checks, and what Ctrl-C says, in processes of their own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from actor.dry_run import describe_training
from actor.train import train
from predimem.core.config import to_dict
from predimem.core.episode_folder import load_episodes
from tests.actor.test_train import CONFIG

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(to_dict(replace(CONFIG, log_every=1))))
    return path


def test_it_says_what_would_be_done_and_writes_nothing(episodes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    count = len(load_episodes(episodes))
    text = describe_training(replace(CONFIG, episodes=str(episodes), out=str(out)))
    held_out = len(range(0, count, CONFIG.val_every))
    assert re.search(rf"^data: {count - held_out} episodes of \d+ frames to train on, {held_out} epis", text)
    assert re.search(r"^model: 0\.\d\d million parameters", text, re.MULTILINE)
    assert "\nstarts from: weights drawn at random\nsteps: 6 on cpu" in text and "first batch: " in text
    assert text.endswith(f"\nout: {out}") and not out.exists()


def test_what_a_training_would_refuse_is_refused(episodes: Path, tmp_path: Path) -> None:
    train(replace(CONFIG, steps=1), episodes=episodes, out=tmp_path, progress=False)
    config = replace(CONFIG, episodes=str(episodes), out=str(tmp_path))
    with pytest.raises(ValueError, match="already holds a run: pass --resume"):
        describe_training(config)
    with pytest.raises(ValueError, match="cameras"):
        actor = replace(CONFIG.actor, cameras=("nowhere_camera", CONFIG.actor.cameras[1]))
        describe_training(replace(config, out=str(tmp_path / "new"), actor=actor))


@pytest.mark.slow
def test_ctrl_c_names_the_whole_command_to_go_on(episodes: Path, tmp_path: Path, recipe: Path) -> None:
    out = tmp_path / "my run"
    words = ["train", "actor", "--config", str(recipe), "--episodes", str(episodes), "--out", str(out)]
    words += ["--steps", "5000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "predimem.cli", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "of 5000 steps" in line or "step 3:" in line:
            process.send_signal(signal.SIGINT)
            break
    text = "".join(said) + process.communicate(timeout=300)[1]
    assert process.returncode != 0
    assert re.search(r"stopped after step \d+, of which .* has a checkpoint; to go on: predimem train actor ", text)
    assert f"--out '{out}' --steps 5000 --resume\n" in text
