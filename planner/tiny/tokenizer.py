"""The tiny planner's tokenizer: byte-level BPE with Qwen's special tokens, and one token for each fixed phrase.

It is trained on rendered prompts and answers. The phrases that never change (rules, section headings, the answer's
JSON skeleton) are added as tokens of their own. A prompt then consists mostly of images, and an answer takes about ten
tokens. The result is a stock Hugging Face tokenizer, which any loader reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers import Regex as TokenRegex
from tokenizers.models import BPE
from transformers import Qwen2Tokenizer
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from planner.prompt import PromptConfig, fixed_phrases, list_number, render_answer, system_prompt
from planner.proprioception import moved, opened
from planner.tiny.tokenizer_config import TokenizerConfig

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
END_OF_ANSWER = "<|im_end|>"
NO_MORE = "]}"  # ends the list of positions
NUMBERED = 64  # the number of an entry of a list is one token below this
MOVES_MM = 48  # a shorter way of the hand is one token ...
OPENINGS_MM = 100  # ... as is a smaller opening of the gripper
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' -}}"
    "{%- if message.content is string -%}{{- message.content -}}"
    "{%- else -%}{%- for item in message.content -%}"
    "{%- if item.type == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}"
    "{%- else -%}{{- item.text -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)


def train_tokenizer(config: TokenizerConfig, prompt: PromptConfig) -> Qwen2Tokenizer:
    """A tokenizer for this prompt. Raises ValueError if it spells a deciding word badly."""
    bpe = Tokenizer(BPE())
    bpe.normalizer = normalizers.NFC()
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(TokenRegex(PRETOKENIZE_REGEX), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(_corpus(config, prompt) * 4, trainer)
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    bpe.add_tokens([AddedToken(phrase, normalized=False) for phrase in _phrases(config, prompt)])
    bpe.add_tokens([AddedToken(number, normalized=False, single_word=True) for number in _numbers(config)])
    tokenizer = Qwen2Tokenizer(
        tokenizer_object=bpe,
        eos_token=END_OF_ANSWER,
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL_TOKENS),
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    answer_token_ids(tokenizer, config)
    return tokenizer


def extend_tokenizer(tokenizer: Qwen2Tokenizer, config: TokenizerConfig, prompt: PromptConfig) -> list[str]:
    """Add the phrases of this config to the tokenizer of a planner that lacks them; what was added.

    Known tokens keep their numbers, so that what the planner has read so far is read as before. A deciding word that
    it would spell with more than two tokens becomes one.
    """
    known = tokenizer.get_vocab()
    new = [phrase for phrase in dict.fromkeys(_phrases(config, prompt)) if phrase not in known]
    if not config.label_tokens:
        words = (f" {word}" for word in dict.fromkeys(config.deciding_words()))
        new += [word for word in words if len(tokenizer(word, add_special_tokens=False).input_ids) > 2]
    tokens: Sequence[Any] = [AddedToken(phrase, normalized=False) for phrase in new]
    tokenizer.add_tokens(list(tokens))
    return new


def answer_token_ids(tokenizer: Qwen2Tokenizer, config: TokenizerConfig) -> tuple[int, ...]:
    """The tokens that decide an answer: of whole subtasks with `label_tokens`, else of the deciding words.

    With `block_tokens` also those that nominate: a position, or the bracket in place of one.
    """
    positions = [*map(str, range(1, 10)), NO_MORE] if config.block_tokens else []
    if config.label_tokens:
        ids: Any = tokenizer.convert_tokens_to_ids([*config.all_subtasks(), *positions])
        return tuple(ids)
    return deciding_token_ids(tokenizer, config.deciding_words())


def deciding_token_ids(tokenizer: Qwen2Tokenizer, words: Sequence[str]) -> tuple[int, ...]:
    """The tokens of these words as they stand inside an answer (after a blank), in order, without repeats.

    Raises ValueError if a word takes more than two tokens.
    """
    ids: list[int] = []
    for word in words:
        tokens = tokenizer(f" {word}", add_special_tokens=False).input_ids
        if len(tokens) > 2:
            raise ValueError(f"{word!r} takes {len(tokens)} tokens: raise the tokenizer's vocab_size")
        ids += tokens
    return tuple(dict.fromkeys(ids))


def _numbers(config: TokenizerConfig) -> list[str]:
    """Deciding words of several digits, each of which Qwen's splitting makes a token of its own otherwise."""
    return [f" {word}" for word in dict.fromkeys(config.deciding_words()) if word.isdigit() and len(word) > 1]


def _phrases(config: TokenizerConfig, prompt: PromptConfig) -> list[str]:
    """What is one token, in the order of their numbers."""
    phrases = fixed_phrases(prompt, config.instructions)
    if config.block_tokens:
        phrases = _blocks(prompt) + phrases + _times(prompt)
    if prompt.numbered:
        phrases += [list_number(number) for number in range(1, NUMBERED)]
    if prompt.hand_position:
        phrases += [moved(distance_mm) for distance_mm in range(MOVES_MM)]
    if prompt.gripper_opening:
        phrases += [opened(opening_mm) for opening_mm in range(OPENINGS_MM)]
    phrases += config.sentences
    return phrases + config.all_subtasks() if config.label_tokens else phrases


def _blocks(prompt: PromptConfig) -> list[str]:
    """What stands between the parts of a prompt that change, chat markup excepted."""
    return ["system\n" + system_prompt(prompt), "user\n", "assistant\n"]


def _times(prompt: PromptConfig) -> list[str]:
    """Times up to four minutes in two pieces: whole seconds, and the tenth with what follows it."""
    tenths = [f".{tenth} s: " for tenth in range(10)]
    if prompt.timestamps == "relative":
        return ["+0", *(f"-{second}" for second in range(240)), *tenths]
    if prompt.timestamps == "gaps":
        return [*(f"+{second}" for second in range(240)), *tenths]
    return []


def _corpus(config: TokenizerConfig, prompt: PromptConfig) -> list[str]:
    if prompt.timestamps in ("relative", "gaps"):
        sign = -1 if prompt.timestamps == "relative" else 1
        times = [f"{sign * step / 10:+.1f} s: \n" for step in range(1000)]
    else:
        times = [f"step {step} ({step / 20:.2f} s): \n" for step in range(100)]
    answers = [render_answer(subtask, [1]) for subtask in config.all_subtasks()] * 4
    tasks = [f"Global task: {instruction}" for instruction in config.all_instructions()] * 4
    return [*times, *answers, *tasks, *fixed_phrases(prompt), "system\nuser\nassistant\n"]
