"""How often the gate is right, wrong and silent, and what the recall planner answers, over many drawn histories.

    python -m benchmarks.session_retrieval --reader predimem/weights/interference-reader --out runs/interference/offline

No episode is played: the question is asked at the first view of a test, of recorded sessions of evaluation seeds. The
other gates have their numbers from the same training seeds as the gate of both: instructions alone, views alone, and
views after a projection that was learned from all families, or from all but the one that is asked about. With neutral
words every test has one instruction, which tells nothing. Writes `gate.md` and `answers.csv`, which `predimem analyze
interference` reads; in it `retrieval-views` is the row with the gate of views alone.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from memory_bank.retrieval import SELECTIONS, Gate, decide, rank
from memory_bank.retrieval.calibration import Case, Outcome, choose_gate, outcome
from planner.recall.examples import Shown, tokens_of
from planner.recall.model import RecallModel, batch_of, load_model
from predimem.envs.interference.conditions import CONDITIONS
from predimem.envs.interference.families import FAMILIES
from predimem.envs.interference.sessions import FIRST_SEEDS
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.run.machine import machine, revision
from predimem.pipelines.interference import GATE_CONDITIONS, cases_of, embedded_pool, example, views_gate

FRAMES = 16
NEUTRAL = "Do it the way it has to be done."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", type=Path, default=Path("predimem/weights/interference-reader"))
    parser.add_argument("--sessions", default="runs/interference/sessions")
    parser.add_argument("--out", type=Path, default=Path("runs/interference/offline"))
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--episodes", type=int, default=40, help="of each family and condition")
    parser.add_argument("--pool", type=int, default=8, help="recorded sessions of each value, evaluation")
    parser.add_argument("--training-pool", type=int, default=10, help="the same of those that gates are chosen on")
    parser.add_argument("--image-px", type=int, default=128)
    given = parser.parse_args()
    torch.set_num_threads(1)
    conditions = given.conditions.split(",")
    both = Gate.read(str(given.reader / "gate.json"))
    training = embedded_pool(given.sessions, given.image_px, given.training_pool, "training")
    cases = cases_of(training, GATE_CONDITIONS, FIRST_SEEDS["training"] + 9_000, 280)
    mean, frames, families = np.array(both.mean), training.all_frames(), list(FAMILIES.values())
    instructions_alone = choose_gate(cases, mean, (1.0,))[0]
    views_alone = choose_gate(cases, mean, (0.0,))[0]
    projected = views_gate(training, frames, cases, families)[0]
    others = {
        family.name: views_gate(training, frames, cases, [other for other in families if other is not family])[0]
        for family in families
    }
    gates = {
        "views and instructions": lambda family: both,
        "instructions alone": lambda family: instructions_alone,
        "views alone": lambda family: views_alone,
        "views, projected": lambda family: projected,
        "views, projected by other families": lambda family: others[family],
    }
    pool = embedded_pool(given.sessions, given.image_px, given.pool, "evaluation")
    drawn = {
        (family, condition): [pool.case(of, condition, FIRST_SEEDS["evaluation"] + i) for i in range(given.episodes)]
        for condition in conditions
        for family, of in FAMILIES.items()
    }
    given.out.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, list[tuple[str, Outcome]]] = {
        name: [
            (condition, outcome_of(case, gate_of(family)))
            for (family, condition), asked in drawn.items()
            for case, _ in asked
        ]
        for name, gate_of in gates.items()
    }
    outcomes["views and instructions, neutral words"] = [
        (condition, outcome_of(replace(case, instruction=NEUTRAL), both))
        for (_, condition), asked in drawn.items()
        for case, _ in asked
    ]
    (given.out / "gate.md").write_text(gate_table(outcomes, conditions) + f"\n{made_by()}\n")
    print((given.out / "gate.md").read_text())
    model = load_model(given.reader)
    with (given.out / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("family", "variant", "condition", "episode", "success"))
        for (family, condition), asked in drawn.items():
            rows = {select: (select, both) for select in SELECTIONS}
            for row, (select, gate) in (rows | {"retrieval-views": ("retrieval", views_alone)}).items():
                right = answers_right(model, gate, asked, select, FAMILIES[family].answers)
                writer.writerows((family, row, condition, i, int(ok)) for i, ok in enumerate(right))
    print(given.out / "answers.csv")


def made_by() -> str:
    """The revision and the machine, in a sentence."""
    code, changed = revision()
    return f"Revision {(code or 'unknown')[:7]}{' with changes' if changed else ''}, {machine()['cpu']}."


def outcome_of(case: Case, gate: Gate) -> Outcome:
    return outcome(case, rank(case.history, case.view, case.instruction, gate), gate)


def gate_table(outcomes: Mapping[str, Sequence[tuple[str, Outcome]]], conditions: Sequence[str]) -> str:
    """Markdown: for each gate and condition the shares in %, and Wilson's 95 % interval of what is right.

    outcomes: (condition, outcome) of all that each gate was asked.
    """
    lines = ["| Gate | Condition | n | Right | Wrong | Silent |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for name, of_gate in outcomes.items():
        for condition in conditions:
            total = Counter(what for of, what in of_gate if of == condition)
            n = sum(total.values())
            low, high = (100 * end for end in wilson_interval(total["right"], n))
            shares = [100 * total[what] / n for what in ("right", "wrong", "silent")]
            right = f"{shares[0]:.1f} [{low:.0f}, {high:.0f}]"
            lines.append(f"| {name} | `{condition}` | {n} | {right} | {shares[1]:.1f} | {shares[2]:.1f} |")
    return "\n".join(lines) + "\n"


def answers_right(
    model: RecallModel, gate: Gate, asked: list[tuple[Case, int]], select: str, answers: tuple[str, ...]
) -> list[bool]:
    examples = []
    for case, _ in asked:
        if select != "retrieval":
            examples.append(example(case, select, FRAMES))
            continue
        admitted = decide(rank(case.history, case.view, case.instruction, gate), gate).admitted
        sessions = [] if admitted is None else [admitted.session]
        shown = [Shown(s.instruction, s.embeddings) for s in sessions if s.embeddings is not None]
        examples.append(tokens_of(shown, case.view, case.instruction))
    with torch.inference_mode():
        chosen = model(*batch_of(examples)).argmax(-1).tolist()
    return [model.config.answers[i] == answers[value] for i, (_, value) in zip(chosen, asked, strict=True)]


if __name__ == "__main__":
    main()
