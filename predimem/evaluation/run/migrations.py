"""Puts settings and results that earlier versions wrote into today's words.

Until version 0.1 a benchmark was called a suite and an agent config a row; options of the environments stood beside
the others, and MIKASA's agents were built in, with the weights of all models in one place (results of schema 1). An
episode record called its trajectory fingerprint `course`, and what the agent had named in a failure `named`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from predimem.core.config import renamed

SCHEMA = 2
RENAMED = {"suite": "benchmark", "rows": "agent_configs"}
RENAMED_IN_RECORDS = {"course": "trajectory"}
RENAMED_IN_FAILURES = {"named": "given_label"}
RECORD_DEFAULTS: dict[str, Any] = {"refusals": 0, "homings": 0}  # what is counted since; before, there was none
OF_THE_ENVIRONMENT = {"mikasa": ("rendering",), "arena": ("image_px", "inverse_kinematics")}
# The agents that were built in with MIKASA: planner and actor.
MIKASA_AGENTS = {
    "predimem": ("planner", "actor"),
    "no-keyframes": ("planner-no-keyframes", "actor"),
    "no-head": ("planner-no-head", "actor"),
    "reactive": ("instruction", "actor"),
    "oracle-subtask": ("oracle", "actor"),
}
AGENT_DEFAULTS: dict[str, Any] = {
    "actor_options": {}, "planner_options": {}, "memory": {}, "prompt": {}, "s2_latency_steps": None,
    "confirm_plans": None, "execute_steps": None, "camera_every": None, "slip_probability": 0.0,
}  # fmt: skip

# The dual system's options that came later than some results.
DUAL_SYSTEM_DEFAULTS: dict[str, Any] = {
    "chunks": "replace",
    "align": "steps",
    "s1_delay_steps": None,
    "keep_plan": False,
    "confirm_next": None,
    "min_subtask_steps": 0,
    "rest_m_by_subtask": {},
    "hand_position": [0, 1, 2],
    "homing": None,
}


def modern_settings(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings of an evaluation. Raises ConfigError where a thing is said by its old and its new name."""
    data = renamed(dict(data), RENAMED, where)
    if isinstance(data.get("play"), dict):
        every = [name for names in OF_THE_ENVIRONMENT.values() for name in names]
        data["play"] = _with_environment(data["play"], every)
    return data


def modern_results(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results of an evaluation, as results.json or in compact form."""
    results = dict(results)
    if "episodes" in results:
        results["episodes"] = [modern_record(record) for record in results["episodes"]]
    if "columns" in results:
        results["columns"] = [RENAMED_IN_RECORDS.get(name, name) for name in results["columns"]]
    if results["schema"] >= SCHEMA:
        return _today(results)
    results = renamed(results, RENAMED, "results") | {"schema": SCHEMA}
    results["benchmark_version"] = results.pop("suite_version", None)
    agents = tuple(results.get("config", {}).get("agents", ()))
    results["provenance"] = modern_provenance(results["provenance"], agents)
    return results


def modern_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """An episode record."""
    record = RECORD_DEFAULTS | renamed(dict(record), RENAMED_IN_RECORDS, "episode record")
    if record.get("failure"):
        record["failure"] = renamed(record["failure"], RENAMED_IN_FAILURES, "episode record: failure")
    return record


def modern_provenance(provenance: Mapping[str, Any], agents: tuple[str, ...] = ()) -> dict[str, Any]:
    """What episodes depend on. agents: those that were played; of these MIKASA's were built in."""
    provenance = renamed(dict(provenance), RENAMED, "provenance")
    if "suite_version" in provenance:
        provenance["benchmark_version"] = provenance.pop("suite_version")
    weights = provenance.pop("weights", {})
    if "play" in provenance:
        play = renamed(provenance["play"], RENAMED, "provenance: play")
        benchmark = play.get("benchmark", "mikasa")
        for name in {n for b, names in OF_THE_ENVIRONMENT.items() if b != benchmark for n in names}:
            play.pop(name, None)
        play = _with_environment(play, OF_THE_ENVIRONMENT.get(benchmark, ()))
        provenance["play"] = _with_dual_system(play)
    if weights and "agent_configs" not in provenance:
        provenance["agent_configs"] = {
            agent: {
                "planner": p,
                "actor": a,
                "weights": {model: weights[model] for model in (p, a) if model in weights},
            }
            for agent, (p, a) in MIKASA_AGENTS.items()
            if agent in agents
        }
    if "agent_configs" in provenance:
        agent_configs = provenance["agent_configs"]
        provenance["agent_configs"] = {name: modern_agent(config) for name, config in agent_configs.items()}
    return provenance


def modern_identity(identity: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the episodes of a journal depend on, and agent -> what its alone depend on where that was said with it."""
    if "suite" not in identity:
        return _today(identity), {}
    identity = renamed(dict(identity), RENAMED, "journal")
    weights = identity["provenance"].get("weights", {})
    known = tuple(name for name, models in MIKASA_AGENTS.items() if {*models} <= {*weights, "instruction", "oracle"})
    identity["provenance"] = modern_provenance(identity["provenance"], known)
    return identity, identity["provenance"].pop("agent_configs", {})


def _today(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of a journal, or results, in today's words, with the options that came later."""
    provenance = dict(identity.get("provenance", {}))
    if "play" not in provenance:
        return dict(identity)
    return dict(identity) | {"provenance": provenance | {"play": _with_dual_system(provenance["play"])}}


def _with_dual_system(play: Mapping[str, Any]) -> dict[str, Any]:
    return dict(play) | ({"agent": DUAL_SYSTEM_DEFAULTS | play["agent"]} if "agent" in play else {})


def modern_agent(config: Mapping[str, Any]) -> dict[str, Any]:
    """An agent config with the options that came later than its results."""
    if "planner" not in config:
        return dict(config)
    return AGENT_DEFAULTS | dict(config) | ({"planner": "oracle"} if config["planner"] == "truth" else {})


def _with_environment(play: Mapping[str, Any], names: Any) -> dict[str, Any]:
    """The settings with the options of the environment in a place of their own."""
    play = dict(play)
    moved = {name: play.pop(name) for name in names if name in play}
    if moved or "environment" in play:
        play["environment"] = moved | play.get("environment", {})
    return play
