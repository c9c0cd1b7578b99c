"""The server as a model server of vla-eval (allenai/vla-evaluation-harness, package `vla-eval`).

    python predimem/serving/adapters/vla_eval_server.py --port 8100 --args.port=8000

then point vla-eval's evaluation config at port 8100. Every observation of every episode goes to the server, under the
harness's own episode id and step, so one connection carries any number of shards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from openpi_client.image_tools import resize_with_pad
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from vla_eval.model_servers.base import SessionContext
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.specs import IMAGE_RGB, LANGUAGE, RAW, DimSpec
from vla_eval.types import Action, Observation


class RemoteModelServer(PredictModelServer):
    """host, port, api_key: of the server. action_format: what the benchmark calls the actions, such as
    "delta_xyz_euler_gripper"; the harness warns where its own differ."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        api_key: str | None = None,
        action_format: str = "raw",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._client = WebsocketClientPolicy(host, port, api_key)
        self._told = self._client.get_server_metadata()
        self._action_format = action_format

    def get_action_spec(self) -> dict[str, DimSpec]:
        return {"actions": DimSpec("actions", self._told["action_dim"], self._action_format)}

    def get_observation_spec(self) -> dict[str, DimSpec]:
        return {**{name: IMAGE_RGB for name in self._told["cameras"]}, "state": RAW, "language": LANGUAGE}

    def get_observation_params(self) -> dict[str, Any]:
        """What benchmarks leave out unless they are asked."""
        return {"send_wrist_image": len(self._told["cameras"]) > 1, "send_state": True}

    def predict(self, obs: Observation, ctx: SessionContext) -> Action:
        """The action of this control step."""
        message = self._images(obs["images"])
        message["state"] = np.asarray(obs.get("states", obs.get("state")), np.float32).reshape(-1)
        message.update(prompt=obs["task_description"], episode_id=ctx.episode_id, step=ctx.step)
        return {"actions": self._client.infer(message)["actions"][0]}

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


if __name__ == "__main__":
    from vla_eval.model_servers.serve import run_server

    run_server(RemoteModelServer)
