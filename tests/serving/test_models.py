"""The shipped weights behind the protocol: the same actions as in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from memory_bank import MemoryBank
from predimem.agent.clock import SimulatedClock
from predimem.agent.dual_system import DualSystemAgent, DualSystemConfig
from predimem.agent.worker import PlannerWorker
from predimem.core.config import ConfigError, read_yaml, to_dict
from predimem.core.types import Observation, Tick
from predimem.envs.mikasa.suite import hold_action
from predimem.serving.config import ModelsConfig, ServeConfig
from predimem.serving.models import make_served
from predimem.serving.planner_server import PlannerServerConfig
from tests.serving.support import ROOT, server_process

PROMPT = "Observe the cube's color, wait, then touch the cube of the same color."
STEPS = 14
CAMERAS = ("base_camera", "hand_camera")


def observations() -> Iterator[Observation]:
    """A red square for three steps, nothing for two, then squares of three colours."""
    rng = np.random.default_rng(0)
    for step in range(STEPS):
        image = rng.integers(90, 110, (128, 128, 3), np.uint8)
        if step < 3:
            image[50:70, 50:70] = (255, 0, 0)
        elif step >= 5:
            for k, colour in enumerate(((0, 0, 255), (255, 0, 0), (255, 255, 0))):
                image[60:72, 20 + 35 * k : 32 + 35 * k] = colour
        state = np.array([0.1, 0.02 * step, 0.2, 3.1, 0, 0, 0.04], np.float32)
        yield Observation(step, {name: image for name in CAMERAS}, state, step / 20)


def play_in_process() -> list[tuple[np.ndarray, Tick]]:
    served = make_served(ModelsConfig())
    assert served.make_planner is not None
    clock = SimulatedClock(1, 2)
    worker = PlannerWorker(served.make_planner(), clock)
    agent = DualSystemAgent(MemoryBank(served.memory), worker, served.policy, clock, hold_action, DualSystemConfig())
    agent.reset(PROMPT, "here")
    played = []
    for observation in observations():
        action = agent.act(observation)
        assert agent.last_tick is not None
        played.append((action, agent.last_tick))
    agent.close()
    return played


def test_a_session_gives_the_actions_of_the_agent_in_one_process(tmp_path: Path) -> None:
    """Simulated time: the same observations give the same bits, over the wire or not."""
    config = tmp_path / "serve.yaml"
    overrides: dict[str, Any] = {"port": 0, "time": {"mode": "simulated"}, "limits": {"deadline_s": 120}}
    config.write_text(json.dumps(overrides))
    command = ["-m", "predimem.cli", "serve", "--config", str(config), "--state-dir", str(tmp_path / "state")]
    with server_process(command, tmp_path / "serve.log") as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)  # waits until the models are warm
        assert client.get_server_metadata()["cameras"] == list(CAMERAS)
        replies = [
            client.infer({**o.images, "state": o.state, "prompt": PROMPT, "episode_id": "there", "step": o.step})
            for o in observations()
        ]
    for reply, (action, tick) in zip(replies, play_in_process(), strict=True):
        np.testing.assert_array_equal(reply["actions"][0], action)
        assert reply["subtask"] == tick.subtask and reply["plan_age_steps"] == tick.plan_age_steps
        assert reply["keyframe_steps"] == list(tick.keyframe_steps)
    assert replies[-1]["actions_valid"] == 4 and replies[-1]["subtask"]


def test_a_batch_of_observations_is_as_good_as_one_by_one() -> None:
    policy: Any = make_served(ModelsConfig()).policy
    seen = list(observations())[::4]
    subtasks = ["touch the red cube", "wait", "watch", "touch the blue cube"][: len(seen)]
    together = policy.infer_batch(seen, subtasks)
    for observation, subtask, chunk in zip(seen, subtasks, together, strict=True):
        alone = policy.infer(observation, subtask)
        assert (chunk.start_step, chunk.subtask) == (alone.start_step, subtask)
        np.testing.assert_allclose(chunk.actions, alone.actions, atol=1e-5)


@pytest.mark.parametrize("change", [{"planner": "none"}, {"actor": "none"}, {"weights": "nowhere"}])
def test_weights_that_are_not_there(change: dict[str, str]) -> None:
    with pytest.raises(FileNotFoundError, match="no weights"):
        make_served(ModelsConfig(**change))


def test_the_shipped_config_is_the_default() -> None:
    from predimem.serving.command import serve_config

    assert serve_config(ROOT / "configs/serve.yaml", {}) == serve_config(None, {})


def test_sections_that_are_no_mappings_are_told(tmp_path: Path) -> None:
    from predimem.serving.command import serve_config

    path = tmp_path / "serve.yaml"
    path.write_text("time:\nmodels:\n")
    with pytest.raises(ConfigError, match="models: expected a mapping for ModelsConfig, got NoneType"):
        serve_config(path, {})
    path.write_text("state:\n")
    assert serve_config(path, {"state.dir": "here"}).state.dir == "here"
    for text in ("time: simulated", "state: here"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="expected a mapping, got"):
            serve_config(path, {"state.dir": "there"})
    path.write_text("- port: 1")
    with pytest.raises(ConfigError, match="expected a mapping, got a list"):
        serve_config(path, {})


def test_the_shipped_configs_have_every_setting() -> None:
    planner_server = to_dict(PlannerServerConfig("planner", port=8100))
    del planner_server["folder"]
    assert read_yaml(ROOT / "configs/serve.yaml") == to_dict(ServeConfig())
    assert read_yaml(ROOT / "configs/serve_planner.yaml") == planner_server


@pytest.mark.slow
def test_the_arena_is_served_with_the_settings_of_its_evaluation(tmp_path: Path) -> None:
    """The shipped config and weights, on a kept episode of the arena: plans come, and of the arena's own labels."""
    import yaml

    from predimem.envs.arena.vocabulary import instructions, labels
    from predimem.serving.command import serve_config

    config = serve_config(ROOT / "configs/serve_arena.yaml", {})
    play = yaml.safe_load((ROOT / "configs/eval/arena_corrected.yaml").read_text())["play"]
    assert {name: getattr(config.agent, name) for name in play["agent"]} == play["agent"]
    command = ["-m", "predimem.cli", "serve", "--config", "configs/serve_arena.yaml", "--port", "0"]
    with server_process(command, tmp_path / "serve.log") as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        told = client.get_server_metadata()
        assert set(told["tasks"]) == set(instructions()) and told["example_prompt"] in told["tasks"]
        image = np.full((*told["image_size"], 3), 120, np.uint8)
        observation = {name: image for name in told["cameras"]} | {"state": np.zeros(told["state_dim"], np.float32)}
        reply, step = {"subtask": ""}, 1
        while not reply["subtask"]:
            reply = client.infer(observation | {"prompt": told["example_prompt"], "episode_id": "a", "step": step})
            assert step < 4000
            step += 4
        assert reply["subtask"] in labels() and reply["warning"] is None and reply["actions"].shape == (4, 7)


SESSIONS = "memory_bank.retrieval:SessionMemory"


def test_earlier_sessions_that_the_planner_would_not_see_are_refused() -> None:
    memory = {"implementation": SESSIONS, "options": {"select": "uncapped"}}
    with pytest.raises(ConfigError, match=r"no section for them: set memory: options: \{shown_as: keyframes\}"):
        make_served(ModelsConfig(memory=memory))
    assert make_served(ModelsConfig(memory=memory, prompt={"past_sessions": True})).memory.implementation == SESSIONS


def test_what_a_memory_needs_is_loaded_when_the_server_starts() -> None:
    options = {"embedder": "planner.tower_embedding:tower", "embedder_options": {"weights": "no-such-planner"}}
    with pytest.raises(FileNotFoundError, match="no-such-planner"):
        make_served(ModelsConfig(memory={"implementation": SESSIONS, "options": options | {"shown_as": "keyframes"}}))
