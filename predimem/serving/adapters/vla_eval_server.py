"""The server as a model server of vla-eval (allenai/vla-evaluation-harness, package `vla-eval`).

    python predimem/serving/adapters/vla_eval_server.py --port 8100 --args.port=8000

then point vla-eval's evaluation config at port 8100. Every observation of every episode goes to the server, under the
harness's own episode id and step, so one connection carries any number of shards, and an episode goes on where it was
when the connection or the server was lost.
"""

from __future__ import annotations

import functools
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from openpi_client.image_tools import resize_with_pad
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from vla_eval.model_servers.base import SessionContext
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.specs import IMAGE_RGB, LANGUAGE, RAW, DimSpec
from vla_eval.types import Action, Observation
from websockets.exceptions import WebSocketException

log = logging.getLogger(__name__)
FOR_NOW = ("busy", "overloaded", "deadline", "draining")  # refusals of requests that are welcome again later
NO_ENTRY = (401, 403, 404)  # what the server answers to clients that it will never let in
FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 2.0


class RemoteModelServer(PredictModelServer):
    """host, port, api_key: of the server. action_format: what the benchmark calls the actions, such as
    "delta_xyz_euler_gripper"; the harness warns where its own differ. patience_s: how long the server, or its planner,
    may be away before the episode ends as an error; the harness itself waits for `server.timeout` (30 s) at most."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        api_key: str | None = None,
        action_format: str = "raw",
        patience_s: float = 25.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._server = Server((host, port, api_key), patience_s)
        self._told = self._server.told
        self._action_format = action_format

    def get_action_spec(self) -> dict[str, DimSpec]:
        return {"actions": DimSpec("actions", self._told["action_dim"], self._action_format)}

    def get_observation_spec(self) -> dict[str, DimSpec]:
        return {**{name: IMAGE_RGB for name in self._told["cameras"]}, "state": RAW, "language": LANGUAGE}

    def get_observation_params(self) -> dict[str, Any]:
        """What benchmarks leave out unless they are asked."""
        return {"send_wrist_image": len(self._told["cameras"]) > 1, "send_state": True}

    def predict(self, obs: Observation, ctx: SessionContext) -> Action:
        """The action of this control step. The harness counts an error of this method among its `num_errors`."""
        state = obs.get("states", obs.get("state"))
        if state is None:
            raise ValueError(f"the server wants a state; the benchmark sends {', '.join(map(str, obs))}")
        message = self._images(obs["images"])
        message["state"] = np.asarray(state, np.float32).reshape(-1)
        message.update(prompt=obs["task_description"], episode_id=episode_id(ctx), step=ctx.step)
        if ctx.is_first:
            message["reset"] = True  # the harness repeats an episode that failed to run under the same id
        reply = self._server.infer(message)
        if ctx.is_first and reply.get("warning"):
            log.warning("the server warns: %s", reply["warning"])
        return {"actions": reply["actions"][0]}

    async def on_episode_end(self, result: dict[str, Any], ctx: SessionContext) -> None:
        """Tell the server how it ended, where it wants to know."""
        await super().on_episode_end(result, ctx)
        if ctx.step > 0 and "done" in self._told["optional_fields"]:
            message = {"done": True, "episode_id": episode_id(ctx)}
            success = result.get("metrics", {}).get("success")
            if success is not None:
                message["success"] = bool(success)
            await run_sync(functools.partial(self._tell, message))

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            self._server.infer(message)
        except (RuntimeError, TimeoutError) as refused:
            log.warning("the server was not told that the episode is over: %s", refused)

    def _images(self, images: dict[str, np.ndarray]) -> dict[str, Any]:
        """By name where the names are the same, else in order."""
        wanted, size = self._told["cameras"], self._told["image_size"]
        if len(images) < len(wanted):
            raise ValueError(f"the server wants the cameras {wanted}, the benchmark sends {list(images)}")
        found = [images[name] for name in wanted] if set(wanted) <= set(images) else list(images.values())
        return {
            name: resize_with_pad(np.ascontiguousarray(image, np.uint8), *size)
            for name, image in zip(wanted, found)  # noqa: B905 (vla-eval runs on Python 3.8 too)
        }


def episode_id(ctx: SessionContext) -> str:
    """The harness's names of its process and episode, in the letters that the server allows."""
    return re.sub(r"[^A-Za-z0-9._:/+-]", "-", f"vla-eval/{ctx.session_id}/{ctx.episode_id}")[:128]


class Server:
    """The server, whatever happens to the connection. Thread-safe. place: host, port, key. told: its metadata."""

    def __init__(self, place: tuple[str, int, str | None], patience_s: float) -> None:
        self._lock = threading.Lock()
        self._place, self._patience_s = place, patience_s
        self._client: Any = None
        self._planned_s = time.monotonic()  # when the planner was well for the last time
        self.told = self._patiently(lambda: self._connected().get_server_metadata())

    def infer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply; the same message is sent again after a lost connection, or if it was refused for now.

        Raises TimeoutError where patience ends, RuntimeError where the server refuses, or has lost the episode.
        """
        with self._lock:
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
            client = WebsocketClientPolicy(*self._place)
            told, before = client.get_server_metadata(), getattr(self, "told", None)
            if before is not None and told["weights"] != before["weights"]:
                raise RuntimeError(f"the server came back with other weights: {told['weights']}")
            self._client = client
        return self._client

    def _patiently(self, ask: Callable[[], Any]) -> Any:
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


if __name__ == "__main__":
    from vla_eval.model_servers.serve import run_server

    run_server(RemoteModelServer)
