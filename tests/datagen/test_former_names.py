"""Data configs and folders of data that an earlier version wrote are still read."""

import json
from pathlib import Path
from typing import Any

import pytest

from datagen.actor_data.config import ActorDataConfig
from datagen.command import read_data_config
from datagen.dagger.config import OracleSpellConfig, PlannerDaggerConfig
from datagen.demos.config import GenerationConfig
from datagen.demos.mikasa import CollectConfig
from datagen.vision_data.config import VisionDataConfig
from predimem.core.config import ConfigError, from_dict, load_config, to_dict
from predimem.jobs.journal import DataJournal, JournalError

FORMER: dict[str, tuple[dict[str, Any], Any]] = {
    "arena": ({"suite": "arena", "picture_every": 4}, GenerationConfig(image_every=4)),
    "mikasa": ({"suite": "mikasa"}, CollectConfig()),
    "skills": ({"suite": "skills", "kind": "rollouts"}, ActorDataConfig(sampling="rollouts")),
    "skills without a suite": ({"kind": "rollouts"}, ActorDataConfig(sampling="rollouts")),
    "scenes": ({"suite": "scenes", "frames": 3}, VisionDataConfig(frames=3)),
    "practice": (
        {"suite": "practice", "driver": "truth", "hand": "expert", "truth_spells": {"truth_s": [1.0, 2.0]}},
        PlannerDaggerConfig(low_level_policy="expert", oracle_spells=OracleSpellConfig(oracle_s=(1.0, 2.0))),
    ),
}


@pytest.mark.parametrize("name", FORMER)
def test_a_former_config_is_read(name: str) -> None:
    former, config = FORMER[name]
    assert from_dict(type(config), former) == config == from_dict(type(config), to_dict(config))


@pytest.mark.parametrize("name", ["skills", "scenes", "practice"])
def test_a_shipped_file_is_found_by_its_former_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = FORMER[name][1]
    assert read_data_config(f"configs/datagen_{name}.yaml")["kind"] == config.kind
    assert load_config(type(config), f"configs/datagen_{name}.yaml").kind == config.kind


def test_a_folder_of_former_data_goes_on(tmp_path: Path) -> None:
    former, config = FORMER["practice"]
    (tmp_path / "config.json").write_text(json.dumps(former | {"out": str(tmp_path)}))
    DataJournal(tmp_path, to_dict(config), config.may_differ, type(config)).close()
    assert json.loads((tmp_path / "config.json").read_text())["driver"] == "oracle"
    other = to_dict(PlannerDaggerConfig())
    with pytest.raises(JournalError, match=r"low_level_policy \(was \"expert\", is \"skills\"\)"):
        DataJournal(tmp_path, other, config.may_differ, type(config))


def test_what_is_said_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="'suite' is the former name of 'kind'; give one of them"):
        from_dict(PlannerDaggerConfig, {"suite": "practice", "kind": "dagger"})
    with pytest.raises(ConfigError, match="'hand' is the former name of 'low_level_policy'"):
        from_dict(PlannerDaggerConfig, {"hand": "skills", "low_level_policy": "expert"})


@pytest.mark.parametrize("text", ["{}", "{kind: practise}"])
def test_an_unknown_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"a\.yaml: expected `kind: arena` or `kind: mikasa`"):
        read_data_config(tmp_path / "a.yaml")
