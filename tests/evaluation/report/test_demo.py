"""The demo's page: what it says of its seed and its rates, and how a visitor sees it in a real browser."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from predimem.cli.demo import COLOURS, DRAWERS
from predimem.core.seeds import EVALUATION_SEEDS_FROM
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.tasks import task_of
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.report.demo import COLOUR_RATES, RATES, Rate, write_demo
from predimem.evaluation.report.terms import TERMS
from predimem.evaluation.report.video import Film
from predimem.evaluation.run.evaluation import EvaluationConfig, run_evaluation
from tests.evaluation.fake_player import FakePlayer
from tests.evaluation.report.test_report import Page
from tests.needs import find_browser

ROOT = Path(__file__).parents[3]
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two evaluations of made-up episodes: at seed 900001 the first agent succeeds and the other one fails."""
    out = tmp_path_factory.mktemp("demo")
    results = []
    for name, tasks in (("drawers", ("a",)), ("remember-color", ("b", "c"))):
        settings = EvaluationConfig(
            *("arena" if name == "drawers" else "mikasa", tasks, ("predimem", "no-keyframes"), 1, 900_001),
            out=str(out / name),
            film=Film(narrow=True),
            videos_per_task=1,
        )
        results.append(run_evaluation(settings, FakePlayer))
    return write_demo(results[0], results[1], out)


def test_the_page_stands_beside_its_videos(page: Path) -> None:
    text, parsed = page.read_text(), Page()
    parsed.feed(text)
    links = [link for link in parsed.links if not link.startswith("data:")]
    assert parsed.open == [] and "<script" not in text
    assert all((page.parent / link).is_file() for link in links)
    assert sum(link.endswith(".mp4") for link in set(links)) == 3
    assert "drawers/report.html" in links and "remember-color/report.html" in links


def test_it_says_what_came_out_and_who_played(page: Path) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page.read_text()))
    assert "With keyframes: success after 12 control steps." in text
    assert "Without keyframes: failure after 12 control steps. It goes wrong at step 5: touched the" in text
    assert "S1 is not learned here." in text and "900001 is the first one of the evaluation range" in text
    assert "Here 1 of 1 succeeded with keyframes and 0 of 1 without" in text
    assert "With keyframes 2 of 2 episodes succeeded, without 0 of 2." in text


def test_an_episode_that_crashed_leaves_a_page_without_its_video(tmp_path: Path) -> None:
    results = []
    for name in ("drawers", "remember-color"):
        settings = EvaluationConfig("mikasa", ("a",), ("predimem", "no-keyframes"), 1, out=str(tmp_path / name))
        results.append(run_evaluation(settings, partial(FakePlayer, raise_seed=900_000)))
    text = write_demo(results[0], results[1], tmp_path).read_text()
    assert text.count("There is no video of this pair") == 2 and "the simulator is on fire" in text


def test_the_seed_follows_its_rule() -> None:
    task = task_of(DRAWERS.tasks[0])
    seeds = range(EVALUATION_SEEDS_FROM, EVALUATION_SEEDS_FROM + 100)
    searched_last = next(
        s for s in seeds if "bottom_drawer" in task.variants[draw_layout(task, s).variant].start.values()
    )
    assert DRAWERS.seed_start == searched_last and COLOURS.seed_start == EVALUATION_SEEDS_FROM


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: f"{rate.agent}, {rate.where}")
def test_the_rates_are_those_of_the_results(rate: Rate) -> None:
    readme = [[cell.strip(" `") for cell in line.split("|")] for line in (ROOT / "README.md").read_text().splitlines()]
    if rate.where != "this task":
        assert any(row[1:3] == ["Arena", rate.agent] and row[5:7] == [str(rate.n), rate.success] for row in readme)
        return
    name = "arena_learned" if rate.agent == "predimem" else "arena_planners"
    episodes = episodes_of(json.loads((ROOT / "results" / f"{name}.json").read_text()))
    task = task_of(DRAWERS.tasks[0]).name
    outcomes = [e["status"] == "success" for e in episodes if (e["task"], e["agent"]) == (task, rate.agent)]
    low, high = wilson_interval(sum(outcomes), len(outcomes))
    assert rate.n == len(outcomes)
    assert rate.success == f"{100 * sum(outcomes) / rate.n:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def test_the_rates_of_remember_color_are_those_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for rate in COLOUR_RATES:
        row = next(line for line in readme.splitlines() if f"| RememberColor | `{rate.agent}` |" in line)
        assert f"| {rate.n} | {rate.success} |" in row


@pytest.mark.needs("browser")
def test_a_visitor_can_read_and_enlarge_it(page: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=find_browser(), args=sandbox, timeout=PATIENCE_MS)
        visitor: Any = browser.new_page(viewport={"width": 1280, "height": 900})
        visitor.set_default_timeout(PATIENCE_MS)
        visitor.goto(page.as_uri())
        keyframe = visitor.locator(".keyframe .zoom").first
        image = keyframe.locator("img").first
        assert keyframe.locator("img").count() == 2 and image.bounding_box()["width"] >= 140
        keyframe.click()
        assert image.bounding_box()["width"] > 500
        visitor.mouse.click(5, 5)
        assert image.bounding_box()["width"] < 250
        assert visitor.locator("abbr", has_text="S2").first.get_attribute("title") == TERMS["S2"]
        visitor.wait_for_function("document.querySelector('video').readyState > 0")
        size = visitor.locator("video").first.evaluate("video => [video.videoWidth, video.videoHeight]")
        assert size[0] > size[1] > 300
        assert visitor.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
