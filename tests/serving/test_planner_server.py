"""A shipped planner behind HTTP, in a process of its own, asked through `EndpointPlanner` and by hand."""

from __future__ import annotations

import base64
import json
import pickle
import shutil
import socket
import struct
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from planner.decoding import load_planner
from planner.endpoint import EndpointConfig, EndpointError, EndpointPlanner
from predimem.agent.config import AgentConfig
from predimem.core.config import ConfigError
from predimem.core.faults import setup_fault
from predimem.core.placement import Placement
from predimem.core.types import Frame, MemorySnapshot
from predimem.core.weight_files import weights_folder
from predimem.evaluation.run.config import PlayConfig
from predimem.pipelines.shared_planners import shared_planners
from predimem.serving.config import ModelsConfig
from predimem.serving.models import make_served
from predimem.serving.planner_server import PlannerServer, PlannerServerConfig, planner_server_config

FOLDER = weights_folder(None, "planner")
CAMERAS = ("base_camera", "hand_camera")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the process that an evaluation's workers share."""
    agents = {"predimem": AgentConfig("planner", "actor"), "reactive": AgentConfig("instruction", "actor")}
    play = PlayConfig(agent_configs=agents, shared_planner=True)
    with shared_planners(play, tmp_path_factory.mktemp("shared")) as shared:
        assert list(shared.planner_endpoints) == ["planner"]
        assert shared.compute == play.compute == {}  # it changes no answer
        yield shared.planner_endpoints["planner"].url


def snapshots(count: int) -> Iterator[MemorySnapshot]:
    """An episode of noise, whose first frames become keyframes one by one."""
    rng = np.random.default_rng(3)
    frames = [
        Frame(step, step / 10, MappingProxyType({c: rng.integers(0, 256, (128, 128, 3), np.uint8) for c in CAMERAS}))
        for step in range(count + 1)
    ]
    for step in range(1, count + 1):
        yield MemorySnapshot(
            "e", step, "Observe the cube.", tuple(frames[step - 1 : step + 1]), tuple(frames[: step - 1])
        )


def ask(url: str, body: Any, **headers: str) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/chat/completions", data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def image_of(png: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png).decode()}"}}


def bomb() -> bytes:
    """A PNG file that claims to have 20,000 x 20,000 pixels, and has none."""
    parts = (b"IHDR", struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)), (b"IDAT", b"")
    chunks = [struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d)) for name, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def question(**more: Any) -> dict[str, Any]:
    return {"model": "planner", "messages": [{"role": "user", "content": "Hello."}], **more}


@pytest.mark.parametrize("constrained", [False, True])
def test_answers_are_those_of_the_planner_in_process(url: str, constrained: bool) -> None:
    """To noise the planner says what cannot be read, unless it is kept to the format."""
    here = load_planner(FOLDER, constrained=constrained)
    there = EndpointPlanner(FOLDER, EndpointConfig(url, constrained=constrained))
    for snapshot in snapshots(5):
        expected, got = here.plan(snapshot), there.plan(snapshot)
        assert replace(got, confidence=None) == replace(expected, confidence=None)
        assert got.confidence == pytest.approx(expected.confidence, abs=2e-6)
        assert expected.confidence is not None or not constrained


def test_a_server_of_robots_asks_it(url: str) -> None:
    """`models: {planner_endpoint: {url: ...}}`: the planner's folder tells all but the weights."""
    served = make_served(ModelsConfig(planner_endpoint=EndpointConfig(url), memory={"keyframe_capacity": 3}))
    assert served.make_planner is not None and served.memory.keyframe_capacity == 3
    planner = pickle.loads(pickle.dumps(served.make_planner))()  # it is made in another process
    assert isinstance(planner, EndpointPlanner) and planner.spec.memory == served.memory
    assert planner.plan(next(snapshots(1))).text
    with pytest.raises(ValueError, match="leave planner_on out"):
        ModelsConfig(planner_endpoint=EndpointConfig(url), planner_on=Placement("cuda"))
    with pytest.raises(ValueError, match="constrained: it is for a planner with weights"):
        ModelsConfig(planner="instruction", constrained=True)


def test_several_robots_are_asked_about_at_once(url: str) -> None:
    there = EndpointPlanner(FOLDER, EndpointConfig(url))
    asked = [replace(snapshot, episode_id=f"robot {i}") for i, snapshot in enumerate(snapshots(4))]
    together = there.plan_batch(asked)
    assert [(plan.episode_id, plan.step) for plan in together] == [(s.episode_id, s.step) for s in asked]
    assert [plan.text for plan in together] == [there.plan(snapshot).text for snapshot in asked]


def test_the_server_keeps_an_answer_to_the_schema(url: str) -> None:
    there = EndpointPlanner(FOLDER, EndpointConfig(url, constrained=True))
    plan = there.plan(next(snapshots(1)))
    known = there.spec.known_subtasks
    assert known is not None and plan.subtask in known
    only = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "required": ["a"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": only}}
    status, reply = ask(url, question(response_format=form))
    assert (status, reply["choices"][0]["message"]["content"]) == (200, '{"a":"b"}')


def test_a_server_that_sees_other_images_is_noticed(url: str, tmp_path: Path) -> None:
    """Here the server counts 16 tokens for an image, and the folder's config says 64."""
    other = tmp_path / "planner"
    shutil.copytree(FOLDER, other)
    config = json.loads((other / "config.json").read_text())
    config["vision_config"]["spatial_merge_size"] = 1
    (other / "config.json").write_text(json.dumps(config))
    planner = EndpointPlanner(other, EndpointConfig(url))
    with pytest.raises(
        EndpointError, match=r"prompt tokens where training has \d+, with 4 images of 128 x 128 px"
    ) as e:
        planner.plan(next(snapshots(1)))
    assert "shortest_edge" in str(e.value) and setup_fault(e.value) is not None
    trusting = EndpointPlanner(other, EndpointConfig(url, check_tokens=False))
    assert trusting.plan(next(snapshots(1))).text


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "no JSON"),
        ([], 400, "expected a JSON object"),
        (question(model="gpt"), 404, "there is 'planner'"),
        (question(stream=True), 400, "stream"),
        (question(temperature=0.7), 400, "temperature"),
        (question(max_tokens=10**6), 400, "max_tokens"),
        (question(messages=[]), 400, "at least one message"),
        (question(messages=[{"role": "user", "content": [{"type": "audio"}]}]), 400, "'audio'"),
        (
            question(
                messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}]
            ),
            400,
            "data URL",
        ),
        (
            question(
                messages=[
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
                    }
                ]
            ),
            400,
            "cannot be read",
        ),
        (question(messages=[{"role": "user", "content": [image_of(bomb())]}]), 400, "cannot be read: Image size"),
        (question(messages=[{"role": "user", "content": "<|image_pad|>"}]), 400, "1 image tokens for 0 images"),
        (question(response_format={"type": "grammar"}), 400, "json_schema"),
    ],
)
def test_what_cannot_be_answered_is_refused(url: str, body: Any, status: int, said: str) -> None:
    got, reply = ask(url, body)
    assert got == status and said in reply["error"]["message"]


@pytest.mark.parametrize("stops", [False, True])
def test_a_request_may_be_slow_but_may_not_stop(stops: bool) -> None:
    with closing(PlannerServer(PlannerServerConfig(str(FOLDER), stall_s=1.0))) as server:
        port, body = urlsplit(server.url).port, json.dumps(question()).encode()
        with socket.create_connection(("127.0.0.1", port or 0), timeout=60) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode())
            for at in range(0, len(body), 10)[: 2 if stops else None]:
                client.sendall(body[at : at + 10])
                time.sleep(0.4)
            answer = client.recv(1 << 16)
            assert ask(server.url, question())[0] == 200
    if stops:
        assert answer.startswith(b"HTTP/1.1 408 ") and b"the request stopped in the middle: no byte for 1 s" in answer
    else:
        assert answer.startswith(b"HTTP/1.1 200 ")


def test_web_pages_may_not_ask(url: str) -> None:
    assert ask(url, question(), Origin="http://evil.example")[0] == 403
    assert ask(url, question())[0] == 200


class Faulty:
    """A real server that answers with a status; where it `refuses` a field, only requests that have it."""

    def __init__(self, status: int, refuses: str = "model"):
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                good = refuses not in body
                message = {"role": "assistant", "content": '{"current_primitive":"watch","keyframe_positions":[2]}'}
                reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
                reply["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
                data = json.dumps(reply if good else {"error": {"message": "no"}}).encode()
                self.send_response(200 if good else status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *_: Any) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


def test_a_failing_server_is_asked_again_and_then_left_alone() -> None:
    faulty = Faulty(500)
    planner = EndpointPlanner(FOLDER, EndpointConfig(faulty.url, "m", retries=1, failures=2, pause_s=60))
    snapshot = next(snapshots(1))
    for _ in range(2):
        with pytest.raises(EndpointError, match="refused with status 500"):
            planner.plan(snapshot)
    assert len(faulty.requests) == 4
    with pytest.raises(EndpointError, match="2 requests failed in a row"):
        planner.plan(snapshot)
    assert len(faulty.requests) == 4
    (failed,) = planner.plan_batch([snapshot])
    assert isinstance(failed, EndpointError)
    faulty.server.shutdown()


@pytest.mark.parametrize("model", ["m", None])
def test_a_url_of_web_pages_is_said_to_be_one(model: str | None) -> None:
    """Without /v1 at its end, many servers answer with a page."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html>planners for everybody</html>")

        do_POST = do_GET

        def log_message(self, format: str, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    Thread(target=server.serve_forever, daemon=True).start()
    planner = EndpointPlanner(FOLDER, EndpointConfig(f"http://127.0.0.1:{server.server_port}", model))
    with pytest.raises(
        EndpointError, match="not as an OpenAI-compatible server does: check its url, which usually ends"
    ):
        planner.plan(next(snapshots(1)))
    server.shutdown()


def test_a_server_without_probabilities_gives_plans_without_confidence() -> None:
    faulty = Faulty(400, refuses="logprobs")
    planner = EndpointPlanner(FOLDER, EndpointConfig(faulty.url, "m"))
    plans = [planner.plan(next(snapshots(1))) for _ in range(2)]
    assert [(plan.subtask, plan.keyframe_steps, plan.confidence) for plan in plans] == [("watch", (1,), None)] * 2
    assert ["logprobs" in request for request in faulty.requests] == [True, False, False]
    assert all(request["user"] == "e" and request["temperature"] == 0 for request in faulty.requests)
    first, second = (json.dumps(request["messages"]) for request in faulty.requests[1:])
    assert first == second and "data:image/png;base64," in first
    faulty.server.shutdown()


def test_a_server_that_is_away_is_named() -> None:
    planner = EndpointPlanner(FOLDER, EndpointConfig("http://127.0.0.1:9/v1", "m", retries=0))
    with pytest.raises(EndpointError, match=r"127\.0\.0\.1:9/v1 cannot be reached"):
        planner.plan(next(snapshots(1)))
    with pytest.raises(ValueError, match="expected http://"):
        EndpointConfig("localhost:8000")


def test_a_file_has_the_defaults_and_options_override_it(tmp_path: Path) -> None:
    folder = str(FOLDER)
    shipped = planner_server_config("configs/serve_planner.yaml", folder, {})
    assert shipped == planner_server_config(None, folder, {}) == PlannerServerConfig(folder, port=8100)
    own = tmp_path / "own.yaml"
    own.write_text("port: 9000\nplacement: {device: cuda}\ncaches: {prefix_mb: 20000, spill_mb: 8000}")
    got = planner_server_config(own, folder, {"port": 0, "placement": {"dtype": "float16"}, "host": None})
    assert (got.port, got.host) == (0, "127.0.0.1") and got.placement == Placement("cuda", "float16")
    assert (got.caches.prefix_mb, got.caches.spill_mb, got.caches.features_mb) == (20_000, 8_000, 512)
    own.write_text("caches: {prefix_gb: 20}")
    with pytest.raises(ConfigError, match=r"own.yaml.*unknown key 'prefix_gb'"):
        planner_server_config(own, folder, {})
