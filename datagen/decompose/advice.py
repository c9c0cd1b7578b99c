"""What to do when an endpoint cannot be reached or refuses a request: one sentence for each kind of fault."""

from __future__ import annotations

import re
from collections.abc import Sequence

INSTEAD = "choose another endpoint, or leave it out to decompose by rules"


def unreachable(cause: str) -> str:
    """cause: what the network said."""
    if "SSL" in cause or "TLS" in cause:
        return f"Does the server speak http rather than https, or has it a certificate of its own? Or {INSTEAD}"
    if re.search(r"name or service|name resolution|nodename|getaddrinfo", cause, re.IGNORECASE):
        return f"Check the name of the host and the network; {INSTEAD}"
    if re.search(r"disconnected|reset|closed|incomplete", cause, re.IGNORECASE):
        return f"The server closed the connection: its log says why. Is it a server of the OpenAI API? Or {INSTEAD}"
    return (
        "Start a server there, for example `vllm serve Qwen/Qwen3-VL-4B-Instruct --port 8000`, and give its address, "
        f"http://localhost:8000/v1; {INSTEAD}"
    )


def no_model_answered(url: str) -> str:
    """A reply that is no chat completion: something else listens at the address."""
    return _with_v1(url) or f"Is {url} the address of an OpenAI-compatible API? It usually ends in /v1; or {INSTEAD}"


def refused(
    status: int, url: str, model: str, has_key: bool, retry_after: str, served: Sequence[str], said: str
) -> str:
    """retry_after: the header of that name; served: the models that the endpoint lists; said: its own message."""
    if status in (401, 403):
        if not has_key:
            return "It asks for a key: set OPENAI_API_KEY (or api_key in a data config)"
        may = " may not use this model" if status == 403 else " is not the endpoint's"
        return f"The key that was sent{may}: check OPENAI_API_KEY (or api_key in a data config)"
    if status == 404 and served:
        return f"It serves {', '.join(served)}: give one of these as the model"
    if status in (404, 405):
        return _with_v1(url) or f"Check the address and the name of the model, {model!r}"
    if status == 429:
        if "quota" in said or "billing" in said or "credit" in said:
            return "The account has no credit left, so waiting does not help: add some, or choose another endpoint"
        wait = f"in {retry_after} s" if retry_after.isdigit() else f"after {retry_after}" if retry_after else "later"
        return f"It has had too many requests: run the same command again {wait}, with fewer workers"
    if status in (502, 503, 504):
        wait = f"in {retry_after} s" if retry_after.isdigit() else "in a minute"
        return f"The server is not ready or overloaded; it may still be loading the model: try again {wait}"
    if status >= 500:
        return (
            "The fault is inside the server, and its log says which: often too little memory, or a model without images"
        )
    return f"Check the name of the model, {model!r}, that it takes images, and that they fit into its context"


def _with_v1(url: str) -> str:
    """A sentence with the address that is probably meant; "" where it has a version already."""
    if re.search(r"/v\d+\w*(?:/|$)", url):
        return ""
    return f"The address has no /v1: did you mean {url.rstrip('/')}/v1?"
