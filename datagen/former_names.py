"""Configs of data as earlier versions wrote them: `suite` was what is `kind` now, with other values."""

from __future__ import annotations

from typing import Any

from predimem.core.config import ConfigError

FORMER_KINDS = {"skills": "actor_data", "scenes": "vision_data", "practice": "dagger"}
SAMPLINGS = ("frames", "rollouts")  # of actor data, which `kind` used to say


def todays_kind(data: dict[str, Any]) -> dict[str, Any]:
    """The plain data of a config, in which `kind` says which kind of data it is for. Nothing else is changed.

    Raises ConfigError where the kind is given by its old and by its new name.
    """
    data = dict(data)
    if data.get("kind") in SAMPLINGS:
        data = {"sampling" if key == "kind" else key: value for key, value in data.items()}
    if "suite" in data:
        if "kind" in data:
            raise ConfigError("'suite' is the former name of 'kind'; give one of them")
        data = {"kind" if key == "suite" else key: value for key, value in data.items()}
    if "kind" in data:
        data["kind"] = FORMER_KINDS.get(data["kind"], data["kind"])
    return data
