"""The server as a policy of RoboMemArena's own evaluation scripts (github.com/OpenHelix-Team/RoboMemArena).

    python scripts/eval_tasks2_26.py --task-id 4 --adapter-spec <this file>:build_adapter \
        --adapter-kwargs '{"host": "127.0.0.1", "port": 8000}'

The scripts show every control step's observation to `observe`, so the memory sees all of them, and then ask
`infer_actions` for as many actions as it likes to give: one, the action of this very step. Older scripts do not call
`observe`; they get the rows of a reply, and the memory one image for each.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    BasePolicyAdapter = object
else:
    try:
        from policy_adapter import BasePolicyAdapter  # of the evaluation scripts, on their path
    except ImportError:
        BasePolicyAdapter = object

CAMERAS = ("observation/image", "observation/wrist_image")
STATE = "observation/state"


class RemotePolicyAdapter(BasePolicyAdapter):
    """cameras: the scripts' names of the images, in the order of the server's cameras. state: theirs of the state."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        api_key: str | None = None,
        cameras: tuple[str, ...] = CAMERAS,
        state: str = STATE,
    ) -> None:
        from openpi_client.websocket_client_policy import WebsocketClientPolicy

        self._client = WebsocketClientPolicy(host, port, api_key)
        told = self._client.get_server_metadata()
        if len(told["cameras"]) > len(cameras):
            raise ValueError(f"the server wants the cameras {told['cameras']}, these scripts have {list(cameras)}")
        self._names = dict(zip(told["cameras"], cameras))  # noqa: B905 (these scripts run on Python 3.8)
        self._size = tuple(told["image_size"])
        self._state = state
        self.reset()

    def reset(self) -> None:
        """The next observation begins an episode."""
        self._episode_id = f"robomemarena-{uuid.uuid4().hex}"
        self._step = -1
        self._reply: dict[str, Any] | None = None

    def observe(self, obs: dict[str, Any], prompt: str, resize_size: int) -> None:
        """One control step."""
        self._step += 1
        self._reply = self._ask(obs, prompt, {"step": self._step})

    def infer_actions(self, obs: dict[str, Any], prompt: str, resize_size: int) -> np.ndarray:
        """float32 [1, A] where the scripts observe each step, else the rows of a reply."""
        if self._reply is not None:
            return self._reply["actions"][:1]
        return self._ask(obs, prompt, {})["actions"]

    def close(self) -> None:
        self._client._ws.close()

    def _ask(self, obs: dict[str, Any], prompt: str, fields: dict[str, Any]) -> dict[str, Any]:
        from openpi_client.image_tools import resize_with_pad

        images = {
            ours: resize_with_pad(np.ascontiguousarray(obs[theirs]), *self._size)
            for ours, theirs in self._names.items()
        }
        state = np.asarray(obs[self._state], np.float32)
        return self._client.infer(
            {**images, **fields, "state": state, "prompt": prompt, "episode_id": self._episode_id}
        )


def build_adapter(**options: Any) -> RemotePolicyAdapter:
    """What `--adapter-spec` names; options are those of `--adapter-kwargs`."""
    return RemotePolicyAdapter(**options)
