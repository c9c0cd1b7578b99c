"""Any vision-language model as the planner, over an OpenAI-compatible endpoint: see docs/guides/own-planner.md.

agent_configs:
  my-vlm:
    planner: examples/vlm_planner.py:VlmPlanner
    planner_options: {base_url: "http://localhost:8000/v1", model: Qwen/Qwen3-VL-4B-Instruct}
    actor: skills
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import openai
from PIL import Image

from memory_bank import MemoryConfig
from planner.parsing import parse_plan
from planner.prompt import PromptConfig, chat_messages, render_prompt
from predimem.core.types import MemorySnapshot, Plan

NO_KEY = "none"  # servers of one's own usually ask for none, but the client insists on one


class VlmPlanner:
    """A `Planner`. Raises ConnectionError and TimeoutError, which end an episode as an error and never as a failure; an
    answer that is not the JSON asked for becomes `Plan.error`, and the robot goes on with its last subtask."""

    memory = MemoryConfig(recent_window=3, recent_stride_steps=10, cluster_gap_steps=12)

    def __init__(
        self,
        base_url: str,
        model: str,
        cameras: Sequence[str] = ("agentview_rgb", "eye_in_hand_rgb"),
        subtasks: Sequence[str] = (),
        timeout_s: float = 60.0,
    ):
        """subtasks: the labels that the low-level policy understands, from which the model has to choose."""
        self._prompt = PromptConfig(tuple(cameras), self.memory.recent_window, timestamps="relative")
        self._choices = f"\ncurrent_primitive is one of: {'; '.join(subtasks)}." if subtasks else ""
        self._where, self._model, self._timeout_s = f"the model {model} at {base_url}", model, timeout_s
        key = os.environ.get("OPENAI_API_KEY", NO_KEY)
        self._client = openai.OpenAI(base_url=base_url, api_key=key, timeout=timeout_s, max_retries=0)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        prompt = render_prompt(snapshot, self._prompt)
        messages: Any = chat_messages(prompt.messages)
        images = iter(prompt.images)
        for message in messages:
            message["content"] = [_image(next(images)) if c["type"] == "image" else c for c in message["content"]]
        messages[0]["content"][-1]["text"] += self._choices
        try:
            reply = self._client.chat.completions.create(model=self._model, messages=messages, temperature=0.0)
            text = reply.choices[0].message.content or ""
        except openai.APITimeoutError as error:
            raise TimeoutError(f"{self._where} gave no answer within {self._timeout_s:g} s: raise timeout_s") from error
        except openai.APIStatusError as error:
            raise ConnectionError(f"{self._where} refused, status {error.status_code}: {error.message}") from error
        except (openai.APIError, AttributeError, IndexError, TypeError) as error:
            raise ConnectionError(f"{self._where} cannot be reached, or is no such endpoint: {error}") from error
        return parse_plan(_json_in(text), snapshot)


def _image(image: np.ndarray) -> dict[str, Any]:
    """uint8 [H, W, 3] as a message part: a PNG in a data URL."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _json_in(text: str) -> str:
    """The answer without the thoughts before it and the fence around it, which many models add."""
    text = text.rpartition("</think>")[2].strip()
    fenced = re.fullmatch(r"```(?:json)?\s*(.*?)\s*```", text, re.DOTALL)
    return fenced[1] if fenced else text
