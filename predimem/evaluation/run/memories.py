"""The memories and prompts that agent configs name, read without loading a model."""

from __future__ import annotations

from collections.abc import Mapping

from memory_bank import MemoryConfig, make_memory
from planner.checkpoint import changed_spec, check_sessions_are_seen, read_spec, untrained_prompt
from predimem.agent import own_planner
from predimem.agent.config import INSTRUCTION, ORACLE, AgentConfig
from predimem.core.config import ConfigError
from predimem.core.own_code import code_hash
from predimem.core.weight_files import weights_folder


def check_memories(configs: Mapping[str, AgentConfig], root: str | None) -> list[str]:
    """What is worth a word about the agents' memories and prompts; their weights are there (`check_weights`).

    Raises ConfigError for a memory that cannot be made, and for a prompt that contradicts it.
    """
    notes = []
    for name, config in configs.items():
        if config.planner in (ORACLE, INSTRUCTION):
            continue
        try:
            if config.has_own_planner:
                make_memory(own_planner.memory_of(config.planner, config.memory))
                continue
            spec = read_spec(weights_folder(root, config.planner))
            changed = changed_spec(spec, config.memory, config.prompt)
            check_sessions_are_seen(make_memory(changed.memory), changed.prompt)
        except ConfigError as error:
            raise ConfigError(f"agent_configs: {name}: {error}") from error
        if difference := untrained_prompt(spec, changed):
            notes.append(f"{name}: the planner {config.planner} was trained with another prompt: {difference}")
    return notes


def memory_of(config: AgentConfig, root: str | None) -> MemoryConfig | None:
    """An agent's memory; None where its planner has none."""
    if config.planner in (ORACLE, INSTRUCTION):
        return None
    if config.has_own_planner:
        return own_planner.memory_of(config.planner, config.memory)
    return changed_spec(read_spec(weights_folder(root, config.planner)), config.memory, config.prompt).memory


def memory_code(config: AgentConfig, root: str | None) -> dict[str, str]:
    """{"memory_code": hash of the file of a memory of one's own}; empty where the agent has none."""
    memory = memory_of(config, root)
    own = None if memory is None else memory.implementation
    return {} if own is None else {"memory_code": code_hash(own)}
