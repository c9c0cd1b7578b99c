"""Searches among the keyframes of all robots, by the words of their subtask and by an image."""

from __future__ import annotations

import base64
import io
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from PIL import Image, UnidentifiedImageError

from memory_bank.store import Scope
from predimem.serving.embedding import BackgroundEmbedding
from predimem.serving.engine import Engine
from predimem.serving.http_reply import TEXT, Page, json_page, missing
from predimem.serving.page.robots import plain

FOUND = 48  # keyframes that are told
WORDS = 200  # characters of a subtask
PIXELS = 1 << 20  # of an image; the page sends small ones
NO_EMBEDDINGS = "the server makes no embeddings: run it with `state: {embed: arena-planner}`, or another planner"


def search(engine: Engine, asked: str) -> Page:
    """Keyframes that fit all that is asked: `subtask`, words of it; `robot`; `image`, a JPEG, PNG or WebP file as
    base64 for addresses, with its `camera`. With an image the most similar come first, else the newest.

    keyframes: see `robots.plain`, with their `similarity` (None without an image). cameras: those that an image may be
    of; empty where images cannot be searched for, and then `why` says it.
    """
    store = engine.store
    if store is None:
        return missing("nothing is kept: the server runs without --state-dir")
    given = {name: values[-1] for name, values in parse_qs(asked).items()}
    scope = Scope(robot=given.get("robot"), subtask=given.get("subtask", "")[:WORDS] or None)
    embedding, image = engine.embedding, given.get("image")
    told: dict[str, Any] = {
        "cameras": [] if embedding is None else embedding.cameras,
        "why": NO_EMBEDDINGS if embedding is None else None,
    }
    if image is None:
        found = [plain(one) | {"similarity": None} for one in store.keyframes(scope, FOUND)]
        return json_page(told | {"keyframes": found})
    if embedding is None:
        return _bad(NO_EMBEDDINGS)
    if not engine.warm:
        return Page(503, TEXT, b"the models are being loaded; try again in a moment\n")
    try:
        model, vector = _query(embedding, given.get("camera", ""), image)
        hits = store.search(vector, FOUND, model=model, scope=scope)
    except ValueError as error:
        return _bad(str(error))
    found = [plain(hit.keyframe) | {"similarity": round(hit.similarity, 3)} for hit in hits]
    return json_page(told | {"keyframes": found})


def _query(embedding: BackgroundEmbedding, camera: str, image: str) -> tuple[str, np.ndarray]:
    try:
        file = base64.urlsafe_b64decode(image + "=" * (-len(image) % 4))
        with Image.open(io.BytesIO(file), formats=("JPEG", "PNG", "WEBP")) as opened:
            large = opened.width * opened.height > PIXELS
            pixels = None if large else np.asarray(opened.convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"image: expected a JPEG, PNG or WebP file as base64 ({error})") from None
    if pixels is None:
        raise ValueError(f"image: expected at most {PIXELS} pixels, got {opened.width} x {opened.height}")
    return embedding.query({camera: pixels})


def _bad(why: str) -> Page:
    return Page(400, TEXT, f"{why}\n".encode())
