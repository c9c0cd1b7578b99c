"""What the README and the pages that it starts from promise: Python that runs, figures, commands and files."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from benchmarks.mikasa_colours import FAMILIES
from benchmarks.mikasa_colours import table as mikasa_colours
from benchmarks.results_page import (
    BEFORE,
    CORRECTED_PLANNER,
    FULL,
    MIKASA_FIRST,
    MIKASA_MEMORIES,
    MIKASA_SEQUENCES,
    TRAINING_SEEDS,
    episodes,
    means,
    spread,
)
from predimem.cli.app import app
from predimem.core.interfaces import Environment, Planner, Policy
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.report.summary import summarise_means
from tests.test_imports import LAYERS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = ("README.md", "CONTRIBUTING.md", "docs/README.md", "docs/glossary.md", "docs/architecture.md")
ARENA_TASKS = 26


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(text: str) -> list[str]:
    """All `predimem ...` that the page tells its reader to run, in blocks and in lines."""
    lines = "\n".join(blocks(text, "bash")).replace("\\\n", " ").splitlines()
    inline = re.findall(r"`(?:\.venv/bin/)?(predimem [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found = [line.removeprefix(".venv/bin/") for line in [*lines, *inline]]
    return [line for line in found if line.startswith("predimem ") and "--help" not in line]


def rows_of(benchmark: str) -> dict[str, tuple[int, str]]:
    """Agent -> (n, success) as the README's table has them."""
    lines = [line for line in README.splitlines() if line.startswith(f"| {benchmark} |")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {agent.strip("`"): (int(n), success) for _, agent, _, _, n, success in cells}


def test_the_python_blocks_run_as_one_program(capsys):
    names: dict[str, Any] = {}
    exec("\n".join(blocks(README, "python")), names)
    assert isinstance(names["Lamp"](), Environment)
    assert isinstance(names["LampPlanner"](), Planner)
    assert isinstance(names["Walk"](), Policy)
    printed = capsys.readouterr().out.strip()
    assert printed == "success success failure"
    assert f"# {printed}" in README
    assert {names["play"](seed) for seed in range(2, 8)} == {"success"}


@pytest.mark.parametrize(
    ("benchmark", "files", "agents", "played"),
    [
        ("Arena", "arena_*.json", 12, ARENA_TASKS),
        ("RememberColor", "remember_color.json", 2, 3),
        ("MIKASA-Robo", "mikasa_touch*.json", 6, 19),
    ],
)
def test_the_rows_are_those_of_the_results(benchmark, files, agents, played):
    rows, found = rows_of(benchmark), []
    rows.pop(f"predimem{BEFORE}", None)  # in a test of its own
    for path in (ROOT / "results").glob(files):
        episodes = [{"metrics": {}} | episode for episode in episodes_of(json.loads(path.read_text()))]
        tasks = list(dict.fromkeys(episode["task"] for episode in episodes))
        for agent in rows.keys() & {episode["agent"] for episode in episodes}:
            mean = summarise_means(episodes, [agent], tasks)[agent]
            success, low, high = (100 * mean[name] for name in ("success", "ci_low", "ci_high"))
            assert rows[agent] == (mean["n"], f"{success:.0f} [{low:.0f}, {high:.0f}]") and mean["n"] % played == 0
            found.append(agent)
    assert sorted(found) == sorted(rows) and len(found) == agents


def test_the_row_before_the_second_training_is_of_the_same_episodes_as_the_rows_below_it():
    same = {(e["task"], e["seed"]) for e in episodes(MIKASA_MEMORIES[1])}
    records = [e for e in episodes(MIKASA_FIRST[0]) if (e["task"], e["seed"]) in same]
    mean = summarise_means(records, ["predimem"], list(dict.fromkeys(e["task"] for e in records)))["predimem"]
    success, low, high = (100 * mean[name] for name in ("success", "ci_low", "ci_high"))
    assert len(records) == len(same)
    assert rows_of("MIKASA-Robo")[f"predimem{BEFORE}"] == (mean["n"], f"{success:.0f} [{low:.0f}, {high:.0f}]")


def outcomes(file: str) -> dict[tuple[str, int], str]:
    return {(e["task"], e["seed"]): e["status"] for e in episodes((file, "predimem"))}


def test_so_many_outcomes_are_the_same_with_stock_meshes():
    results = " ".join((ROOT / "docs/results.md").read_text().split())
    light, stock = outcomes("mikasa_touch"), outcomes("mikasa_stock")
    same = sum(light[episode] == stock[episode] for episode in stock)
    for page in (" ".join(README.split()), results):
        assert f"was the same in {same} of {len(stock)} episodes" in page
    light, stock = outcomes("mikasa_sequences"), outcomes("mikasa_sequences_stock")
    assert all(light[episode] == stock[episode] for episode in stock)
    assert f"all of {len(stock)} outcomes of `predimem` were the same" in results


def test_the_success_on_several_things_in_order_is_that_of_the_results():
    records = episodes(MIKASA_SEQUENCES[0])
    told = mikasa_colours(records).splitlines()[-1].split("|")[-2].strip()
    played = sum(record["task"].startswith(FAMILIES) for record in records)
    assert f"planner solves {told.replace(' [', ' % [')} of {played} episodes" in " ".join(README.split())


def test_the_spread_over_training_seeds_is_that_of_the_results():
    readme = " ".join(README.split())
    (told,) = re.findall(r"`no-head-corrected` succeed in (\S+ ± \S+) % of the same (\d+) episodes", readme)
    assert told == (spread(TRAINING_SEEDS).splitlines()[-1].split(" | ")[3], str(means(TRAINING_SEEDS[0])["n"]))


def test_the_actor_that_was_trained_on_is_compared_on_the_same_episodes():
    corrected = ("corrected_actor", "corrected")
    played = {(e["task"], e["seed"]) for e in episodes(corrected)}
    shipped = [e["status"] == "success" for e in episodes(FULL) if (e["task"], e["seed"]) in played]
    found = means(corrected)
    assert found["n"] == len(played) == len(shipped)
    success, low, high = (100 * found[name] for name in ("success", "ci_low", "ci_high"))
    rate = f"{success:.0f} % [{low:.0f}, {high:.0f}] of {found['n']} episodes"
    theirs = f"{100 * sum(shipped) / len(shipped):.0f} % of the same ones"
    assert f"succeeds in {rate}, where `predimem` has {theirs}" in " ".join(README.split())


def test_the_planner_that_was_trained_on_is_compared_on_the_same_episodes_of_the_same_actor():
    before, after = (
        {(e["task"], e["seed"]): e["status"] == "success" for e in episodes(which)}
        for which in (("corrected_actor", "corrected"), CORRECTED_PLANNER[0])
    )
    gain = 100 * sum(after[episode] - before[episode] for episode in before) / len(before)
    assert f"brought {gain:.0f} points: `predimem-corrected`" in " ".join(README.split())


@pytest.mark.parametrize("page", PAGES)
def test_every_command_can_be_given(page):
    """Names of commands and options, values that options allow, and files of the checkout."""
    for line in commands((ROOT / page).read_text()):
        words = shlex.split(line, comments=True)[1:]
        context: Any = None
        command: Any = typer.main.get_command(app)
        while hasattr(command, "commands"):
            context = command.make_context(words[0], words, parent=context)
            command, words = command.commands[words[0]], words[1:]
        if words:  # else the page only names the command
            command.make_context("", words, parent=context)
        missing = [w for w in words if re.match(r"(configs|results|examples|tests)/", w) and not (ROOT / w).exists()]
        assert not missing, f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page):
    named = re.findall(r"`([\w.]+/[\w./-]+\.\w+)`", (ROOT / page).read_text())
    assert [name for name in named if not name.startswith("runs/") and not (ROOT / name).exists()] == []


def test_the_layers_are_those_of_the_import_rule():
    rows = re.findall(r"^\| `(\w+(?:/\w+)?)/` \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    assert [row.replace("/", ".") for row in rows] == list(LAYERS)
