"""What the page tells of robots, of searches and of earlier sessions, by a real server with the shipped tower."""

from __future__ import annotations

import base64
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from PIL import Image

from predimem.serving.config import StateConfig
from predimem.serving.embedding import BackgroundEmbedding
from predimem.serving.engine import Engine
from tests.serving.support import ServerProcess, observe, settings, small_config, small_models, small_server
from tests.serving.test_page import ask, fetch

CAMERAS, SIDE = ("agentview_rgb", "eye_in_hand_rgb"), 128
MODELS = {"cameras": CAMERAS, "side": SIDE, "own_memory": "tests.serving.support:gated_sessions"}
PLAYED = (("arm/1", "monday", 210), ("arm/2", "tuesday", 250), ("other/1", None, 230))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("memory-pages")
    state = {"dir": str(folder / "state"), "embed": "arena-planner", "image_every_steps": 1000}
    with small_server(folder, MODELS, state=state) as made:
        client = WebsocketClientPolicy("127.0.0.1", made.port)
        for episode_id, session, mark in PLAYED:
            play(client, episode_id, session, mark)
        yield made


def play(client: WebsocketClientPolicy, episode_id: str, session: str | None, mark: int) -> None:
    """Until the planner has named and nominated the mark, and one step more, so that the memory tells what it chose."""
    belongs = {} if session is None else {"session_id": session}
    end, step, reply = time.monotonic() + 60, 0, {}
    while not str(reply.get("subtask")).startswith(f"mark {mark}"):
        assert time.monotonic() < end, reply
        reply = client.infer(observe(mark, CAMERAS, SIDE, episode_id=episode_id, step=step, **belongs))
        step += 1
        time.sleep(0.01)
    client.infer(observe(mark, CAMERAS, SIDE, episode_id=episode_id, step=step, **belongs))


def encoded(mark: int, kind: str = "PNG") -> str:
    file = io.BytesIO()
    Image.fromarray(np.full((SIDE, SIDE, 3), mark, np.uint8)).save(file, kind)
    return base64.urlsafe_b64encode(file.getvalue()).decode().rstrip("=")


def too_large() -> str:
    """An image of many pixels in a small file."""
    file = io.BytesIO()
    Image.new("1", (1200, 1200)).save(file, "PNG", optimize=True)
    return base64.urlsafe_b64encode(file.getvalue()).decode()


def look(server: ServerProcess, **asked: str) -> Any:
    return ask(server, f"/page/search.json?{urlencode(asked)}")


def test_robots_and_their_sessions(server: ServerProcess) -> None:
    assert {(r["robot"], r["sessions"]) for r in ask(server, "/page/robots.json")} == {("arm", 2), ("other", 1)}
    told = ask(server, "/page/robots/arm.json")
    assert [session["session"] for session in told["sessions"]] == ["tuesday", "monday"] and told["notes"] == []
    (episode,) = told["sessions"][1]["episodes"]
    assert episode["episode_id"] == "arm/1" and episode["instruction"] == "do it"
    keyframe = episode["keyframes"][0]
    assert keyframe["cameras"] == list(CAMERAS) and len(keyframe["images"]) == 2
    status, headers, body = fetch(server, keyframe["images"][1])
    assert status == 200 and headers["Content-Type"] == "image/png"
    assert (np.asarray(Image.open(io.BytesIO(body))) == 210).all()
    assert fetch(server, "/page/robots/nobody.json")[0] == 404


def test_what_was_recalled_is_told_live_and_kept_as_a_note(server: ServerProcess) -> None:
    live = ask(server, "/page/live/arm%2F2.json")["episode"]["recalled"]
    (match,) = live["matches"]
    assert match["admitted"] and match["episode_id"] == "arm/1" and match["text"] == 1.0
    assert match["similarity"] == pytest.approx((match["text"] + match["view"]) / 2, abs=1e-3)
    assert ask(server, "/page/live/arm%2F1.json")["episode"]["recalled"] is None  # there was nothing earlier
    (note,) = ask(server, "/page/past/arm%2F2.json")["notes"]
    assert note["author"] == "retrieval" and re.match(
        r"shown: monday/arm/1, \d+ s before; similarity 0\.", note["text"]
    )
    assert ask(server, "/page/past/arm%2F1.json")["notes"] == []
    assert ask(server, "/page/robots/arm.json")["sessions"][0]["notes"] == [note]


def test_search_by_words_and_by_robot(server: ServerProcess) -> None:
    assert {found["robot"] for found in look(server)["keyframes"]} == {"arm", "other"}
    assert {found["robot"] for found in look(server, robot="other")["keyframes"]} == {"other"}
    found = look(server, subtask="MARK 250", robot="arm")["keyframes"]
    assert found and {one["episode_id"] for one in found} == {"arm/2"}
    assert look(server, subtask="no such words")["keyframes"] == []


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_search_by_an_image(server: ServerProcess, kind: str) -> None:
    end = time.monotonic() + 60
    while len({one["episode_id"] for one in look(server, camera=CAMERAS[0], image=encoded(7))["keyframes"]}) < 3:
        assert time.monotonic() < end, "the server embeds no keyframes"
        time.sleep(0.2)
    for episode_id, _, mark in PLAYED:
        told = look(server, camera=CAMERAS[1], image=encoded(mark, kind))
        assert told["keyframes"][0]["episode_id"] == episode_id and told["cameras"] == list(CAMERAS)
        similar = [one["similarity"] for one in told["keyframes"]]
        assert similar == sorted(similar, reverse=True)
    assert {o["robot"] for o in look(server, camera=CAMERAS[0], image=encoded(210), robot="other")["keyframes"]} == {
        "other"
    }


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"camera": CAMERAS[0], "image": "AAAA"}, "image: expected a JPEG, PNG or WebP file as base64"),
        ({"camera": CAMERAS[0], "image": "é"}, "image: expected a JPEG, PNG or WebP file as base64"),
        ({"camera": CAMERAS[0], "image": too_large()}, "image: expected at most 1048576 pixels, got 1200 x 1200"),
        ({"camera": "nose", "image": encoded(3)}, "expected images of agentview_rgb or eye_in_hand_rgb, got nose"),
        ({"image": encoded(3)}, "expected images of agentview_rgb or eye_in_hand_rgb, got "),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(server: ServerProcess, asked: dict[str, str], told: str) -> None:
    status, _, body = fetch(server, f"/page/search.json?{urlencode(asked)}")
    assert status == 400 and body.decode().startswith(told)


def test_without_embeddings_words_can_be_searched_for_alone(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False}, state={"dir": str(tmp_path / "state")}) as server:
        told = look(server)
        assert told["cameras"] == [] and told["keyframes"] == [] and "state: {embed:" in told["why"]
        status, _, body = fetch(server, f"/page/search.json?{urlencode({'camera': 'cam_a', 'image': encoded(3)})}")
        assert status == 400 and b"the server makes no embeddings" in body


def test_a_server_without_a_store_has_nothing_to_search(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False}) as server:
        assert ask(server, "/page/robots.json") == []
        assert fetch(server, "/page/search.json")[0] == 404 == fetch(server, "/page/robots/arm.json")[0]


def test_a_tower_for_other_cameras_is_refused(tmp_path: Path) -> None:
    config = settings(small_config(state={"dir": str(tmp_path), "embed": "arena-planner"}))
    with pytest.raises(ValueError, match=r"embed: arena-planner looks at agentview_rgb, .* the robot has cam_a, cam_b"):
        Engine(config, small_models(planner=False))
    assert StateConfig().embed is None


def test_what_a_server_left_is_embedded_by_the_next_one(tmp_path: Path) -> None:
    from memory_bank.store import NewKeyframe, open_store
    from predimem.core.types import Frame

    store = open_store(str(tmp_path))
    key = store.begin("arm/1", "do it")
    images = {camera: np.full((SIDE, SIDE, 3), 9, np.uint8) for camera in CAMERAS}
    smaller = {camera: image[::2, ::2] for camera, image in images.items()}  # as of another camera, before
    frames = [Frame(step, step / 20, smaller if step == 3 else images) for step in range(20)]
    store.keep_frames(key, [NewKeyframe(frame) for frame in frames])
    robot = small_models(planner=False, cameras=CAMERAS, side=SIDE).robot
    embedding = BackgroundEmbedding(store, "arena-planner", None, robot)
    embedding.start()
    end = time.monotonic() + 60
    while len(store.without_embedding(embedding.tower.model)) > 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    embedding.close()
    kept, vectors = store.embeddings(embedding.tower.model)
    assert [keyframe.step for keyframe in kept] == [step for step in range(20) if step != 3]
    assert vectors.shape == (19, 1024)
    store.close()
