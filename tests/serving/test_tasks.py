"""Tasks that a planner was not trained on: told from those that it was, and said, or refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from planner.checkpoint import PlannerCheckpointError, PlannerSpec, read_spec
from planner.instructions import trained_on, write_instructions
from predimem.core.weight_files import weights_folder
from predimem.envs.arena.vocabulary import instructions
from predimem.serving import wire
from predimem.serving.config import ModelsConfig
from predimem.serving.engine import Engine
from predimem.serving.known_tasks import KnownTasks, TasksConfig
from predimem.serving.models import make_served, model_folder
from predimem.serving.page.live import overview
from predimem.serving.refusal import Refusal
from predimem.serving.sessions import Client
from tests.serving.support import observe, settings, small_config, small_models, small_server

COLOUR = "Observe the cube's color, wait, then touch the cube of the same color."
SAUCE = "pour tomato sauce into bowl drainer"
TASKS = ("Pour milk into the red mug twice.", "Open the drawer, then put the butter into it and close it.")
WARN = TasksConfig()


def shipped(name: str) -> KnownTasks:
    folder = weights_folder(None, name)
    return KnownTasks(*trained_on(folder, read_spec(folder)))


@pytest.mark.parametrize("prompt", [*instructions(), "POUR WINE INTO RED MUG TWICE, then stand bottle back on table!"])
def test_what_the_arenas_planner_was_trained_on_is_known(prompt: str) -> None:
    assert shipped("arena-planner").doubt(prompt, WARN) is None


def test_what_it_was_not_trained_on_is_not() -> None:
    known = shipped("arena-planner")
    why = known.doubt(SAUCE, WARN)
    assert why is not None and "the nearest of its 31 instructions is 'Pour tomato sauce into the frying pan" in why
    for prompt in ("open the microwave", "fold the towel", "!", "Pour milk into the red mug twice", COLOUR):
        assert known.doubt(prompt, WARN) is not None
    one_other = (
        "Put the milk onto the red mat in one of the two baskets. Then put the tomato sauce into the same basket."
    )
    assert known.doubt(one_other, WARN) is not None


def test_the_planner_of_remember_color_knows_its_colours_alone() -> None:
    """Its tokenizer was made for shapes, too."""
    for name in ("planner", "planner-no-head", "planner-no-keyframes"):
        assert shipped(name).instructions == (COLOUR,)
    assert shipped("planner").doubt(COLOUR.replace("color", "shape"), WARN) is not None


def test_how_far_is_too_far() -> None:
    known = KnownTasks(TASKS)
    assert known.nearest("pour the milk twice into a red mug") == (pytest.approx(5 / 6), TASKS[0])
    assert known.doubt(f"Please {TASKS[1].lower()}", WARN) is None
    swapped = TASKS[0].replace("milk", "wine")  # one of six words that count
    assert known.doubt(swapped, TasksConfig(similarity=0.8)) is None
    assert known.doubt(swapped, TasksConfig(similarity=0.9)) is not None
    assert replace(known, pretrained=True).doubt(swapped, WARN) is None
    assert replace(known, pretrained=True).doubt("fold the towel", WARN) is not None
    assert known.doubt("fold the towel", TasksConfig(unknown="accept")) is None
    assert KnownTasks().doubt("fold the towel", WARN) is None
    with pytest.raises(ValueError, match="similarity is from 0 to 1"):
        TasksConfig(similarity=1.5)


def test_the_list_beside_a_planner(tmp_path: Path) -> None:
    def spec(**base: Any) -> PlannerSpec:
        return PlannerSpec(training={"config": {"base": base}})

    assert trained_on(tmp_path, PlannerSpec()) == ((), False)
    assert trained_on(tmp_path, spec(pretrained=None, tokenizer={"instructions": ["a"]})) == (("a",), False)
    write_instructions(tmp_path, ["b", "a", "b"])
    assert trained_on(tmp_path, spec(pretrained="Qwen/Qwen3-VL-8B-Instruct", tokenizer={})) == (("a", "b"), True)
    (tmp_path / "instructions.json").write_text("{")
    with pytest.raises(PlannerCheckpointError, match="is not JSON"):
        trained_on(tmp_path, PlannerSpec())


def ask(engine: Engine, client: Client, **fields: Any) -> dict[str, Any]:
    return wire.unpack(engine.handle(client, wire.pack(observe(**fields)), time.monotonic()), 1 << 20)


def test_a_warning_stays_with_its_episode() -> None:
    engine, client = Engine(settings(small_config()), small_models(planner=False, tasks=TASKS)), Client()
    engine.start()
    try:
        assert engine.metadata["tasks"] == list(TASKS)
        for step in range(3):
            reply = ask(engine, client, prompt=SAUCE, episode_id="a", step=step)
            assert "not trained on this task" in reply["warning"]
        assert ask(engine, client, prompt=TASKS[0], episode_id="b")["warning"] is None
        warnings = {one["id"]: one["warning"] for one in overview(engine)["sessions"]}
        assert warnings["b"] is None and "not trained" in warnings["a"]
        assert ask(engine, client, prompt=TASKS[0], episode_id="a", reset=True)["warning"] is None
        assert engine.metrics.registry.get_sample_value("predimem_unknown_tasks_total") == 1
    finally:
        engine.close()


def test_refused_where_the_config_says_so() -> None:
    config = settings(small_config(tasks={"unknown": "refuse"}))
    engine, client = Engine(config, small_models(planner=False, tasks=TASKS)), Client()
    engine.start()
    try:
        with pytest.raises(Refusal, match="unknown_task: the planner was not trained") as refused:
            ask(engine, client, prompt=SAUCE, episode_id="a")
        assert refused.value.code == "unknown_task" and len(engine.sessions) == 0
        ask(engine, client, prompt=TASKS[0], episode_id="a", step=3)
        with pytest.raises(Refusal, match="unknown_task"):
            ask(engine, client, prompt=SAUCE, episode_id="a", reset=True)
        assert ask(engine, client, episode_id="a", prompt=None, step=5)["step"] == 5  # the episode before goes on
    finally:
        engine.close()


def test_over_the_wire(tmp_path: Path) -> None:
    with small_server(tmp_path, {"tasks": TASKS}, tasks={"unknown": "refuse"}) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        with pytest.raises(RuntimeError, match=r"unknown_task: .* the nearest of its 2 instructions"):
            client.infer(observe(prompt=SAUCE))
        assert client.infer(observe(prompt=TASKS[1]))["warning"] is None
        assert json.loads(server.get("/status.json")[1])["sessions"][0]["instruction"] == TASKS[1]


def test_models_by_name_and_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine" / "export"
    mine.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "mine")
    assert model_folder(None, "arena-actor") == weights_folder(None, "arena-actor")
    assert model_folder(None, str(mine)) == model_folder(None, "./export") == model_folder(None, "export/") == mine
    (tmp_path / "mine" / "planner").mkdir()
    assert model_folder(None, "planner") == weights_folder(None, "planner")  # not a folder that happens to lie here
    with pytest.raises(FileNotFoundError, match="no weights in nowhere/at/all"):
        model_folder(None, "nowhere/at/all")
    with pytest.raises(FileNotFoundError, match="no weights for 'export'"):
        model_folder(None, "export")
    with pytest.raises(ValueError, match="serve two that were trained on the same robot"):
        make_served(ModelsConfig(planner="arena-planner"))
