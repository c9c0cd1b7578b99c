"""The tiny tokenizer: short prompts, lossless, stock."""

from __future__ import annotations

from dataclasses import replace

import pytest
from transformers import AutoTokenizer

from planner.prompt import PromptConfig, fixed_phrases, list_number, render_answer, system_prompt
from planner.proprioception import moved, opened
from planner.tiny.tokenizer import answer_token_ids, deciding_token_ids, extend_tokenizer, train_tokenizer
from planner.tiny.tokenizer_config import TokenizerConfig
from tests.planner.builders import BASE, INSTRUCTION, PROMPT


def test_an_answer_is_a_handful_of_tokens(processor):
    ids = processor.tokenizer(render_answer("touch the blue cube", [1])).input_ids
    pieces = [processor.tokenizer.decode([i]) for i in ids]
    assert pieces == [
        '{"current_primitive":"', "touch", " the", " blue", " cube", '","keyframe_positions":[', "1", "]}",
    ]  # fmt: skip


def test_fixed_phrases_are_one_token_each(processor):
    for phrase in fixed_phrases(PROMPT, (INSTRUCTION,)):
        assert len(processor.tokenizer(phrase).input_ids) == 1, phrase


@pytest.mark.parametrize("text", [system_prompt(PROMPT), "step 1234 (61.70 s): x\n", "Ünïcödé 日本 {}\t\n\n  a"])
def test_any_text_survives(processor, text):
    ids = processor.tokenizer(text).input_ids
    assert processor.tokenizer.decode(ids) == text


def test_it_reloads_as_it_was(processor, tmp_path):
    processor.tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = "<|im_start|>user\n" + system_prompt(PROMPT) + "\nstep 3 (0.15 s): <|image_pad|><|im_end|>\n"
    assert loaded(text).input_ids == processor.tokenizer(text).input_ids
    assert loaded.chat_template == processor.tokenizer.chat_template


def test_subtasks_are_filled_in():
    config = TokenizerConfig(subtasks=("wait", "touch the {a} {b}"), words={"a": ("red", "blue"), "b": ("cube",)})
    assert config.all_subtasks() == ["wait", "touch the red cube", "touch the blue cube"]


def test_deciding_words_must_be_spelled_well(processor):
    assert len(deciding_token_ids(processor.tokenizer, ["red", "lime", "blue"])) == 3
    with pytest.raises(ValueError, match="raise the tokenizer's vocab_size"):
        train_tokenizer(TokenizerConfig(vocab_size=257, words={"a": ("chartreuse",)}), PROMPT)


def test_numbers_of_several_digits_are_one_token_where_they_decide():
    config = TokenizerConfig(subtasks=("row {row}",), words={"row": ("9", "10", "15")})
    tokenizer = train_tokenizer(config, PROMPT)
    assert [len(deciding_token_ids(tokenizer, [word])) for word in ("9", "10", "15")] == [2, 1, 1]
    for text in (" row 10 column", " 105", "10 10"):
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert tokenizer.convert_ids_to_tokens(tokenizer(" 105").input_ids)[0] != " 10"


def test_the_number_of_an_entry_of_a_list_is_one_token():
    tokenizer = train_tokenizer(TokenizerConfig(), replace(PROMPT, numbered=True))
    for number in (1, 9, 17):
        ids = tokenizer(f"{list_number(number)}step 3").input_ids
        assert tokenizer.decode(ids[:1]) == list_number(number)


def test_what_is_said_of_the_hand_is_one_token():
    prompt = replace(PROMPT, hand_position=(0, 1, 2), gripper_opening=(9,))
    tokenizer = train_tokenizer(TokenizerConfig(), prompt)
    assert [len(tokenizer(told(mm)).input_ids) for mm in (0, 7, 40) for told in (moved, opened)] == [1] * 6
    assert [tokenizer.decode(tokenizer(told(412)).input_ids) for told in (moved, opened)] == [moved(412), opened(412)]
    older = train_tokenizer(TokenizerConfig(), PROMPT)
    assert {moved(7), opened(7)} <= set(extend_tokenizer(older, TokenizerConfig(), prompt))
    assert len(older(moved(7) + opened(7)).input_ids) == 2


def test_training_is_deterministic():
    one, two = (train_tokenizer(BASE.tokenizer, PROMPT) for _ in range(2))
    assert one.get_vocab() == two.get_vocab()


def test_whole_subtasks_can_be_tokens():
    config = TokenizerConfig(
        vocab_size=500,
        instructions=("Open the {drawer} drawer, then the other.", "Wait."),
        subtasks=("open {drawer} drawer", "open {drawer} drawer again"),
        words={"drawer": ("top", "bottom")},
        label_tokens=True,
    )
    tokenizer = train_tokenizer(config, PROMPT)
    ids = answer_token_ids(tokenizer, config)
    assert len(set(ids)) == 4
    for subtask in config.all_subtasks():
        answer = tokenizer(render_answer(subtask, [1])).input_ids
        assert [tokenizer.decode([i]) for i in answer] == [
            '{"current_primitive":"', subtask, '","keyframe_positions":[', "1", "]}",
        ]  # fmt: skip
        assert answer[1] in ids
    pieces = [tokenizer.decode([i]) for i in tokenizer("Global task: Open the top drawer, then the other.\n").input_ids]
    assert pieces == ["Global task: Open the", " top", " drawer, then the other.\n"]


def test_what_never_changes_can_be_one_token():
    prompt = PromptConfig(recent_window=2, timestamps="relative")
    config = TokenizerConfig(vocab_size=500, subtasks=("wait",), label_tokens=True, block_tokens=True)
    tokenizer = train_tokenizer(config, prompt)
    ids = tokenizer(f"<|im_start|>system\n{system_prompt(prompt)}<|im_end|>").input_ids
    assert [tokenizer.decode([i]) for i in ids][1:-1] == [f"system\n{system_prompt(prompt)}"]
    for text, pieces in {
        "-0.5 s: x": ["-0", ".5 s: ", "x"],
        "-137.0 s: x": ["-137", ".0 s: ", "x"],
        "+0.0 s: x": ["+0", ".0 s: ", "x"],
    }.items():
        ids = tokenizer(text).input_ids
        assert [tokenizer.decode([i]) for i in ids] == pieces
    decisive = [tokenizer.decode([i]) for i in answer_token_ids(tokenizer, config)]
    assert decisive == ["wait", *"123456789", "]}"]
    assert tokenizer.decode(tokenizer(render_answer("wait", [2])).input_ids) == render_answer("wait", [2])
