"""What a gateway answers plain HTTP requests with: health, and what replicas show, put together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from predimem.serving.cluster.gateway import ASK_S, Gateway
from predimem.serving.http_reply import TEXT, Page, json_page, missing

METRICS = "text/plain; version=0.0.4; charset=utf-8"
_LIVE_EPISODE = re.compile(r"/page/live/([^/]+?)(?:\.json|/.+)")


def page(gateway: Gateway, address: str) -> Page:
    """As `pages.page`. Replicas share the store, so any of them shows what is past."""
    path = address.partition("?")[0]
    if path == "/status.json":
        ready, state = gateway.health()
        return json_page({"ready": ready, "state": state, "replicas": gateway.reports()})
    if not gateway.warm:
        return Page(503, TEXT, b"warming up\n")
    if path == "/metrics":
        shown = {name: found.body.decode() for name, found in gateway.ask_all("page", path)}
        return Page(200, METRICS, generate_latest(gateway.metrics.registry) + labelled(shown))
    if path == "/page/live.json":
        return json_page({"overview": _overview(gateway)})
    if path.startswith("/page/"):
        return _of_one(gateway, address)
    return missing("there is no such page")


def labelled(shown: dict[str, str]) -> bytes:
    """Pages of metrics (replica -> page) as one, each sample with the label `replica`."""
    families: dict[str, Metric] = {}
    for replica, text in shown.items():
        for family in text_string_to_metric_families(text):
            merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                merged.samples.append(sample._replace(labels=sample.labels | {"replica": replica}))
    registry = CollectorRegistry()
    registry.register(_Collected(families.values()))
    return generate_latest(registry)


class _Collected:
    """Implements prometheus_client's `Collector` for families that are there already."""

    def __init__(self, families: Iterable[Metric]):
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_one(gateway: Gateway, address: str) -> Page:
    """A page of one replica: that of the episode where it is about one that is played."""
    asked = _LIVE_EPISODE.fullmatch(address)
    handle = gateway.replicas.options(session_id=unquote(asked[1])) if asked else gateway.replicas
    _, found = handle.page.remote(address).result(timeout_s=ASK_S)
    if asked and address.endswith(".json") and found.status == 200:
        return json_page(json.loads(found.body) | {"overview": _overview(gateway)})
    return found


def _overview(gateway: Gateway) -> dict[str, Any]:
    """All replicas as if they were one server."""
    pages = [found for _, found in gateway.ask_all("page", "/page/live.json") if found.status == 200]
    seen = [json.loads(found.body)["overview"] for found in pages]
    ready, state = gateway.health()
    told = gateway.metadata
    return {
        "ready": ready,
        "state": state,
        "up_s": max((one["up_s"] for one in seen), default=0),
        "queues": {model: sum(one["queues"][model] for one in seen) for model in ("s1", "s2")},
        "refused": sum(one["refused"] for one in seen),
        "restarts": sum(one["restarts"] for one in seen),
        "server": {key: told[key] for key in ("cameras", "control_hz", "versions", "weights", "memory")},
        "keeps": True,
        "sessions": [session for one in seen for session in one["sessions"]],
    }
