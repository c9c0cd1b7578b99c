"""Which address shows what. Everything is read-only.

The page itself (HTML, styles, scripts) holds nothing of the robots and is open: it asks for the key where one is
needed, and sends it as a header with every request for data.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from predimem.serving.engine import Engine
from predimem.serving.http_reply import FOREVER, TEXT, Page, json_page, missing
from predimem.serving.page.live import live_episode, live_image, live_trajectory, overview
from predimem.serving.page.past import past_episode, past_episodes, past_image, past_recording, past_trajectory
from predimem.serving.page.robots import robot, robots
from predimem.serving.page.search import search

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_NUMBER = r"(\d{1,16})"
_STEP = r"(-?\d{1,16})"  # a conditioning video has steps below 0
_LIVE = re.compile(r"/page/live/([^/]+)\.json")
_LIVE_IMAGE = re.compile(rf"/page/live/([^/]+)/([0-9a-f]{{8}})/{_STEP}/(\d)\.jpg")
_LIVE_ROWS = re.compile(rf"/page/live/([^/]+)/([0-9a-f]{{8}})/from/{_NUMBER}")
_PAST = re.compile(r"/page/past/([^/]+)\.json")
_PAST_IMAGE = re.compile(rf"/page/past/{_NUMBER}/{_STEP}/([^/]+)\.png")
_PAST_ROWS = re.compile(rf"/page/past/{_NUMBER}/trajectory")
_RECORDING = re.compile(r"/page/past/([^/]+)\.rrd")
_ROBOT = re.compile(r"/page/robots/([^/]+)\.json")
_STATIC = re.compile(r"/page/static/([0-9a-f]{12})/([a-z]+\.[a-z]+)")


def shell(path: str) -> Page | None:
    """The page without its data; None: not a part of it."""
    files, version = _files()
    if path == "/":
        return files["index.html"]
    if (asked := _STATIC.fullmatch(path)) is None:
        return None
    found = files.get(asked[2])
    return found if found is not None and asked[1] == version else missing("reload the page")


def data(engine: Engine, path: str, asked: str = "") -> Page | None:
    """What the page shows; None: not a part of it. `path` and `asked`, what stood behind its `?`, as they were sent,
    with their percent signs."""
    try:
        return search(engine, asked) if path == "/page/search.json" else _data(engine, path)
    except (OSError, sqlite3.Error):
        log.exception("the store cannot be read")
        return Page(503, TEXT, b"the store cannot be read\n")


def _data(engine: Engine, path: str) -> Page | None:
    if path == "/page/live.json":
        return json_page({"overview": overview(engine)})
    if path == "/page/past.json":
        return past_episodes(engine)
    if path == "/page/robots.json":
        return robots(engine)
    if asked := _ROBOT.fullmatch(path):
        return robot(engine, unquote(asked[1]))
    if asked := _LIVE.fullmatch(path):
        return live_episode(engine, unquote(asked[1]))
    if asked := _LIVE_IMAGE.fullmatch(path):
        return live_image(engine, unquote(asked[1]), asked[2], int(asked[3]), int(asked[4]))
    if asked := _LIVE_ROWS.fullmatch(path):
        return live_trajectory(engine, unquote(asked[1]), asked[2], int(asked[3]))
    if asked := _PAST.fullmatch(path):
        return past_episode(engine, unquote(asked[1]))
    if asked := _PAST_IMAGE.fullmatch(path):
        return past_image(engine.store, int(asked[1]), int(asked[2]), unquote(asked[3]))
    if asked := _PAST_ROWS.fullmatch(path):
        return past_trajectory(engine.store, int(asked[1]))
    if asked := _RECORDING.fullmatch(path):
        return past_recording(engine, unquote(asked[1]))
    return None


@cache
def _files() -> tuple[dict[str, Page], str]:
    """name -> file, and the version of them all, which is a part of their addresses: browsers may keep them."""
    contents = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}
    version = hashlib.sha256(b"".join(contents.values())).hexdigest()[:12]
    pages = {
        name: Page(200, f"{KINDS[Path(name).suffix]}; charset=utf-8", content, FOREVER)
        for name, content in contents.items()
    }
    index = pages["index.html"].body.replace(b"{{version}}", version.encode())
    pages["index.html"] = Page(200, pages["index.html"].content_type, index, (("Content-Security-Policy", POLICY),))
    return pages, version
