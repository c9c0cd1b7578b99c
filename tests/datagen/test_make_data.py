"""What `predimem datagen` refuses to change in a config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from datagen.command import make_data
from predimem.core.config import ConfigError


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("moved_robomme", {"tasks": ("BinFill",)}, "is of the kind moved_robomme: its tasks cannot be set"),
        ("mirrored_robomme", {"episodes": 3}, "is of the kind mirrored_robomme: its episodes cannot be set"),
        ("edited_cues", {"tasks": ("RememberColor9",)}, "is of the kind edited_cues: its tasks are in the file itself"),
        ("mikasa", {"episodes": 3, "tasks": ("A",)}, "is of the kind mikasa: its episodes, tasks are in the file"),
    ],
)
def test_options_that_a_kind_does_not_have_are_refused(
    tmp_path: Path, kind: str, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "data.yaml"
    path.write_text(f"kind: {kind}\nout: {tmp_path / 'out'}\n")
    with pytest.raises(ConfigError, match=message):
        make_data(path, 1, None, changes)
