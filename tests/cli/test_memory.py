"""`predimem memory`, as people run it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memory_bank.store import NewKeyframe, open_store
from predimem.cli import main
from predimem.core.types import Frame
from tests.memory_bank.store.made_up import image, play

Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """What a command prints; an error is SystemExit."""

    def printed(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["predimem", "memory", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        if end.value.code != 0:
            raise end.value
        return capsys.readouterr().out

    return printed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "state", sync=False)
    play(store, "arm/1", (3, 8), "bring the cookies", session="monday")
    play(store, "arm/2", (5,), session="tuesday")
    store.end("arm/1", "success")
    store.close()
    return tmp_path / "state"


def test_list_show_and_search(run: Run, place: Path, tmp_path: Path) -> None:
    lines = run("list", "--store", place).splitlines()
    assert lines[0].split()[:4] == ["robot", "sessions", "episodes", "keyframes"]
    assert lines[1].split()[:4] == ["arm", "2", "2", "3"]
    assert [line.split()[0] for line in run("list", "--store", place, "--robot", "arm").splitlines()[1:]] == [
        "monday",
        "tuesday",
    ]
    run("note", "it sticks", "--store", place, "--robot", "arm", "--session", "monday", "--author", "Ann")
    shown = run("show", "--state-dir", place, "--robot", "arm", "--session", "monday")
    assert "arm/1  (monday, " in shown and ", success)" in shown and "2 at steps 3, 8" in shown
    assert "Ann: it sticks" in shown and "arm/2" not in shown
    found = json.loads(run("search", "--store", place, "--subtask", "DRAWER", "--images", tmp_path / "found", "--json"))
    assert sorted((one["episode_id"], one["step"]) for one in found) == [("arm/1", 3), ("arm/1", 8), ("arm/2", 5)]
    assert len(list((tmp_path / "found").glob("*.png"))) == 6
    first = next(one["id"] for one in found if one["step"] == 8)
    like = json.loads(run("search", "--store", place, "--like", first, "--limit", 1, "--json"))
    assert [(one["id"], one["similarity"]) for one in like] == [(first, 1.0)]
    assert run("search", "--store", place, "--subtask", "nothing") == "nothing was found\n"
    assert run("index", "--store", place) == "tower: 3 embeddings are searched exactly, which needs no index\n"


def test_embed_and_search_by_image(run: Run, place: Path, tmp_path: Path) -> None:
    """With the tower of a shipped planner. The keyframes of `place` have other cameras than it."""
    cameras, steps = ("agentview_rgb", "eye_in_hand_rgb"), (0, 10, 20)
    seen = {
        (camera, step): np.random.default_rng([number, step]).integers(0, 256, (128, 128, 3), np.uint8)
        for number, camera in enumerate(cameras)
        for step in steps
    }
    store = open_store(place, sync=False)
    key = store.begin("franka/1", "bring the cookies")
    frames = [Frame(step, step / 20, {camera: seen[camera, step] for camera in cameras}) for step in steps]
    store.keep_frames(key, [NewKeyframe(frame, "open drawer") for frame in frames[:2]])
    files = {camera: tmp_path / f"{camera}.png" for camera in cameras}
    for camera, file in files.items():
        Image.fromarray(seen[camera, 10]).save(file)
    wanted = ["--image", f"{cameras[0]}={files[cameras[0]]}"]
    with pytest.raises(SystemExit):  # before there are embeddings
        run("search", "--store", place, *wanted)
    said = run("embed", "--store", place)
    assert "2 keyframes embedded" in said and "3 keyframes were left out" in said
    store.keep_frames(key, [NewKeyframe(frames[2], "open drawer")])
    store.close()
    assert "1 keyframes embedded" in run("embed", "--store", place, "--robot", "franka")  # what is new
    assert "0 keyframes embedded" in run("embed", "--store", place)
    both = [*wanted, "--image", f"{cameras[1]}={files[cameras[1]]}"]
    larger = tmp_path / "larger.png"  # as from a camera of more pixels
    Image.fromarray(seen[cameras[0], 10].repeat(3, 0).repeat(3, 1)).save(larger)
    for images in (wanted, ["--image", f"{cameras[0]}={larger}"], both):
        found = json.loads(run("search", "--store", place, *images, "--json"))
        assert len(found) == 3 and found[0]["step"] == 10
        assert found[0]["similarity"] > found[1]["similarity"] + 0.01
    assert found[0]["similarity"] == pytest.approx(1.0, abs=0.002)  # all that it showed
    for wrong in (f"wrist={files[cameras[0]]}", str(files[cameras[0]])):
        with pytest.raises(SystemExit):
            run("search", "--store", place, "--image", wrong)
    run("delete", "--store", place, "--robot", "franka", "--yes")
    with pytest.raises(SystemExit):  # what was embedded is gone
        run("search", "--store", place, *wanted)


def test_export_import_delete_and_prune(run: Run, place: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "monday.session", tmp_path / "other"
    said = run("export", "--store", place, "--robot", "arm", "--session", "monday", "--out", file)
    assert said == f"{file}: 2 keyframes\n"
    said = run("import", file, "--store", other, "--robot", "twin")
    assert said == "session 'monday' of robot 'twin': 1 episodes, 2 keyframes\n"
    store = open_store(other, sync=False)
    kept = store.frame(store.keyframes()[0].key, 3)
    assert (kept.images["hand"] == image("arm/1", 3)).all()
    store.close()
    said = run("delete", "--store", place, "--robot", "arm", "--session", "monday", "--yes")
    assert said.startswith("deleted 1 episodes with 2 keyframes (")
    assert len(run("list", "--store", place, "--robot", "arm").splitlines()) == 2
    assert run("prune", "--store", place, "--days", 1).startswith("deleted 0 episodes")
    assert run("prune", "--store", place, "--gib", 1e-9).startswith("deleted 1 episodes with 1 keyframes")


def test_what_is_wrong_is_said_in_one_line(run: Run, place: Path, tmp_path: Path) -> None:
    for words, why in (
        (("list", "--store", tmp_path / "nowhere"), "holds no memory store"),
        (("list", "--store", place, "--robot", "leg"), "knows no robot 'leg'; the last ones are: arm"),
        (("show", "--store", place, "--robot", "arm", "--session", "x"), "no session 'x'; the last ones are: tuesday"),
        (("search", "--store", place), "say what to search for: --subtask WORDS, --image CAMERA=FILE, or --like"),
        (("search", "--store", place, "--like", 99), "no keyframe 99 with an embedding of the model 'tower'"),
        (("search", "--store", place, "--like", 1, "--model", "x"), "--model: expected one of tower, got x"),
        (("import", place / "episodes.db", "--store", place), "is no session that"),
        (("import", tmp_path / "nothing", "--store", place), "nothing: no such file"),
        (("delete", "--store", place, "--robot", "leg", "--yes"), "knows no robot 'leg'"),
        (("prune", "--store", place, "--days", -1), "retention: days has to be positive"),
    ):
        with pytest.raises(SystemExit, match=why) as end:
            run(*words)
        assert str(end.value).startswith("predimem: ") and "\n" not in str(end.value)
    assert not (tmp_path / "nowhere").exists()
