"""RoboMemArena's evaluation scripts ask the server, in both of their states; their loops are restated in `libero`."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.serving.libero import LiberoWorld, libero_command, play_observed, play_raw, policy_input
from tests.serving.support import HORIZON, ROOT, ServerProcess, free_port, server_process

FILE = ROOT / "predimem/serving/adapters/robomemarena_adapter.py"
STATE = [0.1, 0.2, 0.3, 0.0, 0.0, 0.5, 0.04, -0.04]  # of `LiberoWorld`
# What the evaluation scripts define and check (evaluation_benchmark/scripts/policy_adapter.py).
POLICY_ADAPTER = """
from abc import ABC, abstractmethod

class BasePolicyAdapter(ABC):
    def reset(self): ...

    @abstractmethod
    def infer_actions(self, obs, prompt, resize_size): ...
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(libero_command(), tmp_path_factory.mktemp("serve") / "log") as made:
        made.wait_ready()
        yield made


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter's file as the scripts load it."""
    (tmp_path / "policy_adapter.py").write_text(POLICY_ADAPTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def steps_of(world: LiberoWorld) -> list[int]:
    """The control steps that the actions were for, as the server counts them. At the first one it has no actions yet,
    and holds the robot."""
    held, *steps = (int(row[0]) for row in world.acted)
    return [0 if held == -1 else held, *steps]


def sessions(server: ServerProcess) -> list[dict[str, Any]]:
    return json.loads(server.get("/status.json")[1])["sessions"]


def mine(server: ServerProcess, adapter: Any) -> dict[str, Any]:
    return next(s for s in sessions(server) if s["episode_id"] == adapter._episode_id)


@pytest.mark.parametrize("rows", [1, 3])
def test_raw_observations(server: ServerProcess, module: ModuleType, rows: int) -> None:
    adapter = module.build_adapter(port=server.port, rows=rows)
    assert isinstance(adapter, sys.modules["policy_adapter"].BasePolicyAdapter)
    for _ in range(2):  # episodes
        adapter.reset()
        world = LiberoWorld()
        assert play_raw(adapter, world, "pick butter", steps=20) == 100
        assert steps_of(world) == list(range(20))
        told = np.array(world.acted[1:])
        assert (told[:, 2] <= told[:, 0]).all() and (told[:, 2] > told[:, 0] - HORIZON).all()
        assert (told[:, 1] == 100 + told[:, 2]).all() and (told[:, 3] == 200).all()  # the right way up
        np.testing.assert_allclose(told[:, 4:], np.tile(STATE, (19, 1)), atol=1e-6)
    adapter.close()


@pytest.mark.parametrize("rows", [1, 4])
def test_observed_steps(server: ServerProcess, module: ModuleType, rows: int) -> None:
    adapter = module.build_adapter(port=server.port, rows=rows)
    for _ in range(2):
        adapter.reset()
        world = LiberoWorld()
        assert play_observed(adapter, world, "pick butter", steps=21) == 100
        assert steps_of(world) == list(range(21))
        assert mine(server, adapter)["reply"]["step"] == 20  # the memory saw every step, whatever was replayed
        np.testing.assert_allclose([row[4:] for row in world.acted[1:]], np.tile(STATE, (20, 1)), atol=1e-6)
    last = adapter._episode_id
    adapter.close()  # the server is told that the last episode is over, as it was of the one before
    assert last not in {session["episode_id"] for session in sessions(server)}


def test_executed_is_sent(server: ServerProcess, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = module.build_adapter(port=server.port, rows=2)
    sent: list[tuple[int, int]] = []
    infer = adapter._server.infer

    def heard(message: dict[str, Any]) -> dict[str, Any]:
        if "done" not in message:
            sent.append((message["step"], message["executed"]))
        return infer(message)

    monkeypatch.setattr(adapter._server, "infer", heard)
    adapter.reset()
    play_raw(adapter, LiberoWorld(), "pick butter", steps=7)
    steps, executed = zip(*sent, strict=True)
    assert executed == (0, *np.diff(steps)) and set(executed[2:]) == {2}  # the first action was one that holds
    adapter.reset()
    sent.clear()
    play_observed(adapter, LiberoWorld(), "pick butter", steps=4)
    assert sent == [(0, 0), (1, 1), (2, 1), (3, 1)]


def test_prompts(server: ServerProcess, module: ModuleType) -> None:
    given = {"pick butter": "Pick the butter.", "pick milk": "Pick the milk."}
    for prompt, heard in ((None, "pick butter"), ("Do it.", "Do it."), (given, "Pick the butter.")):
        adapter = module.build_adapter(port=server.port, prompt=prompt)
        adapter.reset()
        play_raw(adapter, LiberoWorld(), "pick butter", steps=2)
        assert mine(server, adapter)["instruction"] == heard
    adapter.reset()
    with pytest.raises(SystemExit, match="no words in place of 'pick cookies'"):
        play_raw(adapter, LiberoWorld(), "pick cookies", steps=2)


@pytest.mark.parametrize("options, wrong", [({"cameras": ("image",)}, "the cameras"), ({"rows": 0}, "rows"),
                                            ({"rows": 5}, "rows: the server's replies have 4")])  # fmt: skip
def test_wrong_options(server: ServerProcess, module: ModuleType, options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        module.build_adapter(port=server.port, **options)


class FaultyWorld(LiberoWorld):
    """Its observations lack the gripper."""

    def observe(self) -> dict[str, Any]:
        obs = super().observe()
        del obs["robot0_gripper_qpos"]
        return obs


def test_an_error_is_no_failed_episode(server: ServerProcess, module: ModuleType, capsys: Any) -> None:
    """The loops catch every exception and go on to the score; the adapter's errors pass them."""
    adapter = module.build_adapter(port=server.port)
    adapter.reset()
    with pytest.raises(SystemExit, match="robot0_gripper_qpos"):
        play_raw(adapter, FaultyWorld(), "pick butter", steps=3)
    adapter.close()  # in the scripts' `finally`: nothing hides the reason
    adapter = module.build_adapter(port=server.port)
    adapter.reset()
    with pytest.raises(SystemExit, match="prompt"):  # refused by the server
        play_observed(adapter, LiberoWorld(), "pick <butter>", steps=3)
    assert "Episode failed" not in capsys.readouterr().out


def test_an_episode_that_never_began(server: ServerProcess, module: ModuleType, capsys: Any) -> None:
    """The scripts of May 2026 as they were published score 0 % for every policy; the run ends instead."""
    for finish in ("reset", "close"):
        adapter = module.build_adapter(port=server.port)
        adapter.reset()
        assert play_raw(adapter, LiberoWorld(), "pick butter", steps=3, as_published=True) == 0
        assert "Episode failed: The truth value of an array" in capsys.readouterr().out
        with pytest.raises(SystemExit, match="before they asked for an action"):
            getattr(adapter, finish)()


def play_beside(adapter: Any, world: LiberoWorld, steps: int) -> threading.Thread:
    """Play in a thread, about 50 steps a second."""
    step = world.step

    def slow(action: Any) -> Any:
        time.sleep(0.02)
        return step(action)

    world.step = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=play_observed, args=(adapter, world, "pick butter", steps), daemon=True)
    thread.start()
    return thread


def wait_for(steps: int, world: LiberoWorld) -> None:
    until = time.monotonic() + 60
    while len(world.acted) < steps:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_the_server_is_restarted(module: ModuleType, tmp_path: Path, end: signal.Signals) -> None:
    port = free_port()
    command = libero_command(tmp_path / "state", port=port)
    with server_process(command, tmp_path / "log-0") as first:
        first.wait_ready()
        adapter = module.build_adapter(port=port)
        adapter.reset()
        world = LiberoWorld()
        playing = play_beside(adapter, world, steps=150)
        wait_for(30, world)
        first.process.send_signal(end)
        first.process.wait(30)
    before = len(world.acted)
    assert before < 150
    with server_process(command, tmp_path / "log-1") as second:
        playing.join(90)
        assert not playing.is_alive() and steps_of(world) == list(range(150))
        reply = mine(second, adapter)["reply"]
        assert reply["step"] == 149 and reply["resumed"]
        adapter.close()


def test_a_server_that_forgot_the_episode(module: ModuleType, tmp_path: Path) -> None:
    """Without --state-dir a restarted server knows nothing, and would go on without a memory."""
    port = free_port()
    with server_process(libero_command(port=port), tmp_path / "log-0") as first:
        first.wait_ready()
        adapter = module.build_adapter(port=port)
        adapter.reset()
        world = LiberoWorld()
        assert play_observed(adapter, world, "pick butter", steps=5) == 100
        first.kill()
    with (
        server_process(libero_command(port=port), tmp_path / "log-1"),
        pytest.raises(SystemExit, match="lost the memory of this episode"),
    ):
        adapter.observe(policy_input(world.observe()), "pick butter", 256)


def test_an_actor_that_is_late_once(module: ModuleType, tmp_path: Path) -> None:
    """The step whose reply missed its deadline is asked again, and no step is missing."""
    with server_process(libero_command(slow_at=8, limits={"deadline_s": 0.4}), tmp_path / "log") as server:
        server.wait_ready()
        adapter = module.build_adapter(port=server.port)
        adapter.reset()
        world = LiberoWorld()
        assert play_raw(adapter, world, "pick butter", steps=20) == 100
        assert steps_of(world) == list(range(20))
        assert server.metric('predimem_rejected_total{code="deadline"}') >= 1


def test_refused_for_now(module: ModuleType, tmp_path: Path) -> None:
    """All sessions are in use until one is left; the adapter asks again at the same step."""
    limits = {"sessions": 1, "spare_s": 0.2}
    with server_process(libero_command(limits=limits | {"deadline_s": 30.0}), tmp_path / "log") as server:
        server.wait_ready()
        first, second = (module.build_adapter(port=server.port) for _ in range(2))
        first.reset()
        play_observed(first, LiberoWorld(), "pick butter", steps=1)
        leave = threading.Timer(1.0, first._server.leave)
        leave.start()
        second.reset()
        world = LiberoWorld()
        assert play_observed(second, world, "pick butter", steps=3) == 100
        assert steps_of(world) == [0, 1, 2]
        assert server.metric('predimem_rejected_total{code="overloaded"}') >= 2
        third = module.build_adapter(port=server.port, patience_s=0.5)
        third.reset()
        with pytest.raises(SystemExit, match=r"no answer within 0.5 s, at last: (.|\n)*overloaded"):
            play_observed(third, LiberoWorld(), "pick butter", steps=3)


def test_resizing_is_by_area(module: ModuleType) -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    image[:2, :3], image[2:, 3:] = 100, 200
    small = module.resized(image, (2, 2))
    assert small[..., 0].tolist() == [[100, 0], [0, 200]]
    assert module.resized(image[::-1], (4, 6)).flags.c_contiguous
    with pytest.raises(ValueError, match="float64"):
        module.resized(image / 255, (2, 2))


def test_rotations_are_those_of_scipy(module: ModuleType) -> None:
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(0)
    for quaternion in (*rng.normal(size=(50, 4)), (0, 0, 0, 1), (0, 0, 0, -1), (1, 0, 0, 0)):
        rotation = Rotation.from_quat(quaternion)
        unit = np.asarray(quaternion) / np.linalg.norm(quaternion)
        np.testing.assert_allclose(module.axis_angle(unit), rotation.as_rotvec(), atol=1e-7)
