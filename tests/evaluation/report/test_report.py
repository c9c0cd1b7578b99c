"""The report stands alone, says what the results say, and escapes what it did not write."""

from __future__ import annotations

import html
import json
import re
from functools import partial
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from predimem.evaluation.report.charts import success_bars
from predimem.evaluation.report.episodes import as_shown, load_traces
from predimem.evaluation.report.report import write_report
from predimem.evaluation.report.terms import TERMS
from predimem.evaluation.report.timeline import timeline
from predimem.evaluation.run.evaluation import EvaluationConfig, run_evaluation
from tests.evaluation.fake_player import CAMERAS, FakePlayer

Finished = tuple[Path, dict[str, Any]]
TASKS = ("RememberColor3-VLA-v0", "RememberColor9-VLA-v0")


class Page(HTMLParser):
    """Checks that tags are balanced and collects links."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    out = tmp_path_factory.mktemp("evaluation")
    settings = EvaluationConfig("mikasa", TASKS, ("predimem", "reactive"), 6, out=str(out), videos_per_task=1)
    return out, run_evaluation(settings, partial(FakePlayer, raise_seed=900_002))


def test_the_page_stands_alone(finished: Finished) -> None:
    out, results = finished
    text = (out / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    outside = [link for link in page.links if not link.startswith("data:")]
    assert set(outside) == {e["video"] for e in results["episodes"] if e["video"]}
    assert all((out / link).is_file() for link in outside)
    assert not re.search(r"@import|url\(|<script|<link", text)


def test_the_page_says_what_the_results_say(finished: Finished) -> None:
    out, results = finished
    text = (out / "report.html").read_text()
    assert "predimem succeeds in 80% of 10 episodes (mean over 2 tasks), 95 % interval" in text
    for part in ("fake 1.0", "abc", "OpenVLA (K=8)", "0.59", "Chameleon 0.751", "not directly comparable"):
        assert part in text
    assert "900002: RuntimeError: the simulator is on fire" in text
    assert "+ 1 error" in text and "5 / 20" in text
    assert results["results"][TASKS[0]]["predimem"]["invalid_answers"] == 5
    assert "remember &lt;the&gt; cube" in text and "<the>" not in text and "<teal>" not in text


def test_drawings_are_well_formed_and_to_scale(finished: Finished) -> None:
    out, results = finished
    traces = load_traces(results, out)
    assert [(t["task"], t["agent"], t["seed"]) for t in traces] == [(t, "predimem", 900_000) for t in TASKS]
    drawing = ElementTree.fromstring(timeline(traces[0]))
    kinds = [node.get("class", "") for node in drawing.iter()]
    assert [kinds.count(f"action {k}") for k in ("fresh", "stale", "held")] == [8, 1, 3]
    assert kinds.count("s2 dot") == 3 and kinds.count("s2 bad dot") == 1
    assert kinds.count("s1") == 3 and kinds.count("age") == 10
    assert kinds.count("keyframe") == 2
    spans = [node for node in drawing.iter() if node.get("class", "").startswith("span ")]
    assert [s.get("class") for s in spans] == ["span track", "span span0", "span span1"]
    widths = [float(s.get("width", 0)) for s in spans]
    assert widths[1] / widths[0] == pytest.approx(3 / 2, rel=0.01)
    bars = ElementTree.fromstring(success_bars(results))
    assert sum(node.get("class") == "published" for node in bars.iter()) == 2


def test_long_and_empty_episodes_can_be_drawn(finished: Finished) -> None:
    out, results = finished
    trace = load_traces(results, out)[0]
    held = tuple(range(2900, 3000, 5))
    ticks = [trace["ticks"][5] | {"step": step, "keyframe_steps": held} for step in range(3000)]
    drawing = ElementTree.fromstring(timeline(trace | {"ticks": ticks}))
    places = [float(n.get("x", 0)) for n in drawing.iter() if n.get("class") == "keyframe"]
    assert len(places) == 20 and min(places) >= 165 and max(places) + 15 <= 921
    assert all(b - a >= 15 for a, b in pairwise(places))
    assert timeline(trace | {"ticks": []}) == ""
    alone = {"plan_arrived": False, "s1_latency_s": None, "held_action": False, "plan_age_steps": None}
    scripted = timeline(trace | {"ticks": [tick | alone for tick in trace["ticks"]], "thumbnails": {}})
    assert "watch" in scripted and "asked → answered" not in scripted and "action fresh" not in scripted


def test_keyframes_are_shown_by_both_cameras_with_the_number_on_the_timeline(finished: Finished) -> None:
    out, results = finished
    text = (out / "report.html").read_text()
    assert text.count('<figure class="keyframe">') == 2 * len(TASKS)
    for camera in CAMERAS:
        assert f'alt="{camera}, step 0"' in text
    assert "<b>1</b> step 0" in text and "<b>2</b> step 5, during “touch the &lt;teal&gt; cube”" in text
    shown = as_shown(load_traces(results, out)[0])
    assert [(k["number"], k["step"], len(k["images"])) for k in shown["keyframes"]] == [(1, 0, 2), (2, 5, 2)]
    assert as_shown({**load_traces(results, out)[0], "thumbnails": {}})["keyframes"][1]["images"] == {}


def test_unknown_words_are_explained(finished: Finished) -> None:
    text = html.unescape((finished[0] / "report.html").read_text())
    for name in ("S1", "S2", "keyframe", "stale", "held", "CSR", "plan age", "seed"):
        assert text.count(f'<abbr title="{TERMS[name]}">') + text.count(f"<title>{TERMS[name]}</title>") >= 1, name
        assert f"<dt>{name}</dt>" in text


def test_the_row_that_goes_wrong_stands_below_with_the_moment_marked(tmp_path: Path) -> None:
    settings = EvaluationConfig("mikasa", TASKS[:1], ("predimem", "reactive"), 2, 900_000, str(tmp_path))
    results = run_evaluation(settings, FakePlayer)
    own, other = load_traces(results, tmp_path)
    assert (own["agent"], own["seed"], own["mistake"]) == ("predimem", 900_001, None)
    assert (other["agent"], other["seed"]) == ("reactive", 900_001)
    assert other["mistake"] == {"step": 0, "done_step": 9, "text": "touched the <red> cube", "due": ""}
    drawing = ElementTree.fromstring(timeline(other))
    marks = [node.get("class") for node in drawing.iter() if node.get("class", "").startswith("mistake")]
    assert marks == ["mistake", "mistake", "mistake cross"]
    line = next(node for node in drawing.iter() if node.get("class") == "mistake")
    assert line.get("d", "").startswith("M165.0 ")  # step 0, where the labels end
    text = (tmp_path / "report.html").read_text()
    assert "Goes wrong at step 0: touched the &lt;red&gt; cube." in text


def test_a_report_survives_episodes_without_ticks(tmp_path: Path) -> None:
    """Play raises before the first step: at the first seed for both agents, and an old trace lacks the very word."""
    settings = EvaluationConfig("mikasa", TASKS[:1], ("predimem", "reactive"), 2, out=str(tmp_path))
    results = run_evaluation(settings, partial(FakePlayer, raise_seed=900_000))
    assert [trace["seed"] for trace in load_traces(results, tmp_path)] == [900_001, 900_001]
    for record in results["episodes"]:
        (tmp_path / record["trace"]).write_text(json.dumps({"task": TASKS[0], "agent": record["agent"], "seed": 1}))
    assert load_traces(results, tmp_path) == []
    assert "the simulator is on fire" in write_report(results, load_traces(results, tmp_path), tmp_path).read_text()


def test_a_report_without_traces_or_scored_episodes(tmp_path: Path) -> None:
    settings = EvaluationConfig("arena", ("t",), ("random",), 1, out=str(tmp_path))
    results = run_evaluation(settings, partial(FakePlayer, kill_seed=900_000))
    assert results["results"]["t"]["random"]["success"] is None
    text = write_report(results, [], tmp_path).read_text()
    assert "finished no episode without an error" in text and "SIGKILL" in text
