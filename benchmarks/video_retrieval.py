"""Chooses the gate for RoboMME's videos as earlier sessions, and says how often it is right, wrong and silent.

    python -m benchmarks.video_retrieval --weights runs/train --planner planner-robomme --out runs/interference/videos

--planner: the folder of a planner below --weights, whose vision tower embeds the frames. The gate is chosen on episodes
that RoboMME does not test, and the table is of its test episodes. Writes `gate.json`, for the option `gate` of
`memory_bank.retrieval:SessionMemory`, and `gate.md`. It needs RoboMME's package.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.session_retrieval import gate_table, outcome_of
from memory_bank.retrieval.calibration import Case, Outcome, choose_gate
from memory_bank.retrieval.gate import FILE_NAME
from planner.tower_embedding import tower
from predimem.core.progress import Bar
from predimem.core.types import Frame, History
from predimem.envs.interference.conditions import OWN, condition_of, draw_videos
from predimem.envs.interference.recordings import past_session
from predimem.envs.interference.videos import DISTRACTORS_FROM, FAMILIES, VideoPool
from predimem.envs.robomme import package
from predimem.rendering.vulkan import use_driver

CONDITIONS = ("k0", "k1", "k3", "k7", "k3-older", "k3-others", "k7-absent")
CHOSEN_FROM = DISTRACTORS_FROM + 1_000  # episodes that are neither trained on, nor tested, nor distractors
Embed = Callable[[Sequence[Frame]], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="folder of folders of weights")
    parser.add_argument("--planner", default="planner-robomme")
    parser.add_argument("--tasks", default="VideoUnmask,MoveCube")
    parser.add_argument("--sessions", default="runs/interference/sessions")
    parser.add_argument("--out", type=Path, default=Path("runs/interference/videos"))
    parser.add_argument("--episodes", type=int, default=20, help="of each task, to choose on and to count; up to 50")
    parser.add_argument("--pool", type=int, default=8, help="recorded videos of each task, for distractors")
    parser.add_argument("--image-px", type=int, default=128)
    given = parser.parse_args()
    package.check_installed()
    package.seed_of("test", given.episodes - 1)  # raises where there are not so many
    use_driver()
    embed = tower(given.planner, given.weights)
    videos = VideoPool(given.sessions, given.image_px, "fast")
    tasks = given.tasks.split(",")
    chosen_on = cases_of(videos, embed, tasks, CHOSEN_FROM, given.episodes, given.pool)
    seen = [s.embeddings for _, case in chosen_on for s in case.history.sessions if s.embeddings is not None]
    mean = np.concatenate(seen).mean(0)
    gates = {
        name: choose_gate([case for _, case in chosen_on], mean, weights)[0]
        for name, weights in {"views": (0.0,), "instructions": (1.0,), "both": (0.0, 0.25, 0.5, 0.75, 1.0)}.items()
    }
    given.out.mkdir(parents=True, exist_ok=True)
    both = gates["both"]
    both.save(given.out / FILE_NAME)
    numbers = f"text_weight {both.text_weight}, threshold {both.threshold}, margin {both.margin}"
    counted = cases_of(videos, embed, tasks, package.seed_of("test", 0), given.episodes, given.pool)
    outcomes: dict[str, list[tuple[str, Outcome]]] = {
        name: [(of, outcome_of(case, gate)) for of, case in counted] for name, gate in gates.items()
    }
    (given.out / "gate.md").write_text(gate_table(outcomes, CONDITIONS) + f"\n`both`: {numbers}.\n")
    print((given.out / "gate.md").read_text())


def cases_of(
    videos: VideoPool, embed: Embed, tasks: Sequence[str], first_seed: int, episodes: int, pool: int
) -> list[tuple[str, Case]]:
    """(condition, case) for every task, seed and condition."""
    known: dict[int, np.ndarray] = {}
    cases = []
    with Bar(len(tasks) * episodes, "episodes", "reading or recording") as bar:
        for task in tasks:
            for seed in range(first_seed, first_seed + episodes):
                view = videos.view(task, seed)
                now = embed(view.frames)[0]
                for condition in CONDITIONS:
                    drawn = draw_videos(task, FAMILIES, condition_of(condition), seed, pool)
                    sessions = []
                    for index, planned in enumerate(drawn.sessions):
                        own = planned.number == OWN
                        recorded = videos.lesson(task, seed) if own else videos.video(planned.family, planned.number)
                        if id(recorded) not in known:  # the pool keeps them, so that no other gets its id
                            known[id(recorded)] = embed(recorded.frames)
                        session = past_session(index, planned, recorded)
                        sessions.append(replace(session, embeddings=known[id(recorded)]))
                    history = History(tuple(sessions), drawn.robot, drawn.person)
                    cases.append((condition, Case(history, now, view.instruction)))
                bar.add(1)
    return cases


if __name__ == "__main__":
    main()
