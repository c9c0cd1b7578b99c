"""The scripted server, in a process of its own, and a decomposer that asks it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datagen.decompose.config import VlmConfig
from datagen.decompose.vlm import VlmDecomposer
from datagen.decompose.waiting import Waiting, silent

Requests = Callable[[], list[dict[str, Any]]]
Serve = Callable[..., tuple[VlmDecomposer, Requests]]


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[str, Requests]]]:
    """Starts a server with a list of answers: its address without a path, and the requests that it has got."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    started: list[subprocess.Popen[str]] = []

    def start(answers: list[Any], **more: Any) -> tuple[str, Requests]:
        script, log = tmp_path / "script.json", tmp_path / "requests.jsonl"
        script.write_text(json.dumps({"answers": answers, **more}))
        server = Path(__file__).with_name("scripted_vlm_server.py")
        process = subprocess.Popen([sys.executable, server, script, log], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        return url, lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    yield start
    for process in started:
        process.terminate()
        process.wait()


@pytest.fixture
def serve(scripted: Callable[..., tuple[str, Requests]], tmp_path: Path) -> Serve:
    def start(
        answers: list[Any],
        schemas: bool = True,
        models: list[str] | None = None,
        path: str = "/v1",
        waiting: Waiting = silent,
        **config: Any,
    ) -> tuple[VlmDecomposer, Requests]:
        url, requests = scripted(answers, schemas=schemas, **({} if models is None else {"models": models}))
        settings: dict[str, Any] = {"model": "scripted", "base_url": url + path, "exchanges": str(tmp_path / "failed")}
        return VlmDecomposer(VlmConfig(**settings | config), waiting), requests

    return start
