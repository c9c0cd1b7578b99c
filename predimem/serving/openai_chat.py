"""The chat-completions interface of OpenAI as plain data: what a request asks a planner, and the reply to it."""

from __future__ import annotations

import base64
import binascii
import io
import math
import time
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from planner.chat import Chat, ChatAnswer

MAX_IMAGES = 1024
MAX_PIXELS = 4096 * 4096  # of one image
MAX_NEW_TOKENS = 1024
ONLY = {"n": 1, "stream": False, "temperature": 0, "top_logprobs": 0}  # nothing else is answered


class ChatError(Exception):
    """A request that cannot be answered. status: of HTTP; the message says what was expected, and what came."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def read_chat(body: Any, model: str, max_new_tokens: int) -> Chat:
    """The question of a request's JSON. Raises ChatError.

    model: the name under which the planner is served. max_new_tokens: unless the request says so.
    """
    if not isinstance(body, dict):
        raise ChatError(400, f"expected a JSON object, got {type(body).__name__}")
    if body.get("model") != model:
        raise ChatError(404, f"the model {body.get('model')!r} is not served here; there is {model!r}")
    for name, value in ONLY.items():
        if body.get(name) not in (None, value):
            raise ChatError(400, f"{name}: answers are decoded greedily and sent whole: expected {value}")
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or max_new_tokens
    if type(limit) is not int or not 1 <= limit <= MAX_NEW_TOKENS:
        raise ChatError(400, f"max_tokens: expected 1 to {MAX_NEW_TOKENS}, got {limit!r}")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ChatError(400, "messages: expected a list with at least one message")
    images: list[np.ndarray] = []
    read = [_message(message, images) for message in messages]
    robot = body.get("user") or uuid.uuid4().hex
    return Chat(f"chat {robot}", read, images, limit, _schema(body.get("response_format")))


def completion(answer: ChatAnswer, model: str, logprobs: bool) -> dict[str, Any]:
    """The reply's JSON. logprobs: whether the request asked for probabilities."""
    message = {"role": "assistant", "content": answer.text}
    choice: dict[str, Any] = {"index": 0, "message": message, "logprobs": None}
    choice["finish_reason"] = "stop" if answer.finished else "length"
    if logprobs:
        pairs = zip(answer.pieces, answer.probabilities, strict=True)
        choice["logprobs"] = {"content": [_token(piece, probability) for piece, probability in pairs], "refusal": None}
    said = len(answer.pieces)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": said,
            "total_tokens": answer.prompt_tokens + said,
        },
    }


def error_reply(error: ChatError) -> dict[str, Any]:
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "code": error.status}}


def models_reply(model: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "predimem"}]}


def _message(message: Any, images: list[np.ndarray]) -> dict[str, Any]:
    """In the form of chat templates; its images are added to `images`."""
    if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
        raise ChatError(400, "messages: each has a role, one of system, user and assistant, and a content")
    content = message.get("content")
    if isinstance(content, str):
        return {"role": message["role"], "content": [{"type": "text", "text": content}]}
    if not isinstance(content, list):
        raise ChatError(400, f"content: expected a string or a list of parts, got {type(content).__name__}")
    return {"role": message["role"], "content": [_part(part, images) for part in content]}


def _part(part: Any, images: list[np.ndarray]) -> dict[str, str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind != "image_url" or not isinstance(part.get("image_url"), Mapping):
        raise ChatError(400, f"content: expected parts of the types text and image_url, got {kind!r}")
    if len(images) == MAX_IMAGES:
        raise ChatError(400, f"a prompt may have {MAX_IMAGES} images at most")
    images.append(_image(part["image_url"].get("url")))
    return {"type": "image"}


def _image(url: Any) -> np.ndarray:
    """RGB uint8 [H, W, 3] of a data URL. Nothing is ever fetched from elsewhere."""
    from PIL import Image, UnidentifiedImageError

    head, _, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        raise ChatError(400, "image_url: expected a data URL, data:image/png;base64,...")
    try:
        image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)), formats=("PNG", "JPEG", "WEBP"))
        if image.width * image.height > MAX_PIXELS:
            raise ChatError(400, f"an image may have {MAX_PIXELS} pixels at most, got {image.width} x {image.height}")
        pixels = np.array(image.convert("RGB"))
    except (
        binascii.Error, UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError
    ) as error:  # fmt: skip
        raise ChatError(400, f"an image cannot be read: {error}") from None
    pixels.flags.writeable = False
    return pixels


def _schema(response_format: Any) -> dict[str, Any] | None:
    if response_format is None or response_format == {"type": "text"}:
        return None
    try:
        if response_format["type"] == "json_schema":
            return dict(response_format["json_schema"]["schema"])
    except (KeyError, TypeError, ValueError):
        pass
    raise ChatError(400, "response_format: expected {type: json_schema, json_schema: {schema: ...}}")


def _token(piece: str, probability: float) -> dict[str, Any]:
    logprob = math.log(max(probability, 1e-45))
    return {"token": piece, "logprob": logprob, "bytes": list(piece.encode()), "top_logprobs": []}
