"""What robots remember across episodes, days and restarts."""

from memory_bank.store.opening import is_address, open_store, without_password
from memory_bank.store.records import (
    DamagedImage,
    Hit,
    NewKeyframe,
    Note,
    NotOwner,
    Outcome,
    Removed,
    Retention,
    RobotSummary,
    Scope,
    SessionSummary,
    StoredEpisode,
    StoredFailure,
    StoredKeyframe,
    StoredPlan,
    StoreError,
    StoreFault,
    robot_of,
)
from memory_bank.store.store import MemoryStore
from memory_bank.store.transfer import export_session, import_session

__all__ = [
    "DamagedImage",
    "Hit",
    "MemoryStore",
    "NewKeyframe",
    "NotOwner",
    "Note",
    "Outcome",
    "Removed",
    "Retention",
    "RobotSummary",
    "Scope",
    "SessionSummary",
    "StoreError",
    "StoreFault",
    "StoredEpisode",
    "StoredFailure",
    "StoredKeyframe",
    "StoredPlan",
    "export_session",
    "import_session",
    "is_address",
    "open_store",
    "robot_of",
    "without_password",
]
