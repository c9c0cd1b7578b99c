"""Fixtures; the builders behind them are in `builders`."""

from __future__ import annotations

import pytest
import torch

from tests.planner.builders import BASE, COLOURS, PROMPT, make_episode


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def processor():
    from planner.tiny.base import tiny_processor

    return tiny_processor(BASE, PROMPT)


@pytest.fixture(scope="session")
def episodes():
    return [make_episode(1000 + i, colour) for i, colour in enumerate([*COLOURS] * 4)]
