"""The server as a policy of RoboMemArena's own evaluation scripts (github.com/OpenHelix-Team/RoboMemArena).

    python scripts/eval_tasks2_26.py --task-id 4 --adapter-spec <this file>:build_adapter \
        --adapter-kwargs '{"host": "127.0.0.1", "port": 8000}'

Both states of the scripts are served. Those of May 2026 hand over LIBERO's raw observation whenever they need actions.
Later ones show every control step to `observe`, with images and state made ready (`build_eval26_policy_input`).

The scripts take every exception for a failed episode and go on. So an error leaves this file as `Stopped`, which
ends the run.
"""

from __future__ import annotations

import functools
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    BasePolicyAdapter = object
else:
    try:
        from policy_adapter import BasePolicyAdapter  # of the evaluation scripts, on their path
    except ImportError:
        BasePolicyAdapter = object

log = logging.getLogger(__name__)
CAMERAS = ("observation/image", "observation/wrist_image")
STATE = "observation/state"
# LIBERO's names, with those that the scripts allow in their place
VIEW, WRIST_VIEW = ("agentview_image", "agentview_rgb"), ("robot0_eye_in_hand_image", "wrist_image")
POSITION, ROTATION = ("robot0_eef_pos", "eef_pos"), ("robot0_eef_quat", "eef_quat")
GRIPPER = ("robot0_gripper_qpos", "gripper_qpos")
FOR_NOW = ("busy", "overloaded", "deadline", "draining")  # refusals of requests that are welcome again later
NO_ENTRY = (401, 403, 404)  # what the server answers to clients that it will never let in
FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 2.0


class Stopped(SystemExit):
    """Ends the run, with the reason on stderr and exit status 1; no `Exception`, so that the scripts let it pass."""


def ends_the_run(method: Callable[..., Any]) -> Callable[..., Any]:
    """Raises Stopped in place of any exception."""

    @functools.wraps(method)
    def guarded(adapter: Any, *args: Any, **options: Any) -> Any:
        try:
            return method(adapter, *args, **options)
        except Exception as error:
            adapter.stopped = True
            log.exception("the run is stopped: this is an error, not a failure of the policy")
            raise Stopped(f"robomemarena_adapter: {type(error).__name__}: {error}") from error

    return guarded


class RemotePolicyAdapter(BasePolicyAdapter):
    """prompt: what the planner is told in place of the scripts' prompt; or a map from theirs to ours.
    rows: how many actions of a reply are replayed at most before the server is asked for more. It must not be above
    the scripts' `--replan-steps`, which cut off the rest unseen.
    cameras: names of images in the observation, in the order of the server's cameras. state: the name of its state.
    patience_s: how long the server, or its planner, may be away before the run ends.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        api_key: str | None = None,
        prompt: str | Mapping[str, str] | None = None,
        rows: int = 1,
        cameras: tuple[str, ...] = CAMERAS,
        state: str = STATE,
        patience_s: float = 120.0,
    ) -> None:
        self.stopped = False
        self._server = Server((host, port, api_key), patience_s)
        told = self._server.told
        if len(told["cameras"]) > len(cameras):
            raise ValueError(f"the server wants the cameras {told['cameras']}, these scripts have {list(cameras)}")
        if not 1 <= rows <= told["action_horizon"]:
            raise ValueError(f"rows: the server's replies have {told['action_horizon']}, so 1 to that many; got {rows}")
        self._names = dict(zip(told["cameras"], cameras))  # noqa: B905 (these scripts run on Python 3.8)
        self._size = tuple(told["image_size"])
        self._prompt, self._rows, self._state = prompt, rows, state
        self._awaited = False  # an episode has been announced, and nothing of it was seen yet
        self._begin()

    @ends_the_run
    def reset(self) -> None:
        """The next observation begins an episode."""
        self._end()
        self._begin()
        self._awaited = True

    @ends_the_run
    def observe(self, obs: dict[str, Any], prompt: str, resize_size: int) -> None:
        """One control step, in the later scripts."""
        self._observes = True
        self._ask(obs, prompt, executed=1)

    @ends_the_run
    def infer_actions(self, obs: dict[str, Any], prompt: str, resize_size: int) -> np.ndarray:
        """float32 [n, A], with n from 1 to `rows`: the actor's actions for this control step and those after it."""
        if not self._observes:
            self._ask(obs, prompt, self._given)
        assert self._reply is not None
        self._given = min(self._rows, max(1, self._reply["actions_valid"]))
        return self._reply["actions"][: self._given]

    @ends_the_run
    def close(self) -> None:
        if not self.stopped:
            self._end()
        self._server.leave()

    def _begin(self) -> None:
        self._episode_id = f"robomemarena-{uuid.uuid4().hex}"
        self._step = -1
        self._observes = False
        self._given = 1  # actions of the last reply that the scripts have
        self._reply: dict[str, Any] | None = None

    def _end(self) -> None:
        if self._awaited:
            raise RuntimeError(
                "the scripts ended an episode before they asked for an action, and would count it as failed; what went "
                "wrong stands above as 'Episode failed'. Scripts of May 2026 (9833a7d) choose an image by `a or b`, "
                "which NumPy refuses: choose by `is None` in eval_common.py and eval_tasks2_26.py"
            )
        if self._reply is not None and "done" in self._server.told["optional_fields"]:
            self._reply = None
            try:
                self._server.infer({"done": True, "episode_id": self._episode_id})
            except RuntimeError as refused:  # its figures are made by now
                log.warning("the server was not told that the episode is over: %s", refused)

    def _ask(self, obs: dict[str, Any], prompt: str, executed: int) -> None:
        """`step` tells the server when this was; `executed` says the same, counted from the last observation."""
        self._awaited = False
        executed = 0 if self._reply is None else executed
        step = 0 if self._reply is None else self._step + executed
        obs = obs if self._names_are_in(obs) else {**obs, **from_libero(obs)}
        message: dict[str, Any] = {name: resized(obs[theirs], self._size) for name, theirs in self._names.items()}
        message["state"] = np.asarray(obs[self._state], np.float32)
        message.update(prompt=self._words(prompt), episode_id=self._episode_id, step=step, executed=executed)
        reply = self._server.infer(message)
        if self._reply is None and reply.get("warning"):
            log.warning("the server warns: %s", reply["warning"])
        self._reply, self._step = reply, step

    def _names_are_in(self, obs: Mapping[str, Any]) -> bool:
        return all(name in obs for name in (*self._names.values(), self._state))

    def _words(self, prompt: str) -> str:
        if self._prompt is None or isinstance(self._prompt, str):
            return self._prompt or prompt
        if prompt not in self._prompt:
            raise ValueError(f"prompt: no words in place of {prompt!r}; there are some for {list(self._prompt)}")
        return self._prompt[prompt]


class Server:
    """The server, whatever happens to the connection. place: host, port, key. told: its metadata."""

    def __init__(self, place: tuple[str, int, str | None], patience_s: float) -> None:
        self._place, self._patience_s = place, patience_s
        self._client: Any = None
        self._planned_s = time.monotonic()  # when the planner was well for the last time
        self.told = self._patiently(lambda: self._connected().get_server_metadata())

    def infer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply; the same message is sent again after a lost connection, or if it was refused for now.

        Raises TimeoutError where patience ends, RuntimeError where the server refuses, or has lost the episode.
        """
        reply = self._patiently(lambda: self._connected().infer(message))
        if reply.get("memory_from_step", 0) > 0 and not reply["resumed"]:
            raise RuntimeError("the server has lost the memory of this episode: start it with --state-dir")
        now = time.monotonic()
        if reply.get("planner", "ok") == "ok":
            self._planned_s = now
        elif now - self._planned_s > self._patience_s:
            raise RuntimeError(f"the server's planner is away for {self._patience_s:g} s: {reply['planner']}")
        return reply

    def leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client._ws.close()

    def _connected(self) -> Any:
        if self._client is None:
            from openpi_client.websocket_client_policy import WebsocketClientPolicy

            client = WebsocketClientPolicy(*self._place)
            told, before = client.get_server_metadata(), getattr(self, "told", None)
            if before is not None and told["weights"] != before["weights"]:
                raise RuntimeError(f"the server came back with other weights: {told['weights']}")
            self._client = client
        return self._client

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        from websockets.exceptions import WebSocketException

        until, wait_s = time.monotonic() + self._patience_s, FIRST_WAIT_S
        while True:
            try:
                return ask()
            except (OSError, EOFError, WebSocketException) as lost:
                if getattr(getattr(lost, "response", None), "status_code", None) in NO_ENTRY:
                    raise RuntimeError(f"the server does not let us in: {lost}") from lost
                why, lasting = lost, False
            except RuntimeError as refused:
                code = str(refused).partition("\n")[2].partition(":")[0]
                if code not in FOR_NOW:
                    raise
                why, lasting = refused, code != "draining"
            if not lasting:
                self.leave()
            if time.monotonic() + wait_s > until:
                raise TimeoutError(f"no answer within {self._patience_s:g} s, at last: {why}") from why
            log.warning("asked again in %.2g s: %s", wait_s, why)
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def from_libero(obs: Mapping[str, Any]) -> dict[str, Any]:
    """What the later scripts make of LIBERO's raw observation: images the right way up, and the state, float32 [8].

    That is the end effector's position [3] in m, its rotation [3] as axis times angle in rad, and the gripper's two
    fingers in m. Raises KeyError where something is missing.
    """
    views = [np.flipud(_first(obs, names)) for names in (VIEW, WRIST_VIEW)]
    parts = [_first(obs, POSITION), axis_angle(_first(obs, ROTATION)), _first(obs, GRIPPER)]
    state = np.concatenate([np.asarray(part, np.float32).reshape(-1) for part in parts])
    return {**dict(zip(CAMERAS, views)), STATE: state}  # noqa: B905


def axis_angle(quaternion: np.ndarray) -> np.ndarray:
    """float64 [3], at most pi long, of a rotation as (x, y, z, w)."""
    x, y, z, w = np.asarray(quaternion, np.float64)
    sine, sign = np.sqrt(x * x + y * y + z * z), 1.0 if w >= 0 else -1.0
    scale = 2.0 * np.arctan2(sine, abs(w)) / sine if sine > 0 else 0.0
    return sign * scale * np.array([x, y, z])


def resized(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """uint8 [H, W, 3] -> uint8 [*size, 3], by area and without margins, as the scripts and their data do it."""
    from PIL import Image

    image = np.ascontiguousarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"expected an image of uint8 [H, W, 3], got {image.dtype} {list(image.shape)}")
    if image.shape[:2] == size:
        return image
    return np.asarray(Image.fromarray(image).resize((size[1], size[0]), Image.Resampling.BOX))


def _first(obs: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    found = next((obs[name] for name in names if obs.get(name) is not None), None)
    if found is None:
        raise KeyError(f"the observation has none of {', '.join(names)}; it has {', '.join(map(str, obs))}")
    return found


def build_adapter(**options: Any) -> RemotePolicyAdapter:
    """What `--adapter-spec` names; options are those of `--adapter-kwargs`."""
    return RemotePolicyAdapter(**options)
