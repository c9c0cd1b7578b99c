"""Everything that an endpoint may do instead of answering, from a real HTTP server: what the user is told, and when."""

from __future__ import annotations

import socket
import time
from typing import Any

import numpy as np
import pytest

from datagen.decompose.config import VlmConfig
from datagen.decompose.endpoint import EndpointError
from datagen.decompose.rules import decompose
from datagen.decompose.steps import to_json
from datagen.decompose.vlm import VlmDecomposer
from datagen.decompose.vocabulary import vocabulary_of
from predimem.envs.arena.tasks import task_of
from tests.datagen.decompose.conftest import Serve

TASK = task_of(12)
VOCABULARY = vocabulary_of(TASK)
INSTRUCTION = TASK.variants[0].instruction
VALID = to_json(decompose(INSTRUCTION, VOCABULARY))
IMAGE = np.zeros((8, 8, 3), np.uint8)
PAGE = "<!DOCTYPE html>\n<html><head><title>Open\n WebUI</title></head><body>Welcome</body></html>"


def ask(decomposer: VlmDecomposer) -> str:
    return to_json(decomposer.decompose(INSTRUCTION, IMAGE, VOCABULARY))


def error(status: int, message: str = "so it is", **headers: str) -> dict[str, Any]:
    return {"status": status, "body": {"error": {"message": message}}, "headers": headers}


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (error(400, "no images"), "400: no images. Check the name of the model, 'scripted', that it takes images"),
        (error(401), "status 401: so it is. It asks for a key: set OPENAI_API_KEY"),
        (error(403), "status 403: so it is. It asks for a key"),
        (error(404), "status 404: so it is. Check the address and the name of the model, 'scripted'"),
        (error(429), "again later, with fewer workers"),
        (error(429, **{"Retry-After": "20"}), "too many requests: run the same command again in 20 s"),
        (error(429, "You exceeded your current quota"), "The account has no credit left"),
        (error(500, "CUDA out of memory"), "500: CUDA out of memory. The fault is inside the server, and its log"),
        (error(503, "loading", **{"Retry-After": "7"}), "it may still be loading the model: try again in 7 s"),
        ({"status": 502, "body": "<html><title>502 Bad Gateway</title></html>"}, "a web page ('502 Bad Gateway')"),
        ({"status": 500, "body": ""}, "with status 500. The fault is inside the server"),
        (
            {"body": PAGE, "headers": {"Content-Type": "text/html"}},
            "with status 200, and what it sent is not JSON but a web page ('Open WebUI'). Is http",
        ),
        ({"body": PAGE}, "a web page ('Open WebUI')"),
        ({"body": ""}, "not JSON but nothing"),
        ({"body": {"error": {"message": "no provider"}}}, "what it sent is an error: no provider"),
        ({"body": {"choices": []}}, "JSON without `choices` that hold a message"),
        ({"body": ["x"]}, "JSON without `choices` that hold a message"),
        ({"hang_up": True}, "cannot be reached (Server disconnected without sending a response.). The server closed"),
        (
            {"text": VALID[:100], "finish_reason": "length"},
            "was cut off after 17 tokens before its answer was complete. Raise --max-tokens",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_told_at_once_with_what_to_do(serve: Serve, reply: dict[str, Any], told: str) -> None:
    decomposer, requests = serve([reply, VALID], schemas=reply.get("status") != 400)
    with pytest.raises(EndpointError) as caught:
        ask(decomposer)
    assert told in str(caught.value) and "127.0.0.1" in str(caught.value) and "\n" not in str(caught.value)
    assert len(requests()) == (2 if reply.get("status") == 400 else 1)  # 400 may mean that it knows no schemas
    assert ask(decomposer) == VALID  # the next episode of a data generation asks again


def test_a_key_that_is_refused_is_not_a_missing_key(serve: Serve) -> None:
    decomposer, _ = serve([error(401), error(403)], api_key="secret")
    with pytest.raises(
        EndpointError, match="The key that was sent is not the endpoint's: check OPENAI_API_KEY"
    ) as first:
        ask(decomposer)
    with pytest.raises(EndpointError, match="The key that was sent may not use this model"):
        ask(decomposer)
    assert "secret" not in str(first.value)


def test_an_address_without_v1(serve: Serve) -> None:
    for reply in ({"status": 404, "body": {"detail": "Not Found"}}, {"status": 405, "body": ""}, {"body": PAGE}):
        decomposer, _ = serve([reply], path="/")
        with pytest.raises(EndpointError, match=r"has no /v1: did you mean http://127\.0\.0\.1:\d+/v1\?"):
            ask(decomposer)


def test_a_model_that_is_not_served_is_answered_with_those_that_are(serve: Serve) -> None:
    decomposer, _ = serve([error(404, "The model `scripted` does not exist.")], models=["Qwen/A", "Qwen/B"])
    with pytest.raises(EndpointError, match=r"does not exist\.\. It serves Qwen/A, Qwen/B: give one of these as the"):
        ask(decomposer)


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as held:  # bound, and nobody listens
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        decomposer = VlmDecomposer(VlmConfig(model="m", base_url=url))
        began_s = time.monotonic()
        with pytest.raises(
            EndpointError, match=rf"{url} cannot be reached \(.*refused\)\. Start a server .*vllm serve"
        ):
            ask(decomposer)
        assert time.monotonic() - began_s < 10  # the client tries once


def test_https_where_http_is_spoken(serve: Serve) -> None:
    plain, _ = serve([])
    url = str(plain.config.base_url).replace("http://", "https://")
    with pytest.raises(EndpointError, match="Does the server speak http rather than https"):
        ask(VlmDecomposer(VlmConfig(model="m", base_url=url)))


@pytest.mark.slow
@pytest.mark.parametrize("reply", [{"text": VALID, "wait_s": 30}, {"text": VALID, "drip_s": 0.3}])
def test_the_time_that_the_user_gives_is_the_time_that_it_takes(serve: Serve, reply: dict[str, Any]) -> None:
    """Of a server that is silent and of one that goes on sending a byte now and then; and it is asked once."""
    seen: list[tuple[str, float]] = []
    decomposer, requests = serve([reply, VALID], timeout_s=2.5, waiting=lambda *now: seen.append(now))
    began_s = time.monotonic()
    with pytest.raises(EndpointError, match=r"gave no answer within 2\.5 s: raise --timeout \(timeout_s in a data"):
        ask(decomposer)
    assert 2.4 < time.monotonic() - began_s < 4.5
    assert len(requests()) == 1
    told = [round(s) for _, s in seen]  # once a second, but a busy machine may miss one
    assert {what for what, _ in seen} == {"asking scripted"}
    assert (told[0], told[-1]) == (0, 2) and told == sorted(set(told))
    assert ask(decomposer) == VALID


def test_a_correction_is_told_as_such(serve: Serve) -> None:
    seen: list[str] = []
    decomposer, _ = serve(["no", VALID], waiting=lambda what, _: seen.append(what))
    ask(decomposer)
    assert list(dict.fromkeys(seen)) == ["asking scripted", "asking scripted again, correction 1 of at most 3"]


def test_the_limit_of_tokens_is_sent(serve: Serve) -> None:
    decomposer, requests = serve([VALID], max_tokens=900)
    ask(decomposer)
    assert requests()[0]["body"]["max_tokens"] == 900


@pytest.mark.parametrize(
    "around",
    [
        "```json\n{}\n```",
        "```\n{}\n```",
        "Sure, here are the steps:\n\n{}\n\nThey put {both} into the drawer.",
        "<think>The mat is in {{\"subtasks\": []}} or so.\n</think>\n\n{}",
        "The tag of the start was in the prompt.</think>{}",
        "<THINK>\nno\n</THINK>```json\n{}\n```\nDone.",
        "{}\n```json\n{}\n```",
    ],
)  # fmt: skip
def test_json_is_found_in_what_models_write_around_it(serve: Serve, around: str) -> None:
    decomposer, requests = serve([around.replace("{}", VALID)])
    assert ask(decomposer) == VALID
    assert len(requests()) == 1


def test_a_request_that_is_refused_in_any_form_does_not_turn_the_schema_off(serve: Serve) -> None:
    decomposer, requests = serve([error(400, "too long"), error(400, "too long"), VALID])
    with pytest.raises(EndpointError, match="too long"):
        ask(decomposer)
    assert ask(decomposer) == VALID
    assert ["response_format" in request["body"] for request in requests()] == [True, False, True]
