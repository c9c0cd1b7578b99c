import numpy as np
import pytest

from actor.tokenizer import (
    PaliGemmaTokenizer,
    load_tokenizer,
    render_prompt,
    save_tokenizer,
    tokenize,
    train_word_tokenizer,
)

SUBTASKS = ["touch the teal cube", "wait", "Observe the cube's color."]


def test_prompt_is_openpi_s_text():
    assert render_prompt(" touch_the\ncube ", [0, 128, 255]) == "Task: touch the cube, State: 0 128 255;\nAction: "


def test_one_token_per_word_and_per_bin(tmp_path):
    tokenizer = train_word_tokenizer(SUBTASKS)
    ids = tokenizer.encode(render_prompt("touch the teal cube", [7, 255]))
    assert len(ids) == 15  # <bos> task : touch the teal cube , state : 7 255 ; action :
    assert tokenizer.number_ids()[255] == ids[-4]
    assert 2 not in ids  # nothing unknown
    with pytest.warns(UserWarning, match="not trained with: drawer, open"):
        assert 2 in tokenizer.encode("Task: open the drawer")
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    assert load_tokenizer(tmp_path / "tokenizer.json").encode("touch the 7") == tokenizer.encode("touch the 7")


def test_new_words_come_after_the_known_ones():
    tokenizer = train_word_tokenizer(SUBTASKS)
    more = tokenizer.with_words(["touch the Mug: red", "wait", "touch the mug: white"])
    assert more.vocab_size == tokenizer.vocab_size + 3
    assert more.encode("touch the teal cube") == tokenizer.encode("touch the teal cube")
    assert more.encode("mug red white")[1:] == list(range(tokenizer.vocab_size, more.vocab_size))
    assert more.with_words(SUBTASKS).text == more.text


def test_batches_are_padded_to_the_longest():
    tokenizer = train_word_tokenizer(SUBTASKS)
    tokens, mask = tokenize(tokenizer, ["wait", "touch the teal cube"], np.array([[1], [2]]), max_len=48)
    assert tokens.shape == mask.shape == (2, 14)
    assert mask.sum(1).tolist() == [11, 14] and not tokens[0, 11:].any()


def test_a_long_subtask_loses_words_never_the_state():
    tokenizer = train_word_tokenizer(SUBTASKS)
    with pytest.warns(UserWarning, match="subtask cut to"):
        tokens, mask = tokenize(tokenizer, ["wait " * 500], np.array([[9, 8]]), max_len=20)
    assert mask.sum() <= 20
    numbers = tokenizer.number_ids()
    assert tokens[0][mask[0]][-5:-3].tolist() == [numbers[9], numbers[8]]
    with pytest.raises(ValueError, match="too short for a state of 2 numbers"):
        tokenize(tokenizer, ["wait"], np.array([[9, 8]]), max_len=8)


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"tokenizer not found: .*paligemma\.model"):
        load_tokenizer(tmp_path / "paligemma.model")
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="not a readable tokenizer"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_sentencepiece_models_load(tmp_path):
    """PaliGemma's own file is not ours to ship: a small model of the same kind stands in."""
    import sentencepiece

    (tmp_path / "corpus.txt").write_text("\n".join(render_prompt(s, range(256)) for s in SUBTASKS * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "corpus.txt"),
        model_prefix=str(tmp_path / "small"),
        vocab_size=64,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    tokenizer = load_tokenizer(tmp_path / "small.model")
    assert isinstance(tokenizer, PaliGemmaTokenizer)
    ids = tokenizer.encode("Task: wait")
    assert ids[0] == 1 and tokenizer.vocab_size >= max(ids)
