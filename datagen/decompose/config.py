"""Which vision-language model decomposes instructions, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class VlmConfig:
    """Which model is asked, and how.

    model: the name under which the endpoint serves the model.
    base_url: the address of the endpoint; None leaves it to the client, which reads OPENAI_BASE_URL.
    api_key: the key for the endpoint; None leaves it to the client, which reads OPENAI_API_KEY.
    corrections: how many times a faulty answer is sent back to be corrected.
    timeout_s: how long each answer may take, from the first byte of the request to the last of the reply.
    temperature: the sampling temperature; None leaves it to the server.
    max_tokens: how long an answer may be, thoughts included; None leaves it to the server.
    exchanges: the folder in which conversations without a usable answer are saved.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None
    corrections: int = 3
    timeout_s: float = 120.0
    temperature: float | None = None
    max_tokens: int | None = None
    exchanges: str = "runs/decompose"

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model is empty: give the name under which the endpoint serves the model")
        if self.corrections < 0 or not 0 < self.timeout_s < float("inf"):
            raise ValueError(
                f"expected corrections >= 0 and a timeout of more than 0 s, got {self.corrections} and {self.timeout_s}"
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"expected max_tokens >= 1, got {self.max_tokens}")
        if self.base_url is not None:
            _check_address(self.base_url)


def _check_address(url: str) -> None:
    """Raises ValueError for an address that no client can use, with the one that is probably meant."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number
        usable = False
    if not usable:
        raise ValueError(f"expected an endpoint's address such as http://localhost:8000/v1, got {url!r}")
    path = url.rstrip("/")
    if path.endswith("/chat/completions"):
        raise ValueError(
            f"the client adds /chat/completions by itself: give {path.removesuffix('/chat/completions')!r}, not {url!r}"
        )
