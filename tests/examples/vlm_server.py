"""A small OpenAI-compatible server that looks at the images it is sent: it plans for examples/remember_the_light.py."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image

FENCED = "<think>Where was the light?</think>\n```json\n{}\n```"


@contextmanager
def vlm_server(
    style: str = "{}", status: int = 200, delay_s: float = 0.0
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(its base URL, the requests that it got). style: what stands around its JSON."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({"path": self.path, **request})
            time.sleep(delay_s)
            message = {"role": "assistant", "content": style.replace("{}", json.dumps(answer(request)))}
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
            body |= {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            data = json.dumps(body if status == 200 else {"error": {"message": "no such model"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with suppress(BrokenPipeError):  # of a client that has stopped waiting
                self.wfile.write(data)

        def log_message(self, format: str, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Where the light is in the images of the request, oldest first; the newest one is the last."""
    parts = [part for message in request["messages"] for part in message["content"]]
    images = [pixels(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"]
    lit = [image for image in images if image[:8].any()]
    if not lit or images[-1][:8].any():
        nominated = [request_window(parts)] if lit else []
        return {"current_primitive": "wait", "keyframe_positions": nominated}
    left = lit[0][:8, : lit[0].shape[1] // 2].any()
    return {"current_primitive": "go left" if left else "go right", "keyframe_positions": []}


def request_window(parts: list[dict[str, Any]]) -> int:
    """How many timesteps the recent window has: the position of the newest one."""
    text = "".join(part.get("text", "<image>") for part in parts)
    return text.rpartition("Recent window")[2].count("<image>")


def pixels(url: str) -> np.ndarray:
    head, _, data = url.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
