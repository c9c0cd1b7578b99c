"""Works the tables of docs/results.md out again from the episodes of results/*.json.

    python -m benchmarks.results_page            # writes them into the page, between its `<!-- table: NAME -->` marks

`tests/test_docs.py` holds the page to these tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.long_pauses import table as long_pauses
from benchmarks.mikasa_colours import table as mikasa_colours
from benchmarks.mikasa_table import Counts, by_family, counts_of, rate, table
from benchmarks.robomme_mistakes import table as mistakes
from benchmarks.robomme_table import SKILLS as ROBOMME_SKILLS
from benchmarks.robomme_table import table as robomme_table
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.unseen import read_outcomes, rows_of
from predimem.evaluation.report.summary import compare, summarise_means
from predimem.evaluation.report.unseen import table_of
from predimem.evaluation.run.config import read_results

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

LEARNED = (
    ("arena_learned", "predimem"),
    ("arena_oracle_memory", "oracle-memory"),
    ("arena_learned_ablations", "no-head"),
    ("arena_learned_ablations", "no-keyframes"),
    ("arena_learned_memories", "native-video"),
    ("arena_learned_memories", "text-memory"),
    ("arena_learned_memories", "no-robot-data"),
    ("arena_reactive", "reactive"),
)
SKILLS = (
    ("arena_planners", "predimem-skills"),
    ("arena_planners", "no-head-skills"),
    ("arena_planners", "no-keyframes-skills"),
    ("arena_memories", "native-video-skills"),
    ("arena_memories", "text-memory-skills"),
    ("arena_no_robot_data", "no-robot-data-skills"),
)
OTHERS = (
    ("arena_expert_hand", "oracle-memory-expert"),
    ("arena_expert_hand", "predimem-expert"),
    ("arena_slips", "oracle-memory-skills-slips"),
    ("arena_slips", "predimem-skills-slips"),
)
SCRIPTS = (("arena_scripts", "oracle"), ("arena_scripts", "script"), ("arena_random", "random"))
OWN_ROUND = (
    ("own_round_learned", "own-round"),
    ("own_round_skills", "own-round-skills"),
    ("own_round_slips", "own-round-skills-slips"),
    ("own_round_slips", "predimem-skills-slips"),
)
CORRECTED = (("corrected_actor", "corrected"), ("corrected_actor", "oracle-memory-corrected"))
CORRECTED_PLANNER = (
    ("arena_corrected", "predimem-corrected"),
    ("arena_corrected_video", "native-video-corrected"),
    ("arena_corrected_text", "text-memory-corrected"),
    ("arena_corrected_ablations", "no-keyframes-corrected"),
    ("arena_corrected_no_head", "no-head-corrected"),
    ("arena_corrected_skills", "predimem-corrected-skills"),
    ("arena_corrected_skills", "predimem-corrected-skills-slips"),
)
TRAINING_SEEDS = (
    ("arena_corrected_no_head", "no-head-corrected"),
    ("arena_training_seeds", "no-head-corrected-seed-1"),
    ("arena_training_seeds", "no-head-corrected-seed-2"),
)
SECOND_ROUND = (("second_round_learned", "corrected-both"), ("second_round_skills", "corrected-both-skills"))
LONG = (
    ("arena_long", "oracle-memory-skills"),
    ("arena_long", "predimem-long"),
    ("arena_long", "native-video-long"),
    ("arena_long_text", "text-memory-long"),
    ("arena_long_recent", "no-keyframes-long"),
    ("arena_long", "predimem-long-driven"),
)
LONG_NAMED = (("arena_long_named", "predimem-long-driven"), ("arena_long_named", "native-video-long-driven"))
WINDOWS = {"window-1": "1", "window-2": "2", "full": "3", "window-5": "5", "window-8": "8"}
CAPACITIES = {"keyframes-2": "2", "keyframes-4": "4", "keyframes-8": "8", "full": "unlimited"}
LATENCIES = {"latency-0": "0.05", "full": "0.2", "latency-1": "1", "latency-2": "2", "latency-4": "4"}
SIZES = {"size-small": "1 x 128", "full": "3 x 256", "size-large": "6 x 512"}
REMEMBER_COLOR = ("predimem", "no-head", "no-keyframes", "reactive", "oracle-subtask")
BEFORE = ", before"  # follows an agent's name: from before the change that the table is about
STOCK = f"predimem{BEFORE}, stock meshes"
MIKASA_TOUCH = ("predimem", "oracle-memory", "predimem-expert", f"predimem{BEFORE}", f"oracle-memory{BEFORE}", STOCK)
MIKASA_FURTHER = (("mikasa_touch", "predimem"), ("mikasa_touch_oracle", "oracle-memory"))
MIKASA_FIRST = (("mikasa_first_training", "predimem"), ("mikasa_first_training_oracle", "oracle-memory"))
MIKASA_MEMORIES = (
    MIKASA_FIRST[0],
    ("mikasa_touch_video", "native-video"),
    ("mikasa_touch_text", "text-memory"),
    ("mikasa_touch_no_keyframes", "no-keyframes"),
    ("mikasa_touch_reactive", "reactive"),
)
MIKASA_SEQUENCES = (("mikasa_sequences", "predimem"), ("mikasa_sequences_oracle", "oracle-memory"))
MIKASA_GATHER = (("mikasa_gather", "predimem"), ("mikasa_gather_oracle", "oracle-memory"))
ROBOMME_LEARNED = (
    ("robomme_learned_oracle", "oracle-memory"),
    ("robomme_learned", "predimem"),
    ("robomme_learned_video", "native-video"),
    ("robomme_learned_framesamp", "framesamp"),
    ("robomme_learned_no_keyframes", "no-keyframes"),
    ("robomme_learned_reactive", "reactive"),
)
ROBOMME_PLANNERS = ROBOMME_LEARNED[1:5]
CONTINUED = {which: "robomme_learned_15_to_19" for which in ROBOMME_LEARNED[:5]}  # later episodes of the same agents
CATEGORIES = ("transferring", "occlusion", "counting", "sequence")

Which = tuple[str, str]  # a results file without its ending, an agent config of it


@cache
def results_of(name: str) -> dict[str, Any]:
    return read_results(ROOT / "results" / f"{name}.json")


def counts_in(*names: str) -> Counts:
    """Those of several results files, in each of which other agents played."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for name in names:
        for task, cells in counts_of(results_of(name)).items():
            counts.setdefault(task, {}).update(cells)
    return counts


def mikasa_touch() -> Counts:
    counts = counts_in("mikasa_touch", "mikasa_touch_oracle", "mikasa_touch_expert")
    for file, agent, name in (
        *((file, agent, f"{agent}{BEFORE}") for file, agent in MIKASA_FIRST),
        ("mikasa_first_training_stock", "predimem", STOCK),
    ):
        for task, cells in counts_in(file).items():
            counts[task][name] = cells[agent]
    return counts


def mikasa_gather() -> Counts:
    counts = counts_in(*(file for file, _ in MIKASA_GATHER))
    for file, agent in MIKASA_SEQUENCES:
        before = counts_in(file)
        for task, cells in counts.items():
            cells[f"{agent}{BEFORE}"] = before[task][agent]
    return counts


@cache
def episodes(which: Which) -> list[dict[str, Any]]:
    files = (which[0], *([CONTINUED[which]] if which in CONTINUED else []))
    records = [record for file in files for record in episodes_of(results_of(file))]
    return [record | {"metrics": {}} for record in records if record["agent"] == which[1]]


@cache
def means(which: Which, category: str = "") -> dict[str, Any]:
    """TSR and CSR with their intervals, over all tasks or over those of one category."""
    members = results_of(which[0])["categories"][category]["tasks"] if category else None
    records = [record for record in episodes(which) if members is None or record["task"] in members]
    return summarise_means(records, [which[1]], list(dict.fromkeys(record["task"] for record in records)))[which[1]]


def tsr(cell: dict[str, Any]) -> str:
    return _rate(cell["success"], cell["ci_low"], cell["ci_high"])


def csr(cell: dict[str, Any]) -> str:
    return _rate(cell["csr"], cell["csr_ci_low"], cell["csr_ci_high"])


def _rate(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} [{100 * low:.0f}, {100 * high:.0f}]"


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in cells)


def overall(which: Sequence[Which]) -> str:
    lines = []
    for file, agent in which:
        found, link = means((file, agent)), f"[{file}](../results/{file}.json)"
        played = (*weights(file, agent), results_of(file)["revision"][:7], link)
        lines.append((f"`{agent}`", found["n"], tsr(found), csr(found), *played))
    head = ("agent config", "episodes", "TSR, % [95 %]", "CSR, % [95 %]", "planner", "actor", "revision", "file")
    return markdown(head, lines)


def spread(which: Sequence[Which]) -> str:
    """Trainings that differ in their seed alone, one after the other from 0 on, in the same episodes."""
    found = [means(one) for one in which]
    lines = [
        (seed, f"`{one[1]}`", cell["n"], f"{100 * cell['success']:.1f}", f"{100 * cell['csr']:.1f}", weights(*one)[0])
        for seed, (one, cell) in enumerate(zip(which, found, strict=True))
    ]
    values = ([100 * cell[name] for cell in found] for name in ("success", "csr"))
    moments = (f"{mean(some):.1f} ± {stdev(some):.1f}" for some in values)
    head = ("training seed", "agent config", "episodes", "TSR, %", "CSR, %", "planner")
    return markdown(head, [*lines, ("mean ± standard deviation", "", sum(cell["n"] for cell in found), *moments, "")])


def weights(file: str, agent: str) -> tuple[str, str]:
    """The hashes of a row's planner and actor: what tells rows of older weights. `-` for one without weights."""
    row = results_of(file)["provenance"].get("agent_configs", {}).get(agent)
    if row is None:  # an agent without a config, such as the script
        return "-", "-"
    return row["weights"].get(row["planner"], "-")[:8], row["weights"].get(row["actor"], "-")[:8]


def by_category(which: Sequence[Which]) -> str:
    lines = ((f"`{one[1]}`", means(one)["n"] // 26, *(tsr(means(one, c)) for c in CATEGORIES)) for one in which)
    return markdown(("agent config", "episodes a task", *CATEGORIES), lines)


def by_task(oracle: Which, script: Which) -> str:
    """What each task allows, and what works in it without looking."""
    figures = ("`oracle`, successes", "`oracle`, mean steps", "`script`, successes", "`script`, CSR, %")
    head = ("task", "episodes", *figures)
    return markdown(head, (_task(name, oracle, script) for name in dict.fromkeys(r["task"] for r in episodes(oracle))))


def _task(name: str, oracle: Which, script: Which) -> tuple[object, ...]:
    best, blind = ([r for r in episodes(which) if r["task"] == name] for which in (oracle, script))
    steps = sum(r["steps"] for r in best) / len(best)
    blind_csr = summarise_means(blind, [script[1]], [name])[script[1]]["csr"]
    solved, blindly = (sum(r["status"] == "success" for r in records) for records in (best, blind))
    return (name, len(best), solved, f"{steps:.0f}", blindly, f"{100 * blind_csr:.0f}")


def pairs(pairings: Sequence[tuple[Which, Which]]) -> str:
    head = ("first", "second", "pairs", "only first succeeds", "only second", "p", "CSR, first minus second [95 %]")
    return markdown(head, (_pair(first, second) for first, second in pairings))


def _pair(first: Which, second: Which) -> tuple[object, ...]:
    name = second[1] + (BEFORE if second[1] == first[1] else "")
    records = [*episodes(first), *(record | {"agent": name} for record in episodes(second))]
    tasks = list(dict.fromkeys(record["task"] for record in records))
    found = compare(records, tasks, [first[1], name])["results"]["all tasks"][name]
    low, high = 100 * found["csr_difference_ci_low"], 100 * found["csr_difference_ci_high"]
    difference = f"{100 * found['csr_difference']:+.1f} [{low:+.0f}, {high:+.0f}]"
    counts = (found["n"], found["only_reference"], found["only_other"], f"{found['p_value']:.1g}")
    return (f"`{first[1]}`", f"`{name}`", *counts, difference)


def study(file: str, quantity: str, values: dict[str, str]) -> str:
    lines = []
    for agent, value in values.items():
        found = means((file, agent))
        lines.append((value, f"`{agent}`", found["n"], tsr(found), csr(found)))
    return markdown((quantity, "agent config", "episodes", "TSR, % [95 %]", "CSR, % [95 %]"), lines)


def harness() -> str:
    """What MIKASA-Robo's own code counted: the files of `predimem harness`."""
    lines = []
    for path in sorted((ROOT / "results" / "harness").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        task, agent = found["env_id"], path.stem.removeprefix(f"{found['env_id']}.")
        counted = rate(sum(found["successes"]), found["n_episodes"])
        link = f"[{task.removesuffix('-VLA-v0')}](../results/harness/{path.name})"
        lines.append((link, f"`{agent}`", counted, found["start_seed"], found["revision"][:7]))
    return markdown(("task", "agent config", "successes [95 %]", "first seed", "revision"), lines)


def unseen(*files: str) -> str:
    """What each condition of `configs/eval/arena_unseen.yaml` costs."""
    head, *lines = table_of(rows_of(read_outcomes([ROOT / "results" / f"{file}.json" for file in files])))
    return markdown(head, ((f"`{agent}`", *cells) for agent, *cells in lines))


def planner_figures(which: Sequence[Which]) -> str:
    head = (
        *("agent config", "episodes", "right at switches, %", "right elsewhere, %", "early, %", "late, %", "never, %"),
        *("delay, s", "false starts", "keyframe precision, %", "keyframe recall, %"),
    )
    return markdown(head, (_planner(file, agent) for file, agent in which))


def _planner(file: str, agent: str) -> tuple[object, ...]:
    found = results_of(file)["diagnosis"][agent]
    figures = found["planner"]
    shares = ("accuracy_boundary", "accuracy_inside", "premature", "late", "missed")
    kept = ("keyframe_precision", "keyframe_recall")
    percent = {name: f"{100 * figures[name]:.1f}" for name in shares}
    percent |= {name: f"{100 * figures[name]:.1f}" if figures["keyframes"] else "-" for name in kept}
    middle = (f"{figures['delay_median_s']:.2f}", figures["false_starts"])
    return (f"`{agent}`", found["n"], *(percent[name] for name in shares), *middle, *(percent[name] for name in kept))


FULL, WITH_SKILLS = LEARNED[0], SKILLS[0]
AFTER_ROUNDS, VIDEO_AFTER, TEXT_AFTER, RECENT_AFTER, NO_HEAD_AFTER, SKILLS_AFTER, SLIPS_AFTER = CORRECTED_PLANNER
TO_CORRECTED_PLANNER = [
    (CORRECTED[0], AFTER_ROUNDS),
    (FULL, AFTER_ROUNDS),
    (AFTER_ROUNDS, VIDEO_AFTER),
    (AFTER_ROUNDS, TEXT_AFTER),
    (AFTER_ROUNDS, RECENT_AFTER),
    (AFTER_ROUNDS, NO_HEAD_AFTER),
    (VIDEO_AFTER, RECENT_AFTER),
    (TEXT_AFTER, RECENT_AFTER),
    (WITH_SKILLS, SKILLS_AFTER),
    (OWN_ROUND[3], SLIPS_AFTER),
]
TABLES: dict[str, Callable[[], str]] = {
    "learned": lambda: overall(LEARNED),
    "learned-categories": lambda: by_category(LEARNED),
    "learned-pairs": lambda: pairs([(FULL, other) for other in LEARNED[1:]]),
    "skills": lambda: overall(SKILLS),
    "skills-categories": lambda: by_category(SKILLS),
    "skills-pairs": lambda: pairs([(WITH_SKILLS, other) for other in SKILLS[1:]]),
    "planners": lambda: planner_figures([FULL, *SKILLS[:5]]),
    "others": lambda: overall(OTHERS),
    "others-pairs": lambda: pairs([OTHERS[0:2], OTHERS[2:4]]),
    "corrected": lambda: overall(CORRECTED),
    "corrected-pairs": lambda: pairs([(FULL, CORRECTED[0]), (LEARNED[1], CORRECTED[1])]),
    "corrected-planner": lambda: overall(CORRECTED_PLANNER),
    "corrected-planner-categories": lambda: by_category(CORRECTED_PLANNER),
    "corrected-planner-pairs": lambda: pairs(TO_CORRECTED_PLANNER),
    "training-seeds": lambda: spread(TRAINING_SEEDS),
    "training-seeds-pairs": lambda: pairs(list(combinations(TRAINING_SEEDS, 2))),
    "own-round": lambda: overall(OWN_ROUND),
    "own-round-pairs": lambda: pairs([(FULL, OWN_ROUND[0]), (WITH_SKILLS, OWN_ROUND[1]), (OWN_ROUND[3], OWN_ROUND[2])]),
    "second-round": lambda: overall(SECOND_ROUND),
    "second-round-pairs": lambda: pairs([(CORRECTED[0], SECOND_ROUND[0]), (WITH_SKILLS, SECOND_ROUND[1])]),
    "scripts": lambda: overall(SCRIPTS),
    "scripts-categories": lambda: by_category(SCRIPTS),
    "scripts-tasks": lambda: by_task(*SCRIPTS[:2]),
    "unseen": lambda: unseen("unseen_skills", "unseen_varied", "unseen_actor"),
    "long": lambda: overall(LONG),
    "long-pairs": lambda: pairs([*((LONG[1], other) for other in LONG[2:5]), (LONG[5], LONG[1])]),
    "long-pauses": lambda: long_pauses([record for planner in LONG for record in episodes(planner)]),
    "long-named": lambda: overall(LONG_NAMED),
    "long-named-pairs": lambda: pairs([(LONG_NAMED[0], LONG_NAMED[1]), (LONG_NAMED[0], LONG[1])]),
    "long-named-pauses": lambda: long_pauses([record for planner in LONG_NAMED for record in episodes(planner)]),
    "windows": lambda: study("arena_windows", "timesteps", WINDOWS),
    "sizes": lambda: study("arena_sizes", "layers x MLP width", SIZES),
    "capacities": lambda: study("arena_studies", "keyframes", CAPACITIES),
    "remember-color": lambda: table(counts_in("remember_color", "remember_color_ablations"), REMEMBER_COLOR),
    "harness": harness,
    "mikasa-touch": lambda: table(mikasa_touch(), MIKASA_TOUCH),
    "mikasa-touch-memories": lambda: by_family(
        counts_in(*(file for file, _ in MIKASA_MEMORIES)), [agent for _, agent in MIKASA_MEMORIES]
    ),
    "mikasa-touch-pairs": lambda: pairs([*zip(MIKASA_FURTHER, MIKASA_FIRST, strict=True), MIKASA_FURTHER]),
    "mikasa-touch-memories-pairs": lambda: pairs([(MIKASA_MEMORIES[0], other) for other in MIKASA_MEMORIES[1:]]),
    "mikasa-sequences": lambda: table(
        counts_in(*(file for file, _ in MIKASA_SEQUENCES)), [agent for _, agent in MIKASA_SEQUENCES]
    ),
    "mikasa-sequences-seeds": lambda: mikasa_colours(
        [record for which in MIKASA_SEQUENCES for record in episodes(which)]
    ),
    "mikasa-gather": lambda: table(mikasa_gather(), [a + w for w in ("", BEFORE) for _, a in MIKASA_GATHER]),
    "mikasa-gather-pairs": lambda: pairs([*zip(MIKASA_GATHER, MIKASA_SEQUENCES, strict=True)]),
    "robomme": lambda: robomme_table(counts_of(results_of("robomme"))),
    "robomme-pairs": lambda: pairs([(("robomme", ROBOMME_SKILLS[1]), ("robomme", one)) for one in ROBOMME_SKILLS[2:]]),
    "robomme-learned": lambda: robomme_table(
        counts_of({"episodes": [record for planner in ROBOMME_LEARNED for record in episodes(planner)]})
    ),
    "robomme-learned-pairs": lambda: pairs([(ROBOMME_LEARNED[1], other) for other in ROBOMME_LEARNED[2:]]),
    "robomme-learned-mistakes": lambda: mistakes(
        [record for planner in ROBOMME_PLANNERS for record in episodes(planner)], "agent"
    ),
    "robomme-learned-mistakes-tasks": lambda: mistakes(episodes(ROBOMME_LEARNED[1]), "task"),
    "latencies": lambda: study("arena_studies", "S2's latency, s", LATENCIES),
}


def filled(page: str) -> str:
    """The page with its tables made afresh. Raises KeyError for the mark of an unknown table."""
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}\n{match[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
