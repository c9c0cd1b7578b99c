"""Several processes (gloo) give what one gives: with DDP, and with FSDP2, which shards what is trained."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

from actor.dataset import SamplingConfig
from actor.train import train
from actor.training.config import ActorTrainConfig
from predimem.core.config import to_dict
from tests.actor.test_train import CONFIG

ROOT = Path(__file__).parents[2]
RECIPE = dataclasses.replace(CONFIG, log_every=1, sampling=SamplingConfig(4, 3))


def write(config: ActorTrainConfig, path: Path) -> Path:
    path.write_text(yaml.safe_dump(to_dict(config)))
    return path


def losses(run: Path) -> np.ndarray:
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return np.array([[row["flow"], row["pointing"], row["position"]] for row in rows if "flow" in row])


def run_in(processes: int, recipe: Path, runs: dict[Path, dict]) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += [str(ROOT / "tests" / "actor" / "in_processes.py"), str(recipe)]
    command += [json.dumps({str(out): changes for out, changes in runs.items()})]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-6000:]


def assert_same(one: Path, other: Path) -> None:
    """Losses agree to rounding. Weights do to the float16 of the export, but for a few whose gradient is next to zero:
    AdamW divides by its size.
    """
    np.testing.assert_allclose(losses(one), losses(other), rtol=2e-4)
    first, second = (load_file(run / "weights" / "model.safetensors") for run in (one, other))
    assert first.keys() == second.keys()
    differences = np.concatenate([np.abs(first[n].astype(float) - second[n]).ravel() for n in first])
    assert np.mean(differences > 2e-4) < 0.002 and differences.max() < 3e-3


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_two_processes_give_what_one_gives(episodes: Path, tmp_path: Path):
    config = dataclasses.replace(RECIPE, episodes=str(episodes))
    recipe = write(config, tmp_path / "recipe.yaml")
    train(config, out=tmp_path / "one", progress=False)
    ddp = {"parallel": "ddp", "accumulation": 2}
    fsdp = {"parallel": "fsdp", "gradient_checkpointing": True, "workers": 1}
    run_in(2, recipe, {tmp_path / "ddp": {"compute": ddp}, tmp_path / "fsdp": {"compute": fsdp}})
    for name in ("ddp", "fsdp"):
        assert json.loads((tmp_path / name / "summary.json").read_text())["processes"] == 2
        assert_same(tmp_path / "one", tmp_path / name)
    shards = {p.name for p in (tmp_path / "fsdp" / "checkpoint-00000006").iterdir()}
    assert {"__0_0.distcp", "__1_0.distcp"} <= shards


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_the_command_starts_processes_and_one_goes_on_where_they_were_interrupted(episodes: Path, tmp_path: Path):
    """`--processes 2`, Ctrl-C to the whole group as in a terminal, then `--resume` in one process."""
    steps, out = 12, tmp_path / "two"
    recipe = write(dataclasses.replace(RECIPE, episodes=str(episodes), steps=steps), tmp_path / "recipe.yaml")
    words = [sys.executable, "-m", "predimem.cli", "train", "actor", "--config", str(recipe), "--out", str(out)]
    process = subprocess.Popen(
        [*words, "--processes", "2"], cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if f"of {steps} steps" in line or "step 3:" in line:
                os.killpg(process.pid, signal.SIGINT)
                break
        text = "".join(said) + process.communicate(timeout=900)[1]
    finally:
        process.kill()
    assert process.returncode != 0 and text.count("to go on: predimem train actor") == 1, text[-3000:]
    (left,) = out.glob("checkpoint-*")
    assert 1 <= int(left.name.removeprefix("checkpoint-")) < steps
    subprocess.run([*words, "--resume"], cwd=ROOT, check=True, capture_output=True, timeout=900)
    train(dataclasses.replace(RECIPE, episodes=str(episodes), steps=steps), out=tmp_path / "one", progress=False)
    assert_same(tmp_path / "one", out)
