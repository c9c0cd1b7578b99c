"""`predimem decompose` as a user meets it, and the image that a model is shown."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from datagen.decompose.references import agrees
from datagen.decompose.scene import first_image, instruction_of, variant_of
from datagen.decompose.steps import parse_steps
from datagen.decompose.vocabulary import vocabulary_of
from datagen.decompose.waiting import OnScreen
from predimem.envs.arena.tasks import task_of
from tests.datagen.decompose.conftest import Requests

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
        (["--task", "1", "--timeout", "9"], "--timeout and --max-tokens are for a model: give --endpoint and --model"),
        (["--task", "1", "--model", "m", "--endpoint", "host/v1"], "an endpoint's address such as http://localhost"),
        (
            ["--task", "1", "--instruction", "Fry the cookies."],
            "'fry cookies' does not begin with a form that it knows",
        ),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], message: str) -> None:
    result = predimem(*arguments)
    assert result.returncode == 1 and message in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.needs("vulkan")
def test_a_model_is_shown_the_first_image(scripted: Callable[..., tuple[str, Requests]]) -> None:
    task = task_of(18)
    image = first_image(task, seed=5, image_px=64)
    assert image.shape == (64, 64, 3) and image.dtype.name == "uint8" and image.std() > 10
    step = {"step_id": 1, "subtask": "take it", "planner": "Move", "target": "butter"}
    answer = json.dumps({"subtasks": [step]})
    url, requests = scripted([{"text": f"<think>Hm.</think>```json\n{answer}\n```", "wait_s": 3}, {"wait_s": 30}])
    asked = ("--task", "18", "--endpoint", f"{url}/v1", "--model", "scripted")
    result = predimem(*asked, "--timeout", "25", "--max-tokens", "500")
    assert result.returncode == 0, result.stderr
    assert [step.target for step in parse_steps(result.stdout)] == ["butter"]
    rendering, *between, verdict = result.stderr.splitlines()
    assert rendering.startswith("rendering the first image") and "asking scripted ..." in between
    assert verdict.startswith("These are not the subtasks of task TransferChocolateButter with seed 0: step 1 is Move ")
    assert "Move butter, and the task's is Move chocolate_pudding. `predimem datagen` would discard" in verdict
    body = requests()[0]["body"]
    assert body["max_tokens"] == 500
    sent = body["messages"][1]["content"]
    assert (
        sent[0]["image_url"]["url"].startswith("data:image/png;base64,") and len(sent[0]["image_url"]["url"]) > 20_000
    )
    assert all(f"- {target.name} (" in sent[1]["text"] for target in vocabulary_of(task).targets)
    result = predimem(*asked, "--timeout", "2")
    assert result.returncode == 1 and "gave no answer within 2 s: raise --timeout" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr and len(requests()) == 2


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        (["--task", "4", "--seed", "7"], "These are the 9 subtasks of task ButterInOccupiedDrawer with seed 7."),
        (
            ["--task", "18", "--instruction", "Move the chocolate pudding to the other shelf."],
            "the task goes on with step 3, Move butter. `predimem datagen` would discard the episode",
        ),
        (
            ["--task", "1", "--instruction", "Put the cookies in the left basket. Put the sauce into the left basket. "
             "Put the butter into the right basket."],
            "is Place basket_left, and the task's is Place basket_right",
        ),
    ],
)  # fmt: skip
def test_it_says_whether_the_steps_are_those_of_the_task(arguments: list[str], verdict: str) -> None:
    seed = next(s for s in range(99) if "basket_right" in str(variant_of(task_of(1), s)))
    result = predimem(*arguments, *(["--seed", str(seed)] if "--seed" not in arguments else []))
    assert result.returncode == 0 and verdict in result.stderr.splitlines()[-1]


def test_a_log_gets_a_line_at_once_and_then_now_and_then_and_a_terminal_counts_the_seconds() -> None:
    log, terminal, worker = io.StringIO(), io.StringIO(), io.StringIO()
    shown = OnScreen(log), OnScreen(terminal, terminal=True), OnScreen(worker, at_once=False)
    for elapsed_s in (*range(46), 0, 1):
        for screen in shown:
            screen("asking m", elapsed_s)
    assert log.getvalue().splitlines() == ["asking m ...", "asking m ... 20 s", "asking m ... 40 s", "asking m ..."]
    assert "\rasking m ... 12 s" in terminal.getvalue() and "\n" not in terminal.getvalue()
    shown[1].done()
    assert terminal.getvalue().endswith("\r")
    assert worker.getvalue().splitlines() == ["asking m ... 20 s", "asking m ... 40 s"]
