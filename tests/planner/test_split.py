"""Which episodes are trained on, and which are held out."""

from dataclasses import replace

from planner.split import split_episodes


def test_the_split_holds_out_the_highest_seeds_of_each_task(episodes):
    training, validation = split_episodes(episodes, 0.25)
    assert [e.seed for e in validation] == [1009, 1010, 1011]
    assert len(training) == 9


def test_a_share_of_the_training_is_that_with_the_lowest_seeds_of_each_task(episodes):
    other = [replace(episode, task="Rare-v0") for episode in episodes[6:9]]
    training, validation = split_episodes([*reversed(episodes), *other, *episodes], 0.25, 0.5)
    seeds = {task: [e.seed for e in training if e.task == task] for task in ("Rare-v0", "Squares-v0")}
    # 9 seeds are for training, of which half (4, rounded to even) are used, each with both of its episodes.
    assert seeds == {"Rare-v0": [1006], "Squares-v0": [s for s in range(1000, 1004) for _ in range(2)]}
    assert validation == split_episodes([*reversed(episodes), *other, *episodes], 0.25)[1]
    tiny, _ = split_episodes(episodes, 0.25, 0.01)
    assert [e.seed for e in tiny] == [1000]
    assert split_episodes(episodes, 1.0, 0.5) == ([], episodes)


def test_all_episodes_of_a_seed_are_held_out_together(episodes):
    training, validation = split_episodes([*episodes, *episodes], 0.25)
    assert len(validation) == 6 and not {e.seed for e in training} & {e.seed for e in validation}


def test_what_was_made_from_held_out_episodes_is_not_trained_on(episodes):
    rare = [replace(episode, task="Rare-v0") for episode in episodes[:2]]

    def edited(seed, *sources, task="Squares-v0"):
        return replace(episodes[0], task=task, seed=seed, metadata={"edited_from": list(sources)})

    fine = [
        edited(2000, 1000, 1008),
        edited(2001, "Squares-v0", 1003),
        edited(1003, "Squares-v0", 1003, task="Rare-v0"),
    ]
    leaking = [edited(2002, 1000, 1009), edited(2003, "Squares-v0", 1011, task="Rare-v0")]
    training, validation = split_episodes([*fine, *leaking, *rare, *episodes], 0.25)
    assert [e.seed for e in validation if e.task == "Squares-v0"] == [1009, 1010, 1011]
    assert [e.seed for e in training if e.metadata.get("edited_from")] == [1003, 2000, 2001]
    assert len(training) == 9 + 2 + 3 and not any(e.task == "Rare-v0" for e in validation)
    few, _ = split_episodes([*fine, *episodes], 0.25, 0.5)
    assert [e.seed for e in few] == [1000, 1001, 1002, 1003, 1003, 2001], "those of untrained images are left out, too"


def test_what_was_made_from_episodes_that_are_not_there_is_split_by_its_own_seeds(episodes):
    alone = [replace(episode, metadata={"edited_from": ["Other-v0", 7]}) for episode in episodes]
    assert split_episodes(alone, 0.25) == (alone[:9], alone[9:])
