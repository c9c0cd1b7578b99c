"""The model decomposer against a real HTTP server in a process of its own."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from datagen.decompose.config import VlmConfig
from datagen.decompose.references import agrees
from datagen.decompose.rules import decompose
from datagen.decompose.steps import to_json
from datagen.decompose.vlm import DecompositionError, VlmDecomposer
from datagen.decompose.vocabulary import vocabulary_of
from predimem.envs.arena.tasks import task_of
from tests.datagen.decompose.conftest import Serve

TASK = task_of(12)  # cookies onto the mat in the middle drawer, then the pudding
VOCABULARY = vocabulary_of(TASK)
INSTRUCTION = TASK.variants[0].instruction
VALID = to_json(decompose(INSTRUCTION, VOCABULARY))
IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> str:
    """The valid answer with its list of steps changed."""
    answer = json.loads(VALID)
    change(answer["subtasks"])
    return json.dumps(answer)


UNKNOWN_SKILL = changed(lambda steps: steps[1].update(planner="Grasp"))
UNKNOWN_TARGET = changed(lambda steps: steps[1].update(target="banana"))


def _place_first(steps: list[dict[str, Any]]) -> None:
    steps[1], steps[2] = {**steps[2], "step_id": 2}, {**steps[1], "step_id": 3}


PLACE_BEFORE_PICK = changed(_place_first)


def test_a_valid_answer_is_taken_at_once(serve: Serve, tmp_path: Path) -> None:
    decomposer, requests = serve([VALID])
    steps = decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)
    assert all(agrees(steps, variant) for variant in TASK.variants)
    assert len(requests()) == 1
    assert not (tmp_path / "failed").exists()


def test_the_request_has_the_image_the_instruction_and_the_vocabulary(serve: Serve) -> None:
    decomposer, requests = serve([VALID], api_key="secret", temperature=0.0)
    decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)
    (request,) = requests()
    body = request["body"]
    assert request["path"] == "/v1/chat/completions" and request["authorization"] == "Bearer secret"
    assert body["model"] == "scripted" and body["temperature"] == 0.0
    system, user = body["messages"]
    assert system["role"] == "system" and all(skill in system["content"] for skill in ("Move", "Pour", "Close"))
    image, text = user["content"]
    kind, data = image["image_url"]["url"].split(",")
    assert kind == "data:image/png;base64"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), IMAGE)
    assert INSTRUCTION in text["text"]
    for target in VOCABULARY.targets:
        assert f"- {target.name} (" in text["text"]
    schema = body["response_format"]["json_schema"]["schema"]
    step = schema["properties"]["subtasks"]["items"]
    assert body["response_format"]["type"] == "json_schema"
    assert step["properties"]["target"]["enum"] == [target.name for target in VOCABULARY.targets]
    assert step["properties"]["planner"]["enum"] == ["Move", "Place", "Pour", "Open", "Close"]
    assert step["required"] == ["step_id", "subtask", "planner", "target"]


@pytest.mark.parametrize(
    ("faulty", "told"),
    [
        ("Sure! Here are the steps.", "not JSON"),
        ("", "the answer is empty"),
        ("<think>Let me see.</think>", "nothing follows the thoughts"),
        ('{"steps": []}', "one field subtasks"),
        ('{"subtasks": []}', "there are no steps"),
        (UNKNOWN_SKILL, "entry 2 of subtasks: unknown planner 'Grasp': there are Move, Place, Pour, Open, Close"),
        (
            UNKNOWN_TARGET,
            "there is no 'banana' here; the targets of Move are: cookies, chocolate_pudding, cream_cheese",
        ),
        (PLACE_BEFORE_PICK, "step 2 (Place marked_half): the gripper holds nothing"),
    ],
)
def test_a_faulty_answer_is_reported_back_and_mended(serve: Serve, faulty: str, told: str) -> None:
    decomposer, requests = serve([faulty, VALID])
    assert to_json(decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)) == VALID
    first, second = requests()
    *before, answer, correction = second["body"]["messages"]
    assert before == first["body"]["messages"]
    assert answer == {"role": "assistant", "content": faulty or "(nothing)"}
    assert correction["role"] == "user" and told in correction["content"]


def test_after_the_last_correction_the_exchange_is_saved(serve: Serve, tmp_path: Path) -> None:
    answers = ["no", UNKNOWN_SKILL, PLACE_BEFORE_PICK]
    decomposer, requests = serve([*answers, VALID], corrections=2, api_key="secret")
    with pytest.raises(DecompositionError, match="the gripper holds nothing") as caught:
        decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)
    assert len(requests()) == 3
    path = caught.value.exchange
    assert path.parent == tmp_path / "failed" and str(path) in str(caught.value)
    assert "secret" not in path.read_text()
    exchange = json.loads(path.read_text())
    assert exchange["instruction"] == INSTRUCTION and exchange["config"]["model"] == "scripted"
    roles = [message["role"] for message in exchange["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user", "assistant"]
    assert [m["content"] for m in exchange["messages"] if m["role"] == "assistant"] == answers
    assert exchange["messages"][:-1] == requests()[-1]["body"]["messages"]  # the image included
    assert any("the gripper holds nothing" in problem for problem in exchange["problems"])


def test_exchanges_do_not_overwrite_each_other(serve: Serve, tmp_path: Path) -> None:
    decomposer, _ = serve(["no", "no"], corrections=0)
    for _ in range(2):
        with pytest.raises(DecompositionError):
            decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)
    assert sorted(path.name for path in (tmp_path / "failed").iterdir()) == ["exchange-0001.json", "exchange-0002.json"]


def test_a_server_without_schemas_is_asked_for_plain_json(serve: Serve) -> None:
    decomposer, requests = serve(["no", VALID, VALID], schemas=False)
    assert to_json(decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)) == VALID
    assert to_json(decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY)) == VALID
    assert ["response_format" in request["body"] for request in requests()] == [True, False, False, False]


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        VlmDecomposer(VlmConfig(model="m"))
    with pytest.raises(ValueError, match="corrections >= 0"):
        VlmConfig(model="m", corrections=-1)
    with pytest.raises(ValueError, match="model is empty"):
        VlmConfig(model="")
    for url in ("localhost:8000/v1", "http://", "http://host:port/v1", "ftp://host/v1", ""):
        with pytest.raises(ValueError, match=r"expected an endpoint's address such as http://localhost:8000/v1, got"):
            VlmConfig(model="m", base_url=url)
    with pytest.raises(ValueError, match="give 'http://host/v1', not"):
        VlmConfig(model="m", base_url="http://host/v1/chat/completions")
    for timeout_s in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="a timeout of more than 0 s"):
            VlmConfig(model="m", timeout_s=timeout_s)
    with pytest.raises(ValueError, match="max_tokens >= 1, got 0"):
        VlmConfig(model="m", max_tokens=0)
    decomposer = VlmDecomposer(VlmConfig(model="m", base_url="http://127.0.0.1:1/v1"))
    with pytest.raises(ValueError, match=r"expected an RGB image, uint8 \[H, W, 3\]; got float64 \[4, 4, 3\]"):
        decomposer.decompose(INSTRUCTION, np.zeros((4, 4, 3)), VOCABULARY)
