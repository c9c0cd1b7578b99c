"""The page in a real browser: Chromium, a real server, and openpi's client as the robot.

Left out where there is no Chromium; Debian's is `apt-get install chromium`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from PIL import Image
from playwright.sync_api import sync_playwright

from tests.needs import find_browser
from tests.serving.support import ROOT, observe, server_process, small_server

pytestmark = pytest.mark.needs("browser")
PATIENCE_MS = 120_000  # browsers are slow on machines that are busy
KEY = "a key of sixteen+ characters"
CAMERAS = ("base_camera", "hand_camera")
TOWER_CAMERAS = ("agentview_rgb", "eye_in_hand_rgb")  # of the shipped tower that embeds keyframes


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_browser(), args=sandbox, timeout=PATIENCE_MS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh visitor. Errors of the scripts, of the content policy too, fail the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    made, errors = context.new_page(), []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None)
    yield made
    context.close()
    assert not errors


def recorded() -> tuple[str, list[dict[str, Any]]]:
    """The task and the observations of one episode of RememberColor5: images as JPEG files, and the state."""
    with np.load(ROOT / "tests/golden/remember_color.npz") as data:
        files = {camera: np.split(data[camera], np.cumsum(data[f"{camera}_sizes"])[:-1]) for camera in CAMERAS}
        states = data["state"]
        rows = [{c: files[c][i].tobytes() for c in CAMERAS} | {"state": s} for i, s in enumerate(states)]
        return str(data["prompt"]), rows


def words(page: Any, selector: str) -> str:
    return page.locator(selector).first.inner_text()


def wait(page: Any, done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_MS / 1000
    while not done():
        assert time.monotonic() < end, f"{what}: {page.locator('main').inner_text()}"
        page.wait_for_timeout(50)


def ask_until(
    client: WebsocketClientPolicy, done: Callable[[dict[str, Any]], bool], **observation: Any
) -> dict[str, Any]:
    """Steps of one observation until the reply is as wanted."""
    end, step = time.monotonic() + PATIENCE_MS / 1000, observation.pop("step")
    while not done(reply := client.infer({**observation, "step": step})):
        assert time.monotonic() < end, reply
        step += 1
        time.sleep(0.02)
    return reply


def loaded(page: Any, selector: str) -> bool:
    """Whether all images under it are there."""
    script = "found => found.length > 0 && found.every(image => image.complete && image.naturalWidth > 0)"
    return page.eval_on_selector_all(f"{selector} img", script)


@pytest.mark.slow
def test_the_shipped_system_from_its_first_image_to_its_last(page: Any, tmp_path: Path) -> None:
    """A recorded episode: the cube is shown, hidden, and one among five; the page follows, and can go back."""
    prompt, rows = recorded()
    config = tmp_path / "serve.yaml"
    config.write_text('{"port": 0, "limits": {"deadline_s": 120}, "state": {"image_every_steps": 4}}')
    command = ["-m", "predimem.cli", "serve", "--config", str(config), "--state-dir", str(tmp_path / "state")]
    with server_process(command, tmp_path / "serve.log") as server:
        page.goto(f"http://127.0.0.1:{server.port}/")
        wait(page, lambda: "Waiting for a robot" in words(page, "main"), "an empty page")
        client = WebsocketClientPolicy("127.0.0.1", server.port)  # waits until the models are warm
        wanted = {"prompt": prompt, "episode_id": "arm-1/42"}

        reply = ask_until(client, lambda reply: bool(reply["subtask"]), **wanted, **rows[0], step=0)
        wait(page, lambda: words(page, "#live a b") == prompt, "the session in the list")
        wait(page, lambda: words(page, ".subtask") == reply["subtask"] == "watch", "the first subtask")
        wait(page, lambda: loaded(page, ".cameras"), "the cameras' images")
        wait(page, lambda: page.locator(".strip li").count() == 1, "the frame of the cube in the bank")
        assert words(page, "#state") == "serving"

        seen = {"watch"}
        for row in rows[1:]:
            reply = client.infer({**wanted, **row, "step": reply["step"] + 1})
            time.sleep(0.05)
            seen.add(reply["subtask"])
        touching = "touch the blue cube"
        reply = ask_until(
            client, lambda reply: reply["subtask"] == touching, **wanted, **rows[-1], step=reply["step"] + 1
        )
        wait(page, lambda: words(page, ".subtask") == touching, "the last subtask")
        wait(page, lambda: page.locator(".timeline .span").count() >= len(seen), "the subtasks along the time")
        assert page.locator(".strip li").count() == len(reply["keyframe_steps"]) and loaded(page, ".strip")
        assert " %" in words(page, ".confidence b")
        page.locator(".strip button").first.click()
        wait(page, lambda: loaded(page, "#large"), "the keyframe, large")
        page.get_by_role("button", name="Close").click()

    with server_process(command, tmp_path / "again.log") as server:  # the session is over
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.locator("#past a").click()
        wait(page, lambda: words(page, ".subtask") == touching, "the end of the kept episode")
        wait(page, lambda: loaded(page, ".cameras"), "its last image")
        last = page.locator(".cameras img").first.get_attribute("src")
        slider = page.get_by_role("slider")
        slider.evaluate("(slider) => { slider.value = '0'; slider.dispatchEvent(new Event('input')); }")
        wait(page, lambda: words(page, ".subtask") == "watch", "its beginning")
        wait(page, lambda: page.locator(".cameras img").first.get_attribute("src") != last, "its first image")
        page.get_by_role("button", name="Play or pause").click()
        wait(page, lambda: words(page, ".subtask") == touching, "played to its end")
        page.locator("h1").click()
        page.keyboard.press("ArrowLeft")
        wait(page, lambda: int(slider.input_value()) < int(slider.get_attribute("max")), "one image back")


@pytest.mark.slow
def test_a_key_is_asked_for_and_a_wrong_one_refused(page: Any, tmp_path: Path) -> None:
    file, asked = tmp_path / "key", []
    file.write_text(KEY)
    page.on("request", lambda request: asked.append(request.url))
    with small_server(tmp_path, access={"api_key_file": str(file)}) as server:
        WebsocketClientPolicy("127.0.0.1", server.port, api_key=KEY).infer(observe(210, episode_id="robot"))
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.locator("#key").fill("another key of sixteen")
        page.get_by_role("button", name="Open").click()
        wait(page, lambda: "That is not the key" in words(page, "#login-error"), "the refusal")
        assert page.locator("#live a").count() == 0
        page.locator("#key").fill(KEY)
        page.keyboard.press("Enter")
        wait(page, lambda: page.locator("#live a").count() == 1 and loaded(page, ".cameras"), "the session")
        page.reload()
        wait(page, lambda: page.locator("#live a").count() == 1, "the session after a reload")
        assert not page.locator("#login").is_visible()
        assert "key" not in "".join(asked).replace("keyframe", "")


def test_what_a_robot_sends_is_text(page: Any, tmp_path: Path) -> None:
    """Prompts cannot hold angle brackets; what else could be markup or an address stays as it is."""
    odd = "&lt;b&gt;bold&lt;/b&gt; javascript:alert(1) \"quoted' ${1+1}"
    with small_server(tmp_path) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        client.infer(observe(7, prompt=odd, episode_id="a/../b//c+d", step=0))
        page.goto(f"http://127.0.0.1:{server.port}/")
        wait(page, lambda: words(page, "h1") == odd and words(page, "#live code") == "a/../b//c+d", "the words as sent")
        wait(page, lambda: loaded(page, ".cameras"), "the cameras' images")


@pytest.mark.slow
def test_an_unknown_task_is_shown_and_an_episode_that_ended_is_past(page: Any, tmp_path: Path) -> None:
    state = {"dir": str(tmp_path / "state")}
    with small_server(tmp_path, {"tasks": ["do it"]}, state=state) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        page.goto(f"http://127.0.0.1:{server.port}/")
        client.infer(observe(7, prompt="fold the towel", episode_id="robot", step=0))
        wait(page, lambda: page.locator(".warning").count() == 1, "the episode")
        wait(page, lambda: "was not trained on this task" in words(page, ".warning"), "the warning")
        client.infer(observe(7, episode_id="other", step=0))
        page.locator("#live a", has_text="do it").click()
        wait(page, lambda: words(page, "h1") == "do it" and words(page, ".warning") == "", "no warning")
        client.infer({"done": True, "success": True, "episode_id": "other"})
        client.infer({"done": True, "success": False, "episode_id": "robot"})
        wait(page, lambda: page.locator("#live a").count() == 0, "nobody plays")
        wait(page, lambda: words(page, ".badge") == "success", "the past episode in place of the live one")
        wait(page, lambda: page.locator("#past a", has_text="failure").count() == 1, "how the other one ended")
        page.locator("#past a", has_text="failure").click()
        wait(page, lambda: words(page, ".badge") == "failure", "its outcome")
        assert "was not trained on this task" in words(page, ".warning")


def test_a_server_that_goes_away_and_an_episode_that_begins_anew(page: Any, tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        wanted = {**observe(210), "episode_id": "robot"}
        ask_until(client, lambda reply: len(reply["keyframe_steps"]) > 0, **wanted, step=0)
        page.goto(f"http://127.0.0.1:{server.port}/")
        wait(page, lambda: page.locator(".strip li").count() > 0, "the keyframe")
        client.infer({**observe(7), "episode_id": "robot", "reset": True, "prompt": "do another"})
        wait(page, lambda: words(page, "h1") == "do another", "the new task")
        wait(page, lambda: page.locator(".strip li").count() == 0, "an empty bank")
        server.kill()
        wait(page, lambda: words(page, "#state") == "no connection", "what the matter is")


def play_slowly(client: WebsocketClientPolicy, episode_id: str, steps: range, hz: float = 8.0) -> None:
    """Frames 6 to 10 are nominated, and that of step 16 cannot be planned."""
    for step in steps:
        mark = 101 if step == 16 else 210 if 6 <= step <= 10 else 7
        state = np.array([step, step / 2, -1], np.float32)
        client.infer(observe(mark, episode_id=episode_id, step=step) | {"state": state})
        time.sleep(1 / hz)


def lines(page: Any, card: str) -> int:
    return page.locator(f"{card} polyline.series").count()


def test_a_live_episode_tells_its_times_answers_plots_and_why_a_keyframe_moved(page: Any, tmp_path: Path) -> None:
    state = {"dir": str(tmp_path / "state"), "image_every_steps": 5}
    with small_server(tmp_path, state=state) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        client.infer(observe(7, episode_id="other", step=0))
        play_slowly(client, "arm", range(24))
        page.goto(f"http://127.0.0.1:{server.port}/#/live/arm")
        wait(page, lambda: page.locator(".sub .began").count() == 1, "the episode")
        wait(
            page,
            lambda: re.fullmatch(r"began \d+ \w+, \d\d:\d\d:\d\d", words(page, ".sub .began")) is not None,
            "its start",
        )
        assert re.search(r"step 23 · 1\.15 s · \d\d:\d\d:\d\d", words(page, ".place"))
        assert page.title().startswith("live since ") and "do it" in page.title()
        assert page.locator("#live .began").count() == 2
        wait(
            page, lambda: page.locator("#live .began").first.inner_text().startswith("began "), "the starts in the list"
        )
        wait(
            page,
            lambda: "the planner raised RuntimeError" in words(page, ".answers tr.failed .raw"),
            "what S2 failed on",
        )
        assert page.locator(".answers tbody tr").count() > 5 and "{}" in words(page, ".answers tbody")
        wait(page, lambda: lines(page, ".motion") == 5, "three lines of the state, two of the actions")
        wait(page, lambda: lines(page, ".speed") == 3, "the rate, and how long S1 and S2 take")
        wait(page, lambda: words(page, ".motion .key b") == "23.00", "the newest state")
        page.locator(".motion .key").first.click()
        assert lines(page, ".motion") == 3
        assert page.locator(".timeline .wall").count() > 0 and page.locator(".timeline .failed").count() == 1
        assert "It moved: " in words(page, ".why-rows") and "nominations" in words(page, ".why-rows")
        assert page.locator(".dots circle.median").count() > 0 and "moved from" in words(page, ".strip .moved")
        play_slowly(client, "arm", range(24, 40))
        wait(page, lambda: "below its 20 Hz" in words(page, ".slow"), "that it is slow")
        wait(page, lambda: page.locator("#live .trouble").count() == 1, "that it is slow, in the list")


@pytest.mark.slow
def test_a_past_episode_opens_at_the_step_of_a_link_and_is_downloaded(page: Any, tmp_path: Path) -> None:
    state = {"dir": str(tmp_path / "state"), "image_every_steps": 5}
    with small_server(tmp_path, state=state) as server:
        client, address = WebsocketClientPolicy("127.0.0.1", server.port), f"http://127.0.0.1:{server.port}/"
        play_slowly(client, "arm/1", range(24), hz=12)
        client.infer({"done": True, "success": True, "episode_id": "arm/1"})
        page.goto(f"{address}#/past/arm%2F1/12")
        wait(page, lambda: page.get_by_role("slider").count() == 1, "the episode")
        slider = page.get_by_role("slider")
        assert slider.input_value() == "12" and words(page, ".place").startswith("step 12 of 23 · 0.60 s · ")
        assert page.title().startswith("success · ") and page.title().endswith(" · do it · PrediMem")
        wait(page, lambda: re.search(r"· success$", words(page, "#past .began")) is not None, "the outcome in the list")
        wait(page, lambda: lines(page, ".motion") == 5 and lines(page, ".speed") == 3, "the plots")
        assert words(page, ".motion .key b") == "12.00" and "below its 20 Hz for" in words(page, ".slow")
        assert words(page, ".answers tr.current td") == "12"
        slider.evaluate("(slider) => { slider.value = '16'; slider.dispatchEvent(new Event('input')); }")
        assert words(page, ".motion .key b") == "16.00" and "RuntimeError" in words(page, ".answers tr.current .raw")
        wait(page, lambda: page.url == f"{address}#/past/arm%2F1/16", "the step in the address")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy link to this step").click()
        wait(page, lambda: page.get_by_role("button", name="Link copied").count() == 1, "the link")
        assert page.evaluate("navigator.clipboard.readText()") == f"{address}#/past/arm%2F1/16"
        page.goto(f"{address}#/past/arm%2F1/8")  # another link to the same episode
        wait(page, lambda: slider.input_value() == "8" and words(page, ".motion .key b") == "8.00", "its step")
        with page.expect_download() as download:
            page.get_by_role("button", name="Download .rrd").click()
        assert download.value.suggested_filename == "arm_1.rrd"
        assert Path(download.value.path()).read_bytes()[:4] == b"RRF2"


@pytest.mark.slow
def test_what_is_not_kept_is_said(page: Any, tmp_path: Path) -> None:
    with small_server(tmp_path, {"own_memory": "tests.memory_bank.own_memories:Sound"}) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        client.infer(observe(7, episode_id="arm", step=0))
        page.goto(f"http://127.0.0.1:{server.port}/")
        wait(page, lambda: "without --state-dir" in words(page, ".actions"), "why there is no link")
        assert "The memory is Sound" in words(page, ".why")
    state = {"dir": str(tmp_path / "state"), "trajectory": False}
    with small_server(tmp_path, state=state) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        ask_until(client, lambda reply: bool(reply["subtask"]), **observe(7, episode_id="arm"), step=0)
        page.goto(f"http://127.0.0.1:{server.port}/#/past/arm")
        wait(page, lambda: "No state and no actions" in words(page, ".motion"), "why there are no plots")


@pytest.mark.slow
def test_memory_is_searched_by_image_and_a_robot_shows_its_sessions(page: Any, tmp_path: Path) -> None:
    models = {"cameras": TOWER_CAMERAS, "side": 128, "own_memory": "tests.serving.support:gated_sessions"}
    state = {"dir": str(tmp_path / "state"), "embed": "arena-planner", "image_every_steps": 1000}
    with small_server(tmp_path, models, state=state) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        for episode, mark in (("arm/1", 210), ("arm/2", 250)):
            show: Any = {"episode_id": episode, **observe(mark, TOWER_CAMERAS, 128)}
            reply = ask_until(client, lambda reply, mark=mark: f"mark {mark}" in reply["subtask"], **show, step=0)
            client.infer({**show, "step": reply["step"] + 1})

        page.goto(f"http://127.0.0.1:{server.port}/#/live/arm%2F2")
        wait(page, lambda: page.locator(".recalled tbody tr").count() == 1, "the earlier session that is shown")
        assert "The planner sees one: similarity" in words(page, ".recalled > p")
        assert "arm/1/arm/1" in words(page, ".recalled tbody tr")

        page.locator("#search").click()
        labels = page.locator(".results .label")
        wait(page, lambda: "mark 210" in labels.all_inner_texts(), "all keyframes, the oldest among them")
        wait(page, lambda: loaded(page, ".results"), "their images")
        page.get_by_label("Words of a subtask").fill("after")
        wait(page, lambda: set(labels.all_inner_texts()) == {"mark 250 after 210"}, "those with these words")
        page.get_by_label("Words of a subtask").fill("")
        picture = tmp_path / "picture.png"
        Image.fromarray(np.full((400, 300, 3), 210, np.uint8)).save(picture)
        attach, similar = page.get_by_label("An image"), page.locator(".results .found", has_text="similarity")

        def found() -> bool:  # keyframes are embedded some seconds after they were kept
            attach.set_input_files(picture)
            page.wait_for_timeout(500)
            return "mark 250 after 210" in labels.all_inner_texts() and similar.count() > 1

        wait(page, found, "what looks like the image")
        wait(page, lambda: page.locator(".drop img").evaluate("image => image.naturalWidth > 0"), "the image itself")
        assert words(page, ".results .label") == "mark 210"
        attach.set_input_files(tmp_path / "serve-0.log")
        wait(page, lambda: "no image that this browser can read" in words(page, "[role=status].quiet"), "a reason")

        page.locator("#robots a").click()
        wait(page, lambda: page.locator("article.robot section").count() == 2, "the sessions")
        wait(page, lambda: loaded(page, "article.robot"), "their keyframes")
        assert "retrieval shown: arm/1/arm/1" in " ".join(words(page, ".notes").split())
        page.locator("article.robot .found").first.click()
        wait(page, lambda: page.locator("h1").inner_text() == "do it", "the episode")
        assert "shown: arm/1/arm/1" in words(page, ".notes")
