"""Measures what the predictive head does for the planner: trainings with several weights of L_Pre, seeds and shares of
the demonstrations, replayed on held-out episodes and played in closed loop.

    python -m benchmarks.planner_head --config configs/studies/planner_head.yaml --workers 2
    python -m benchmarks.planner_head --config configs/studies/planner_head.yaml --only table

--only runs one piece: `train` the planners; `replay` held-out episodes to them; note their `states` at keyframes and
the errors of their predictions, and draw the states; `play` in closed loop; write the `table` of all that is there.
After Ctrl-C the same command goes on with the training or the episode that is missing.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.planner_head.config import HeadStudy, load_study
from predimem.core.faults import SetupError
from predimem.core.progress import say

TRAIN, REPLAY, STATES, PLAY, TABLE = "train", "replay", "states", "play", "table"


def run_piece(study: HeadStudy, piece: str, workers: int) -> None:
    """One of the pieces of a study; those that need another's results say so."""
    if piece == TRAIN:
        from benchmarks.planner_head.trainings import train_all

        train_all(study, workers)
    elif piece == REPLAY:
        from benchmarks.planner_head.replay import replay_all

        replay_all(study, workers)
    elif piece == STATES:
        from benchmarks.planner_head.pictures import draw_states
        from benchmarks.planner_head.states import look_into_all

        look_into_all(study, workers)
        for path in draw_states(study):
            say(str(path))
    elif piece == PLAY:
        from benchmarks.planner_head.trainings import trained
        from predimem.cli.evaluation import play_settings

        there = [training for training in trained(study) if training in study.played]
        if not there:
            raise ValueError(f"none of the {len(study.played)} planners that are to be played is trained: --only train")
        play_settings(study.evaluation(there, workers))
    else:
        from benchmarks.planner_head.table import write_table

        path = write_table(study)
        print(path.read_text())
        say(str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True, help="YAML file that says what the study is, see configs/studies/")
    parser.add_argument("--only", choices=(TRAIN, REPLAY, STATES, PLAY, TABLE), help="one piece; default: all of them")
    parser.add_argument("--workers", type=int, default=1, help="how many processes train, replay or play side by side")
    parser.add_argument("--out", help="folder for everything that the study writes; default: as in the config")
    given = parser.parse_args()
    if given.workers < 1:
        parser.error(f"--workers: expected at least 1, got {given.workers}")
    try:
        study = load_study(given.config, given.out)
        for piece in (given.only,) if given.only else (TRAIN, REPLAY, STATES, PLAY, TABLE):
            say(f"{piece}: {len(study.trainings)} planners in {study.out}")
            run_piece(study, piece, given.workers)
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command goes on")
    except (ValueError, OSError, SetupError) as error:
        sys.exit(f"planner_head: {error}")


if __name__ == "__main__":
    main()
