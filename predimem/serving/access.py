"""Who may connect: keys, origins and TLS."""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from predimem.serving.config import AccessConfig, ServeConfig, is_loopback

SCHEME = "api-key"  # openpi-client sends `Authorization: Api-Key <key>`
MIN_KEY = 16
ANY_ADDRESS = "0.0.0.0"  # openpi-client's default host, which reaches this machine


class Access:
    """The rules of one server. Raises ValueError for a key that is missing or too short to keep anybody out."""

    def __init__(self, config: ServeConfig):
        self._key = None if config.access.api_key_file is None else read_key(config.access.api_key_file)

    def refusal(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """(HTTP status, sentence) for a request that may not come in; None for one that may.

        Web pages can reach any server of this machine through their visitor's browser. A browser says which page
        asks (Origin) and under which name (Host), so pages of others are kept out, with or without a key.
        """
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if origin is not None and _place(origin) != host:
            return 403, "pages of other servers may not connect"
        if self._key is None and not (is_loopback(_name(host)) or _name(host) == ANY_ADDRESS):
            return 403, "without a key this server answers to localhost alone"
        if self._key is not None and not self._knows(headers.get("Authorization", "")):
            return 401, "a key is needed: Authorization: Api-Key ..."
        return None

    def _knows(self, authorization: str) -> bool:
        """In constant time. `Basic` is for browsers: any user name, the key as the password."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != SCHEME:
            return False
        assert self._key is not None
        return hmac.compare_digest(given.strip().encode(errors="replace"), self._key)


def tls_context(config: AccessConfig) -> ssl.SSLContext | None:
    """Raises ValueError for files that cannot be used."""
    if config.tls_certificate is None or config.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_certificate, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"access: the TLS certificate or its key cannot be read: {error}") from error
    return context


def read_key(path: str) -> bytes:
    try:
        key = Path(path).read_text().strip()
    except OSError as error:
        raise ValueError(f"access: api_key_file cannot be read: {error}") from error
    if len(key) < MIN_KEY:
        raise ValueError(f"access: the key in {path} has {len(key)} characters; at least {MIN_KEY} are expected")
    return key.encode()


def _name(host: str) -> str:
    """The name of a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place(origin: str) -> str | None:
    """The host and port of an Origin header; None where it is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None
