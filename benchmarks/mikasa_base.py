"""Success against the delay on MIKASA-Base: the memory bank, a GRU and frame stacking, trained and played alike.

    python -m benchmarks.mikasa_base                  # trains and plays what runs/mikasa_base lacks, then reports
    python -m benchmarks.mikasa_base --report-only    # docs/benchmarks/mikasa_base.md and docs/images/mikasa_base.png

After Ctrl-C the same command goes on with the next training.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.files import write_json, write_text
from predimem.core.progress import say
from predimem.envs.base.tasks import DELAYS

FIRST_SEED = 950_000  # evaluation seeds that were not looked at while the heads were made
FAMILIES = ("TMaze", "MemoryLength", "VisualMatch")
AGENTS = {
    "bank": "memory bank, learned nomination",
    "bank-novelty": "memory bank, keyframes by novelty",
    "gru": "GRU",
    "frame-stack": "the last 16 frames",
    "no-keyframes": "the last 5 frames, the bank without keyframes",
}
CHANCE = {"TMaze": 0.5, "MemoryLength": 0.5, "VisualMatch": 1 / 3}
TITLES = {"TMaze": "Passive T-Maze", "MemoryLength": "MemoryLength, 1 bit", "VisualMatch": "Passive Visual Match"}
Z = 1.96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each agent")
    parser.add_argument("--episodes", type=int, default=50, help="of each training and delay")
    parser.add_argument("--out", type=Path, default=Path("runs/mikasa_base"))
    parser.add_argument("--report-only", action="store_true")
    given = parser.parse_args()
    if not given.report_only:
        for family in given.families.split(","):
            measure(family, given.agents.split(","), given.seeds, given.episodes, given.out)
    report(given.out)


def measure(family: str, agents: Sequence[str], seeds: int, episodes: int, out: Path) -> None:
    """Train and play what is not there yet, a JSON file for each training."""
    from actor.memory_head.agent import weights_name
    from predimem.pipelines.base_heads import success_rate, teach, train_one

    missing = [
        (seed, name)
        for seed, name in itertools.product(range(seeds), agents)
        if not _file(out, family, name, seed).is_file()
    ]
    if not missing:
        return
    lessons, actions = teach([f"{family}{delay}" for delay in DELAYS])
    for seed, name in missing:
        began_s = time.perf_counter()
        head = train_one(family, lessons, actions, name, seed)
        trained_s = time.perf_counter() - began_s
        head.save(out / f"weights-{seed}" / weights_name(family, name))
        played = range(FIRST_SEED, FIRST_SEED + episodes)
        rates = {delay: success_rate(head, f"{family}{delay}", played) for delay in DELAYS}
        record = {"family": family, "agent": name, "seed": seed, "parameters": head.parameters, "episodes": episodes}
        record |= {"steps": head.trained["steps"], "training_s": round(trained_s, 1), "success": rates}
        write_json(_file(out, family, name, seed), record)
        say(f"{family} {name} seed {seed}: {' '.join(f'{rate:.2f}' for rate in rates.values())}, {trained_s:.0f} s")


def report(out: Path) -> None:
    """The table and the plot of all that is there."""
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    if not records:
        raise SystemExit(f"there is nothing in {out} yet: run without --report-only")
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        grouped[record["family"]][record["agent"]].append(record)
    families = [family for family in FAMILIES if family in grouped]
    _plot({family: grouped[family] for family in families}, Path("docs/images/mikasa_base.png"))
    steps = ", ".join(f"{_steps(grouped[f])} for {TITLES[f]}" for f in families)
    parts = [HEAD.format(steps=steps, episodes=_episodes(records), first_seed=FIRST_SEED)]
    parts += [_table(family, grouped[family]) for family in families]
    write_text(Path("docs/benchmarks/mikasa_base.md"), "\n".join(parts))
    print("docs/benchmarks/mikasa_base.md, docs/images/mikasa_base.png")


def _table(family: str, agents: dict[str, list[dict[str, Any]]]) -> str:
    lines = [
        f"## {TITLES[family]}",
        "",
        f"Guessing at the end succeeds in {100 * CHANCE[family]:.0f} %.",
        "",
        f"| Agent | Memory | Parameters | Trainings | {' | '.join(f'{d:,}' for d in DELAYS)} |",
        f"| --- | --- | ---: | ---: |{' ---: |' * len(DELAYS)}",
    ]
    for name in (n for n in AGENTS if n in agents):
        cells = [_cell(*interval(_rates(agents[name], delay), _episodes(agents[name]))) for delay in DELAYS]
        head = f"| `{name}` | {AGENTS[name]} | {agents[name][0]['parameters']:,} | {len(agents[name])} |"
        lines.append(f"{head} {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def interval(rates: Sequence[float], episodes: int) -> tuple[float, float, float]:
    """(mean, low, high) of success over trainings, 95 %: Wilson's interval of all episodes, widened where the trainings
    differ by more than chance (the variance between them over that of a binomial, at least 1)."""
    n, mean = len(rates) * episodes, float(np.mean(rates))
    by_chance = max(mean * (1 - mean) / episodes, 1e-12)
    spread = float(np.var(rates, ddof=1)) / by_chance if len(rates) > 1 and 0 < mean < 1 else 1.0
    n_effective = n / max(1.0, spread)
    z2 = Z**2 / n_effective
    centre = (mean + z2 / 2) / (1 + z2)
    half = Z * np.sqrt(mean * (1 - mean) / n_effective + z2 / (4 * n_effective)) / (1 + z2)
    return mean, max(0.0, centre - half), min(1.0, centre + half)


def _cell(mean: float, low: float, high: float) -> str:
    return f"{100 * mean:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def _plot(grouped: dict[str, dict[str, list[dict[str, Any]]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(grouped), figsize=(4.2 * len(grouped), 3.6), sharey=True, squeeze=False)
    for axis, (family, agents) in zip(axes[0], grouped.items(), strict=True):
        for n, name in enumerate(AGENTS):
            if name not in agents:
                continue
            values = [interval(_rates(agents[name], delay), _episodes(agents[name])) for delay in DELAYS]
            means, lows, highs = np.array(values).T
            places = np.array(DELAYS) * (1 + 0.04 * (n - 2))  # side by side, so that none hides another
            axis.errorbar(places, means, [means - lows, highs - means], marker="o", ms=4, capsize=2, label=name)
        axis.axhline(CHANCE[family], color="0.6", ls=":", lw=1)
        axis.set(xscale="log", title=TITLES[family], xlabel="delay in steps", ylim=(-0.03, 1.05))
    axes[0][0].set_ylabel("success")
    axes[0][0].legend(fontsize=8, loc="center right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _file(out: Path, family: str, name: str, seed: int) -> Path:
    return out / f"{family}.{name}.{seed}.json"


def _rates(records: Sequence[dict[str, Any]], delay: int) -> list[float]:
    return [record["success"][str(delay)] for record in records]


def _episodes(records: Sequence[dict[str, Any]]) -> int:
    return records[0]["episodes"]


def _steps(agents: dict[str, list[dict[str, Any]]]) -> str:
    return f"{next(iter(agents.values()))[0]['steps']:,}"


HEAD = """# MIKASA-Base: success against the delay

Made by `python -m benchmarks.mikasa_base`. [The guide](../guides/mikasa-base.md) says what tasks and agents are.

All agents learn by imitation from the same episodes of the same teacher, with the same batches and the same number of
optimiser steps ({steps}); one training covers all delays of a task. Columns are delays in steps. A cell is the success
in % over all trainings of {episodes} episodes each from seed {first_seed} on, with its 95 % interval (Wilson; wider
where trainings differ by more than chance). The heads of the memory bank were designed on Passive T-Maze and Passive
Visual Match, with a look at evaluation seeds from 900000 on; the others were not tuned.

![Success against the delay, for each task and agent](../images/mikasa_base.png)
"""


if __name__ == "__main__":
    main()
