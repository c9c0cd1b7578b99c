"""Stages: what is skipped, what fails, and what runs side by side."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml

from datagen.dagger.config import PlannerDaggerConfig
from predimem.core.config import ConfigError
from predimem.pipelines.stage import DATA, Stage
from predimem.pipelines.stage_runs import StageError, is_done, run_stages


def make_stage(out: Path, name: str, *command: str, **config: object) -> Stage:
    """A stage of a cheap command of `predimem`: the answer is its output folder."""
    return Stage(name, DATA, command, out / "configs" / f"{name}.yaml", {**config}, out / name)


def test_a_failing_stage_is_named_and_run_again(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, "broken", "datagen", "--config", "nowhere.yaml")
    for _ in range(2):
        with pytest.raises(StageError, match=r"broken ended with code 1; .*predimem datagen --config nowhere.yaml"):
            run_stages([stage], tmp_path)
        assert not is_done(stage, tmp_path)


def test_a_stage_without_its_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="left no"):
        run_stages([make_stage(tmp_path, "empty", "--help")], tmp_path)


def test_stages_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Each writes to a log of its own, the one that needs another waits for it, and the first that fails is named."""
    first, second = (make_stage(tmp_path, name, "--help") for name in ("first", "second"))
    third = replace(make_stage(tmp_path, "third", "--help"), needs=("first",))
    for stage in (first, second, third):
        stage.result.mkdir(parents=True)
    run_stages([first, second, third], tmp_path, at_once=3)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    assert lines[0].startswith("[1/3] first: predimem") and lines[1].startswith("[2/3] second: predimem")
    begun = next(i for i, line in enumerate(lines) if line.startswith("[3/3] third: predimem"))
    assert any("[1/3] first: done in" in line for line in lines[:begun])
    assert "Usage" in (tmp_path / "logs" / "second.log").read_text()
    broken = make_stage(tmp_path, "broken", "datagen", "--config", "nowhere.yaml")
    with pytest.raises(StageError, match=r"broken ended with code 1; .*its output is in .*logs/broken.log"):
        run_stages([first, broken], tmp_path, at_once=2)
    assert "nowhere.yaml" in (tmp_path / "logs" / "broken.log").read_text()


def test_what_is_done_is_skipped_and_another_config_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    stage = make_stage(tmp_path, "help", "--help", kind="dagger", image_px=64)
    stage.result.mkdir(parents=True)
    run_stages([stage], tmp_path)
    written = yaml.safe_load(stage.config_path.read_text())
    assert "done in" in capsys.readouterr().out and written == {"kind": "dagger", "image_px": 64}
    run_stages([replace(stage, command=("no", "such", "command"))], tmp_path)
    assert "[1/1] help: is there" in capsys.readouterr().out
    said = {**stage.config, "image_every": PlannerDaggerConfig().image_every}
    assert is_done(replace(stage, config=said), tmp_path), "a default that is said is no other config"
    with pytest.raises(ConfigError, match=r"the stage help of another config: image_px \(was 64, is 96\)"):
        run_stages([replace(stage, config={**said, "image_px": 96})], tmp_path)
    stage.result.rmdir()
    assert not is_done(stage, tmp_path)


def test_what_was_made_from_a_stage_that_is_to_be_run_again_is_named(tmp_path: Path) -> None:
    data, other = make_stage(tmp_path, "data", "--help"), make_stage(tmp_path, "other", "--help")
    planner = replace(make_stage(tmp_path, "planner", "--help"), needs=("data",))
    driven = replace(make_stage(tmp_path, "dagger-1", "--help"), needs=("planner",))
    stages = [data, other, planner, driven]
    for stage in stages:
        stage.result.mkdir(parents=True)
    run_stages(stages, tmp_path)
    note = tmp_path / "done" / "data.json"
    note.unlink()
    later = [tmp_path / place for place in ("done/planner.json", "planner", "done/dagger-1.json", "dagger-1")]
    with pytest.raises(ConfigError, match=r"^data: to be run, but planner, dagger-1 had been made") as refused:
        run_stages(stages, tmp_path)
    assert f"delete {', '.join(map(str, later))} as well" in str(refused.value) and not note.exists()
    (tmp_path / "done" / "planner.json").unlink()
    (tmp_path / "done" / "dagger-1.json").unlink()
    run_stages(stages, tmp_path)
    assert all(is_done(stage, tmp_path) for stage in stages)


def test_a_folder_that_an_earlier_version_began_is_refused(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "practice-0.json").write_text("{}")
    with pytest.raises(ConfigError, match="its stage practice-0 is dagger-0 now; choose another --out"):
        run_stages([make_stage(tmp_path, "dagger-0", "--help")], tmp_path)


def test_weights_are_placed_and_placed_again_when_they_are_lost(tmp_path: Path) -> None:
    stage = replace(make_stage(tmp_path, "help", "--help"), weights="arena-planner")
    stage.result.mkdir(parents=True)
    (stage.result / "model.safetensors").write_text("numbers")
    for _ in range(2):
        weights = run_stages([stage], tmp_path)
        placed = weights / "arena-planner" / "model.safetensors"
        assert placed.read_text() == "numbers"
        placed.write_text("altered")


@pytest.mark.slow
def test_in_the_background_of_a_script_a_later_stage_is_stopped_as_well(tmp_path: Path) -> None:
    """SIGINT is ignored there, and stages are stopped by it: none may inherit that."""
    first = make_stage(tmp_path, "first", "--help")
    second = replace(make_stage(tmp_path, "second", "serve", "--port", "0"), needs=("first",))
    first.result.mkdir(parents=True)
    log, needed_force = tmp_path / "logs" / "second.log", Event()

    def stop() -> None:
        while not log.is_file() or "listening" not in log.read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        if not ended.wait(30):
            needed_force.set()
            os.kill(os.getpid(), signal.SIGTERM)

    ended, stopper = Event(), Thread(target=stop)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_stages([first, second], tmp_path, at_once=2)
    finally:
        ended.set()
        stopper.join()
        signal.signal(signal.SIGINT, before)
    assert not needed_force.is_set()
