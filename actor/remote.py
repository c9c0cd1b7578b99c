"""S1 on another machine: any server of openpi's protocol, as a `Policy` under our planner.

The messages are packed by openpi-client. Its `WebsocketClientPolicy` waits without end for a server that is away and
for an answer that does not come, so that the connection is ours: every wait has an end, a lost connection is made
anew, with pauses that double, and what cannot be mended is an error that says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from actor.transforms import ResizeWithPad
from predimem.core.faults import SetupError
from predimem.core.types import ActionChunk, Observation, ObservationError

OURS = "predimem"  # what our own server calls itself


class RemotePolicyError(SetupError, ConnectionError):
    """A remote S1 that gives no actions; says which server, what happened, and how to mend it."""


class RemotePolicyAway(RemotePolicyError):
    """One that may come back."""


@dataclass(frozen=True)
class RemoteConfig:
    """How a server is asked. Each server of openpi has its own names, which its policy's `...Inputs` class shows.

    cameras: camera -> its name in the message, such as `observation/image`; with a dot (`images.cam_high`) it is an
        entry of a nested map. Empty: every camera is called `observation/<camera>`.
    state: name in the message -> which numbers of the state it has; an empty list stands for all of them.
    prompt: the name of the subtask.
    image_size: images are resized to squares of this size, with padding, before they are sent; null: sent as they are.
    channels_first: whether the server expects images as [3, H, W], as ALOHA's do.
    camera_shape, state_dim, action_dim: the robot, for `predimem serve`, which has to tell its clients. With
        `action_dim` an answer of another width is an error.
    connect_s, reply_s: how long a connection, and an answer, may take.
    patience_s: how long an observation is asked again when the server is away. A `predimem serve` has none: it refuses
        what it cannot answer, and asks again when the next observation comes.
    pause_s, max_pause_s: the pause after the first failure, and the longest one; each is twice the one before.
    api_key_file: a file with the key that the server asks for.
    """

    cameras: dict[str, str] = field(default_factory=dict)
    state: dict[str, tuple[int, ...]] = field(default_factory=lambda: {"observation/state": ()})
    prompt: str = "prompt"
    image_size: int | None = 224
    channels_first: bool = False
    camera_shape: tuple[int, ...] | None = None
    state_dim: int | None = None
    action_dim: int | None = None
    connect_s: float = 5.0
    reply_s: float = 5.0
    patience_s: float = 30.0
    pause_s: float = 0.5
    max_pause_s: float = 8.0
    api_key_file: str | None = None

    def __post_init__(self) -> None:
        for name in ("connect_s", "reply_s", "pause_s", "max_pause_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"actor_options: {name} has to be positive, got {getattr(self, name)}")
        if self.patience_s < 0:
            raise ValueError(f"actor_options: patience_s must not be negative, got {self.patience_s}")


class RemotePolicy:
    """Implements `Policy`. Not thread-safe. The connection is made with the first observation.

    Raises ValueError where the file with the key is not there.
    """

    def __init__(
        self,
        url: str,
        config: RemoteConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        from openpi_client import msgpack_numpy

        self.url = url
        self.config = config or RemoteConfig()
        self._wire = msgpack_numpy
        self._headers = _headers(self.config.api_key_file)
        self._clock, self._sleep = clock, sleep
        self._resize = None if self.config.image_size is None else ResizeWithPad(self.config.image_size, True)
        self._connection: Any = None
        self._pause_s = self.config.pause_s
        self._not_before_s: float | None = None  # the server was away: it is not asked again until then
        self.metadata: Mapping[str, Any] = {}

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """float32 [H, A] as the server gives them.

        Raises RemotePolicyError where it gives none within `patience_s`, and ObservationError for an observation
        without a camera or a number that the config names.
        """
        message: Any = self._wire.packb(self._message(observation, subtask))
        until_s = self._clock() + self.config.patience_s
        while True:
            try:
                return ActionChunk(observation.step, self._actions(self._ask(message)), subtask)
            except RemotePolicyError as error:
                self._wait_or_raise(error, until_s)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _wait_or_raise(self, error: RemotePolicyError, until_s: float) -> None:
        if self._not_before_s is None or self._not_before_s > until_s:
            raise error
        self._sleep(max(0.0, self._not_before_s - self._clock()))

    def _ask(self, message: bytes) -> Any:
        """The server's answer. Raises RemotePolicyError; `_not_before_s` is None where asking again is of no use."""
        from websockets.exceptions import WebSocketException

        if self._not_before_s is not None and self._clock() < self._not_before_s:
            left_s = self._not_before_s - self._clock()
            raise RemotePolicyAway(f"the S1 server {self.url} is away; it is asked again in {left_s:.1f} s")
        try:
            connection = self._connection or self._connect()
            connection.send(message)
            answer = connection.recv(timeout=self.config.reply_s)
        except TimeoutError as error:
            self._failed()
            raise RemotePolicyAway(
                f"the S1 server {self.url} did not answer within connect_s {self.config.connect_s} and reply_s "
                f"{self.config.reply_s}: is it still loading, or too slow for these?"
            ) from error
        except RemotePolicyError:  # of `_connect`: another kind of server, which waiting does not change
            self.close()
            self._not_before_s = None
            raise
        except (OSError, WebSocketException) as error:
            self._failed()
            raise RemotePolicyAway(
                f"the S1 server {self.url} cannot be reached ({type(error).__name__}: {error}): is it running, and is "
                "that its address?"
            ) from error
        self._pause_s, self._not_before_s = self.config.pause_s, None
        if isinstance(answer, str):
            self.close()
            last = answer.strip().splitlines()[-1] if answer.strip() else "an empty message"
            raise RemotePolicyError(
                f"the S1 server {self.url} refused the observation: {last}; compare the names and shapes of "
                "actor_options with its policy's inputs"
            )
        return self._unpack(answer)

    def _connect(self) -> Any:
        from websockets.sync.client import connect

        connection = self._connection = connect(
            self.url,
            compression=None,
            max_size=None,
            additional_headers=self._headers,
            open_timeout=self.config.connect_s,
            close_timeout=1.0,
        )
        told = self._unpack(connection.recv(timeout=self.config.connect_s))
        self.metadata = told if isinstance(told, dict) else {}
        if self.metadata.get("server") == OURS:
            self.close()
            raise RemotePolicyError(
                f"{self.url} is a predimem server, which has a planner of its own; let the robot ask it directly, or "
                "name a server of openpi"
            )
        return connection

    def _failed(self) -> None:
        """The connection is of no use any more; the next one is tried after a pause."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._not_before_s = self._clock() + self._pause_s
        self._pause_s = min(2 * self._pause_s, self.config.max_pause_s)

    def _unpack(self, data: str | bytes) -> Any:
        try:
            return self._wire.unpackb(data)
        except Exception as error:  # whatever msgpack meets in what is none
            self.close()
            raise RemotePolicyError(f"{self.url} does not speak openpi's protocol: {error!r}") from error

    def _actions(self, answer: Any) -> np.ndarray:
        actions = answer.get("actions") if isinstance(answer, dict) else None
        wanted = f"[H, {self.config.action_dim or 'A'}]"
        if not isinstance(actions, np.ndarray) or actions.ndim != 2 or not len(actions):
            found = f"shape {list(actions.shape)}" if isinstance(actions, np.ndarray) else type(actions).__name__
            raise RemotePolicyError(f"the S1 server {self.url} should give `actions` {wanted}, it gave {found}")
        if self.config.action_dim not in (None, actions.shape[1]):
            raise RemotePolicyError(
                f"the S1 server {self.url} should give `actions` {wanted}, it gave shape {list(actions.shape)}: it "
                "controls another robot"
            )
        if not np.isfinite(actions).all():
            raise RemotePolicyError(f"the S1 server {self.url} gave actions that are not finite numbers")
        return actions.astype(np.float32)

    def _message(self, observation: Observation, subtask: str) -> dict[str, Any]:
        message: dict[str, Any] = {self.config.prompt: subtask}
        cameras = self.config.cameras or {name: f"observation/{name}" for name in observation.images}
        for camera, key in cameras.items():
            if camera not in observation.images:
                raise ObservationError(
                    f"actor_options name the camera {camera!r}, the observation has {list(observation.images)}"
                )
            image = observation.images[camera]
            image = image if self._resize is None else self._resize(image)
            _put(message, key, np.ascontiguousarray(image.transpose(2, 0, 1)) if self.config.channels_first else image)
        for key, entries in self.config.state.items():
            if any(not 0 <= entry < len(observation.state) for entry in entries):
                raise ObservationError(
                    f"actor_options: {key} has the entries {list(entries)}, the state {len(observation.state)} numbers"
                )
            _put(message, key, observation.state[list(entries)] if entries else observation.state)
        return message


def _headers(api_key_file: str | None) -> dict[str, str]:
    if api_key_file is None:
        return {}
    path = Path(api_key_file).expanduser()
    if not path.is_file():
        raise ValueError(f"actor_options: api_key_file: there is no file {path}")
    return {"Authorization": f"Api-Key {path.read_text().strip()}"}


def _put(message: dict[str, Any], key: str, value: np.ndarray) -> None:
    outer, _, inner = key.partition(".")
    if inner:
        message.setdefault(outer, {})[inner] = value
    else:
        message[key] = value
