"""`predimem decompose` as a user meets it, and the image that a model is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from datagen.decompose.references import agrees
from datagen.decompose.scene import first_image, instruction_of
from datagen.decompose.steps import parse_steps
from datagen.decompose.vocabulary import vocabulary_of
from predimem.envs.arena.tasks import task_of

ROOT = Path(__file__).parents[3]


def predimem(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "predimem.cli", "decompose", *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, env=env)


def test_the_rules_print_json_and_a_table(tmp_path: Path) -> None:
    result = predimem("--task", "10", "--seed", "3")
    task = task_of(10)
    told = instruction_of(task, 3)
    steps = parse_steps(result.stdout)
    assert agrees(steps, next(v for v in task.variants if v.instruction == told))
    assert told in result.stderr and "1     Move     wine_bottle" in result.stderr
    out = tmp_path / "some" / "steps.json"
    result = predimem("--task", "10", "--instruction", "Pour wine into the white mug.", "--out", str(out))
    assert [step.target for step in parse_steps(out.read_text())] == ["wine_bottle", "mug_white"]
    assert result.stdout == "" and str(out) in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "99"], "unknown arena task '99'"),
        (["--task", "1", "--seed", "-1"], "expected a seed in [0, 2**32), got -1"),
        (["--task", "1", "--model", "m"], "give both --endpoint and --model"),
        (
            ["--task", "1", "--instruction", "Fry the cookies."],
            "'fry cookies' does not begin with a form that it knows",
        ),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], message: str) -> None:
    result = predimem(*arguments)
    assert result.returncode == 1 and message in result.stderr and "Traceback" not in result.stderr


@pytest.mark.needs("vulkan")
def test_a_model_is_shown_the_first_image(tmp_path: Path) -> None:
    task = task_of(18)
    image = first_image(task, seed=5, image_px=64)
    assert image.shape == (64, 64, 3) and image.dtype.name == "uint8" and image.std() > 10
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    step = {"step_id": 1, "subtask": "take it", "planner": "Move", "target": "butter"}
    script.write_text(json.dumps({"answers": [json.dumps({"subtasks": [step]})]}))
    server = Path(__file__).with_name("scripted_vlm_server.py")
    with subprocess.Popen([sys.executable, server, script, log], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        result = predimem("--task", "18", "--endpoint", url, "--model", "scripted", NO_PROXY="127.0.0.1")
        process.terminate()
    assert result.returncode == 0, result.stderr
    assert [step.target for step in parse_steps(result.stdout)] == ["butter"]
    sent = json.loads(log.read_text())["body"]["messages"][1]["content"]
    assert (
        sent[0]["image_url"]["url"].startswith("data:image/png;base64,") and len(sent[0]["image_url"]["url"]) > 20_000
    )
    assert all(f"- {target.name} (" in sent[1]["text"] for target in vocabulary_of(task).targets)
