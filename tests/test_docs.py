"""The Markdown pages: links lead to files and headings that exist, and the results page agrees with results/."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import results_page
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.metrics import wilson_interval

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def prose(page: Path) -> str:
    return CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """As GitHub names headings: lower case, without punctuation, spaces become hyphens; equal ones are numbered."""
    found: set[str] = set(ANCHOR.findall(prose(page)))
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = 0
        while (numbered := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(numbered)
    return found


def broken_links(page: Path) -> list[str]:
    broken = []
    for groups in LINK.findall(prose(page)):
        link = next(filter(None, groups))
        if re.match(r"[a-z]+:", link):
            continue  # another site
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(f"{link}: there is no such file")
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
            broken.append(f"{link}: {target.name} has no such heading")
    return broken


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title, with `code`\n[a](#a-title-with-code) [b](#b) [c](none.md)\n```\n[d](none.md)\n```\n")
    assert broken_links(page) == ["#b: page.md has no such heading", "none.md: there is no such file"]


def test_the_results_page_has_the_figures_of_the_results_files() -> None:
    page = results_page.PAGE.read_text(encoding="utf-8")
    assert {name for _, name, _ in results_page.BLOCK.findall(page)} == set(results_page.TABLES)
    assert page == results_page.filled(page), "make it afresh: python -m benchmarks.results_page"


def test_the_failures_of_mikasa_that_are_the_actors_are_those_of_the_results() -> None:
    full, told = (
        {(e["task"].split("-")[0], e["seed"]) for e in results_page.episodes(which) if e["status"] == "failure"}
        for which in results_page.MIKASA_FURTHER
    )
    counts = [f"Of the {len(full)} episodes", f"in {len(full & told)} with the same seeds"]
    for task in ("RememberColor9", "InterceptMedium"):
        failed = {episode for episode in full if episode[0] == task}
        counts.append(f"{len(failed & told)} of {len(failed)} of {task}")
    page = " ".join(results_page.PAGE.read_text(encoding="utf-8").split())
    assert [count for count in counts if count not in page] == []


def test_the_rows_of_memory_under_interference_are_those_of_the_results() -> None:
    page = (ROOT / "docs/guides/interference.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| `([\w-]+)` \| (\d+) \| ([\d.]+) \[(\d+), (\d+)\] \| `", page, re.MULTILINE)
    found = []
    for name in ("interference", "interference_others"):
        for episode in episodes_of(json.loads((ROOT / "results" / f"{name}.json").read_text())):
            condition = episode["task"].partition("-")[2]
            found.append((name, episode["agent"], condition, episode["status"] == "success"))
    shown = {"retrieval": "interference"}
    for agent, condition, *figures in rows:
        file = shown.get(agent, "interference_others")
        own = [success for *key, success in found if key == [file, agent, condition]]
        low, high = wilson_interval(sum(own), len(own))
        expected = [len(own), round(100 * sum(own) / len(own), 1), round(100 * low), round(100 * high)]
        assert [float(figure) for figure in figures] == expected, (agent, condition)
    assert len(rows) == 10


def test_the_rows_of_robomme_videos_are_those_of_the_results() -> None:
    page = (ROOT / "docs/guides/interference.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| `(k\d)` \| (\d+) \| (\d+) \[(\d+), (\d+)\] \| (\d+) \| (\d+) \|$", page, re.M)
    episodes = episodes_of(json.loads((ROOT / "results" / "interference_robomme.json").read_text()))
    for agent, condition, *figures in rows:
        own = {
            family: [
                e["status"] == "success"
                for e in episodes
                if (e["task"], e["agent"]) == (f"{family}-{condition}", agent)
            ]
            for family in ("VideoUnmask", "MoveCube")
        }
        both = [success for of_one in own.values() for success in of_one]
        low, high = wilson_interval(sum(both), len(both))
        rate = [len(both), *(round(100 * share) for share in (sum(both) / len(both), low, high))]
        assert [int(figure) for figure in figures] == [*rate, *map(sum, own.values())], (agent, condition)
    assert len(rows) == 12
