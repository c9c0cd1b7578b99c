"""The page's data and images, and who may see them. What a browser makes of it: test_serving_browser.py."""

from __future__ import annotations

import base64
import io
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from PIL import Image

from memory_bank import MemoryConfig
from memory_bank.store import StoredEpisode, StoredPlan
from predimem.core.types import Plan, Tick
from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.page.live import live_image
from predimem.serving.page.past import history, past_image
from predimem.serving.page.routes import POLICY, shell
from predimem.serving.robot import RobotSpec
from predimem.serving.sessions import Client
from predimem.serving.watch import ANSWERS, SPANS, EpisodeWatch
from tests.serving.support import (
    CAMERAS,
    SIDE,
    ServerProcess,
    observe,
    settings,
    small_config,
    small_models,
    small_server,
)

KEY = "a key of sixteen+ characters, é"
ID = "robot-7/../2041"
ADDRESS = "robot-7%2F..%2F2041"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("page")
    with small_server(folder, state={"dir": str(folder / "state"), "image_every_steps": 5}) as made:
        play(made)
        yield made


def play(server: ServerProcess) -> dict[str, Any]:
    """An episode with the marks 7, 210 and 8; the last reply."""
    client, step, reply = WebsocketClientPolicy("127.0.0.1", server.port), 0, {}
    for mark in (7, 210, 8):
        end = time.monotonic() + 60
        while (reply := client.infer(observe(mark, episode_id=ID, step=step)))["subtask"] != f"mark {mark}":
            assert time.monotonic() < end, reply
            step += 1
            time.sleep(0.01)
        step += 1
    return reply


def fetch(server: ServerProcess, path: str, timeout_s: float = 20, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def ask(server: ServerProcess, path: str) -> Any:
    status, headers, body = fetch(server, path)
    assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, "application/json", "no-store")
    return json.loads(body)


def test_the_page_is_whole(server: ServerProcess) -> None:
    """Every file that the page and its modules name is there, and may be kept for ever."""
    status, headers, body = fetch(server, "/")
    assert status == 200 and headers["Content-Security-Policy"] == POLICY
    named = re.findall(rb'"(/page/static/[^"]+)"', body)
    assert len(named) >= 3 and b"{{" not in body and b"http" not in body
    seen, todo = set(), [address.decode() for address in named]
    while todo:
        address = todo.pop()
        status, headers, body = fetch(server, address)
        assert status == 200 and "immutable" in headers["Cache-Control"], address
        assert headers["X-Content-Type-Options"] == "nosniff"
        seen.add(address)
        modules = re.findall(rb'from "\./([a-z]+\.js)"', body)
        todo += [a for m in modules if (a := f"{address.rpartition('/')[0]}/{m.decode()}") not in seen | set(todo)]
    assert len(seen) >= 10


@pytest.mark.parametrize("path", ["/page/static/000000000000/main.js", "/page/static/", "/page", "/page/live/x.json"])
def test_what_is_not_there(server: ServerProcess, path: str) -> None:
    status, _, body = fetch(server, path)
    assert status == 404 and b"Traceback" not in body


def test_nothing_beside_the_page_can_be_read() -> None:
    version = re.findall(rb"/page/static/([0-9a-f]+)/", shell("/").body)[0].decode()  # type: ignore[union-attr]
    for name in ("../routes.py", "..%2froutes.py", "routes.py", "main.js/..", ".", ""):
        answer = shell(f"/page/static/{version}/{name}")
        assert answer is None or answer.status == 404


def test_a_live_episode(server: ServerProcess) -> None:
    overview = ask(server, "/page/live.json")["overview"]
    assert overview["state"] == "ok" and overview["keeps"]
    assert [s["id"] for s in overview["sessions"]] == [ID] and overview["sessions"][0]["subtask"] == "mark 8"
    told = ask(server, f"/page/live/{ADDRESS}.json")["episode"]
    assert [label for _, label in told["spans"]] == ["mark 7", "mark 210", "mark 8"]
    assert told["instruction"] == "do it" and told["keyframes"] and not told["held"]
    assert len(told["answers"]) >= 3 and told["s2_ms"] is not None


def test_live_images(server: ServerProcess) -> None:
    told = ask(server, f"/page/live/{ADDRESS}.json")["episode"]
    for step, mark in ((told["step"], 8), (told["keyframes"][0], 210)):
        status, headers, body = fetch(server, f"/page/live/{ADDRESS}/{told['run']}/{step}/1.jpg")
        assert (status, headers["Content-Type"]) == (200, "image/jpeg") and "immutable" in headers["Cache-Control"]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert abs(int(np.asarray(Image.open(io.BytesIO(body)))[0, 0, 0]) - mark) <= 2
    for gone in (
        f"{told['run']}/{told['step'] + 1}/0",
        f"{told['run']}/{told['step']}/2",
        f"00000000/{told['step']}/0",
    ):
        assert fetch(server, f"/page/live/{ADDRESS}/{gone}.jpg")[0] == 404


def test_a_kept_episode(server: ServerProcess) -> None:
    (kept,) = ask(server, "/page/past.json")
    assert (kept["episode_id"], kept["instruction"], kept["live"]) == (ID, "do it", True)
    live = ask(server, f"/page/live/{ADDRESS}.json")["episode"]
    past = ask(server, f"/page/past/{ADDRESS}.json")
    assert [label for _, label in past["spans"]] == ["mark 7", "mark 210", "mark 8"]
    assert past["keyframes"][-1][1] == live["keyframes"] and set(live["keyframes"]) <= set(past["images"])
    status, headers, body = fetch(server, f"/page/past/{past['key']}/{live['keyframes'][0]}/{CAMERAS[0]}.png")
    assert (status, headers["Content-Type"]) == (200, "image/png") and "immutable" in headers["Cache-Control"]
    assert np.asarray(Image.open(io.BytesIO(body)))[0, 0, 0] == 210
    assert fetch(server, f"/page/past/{past['key']}/999999/{CAMERAS[0]}.png")[0] == 404
    assert fetch(server, f"/page/past/{past['key']}/{live['keyframes'][0]}/no_such_camera.png")[0] == 404


def test_a_camera_that_was_not_sent_is_missing_and_the_others_stay_at_their_places(tmp_path: Path) -> None:
    robot = RobotSpec(("base", "left", "right"), (SIDE, SIDE), 3, 2, optional_cameras=("left",))
    config = settings(small_config(state={"dir": str(tmp_path), "sync": False}))
    engine, client = Engine(config, replace(small_models(), robot=robot)), Client()
    engine.start()
    try:
        images = {"base": np.full((SIDE, SIDE, 3), 210, np.uint8), "right": np.full((SIDE, SIDE, 3), 50, np.uint8)}
        reply, step = {}, 0
        while not reply.get("keyframe_steps"):
            message = {**images, "state": np.zeros(3, np.float32), "prompt": "do it", "episode_id": "a", "step": step}
            reply = wire.unpack(engine.handle(client, wire.pack(message), time.monotonic()), 1 << 20)
            assert step < 2000
            step += 1
        (session,) = engine.sessions.live()
        assert engine.store is not None
        found = engine.store.find("a")
        assert found is not None
        keyframe, run, key = reply["keyframe_steps"][0], session.watch.run, found.key
        live = [live_image(engine, "a", run, keyframe, place) for place in range(3)]
        kept = [past_image(engine.store, key, keyframe, name) for name in robot.cameras]
    finally:
        engine.close()
    for shown in (live, kept):
        assert [page.status for page in shown] == [200, 404, 200]
        right = np.asarray(Image.open(io.BytesIO(shown[2].body)))
        assert abs(int(right[0, 0, 0]) - 50) <= 2


def test_a_key_is_needed_for_data_alone(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    with small_server(tmp_path, access={"api_key_file": str(file)}) as server:
        secret = ["/page/live.json", "/page/past.json", "/page/live/x.json", "/page/live/x/00000000/0/0.jpg"]
        assert fetch(server, "/")[0] == 200
        wrong = base64.b64encode(b":another key of sixteen").decode()
        right = base64.b64encode(f":{KEY}".encode()).decode()
        for path in secret:
            assert fetch(server, path)[0] == 401
            assert fetch(server, path, Authorization=f"Basic {wrong}")[0] == 401
            assert fetch(server, path, Authorization=f"Basic {right}")[0] in (200, 404)
        assert fetch(server, "/page/live.json", Origin="http://elsewhere")[0] == 403


def test_a_watch_is_bounded_and_begins_anew() -> None:
    watch, row = EpisodeWatch(), (np.zeros(3, np.float32), np.zeros(2, np.float32))
    first = watch.view()
    assert first["step"] is None and first["spans"] == [] and watch.trajectory() is None
    tick = Tick(0, "", 0, False, False, s1_latency_s=0.004, s2_latency_s=0.1, plan_arrived=True, plan_confidence=0.5)
    for step in range(2000):
        watch.note(replace(tick, step=step, subtask=f"subtask {step // 2}"), *row)
        watch.note_answer(Plan("e", step, "go", confidence=0.5), 0.1)
    seen = watch.view()
    assert len(seen["spans"]) == SPANS and seen["spans"][-1] == (1998, "subtask 999")
    assert len(seen["answers"]) == ANSWERS and seen["answers"][-1] == [1999, 0.5, 100.0, True]
    assert seen["s1_ms"] == 4 and seen["s2_ms"] == 100 and seen["s1_hz"] > 10
    watch.note(replace(tick, step=2000, plan_error="no words", plan_confidence=None), *row)
    assert watch.view()["plan_error"] == "no words" and watch.view()["confidence"] == 0.5
    watch.begin()
    again = watch.view()
    assert again["spans"] == again["answers"] == [] and again["run"] != first["run"] and watch.trajectory() is None


def test_keyframes_are_clustered_as_the_bank_does() -> None:
    """Nominations next to each other are one event, whose frame may change as more come."""
    nominated = {10: (9,), 12: (11,), 13: (11,), 40: (40,), 300: ()}
    plans = tuple(StoredPlan(step, "go", steps, None, "") for step, steps in nominated.items())
    stored = StoredEpisode(1, "e", "do it", plans, (9, 11, 40))
    held = list(history(stored, MemoryConfig(cluster_gap_steps=3)))
    assert [(h.step, h.keyframes) for h in held if h.keyframes is not None] == [(10, (9,)), (13, (11,)), (40, (11, 40))]
    assert list(history(stored, MemoryConfig(keyframes=False))) == []
