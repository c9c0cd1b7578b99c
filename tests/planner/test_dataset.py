"""From episodes to the SFT JSONL."""

from __future__ import annotations

import base64
import io
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from memory_bank import MemoryConfig
from planner.dataset import DatasetConfig, SampleMaker, told_instructions
from planner.parsing import parse_answer
from planner.prompt import PromptConfig, render_prompt
from planner.replay import Replay
from planner.training_data import equally_long, write_jsonl, write_training_data, write_validation_data
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.frames import EpisodeError
from predimem.core.paraphrases import read_paraphrases
from tests.planner.builders import COLOURS, MEMORY, PROMPT, make_episode

PLAIN = DatasetConfig(phase_weights={"watch": 0.15, "wait": 0.15, "*": 0.7}, counterfactual="cue", cue_subtask="watch")


def draw(episodes, config, count=60, memory=MEMORY):
    return list(SampleMaker(episodes, memory, config).draw(count, random.Random(0)))


def test_samples_are_what_the_bank_would_show(episodes):
    for sample in draw(episodes, PLAIN):
        step, episode = sample.snapshot.step, sample.episode
        expected = Replay(episode, MEMORY, episode.keyframes)[step]
        assert [f.step for f in sample.snapshot.keyframes] == [f.step for f in expected.keyframes]
        assert [f.step for f in sample.snapshot.recent] == [s for s in (step - 1, step) if s >= 0]
        assert sample.subtask == episode.subtask_at(step)
        steps = [sample.snapshot.recent[p - 1].step for p in sample.positions]
        assert steps == [k for k in episode.keyframes if k in (step - 1, step)]


def test_only_the_images_of_a_snapshot_are_read(tmp_path):
    path = episode_path(tmp_path, "Squares-v0", 1000)
    save_episode(path, make_episode(1000, "red"))
    episode = load_episode(path)
    replay = Replay(episode, MEMORY, [0])
    expected = Replay(make_episode(1000, "red"), MEMORY, [0])
    shown, wanted = (snapshots[7].keyframes + snapshots[7].recent for snapshots in (replay, expected))
    for frame, other in zip(shown, wanted, strict=True):
        assert (frame.step, frame.time_s, list(frame.images)) == (other.step, other.time_s, list(other.images))
        for camera, image in frame.images.items():
            np.testing.assert_array_equal(image, other.images[camera])
    path.unlink()
    later = replay[4].recent[-1]
    with pytest.raises(EpisodeError, match="cannot be read"):
        later.images["base_camera"]
    Replay(episode, MEMORY, [0])  # a replay by itself reads none


def test_a_counterfactual_sample_changes_cue_and_label_together(episodes):
    samples = draw(episodes, replace(PLAIN, counterfactual_probability=1.0), count=200)
    changed = [s for s in samples if s.counterfactual]
    assert len(changed) > 100
    for sample in changed:
        cue, source = sample.snapshot.keyframes[0], sample.sources[0]
        colour = cue.images["base_camera"][30, 30]
        named = next(c for c in COLOURS if source.goal == f"touch the {c} cube")
        assert np.abs(colour.astype(int) - COLOURS[named]).max() < 10
        if sample.episode.subtask_at(sample.snapshot.step) == sample.episode.goal:
            assert sample.subtask == source.goal
        else:
            assert sample.subtask == sample.episode.subtask_at(sample.snapshot.step)
    assert any(s.subtask not in (s.episode.goal, "watch", "wait") for s in changed)


def test_counterfactual_samples_stay_within_the_goals_of_a_task():
    few = [replace(make_episode(1, "red"), task="Few"), replace(make_episode(2, "lime"), task="Few")]
    many = [replace(make_episode(3 + i, colour), task="Many") for i, colour in enumerate(COLOURS)]
    for sample in draw(few + many, replace(PLAIN, counterfactual_probability=1.0), count=200):
        if sample.episode.task == "Few":
            assert "blue" not in sample.subtask


def test_a_cue_comes_from_an_episode_with_the_same_instruction():
    said = {1: "Touch the square of that colour.", 2: "Touch a square of another colour."}
    coloured = [replace(make_episode(10 * i + n, c), instruction=said[n]) for i, c in enumerate(COLOURS) for n in said]
    samples = draw(coloured, replace(PLAIN, counterfactual_probability=1.0), count=200)
    assert sum(s.counterfactual for s in samples) > 100
    assert all(source.instruction == s.episode.instruction for s in samples for source in s.sources)


def test_late_and_extra_keyframes(episodes):
    late = draw(episodes, replace(PLAIN, late_probability=1.0), count=100)
    firsts = {s.snapshot.keyframes[0].step for s in late if s.snapshot.keyframes}
    assert firsts == {0, 1}  # the cue is shown at steps 0 and 1
    extra = draw(episodes, replace(PLAIN, extra_probability=1.0), count=200)
    assert any(len(s.snapshot.keyframes) > 1 and s.snapshot.step < 8 for s in extra)


def test_no_keyframe_leaves_the_grid(episodes):
    """Nothing but the image may tell a superfluous or late keyframe from the others."""
    config = replace(PLAIN, extra_probability=0.5, late_probability=0.5, step_grid=3)
    samples = draw(episodes, config, count=200)
    assert {frame.step % 3 for s in samples for frame in s.snapshot.keyframes} == {0}


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("counterfactual_probability", 30, "counterfactual_probability must be from 0 to 1, got 30"),
        ("validation_fraction", 1.5, "validation_fraction must be from 0 to 1, got 1.5"),
        ("jitter_steps", -3, "jitter_steps must be at least 0, got -3"),
        ("early_steps", 5, "early_steps is for lag_steps above 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting, value, message):
    with pytest.raises(ValueError, match=message):
        replace(PLAIN, **{setting: value})


def test_without_a_keyframe_bank_nothing_is_remembered(episodes):
    memory = replace(MEMORY, keyframes=False)
    assert all(
        not s.snapshot.keyframes for s in draw(episodes, replace(PLAIN, counterfactual_probability=0.8), memory=memory)
    )


def test_phases_are_drawn_by_weight(episodes):
    config = replace(PLAIN, phase_weights={"watch": 0.0, "wait": 1.0, "*": 0.0})
    assert {s.subtask for s in draw(episodes, config)} == {"wait"}


def test_drawing_is_deterministic(episodes):
    config = replace(PLAIN, counterfactual_probability=0.5, late_probability=0.25, extra_probability=0.25)
    one, two = draw(episodes, config), draw(episodes, config)
    assert [(s.episode.seed, s.snapshot.step, s.subtask) for s in one] == [
        (s.episode.seed, s.snapshot.step, s.subtask) for s in two
    ]


@pytest.mark.parametrize("seed", [900_000, 4_242_424_242])
def test_evaluation_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="kept for evaluation"):
        SampleMaker([make_episode(seed, "red")], MEMORY, PLAIN)


def test_episodes_with_a_field_of_metadata_get_their_share():
    """However many they are, and each once: the first of the fields that an episode has counts."""
    plain = [make_episode(seed, "red") for seed in range(1000, 1002)]
    moved = [replace(make_episode(seed, "red"), metadata={"moved": [1]}) for seed in range(1002, 1042)]
    seen = [replace(e, seed=e.seed + 100, metadata={"moved": [1], "seen": True}) for e in moved[:20]]
    config = replace(PLAIN, metadata_shares={"seen": 0.25, "moved": 0.25}, samples_per_replay=1)
    drawn = draw([*plain, *moved, *seen], config, count=2000)
    seeds = np.array([sample.episode.seed for sample in drawn])
    shares = [np.isin(seeds, [episode.seed for episode in group]).mean() for group in (plain, seen)]
    assert shares == pytest.approx([0.5, 0.25], abs=0.04)
    assert {d.episode.seed for d in draw(plain, config, count=100)} == {1000, 1001}


@pytest.mark.parametrize("shares", [{"moved": 1.0}, {"moved": 0.0}, {"moved": 0.6, "seen": 0.5}])
def test_shares_that_leave_nothing_are_refused(shares):
    with pytest.raises(ValueError, match="metadata_shares must be above 0 and below 1 together"):
        DatasetConfig(metadata_shares=shares)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.1])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match=f"training_share must be above 0 and at most 1.*got {share}"):
        DatasetConfig(training_share=share)


def test_the_jsonl_shows_the_share_alone(episodes, tmp_path):
    config = DatasetConfig(samples=40, training_share=0.25, validation_fraction=0.25)
    path = write_training_data(tmp_path, episodes, PROMPT, MEMORY, config, seed=0)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {record["metadata"]["seed"] for record in records} == {1000, 1001}
    held_out = write_validation_data(tmp_path / "validation", episodes, PROMPT, MEMORY, config, 0, samples=20)
    seeds = {json.loads(line)["metadata"]["seed"] for line in held_out.read_text().splitlines()}
    assert seeds == {1009, 1010, 1011}


def test_the_jsonl_is_the_papers(episodes, tmp_path):
    samples = draw(episodes, DatasetConfig(), count=30)
    path = write_jsonl(tmp_path, iter(samples), PROMPT, DatasetConfig())
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) == 30 and len({r["qid"] for r in records}) == 30
    for record, sample in zip(records, samples, strict=True):
        rendered = render_prompt(sample.snapshot, PROMPT)
        assert [m["role"] for m in record["messages"]] == ["system", "user", "assistant"]
        assert record["messages"][:2] == rendered.messages
        answer = parse_answer(record["messages"][2]["content"], window=len(sample.snapshot.recent))
        assert answer == (sample.subtask, sample.positions)
        assert "".join(m["content"] for m in record["messages"]).count("<image>") == len(record["images"])
        for file, image in zip(record["images"], rendered.images, strict=True):
            assert np.array_equal(np.asarray(Image.open(file)), image)
        meta = record["metadata"]
        assert meta["history_keyframe_count"] == len(sample.snapshot.keyframes)
        assert meta["camera_keys"] == ["base_camera", "hand_camera"]
        assert meta["num_context_images"] == 2 * meta["num_context_frames"]
        assert meta["image_sizes"] == [[64, 64], [64, 64]]


def test_the_jsonl_shows_what_the_prompt_shows_of_cropped_images(episodes, tmp_path):
    prompt = replace(PROMPT, crop={"base_camera": (0.25, 0.5, 1.0, 1.0)})
    samples = draw(episodes, DatasetConfig(), count=4)
    path = write_jsonl(tmp_path, iter(samples), prompt, DatasetConfig())
    for line, sample in zip(path.read_text().splitlines(), samples, strict=True):
        record = json.loads(line)
        for file, image in zip(record["images"], render_prompt(sample.snapshot, prompt).images, strict=True):
            assert np.array_equal(np.asarray(Image.open(file)), image)
        assert record["metadata"]["image_sizes"] == [[48, 32], [64, 64]]


def test_two_episodes_of_one_task_and_seed_have_images_of_their_own(episodes, tmp_path):
    """As an episode and its edited copies have them."""
    copy = replace(episodes[0], images={name: 255 - np.asarray(images) for name, images in episodes[0].images.items()})
    save_episode(episode_path(tmp_path / "copies", copy.task, copy.seed), copy)
    both = [episodes[0], load_episode(episode_path(tmp_path / "copies", copy.task, copy.seed))]
    samples = draw(both, DatasetConfig(), count=20)
    assert {sample.episode is both[0] for sample in samples} == {True, False}
    path = write_jsonl(tmp_path / "data", iter(samples), PROMPT, DatasetConfig())
    for line, sample in zip(path.read_text().splitlines(), samples, strict=True):
        for file, image in zip(json.loads(line)["images"], render_prompt(sample.snapshot, PROMPT).images, strict=True):
            assert np.array_equal(np.asarray(Image.open(file)), image)


def test_images_can_be_base64(episodes, tmp_path):
    config = DatasetConfig(image_format="base64")
    sample = draw(episodes, config, count=1)[0]
    record = json.loads(write_jsonl(tmp_path, iter([sample]), PROMPT, config).read_text())
    head, data = record["images"][-1].split(",")
    assert head == "data:image/png;base64"
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert np.array_equal(image, sample.snapshot.recent[-1].images["hand_camera"])


def test_a_prompt_without_keyframes_lists_none_of_their_images(episodes, tmp_path):
    memory, prompt = MemoryConfig(recent_window=2, keyframes=False), PromptConfig(recent_window=2, keyframes=False)
    samples = draw(episodes, DatasetConfig(), count=20, memory=memory)
    path = write_jsonl(tmp_path, iter(samples), prompt, DatasetConfig())
    assert all(len(json.loads(line)["images"]) <= 4 for line in path.read_text().splitlines())


def test_batches_of_equally_long_samples(episodes):
    samples = list(draw(episodes, PLAIN, count=64))
    batches = list(equally_long(iter(samples), 8, random.Random(0)))
    assert sorted(map(id, batches)) == sorted(map(id, samples))
    images = [[len(s.snapshot.keyframes) + len(s.snapshot.recent) for s in batches[i : i + 8]] for i in range(0, 64, 8)]
    assert sum(max(counts) - min(counts) for counts in images) <= max(map(max, images)) - min(map(min, images))
    assert images != sorted(images)


def test_data_sets_share_images(episodes, tmp_path):
    """An image that several steps or data sets show is one file."""

    def write(name):
        path = write_jsonl(tmp_path / name, draw(episodes, PLAIN), PROMPT, PLAIN, tmp_path / "images")
        return {image for line in path.read_text().splitlines() for image in json.loads(line)["images"]}

    first = write("one")
    assert first == set(map(str, (tmp_path / "images").rglob("*.png"))) and first == write("two")
    shown = {image.tobytes() for e in episodes for frames in e.images.values() for image in frames}
    assert all(np.asarray(Image.open(path)).tobytes() in shown for path in first)


def test_tasks_are_drawn_by_their_weights_however_many_episodes_they_have():
    many = [make_episode(seed, "red") for seed in range(1000, 1009)]
    few = [replace(make_episode(1000, "red"), task="Rare-v0")]
    shares = {}
    for name, weights in {"none": {}, "alike": {"*": 1.0}, "rare": {"Rare*": 3.0, "*": 1.0}}.items():
        drawn = draw(many + few, replace(PLAIN, task_weights=weights), count=400)
        shares[name] = np.mean([sample.episode.task == "Rare-v0" for sample in drawn])
    assert 0.05 < shares["none"] < 0.15 and 0.42 < shares["alike"] < 0.58 and 0.67 < shares["rare"] < 0.83


@pytest.mark.parametrize("weights", [{"Rare*": 3.0}, {"Rare*": 0.0, "*": 1.0}])
def test_task_weights_that_leave_a_task_without_one_are_refused(weights):
    with pytest.raises(ValueError, match="task_weights"):
        DatasetConfig(task_weights=weights)


def test_a_cue_has_to_be_named():
    with pytest.raises(ValueError, match="name it in cue_subtask"):
        DatasetConfig(counterfactual="cue", counterfactual_probability=0.5)
    assert DatasetConfig(counterfactual="cue", counterfactual_probability=0.5, cue_subtask="look").cue_subtask == "look"


def test_without_a_setting_samples_are_what_was_recorded(episodes):
    """Nothing of one benchmark is in the defaults."""
    for sample in draw(episodes, DatasetConfig()):
        expected = Replay(sample.episode, MEMORY, sample.episode.keyframes)[sample.snapshot.step]
        assert [f.step for f in sample.snapshot.keyframes] == [f.step for f in expected.keyframes]
        assert not sample.counterfactual and sample.subtask == sample.episode.subtask_at(sample.snapshot.step)


def test_instructions_are_put_into_other_words(episodes, tmp_path):
    own = {episode.instruction for episode in episodes}
    (instruction,) = own
    words = tmp_path / "words.yaml"
    words.write_text(json.dumps({"Squares-v0": {"original": instruction, "paraphrases": ["Do it.", "Please do."]}}))
    config = replace(PLAIN, paraphrases=str(words), paraphrase_probability=0.5)
    samples = draw(episodes, config, 400)
    told = [sample.snapshot.instruction for sample in samples]
    assert set(told) == own | {"Do it.", "Please do."} == told_instructions(episodes, config)
    assert 0.4 < told.count(instruction) / 400 < 0.6
    assert "Do it." in render_prompt(samples[told.index("Do it.")].snapshot, PROMPT).messages[-1]["content"]
    assert all(sample.subtask == sample.episode.subtask_at(sample.snapshot.step) for sample in samples)
    words.write_text(json.dumps({"Other-v0": {"original": instruction, "paraphrases": ["Do it."]}}))
    read_paraphrases.cache_clear()
    assert {sample.snapshot.instruction for sample in draw(episodes, config)} == own, "a task that the file lacks"


def test_other_words_need_a_file_and_its_form(episodes, tmp_path):
    with pytest.raises(ValueError, match="name their file in paraphrases"):
        replace(PLAIN, paraphrase_probability=0.5)
    words = tmp_path / "faulty.yaml"
    for text, message in (
        ("Squares-v0: [Do it.]", "expected the text `original` and the list of texts `paraphrases` of Squares-v0"),
        ("Squares-v0: {original: Go., paraphrases: do this}", "and the list of texts `paraphrases` of Squares-v0"),
        ("Squares-v0: {original: 'Open {a}.', paraphrases: ['Do {b}.']}", "the original has no {b}, which is in"),
    ):
        words.write_text(text)
        read_paraphrases.cache_clear()
        with pytest.raises(ConfigError, match=message):
            draw(episodes, replace(PLAIN, paraphrases=str(words), paraphrase_probability=0.5))
