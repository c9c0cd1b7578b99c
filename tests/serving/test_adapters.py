"""The server inside other projects' evaluation code."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import numpy as np
import pytest

from tests.serving.support import ROOT, SIDE, ServerProcess, small_server

ADAPTERS = ROOT / "predimem/serving/adapters"
# What RoboMemArena's evaluation scripts define and check (evaluation_benchmark/scripts/policy_adapter.py).
POLICY_ADAPTER = """
from abc import ABC, abstractmethod

class BasePolicyAdapter(ABC):
    def reset(self): ...

    @abstractmethod
    def infer_actions(self, obs, prompt, resize_size): ...
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Without a planner: the actor acts from the second observation on, at the latest."""
    with small_server(tmp_path_factory.mktemp("serve"), {"planner": False}) as made:
        yield made


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arena_observation(mark: int) -> dict[str, Any]:
    """As `build_eval26_policy_input` makes it, flipped: a view with a negative stride; larger than the model's."""
    image = np.full((2 * SIDE, 2 * SIDE, 3), mark, np.uint8)[::-1]
    return {"observation/image": image, "observation/wrist_image": image, "observation/state": np.zeros(3)}


def test_robomemarena(server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy_adapter.py").write_text(POLICY_ADAPTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = load(ADAPTERS / "robomemarena_adapter.py")
    adapter = module.build_adapter(host="127.0.0.1", port=server.port)
    assert isinstance(adapter, sys.modules["policy_adapter"].BasePolicyAdapter)
    for _ in range(2):  # episodes
        adapter.reset()
        acted = []
        for step in range(40):
            adapter.observe(arena_observation(step), "do it", SIDE)
            chunk = adapter.infer_actions(arena_observation(step), "do it", SIDE)
            assert chunk.shape == (1, 2) and chunk.dtype == np.float32
            acted.append(chunk[0].tolist())
        assert acted[-1][0] == 39 and 36 <= acted[-1][1] <= 39  # of a chunk that is at most four steps old
    adapter.reset()  # scripts that do not show each step
    chunks = [adapter.infer_actions(arena_observation(9), "do it", SIDE) for _ in range(10)]
    assert chunks[-1].tolist() == [[36 + k, 9] for k in range(4)]
    adapter.close()
    with pytest.raises(ValueError, match="the server wants the cameras"):
        module.build_adapter(port=server.port, cameras=("observation/image",))


@pytest.mark.needs("vla_eval")
def test_vla_eval(server: ServerProcess) -> None:
    """vla-eval's own server and client, ours in between: two episodes over one connection."""
    from vla_eval.connection import Connection
    from vla_eval.model_servers.serve import serve_async

    module = load(ADAPTERS / "vla_eval_server.py")
    model_server = module.RemoteModelServer(port=server.port)
    assert model_server.get_action_spec()["actions"].dims == 2
    assert model_server.get_observation_params() == {"send_wrist_image": True, "send_state": True}

    async def play() -> list[list[list[float]]]:
        episodes = []
        async with anyio.create_task_group() as group:
            from functools import partial

            port = await group.start(partial(serve_async, model_server, "127.0.0.1", 0))
            async with Connection(f"ws://127.0.0.1:{port}") as connection:
                for _ in range(2):
                    await connection.start_episode({"task": {"name": "any"}})
                    acted = []
                    for step in range(30):
                        image = np.full((SIDE, SIDE, 3), step, np.uint8)
                        images = {"cam_b": np.zeros_like(image), "cam_a": image}
                        observation = {"images": images, "task_description": "do it", "states": np.zeros(3)}
                        acted.append(np.asarray((await connection.act(observation))["actions"]).tolist())
                    await connection.end_episode({"success": False})
                    episodes.append(acted)
            group.cancel_scope.cancel()
        return episodes

    for acted in anyio.run(play):
        assert acted[-1][0] == 29 and 26 <= acted[-1][1] <= 29
