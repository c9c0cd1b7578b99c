"""The memory store of a server, as its config says."""

from __future__ import annotations

from pathlib import Path

from memory_bank.store import MemoryStore, open_store
from predimem.serving.config import StateConfig


def open_state(place: str | Path, config: StateConfig) -> MemoryStore:
    """Raises StoreError for a place that cannot be used."""
    return open_store(place, config.retention, config.sync, config.journal)
