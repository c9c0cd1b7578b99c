"""The example of a VLM behind an endpoint, against a server that really listens and really looks."""

from __future__ import annotations

import socket
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from predimem.agent.config import AgentConfig
from predimem.agent.own_planner import make_own_planner, memory_of
from predimem.core.interfaces import Planner
from predimem.core.types import Frame, MemorySnapshot
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import PlayConfig
from tests.examples.vlm_server import FENCED, pixels, vlm_server

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACE = f"{EXAMPLES}/vlm_planner.py:VlmPlanner"


def planner_at(url: str, **options: Any) -> Planner:
    return make_own_planner(PLACE, {"base_url": url, "model": "tiny", "cameras": ["render"], **options})


def snapshot(*colours: int) -> MemorySnapshot:
    """The first colour is a keyframe's, the others are the recent window's."""
    frames = [
        Frame(step, step / 10, MappingProxyType({"render": np.full((16, 16, 3), colour, np.uint8)}))
        for step, colour in enumerate(colours)
    ]
    return MemorySnapshot("e", len(frames) - 1, "Find the light.", tuple(frames[1:]), (frames[0],))


@pytest.mark.parametrize("style", ["{}", FENCED])
@pytest.mark.parametrize("keyframes", [True, False])
def test_it_plays_a_benchmark_over_http(style: str, keyframes: bool) -> None:
    with vlm_server(style) as (url, requests):
        options = {"base_url": url, "model": "tiny", "cameras": ["render"], "subtasks": ["wait", "go left", "go right"]}
        memory = {"recent_window": 1, "recent_stride_steps": 1, "keyframes": keyframes}
        agent = AgentConfig(planner=PLACE, planner_options=options, actor="skills", memory=memory)
        play = PlayConfig(benchmark=str(EXAMPLES / "remember_the_light.py"), agent_configs={"vlm": agent})
        player = BenchmarkPlayer(play)
        results = [player.play("RememberTheLight", "vlm", seed).status for seed in (900_000, 900_001, 900_002)]
        assert len(player.provenance()["agent_configs"]["vlm"]["weights"][PLACE]) == 16
        player.close()
    assert results == ["success" if keyframes else "failure"] * 3
    assert requests[0]["path"] == "/v1/chat/completions" and requests[0]["model"] == "tiny"
    assert "current_primitive is one of: wait; go left; go right." in requests[0]["messages"][0]["content"][-1]["text"]


def test_the_images_arrive_as_they_were_keyframes_first() -> None:
    with vlm_server() as (url, requests):
        plan = planner_at(url).plan(snapshot(0, 10, 20))
    assert (plan.subtask, plan.keyframe_steps, plan.error) == ("wait", (2,), None)
    parts = requests[0]["messages"][1]["content"]
    seen = [pixels(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"]
    assert [int(image[0, 0, 0]) for image in seen] == [0, 10, 20] and seen[0].shape == (16, 16, 3)


def test_an_answer_that_is_no_json_is_the_error_of_its_plan() -> None:
    with vlm_server("I would say: {}") as (url, _):
        plan = planner_at(url).plan(snapshot(0, 0))
    assert plan.subtask is None and plan.error is not None and plan.error.startswith("not JSON")


def test_an_endpoint_that_fails_is_named() -> None:
    with (
        vlm_server(delay_s=5) as (url, _),
        pytest.raises(TimeoutError, match=r"no answer within 0.2 s: raise timeout_s"),
    ):
        planner_at(url, timeout_s=0.2).plan(snapshot(0, 0))
    with (
        vlm_server(status=404) as (url, _),
        pytest.raises(ConnectionError, match=r"refused, status 404: .*no such model"),
    ):
        planner_at(url).plan(snapshot(0, 0))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ConnectionError, match=f"the model tiny at {url} cannot be reached"):
        planner_at(url).plan(snapshot(0, 0))


def test_its_memory_is_known_before_it_is_made() -> None:
    assert memory_of(PLACE, {}).recent_stride_steps == 10
