"""What an endpoint replies: the model's text in it, and what kind of page or error it is where there is none."""

from __future__ import annotations

import html
import json
import re
from typing import Any, NamedTuple

SHOWN_CHARACTERS = 200


class ReplyError(ValueError):
    """A reply with status 200 that holds no answer of a model; the message says what it holds instead."""


class Reply(NamedTuple):
    """A model's answer.

    text: what it said; "" if it said nothing.
    cut: whether it was stopped by the limit of tokens.
    tokens: how many tokens it wrote, None if the endpoint does not tell.
    """

    text: str
    cut: bool
    tokens: int | None


def read_reply(body: str) -> Reply:
    """The answer in the body of a chat completion. Raises ReplyError."""
    try:
        reply = json.loads(body)
    except ValueError:
        raise ReplyError(f"not JSON but {shortened(body) or 'nothing'}") from None
    if isinstance(reply, dict) and reply.get("error"):  # some proxies send errors with status 200
        raise ReplyError(f"an error: {error_text(reply)}")
    choice = _first(reply.get("choices")) if isinstance(reply, dict) else None
    message = choice.get("message") if choice else None
    if not choice or not isinstance(message, dict):
        raise ReplyError(f"JSON without `choices` that hold a message: {shortened(body)}")
    usage = reply.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    text = _text(message.get("content")) or str(message.get("refusal") or "")
    return Reply(text, choice.get("finish_reason") == "length", tokens if isinstance(tokens, int) else None)


def error_text(body: Any) -> str:
    """What the body of an error says, in one short line."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or json.dumps(error)
    return shortened(str(error or ""))


def is_page(body: str) -> bool:
    """Whether a body is a web page."""
    return re.match(r"\s*(?:<!doctype html|<html|<head|<body)", body, re.IGNORECASE) is not None


def shortened(body: str) -> str:
    """The body in one line: the title of a web page, the beginning of anything else."""
    if is_page(body):
        title = re.search(r"<title[^>]*>(.*?)</title>", body, re.IGNORECASE | re.DOTALL)
        return f"a web page ({' '.join(html.unescape(title[1]).split())!r})" if title else "a web page"
    line = " ".join(body.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]} ..."


def _first(choices: Any) -> dict[str, Any] | None:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _text(content: Any) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
